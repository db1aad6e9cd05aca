"""Leaderboards in LaTeX, for papers: the headlines, and the best in bold by the paired test."""

from collections.abc import Iterator, Sequence

from harness.escape import latex, visible
from harness.records import latex_table, leaderboard
from harness.records.leaderboard import MEANINGS, WARNED, Board, Texts
from harness.records.record import Record

BOLD = "Bold: no other model is surely better, by paired 95 % intervals over scenes."


def texts_of(board: Board) -> Texts:
    """The contents of the file `leaderboard.tex`."""
    return {".tex": to_latex(board)}


def title(board: Board) -> str:
    """The first line of the file: a comment."""
    return visible(f"% {board.family} on {board.data}, split {board.split}")


def to_latex(board: Board) -> str:
    """A `tabular` for the package `booktabs`, with footnotes below; fractions are in percent.

    Bold, in each column: the scores than which no other is surely better (`leaderboard.best`).
    """
    options = leaderboard.has_options(board)
    facts = ["model", *(["options"] if options else []), "dim"]
    bold = [
        {name: leaderboard.best(rows, name) for name in board.headlines} for rows in board.groups
    ]
    groups = [
        [
            _row(row, {name for name in best if place in best[name]}, board, options=options)
            for place, row in found
        ]
        for best, found in zip(bold, map(enumerate, board.groups), strict=True)
    ]
    notes = [BOLD] if any(places for best in bold for places in best.values()) else []
    lines = [
        title(board),
        "% Fractions are in percent, with 95 % intervals. Needs \\usepackage{booktabs}.",
        *latex_table.lines(
            [*map(latex, (*facts, *board.headlines))], groups, "l" * len(facts) + "r"
        ),
        *(rf"\par\smallskip\noindent{{\footnotesize {each}}}" for each in _notes(board, notes)),
    ]
    return "\n".join([*lines, ""])


def _row(row: tuple[Record, ...], bold: set[str], board: Board, *, options: bool) -> list[str]:
    facts = [latex(row[0].model.size)]
    if options:
        facts.insert(0, latex(row[0].protocol.options_text))
    marks = leaderboard.mark(row) + (WARNED if any(one.warnings for one in row) else "")
    raised = rf"\textsuperscript{{{latex(marks)}}}" if marks else ""
    cells = [_cell(row, name, name in bold) for name in board.headlines]
    return [f"{latex(row[0].model.name)}{raised}", *facts, *cells]


def _cell(row: tuple[Record, ...], name: str, is_bold: bool) -> str:
    value, bracket, interval = leaderboard.cell(row, name).partition(" [")
    shown = rf"\textbf{{{latex(value)}}}" if is_bold else latex(value)
    return rf"{shown} {{\scriptsize{bracket}{interval}}}" if bracket else shown


def _notes(board: Board, first: Sequence[str]) -> Iterator[str]:
    """Footnotes in LaTeX: some sentences, then what the marks mean."""
    marks = {leaderboard.mark(row) for row in board.rows}
    yield from map(latex, first)
    yield from (latex(f"{sign} {MEANINGS[sign]}") for sign in MEANINGS if sign in marks)
    yield from (latex(f"{WARNED} {warning}") for warning in leaderboard.warnings(board))
