"""Figures of a board as frozen dataclasses; the page and `paper` draw the same ones.

A package contributes the figures of a family of protocols by an entry point in `harness.figures`:
its name is the family's, its value is a function from a `Board` to figures. A board of a family
without such an entry point has `headlines`.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from harness import registry
from harness.catalogue import Moment
from harness.metrics import lower_is_better
from harness.records.leaderboard import Board, intervals_of, scores_of
from harness.records.speeds import Speed, front

Point = tuple[float, float]
Interval = tuple[float, float]

NO_SPEEDS: Mapping[str, Speed] = MappingProxyType({})

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Axis:
    """An axis: its label, and how its numbers are shown."""

    label: str
    percent: bool = False  # numbers are fractions, and shown in percent
    log: bool = False  # logarithmic, unless there is a 0
    ticks: tuple[str, ...] = ()  # labels at 0, 1, 2, ..., in place of numbers
    lower_is_better: bool = False


@dataclass(frozen=True)
class Marker:
    """A kind of marker on bars; `colour` and `shape` count from 0."""

    label: str
    colour: int
    shape: int


@dataclass(frozen=True)
class Bar:
    """The bar of one row of a board."""

    row: int  # of the board
    value: float
    interval: Interval | None = None
    marks: tuple[float | None, ...] = ()  # one for each marker of its `Bars`; None: no such score


@dataclass(frozen=True)
class Bars:
    """A bar for each row, with its interval and with markers of partial scores."""

    title: str
    axis: Axis
    bars: tuple[Bar, ...]
    markers: tuple[Marker, ...] = ()
    kind: Literal["bars"] = "bars"


@dataclass(frozen=True)
class Line:
    """The line of one row of a board, or of one model of several rows."""

    row: int
    points: tuple[Point, ...]
    labels: tuple[str, ...] = ()  # of the points, if they have any


@dataclass(frozen=True)
class Lines:
    """A line for each row."""

    title: str
    x: Axis
    y: Axis
    lines: tuple[Line, ...]
    kind: Literal["lines"] = "lines"


@dataclass(frozen=True)
class Dot:
    """One row of a board as a point."""

    row: int
    x: float
    y: float
    on_front: bool  # no other row is better in one respect and at least as good in the other


@dataclass(frozen=True)
class Dots:
    """A point for each row; a line joins those of the front."""

    title: str
    x: Axis
    y: Axis
    dots: tuple[Dot, ...]
    kind: Literal["dots"] = "dots"


@dataclass(frozen=True)
class Grid:
    """A table of numbers that colours show, too."""

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]  # None: not measured
    axis: Axis
    corner: str = ""  # says what rows and columns are
    by_column: bool = False  # each column has its own unit, and so its own scale of colours
    kind: Literal["grid"] = "grid"


Panel = Bars | Lines | Dots | Grid


@dataclass(frozen=True)
class Figure:
    """Panels side by side under one title."""

    name: str  # of its files: letters, digits and "-"
    title: str
    note: str  # one or two sentences that say what is drawn
    panels: tuple[Panel, ...]


def of_board(board: Board, speeds: Mapping[str, Speed] = NO_SPEEDS) -> list[Figure]:
    """The figures of a board: those that its family's package contributes, else `headlines`.

    Accuracy against speed and bytes comes last, where two models have a speed. A package that can't
    be imported is reported, and then the board has `headlines`.
    """
    return [*_of_family(board), *_trade_off(board, speeds)]


def _of_family(board: Board) -> list[Figure]:
    if board.family in registry.names("figures"):
        try:
            made: Callable[[Board], Iterable[Figure]] = registry.load("figures", board.family)
        except (ImportError, LookupError) as error:
            log.warning("%s", error)
        else:
            return [figure for figure in made(board) if figure.panels]
    return headlines(board)


def headlines(board: Board) -> list[Figure]:
    """One figure: for each headline a bar for each row, with its interval."""
    panels = tuple(filter(None, (bars(board, name) for name in board.headlines)))
    note = "Bars are the headline of each model; lines on bars are 95 % intervals."
    return [Figure("headlines", "Headlines", note, panels)] if panels else []


def bars(
    board: Board,
    headline: str,
    markers: Sequence[tuple[Marker, str]] = (),
    title: str = "",
) -> Bars | None:
    """Bars of a headline, in the order of the board; None if no row has it.

    Args:
        board: a board.
        headline: the name of a score.
        markers: kinds of markers, each with the name of the score that it shows.
        title: of the panel; the headline where empty.
    """
    found = []
    for number, row in enumerate(board.rows):
        scores = scores_of(row)
        if headline in scores:
            marks = tuple(scores.get(name) for _, name in markers)
            interval = intervals_of(row).get(headline)
            found.append(Bar(number, scores[headline], interval, marks))
    kinds = tuple(marker for marker, _ in markers)
    return Bars(title or headline, axis(board, headline), tuple(found), kinds) if found else None


def _trade_off(board: Board, speeds: Mapping[str, Speed]) -> Iterator[Figure]:
    """The main headline against speed on one core, and against the bytes of a vector."""
    headline = board.main_headline
    known = []
    for number, row in enumerate(board.rows):
        value, speed = scores_of(row).get(headline), speeds.get(row[0].model.name)
        if value is not None and speed and 1 in speed.per_second and row in board.groups[0]:
            known.append((number, value, speed))
    if len(known) < 2:
        return
    y = axis(board, headline)
    machines = sorted({speed.machine for _, _, speed in known})
    panels = (
        _dots("speed", Axis("patches a second, one core", log=True), y,
              [(row, speed.per_second[1], value) for row, value, speed in known]),
        _dots("size", Axis("bytes of a vector", log=True, lower_is_better=True), y,
              [(row, speed.bytes, value) for row, value, speed in known]),
    )  # fmt: skip
    note = (
        "The line joins the models than which no other is better in one respect and as good in the"
        f" other. Speeds were measured in one run on one machine ({', '.join(machines)})."
    )
    yield Figure("trade-off", "Accuracy against speed and bytes", note, panels)


def _dots(title: str, x: Axis, y: Axis, places: Sequence[tuple[int, float, float]]) -> Dots:
    signs = [-1 if each.lower_is_better else 1 for each in (x, y)]
    best = front([(signs[0] * a, signs[1] * b) for _, a, b in places])
    dots = tuple(Dot(*place, is_best) for place, is_best in zip(places, best, strict=True))
    return Dots(title, x, y, dots)


def of_trainings(curves: Sequence[Sequence[Moment]]) -> Figure:
    """Training curves of models: the mean loss, and FPR95 of held-out points where there are any.

    Args:
        curves: of each model; `Line.row` is its place here.
    """
    note = (
        "Losses of different methods are not comparable; the rate of false positives on held-out"
        " points is."
    )
    panels = (
        _curves("loss", Axis("mean loss since the previous moment", log=True),
                [[(one.step, one.loss) for one in curve] for curve in curves]),
        _curves("FPR95 of held-out points",
                Axis("false positive rate at 95 % recall, %", percent=True, log=True,
                     lower_is_better=True),
                [[(one.step, one.fpr95) for one in curve] for curve in curves]),
    )  # fmt: skip
    return Figure("training", "Training curves", note, tuple(p for p in panels if p.lines))


def _curves(title: str, y: Axis, curves: Iterable[Iterable[tuple[int, float | None]]]) -> Lines:
    points = [tuple((x, y) for x, y in curve if y is not None) for curve in curves]
    lines = tuple(Line(row, found) for row, found in enumerate(points) if found)
    return Lines(title, Axis("step"), y, lines)


def axis(board: Board, score: str, label: str = "") -> Axis:
    """The axis of a score of a board; logarithmic for rates of errors, which differ by factors."""
    is_fraction = score.rpartition("/")[2] not in board.quantities
    lower = lower_is_better(score, board.quantities)
    said = f"{label or score}{', %' if is_fraction else ''}"
    return Axis(said, percent=is_fraction, log=is_fraction and lower, lower_is_better=lower)
