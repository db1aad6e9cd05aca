"""Table of scores by training scene and test scene."""

import csv
import io
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from harness.escape import csv_cell, markdown
from harness.metrics import lower_is_better
from harness.records import markdown_table
from harness.records.comparable import must_agree
from harness.records.leaderboard import (
    MISSING,
    UNKNOWN,
    Board,
    Texts,
    footnotes,
    heading,
    is_unknown,
    mark,
)
from harness.records.record import Record
from harness.records.tables import Kind
from protocols.phototour import published_rows

MEAN = "mean"
HEAD = (
    "protocol", "options", "metric", "row", "dim", "train", "test", "model", "value", "low", "high",
)  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """One score: trained on the first, tested on the second."""

    # "" where the model saw no scene, "liberty+notredame" where two; ends with UNKNOWN where the
    # model may have seen others.
    train: str
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
    mark: str = ""  # of a model, as the leaderboard has it


@dataclass(frozen=True)
class Table:
    """Models of one protocol, with one set of options, on one data set."""

    protocol: str
    options: str  # as "fpr95=hardnet", or ""
    metric: str
    scenes: tuple[str, ...]  # that are tested
    learned: tuple[str, ...]  # what the models of families were trained on, the tested ones first
    families: tuple[Row, ...]  # best mean first
    others: tuple[Row, ...]

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Train and test scene of the families' columns, as papers order them: by test scene."""
        return [(a, b) for b in self.scenes for a in self.learned if a != b]


def texts_of(board: Board) -> Texts:
    """What the files `cross_scene.csv` and `cross_scene.md` of a board hold, if it has cells.

    Raises:
        ValueError: if the models of a family can't share a row.
    """
    found = tables(board)
    return {".csv": to_csv(found), ".md": to_markdown(board, found)} if found else {}


def lines_of(board: Board) -> Iterator[str]:
    """Lines of Markdown of all tables of a board, without headings."""
    for table in tables(board):
        yield ""
        yield from table_lines(table)


KIND = Kind("cross_scene", ",".join(HEAD), texts_of, lines_of)


def tables(board: Board) -> list[Table]:
    """A table for each protocol, and set of options, of a board that has cells.

    Families that learned none of the tested scenes have a second one: their columns are others.
    """
    groups: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for row in board.rows:
        for record in row:
            if record.data.cells:
                groups[record.protocol.name, record.protocol.options_text].append(record)
    found = []
    for _, group in sorted(groups.items()):
        at_home = {_family(one) for one in group if one.data.refused}
        here: list[Record] = []
        elsewhere: list[Record] = []
        for one in group:
            is_foreign = _learned_one(one) and _family(one) not in at_home
            (elsewhere if is_foreign else here).append(one)
        found += [_table(part) for part in (here, elsewhere) if part]
    return found


def to_csv(found: Sequence[Table]) -> str:
    """Full precision, one line a cell; a mean is a cell tested on "mean"."""
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow(HEAD)
    for table in found:
        for rows, pairs in (
            (table.families, table.pairs),
            (table.others, [("", scene) for scene in table.scenes]),
        ):
            for row in rows:
                known = (table.protocol, table.options, table.metric, row.name, row.dim)
                names = [*((train or row.mark, test) for train, test in pairs), (row.mark, MEAN)]
                for (train, test), cell in zip(names, (*row.cells, row.mean), strict=True):
                    if cell is None:
                        values = (train, test, *[MISSING] * 4)
                    else:
                        ends = map(repr, cell.interval) if cell.interval else (MISSING, MISSING)
                        values = (cell.train, test, cell.model, repr(cell.value), *ends)
                    texts, numbers = (*known, *values[:3]), values[3:]
                    lines.writerow([*map(csv_cell, texts), *numbers])
    return out.getvalue()


def to_markdown(board: Board, found: Sequence[Table]) -> str:
    """A page to read, in percent."""
    lines = [f"# {heading(board)}: across scenes", ""]
    lines += [
        "First, families: their models were trained on one of the scenes each, and tested on the"
        " others. Then models that were trained on none of them, or on several. Families that were"
        " trained on scenes elsewhere have a table of their own.",
        "",
        "Percent; in brackets the interval that covers 95 %. That of a mean over models is the mean"
        " of theirs: too wide rather than too narrow. A model has no score on what it was trained"
        " on, and a row has a mean only if it is whole.",
    ]
    told = set()  # published numbers stand once, though families have two tables
    for table in found:
        where = "" if set(table.learned) & set(table.scenes) else ", trained elsewhere"
        options = f" ({markdown(table.options)})" if table.options else ""
        title = f"{markdown(table.protocol)}{options}: {markdown(table.metric)}{where}"
        lines += ["", f"## {title}", "", *table_lines(table)]
        if (task := (table.protocol, table.options)) not in told:
            told.add(task)
            lines += published_rows.lines(board, *task, table.metric, table.scenes, table.pairs)
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
    yield from footnotes({row.mark for row in table.others})


def _lines(title: str, heads: Sequence[str], rows: Sequence[Row]) -> Iterator[str]:
    cells = (
        [f"{markdown(row.name)} {row.mark}".strip(), row.dim, *map(_text, (*row.cells, row.mean))]
        for row in rows
    )
    yield from markdown_table.lines([title, "dim", *map(markdown, heads), MEAN], cells, "llr")


def _text(cell: Cell | None) -> str:
    if cell is None:
        return MISSING
    text = f"{100 * cell.value:.2f}"
    if cell.interval:
        low, high = cell.interval
        text += f" [{100 * low:.2f}, {100 * high:.2f}]"
    return text


def _table(records: Sequence[Record]) -> Table:
    """Of records of one protocol and one set of options, which all have the same cells."""
    first = records[0]
    scenes = tuple(first.data.cells)
    metric = first.protocol.headline.rpartition("/")[2]
    families: dict[str, list[Record]] = defaultdict(list)
    others = []
    for record in records:
        if _learned_one(record):
            families[_family(record)].append(record)
        else:
            cells = tuple(_cell(record, scene, metric) for scene in scenes)
            mean = _cell(record, first.protocol.headline.rpartition("/")[0], metric)
            others.append(Row(record.model.name, record.model.size, cells, mean, mark([record])))
    seen = {scene for members in families.values() for one in members for scene in _learned(one)}
    own = scenes if not seen or seen & set(scenes) else ()
    learned = (*own, *sorted(seen - set(scenes)))
    pairs = [(a, b) for b in scenes for a in learned if a != b]
    rows = []
    for name, members in families.items():
        if len(members) == len({_learned(one)[0] for one in members}):
            _must_be_alike(members)
            rows.append(_row(name, members, pairs, metric))
        else:  # two models of one family learned the same scene: neither stands for it
            rows += [_row(one.model.name, [one], pairs, metric) for one in members]
    ordered = (_best_first(part, metric) for part in (rows, others))
    protocol = first.protocol
    return Table(protocol.name, protocol.options_text, metric, scenes, learned, *ordered)


def _row(
    name: str, members: Sequence[Record], pairs: Sequence[tuple[str, str]], metric: str
) -> Row:
    of_scene = {_learned(record)[0]: record for record in members}
    cells = tuple(
        _cell(of_scene[train], test, metric) if train in of_scene else None for train, test in pairs
    )
    return Row(name, members[0].model.size, cells, _mean(name, cells))


def _must_be_alike(members: Sequence[Record]) -> None:
    """Refuse a family of models that differ in more than their training.

    Raises:
        ValueError: if not; says which two models differ, and in what.
    """
    first = members[0]
    for one in members[1:]:
        for field in ("dim", "distance", "revision"):
            its, theirs = getattr(one.model, field), getattr(first.model, field)
            must_agree(one, first, f"model {field}", its, theirs)


def _learned(record: Record) -> list[str]:
    """Scenes of the tested kind that a model was trained on, whether they are tested or not.

    One that is not tested is called after its source: "yosemite" after "phototour/yosemite" where
    the protocol is PhotoTour's. A cell may bear another name than its source ("liberty_harris").
    """
    kind = record.protocol.name.partition("/")[0]
    sources = [source.split("/") for source in record.model.trained_on or ()]
    scenes = [parts[1] for parts in sources if len(parts) > 1 and parts[0] == kind]
    refused = record.data.refused
    return list(dict.fromkeys([*refused, *scenes] if len(scenes) > len(refused) else refused))


def _learned_one(record: Record) -> bool:
    """Whether a model stands for one scene in a row of its family."""
    return len(_learned(record)) == 1 and not is_unknown(record)


def _family(record: Record) -> str:
    """A model's name without its training scene: "net.*-v2" of "net.liberty-v2"."""
    family, dot, tag = record.model.name.partition(".")
    for source in record.model.trained_on or ():
        scene = re.escape(source.rpartition("/")[2])
        tag = re.sub(rf"(?<![^._-]){scene}(?![^._-])", "*", tag)
    return f"{family}{dot}{tag}".removesuffix(".*")


def _cell(record: Record, test: str, metric: str) -> Cell | None:
    name = f"{test}/{metric}"
    if name not in record.scores:
        return None
    train = "+".join([*_learned(record), *([UNKNOWN] if is_unknown(record) else [])])
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
