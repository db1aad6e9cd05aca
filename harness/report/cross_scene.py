"""The field's table of scores given scene by scene: trained on one, tested on another."""

import csv
import io
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from harness import results
from harness.metrics import lower_is_better
from harness.report.leaderboard import MISSING, Board, boards, replace
from harness.results import Record

MEAN = "mean"


@dataclass(frozen=True)
class Cell:
    """One score: trained on the first, tested on the second."""

    train: str  # "" where the model saw none of the scenes, "liberty+notredame" where it saw two
    test: str
    model: str
    value: float
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class Row:
    """A family, whose models were trained on one scene each; or one model that was not."""

    name: str
    dim: str
    cells: tuple[Cell | None, ...]  # in the order of the columns; None was not measured
    mean: Cell | None  # there if all cells are


@dataclass(frozen=True)
class Table:
    """All models of one protocol on one data set."""

    protocol: str
    metric: str
    scenes: tuple[str, ...]
    families: tuple[Row, ...]  # best mean first
    others: tuple[Row, ...]

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Train and test scene of the families' columns, as papers order them: by test scene."""
        return [(a, b) for b in self.scenes for a in self.scenes if a != b]


def write(root: Path) -> list[Path]:
    """Make the tables below a folder of results again, beside the leaderboards they belong to.

    They are `cross_scene.csv` and `cross_scene.md`; the same records, the same bytes.
    """
    texts: dict[Path, str] = {}
    for board in boards(results.load(root)):
        found = tables(board)
        if found:
            folder = root / board.family / board.data / board.split
            texts[folder / "cross_scene.csv"] = to_csv(found)
            texts[folder / "cross_scene.md"] = to_markdown(board, found)
    replace(root, "cross_scene.*", texts)
    return list(texts)


def tables(board: Board) -> list[Table]:
    """A table for each protocol of a board that has cells."""
    groups: dict[str, list[Record]] = defaultdict(list)
    for row in board.rows:
        for record in row:
            if record.data.cells:
                groups[record.protocol.name].append(record)
    return [_table(groups[name]) for name in sorted(groups)]


def to_csv(found: Sequence[Table]) -> str:
    """Full precision, one line a cell; a mean is a cell tested on "mean"."""
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    head = ("protocol", "metric", "row", "dim", "train", "test", "model", "value", "low", "high")
    lines.writerow(head)
    for table in found:
        for rows, pairs in (
            (table.families, table.pairs),
            (table.others, [("", scene) for scene in table.scenes]),
        ):
            for row in rows:
                known = (table.protocol, table.metric, row.name, row.dim)
                names = [*pairs, ("", MEAN)]
                for (train, test), cell in zip(names, (*row.cells, row.mean), strict=True):
                    if cell is None:
                        values = (train, test, *[MISSING] * 4)
                    else:
                        ends = map(repr, cell.interval) if cell.interval else (MISSING, MISSING)
                        values = (cell.train, test, cell.model, repr(cell.value), *ends)
                    lines.writerow([*known, *values])
    return out.getvalue()


def to_markdown(board: Board, found: Sequence[Table]) -> str:
    """A page to read, in percent."""
    lines = [f"# {board.family} on {board.data}, split {board.split}: across scenes", ""]
    lines += [
        "First, families: their models were trained on one of the scenes each, and tested on the"
        " others. Then models that were trained on none of them, or on several.",
        "",
        "Percent; in brackets the interval that covers 95 %. That of a mean over models is the mean"
        " of theirs: too wide rather than too narrow. A model has no score on what it was trained"
        " on, and a row has a mean only if it is whole.",
    ]
    for table in found:
        lines += ["", f"## {table.protocol}: {table.metric}", "", *table_lines(table)]
    return "\n".join([*lines, ""])


def table_lines(table: Table) -> Iterator[str]:
    """Lines of Markdown: the families, then the models that were not trained on one scene."""
    if table.families:
        heads = [f"{train} → {test}" for train, test in table.pairs]
        yield from _lines("train → test", heads, table.families)
    if table.families and table.others:
        yield ""
    if table.others:
        yield from _lines("test", table.scenes, table.others)


def _lines(title: str, heads: Sequence[str], rows: Sequence[Row]) -> Iterator[str]:
    yield f"| {title} | dim | {' | '.join(heads)} | {MEAN} |"
    yield "|---" * 2 + "|---:" * (len(heads) + 1) + "|"
    for row in rows:
        cells = " | ".join(map(_text, (*row.cells, row.mean)))
        yield f"| {row.name} | {row.dim} | {cells} |"


def _text(cell: Cell | None) -> str:
    if cell is None:
        return MISSING
    text = f"{100 * cell.value:.2f}"
    if cell.interval:
        low, high = cell.interval
        text += f" [{100 * low:.2f}, {100 * high:.2f}]"
    return text


def _table(records: Sequence[Record]) -> Table:
    """Of records of one protocol, which all have the same cells."""
    first = records[0]
    scenes = tuple(first.data.cells)
    metric = first.protocol.headline.rpartition("/")[2]
    families: dict[str, list[Record]] = defaultdict(list)
    others = []
    for record in records:
        if len(record.data.refused) == 1:
            families[_family(record)].append(record)
        else:
            cells = tuple(_cell(record, scene, metric) for scene in scenes)
            mean = _cell(record, first.protocol.headline.rpartition("/")[0], metric)
            others.append(Row(record.model.name, _dim(record), cells, mean))
    rows = []
    for name, members in families.items():
        if len(members) == len({record.data.refused[0] for record in members}):
            rows.append(_row(name, members, scenes, metric))
        else:  # two models of one family learned the same scene: neither stands for it
            rows += [_row(one.model.name, [one], scenes, metric) for one in members]
    ordered = (_best_first(part, metric) for part in (rows, others))
    return Table(first.protocol.name, metric, scenes, *ordered)


def _row(name: str, members: Sequence[Record], scenes: Sequence[str], metric: str) -> Row:
    learned = {record.data.refused[0]: record for record in members}
    cells = tuple(
        _cell(learned[train], test, metric) if train in learned else None
        for test in scenes
        for train in scenes
        if train != test
    )
    return Row(name, _dim(members[0]), cells, _mean(name, cells))


def _family(record: Record) -> str:
    """What models share that differ in their training: "net", "net.*-v2" of "net.liberty-v2"."""
    family, dot, tag = record.model.name.partition(".")
    for source in record.model.trained_on or ():
        tag = tag.replace(source.rpartition("/")[2], "*")
    return f"{family}{dot}{tag}".removesuffix(".*")


def _cell(record: Record, test: str, metric: str) -> Cell | None:
    name = f"{test}/{metric}"
    if name not in record.scores:
        return None
    train = "+".join(record.data.refused)
    return Cell(train, test, record.model.name, record.scores[name], record.intervals.get(name))


def _mean(name: str, cells: Sequence[Cell | None]) -> Cell | None:
    there = [cell for cell in cells if cell]
    if not there or len(there) < len(cells):
        return None
    ends = [cell.interval for cell in there if cell.interval]
    interval = None
    if len(ends) == len(there):
        low, high = np.mean(ends, axis=0).tolist()
        interval = (low, high)
    return Cell("", MEAN, name, float(np.mean([cell.value for cell in there])), interval)


def _best_first(rows: Sequence[Row], metric: str) -> tuple[Row, ...]:
    sign = 1 if lower_is_better(metric) else -1

    def key(row: Row) -> tuple[bool, float, str]:
        return row.mean is None, sign * row.mean.value if row.mean else 0.0, row.name

    return tuple(sorted(rows, key=key))


def _dim(record: Record) -> str:
    return f"{record.model.dim}{' bits' if record.model.distance == 'hamming' else ''}"
