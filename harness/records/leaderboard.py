"""Leaderboards: a CSV file and a Markdown table for each protocol, data set and split."""

import csv
import io
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

from harness.escape import csv_cell, markdown
from harness.metrics import lower_is_better
from harness.records import markdown_table, published_table
from harness.records.comparable import must_be_comparable
from harness.records.published import PublishedNumber, is_like
from harness.records.ranks import NOTE, ranks, surely_better
from harness.records.record import Record
from harness.types import Quantity

MISSING = published_table.MISSING
SEEN, UNKNOWN, WARNED = "†", "?", "‡"
MEANINGS = {
    SEEN: "trained on data that this table tests: not comparable.",
    UNKNOWN: "its training data are unknown, or have a name that no protocol knows.",
}


@dataclass(frozen=True)
class Board:
    """All complete records of one family of protocols on one split of one data set."""

    family: str
    data: str
    split: str
    # A row is the records of one model with one set of options. Rows without options come first,
    # then the rows of each set of options; within a set, the best row comes first.
    rows: tuple[tuple[Record, ...], ...]
    published: tuple[PublishedNumber, ...] = ()  # on the same data; never part of the rows

    @cached_property
    def columns(self) -> list[str]:
        """The names of all scores in the records: headlines first, the rest in natural order."""
        names = {name for row in self.rows for record in row for name in record.scores}
        return self.headlines + sorted(names - set(self.headlines), key=_natural)

    @cached_property
    def headlines(self) -> list[str]:
        """The headline of each of the board's protocols."""
        return sorted({record.protocol.headline for row in self.rows for record in row})

    @property
    def main_headline(self) -> str:
        """The headline that the rows without options, or the first options, are sorted by."""
        return sorted_by(self.groups[0])

    @cached_property
    def groups(self) -> list[list[tuple[Record, ...]]]:
        """The rows of each set of options, in order."""
        return [*_by_options(self.rows).values()]

    @cached_property
    def quantities(self) -> Mapping[str, Quantity]:
        """Scores of the board that are not fractions, by the last part of their names."""
        return quantities_of([record for row in self.rows for record in row])

    @cached_property
    def ranks(self) -> list[str]:
        """The rank of each row among those of its options, as "1-2"; "" where it has none."""
        found = []
        for rows in self.groups:
            by = sorted_by(rows)
            found += ranks(
                [next((r for r in row if r.protocol.headline == by), None) for row in rows]
            )
        return found

    @property
    def measured(self) -> published_table.Measured:
        """Every score, by model, protocol, options and name."""
        return {
            (record.model.name, record.protocol.name, record.protocol.options_text, name): value
            for row in self.rows
            for record in row
            for name, value in record.scores.items()
        }


Texts = Mapping[str, str]  # contents of files, by the end of the file's name: ".csv", ".md", ".tex"
FACTS = (
    "model", "options", "dim", "distance", "trained_on_tested_data", "weights", "revision", "rank",
)  # fmt: skip


def texts_of(board: Board) -> Texts:
    """The contents of a leaderboard's files."""
    return {".csv": to_csv(board), ".md": to_markdown(board)}


def boards(records: Iterable[Record]) -> list[Board]:
    """Records sorted into boards; records of incomplete data are left out.

    Raises:
        InputError: if records of one board can't be compared.
    """
    return [board(key, group) for key, group in groups(records).items()]


def groups(records: Iterable[Record]) -> dict[tuple[str, str, str], list[Record]]:
    """The complete records of each board, by its family, data set and split."""
    by_board: dict[tuple[str, str, str], list[Record]] = defaultdict(list)
    for record in records:
        if record.data.complete:
            family = record.protocol.name.partition("/")[0]
            by_board[family, record.data.name, record.data.split].append(record)
    return dict(sorted(by_board.items()))


def board(
    key: tuple[str, str, str],
    records: Sequence[Record],
    published: Iterable[PublishedNumber] = (),
) -> Board:
    """The board of one of `groups`, with those of the published numbers that are on its data.

    Raises:
        InputError: if its records can't be compared.
    """
    must_be_comparable(records)
    kinds = quantities_of(records)
    shown = tuple(one for one in published if one.is_on(*key) and is_like(one, kinds))
    return Board(*key, _rows(records), shown)


def to_csv(board: Board) -> str:
    """The board as CSV at full precision, one line per row; "—" means not measured."""
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    measured = {name for row in board.rows for name in intervals_of(row)}
    bounds = [name for name in board.columns if name in measured]
    ends = [f"{name} {end}" for name in bounds for end in ("low", "high")]
    protocols = sorted({record.protocol.name for row in board.rows for record in row})
    hashes = [f"{name} data_sha256" for name in protocols]
    lines.writerow(map(csv_cell, [*FACTS, *board.columns, *ends, *hashes]))
    ranks = [rank or MISSING for rank in board.ranks]
    for row, rank in zip(board.rows, ranks, strict=True):
        model, scores, intervals = row[0].model, scores_of(row), intervals_of(row)
        seen = {SEEN: "yes", UNKNOWN: "unknown"}.get(mark(row), "no")
        weights = model.weights or MISSING
        name, options = csv_cell(model.name), row[0].protocol.options_text
        known = (name, options, model.dim, model.distance, seen, weights, model.revision, rank)
        values = [repr(scores[name]) if name in scores else MISSING for name in board.columns]
        for name in bounds:
            values += map(repr, intervals[name]) if name in intervals else (MISSING, MISSING)
        data = {record.protocol.name: record.data.sha256 for record in row}
        hashed = [data.get(name, MISSING) for name in protocols]
        lines.writerow([*known, *values, *hashed])
    return out.getvalue()


def to_markdown(board: Board) -> str:
    """The board as a page of Markdown: the headlines with their intervals, then every breakdown.

    Fractions are in percent. All quantities of a scene are in one table, as each has its own unit.
    """
    lines = [f"# {heading(board)}", ""]
    legend = []
    if any(name.rpartition("/")[2] not in board.quantities for name in board.columns):
        legend.append("percent")
    measured = {name for row in board.rows for name in intervals_of(row)}
    counted = {name for name in measured if name.rpartition("/")[2] in board.quantities}
    if measured - counted:
        legend.append("in brackets the 95 % interval over similar scenes or cases")
    if _lacks_interval(board):
        legend.append("without brackets: too few scenes, or too many at 0 or 100, for an interval")
    if counted:
        legend.append("in brackets the middle 95 % of runs")
    if legend:
        text = "; ".join(legend)
        lines += [f"{text[0].upper()}{text[1:]}.", ""]
    lines += headline_table(board)
    tables = details(board)
    for title, columns in tables.items():
        lines += ["", f"## {markdown(title)}", "", *_table(board, columns)]
    groups = [board.headlines, *tables.values()]
    lines += published_table.section(board.published, groups, board.measured, board.quantities)
    return "\n".join([*lines, ""])


def best(rows: Sequence[tuple[Record, ...]], headline: str) -> set[int]:
    """Places of the rows than which none is surely better by a headline; empty without a test.

    Rows of models that were trained on the tested data are left out, and so are rows whose scenes
    scatter too much for an interval while other rows have one: nothing is surely better than those.

    Args:
        rows: of one set of options.
        headline: of one of the protocols.
    """
    records = [
        None
        if mark(row) == SEEN
        else next((r for r in row if r.protocol.headline == headline), None)
        for row in rows
    ]
    places, better = surely_better(records)
    found = {
        place
        for place, others_better in zip(places, better.T.tolist(), strict=True)
        if not any(others_better)
    }
    return {place for place in found if headline in intervals_of(rows[place])} or found


def details(board: Board) -> dict[str, list[str]]:
    """The scores that are no headlines, by the title of their table."""
    found: dict[str, list[str]] = defaultdict(list)
    for name in board.columns[len(board.headlines) :]:
        first, *others = name.split("/")  # "retrieval/easy/map@100", "liberty/fpr95", or "map8"
        title = f"{first}, {others[0]}" if len(others) > 1 else "".join(others) or "overall"
        found[first if name.rpartition("/")[2] in board.quantities else title].append(name)
    sums = {name.partition("/")[0] for name in board.headlines}
    for columns in found.values():
        columns.sort(key=lambda name: name.partition("/")[0] in sums)  # "mean/ap" comes last
    return found


def heading(board: Board) -> str:
    """The title of a board, as Markdown."""
    family, data, split = map(markdown, (board.family, board.data, board.split))
    return f"{family} on {data}, split {split}"


def headline_table(board: Board) -> list[str]:
    """Lines of Markdown: the headlines of all models, with fractions in percent, and remarks."""
    lines = _table(board, board.headlines, board.ranks)
    if any(board.ranks):
        by = dict.fromkeys(map(sorted_by, board.groups))
        lines += ["", NOTE.format(headline=markdown(" or ".join(by)))]
    lines += footnotes({mark(row) for row in board.rows})
    unchecked = {fact for row in board.rows for record in row for fact in record.data.unchecked}
    lines += [line for fact in sorted(unchecked) for line in ("", f"Not checked: {markdown(fact)}")]
    return [*lines, *_warnings(board)]


def footnotes(marks: Set[str]) -> list[str]:
    """Lines of Markdown below a table that explain its footnote marks."""
    return [
        line
        for sign, meaning in MEANINGS.items()
        if sign in marks
        for line in ("", f"{sign} {meaning}")
    ]


def _warnings(board: Board) -> Iterator[str]:
    """Yields lines of Markdown: each warning of the records, with the models that it is about."""
    for warning in warnings(board):
        yield from ("", f"{WARNED} {markdown(warning)}")


def warnings(board: Board) -> Iterator[str]:
    """Yields each warning of the records, behind the models that it is about unless it is all."""
    about: dict[str, list[str]] = defaultdict(list)
    for row in board.rows:
        for warning in dict.fromkeys(text for record in row for text in record.warnings):
            options = f" ({row[0].protocol.options_text})" if row[0].protocol.options else ""
            about[warning].append(f"{row[0].model.name}{options}")
    for warning, models in about.items():
        whose = "" if len(models) == len(board.rows) else f"{', '.join(models)}: "
        yield f"{whose}{warning}"


def _table(board: Board, columns: list[str], ranks: Sequence[str] = ()) -> list[str]:
    common = "/".join(_common(columns)) if len(columns) > 1 else ""
    heads = [markdown(name.removeprefix(f"{common}/")) for name in columns]
    with_options, with_ranks = has_options(board), any(ranks)
    facts = ["model", *(["options"] if with_options else []), "dim"]
    facts += ["rank"] if with_ranks else []
    rows = []
    for i, row in enumerate(board.rows):
        warned = WARNED if any(record.warnings for record in row) else ""
        name = f"{markdown(row[0].model.name)} {mark(row)}{warned}".strip()
        options = [markdown(row[0].protocol.options_text)] if with_options else []
        cells = [cell(row, column) for column in columns]
        rank = [ranks[i] or MISSING] if with_ranks else []
        rows.append([name, *options, row[0].model.size, *rank, *cells])
    return [*markdown_table.lines([*facts, *heads], rows, "l" * len(facts) + "r")]


def has_options(board: Board) -> bool:
    """Whether a row has options."""
    return any(row[0].protocol.options for row in board.rows)


def mark(row: Sequence[Record]) -> str:
    """The footnote mark for a model's training data, one of MEANINGS; "" if it needs none."""
    if any(record.data.seen_in_training for record in row):
        return SEEN
    return UNKNOWN if any(map(is_unknown, row)) else ""


def is_unknown(record: Record) -> bool:
    """Whether a model may have seen data that the record does not name."""
    return record.model.trained_on is None or bool(record.data.unknown_in_training)


def cell(row: tuple[Record, ...], name: str) -> str:
    """A score as tables show it, with its interval: "55.12 [34.8, 75.5]"; a mark if it is missing.

    Args:
        row: records of one model on one data set.
        name: the score; any of the records may have it.
    """
    scores, intervals = scores_of(row), intervals_of(row)
    if name not in scores:
        return MISSING
    quantity = quantities_of(row).get(name.rpartition("/")[2])
    unit, decimals, of_ends = (1, *2 * [quantity.decimals]) if quantity else (100, 2, 1)
    text = f"{unit * scores[name]:,.{decimals}f}"
    if name in intervals:
        low, high = (f"{unit * end:,.{of_ends}f}" for end in intervals[name])
        text += f" [{low}, {high}]"
    return text


def quantities_of(records: Iterable[Record]) -> Mapping[str, Quantity]:
    """Scores of the records that are not fractions, by the last part of their names."""
    return {name: q for record in records for name, q in record.protocol.quantities.items()}


def _natural(name: str) -> list[tuple[bool, int, str]]:
    """Sort key that compares numbers in names as numbers: map@500 before map@1000."""
    parts = re.split(r"(\d+)", name)
    return [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts]


def _common(names: list[str]) -> list[str]:
    """The first parts that all names share."""
    common = []
    for parts in zip(*(name.split("/")[:-1] for name in names), strict=False):
        if len(set(parts)) > 1:
            break
        common.append(parts[0])
    return common


def scores_of(row: tuple[Record, ...]) -> dict[str, float]:
    """All scores of a row by name."""
    return {name: value for record in row for name, value in record.scores.items()}


def intervals_of(row: tuple[Record, ...]) -> dict[str, tuple[float, float]]:
    """All intervals of a row, by the name of the score."""
    return {name: ends for record in row for name, ends in record.intervals.items()}


def _lacks_interval(board: Board) -> bool:
    """Whether a headline over scenes, or a score with an interval in another row, has none."""
    return any(_lack_interval(rows) for rows in board.groups)


def _lack_interval(rows: Sequence[tuple[Record, ...]]) -> bool:
    """Like `_lacks_interval`, for the rows of one set of options."""
    records = [record for row in rows for record in row]
    wanted = {name for record in records for name in record.intervals}
    wanted |= {record.protocol.headline for record in records if record.scenes}
    quantities = quantities_of(records)
    wanted = {name for name in wanted if name.rpartition("/")[2] not in quantities}
    return any(wanted & scores_of(row).keys() - intervals_of(row).keys() for row in rows)


def _by_options(
    rows: Iterable[tuple[Record, ...]],
) -> dict[str, list[tuple[Record, ...]]]:
    """Rows grouped by their options; the rows without options come first."""
    groups: dict[str, list[tuple[Record, ...]]] = defaultdict(list)
    for row in rows:
        groups[row[0].protocol.options_text].append(row)
    return dict(sorted(groups.items()))


def _rows(records: Sequence[Record]) -> tuple[tuple[Record, ...], ...]:
    """The rows of a board, in order; a row is the records of one model and one set of options."""
    rows: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in sorted(records, key=lambda r: (r.model.name, r.protocol.name)):
        rows[record.protocol.options_text, record.model.name].append(record)
    groups = _by_options(map(tuple, rows.values())).values()
    return tuple(row for group in groups for row in _best_first(group))


def sorted_by(rows: Sequence[tuple[Record, ...]]) -> str:
    """The headline that most rows have."""
    headlines = sorted(r.protocol.headline for row in rows for r in row)
    return max(dict.fromkeys(headlines), key=headlines.count)


def _best_first(rows: Sequence[tuple[Record, ...]]) -> list[tuple[Record, ...]]:
    """Rows of one set of options, sorted by the first headline that all models have."""
    first = sorted_by(rows)

    def key(row: tuple[Record, ...]) -> tuple[bool, float, str]:
        value = scores_of(row).get(first)
        sign = 1 if lower_is_better(first, quantities_of(row)) else -1
        return value is None, sign * (value or 0.0), row[0].model.name

    return sorted(rows, key=key)
