"""`harness report`: one HTML page of a folder of results, and figures for papers."""

from pathlib import Path
from typing import Annotated

import typer

from harness.commands.command import LIST
from harness.commands.options import Device, ResultsFolder, Split, names
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
        typer.Option(
            metavar=f"MODEL{LIST}",
            help="Models of --figures (default: the best), or of --protocol (default: those with a"
            " record of it).",
        ),
    ] = None,
    protocol: Annotated[
        str | None,
        typer.Option(help="The pages of models show its patches on which they fail."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="The data set of --protocol; without it, a sample is made."),
    ] = None,
    split: Split = None,
    device: Device = "auto",
) -> None:
    """Write a page of the records to look at: leaderboards, figures, models."""
    from harness import catalogue
    from harness.catalogue import ModelRow
    from harness.files import atomic
    from harness.report import document, paper
    from harness.report.contents import contents, read

    if figures and (out or data or protocol):
        raise InputError("--figures writes no page: leave out --out, --data and --protocol")
    if not protocol and (data or split):
        raise InputError("--data and --split are of --protocol, which is missing")
    if model and not (figures or protocol):
        raise InputError("--model chooses models of --figures, or of --protocol: give one of them")
    found = read(results)
    chosen = names("--model", model) if model else []
    known = {record.model.name for record in found.records}
    for name in chosen:
        if name not in known:
            raise UnknownNameError(f"in {results} there is {_unknown(name, known)}")
    if figures is None:
        file = out or Path("report.html")
        atomic.must_be_writable(file.parent, "the report can't be written")
        told = contents(found)
        if protocol:
            from harness.report.failures import pictures

            told["pictures"] = pictures(told, chosen, protocol, data, split=split, device=device)
        atomic.write_text(file, document.to_html(told))
        say(file)
        return
    for board in found.boards:
        for file in paper.write(board, figures, chosen, found.speeds):
            say(file)
    curves = {name: row.curve for name, row in catalogue.rows(ModelRow).items()}
    for file in paper.write_trainings(curves, figures, chosen):
        say(file)


def _unknown(name: str, known: set[str]) -> str:
    from harness.registry import unknown

    return unknown("models", name, known)
