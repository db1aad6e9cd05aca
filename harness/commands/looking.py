"""`harness describe`, `show` and `check`: write vectors, draw pictures, check laws."""

import logging
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.commands.command import LIST
from harness.commands.options import (
    AllowPartial,
    BatchSize,
    DataFolder,
    Device,
    ModelName,
    ModelNames,
    ProtocolName,
    Settings,
    Split,
    names,
    one_model,
)
from harness.errors import InputError, InputTypeError
from harness.escape import say

if TYPE_CHECKING:
    from harness.contracts import Law
    from harness.vector_folder import Model

log = logging.getLogger(__name__)


def describe(
    model: ModelName,
    protocol: ProtocolName,
    out: Annotated[Path, typer.Option("--out", help="Folder for the CSV files.")],
    data: DataFolder = None,
    split: Split = None,
    device: Device = "auto",
    batch_size: BatchSize = None,
    allow_partial: AllowPartial = False,
    setting: Settings = None,
) -> None:
    """Write the vectors of a protocol's patches as CSV files, in HPatches' official format."""
    from harness import cache, loading, progress
    from harness.evaluation import BATCH, export_vectors
    from harness.files import atomic
    from harness.settings import options

    given = options(settings=setting, data=data, split=split, allow_partial=allow_partial or None)
    with atomic.placing(out) as unfinished:  # the folder appears only when it is complete
        described = _one_model("vectors of one model are written at a time, not of", model, device)
        first = loading.protocol_names(protocol)[0]  # all protocols of a family have one data set
        (opened,) = loading.load_protocols(first, given, silent=False)
        with progress.describing(described.name, len(opened.dataset), protocol) as advance:
            export_vectors(
                described,
                opened.dataset,
                unfinished,
                cache=cache.kept("vectors"),
                batch_size=batch_size or BATCH,
                progress=advance,
            )
    log.info("vectors are in %s", out)


def show(
    picture: Annotated[
        str, typer.Argument(help="What to draw: mistakes, neighbours, point, map, or oxford.")
    ],
    of: Annotated[
        list[str], typer.Argument(help="What it is of: PROTOCOL, or for oxford graf 1 3.")
    ],
    model: ModelNames,
    data: DataFolder = None,
    out: Annotated[Path | None, typer.Option("--out", help="File of the picture, PNG.")] = None,
    device: Device = "auto",
    batch_size: BatchSize = None,
    setting: Settings = None,
) -> None:
    """Draw the result of a model on some data as a picture; some pictures compare models."""
    from harness import cache, errors, evaluation, loading, progress, registry
    from harness.files import atomic
    from harness.settings import accepted, options, positional
    from harness.types import Picture

    maker = registry.load("pictures", picture)
    wanted = positional(maker)
    if len(of) != len(wanted):
        raise InputError(
            f"a picture {picture} needs {' '.join(wanted).upper()}, not {' '.join(of)!r}"
        )
    atomic.must_be_writable(out.parent if out else Path(), "the picture can't be written")
    title = f"picture {picture}"
    given = loading.with_data(options(settings=setting, data=data))
    with errors.naming(title):
        made: Picture = maker(*of, **accepted(maker, given, title))
    drawn_of = loading.load_models(names("--model", model), device=device)
    if len(drawn_of) > made.models:
        most = "one model" if made.models == 1 else f"at most {made.models} models"
        raise InputError(f"a picture is of {most}, not of {', '.join(m.name for m in drawn_of)}")
    described = {}
    for one in drawn_of:
        with progress.describing(one.name, len(made.dataset), title) as advance:
            described[one.name] = evaluation.describe(
                one,
                made.dataset,
                cache=cache.kept("vectors"),
                batch_size=batch_size or evaluation.BATCH,
                progress=advance,
            )
    with errors.naming(title):
        drawn = made.draw(described)
    named = "-".join([picture, *of, *described])
    file = out or Path(re.sub(r"[^\w.+-]", "_", named) + ".png")
    with atomic.writing(file) as stream:
        stream.write(drawn)
    say(file)


def check(
    model: Annotated[
        str | None, typer.Option(metavar=f"MODEL{LIST}", help="Descriptors, as for eval.")
    ] = None,
    protocol: Annotated[
        str | None, typer.Option(help="Protocols, as for eval, on their sample or --data.")
    ] = None,
    data: DataFolder = None,
    device: Device = "auto",
) -> None:
    """Check that descriptors and protocols keep the laws that the harness relies on."""
    from harness import contracts, loading
    from harness.settings import options
    from harness.types import Descriptor

    if model is None and protocol is None:
        raise InputError("nothing to check: give --model or --protocol")
    kept = []
    for loaded in loading.load_models(names("--model", model), device=device) if model else ():
        if not isinstance(loaded, Descriptor):
            raise InputTypeError(f"{loaded.name} is a folder of vectors: it has no code to check")
        kept.append(_print_laws(loaded.name, contracts.check_descriptor(loaded)))
    given = options(data=data)
    for opened in loading.load_protocols(protocol, given, silent=False) if protocol else ():
        subject = f"{opened.name} on {opened.dataset.name}"
        kept.append(_print_laws(subject, contracts.check_protocol(opened)))
    if not all(kept):
        raise typer.Exit(1)


def _print_laws(subject: str, laws: Sequence["Law"]) -> bool:
    """Print which laws are kept, and return whether all of them are."""
    say(subject)
    for law in laws:
        detail = f": {law.detail}" if law.detail else ""
        say(f"  {'kept  ' if law.passed else 'BROKEN'}  {law.name}{detail}")
    return all(law.passed for law in laws)


def _one_model(rule: str, model: str, device: str) -> "Model":
    """The model of an option, which must name exactly one; otherwise an error states the rule."""
    from harness import loading

    return loading.load_model(one_model(rule, names("--model", model)), device=device)
