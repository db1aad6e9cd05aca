"""The table of an item as Markdown and CSV; published numbers have rows of their own."""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from harness.differences import rank_sum
from harness.escape import csv_cell, markdown
from harness.records import markdown_table, published
from harness.records.published import PublishedNumber
from harness.reproduce import items, published_cells
from harness.reproduce.budgets import Budget
from harness.reproduce.items import Cell, Found, Item
from harness.reproduce.outcomes import Measured, Outcome

MISSING = "—"
HERE = "here"
HEAD = ("row", "column", "source", "value", "deviation", "low", "high", "seeds", "why missing")
LEGEND = (
    "Rows “here” are measured by this project, with the budget and the data above, in percent where"
    " they are fractions. Other rows are printed in the source that they name, on the official"
    " data; they are quoted, not measured."
)


Numbers = tuple[PublishedNumber | None, ...]
"""One number for each column of a table."""


@dataclass(frozen=True)
class Row:
    """A row of the table: the measured cells, and the published ones by source."""

    label: str
    cells: tuple[Measured | None, ...]  # one for each column; () if the row is only quoted
    published: dict[str, Numbers]  # with the mean, if there is one
    deviations: dict[str, Numbers] = field(default_factory=dict)  # published, over seeds


@dataclass(frozen=True)
class Table:
    """The table of an item."""

    axes: str  # names of the axes of rows
    columns: tuple[str, ...]
    mean: str  # title of the column of means, or ""
    rows: tuple[Row, ...]
    p_values: dict[str, Numbers] = field(default_factory=dict)  # published, of the compared rows


def table(
    found: Found, outcome: Outcome, budget: Budget, numbers: Sequence[PublishedNumber]
) -> Table:
    """Rows and columns of an item, from an outcome and the published numbers."""
    item = found.item
    own = published_cells.of_item(item, numbers)
    measured = {_key(one.at): one for one in outcome.cells}
    rows: dict[str, dict[str, tuple[dict[str, str], Cell]]] = {}
    for at, cell in items.cells(item, outcome.budget, budget.keep):
        label = ", ".join(at[axis] for axis in item.rows)
        rows.setdefault(label, {})[", ".join(at[axis] for axis in item.columns)] = (at, cell)
    columns = tuple(dict.fromkeys(column for cells in rows.values() for column in cells))
    made = []
    for label, cells in rows.items():
        of_cells = {
            column: published_cells.of_cell(cell, own) for column, (_, cell) in cells.items()
        }
        means = published_cells.of_mean(item, next(iter(cells.values()))[1], own)
        of_columns = [*(of_cells[column] for column in columns), *([means] if item.mean else [])]
        row = tuple(measured.get(_key(cells[column][0])) for column in columns)
        of_seeds = [published_cells.deviations(cells[column][1], own) for column in columns]
        made.append(Row(label, row, _by_source(of_columns), _by_source(of_seeds)))
    of_rows = [[cell for _, cell in cells.values()] for cells in rows.values()]
    made += _quoted(item, of_rows, own)
    compared = {}
    if item.compare and item.compare[0] in rows:
        tested = [cell for _, cell in rows[item.compare[0]].values()]
        compared = _by_source(
            [published_cells.p_values(cell, *item.compare, own) for cell in tested]
        )
    axes = ", ".join(item.rows)
    return Table(axes, columns, item.mean.title if item.mean else "", tuple(made), compared)


def _by_source(of_columns: Sequence[dict[str, PublishedNumber]]) -> dict[str, Numbers]:
    """The number of each column, by source."""
    sources = dict.fromkeys(source for one in of_columns for source in one)
    return {source: tuple(one.get(source) for one in of_columns) for source in sources}


def _quoted(
    item: Item, rows: Sequence[Sequence[Cell]], own: Sequence[PublishedNumber]
) -> Iterator[Row]:
    """Yields rows of the methods that only the sources have."""
    if len(item.rows) != 1:
        return
    for method, of_method in published_cells.unmeasured(rows, own).items():
        found = [published_cells.of_cell(cell, own) for cell in of_method]
        means = published_cells.of_mean(item, of_method[0], own)
        quoted = {
            source: (
                *(one.get(source) for one in found),
                *([means.get(source)] if item.mean else []),
            )
            for source in dict.fromkeys(source for one in found for source in one)
        }
        if quoted:
            yield Row(method, (), quoted)


def mean_of(row: Row) -> float | None:
    """The mean over the columns of a row; None if a cell is missing."""
    values = [one.value if one else None for one in row.cells]
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if values and len(known) == len(values) else None


def to_markdown(
    found: Found, outcome: Outcome, budget: Budget, numbers: Sequence[PublishedNumber]
) -> str:
    """The page of an item."""
    item, shown = found.item, table(found, outcome, budget, numbers)
    lines = [f"# {markdown('; '.join(item.sources))}", "", markdown(f"{item.title}."), ""]
    lines += [f"- **Budget {markdown(outcome.budget)}**: {markdown(budget.about)}."]
    if not budget.tells:
        lines[-1] += " **These numbers say nothing about the methods.**"
    for title, data in (("Trained on", outcome.trained_on), ("Tested on", outcome.tested_on)):
        lines += [f"- {title} {markdown(by)} for {markdown(name)}." for name, by in data.items()]
    lines += ["", markdown(" ".join(item.about.split()))] if item.about else []
    lines += ["", *_lines(shown)]
    lines += [
        "",
        LEGEND if any(row.published for row in shown.rows) else LEGEND.partition(".")[0] + ".",
    ]
    if any(one and one.deviation is not None for row in shown.rows for one in row.cells):
        lines += ["± is the standard deviation over training seeds (n - 1)."]
    if item.compare and len(shown.rows) > 1:
        lines += ["", *_compared(shown, *item.compare)]
    lines += [*_remarks(shown)]
    reasons = [*_reasons(shown)]
    lines += ["", "## Missing", "", *reasons] if reasons else []
    if item.figure:
        stem = found.name.rpartition("/")[2]
        lines += ["", f"![{markdown(item.title)}]({stem}.svg)"]
    return "\n".join([*lines, ""])


def to_csv(
    found: Found, outcome: Outcome, budget: Budget, numbers: Sequence[PublishedNumber]
) -> str:
    """One line for each number, at full precision; fractions are not in percent."""
    shown = table(found, outcome, budget, numbers)
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow(HEAD)
    for row in shown.rows:
        titles = (*shown.columns, *([shown.mean] if shown.mean else []))
        for column, one in zip(shown.columns, row.cells, strict=bool(row.cells)):
            lines.writerow([csv_cell(row.label), csv_cell(column), HERE, *_csv_cells(one)])
        if shown.mean and row.cells:
            mean = mean_of(row)
            rest = ["" if mean is None else repr(mean), "", "", "", "", ""]
            lines.writerow([csv_cell(row.label), csv_cell(shown.mean), HERE, *rest])
        for source, numbers_of in row.published.items():
            of_seeds = _deviations(shown, row, source)
            for column, number in zip(titles, numbers_of, strict=True):
                if number is not None:
                    cells = [csv_cell(row.label), csv_cell(column), csv_cell(source)]
                    deviation = of_seeds.get(column)
                    told = repr(deviation.number) if deviation else ""
                    lines.writerow([*cells, repr(number.number), told, "", "", "", ""])
    return out.getvalue()


def _key(at: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(at.items()))


def _csv_cells(one: Measured | None) -> list[str]:
    if one is None or one.value is None:
        return ["", "", "", "", "", one.missing if one else "not measured"]
    low, high = (one.final[0].interval if len(one.final) == 1 else None) or ("", "")
    deviation = "" if one.deviation is None else repr(one.deviation)
    ends = ["" if end == "" else repr(end) for end in (low, high)]
    return [repr(one.value), deviation, *ends, str(len(one.final)), ""]


def _lines(shown: Table) -> Iterator[str]:
    columns = [*shown.columns, *([shown.mean] if shown.mean else [])]
    heads = [markdown(shown.axes), "source", *(markdown(one) or "value" for one in columns)]
    rows = []
    for row in shown.rows:
        cells = [_cell(one) for one in row.cells]
        if shown.mean:
            mean = mean_of(row)
            cells += [MISSING if mean is None else f"{100 * mean:.2f}"]
        if row.cells:
            rows.append([markdown(row.label), HERE, *cells])
        for source, numbers in row.published.items():
            of_seeds = _deviations(shown, row, source)
            quoted = [
                MISSING if one is None else _quoted_cell(one, of_seeds.get(column))
                for column, one in zip(columns, numbers, strict=True)
            ]
            rows.append([markdown(row.label), f"*{markdown(source)}*", *quoted])
    yield from markdown_table.lines(heads, rows, "llr")


def _deviations(shown: Table, row: Row, source: str) -> dict[str, PublishedNumber]:
    """The deviations that a source prints for a row, by column."""
    found = zip(shown.columns, row.deviations.get(source, ()), strict=False)
    return {column: one for column, one in found if one is not None}


def _quoted_cell(one: PublishedNumber, deviation: PublishedNumber | None) -> str:
    return f"*{one.shown} ± {deviation.shown}*" if deviation else f"*{one.shown}*"


def _cell(one: Measured | None) -> str:
    """A measured cell: fractions in percent, with the interval or the deviation."""
    if one is None or one.value is None:
        return MISSING
    scale, decimals = (100, 2) if one.decimals is None else (1, one.decimals)
    text = f"{scale * one.value:,.{decimals}f}"
    if one.deviation is not None:
        return f"{text} ± {scale * one.deviation:,.{decimals}f}"
    interval = one.final[0].interval
    if interval is None:
        return text
    low, high = (f"{scale * end:,.{decimals}f}" for end in interval)
    return f"{text} [{low}, {high}]"


def _compared(shown: Table, better: str, worse: str) -> Iterator[str]:
    """A table of Mann and Whitney's test of two rows over seeds, by column."""
    rows = {row.label: row for row in shown.rows}
    if not {better, worse} <= rows.keys():
        return
    yield f"Mann and Whitney's U and p that {markdown(better)} is better than {markdown(worse)}:"
    yield ""
    lines = []
    for column, a, b in zip(shown.columns, rows[better].cells, rows[worse].cells, strict=True):
        cells = [MISSING, MISSING]
        if a and b and a.value is not None and b.value is not None:
            sign = -1 if a.lower_is_better else 1
            u, p = rank_sum(*([sign * one.value for one in side.final] for side in (a, b)))
            cells = [f"{u:g}", f"{p:.3f}"]
        lines.append([markdown(column), *cells])
    for numbers in shown.p_values.values():
        for line, one in zip(lines, numbers, strict=True):
            line.append(MISSING if one is None else f"*{one.value}*")
    heads = ["", "U", "p", *(f"*p, {markdown(source)}*" for source in shown.p_values)]
    yield from markdown_table.lines(heads, lines)


def _remarks(shown: Table) -> Iterator[str]:
    """Lines on the remarks of quoted numbers, each with the rows that have it."""
    told: dict[str, dict[str, None]] = {}
    for row in shown.rows:
        for numbers in row.published.values():
            for said in published.remarks(one for one in numbers if one is not None):
                told.setdefault(said, {})[row.label] = None
    lines = [f"- {markdown(', '.join(rows))}: {markdown(said)}" for said, rows in told.items()]
    yield from ["", "Remarks on the quoted numbers:", "", *lines] if lines else []


def _reasons(shown: Table) -> Iterator[str]:
    """A line for each cell without a number: which one, and why."""
    for row in shown.rows:
        for column, one in zip(shown.columns, row.cells, strict=bool(row.cells)):
            if one is None or one.missing:
                why = one.missing if one else "not measured with this budget"
                name = ", ".join(filter(None, [row.label, column]))
                yield f"- {markdown(name)}: {markdown(why)}"
