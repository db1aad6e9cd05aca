"""Figures of ETH: what each model reconstructs, and points against the reprojection error."""

from collections import defaultdict
from collections.abc import Iterator

from harness.records.leaderboard import Board
from harness.records.record import Record
from harness.report.figures import Axis, Figure, Grid, Line, Lines, axis, headlines
from protocols.eth.matching import RATIO

COLUMNS = ("registered", "points", "observations", "track_length", "reprojection_error_px",
           "inlier_matches")  # fmt: skip


def figures(board: Board) -> Iterator[Figure]:
    """Headlines, points against the reprojection error, and a table for each scene."""
    yield from headlines(board)
    scenes = sorted({scene for row in board.rows for record in row for scene in record.scenes})
    trade = tuple(_trade_off(board, scene) for scene in scenes)
    note = (
        "Each line is a model; its points are the ratios of distances up to which matches are"
        " accepted. A smaller ratio gives fewer and more accurate points."
    )
    yield Figure("points-error", "Points against reprojection error by ratio", note, trade)
    tables = tuple(table for table in (_table(board, scene) for scene in scenes) if table.rows)
    note = "What each model reconstructs; a stronger colour is a higher number of its column."
    yield Figure("structure", "Reconstructions", note, tables)


def _trade_off(board: Board, scene: str) -> Lines:
    rows: dict[str, list[tuple[float, float, str, int]]] = defaultdict(list)
    for number, (record, *_) in enumerate(board.rows):
        scores = record.scores
        x, y = (scores.get(f"{scene}/{name}") for name in ("points", "reprojection_error_px"))
        if x is not None and y is not None:
            ratio = record.protocol.options.get("ratio", str(RATIO))
            rows[_series(record)].append((x, y, ratio, number))
    lines = []
    for points in rows.values():
        first = min(number for *_, number in points)
        points = sorted(points)
        places = tuple((x, y) for x, y, *_ in points)
        lines.append(Line(first, places, tuple(ratio for *_, ratio, _ in points)))
    y_axis = axis(board, f"{scene}/reprojection_error_px", "reprojection error, pixels")
    return Lines(scene, Axis("points"), y_axis, tuple(lines))


def _series(record: Record) -> str:
    """The model and its options but for the ratio: records that differ only in it share a line."""
    others = {name: value for name, value in record.protocol.options.items() if name != "ratio"}
    return f"{record.model.name} {sorted(others.items())}"


def _table(board: Board, scene: str) -> Grid:
    rows, values = [], []
    for row in board.rows:
        scores = row[0].scores
        found = tuple(scores.get(f"{scene}/{name}") for name in COLUMNS)
        if any(value is not None for value in found):
            options = row[0].protocol.options_text
            rows.append(f"{row[0].model.name} ({options})" if options else row[0].model.name)
            values.append(found)
    names = tuple(name.replace("_", " ") for name in COLUMNS)
    return Grid(scene, tuple(rows), names, tuple(values), Axis(""), "model", by_column=True)
