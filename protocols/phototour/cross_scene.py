"""Table of scores by training scene and test scene."""

import csv
import io
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from harness.escape import csv_cell, latex, markdown, visible
from harness.metrics import lower_is_better
from harness.records import latex_leaderboard, latex_table, markdown_table
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
    """One score of a model, with the scenes of its training and the scene of the test."""

    # "" if the model was trained on no scene, "liberty+notredame" if on two; it ends with UNKNOWN
    # if the model may have been trained on others, too.
    train: str
    test: str
    model: str
    value: float
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class Row:
    """A family whose models were trained on one scene each, or a single model of another kind."""

    name: str
    dim: str
    cells: tuple[Cell | None, ...]  # in the order of the columns; None: not measured
    mean: Cell | None  # None unless all cells have a score
    mark: str = ""  # footnote mark of a single model, as on the leaderboard


@dataclass(frozen=True)
class CrossSceneTable:
    """Models of one protocol, with one set of options, on one data set."""

    protocol: str
    options: str  # for example "fpr95=hardnet"; "" if there are none
    metric: str
    scenes: tuple[str, ...]  # the tested scenes
    learned: tuple[str, ...]  # the training scenes of the families; the tested scenes come first
    families: tuple[Row, ...]  # best mean first
    others: tuple[Row, ...]

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Train and test scene of the families' columns, as papers order them: by test scene."""
        return [(a, b) for b in self.scenes for a in self.learned if a != b]


def texts_of(board: Board) -> Texts:
    """The texts of a board's `cross_scene.csv`, `.md` and `.tex`; none if it has no cells.

    Raises:
        ValueError: if the models of a family can't share a row.
    """
    of_board = tables(board)
    if not of_board:
        return {}
    return {
        ".csv": to_csv(of_board),
        ".md": to_markdown(board, of_board),
        ".tex": to_latex(board, of_board),
    }


def lines_of(board: Board) -> Iterator[str]:
    """Lines of Markdown of all tables of a board, without headings."""
    for table in tables(board):
        yield ""
        yield from table_lines(table)


KIND = Kind("cross_scene", ",".join(HEAD), texts_of, lines_of)


def tables(board: Board) -> list[CrossSceneTable]:
    """The tables of a board with cells: one for each protocol and set of options.

    Families that were trained on none of the tested scenes are in a second table, because their
    columns are different.
    """
    groups: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for row in board.rows:
        for record in row:
            if record.data.cells:
                groups[record.protocol.name, record.protocol.options_text].append(record)
    made = []
    for _, group in sorted(groups.items()):
        at_home = {_family(record) for record in group if record.data.refused}
        here: list[Record] = []
        elsewhere: list[Record] = []
        for record in group:
            is_foreign = _learned_one(record) and _family(record) not in at_home
            (elsewhere if is_foreign else here).append(record)
        made += [_table(part) for part in (here, elsewhere) if part]
    return made


def to_csv(of_board: Sequence[CrossSceneTable]) -> str:
    """The tables as CSV at full precision, one line per cell; a mean has the test scene "mean"."""
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow(HEAD)
    for table in of_board:
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


def to_markdown(board: Board, of_board: Sequence[CrossSceneTable]) -> str:
    """The tables as a page of Markdown, in percent."""
    lines = [f"# {heading(board)}: across scenes", ""]
    lines += [
        "The first rows are families: each model of a family was trained on one of the scenes, and"
        " tested on the others. Then come models that were trained on none of the scenes, or on"
        " several. Families that were trained on scenes that are not tested have a table of their"
        " own.",
        "",
        "Values are in percent; brackets hold 95 % intervals. The interval of a mean over models is"
        " the mean of their intervals, which is too wide rather than too narrow. A model has no"
        " score on a scene that it was trained on, and a row has a mean only if all its cells have"
        " a value.",
    ]
    told = set()  # published numbers stand once, though families have two tables
    for table in of_board:
        where = "" if set(table.learned) & set(table.scenes) else ", trained elsewhere"
        options = f" ({markdown(table.options)})" if table.options else ""
        title = f"{markdown(table.protocol)}{options}: {markdown(table.metric)}{where}"
        lines += ["", f"## {title}", "", *table_lines(table)]
        if (task := (table.protocol, table.options)) not in told:
            told.add(task)
            lines += published_rows.lines(board, *task, table.metric, table.scenes, table.pairs)
    return "\n".join([*lines, ""])


def table_lines(table: CrossSceneTable) -> Iterator[str]:
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


def to_latex(board: Board, of_board: Sequence[CrossSceneTable]) -> str:
    """The tables as `tabular`s for the package `booktabs`, in percent; nothing is bold.

    Bold needs a test over several scenes, and most columns are of one.
    """
    lines = [
        latex_leaderboard.title(board),
        "% Percent, with 95 % intervals. Needs \\usepackage{booktabs}.",
    ]
    for table in of_board:
        options = f", {table.options}" if table.options else ""
        lines += ["", visible(f"% {table.protocol}{options}: {table.metric}")]
        pairs = [rf"{latex(train)} $\to$ {latex(test)}" for train, test in table.pairs]
        for head, columns, rows in (
            (r"train $\to$ test", pairs, table.families),
            ("test", [*map(latex, table.scenes)], table.others),
        ):
            if rows:
                cells = [
                    [_named(row), latex(row.dim), *map(_set, (*row.cells, row.mean))]
                    for row in rows
                ]
                lines += [
                    *latex_table.lines([head, "dim", *columns, MEAN], [cells], "llr"),
                    r"\par\smallskip",
                ]
    return "\n".join([*lines, ""])


def _named(row: Row) -> str:
    """The name of a row in LaTeX, with its footnote mark."""
    return latex(row.name) + (rf"\textsuperscript{{{latex(row.mark)}}}" if row.mark else "")


def _set(cell: Cell | None) -> str:
    """A cell in LaTeX, with its interval in small type."""
    value, bracket, interval = _text(cell).partition(" [")
    return latex(value) + (rf" {{\scriptsize{bracket}{interval}}}" if bracket else "")


def _text(cell: Cell | None) -> str:
    if cell is None:
        return MISSING
    text = f"{100 * cell.value:.2f}"
    if cell.interval:
        low, high = cell.interval
        text += f" [{100 * low:.2f}, {100 * high:.2f}]"
    return text


def _table(records: Sequence[Record]) -> CrossSceneTable:
    """The table of records of one protocol and one set of options; all have the same cells."""
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
    trained = [record for members in families.values() for record in members]
    seen = {scene for record in trained for scene in _learned(record)}
    tested = scenes if not seen or seen & set(scenes) else ()
    learned = (*tested, *sorted(seen - set(scenes)))
    pairs = [(a, b) for b in scenes for a in learned if a != b]
    rows = []
    for name, members in families.items():
        if len(members) == len({_learned(member)[0] for member in members}):
            _must_be_alike(members)
            rows.append(_row(name, members, pairs, metric))
        else:  # two models of the family learned the same scene: each model gets its own row
            rows += [_row(member.model.name, [member], pairs, metric) for member in members]
    ordered = (_best_first(part, metric) for part in (rows, others))
    protocol = first.protocol
    return CrossSceneTable(protocol.name, protocol.options_text, metric, scenes, learned, *ordered)


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
        ValueError: if there is such a family; names two models and the fact in which they differ.
    """
    first = members[0]
    for member in members[1:]:
        for field in ("dim", "distance", "revision"):
            its, theirs = getattr(member.model, field), getattr(first.model, field)
            must_agree(member, first, f"model {field}", its, theirs)


def _learned(record: Record) -> list[str]:
    """The scenes of the protocol's family that a model was trained on, tested or not.

    A scene that is not tested is named after its source: if the protocol is PhotoTour's, the source
    "phototour/yosemite" gives "yosemite". A tested scene may have another name than its source
    ("liberty_harris").
    """
    kind = record.protocol.name.partition("/")[0]
    sources = [source.split("/") for source in record.model.trained_on or ()]
    scenes = [parts[1] for parts in sources if len(parts) > 1 and parts[0] == kind]
    refused = record.data.refused
    return list(dict.fromkeys([*refused, *scenes] if len(scenes) > len(refused) else refused))


def _learned_one(record: Record) -> bool:
    """Whether a model was trained on exactly one scene, so that its family's row may hold it."""
    return len(_learned(record)) == 1 and not is_unknown(record)


def _family(record: Record) -> str:
    """A model's name without its training scene: "net.liberty-v2" gives "net.*-v2"."""
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
