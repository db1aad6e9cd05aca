"""harness: evaluate descriptors, make leaderboards, look at what is installed."""

import errno
import logging
import os
import sys
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from harness import registry, stopping
from harness.errors import FileMissingError, HarnessError, InputError, OutOfMemory, UnknownNameError
from harness.escape import say, visible

# What is heavy (NumPy, torch, OpenCV, pydantic) is imported by the command that needs it.

# Plain help: rich would double the time that `harness --help` takes.
app = typer.Typer(
    help=__doc__,
    epilog="With HARNESS_DEBUG=1 an error is shown with its traceback.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
data_app = typer.Typer(
    help="Make, fetch and check data sets.", no_args_is_help=True, rich_markup_mode=None
)
weights_app = typer.Typer(help="Published weights.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(data_app, name="data")
app.add_typer(weights_app, name="weights")

MODEL = "name from `harness models`, FILE.py:NAME, FILE.onnx, or a folder of vectors"
ModelNames = Annotated[
    str, typer.Option("--model", help=f"A {MODEL}; several with commas, without blanks.")
]
ModelName = Annotated[str, typer.Option("--model", help=f"One model: a {MODEL}.")]
ProtocolName = Annotated[
    str,
    typer.Option("--protocol", help="A name from `harness protocols`, or a family of them."),
]
DataFolder = Annotated[
    Path | None,
    typer.Option(
        "--data", help="Folder of the data set; else HARNESS_DATA, else a small sample is made."
    ),
]
Split = Annotated[str | None, typer.Option("--split", help="A split of the data set.")]
ResultsFolder = Annotated[Path, typer.Option("--results", help="Folder of records.")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu or cuda.")]
BatchSize = Annotated[
    int | None, typer.Option("--batch-size", min=1, help="Patches described at a time.")
]
AllowPartial = Annotated[
    bool, typer.Option("--allow-partial", help="Take what is there; enters no leaderboard.")
]
Settings = Annotated[
    list[str] | None, typer.Option("--set", help="An option of the protocol, as KEY=VALUE.")
]


# A full disk or a file without permission is the user's to correct, whoever meets it.
OF_THE_USER = (HarnessError, OSError, MemoryError)
INTERRUPTED = 130  # what typer exits with on KeyboardInterrupt


class _OneLine(logging.Formatter):
    """Log messages with names in them: nothing that a name holds moves the cursor."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        return visible(super().formatMessage(record))


def main() -> None:
    """Run the command line; an error of the user is one line on stderr, and the exit status is 2.

    Any other error is a fault of ours, and shows its traceback.
    """
    shown = logging.StreamHandler(sys.stderr)
    shown.setFormatter(_OneLine("harness: %(message)s"))
    logging.basicConfig(handlers=[shown], level=logging.INFO)
    with stopping.as_interrupts():
        try:
            _must_hold_lists_together(sys.argv[1:])
            app()
        except Exception as error:
            if stopping.asked():  # a library makes its own error of an interrupt
                _end_stopped()
            if os.environ.get("HARNESS_DEBUG") or not isinstance(error, OF_THE_USER):
                raise
            print(f"harness: {visible(_message(error))}", file=sys.stderr)
            sys.exit(2)
        except SystemExit as stop:
            if stop.code == INTERRUPTED:
                _end_stopped()
            raise


def _end_stopped() -> NoReturn:
    told = "stopped; run it again: it goes on from what is kept, a training by --resume"
    print(f"harness: {told}", file=sys.stderr)
    # Python remembers an interrupt of a text in exec(), by which dataclasses are made, and under
    # `python -m` it would then end by SIGINT, whatever the status is. The next text resets that.
    exec("")
    sys.exit(stopping.status())


@app.command("eval")
def evaluate(
    model: ModelNames,
    protocol: ProtocolName,
    data: DataFolder = None,
    split: Split = None,
    results: ResultsFolder = Path("results"),
    device: Device = "auto",
    batch_size: BatchSize = None,
    allow_partial: AllowPartial = False,
    ties: Annotated[
        str | None, typer.Option(help='How ties are scored: "mean", "official".')
    ] = None,
    setting: Settings = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the records on stdout.")] = False,
) -> None:
    """Score models on a protocol and keep one record for each."""
    from harness.commands import session

    options = session.options(
        data=data, split=split, allow_partial=allow_partial or None, ties=ties, settings=setting
    )
    session.evaluate(
        _names("--model", model),
        protocol,
        options,
        results,
        device,
        batch_size,
        as_json=as_json,
    )


@app.command()
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
    """Write the vectors of a protocol's patches as CSV files, in HPatches' official form."""
    from harness.commands import session

    options = session.options(
        data=data, split=split, allow_partial=allow_partial or None, settings=setting
    )
    session.export(_names("--model", model), protocol, options, out, device, batch_size)


@app.command()
def export(
    model: Annotated[
        str,
        typer.Option(
            "--model", help="One model that has a network: a name, or FILE.py:NAME, as for eval."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="The ONNX file.")],
    precision: Annotated[str, typer.Option(help="fp32, fp16 or int8.")] = "fp32",
    protocol: Annotated[
        str | None,
        typer.Option(help="What the file and the model are scored on; hpatches below fp32."),
    ] = None,
    data: DataFolder = None,
    split: Split = None,
    calibration: Annotated[
        Path | None,
        typer.Option(help="Data of the protocol that int8 takes its scales from; its sample."),
    ] = None,
) -> None:
    """Write a model as one ONNX file, checked against torch: uint8 patches in, vectors out."""
    from harness.commands import export as onnx_session
    from harness.commands import session

    options = session.options(data=data, split=split)
    onnx_session.export(model, out, precision, protocol, options, calibration)


@app.command()
def show(
    picture: Annotated[str, typer.Argument(help="What to draw: oxford, ...")],
    of: Annotated[list[str], typer.Argument(help="Of what; for oxford, as in: graf 1 3.")],
    model: ModelName,
    data: DataFolder = None,
    out: Annotated[Path | None, typer.Option("--out", help="File of the picture, PNG.")] = None,
    device: Device = "auto",
    batch_size: BatchSize = None,
    setting: Settings = None,
) -> None:
    """Draw what a model makes of some data, for a person to judge."""
    from harness.commands import session

    options = session.options(data=data, settings=setting)
    session.show(picture, of, _names("--model", model), options, out, device, batch_size)


@app.command()
def models() -> None:
    """List the descriptors that are installed."""
    _listed("descriptors")


@app.command()
def protocols() -> None:
    """List the protocols that are installed."""
    _listed("protocols")


@app.command()
def leaderboard(results: ResultsFolder = Path("results")) -> None:
    """Make the CSV and Markdown tables again from the records."""
    from harness.commands import session

    session.make_leaderboards(results)


@app.command()
def check(
    model: Annotated[str | None, typer.Option(help="Descriptors, as for eval.")] = None,
    protocol: Annotated[
        str | None, typer.Option(help="Protocols, as for eval, on their sample or --data.")
    ] = None,
    data: DataFolder = None,
    device: Device = "auto",
) -> None:
    """Test whether descriptors and protocols keep the laws that the harness relies on."""
    from harness.commands import session

    models = _names("--model", model) if model is not None else []
    if not session.check(models, protocol, session.options(data=data), device):
        raise typer.Exit(1)


@app.command()
def train(
    recipe: Annotated[
        str, typer.Option("--recipe", help="A name from `harness recipes`, or a TOML file.")
    ],
    data: Annotated[
        str | None,
        typer.Option(
            "--data",
            help="A folder, or a name from `harness data list`; several with commas, without"
            " blanks.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder of the training; trained/RECIPE.")
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", help="A setting of the recipe, as KEY=VALUE or TABLE.KEY=VALUE."),
    ] = None,
    device: Device = "auto",
    precision: Annotated[
        str, typer.Option(help="Of convolutions: auto, float32 or bfloat16.")
    ] = "auto",
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the training in the folder.")
    ] = False,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Write TensorBoard's files as well.")
    ] = False,
) -> None:
    """Train a network by a recipe; under torchrun, on several devices together."""
    trainer = registry.load("trainers", "recipes")
    options = {"device": device, "precision": precision}
    flags = {"resume": resume, "tensorboard": tensorboard}
    parts = _names("--data", data) if data is not None else []
    say(trainer(recipe, out, data=parts, settings=setting or (), **options, **flags))


@app.command()
def recipes() -> None:
    """List the recipes that can be trained."""
    for name, about in registry.load("trainers", "listing")().items():
        say(f"{name:24} {about}")


@app.command()
def doctor() -> None:
    """Say what is installed, what really works, and where things are kept."""
    from harness.commands import doctor

    for line in doctor.report():
        say(line)


@data_app.command("build")
def build(
    form: Annotated[str, typer.Argument(help="The format to build: hpatches, ...")],
    images: Annotated[
        Path, typer.Option("--images", help="Folder of images, or of image sequences.")
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder of the new data set.")],
    model: Annotated[
        Path | None,
        typer.Option("--model", help="Folder of a sparse model of the images, made by COLMAP."),
    ] = None,
    setting: Settings = None,
) -> None:
    """Make a benchmark in an official format out of your own images."""
    from harness.commands import session

    session.build(form, images, out, session.options(model=model, settings=setting))


@data_app.command("list")
def data_list(
    name: Annotated[str | None, typer.Argument(help="One set, or a family, for all facts.")] = None,
) -> None:
    """List the published data sets, and which of them are here."""
    from harness.data import datasets

    for line in datasets.about(name) if name else datasets.listing():
        say(line)


@data_app.command("fetch")
def data_fetch(
    name: Annotated[str, typer.Argument(help="As `data list` has it, or a family of sets.")],
    from_file: Annotated[
        list[Path] | None,
        typer.Option("--from-file", help="A file downloaded by hand, or a folder of such files."),
    ] = None,
) -> None:
    """Download a published data set, checked, and print its folder."""
    from harness.data import datasets, download
    from harness.data import fetch as dataset_fetch

    for one in [name] if from_file else [row.name for row in datasets.named(name)]:
        with download.bar(one) as progress:
            place = dataset_fetch.fetch(one, from_file or (), progress=progress)
        say(place)


@data_app.command("verify")
def data_verify(name: Annotated[str, typer.Argument(help="A set that was fetched.")]) -> None:
    """Hash the files of a data set again; name those that are not as fetched, or as published."""
    from harness.data import datasets

    found = datasets.verify(name)
    for kind in ("missing", "changed", "extra", "unlike"):
        for file in getattr(found, kind):
            say(f"{kind:8} {file}")
    say(f"{found.files} files of {name}: {'they differ' if found else 'all as they were fetched'}")
    if found:
        raise typer.Exit(1)


@data_app.command("path")
def data_path(name: Annotated[str, typer.Argument(help="A set, or a family of sets.")]) -> None:
    """Print the folder of a data set, for `--data`."""
    from harness.data import datasets

    place = datasets.path(name)
    if place is None:
        raise FileMissingError(
            f"{name} is not here, or not whole: harness data fetch {name} gets it, or says what it"
            " lacks"
        )
    say(place)


@weights_app.command("add")
def weights_add(
    files: Annotated[list[Path], typer.Argument(help="Files of published weights.")],
) -> None:
    """Check files of published weights and keep them, as safetensors, where models find them."""
    from harness.data import published_weights, weights

    known = published_weights.known().values()
    for file in files:
        say(f"{weights.add(file, known).name} is here now")


@weights_app.command("fetch")
def weights_fetch(
    names: Annotated[list[str], typer.Argument(help="As `weights list` has them.")],
) -> None:
    """Download published weights from their mirrors, checked by sha256."""
    from harness.data import download, published_weights

    known = published_weights.known()
    for name in names:
        if name not in known:
            raise UnknownNameError(registry.unknown("weights", name, known))
        with download.bar(name) as progress:
            published_weights.fetch(known[name], progress=progress)
        say(f"{name} is here now")


@weights_app.command("list")
def weights_list() -> None:
    """List the published weights that models know, and which of them are here."""
    from harness.data import published_weights, weights

    for name, row in sorted(published_weights.known().items()):
        here = "here" if weights.is_here(row) else "not here"
        say(f"{name:24} {here:9} {row.file}  {row.licence}")


def _names(option: str, text: str) -> list[str]:
    """The names of a list with commas.

    Raises:
        InputError: if one is empty.
    """
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise InputError(f"{option} is {text!r}: a name is missing")
    return names


def _must_hold_lists_together(arguments: Sequence[str]) -> None:
    """Refuse "a, b", which the shell hands on as two arguments.

    Raises:
        InputError: if there is such a list; says how to write it.
    """
    for first, second in pairwise(arguments):
        is_option = first.startswith("-") and "=" not in first
        is_list = first.endswith(",") or (second.startswith(",") and not is_option)
        if is_list and not second.startswith("-"):
            raise InputError(
                f"{first!r} and {second!r} are two arguments: write a list without blanks, as in"
                f" {first.removesuffix(',')},{second.removeprefix(',') or 'NAME'}"
            )


def _listed(kind: str) -> None:
    for name in registry.names(kind):
        try:
            source = registry.source(kind, name)
        except LookupError as error:  # two packages claim it
            source = f"! {error}"
        say(f"{name:24} {source}")


def _message(error: BaseException) -> str:
    if isinstance(error, MemoryError) and not isinstance(error, OutOfMemory):
        return str(OutOfMemory("this command", error))
    if isinstance(error, KeyError) and error.args:
        return str(error.args[0])  # str() would quote it
    if isinstance(error, OSError) and error.strerror:
        return _told(error)
    return str(error) or type(error).__name__


def _told(error: OSError) -> str:
    """An error of the system, with its file, and with the variable that moves it elsewhere."""
    from harness.files import home

    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    if error.filename is None:
        where = f"; files are written to {home.cache()} and {tempfile.gettempdir()}, too"
        return f"{error.strerror}{where if full else ''}"
    in_cache = Path(error.filename).is_relative_to(home.cache())
    return f"{error.filename}: {error.strerror}{f'; {home.REMEDY}' if in_cache else ''}"


if __name__ == "__main__":
    main()
