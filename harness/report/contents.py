"""The contents of a report as plain JSON: models, boards, figures and published numbers.

Numbers are rounded to a few digits more than the page shows. Models, boards and columns are named
by their place in lists, and repeated texts stand once, so that the page stays small.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path
from typing import Any

from harness.catalogue import PRODUCTS
from harness.errors import FileMissingError
from harness.metrics import lower_is_better
from harness.records import leaderboard, published, published_table, speeds
from harness.records import record as results
from harness.records.leaderboard import Board, intervals_of, scores_of
from harness.records.published import PublishedNumber
from harness.records.ranks import surely_better
from harness.records.record import Record
from harness.records.speeds import Speed
from harness.report import figures
from harness.report.models import KINDS, ReportedModel, models

Json = dict[str, Any]

DIGITS = 6  # decimals of a fraction: four decimals of a percentage
MORE = 2  # decimals of a quantity beyond those that tables show


@dataclass(frozen=True)
class Folder:
    """What a folder of results holds."""

    boards: list[Board]
    published: list[PublishedNumber]
    speeds: Mapping[str, Speed]  # by model

    @property
    def records(self) -> list[Record]:
        """The records of all boards."""
        return [record for board in self.boards for row in board.rows for record in row]


def read(root: Path) -> Folder:
    """The boards, published numbers and speeds of a folder of results.

    Raises:
        FileMissingError: if there is no record.
        InputError: if records of a board can't be compared, or a file can't be read.
    """
    records = results.load(root)
    if not records:
        raise FileMissingError(f"there is no record in {root}; `harness eval` writes them")
    numbers = published.read(root / published.FOLDER)
    groups = leaderboard.groups(records)
    boards = [leaderboard.board(key, group, numbers) for key, group in groups.items()]
    return Folder(boards, numbers, speeds.read(root))


def contents(folder: Folder) -> Json:
    """The contents of the report of a folder of results.

    The same files and the same installed packages give the same contents, on any machine.
    """
    known = models(folder.records)
    places = {model.name: place for place, model in enumerate(known)}
    return {
        "kinds": KINDS,
        "products": PRODUCTS,
        "meanings": leaderboard.MEANINGS,
        "models": [_model(model, folder.speeds.get(model.name)) for model in known],
        "training": _figure(figures.of_trainings([model.curve for model in known])),
        "boards": [_board(board, places, folder.speeds) for board in folder.boards],
        "published": _published(folder.published, places),
    }


def _model(model: ReportedModel, speed: Speed | None) -> Json:
    found = {field.name: getattr(model, field.name) for field in fields(model)}
    found["facts"] = [[name.replace("_", " "), _text(one)] for name, one in model.facts.items()]
    del found["curve"]  # it stands in the figure of all trainings
    found["speed"] = (
        {str(cores): round(n) for cores, n in speed.per_second.items()} if speed else {}
    )
    return found


def _text(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _board(board: Board, places: Mapping[str, int], measured: Mapping[str, Speed]) -> Json:
    columns = board.columns
    at = {name: place for place, name in enumerate(columns)}
    records = [record for row in board.rows for record in row]
    tables = {"headlines": board.headlines, **leaderboard.details(board)}
    alike, best = _compared(board)
    return {
        "family": board.family,
        "data": board.data,
        "split": board.split,
        "protocols": sorted(
            {(r.protocol.name, r.protocol.version, r.data.patches) for r in records}
        ),
        "sha256": sorted({f"{r.protocol.name} {r.data.sha256}" for r in records}),
        "unchecked": sorted({fact for record in records for fact in record.data.unchecked}),
        "columns": [_column(board, name) for name in columns],
        "headline": at[board.main_headline],
        "tables": [[title, [at[name] for name in names]] for title, names in tables.items()],
        "rows": [_row(row, places, at, board) for row in board.rows],
        "ranks": board.ranks,
        "alike": alike,
        "best": best,
        "published": _of_board(board, places, at),
        "figures": [_figure(figure) for figure in figures.of_board(board, measured)],
    }


def _column(board: Board, name: str) -> Json:
    quantity = board.quantities.get(name.rpartition("/")[2])
    return {
        "name": name,
        "decimals": quantity.decimals if quantity else None,  # None: a fraction
        "lower": lower_is_better(name, board.quantities),
    }


def _row(
    row: tuple[Record, ...], places: Mapping[str, int], at: Mapping[str, int], board: Board
) -> Json:
    first = row[0]
    scores, intervals = scores_of(row), intervals_of(row)
    values = [_rounded(board, name, scores.get(name)) for name in at]
    ends = {
        at[name]: [_rounded(board, name, end) for end in both] for name, both in intervals.items()
    }
    return {
        "model": places[first.model.name],
        "options": first.protocol.options_text,
        "mark": leaderboard.mark(row),
        "values": values,
        "ends": ends,
        "warnings": [*dict.fromkeys(text for record in row for text in record.warnings)],
        "records": {  # by the column of their headline
            at[record.protocol.headline]: results.place(Path(), record).as_posix()
            for record in row
            if record.protocol.headline in at
        },
    }


def _rounded(board: Board, name: str, value: float | None) -> float | None:
    if value is None:
        return None
    quantity = board.quantities.get(name.rpartition("/")[2])
    return round(value, quantity.decimals + MORE if quantity else DIGITS)


def _compared(board: Board) -> tuple[list[list[int]], dict[int, list[int]]]:
    """The rows that can't be told from each row, and the best rows of each headline.

    The first is by the headline that the row's set of options is sorted by. The second is by the
    place of the headline's column.
    """
    alike: list[list[int]] = []
    best: dict[int, list[int]] = {}
    for rows in board.groups:
        start = len(alike)
        by = leaderboard.sorted_by(rows)
        found = [next((r for r in row if r.protocol.headline == by), None) for row in rows]
        tested, better = surely_better(found)
        told = better | better.T
        of_row = {
            place: [start + tested[j] for j in range(len(tested)) if not told[i, j] and i != j]
            for i, place in enumerate(tested)
        }
        alike += [of_row.get(place, []) for place in range(len(rows))]
        for headline in board.headlines:
            places = leaderboard.best(rows, headline)
            column = board.columns.index(headline)
            best.setdefault(column, []).extend(start + place for place in sorted(places))
    return alike, best


def _of_board(board: Board, places: Mapping[str, int], at: Mapping[str, int]) -> list[Json]:
    """The published numbers on the board's data: one row for each source, method and options."""
    rows: dict[tuple[str, ...], Json] = {}
    for one in board.published:
        if one.score in at:
            key = (one.source, one.method, one.options, one.dim, one.trained_on)
            row = rows.setdefault(key, _published_row(one, places))
            row["values"][at[one.score]] = [
                published_table.cell(one, board.measured, board.quantities),
                round(one.number, DIGITS),
            ]
    return [*rows.values()]


def _published_row(one: PublishedNumber, places: Mapping[str, int]) -> Json:
    return {
        "method": one.method,
        "model": _place(one, places),
        "options": one.options,
        "dim": one.dim,
        "trained_on": one.trained_on,
        "source": one.source,
        "remark": one.remark,
        "values": {},
    }


def _place(number: PublishedNumber, places: Mapping[str, int]) -> int | None:
    """The place of the first of its models that the report has; None if it has none."""
    return next((places[one] for one in number.models if one in places), None)


def _published(numbers: Iterable[PublishedNumber], places: Mapping[str, int]) -> Json:
    """All published numbers, as places in a list of texts; models are places in their own list."""
    texts: dict[str, int] = {}
    rows = []
    for one in numbers:
        cells = asdict(one)
        del cells["model"]
        rows.append(
            [_place(one, places), *(texts.setdefault(text, len(texts)) for text in cells.values())]
        )
    names = [field.name for field in fields(PublishedNumber) if field.name != "model"]
    return {"columns": ["model", *names], "texts": [*texts], "rows": rows}


def _figure(figure: figures.Figure) -> Json:
    return {
        "name": figure.name,
        "title": figure.title,
        "note": figure.note,
        "panels": [_panel(panel) for panel in figure.panels],
    }


def _panel(panel: figures.Panel) -> Json:
    """The fields of a panel; rows, points and values are lists, and numbers are rounded."""
    found = {field.name: getattr(panel, field.name) for field in fields(panel)}
    for name, value in found.items():
        if isinstance(value, figures.Axis):
            found[name] = asdict(value)
        elif name in ("bars", "lines", "dots"):
            found[name] = [_short(astuple(one)) for one in value]
        elif name == "markers":
            found[name] = [asdict(marker) for marker in value]
        else:
            found[name] = _short(value)
    return found


def _short(value: Any) -> Any:
    """Tuples as lists, with numbers rounded to six significant digits."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    return [_short(one) for one in value] if isinstance(value, tuple) else value
