"""`harness models`, `protocols` and `doctor`: list what is installed and what works."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.commands.options import AsJson, ResultsFolder
from harness.errors import InputError
from harness.escape import say, visible

if TYPE_CHECKING:
    from harness.catalogue import ListedModel, ListedProtocol

NONE, UNKNOWN = "-", "?"
FEW = 2  # names of training data that a cell holds


def models(
    name: Annotated[
        str | None, typer.Argument(help="One model, or a family, for its card with all facts.")
    ] = None,
    licence: Annotated[
        str | None,
        typer.Option(
            "--licence",
            help="Only models with this licence, for example MIT. permissive: code, weights and"
            " images of the training are under 0BSD, Apache-2.0, BSD-2-Clause, BSD-3-Clause,"
            " BSL-1.0, CC-BY-2.0, CC-BY-3.0, CC-BY-4.0, CC0-1.0, ISC, MIT, MIT-0, Unlicense or"
            " Zlib, or in the public domain. share-alike: also under"
            " CC-BY-SA-2.0, CC-BY-SA-3.0 or CC-BY-SA-4.0.",
        ),
    ] = None,
    not_trained_on: Annotated[
        str | None,
        typer.Option(
            "--not-trained-on",
            help="Only models that are known not to be trained on these data, for example"
            " phototour/liberty.",
        ),
    ] = None,
    here: Annotated[
        bool, typer.Option("--here", help="Only models whose weights are on this machine.")
    ] = False,
    results: ResultsFolder = Path("results"),
    as_json: AsJson = False,
) -> None:
    """List the installed models, or print the card of one.

    Speeds are of runs on this machine.
    """
    if name is not None:
        if licence is not None or not_trained_on is not None or here:
            raise InputError("a card is of one model: leave out the options that choose models")
        _print_cards(name, as_json)
        return
    from harness import catalogue

    found = catalogue.models(results)
    if licence is not None:
        found = catalogue.of_licence(found, licence)
    if not_trained_on is not None:
        found = catalogue.not_trained_on(found, not_trained_on)
    if here:
        found = [one for one in found if one.here]
    if as_json:
        print(json.dumps([one.as_json() for one in found], indent=1))
        return
    measured = any(one.patches_per_second for one in found)
    heads = ["model", "dim", "bytes", "distance", "trained on", "weights", "licence"]
    _print_table(
        [*heads, *["patches/s"] * measured],
        [_model_cells(one)[: len(heads) + measured] for one in found],
    )


def _print_cards(name: str, as_json: bool) -> None:
    from harness import model_card

    found = model_card.cards(name)
    if as_json:
        print(json.dumps(found[0] if len(found) == 1 else found, indent=1))
        return
    for facts in found:
        for line in model_card.lines(facts):
            say(line)


def protocols(as_json: AsJson = False) -> None:
    """List the installed protocols, and which of their data are here."""
    from harness import catalogue

    found = catalogue.protocols()
    if as_json:
        print(json.dumps([one.as_json() for one in found], indent=1))
        return
    _print_table(["protocol", "headline", "data"], list(map(_protocol_cells, found)))


def doctor() -> None:
    """Report what is installed, what works, and where files are kept."""
    from harness.commands.doctor import report

    for line in report():
        say(line)


def _model_cells(one: "ListedModel") -> list[str]:
    speed = f"{one.patches_per_second:,.0f}" if one.patches_per_second else NONE
    if one.row is None:
        return [one.name, *[UNKNOWN] * 4, one.remedy, UNKNOWN, speed]
    return [
        one.name,
        str(one.row.dim),
        str(one.row.bytes),
        one.row.distance,
        _trained_on(one.row.trained_on),
        "here" if one.here and not one.remedy else one.remedy,
        one.row.licence,
        speed,
    ]


def _trained_on(names: frozenset[str] | None) -> str:
    """The names of training data; if there are many, each family and its number of sets."""
    if names is None:
        return UNKNOWN
    if len(names) <= FEW:
        return ", ".join(sorted(names)) or NONE
    families = [name.partition("/")[0] for name in sorted(names)]
    return ", ".join(f"{one} ({families.count(one)} sets)" for one in dict.fromkeys(families))


def _protocol_cells(one: "ListedProtocol") -> list[str]:
    here = [name for name, state in one.data.items() if state == "here"]
    missing = [f"{name} {state}" for name, state in one.data.items() if state == "incomplete"]
    told = [f"{name} is here" for name in here] + missing
    if not told:
        told = ["a sample is made"]
        if one.data:
            told.append(f"harness data fetch {_common(list(one.data))}")
    return [one.name, one.headline or UNKNOWN, "; ".join(told)]


def _common(names: Sequence[str]) -> str:
    """The name, if there is one; otherwise the families of the names, joined by "or"."""
    families = {name.partition("/")[0] for name in names}
    return names[0] if len(names) == 1 else " or ".join(sorted(families))


def _print_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table on a terminal; elsewhere print columns, separated by at least two spaces."""
    shown = [list(map(visible, row)) for row in rows]
    from rich.console import Console

    console = Console(highlight=False)
    if console.is_terminal:
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(*heads, box=box.SIMPLE_HEAD)
        for row in shown:
            table.add_row(*map(Text, row))
        console.print(table)
        return
    widths = [max(map(len, column)) for column in zip(heads, *shown, strict=True)]
    for row in [list(heads), *shown]:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())
