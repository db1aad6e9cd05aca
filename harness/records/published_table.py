"""Tables of published numbers, in Markdown: below the measured ones, and never among them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from harness.escape import markdown
from harness.records import markdown_table
from harness.records.published import PER_POINT, PublishedNumber, remarks
from harness.types import Quantity

TITLE = "Published, on the same data"
LEGEND = (
    "Numbers that papers print, as printed; they are not measured here and not ranked. In brackets:"
    " the score of the model named under “here”, which may have learned from other data, less the"
    " published number."
)
MISSING = "—"

Measured = Mapping[tuple[str, str, str, str], float]
"""Scores of a board, by model, protocol, options of the protocol, and name of the score."""


def section(
    numbers: Sequence[PublishedNumber],
    groups: Iterable[Sequence[str]],
    measured: Measured,
    quantities: Mapping[str, Quantity],
) -> list[str]:
    """A section with a table for each group of scores that has published numbers; [] without any.

    Args:
        numbers: of the board's data.
        groups: names of scores that share a table.
        measured: scores of the board.
        quantities: the board's scores that are no fractions, by the last part of their names.
    """
    lines = []
    for group in groups:
        names = [name for name in group if any(one.score == name for one in numbers)]
        if names:
            inside = [one for one in numbers if one.score in names]
            lines += ["", *_table(inside, names, measured, quantities)]
    return ["", f"## {TITLE}", "", LEGEND, *lines] if lines else []


def cell(
    number: PublishedNumber | None, measured: Measured, quantities: Mapping[str, Quantity]
) -> str:
    """The number, and in brackets how far the measured one lies above or below it."""
    if number is None:
        return MISSING
    model = here(number, measured)
    if model is None:
        return number.shown
    score = measured[_place(number, model)]
    if number.is_fraction:
        return f"{number.shown} ({PER_POINT * (score - number.number):+.2f})"
    decimals = quantities[number.score.rpartition("/")[2]].decimals
    return f"{number.shown} ({score - number.number:+,.{decimals}f})"


def here(number: PublishedNumber, measured: Measured) -> str | None:
    """The first of the number's models whose score was measured; None if none was."""
    return next((one for one in number.models if _place(number, one) in measured), None)


def _place(number: PublishedNumber, model: str) -> tuple[str, str, str, str]:
    return model, number.protocol, number.options, number.score


def facts(numbers: Sequence[PublishedNumber], measured: Measured) -> list[str]:
    """Cells behind the numbers of a row: the models measured here, the source, and remarks."""
    models = dict.fromkeys(filter(None, (here(one, measured) for one in numbers)))
    return [
        markdown(", ".join(models)),
        markdown(numbers[0].source),
        markdown("; ".join(remarks(numbers))),
    ]


FACTS = ("here", "source", "remark")


def _table(
    numbers: Sequence[PublishedNumber],
    names: Sequence[str],
    measured: Measured,
    quantities: Mapping[str, Quantity],
) -> list[str]:
    rows: dict[tuple[str, ...], dict[str, PublishedNumber]] = defaultdict(dict)
    for one in numbers:
        row = (one.source, one.method, one.options, one.dim, one.trained_on)
        rows[row][one.score] = one
    has_options = any(one.options for one in numbers)
    heads = ["method", *(["options"] if has_options else []), "dim", "trained on"]
    cells = []
    for (_, method, options, dim, trained_on), found in rows.items():
        known = [method, *([options] if has_options else []), dim or MISSING, trained_on or MISSING]
        values = [cell(found.get(name), measured, quantities) for name in names]
        cells.append([*map(markdown, known), *values, *facts([*found.values()], measured)])
    columns = [*heads, *map(markdown, names), *FACTS]
    align = "l" * len(heads) + "r" * len(names) + "l"
    return [*markdown_table.lines(columns, cells, align)]
