"""`harness data`: published data sets, and benchmarks made of one's own images."""

from pathlib import Path
from typing import Annotated

import typer

from harness.commands.options import Settings
from harness.errors import FileMissingError
from harness.escape import say, visible


def build(
    form: Annotated[str, typer.Argument(help="The format to build, for example hpatches.")],
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
    import inspect

    from harness import errors, progress, registry
    from harness.settings import accepted, options

    maker = registry.load("builders", form)
    what = f"builder {form}"
    with errors.naming(what), progress.bar() as bar:
        wanted = accepted(maker, options(settings=setting, model=model), what)
        task = bar.add_task(visible(f"{form}: done"), total=None)

        def advance(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        told = "progress" in inspect.signature(maker).parameters
        report = maker(images, out, **wanted, **({"progress": advance} if told else {}))
    for line in str(report).splitlines():
        say(line)


def listing(
    name: Annotated[str | None, typer.Argument(help="One set, or a family, for all facts.")] = None,
) -> None:
    """List the published data sets, and which of them are here."""
    from harness.data import datasets

    for line in datasets.about(name) if name else datasets.listing():
        say(line)


def fetch(
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


def verify(name: Annotated[str, typer.Argument(help="A set that was fetched.")]) -> None:
    """Hash the files of a data set again; name those that are not as fetched, or as published."""
    from harness.data import datasets

    found = datasets.verify(name)
    for kind in ("missing", "changed", "extra", "unlike"):
        for file in getattr(found, kind):
            say(f"{kind:8} {file}")
    say(f"{found.files} files of {name}: {'they differ' if found else 'all as they were fetched'}")
    if found:
        raise typer.Exit(1)


def path(name: Annotated[str, typer.Argument(help="A set, or a family of sets.")]) -> None:
    """Print the folder of a data set, for `--data`."""
    from harness.data import datasets

    place = datasets.path(name)
    if place is None:
        raise FileMissingError(
            f"{name} is not here, or not whole: harness data fetch {name} gets it, or says what it"
            " lacks"
        )
    say(place)
