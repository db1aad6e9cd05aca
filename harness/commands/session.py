"""What the commands do: names become models and protocols, progress is shown, records are kept."""

import inspect
import json
import logging
import os
import platform
import re
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown

from harness import cache as caches
from harness import contracts, errors, plugins, progress, registry
from harness.data.weights import NotHere
from harness.errors import InputError, InputTypeError, SystemRefusedError, UnknownNameError
from harness.escape import say, visible
from harness.evaluate import BATCH, describe, export_vectors
from harness.evaluate import evaluate as run
from harness.files import atomic
from harness.records import leaderboard, tables
from harness.records import record as results
from harness.records.record import Record
from harness.settings import Options, accepted, positional
from harness.settings import options as options
from harness.types import Descriptor, Picture, Protocol
from harness.vector_folder import Model

log = logging.getLogger(__name__)


def evaluate(
    models: Sequence[str],
    name: str,
    given: Options,
    folder: Path,
    device: str,
    batch_size: int | None,
    *,
    as_json: bool,
) -> None:
    """Score models on the protocols of a name, keep the records, show them."""
    names = protocol_names(name)
    trouble = f"records can't be kept in {folder}"
    atomic.must_be_writable(folder, trouble, "choose another --results")
    loaded = _loaded(models, device)
    protocols = make_protocols(names, given)
    for model, protocol in product(loaded, protocols):
        results.must_be_free(folder, model, protocol)
    cache = caches.kept("vectors")
    records: list[Record] = []
    lost: dict[Path, OSError] = {}  # records that can't be kept, to be told behind the scores
    for model in loaded:
        begun = time.perf_counter()
        patches = len(protocols[0].dataset)
        try:
            with (
                errors.naming(f"{model.name} on {name}"),
                progress.shown(f"{model.name}: patches described", patches) as advance,
            ):
                for record in run(
                    model, protocols, cache=cache, batch_size=batch_size or BATCH, progress=advance
                ):
                    records.append(record)
                    file = results.place(folder, record)
                    try:
                        results.save(folder, record)
                        results.save_run(file, _run_facts(time.perf_counter() - begun))
                    except OSError as error:
                        lost[file] = error
        except results.TrainedOnAll as error:
            if model is loaded[-1] and not records:
                raise
            log.warning("passed over: %s", error)
    if as_json:
        _print_json(records)
    else:
        _show(records)
    if lost:
        file, why = next(iter(lost.items()))
        raise SystemRefusedError(
            f"{len(lost)} of {len(records)} records can't be kept, the first of them {file}"
            f" ({why.strerror or why}): make room or choose another --results, and evaluate again;"
            " vectors that are in the cache are not described again"
        ) from why
    log.info("records are in %s; `harness leaderboard` makes tables of them", folder)


def export(
    models: Sequence[str], name: str, given: Options, out: Path, device: str, batch_size: int | None
) -> None:
    """Write the vectors of a protocol's patches in the official CSV form; `out` appears whole."""
    with atomic.placing(out) as unfinished:
        model = _one_model("vectors of one model are written at a time", models, device)
        dataset = make_protocols(protocol_names(name)[:1], given)[0].dataset
        with (
            errors.naming(f"{model.name} on {name}"),
            progress.shown(f"{model.name}: patches described", len(dataset)) as advance,
        ):
            export_vectors(
                model,
                dataset,
                unfinished,
                cache=caches.kept("vectors"),
                batch_size=batch_size or BATCH,
                progress=advance,
            )
    log.info("vectors are in %s", out)


def show(
    name: str,
    of: Sequence[str],
    models: Sequence[str],
    given: Options,
    out: Path | None,
    device: str,
    batch_size: int | None,
) -> None:
    """Write a picture of what a model makes of some data, and print where it is."""
    maker = registry.load("pictures", name)
    wanted = positional(maker)
    if len(of) != len(wanted):
        raise InputError(
            f"a picture {name} is of {' '.join(wanted).upper()}, not of {' '.join(of)!r}"
        )
    atomic.must_be_writable(out.parent if out else Path(), "the picture can't be written")
    model = _one_model("a picture is of one model", models, device)
    what = f"picture {name}"
    with errors.naming(what):
        picture: Picture = maker(*of, **accepted(maker, _with_data(given), what))
    cache, batch = caches.kept("vectors"), batch_size or BATCH
    with (
        errors.naming(f"{model.name} on {what}"),
        progress.shown(f"{model.name}: patches described", len(picture.dataset)) as advance,
    ):
        described = describe(
            model, picture.dataset, cache=cache, batch_size=batch, progress=advance
        )
        drawn = picture.draw(described)
    file = out or Path(re.sub(r"[^\w.+-]", "_", "-".join([name, *of, model.name])) + ".png")
    with atomic.writing(file) as stream:
        stream.write(drawn)
    say(file)


def check(models: Sequence[str], protocol: str | None, given: Options, device: str) -> bool:
    """Print which laws descriptors and protocols keep; whether they keep all."""
    if not models and not protocol:
        raise InputError("nothing to check: give --model or --protocol")
    kept = []
    for model in _loaded(models, device):
        if not isinstance(model, Descriptor):
            raise InputTypeError(f"{model.name} is a folder of vectors: it has no code to check")
        kept.append(_told(model.name, contracts.check_descriptor(model)))
    for one in make_protocols(protocol_names(protocol), given) if protocol else ():
        kept.append(_told(f"{one.name} on {one.dataset.name}", contracts.check_protocol(one)))
    return all(kept)


def _told(subject: str, laws: Sequence[contracts.Law]) -> bool:
    say(subject)
    for law in laws:
        detail = f": {law.detail}" if law.detail else ""
        say(f"  {'kept  ' if law.passed else 'BROKEN'}  {law.name}{detail}")
    return all(law.passed for law in laws)


def make_leaderboards(folder: Path) -> None:
    """Make the tables below a folder of records again and print where they are."""
    written = tables.write(folder)
    for file in written:
        say(file)
    if not written:
        log.warning("every record in %s is of partial data, which enter no table", folder)


def build(form: str, images: Path, out: Path, given: Options) -> None:
    """Make a benchmark out of images and print what became of their keypoints."""
    maker = registry.load("builders", form)
    what = f"builder {form}"
    with errors.naming(what), progress.bar() as bar:
        wanted = accepted(maker, given, what)
        task = bar.add_task(visible(f"{form}: done"), total=None)

        def advance(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        told = "progress" in inspect.signature(maker).parameters
        report = maker(images, out, **wanted, **({"progress": advance} if told else {}))
    for line in str(report).splitlines():
        say(line)


def model_names(spec: str) -> list[str]:
    """The model of this name, or all below it: "tfeat" stands for "tfeat.liberty" and others."""
    known = registry.names("descriptors")
    below = [one for one in known if one.startswith(f"{spec}.")]
    return below if below and spec not in known else [spec]


def protocol_names(name: str) -> list[str]:
    """The protocol of this name, or all below it: "hpatches" stands for its three tasks.

    Raises:
        UnknownNameError: if there is none; says the nearest name.
        InputError: if these are several names.
    """
    if "," in name:
        raise InputError(f"--protocol takes one name, not {name!r}: give each in a run of its own")
    known = registry.names("protocols")
    below = [one for one in known if one.startswith(f"{name}/")]
    if name in known:
        return [name]
    if not below:
        families = {one.partition("/")[0] for one in known}
        raise UnknownNameError(registry.unknown("protocols", name, {*known, *families}))
    return below


def make_protocols(names: Sequence[str], given: Options) -> list[Protocol]:
    """Protocols on their data: those of --data, else of HARNESS_DATA, else their samples."""
    found = _with_data(given)
    return [_made(name, found) for name in names]


def _with_data(given: Options) -> Options:
    found = dict(given)
    if "data" not in found and os.environ.get("HARNESS_DATA"):
        found["data"] = Path(os.environ["HARNESS_DATA"])
    if "data" not in found:
        log.warning(
            "NO DATA SET GIVEN: this runs on a small sample made from photographs. Its numbers"
            " compare with no other's; give --data DIR or set HARNESS_DATA"
        )
    return found


def _made(name: str, given: Options) -> Protocol:
    maker = registry.load("protocols", name)
    what = f"protocol {name}"
    with errors.naming(what), progress.shown(f"opening {what}"):
        protocol: Protocol = maker(**accepted(maker, given, what))
    return protocol


def _specs(models: Sequence[str]) -> list[str]:
    return [one for spec in models for one in model_names(spec.strip())]


def _one_model(rule: str, models: Sequence[str], device: str) -> Model:
    specs = _specs(models)
    if len(specs) != 1:
        raise InputError(f"{rule}, not of {', '.join(specs)}")
    return plugins.model(specs[0], device=device)


def _loaded(models: Sequence[str], device: str) -> list[Model]:
    """Models of different names: a record is found by the name of its model."""
    found: dict[str, tuple[str, Model]] = {}
    for spec, model in (pair for one in models for pair in _named(one.strip(), device)):
        if model.name in found:
            raise InputError(
                f"two models are called {model.name}: {found[model.name][0]} and {spec};"
                " leave one out, or give it another name"
            )
        found[model.name] = spec, model
    return [model for _, model in found.values()]


def _named(spec: str, device: str) -> list[tuple[str, Model]]:
    """The model of a name, or those of a family whose weights are here."""
    names = model_names(spec)
    found: list[tuple[str, Model]] = []
    for name in names:
        try:
            found.append((name, plugins.model(name, device=device)))
        except (NotHere, RuntimeError) as error:
            of_weights = isinstance(error, NotHere) or isinstance(error.__cause__, NotHere)
            if names == [spec] or not of_weights or (name == names[-1] and not found):
                raise
            log.warning("passed over: %s", error)
    return found


def _print_json(records: Sequence[Record]) -> None:
    """One record as an object, several as a list."""
    found = [record.model_dump(mode="json") for record in records]
    print(json.dumps(found[0] if len(found) == 1 else found, indent=1, sort_keys=True))


def _show(records: Sequence[Record]) -> None:
    complete = leaderboard.boards(records)
    console = Console()
    for board in complete:
        percent = "" if board.quantities else ", percent"
        title = f"### {leaderboard.heading(board)}{percent}\n\n"
        lines = leaderboard.headline_table(board)
        for kind in tables.kinds_of(board.family):
            lines += kind.lines_of(board)
        console.print(Markdown(title + "\n".join(lines)))
    for record in records:
        if not record.data.complete:
            headline = record.protocol.headline
            score = record.scores.get(headline, float("nan"))  # where cells were refused
            say(f"{record.model.name}  {headline} {score:.4f}  PARTIAL DATA")
            for warning in record.warnings:
                say(warning)


def _run_facts(seconds: float) -> Mapping[str, object]:
    return {
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "host": platform.node(),
        "seconds_since_start": round(seconds, 2),
        "command": " ".join(sys.argv[1:]),
    }
