"""Draws figures at the width of a paper's column, as SVG and PNG.

One file for each panel, so that a paper can arrange them. Colours are those of Okabe and Ito, which
colour-blind readers can distinguish; lines also differ in their dashes and markers.
"""

import io
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

from harness import extras
from harness.catalogue import Moment
from harness.escape import visible
from harness.files import atomic
from harness.records.leaderboard import Board
from harness.records.speeds import Speed
from harness.report.figures import (
    NO_SPEEDS,
    Axis,
    Bars,
    Dots,
    Figure,
    Grid,
    Lines,
    Panel,
    Point,
    of_board,
    of_trainings,
)

COLUMN, PAGE = 3.3, 6.9  # inches: one column, and both columns, of most papers
WIDE = 4  # most columns of a table that fits into one column
FORMS = ("svg", "png")
MARKED = 10  # a line of many more points has a marker at about each of as many
LINES, BARS = 8, 24  # most rows of a panel, if no models are chosen
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#56B4E9", "#E69F00", "#666666")
MARKERS, DASHES = ("o", "s", "^", "D", "v", "X", "P", ">"), ("-", "--", "-.", ":")
SHAPES = ("o", "^", "s")  # of markers on bars
BAR, INK, FRONT = "#C9D3DC", "#1B1F24", "#D55E00"
STYLE: Any = {
    "font.family": "sans-serif",
    "font.size": 7,
    "axes.titlesize": 8,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.alpha": 0.3,
    "grid.linewidth": 0.5,
    "lines.linewidth": 1,
    "lines.markersize": 3,
    "legend.fontsize": 6,
    "legend.frameon": False,
    "text.usetex": False,
    "text.parse_math": False,  # a name with "$" is no formula
    "svg.fonttype": "none",
    "svg.hashsalt": "report",
}


def write(
    board: Board,
    folder: Path,
    models: Collection[str] = (),
    speeds: Mapping[str, Speed] = NO_SPEEDS,
) -> Iterator[Path]:
    """Yields the files of a board's figures, one for each panel and form, as they are written.

    Args:
        board: a board.
        folder: where the files go, below folders of the family, the data and the split.
        models: names of the models that are drawn; the best where empty.
        speeds: of models, from `speeds.read`.
    """
    rows = [(row[0].model.name, row[0].protocol.options_text) for row in board.rows]
    home = folder.joinpath(board.family, board.data, board.split)
    yield from _written(of_board(board, speeds), home, rows, models)


def write_trainings(
    curves: Mapping[str, Sequence[Moment]], folder: Path, models: Collection[str] = ()
) -> Iterator[Path]:
    """Yields the files of the training curves, one for each panel and form, as they are written.

    Args:
        curves: of models, by name; those of the lowest final FPR95 are the best.
        folder: where the files go, below a folder "training".
        models: names of the models that are drawn; the best where empty.
    """
    if drawn := {name: curve for name, curve in curves.items() if curve}:
        order = sorted(drawn, key=lambda name: (_last_fpr95(drawn[name]), name))
        figure = of_trainings([drawn[name] for name in order])
        yield from _written([figure], folder / "training", [(name, "") for name in order], models)


def _last_fpr95(curve: Sequence[Moment]) -> float:
    """FPR95 at the end of a training; infinite where no point was held out."""
    return next((one.fpr95 for one in reversed(curve) if one.fpr95 is not None), math.inf)


def _written(
    figures: Iterable[Figure],
    home: Path,
    rows: Sequence[tuple[str, str]],
    models: Collection[str],
) -> Iterator[Path]:
    """Yields the files of figures, written to a folder; rows are models with their options."""
    with extras.needed("figures for papers"):
        import matplotlib
    matplotlib.use("agg")
    names: Counter[str] = Counter()
    for figure in figures:
        for panel in figure.panels:
            name = "-".join(filter(None, (figure.name, _plain(panel.title))))
            names[name] += 1
            name += f"-{names[name]}" if names[name] > 1 else ""  # titles may be alike
            for form, drawn in zip(FORMS, _drawn(panel, _Shown(rows, panel, models)), strict=True):
                file = home / f"{name}.{form}"
                with atomic.writing(file) as stream:
                    stream.write(drawn)
                yield file


def _plain(title: str) -> str:
    """A title as a part of a file's name."""
    return re.sub(r"[^\w.+]+", "-", title).strip("-")


def _drawn(panel: Panel, shown: "_Shown") -> Iterator[bytes]:
    """The panel as a file of each form; the same panel gives the same bytes."""
    import matplotlib
    from matplotlib import pyplot

    with matplotlib.rc_context(STYLE):
        figure, axes = pyplot.subplots(layout="constrained")
        try:
            DRAW[panel.kind](figure, axes, shown, panel)
            axes.set_title(visible(panel.title))
            for form in FORMS:
                stream = io.BytesIO()
                metadata = {"Date": None} if form == "svg" else {"Software": None}
                figure.savefig(stream, format=form, dpi=300, metadata=metadata)
                yield stream.getvalue()
        finally:
            pyplot.close(figure)


class _Shown:
    """Which rows a panel shows, and their names."""

    def __init__(
        self, rows: Sequence[tuple[str, str]], panel: Panel, models: Collection[str]
    ) -> None:
        self._rows, self.chosen = rows, models  # rows are models with their options
        self._most = LINES if panel.kind == "lines" else BARS

    def name(self, row: int) -> str:
        """The model of a row, with its options."""
        model, options = self._rows[row]
        return visible(f"{model} ({options})" if options else model)

    def model(self, row: int) -> str:
        """The model of a row."""
        return visible(self._rows[row][0])

    def is_chosen(self, row: int) -> bool:
        """Whether the model of a row was chosen by the user."""
        return self._rows[row][0] in self.chosen

    def of(self, rows: Sequence[Any]) -> list[Any]:
        """Those of some bars or lines that are shown; the first ones if no models are chosen."""
        if not self.chosen:
            return [*rows[: self._most]]
        return [one for one in rows if self.is_chosen(one.row)]


def _bars(figure: Any, axes: Any, shown: _Shown, panel: Bars) -> None:
    bars = shown.of(panel.bars)
    factor = _factor(panel.axis)
    figure.set_size_inches(COLUMN, 0.75 + 0.14 * len(bars))
    places = range(len(bars))
    if _is_log(panel.axis, [bar.value for bar in bars]):
        axes.plot([factor * bar.value for bar in bars], places, "o", color=COLOURS[0])
        _make_log(axes, "x")
    else:
        axes.barh(places, [factor * bar.value for bar in bars], color=BAR, height=0.75)
    for place, bar in enumerate(bars):
        if bar.interval:
            ends = [factor * end for end in bar.interval]
            axes.plot(ends, [place, place], "-|", color=INK, linewidth=0.7, markersize=3)
    for number, kind in enumerate(panel.markers):
        found = [(i, bar.marks[number]) for i, bar in enumerate(bars)]
        there = [(i, factor * value) for i, value in found if value is not None]
        axes.plot(
            [value for _, value in there],
            [place for place, _ in there],
            SHAPES[kind.shape % len(SHAPES)],
            color=COLOURS[kind.colour],
            markeredgecolor="white",
            markeredgewidth=0.3,
            label=visible(kind.label),
        )
    axes.set_yticks([*places], [shown.name(bar.row) for bar in bars])
    axes.set_ylim(len(bars) - 0.4, -0.6)
    axes.set_xlabel(visible(panel.axis.label))
    axes.grid(axis="x")
    axes.set_axisbelow(True)
    if panel.markers:
        figure.legend(loc="outside lower center", ncols=3, handletextpad=0.2, columnspacing=1)


def _lines(figure: Any, axes: Any, shown: _Shown, panel: Lines) -> None:
    lines = shown.of(panel.lines)
    figure.set_size_inches(COLUMN, 2.6 + 0.12 * (len(lines) // 2))
    for line, colour, marker, dash in zip(
        lines, cycle(COLOURS), cycle(MARKERS), _dashes(), strict=False
    ):
        x = [_factor(panel.x) * x for x, _ in line.points]
        y = [_factor(panel.y) * y for _, y in line.points]
        has_labels = len(line.labels) > 1
        name = shown.model(line.row) if has_labels else shown.name(line.row)
        apart = max(1, len(x) // MARKED)
        axes.plot(x, y, dash, color=colour, marker=marker, markevery=apart, label=_legend(name))
        for label, *at in zip(line.labels, x, y, strict=True) if has_labels else ():
            axes.annotate(visible(label), at, (3, -6), textcoords="offset points", fontsize=5)
    _axes(axes, panel, [point for line in lines for point in line.points])
    if lines:
        figure.legend(loc="outside lower center", ncols=2)


def _dots(figure: Any, axes: Any, shown: _Shown, panel: Dots) -> None:
    figure.set_size_inches(COLUMN, 2.6)
    points = [(_factor(panel.x) * dot.x, _factor(panel.y) * dot.y) for dot in panel.dots]
    axes.plot(*zip(*points, strict=True), "o", color=BAR, markeredgecolor=INK, markeredgewidth=0.3)
    best = sorted(point for point, dot in zip(points, panel.dots, strict=True) if dot.on_front)
    axes.plot(*zip(*best, strict=True), "o--", color=FRONT, linewidth=0.8)
    for point, dot in zip(points, panel.dots, strict=True):
        if dot.on_front or shown.is_chosen(dot.row):
            axes.annotate(
                shown.name(dot.row), point, (3, 3), textcoords="offset points", fontsize=5
            )
    _axes(axes, panel, [(dot.x, dot.y) for dot in panel.dots])


def _grid(figure: Any, axes: Any, shown: _Shown, panel: Grid) -> None:
    import numpy as np

    factor = _factor(panel.axis)
    values = np.array(
        [[np.nan if value is None else factor * value for value in row] for row in panel.values]
    )
    width = PAGE if len(panel.columns) > WIDE else COLUMN
    figure.set_size_inches(width, 0.6 + 0.18 * len(panel.rows))
    low, high = np.nanmin(values, axis=0), np.nanmax(values, axis=0)
    if not panel.by_column:
        low, high = np.full_like(low, np.nanmin(low)), np.full_like(high, np.nanmax(high))
    spread = np.where(high > low, high - low, 1)
    axes.imshow((values - low) / spread, cmap="Blues", vmin=0, vmax=2.2, aspect="auto")
    for (row, column), value in np.ndenumerate(values):
        digits = 2 if panel.axis.percent else (3 if abs(value) < 1000 else 0)
        text = "—" if np.isnan(value) else f"{value:,.{digits}f}".removesuffix(".000")
        axes.text(column, row, text, ha="center", va="center", fontsize=6)
    axes.set_xticks(range(len(panel.columns)), [*map(visible, panel.columns)])
    axes.set_yticks(range(len(panel.rows)), [*map(visible, panel.rows)])
    axes.tick_params(length=0)
    axes.set_xlabel(visible(panel.axis.label))


DRAW: Mapping[str, Any] = {"bars": _bars, "lines": _lines, "dots": _dots, "grid": _grid}


def _axes(axes: Any, panel: Lines | Dots, points: Sequence[Point]) -> None:
    """Labels, scales and ticks of the axes of a panel with these points."""
    for axis, name, values in (
        (panel.x, "x", [x for x, _ in points]),
        (panel.y, "y", [y for _, y in points]),
    ):
        axes.set(**{f"{name}label": visible(axis.label)})
        if axis.ticks:
            axes.set(**{f"{name}ticks": range(len(axis.ticks))})
            axes.set(**{f"{name}ticklabels": [*map(visible, axis.ticks)]})
        elif _is_log(axis, values):
            _make_log(axes, name)
    axes.grid()


def _is_log(axis: Axis, values: Sequence[float]) -> bool:
    return axis.log and bool(values) and min(values) > 0


def _make_log(axes: Any, name: str) -> None:
    """Make an axis logarithmic, with plain numbers at its ticks, since formulas are off."""
    axes.set(**{f"{name}scale": "log"})
    axis = getattr(axes, f"{name}axis")
    axis.set_major_formatter(lambda value, place: f"{value:,g}")
    axis.set_minor_formatter(lambda value, place: "")


def _factor(axis: Axis) -> float:
    return 100 if axis.percent else 1


def _dashes() -> Iterator[str]:
    """Dashes of lines: another one whenever the colours are used up."""
    for dash in cycle(DASHES):
        yield from [dash] * len(COLOURS)


def _legend(name: str) -> str:
    """A name for a legend; matplotlib leaves out those that begin with "_"."""
    return f"\u200b{name}" if name.startswith("_") else name
