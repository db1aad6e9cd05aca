"""Figures of PhotoTour: curves of the verification, and scores by training and test scene."""

import re
from collections.abc import Iterator, Mapping

from harness.metrics import lower_is_better
from harness.records.leaderboard import Board
from harness.report.figures import Axis, Figure, Grid, Line, Lines, headlines
from protocols.phototour.cross_scene import CrossSceneTable, Row, tables

FAMILY, OTHERS = "train \\ test", "model \\ test"  # corners of the matrices
POINT = re.compile(r"(fpr|precision)@(\d+)")  # scores of a scene at a recall in percent


def figures(board: Board) -> Iterator[Figure]:
    """Headlines, ROC and precision-recall curves of each scene, and training against test scene."""
    yield from headlines(board)
    scenes = list(dict.fromkeys(s for row in board.rows for record in row for s in record.scenes))
    note = "Through the recalls at which records hold a value: every 5 %, and 99 %."
    roc = tuple(filter(None, (_curves(board, scene, "fpr") for scene in scenes)))
    yield Figure("roc", "ROC curves", note, roc)
    precision = tuple(filter(None, (_curves(board, scene, "precision") for scene in scenes)))
    yield Figure("precision-recall", "Precision-recall curves", note, precision)
    note = (
        "One matrix for each family of models, whose rows are training scenes and whose columns are"
        " test scenes. The others were trained on none of the scenes, or on several. A stronger"
        " colour is a higher number."
    )
    grids = [grid for table in tables(board) for grid in _grids(table)]
    grids.sort(key=lambda grid: grid.corner == OTHERS)  # families first
    yield Figure("scenes", "Training scene against test scene", note, tuple(grids))


def _curves(board: Board, scene: str, score: str) -> Lines | None:
    lines = []
    for number, row in enumerate(board.rows):
        own = next((values for r in row if (values := _curve(r.scenes.get(scene, {}), score))), {})
        pairs = sorted(own.items())
        if score == "fpr":  # the rate is drawn on a logarithmic axis, which has no 0
            points = tuple((rate, recall / 100) for recall, rate in pairs if rate > 0)
        else:
            points = tuple((recall / 100, value) for recall, value in pairs)
        if points:
            lines.append(Line(number, points))
    if not lines:
        return None
    recall = Axis("recall, %", percent=True)
    rate = Axis("false positive rate, %", percent=True, log=True)
    axes = (rate, recall) if score == "fpr" else (recall, Axis("precision, %", percent=True))
    return Lines(scene, *axes, tuple(lines))


def _curve(values: Mapping[str, float], score: str) -> dict[int, float]:
    """The values of a score by recall in percent."""
    found = ((POINT.fullmatch(name), value) for name, value in values.items())
    return {int(at[2]): value for at, value in found if at and at[1] == score}


def _grids(table: CrossSceneTable) -> Iterator[Grid]:
    options = f" ({table.options})" if table.options else ""
    score = Axis("percent", percent=True, lower_is_better=lower_is_better(table.metric))
    for family in table.families:
        values = tuple(
            tuple(_value(table, family, train, test) for test in table.scenes)
            for train in table.learned
        )
        title = f"{family.name}{options}: {table.metric}"
        yield Grid(title, table.learned, table.scenes, values, score, FAMILY)
    if table.others:
        values = tuple(
            tuple(cell.value if cell else None for cell in (*row.cells, row.mean))
            for row in table.others
        )
        names = tuple(f"{row.name} {row.mark}".strip() for row in table.others)
        title = f"others{options}: {table.metric}"
        yield Grid(title, names, (*table.scenes, "mean"), values, score, OTHERS)


def _value(table: CrossSceneTable, family: Row, train: str, test: str) -> float | None:
    if (train, test) not in table.pairs:
        return None
    cell = family.cells[table.pairs.index((train, test))]
    return cell.value if cell else None
