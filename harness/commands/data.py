"""`harness data`: published data sets, and benchmarks made from your own images."""

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
    """Make a benchmark in an official format from your own images."""
    import inspect

    from harness import errors, progress, registry
    from harness.settings import accepted, options

    maker = registry.load("builders", form)
    builder = f"builder {form}"
    with errors.naming(builder), progress.bar() as bar:
        given = accepted(maker, options(settings=setting, model=model), builder)
        task = bar.add_task(visible(f"{form}: done"), total=None)

        def advance(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        reports = "progress" in inspect.signature(maker).parameters
        report = maker(images, out, **given, **({"progress": advance} if reports else {}))
    for line in str(report).splitlines():
        say(line)


def listing(
    name: Annotated[
        str | None, typer.Argument(help="A data set, or a family of them: show all its facts.")
    ] = None,
) -> None:
    """List the published data sets, and which of them are here."""
    from harness.data import datasets

    for line in datasets.about(name) if name else datasets.listing():
        say(line)


def fetch(
    name: Annotated[str, typer.Argument(help="A name from `data list`, or a family of data sets.")],
    from_file: Annotated[
        list[Path] | None,
        typer.Option("--from-file", help="A file downloaded by hand, or a folder of such files."),
    ] = None,
) -> None:
    """Download a published data set, check it, and print its folder."""
    from harness.data import datasets, download
    from harness.data import fetch as dataset_fetch

    for set_name in [name] if from_file else [row.name for row in datasets.named(name)]:
        with download.bar(set_name) as progress:
            place = dataset_fetch.fetch(set_name, from_file or (), progress=progress)
        say(place)


def verify(name: Annotated[str, typer.Argument(help="A data set that was fetched.")]) -> None:
    """Hash the files of a data set again; list files that have changed or were not published."""
    from harness.data import datasets

    differences = datasets.verify(name)
    for kind in ("missing", "changed", "extra", "unlike"):
        for file in getattr(differences, kind):
            say(f"{kind:8} {file}")
    outcome = "they differ" if differences else "all as they were fetched"
    say(f"{differences.files} files of {name}: {outcome}")
    if differences:
        raise typer.Exit(1)


def path(
    name: Annotated[str, typer.Argument(help="A data set, or a family of data sets.")],
) -> None:
    """Print the folder of a data set, for `--data`."""
    from harness.data import datasets

    place = datasets.path(name)
    if place is None:
        raise FileMissingError(
            f"{name} is not here, or not complete: harness data fetch {name} gets it, or says what"
            " is missing"
        )
    say(place)
