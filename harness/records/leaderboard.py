"""Leaderboards: a CSV file and a Markdown table for each protocol, data set and split."""

import csv
import io
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from harness.errors import FileMissingError, InputError
from harness.escape import csv_cell, markdown
from harness.files import atomic
from harness.metrics import lower_is_better
from harness.records import markdown_table
from harness.records import record as results
from harness.records.record import Record
from harness.types import Quantity

MISSING = "—"
SEEN, UNKNOWN, WARNED = "†", "?", "‡"
MEANINGS = {
    SEEN: "trained on data that this table tests: not comparable.",
    UNKNOWN: "nobody says what it was trained on, or by a name that no protocol knows.",
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


Texts = Mapping[str, str]  # by the end of a file's name, one of ENDS
ENDS = (".csv", ".md")
FACTS = ("model", "dim", "distance", "trained_on_tested_data", "weights", "revision")


@dataclass(frozen=True)
class Kind:
    """Tables that a board may have, as a CSV file and as a page."""

    name: str  # of the files
    texts_of: Callable[[Board], Texts]
    head: str  # how the first line of the CSV file begins


def write(root: Path, kinds: Sequence[Kind] | None = None) -> list[Path]:
    """Make every table below a folder of results again; the same records, the same bytes.

    Each is kept beside its records, as `leaderboard.csv` and `leaderboard.md`; one that has no
    records any more is removed. A file that is no such table is neither removed nor replaced.

    Args:
        root: the folder of results.
        kinds: of tables; leaderboards where None.

    Raises:
        FileMissingError: if there is no record; then nothing is touched.
        InputError: if records of one table can't be compared, or a file of someone else is in the
            place of a table; the other tables are written.
    """
    records = results.load(root)
    if not records:
        raise FileMissingError(f"there is no record in {root}; `harness eval` writes them")
    kinds = kinds or [KIND]
    texts: dict[Path, str] = {}
    kept: set[Path] = set()
    faults: dict[str, None] = {}  # in order; a faulty board is one fault of all its tables
    for key, group in _groups(records).items():
        folder = results.folder_of(root, *key)
        for kind in kinds:
            try:
                made = kind.texts_of(_board(key, group))
            except ValueError as error:
                faults[f"{folder}: {error}"] = None
                kept |= set(folder.glob(f"{kind.name}.*"))
                continue
            texts |= {folder / f"{kind.name}{end}": text for end, text in made.items()}
    ours = {*_tables(root, kinds)}
    for file in ours - texts.keys() - kept:
        file.unlink()
    written = []
    for file, text in texts.items():
        if file.exists() and file not in ours:
            faults[f"{file} is no table that the harness wrote, and stays: move it away"] = None
            continue
        atomic.write_text(file, text)
        written.append(file)
    if faults:
        raise InputError("; ".join(faults))
    return written


def _tables(root: Path, kinds: Iterable[Kind]) -> Iterator[Path]:
    """Tables that were written here, known by their places and their first lines.

    A file behind a link is left out: it belongs to another place.
    """
    for kind in kinds:
        for end in ENDS:
            for file in root.glob(f"*/*/*/{kind.name}{end}"):
                family, data, split, _ = file.relative_to(root).parts
                title = f"# {heading(Board(family, data, split, ()))}"
                begins = {".csv": kind.head, ".md": title}[end]
                linked = any(one.is_symlink() for one in (file, *file.parents[:3]))
                ours = family != results.PUBLISHED and not linked
                if ours and file.is_file() and _begins(file, begins):
                    yield file


def _begins(file: Path, text: str) -> bool:
    wanted = text.encode()
    with file.open("rb") as stream:
        return stream.read(len(wanted)) == wanted


def texts_of(board: Board) -> Texts:
    """What the files of a leaderboard hold."""
    return {".csv": to_csv(board), ".md": to_markdown(board)}


KIND = Kind("leaderboard", texts_of, ",".join(FACTS[:4]))


def boards(records: Iterable[Record]) -> list[Board]:
    """Records sorted into boards; those of incomplete data enter none.

    Raises:
        InputError: if records of one board can't be compared.
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
    bounds = [name for name in board.columns if any(name in _intervals(row) for row in board.rows)]
    ends = [f"{name} {end}" for name in bounds for end in ("low", "high")]
    protocols = sorted({record.protocol.name for row in board.rows for record in row})
    hashes = [f"{name} data_sha256" for name in protocols]
    lines.writerow(map(csv_cell, [*FACTS, *board.columns, *ends, *hashes]))
    for row in board.rows:
        model, scores, intervals = row[0].model, _scores(row), _intervals(row)
        seen = {SEEN: "yes", UNKNOWN: "unknown"}.get(mark(row), "no")
        weights = model.weights or MISSING
        name = csv_cell(model.name)
        known = (name, model.dim, model.distance, seen, weights, model.revision)
        values = [repr(scores[name]) if name in scores else MISSING for name in board.columns]
        for name in bounds:
            values += map(repr, intervals[name]) if name in intervals else (MISSING, MISSING)
        data = {record.protocol.name: record.data.sha256 for record in row}
        hashed = [data.get(name, MISSING) for name in protocols]
        lines.writerow([*known, *values, *hashed])
    return out.getvalue()


def to_markdown(board: Board) -> str:
    """A page to read: the headlines with their intervals, then every breakdown.

    Fractions are in percent. Quantities of one scene stand together, since no two are alike.
    """
    lines = [f"# {heading(board)}", ""]
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
        lines += ["", f"## {markdown(title)}", "", *_table(board, columns)]
    return "\n".join([*lines, ""])


def heading(board: Board) -> str:
    """What a board is of, as Markdown."""
    family, data, split = map(markdown, (board.family, board.data, board.split))
    return f"{family} on {data}, split {split}"


def headline_table(board: Board) -> list[str]:
    """The headlines of every model, fractions in percent, with remarks, as lines of Markdown."""
    lines = _table(board, board.headlines)
    lines += footnotes({mark(row) for row in board.rows})
    said = dict.fromkeys(one for row in board.rows for r in row for one in r.data.unchecked)
    lines += [line for one in sorted(said) for line in ("", f"Not checked: {markdown(one)}")]
    return [*lines, *_warnings(board)]


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
            about[warning].append(markdown(row[0].model.name))
    for warning, models in about.items():
        whose = "" if len(models) == len(board.rows) else f"{', '.join(models)}: "
        yield from ("", f"{WARNED} {whose}{markdown(warning)}")


def _table(board: Board, columns: list[str]) -> list[str]:
    common = "/".join(_common(columns)) if len(columns) > 1 else ""
    heads = [markdown(name.removeprefix(f"{common}/")) for name in columns]
    rows = []
    for row in board.rows:
        warned = WARNED if any(record.warnings for record in row) else ""
        name = f"{markdown(row[0].model.name)} {mark(row)}{warned}".strip()
        cells = [_cell(row, column) for column in columns]
        rows.append([name, row[0].model.size, *cells])
    return [*markdown_table.lines(["model", "dim", *heads], rows, "llr")]


def mark(row: Sequence[Record]) -> str:
    """The footnote mark for a model's training data, one of MEANINGS; "" where none is needed."""
    if any(record.data.seen_in_training for record in row):
        return SEEN
    return UNKNOWN if any(map(is_unknown, row)) else ""


def is_unknown(record: Record) -> bool:
    """Whether a model may have seen data that the record does not name."""
    return record.model.trained_on is None or bool(record.data.unknown_in_training)


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
        InputError: if not; says which two records differ, and in what.
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
        mine, its = one.model.identity, row.model.identity
        pairs += [(row, f"model {field}", mine[field], its[field]) for field in mine]
        for other, what, a, b in pairs:
            must_agree(one, other, what, a, b)
    return records


def must_agree(one: Record, other: Record, what: str, a: object, b: object) -> None:
    """Refuse two records that differ in something: `a` is that of the first, `b` of the other.

    Raises:
        InputError: if they do; says in what.
    """
    if a != b:
        raise InputError(
            f"{one.model.name} ({one.protocol.name}) and {other.model.name}"
            f" ({other.protocol.name}) can't share a table on {one.data.name}, split"
            f" {one.data.split}: {what} is {a} and {b}; remove the record that is out of date, and"
            " evaluate again"
        )
