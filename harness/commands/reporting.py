"""`harness report`: one HTML page of a folder of results, and figures for papers."""

from pathlib import Path
from typing import Annotated

import typer

from harness.commands.command import LIST
from harness.commands.options import ResultsFolder, names
from harness.errors import InputError, UnknownNameError
from harness.escape import say


def report(
    results: ResultsFolder = Path("results"),
    out: Annotated[
        Path | None, typer.Option("--out", help="The page, HTML; default: report.html.")
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option("--figures", help="Write figures for papers here, and no page."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(metavar=f"MODEL{LIST}", help="Models of the figures; default: the best."),
    ] = None,
) -> None:
    """Write a page of the records to look at: leaderboards, figures, models."""
    from harness.files import atomic
    from harness.report import document, paper
    from harness.report.contents import contents, read

    if figures is None:
        if model:
            raise InputError("--model chooses the models of --figures: give that, too")
        file = out or Path("report.html")
        atomic.must_be_writable(file.parent, "the report can't be written")
        atomic.write_text(file, document.to_html(contents(read(results))))
        say(file)
        return
    if out:
        raise InputError("--figures writes no page: leave out --out")
    found = read(results)
    chosen = names("--model", model) if model else []
    known = {record.model.name for record in found.records}
    for name in chosen:
        if name not in known:
            raise UnknownNameError(f"in {results} there is {_unknown(name, known)}")
    for board in found.boards:
        for file in paper.write(board, figures, chosen, found.speeds):
            say(file)


def _unknown(name: str, known: set[str]) -> str:
    from harness.registry import unknown

    return unknown("models", name, known)
