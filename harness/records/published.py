"""Numbers that papers print, read from CSV files and compared with records.

A published number is no measurement of ours. It stands apart from records in every table, and is
compared with a score only if protocol, options, data, split and the score's name agree. A source
whose definition of a score differs, or is not known, gives the score a name that no protocol uses.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from harness.errors import InputError
from harness.files import folders, texts
from harness.records.record import Record
from harness.types import Quantity

FOLDER = "published"  # below the results
UNITS = ("percent", "fraction", "count", "px")  # "count" is a mean of counts, too
WITHIN = 0.3  # points by which a score may differ from a published one and still agree with it
PER_POINT = 100  # points in a fraction of 1
NEEDED = ("paper", "where", "method", "data", "score", "value", "unit")  # columns that are filled


@dataclass(frozen=True)
class PublishedNumber:
    """One printed number; its fields are the columns of the CSV files, in their order."""

    paper: str
    where: str  # table, figure or section of the paper
    method: str  # the row as printed
    model: str  # models of the same method, the published weights first, joined by blanks; or ""
    dim: str  # as printed, or ""
    protocol: str  # that measures the same task, or ""
    options: str  # of the protocol, as "ties=official"
    data: str  # our name of the data set if we have it; else as printed
    split: str  # our name of the split, a scene of it, or "" if the paper does not say
    score: str  # our name if the definitions agree; else the paper's own name
    value: str  # as printed
    unit: str  # one of UNITS
    trained_on: str  # data names joined by "+"; "" if nothing, or if the paper does not say
    remark: str  # remarks joined by "; "

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the models of the same method."""
        return tuple(self.model.split())

    @property
    def number(self) -> float:
        """The value as records have it: a fraction, or a quantity in its own unit."""
        value = texts.number(self.value)
        return value / PER_POINT if self.unit == "percent" else value

    @property
    def is_fraction(self) -> bool:
        """Whether the number is a fraction or a percentage, and differences are in points."""
        return self.unit in ("percent", "fraction")

    @property
    def shown(self) -> str:
        """The value as tables show it: percentages and quantities as printed."""
        return f"{PER_POINT * self.number:.2f}" if self.unit == "fraction" else self.value

    @property
    def source(self) -> str:
        """Where the number is printed."""
        return f"{self.paper}, {self.where}"

    def is_on(self, family: str, data: str, split: str) -> bool:
        """Whether a board of this family, data set and split tests what the number is of.

        The number may be of one scene of a split that joins scenes by "+". A split with remarks
        behind "@" is another one.
        """
        tested = (split, *([] if "@" in split else split.split("+")))
        same = (self.protocol.partition("/")[0], self.data) == (family, data)
        return same and self.split in tested


def read(folder: Path) -> list[PublishedNumber]:
    """The numbers in all CSV files of a folder, in the order of files and lines; none without it.

    Raises:
        InputError: if a line can't be read, or two lines are of one number; names file and line.
    """
    if not folder.is_dir():
        return []
    found: dict[tuple[str, ...], str] = {}  # identity -> the line that has it
    numbers = []
    for file in (one for one in folders.entries(folder) if one.suffix == ".csv"):
        for place, number in _lines(file):
            first = found.setdefault(_identity(number), place)
            if first != place:
                raise InputError(f"{place} is of the same number as {first}: remove one of them")
            numbers.append(number)
    return numbers


def verdicts(record: Record, numbers: Iterable[PublishedNumber]) -> Iterator[str]:
    """Sentences on how the scores of a record compare with published numbers of the same model.

    They are on the headline where a number of it is published, else on every score that has one. A
    fraction is within 0.3 points of the published one, or so many points above or below it; a
    quantity, so much above or below in its own unit. Sources that print one value share a sentence.
    Numbers of a model that was trained on other data are told, too; the sentence says so.
    """
    told = [one for one in numbers if _is_of(one, record)]
    headline = [one for one in told if one.score == record.protocol.headline]
    alike: dict[tuple[str, ...], list[PublishedNumber]] = {}
    for one in headline or told:
        alike.setdefault((one.score, one.value, one.trained_on), []).append(one)
    for same in alike.values():
        yield _verdict(record, same)


def _is_of(number: PublishedNumber, record: Record) -> bool:
    """Whether a number is of the model and of a score of a record, by the same definition."""
    protocol, one = record.protocol, number
    return (
        one.is_on(protocol.name.partition("/")[0], record.data.name, record.data.split)
        and record.model.name in one.models
        and one.protocol == protocol.name
        and one.options == protocol.options_text
        and one.score in record.scores
        and is_like(one, protocol.quantities)
    )


def is_like(number: PublishedNumber, quantities: Mapping[str, Quantity]) -> bool:
    """Whether a number is a fraction or a quantity as the scores of its name are.

    Args:
        number: its score has a name of ours.
        quantities: the scores that are no fractions, by the last part of their names.
    """
    return number.is_fraction is not (_last(number.score) in quantities)


def _verdict(record: Record, same: Sequence[PublishedNumber]) -> str:
    """The sentence on one score and one published value, with all its sources."""
    one = same[0]
    measured, published = record.scores[one.score], one.number
    if one.is_fraction:
        points = PER_POINT * (measured - published)
        shown = f"{PER_POINT * measured:.2f}"
        agrees = abs(round(points, 6)) <= WITHIN
        said = f"within {WITHIN} points of" if agrees else _side(f"{points:+.2f}", " points")
    else:
        quantity = record.protocol.quantities[_last(one.score)]
        shown = f"{measured:.{quantity.decimals}f}"
        said = _side(f"{measured - published:+.{quantity.decimals}f}")
    notes = [*(each.source for each in same), *remarks(same)]
    learned = record.model.trained_on
    if one.trained_on and {*one.trained_on.split("+")} != {*(learned or [])}:
        notes.append(f"trained on {one.trained_on}, not on the training data of this model")
    elif learned and not one.trained_on:
        notes.append("on which training data is not stated")
    value = f"the published {one.shown} ({'; '.join(notes)})"
    return f"{record.model.name}, {one.score}: {shown}, {said} {value}"


def remarks(numbers: Iterable[PublishedNumber]) -> list[str]:
    """Every remark on some numbers, once."""
    return [*dict.fromkeys(each for one in numbers for each in one.remark.split("; ") if each)]


def _side(difference: str, unit: str = "") -> str:
    """A signed difference in words: "12 above"."""
    return f"{difference[1:]}{unit} {'above' if difference[0] == '+' else 'below'}"


def _last(score: str) -> str:
    """The part of a score's name that says of which kind it is."""
    return score.rpartition("/")[2]


def _lines(file: Path) -> Iterator[tuple[str, PublishedNumber]]:
    """Each number of a file, with the name of its file and line."""
    columns = [field.name for field in fields(PublishedNumber)]
    rows = csv.reader(io.StringIO(texts.read_table(file), newline=""), strict=True)
    try:
        for row in rows:
            place = f"{file}, line {rows.line_num}"
            if rows.line_num == 1:
                if row != columns:
                    raise InputError(f"{place}: the columns are {row}; {columns} are wanted")
                continue
            if len(row) != len(columns):
                raise InputError(f"{place} has {len(row)} cells; {len(columns)} are wanted")
            number = PublishedNumber(*row)
            if fault := _fault(number):
                raise InputError(f"{place}: {fault}")
            yield place, number
    except csv.Error as error:
        raise InputError(f"{file}, line {rows.line_num} is no CSV: {error}") from error
    if rows.line_num == 0:
        raise InputError(f"{file} is empty; a first line with the columns {columns} is wanted")


def _fault(number: PublishedNumber) -> str:
    """What is wrong with a number; "" if nothing is."""
    for name in NEEDED:
        if not getattr(number, name):
            return f"{name} is empty"
    if any(text != text.strip() for text in astuple(number)):
        return "a cell begins or ends with a blank"
    if number.unit not in UNITS:
        return f"unit is {number.unit!r}; {', '.join(UNITS)} are known"
    try:
        value = number.number
    except InputError as error:
        return f"value: {error}"
    if not 0 <= value < float("inf") or (number.is_fraction and value > 1):
        return f"value is {number.value} {number.unit}, which can't be"
    return ""


def _identity(number: PublishedNumber) -> tuple[str, ...]:
    """All that tells a number from others, without the value."""
    one = number
    task = (one.protocol, one.options, one.data, one.split, one.score)
    return one.paper, one.where, one.method, one.dim, one.trained_on, *task
