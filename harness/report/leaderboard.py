"""Leaderboards: a CSV file and a Markdown table for each protocol, data set and split."""

import csv
import io
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from harness import atomic, results
from harness.metrics import lower_is_better
from harness.results import Record
from harness.types import Quantity

MISSING = "—"
SEEN, UNKNOWN, WARNED = "†", "?", "‡"
MEANINGS = {
    SEEN: "trained on data that this table tests: not comparable.",
    UNKNOWN: "nobody says what it was trained on.",
}


@dataclass(frozen=True)
class Board:
    """All complete records of one family of protocols on one split of one data set."""

    family: str
    data: str
    split: str
    rows: tuple[tuple[Record, ...], ...]  # the records of a model, for each model; best first

    @property
    def columns(self) -> list[str]:
        """Every score that some record has: the headlines first, then in natural order."""
        names = {name for row in self.rows for record in row for name in record.scores}
        return self.headlines + sorted(names - set(self.headlines), key=_natural)

    @property
    def headlines(self) -> list[str]:
        """The score that sums up each of the board's protocols."""
        return sorted({record.protocol.headline for row in self.rows for record in row})

    @property
    def quantities(self) -> Mapping[str, Quantity]:
        """Kinds of its scores that are no fractions, by the last part of their names."""
        return quantities_of([record for row in self.rows for record in row])


ENDS = (".csv", ".md")
Texts = Mapping[str, str]  # by the end of a file's name, one of ENDS


def write(root: Path, more: Mapping[str, Callable[[Board], Texts]] | None = None) -> list[Path]:
    """Make every table below a folder of results again; the same records, the same bytes.

    Each is kept beside its records, as `leaderboard.csv` and `leaderboard.md`; one that has no
    records any more is removed.

    Args:
        root: the folder of results.
        more: tables that boards have besides, by the name of their files.

    Raises:
        ValueError: if records of one table can't be compared; the other tables are written.
    """
    kinds = {"leaderboard": texts_of, **(more or {})}
    texts: dict[Path, str] = {}
    kept: set[Path] = set()
    faults: dict[str, None] = {}  # in order; a faulty board is one fault of all its tables
    for key, records in _groups(results.load(root)).items():
        for kind, make in kinds.items():
            try:
                folder = results.folder_of(root, *key)
                made = make(_board(key, records))
            except ValueError as error:
                faults[str(error)] = None
                kept |= set(root.joinpath(*key).glob(f"{kind}.*"))
                continue
            texts |= {folder / f"{kind}{end}": text for end, text in made.items()}
    for file in {*_tables(root, kinds)} - texts.keys() - kept:
        file.unlink()
    for file, text in texts.items():
        atomic.write_text(file, text)
    if faults:
        raise ValueError("; ".join(faults))
    return list(texts)


def _tables(root: Path, kinds: Iterable[str]) -> Iterator[Path]:
    """Files where tables are kept, and nowhere else: what others put there is theirs."""
    for kind in kinds:
        for end in ENDS:
            for file in root.glob(f"*/*/*/{kind}{end}"):
                if file.is_file() and file.relative_to(root).parts[0] != results.PUBLISHED:
                    yield file


def texts_of(board: Board) -> Texts:
    """What the files of a leaderboard hold."""
    return {".csv": to_csv(board), ".md": to_markdown(board)}


def boards(records: Iterable[Record]) -> list[Board]:
    """Records sorted into boards; those of incomplete data enter none.

    Raises:
        ValueError: if records of one board can't be compared.
    """
    return [_board(key, group) for key, group in _groups(records).items()]


def _groups(records: Iterable[Record]) -> dict[tuple[str, str, str], list[Record]]:
    groups: dict[tuple[str, str, str], list[Record]] = defaultdict(list)
    for record in records:
        if record.data.complete:
            family = record.protocol.name.partition("/")[0]
            groups[family, record.data.name, record.data.split].append(record)
    return dict(sorted(groups.items()))


def _board(key: tuple[str, str, str], records: list[Record]) -> Board:
    return Board(*key, rows=_rows(_comparable(records)))


def to_csv(board: Board) -> str:
    """Full precision, one line a model; "—" is a score that was not measured."""
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    facts = ("model", "dim", "distance", "trained_on_tested_data", "weights", "fingerprint")
    bounds = [name for name in board.columns if any(name in _intervals(row) for row in board.rows)]
    ends = [f"{name} {end}" for name in bounds for end in ("low", "high")]
    protocols = sorted({record.protocol.name for row in board.rows for record in row})
    hashes = [f"{name} data_sha256" for name in protocols]
    lines.writerow([*facts, *board.columns, *ends, *hashes])
    for row in board.rows:
        model, scores, intervals = row[0].model, _scores(row), _intervals(row)
        seen = {SEEN: "yes", UNKNOWN: "unknown"}.get(mark(row), "no")
        known = (model.name, model.dim, model.distance, seen, model.weights or MISSING)
        values = [repr(scores[name]) if name in scores else MISSING for name in board.columns]
        for name in bounds:
            values += map(repr, intervals[name]) if name in intervals else (MISSING, MISSING)
        data = {record.protocol.name: record.data.sha256 for record in row}
        hashed = [data.get(name, MISSING) for name in protocols]
        lines.writerow([*known, model.fingerprint or MISSING, *values, *hashed])
    return out.getvalue()


def to_markdown(board: Board) -> str:
    """A page to read: the headlines with their intervals, then every breakdown.

    Fractions are in percent. Quantities of one scene stand together, since no two are alike.
    """
    lines = [f"# {board.family} on {board.data}, split {board.split}", ""]
    legend = []
    if any(name.rpartition("/")[2] not in board.quantities for name in board.columns):
        legend.append("percent")
    measured = {name for row in board.rows for name in _intervals(row)}
    counted = {name for name in measured if name.rpartition("/")[2] in board.quantities}
    if measured - counted:
        legend.append("in brackets the 95 % interval over scenes, or cases, like these")
    if _lacks_interval(board):
        legend.append("without brackets: scenes too few, or too many at 0 or 100, for an interval")
    if counted:
        legend.append("in brackets the middle 95 % of runs")
    if legend:
        said = "; ".join(legend)
        lines += [f"{said[0].upper()}{said[1:]}.", ""]
    lines += headline_table(board)
    details: dict[str, list[str]] = defaultdict(list)
    for name in board.columns[len(board.headlines) :]:
        first, *others = name.split("/")  # "retrieval/easy/map@100", "liberty/fpr95", or "map8"
        title = f"{first}, {others[0]}" if len(others) > 1 else "".join(others) or "overall"
        details[first if name.rpartition("/")[2] in board.quantities else title].append(name)
    sums = {name.partition("/")[0] for name in board.headlines}
    for title, columns in details.items():
        columns.sort(key=lambda name: name.partition("/")[0] in sums)  # "mean/ap" comes last
        lines += ["", f"## {title}", "", *_table(board, columns)]
    return "\n".join([*lines, ""])


def headline_table(board: Board) -> list[str]:
    """The headlines of every model, fractions in percent, as lines of Markdown."""
    lines = _table(board, board.headlines)
    return [*lines, *footnotes({mark(row) for row in board.rows}), *_warnings(board)]


def footnotes(marks: Set[str]) -> list[str]:
    """What marks mean, as lines of Markdown below a table."""
    return [
        line
        for sign, meaning in MEANINGS.items()
        if sign in marks
        for line in ("", f"{sign} {meaning}")
    ]


def _warnings(board: Board) -> Iterator[str]:
    """Each warning of the records as lines of Markdown, with the models that it is about."""
    about: dict[str, list[str]] = defaultdict(list)
    for row in board.rows:
        for warning in dict.fromkeys(text for record in row for text in record.warnings):
            about[warning].append(row[0].model.name)
    for warning, models in about.items():
        whose = "" if len(models) == len(board.rows) else f"{', '.join(models)}: "
        yield from ("", f"{WARNED} {whose}{warning}")


def _table(board: Board, columns: list[str]) -> list[str]:
    common = "/".join(_common(columns)) if len(columns) > 1 else ""
    heads = [name.removeprefix(f"{common}/") for name in columns]
    lines = [f"| model | dim | {' | '.join(heads)} |", "|---" * 2 + "|---:" * len(columns) + "|"]
    for row in board.rows:
        warned = WARNED if any(record.warnings for record in row) else ""
        name = f"{row[0].model.name} {mark(row)}{warned}".strip()
        cells = [_cell(row, column) for column in columns]
        lines.append(f"| {name} | {row[0].model.size} | {' | '.join(cells)} |")
    return lines


def mark(row: Sequence[Record]) -> str:
    """What is to be said of a model's training beside its name; "" where it is above suspicion."""
    if any(record.data.seen_in_training for record in row):
        return SEEN
    return UNKNOWN if row[0].model.trained_on is None else ""


def _cell(row: tuple[Record, ...], name: str) -> str:
    scores, intervals = _scores(row), _intervals(row)
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
    """Kinds of their scores that are no fractions, by the last part of their names."""
    return {name: one for record in records for name, one in record.protocol.quantities.items()}


def _natural(name: str) -> list[tuple[bool, int, str]]:
    """map@500 before map@1000."""
    parts = re.split(r"(\d+)", name)
    return [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts]


def _common(names: list[str]) -> list[str]:
    """Parts that all names begin with."""
    common = []
    for parts in zip(*(name.split("/")[:-1] for name in names), strict=False):
        if len(set(parts)) > 1:
            break
        common.append(parts[0])
    return common


def _scores(row: tuple[Record, ...]) -> dict[str, float]:
    return {name: value for record in row for name, value in record.scores.items()}


def _intervals(row: tuple[Record, ...]) -> dict[str, tuple[float, float]]:
    return {name: ends for record in row for name, ends in record.intervals.items()}


def _lacks_interval(board: Board) -> bool:
    """Whether a score has no interval though it sums up scenes, or though another model has one."""
    wanted = {name for row in board.rows for name in _intervals(row)}
    wanted |= {record.protocol.headline for row in board.rows for record in row if record.scenes}
    wanted = {name for name in wanted if name.rpartition("/")[2] not in board.quantities}
    return any(wanted & _scores(row).keys() - _intervals(row).keys() for row in board.rows)


def _rows(records: list[Record]) -> tuple[tuple[Record, ...], ...]:
    """Records of one model together; best first by the first headline that all models have."""
    models: dict[str, list[Record]] = defaultdict(list)
    for record in sorted(records, key=lambda r: (r.model.name, r.protocol.name)):
        models[record.model.name].append(record)
    rows = [tuple(row) for row in models.values()]
    headlines = [r.protocol.headline for row in rows for r in row]
    first = max(dict.fromkeys(headlines), key=headlines.count)

    def key(row: tuple[Record, ...]) -> tuple[bool, float, str]:
        value = _scores(row).get(first)
        sign = 1 if lower_is_better(first, quantities_of(row)) else -1
        return value is None, sign * (value or 0.0), row[0].model.name

    return tuple(sorted(rows, key=key))


def _comparable(records: list[Record]) -> list[Record]:
    """The same records, if behind each name stand one definition, one set of data, one model.

    Raises:
        ValueError: if not; says which two records differ, and in what.
    """
    tasks: dict[str, Record] = {}
    models: dict[str, Record] = {}
    judges: dict[str, set[str]] = defaultdict(set)  # libraries by the name of the protocol
    for one in records:
        judges[one.protocol.name] |= {*one.protocol.libraries}
    for one in records:
        task = tasks.setdefault(one.protocol.name, one)
        row = models.setdefault(one.model.name, one)
        pairs = [
            (task, "data", one.data.sha256, task.data.sha256),
            (task, "protocol version", one.protocol.version, task.protocol.version),
        ]
        versions, its_versions = one.environment.libraries, task.environment.libraries
        pairs += [
            (task, f"version of {name}", versions.get(name), its_versions.get(name))
            for name in sorted(judges[one.protocol.name])
        ]
        for part, mine, its in (
            ("model", one.model, row.model),
            ("environment", one.environment, row.environment),
        ):
            both = zip(mine.model_dump().items(), its.model_dump().values(), strict=True)
            pairs += [(row, f"{part} {field}", a, b) for (field, a), b in both]
        for other, what, a, b in pairs:
            must_agree(one, other, what, a, b)
    return records


def must_agree(one: Record, other: Record, what: str, a: object, b: object) -> None:
    """Refuse two records that differ in something: `a` is that of the first, `b` of the other.

    Raises:
        ValueError: if they do; says in what.
    """
    if a != b:
        raise ValueError(
            f"{one.model.name} ({one.protocol.name}) and {other.model.name}"
            f" ({other.protocol.name}) can't share a table on {one.data.name}, split"
            f" {one.data.split}: {what} is {a} and {b}; remove the record that is out of date, and"
            " evaluate again"
        )
