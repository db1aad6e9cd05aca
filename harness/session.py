"""What the commands do: names become models and protocols, progress is shown, records are kept."""

import inspect
import logging
import os
import platform
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markdown import Markdown
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from harness import contracts, home, plugins, registry, results
from harness.cache import VectorCache
from harness.evaluate import evaluate as run
from harness.evaluate import export_vectors
from harness.report import cross_scene, leaderboard
from harness.results import Record
from harness.types import Descriptor, Protocol

Options = dict[str, Any]

log = logging.getLogger(__name__)


def options(*, settings: Sequence[str] | None = None, **given: object) -> Options:
    """The options that the user gave, those of `--set KEY=VALUE` among them."""
    found: Options = {name: value for name, value in given.items() if value is not None}
    for setting in settings or ():
        name, equals, value = setting.partition("=")
        if not equals:
            raise ValueError(f"--set takes KEY=VALUE, not {setting!r}")
        found[name.replace("-", "_")] = _literal(value)
    return found


def evaluate(
    models: Sequence[str],
    name: str,
    given: Options,
    folder: Path,
    device: str,
    batch_size: int,
    *,
    as_json: bool,
) -> None:
    """Score models on the protocols of a name, keep the records, show them."""
    specs = [one for spec in models for one in model_names(spec.strip())]
    loaded = [plugins.model(spec, device=device) for spec in specs]
    protocols = [make_protocol(one, given) for one in protocol_names(name)]
    cache = VectorCache(home.cache("vectors"))
    records: list[Record] = []
    for model in loaded:
        begun = time.perf_counter()
        patches = len(protocols[0].dataset)
        try:
            with progress(f"{model.name}: patches described", patches) as advance:
                for record in run(
                    model, protocols, cache=cache, batch_size=batch_size, progress=advance
                ):
                    records.append(record)
                    file = results.save(folder, record)
                    results.save_run(file, _run_facts(time.perf_counter() - begun))
        except results.TrainedOnAll as error:
            if model is loaded[-1] and not records:
                raise
            log.warning("passed over: %s", error)
    if as_json:
        from harness.cli import print_json

        print_json([record.model_dump(mode="json") for record in records])
    else:
        _show(records)
    log.info("records are in %s; `harness leaderboard` makes tables of them", folder)


def export(spec: str, name: str, given: Options, out: Path, device: str, batch_size: int) -> None:
    """Write the vectors of a protocol's patches in the official CSV form."""
    model = plugins.model(spec, device=device)
    dataset = make_protocol(protocol_names(name)[0], given).dataset
    cache = VectorCache(home.cache("vectors"))
    with progress(f"{model.name}: patches described", len(dataset)) as advance:
        export_vectors(model, dataset, out, cache=cache, batch_size=batch_size, progress=advance)
    log.info("vectors are in %s", out)


def check(model: str | None, protocol: str | None, given: Options, device: str) -> bool:
    """Print which laws a descriptor and a protocol keep; whether they keep all."""
    if not model and not protocol:
        raise ValueError("nothing to check: give --model or --protocol")
    laws: list[contracts.Law] = []
    if model:
        one = plugins.model(model, device=device)
        if not isinstance(one, Descriptor):
            raise TypeError(f"{model} is a folder of vectors: it has no code to check")
        laws += contracts.check_descriptor(one)
    for name in protocol_names(protocol) if protocol else ():
        laws += contracts.check_protocol(make_protocol(name, given))
    for law in laws:
        detail = f": {law.detail}" if law.detail else ""
        print(f"{'kept  ' if law.passed else 'BROKEN'}  {law.name}{detail}")
    return all(law.passed for law in laws)


def build(form: str, images: Path, out: Path, given: Options) -> None:
    """Make a benchmark out of images and print what became of their keypoints."""
    maker = registry.load("builders", form)
    wanted = _accepted(maker, given, f"builder {form}")
    with _bar() as bar:
        task = bar.add_task(f"{form}: sequences done", total=None)

        def advance(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        told = "progress" in inspect.signature(maker).parameters
        report = maker(images, out, **wanted, **({"progress": advance} if told else {}))
    print(report)


def model_names(spec: str) -> list[str]:
    """The model of this name, or all below it: "tfeat" stands for "tfeat.liberty" and others."""
    known = registry.names("descriptors")
    below = [one for one in known if one.startswith(f"{spec}.")]
    return below if below and spec not in known else [spec]


def protocol_names(name: str) -> list[str]:
    """The protocol of this name, or all below it: "hpatches" stands for its three tasks."""
    known = registry.names("protocols")
    below = [one for one in known if one.startswith(f"{name}/")]
    if name in known:
        return [name]
    if not below:
        families = {one.partition("/")[0] for one in known}
        raise LookupError(registry.unknown("protocols", name, {*known, *families}))
    return below


def make_protocol(name: str, given: Options) -> Protocol:
    """A protocol on its data: those of --data, else of HARNESS_DATA, else its sample."""
    maker = registry.load("protocols", name)
    found = dict(given)
    if "data" not in found and os.environ.get("HARNESS_DATA"):
        found["data"] = Path(os.environ["HARNESS_DATA"])
    if "data" not in found:
        log.warning(
            "NO DATA SET GIVEN: this runs on a small sample made from photographs. Its numbers"
            " compare with no other's; give --data DIR or set HARNESS_DATA"
        )
    protocol: Protocol = maker(**_accepted(maker, found, f"protocol {name}"))
    return protocol


def _accepted(maker: Any, given: Options, what: str) -> Options:
    known = [
        name
        for name, parameter in inspect.signature(maker).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    ]
    for name in given:
        if name not in known:
            raise LookupError(f"{what}: {registry.unknown('options', name, known)}")
    return given


def _literal(text: str) -> object:
    """A number, true or false as TOML writes them; any other text is itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on stderr, to be told how much more is done."""
    with _bar() as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.advance(task, done)


def _bar() -> Progress:
    """A bar on stderr with the time that is left."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )


def _show(records: Sequence[Record]) -> None:
    complete = leaderboard.boards(records)
    console = Console()
    for board in complete:
        title = f"### {board.family} on {board.data}, split {board.split}, percent\n\n"
        lines = leaderboard.headline_table(board)
        for table in cross_scene.tables(board):
            lines += ["", *cross_scene.table_lines(table)]
        console.print(Markdown(title + "\n".join(lines)))
    for record in records:
        if not record.data.complete:
            headline = record.protocol.headline
            score = record.scores.get(headline, float("nan"))  # where cells were refused
            print(f"{record.model.name}  {headline} {score:.4f}  PARTIAL DATA")


def _run_facts(seconds: float) -> Mapping[str, object]:
    return {
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "host": platform.node(),
        "seconds_since_start": round(seconds, 2),
        "command": " ".join(sys.argv[1:]),
    }
