"""The figure of an item as SVG; the same outcome gives the same bytes."""

import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from harness import extras
from harness.reproduce.items import Figure, Found
from harness.reproduce.outcomes import Measured, Outcome

WIDE, HIGH = 7.0, 4.5  # inches
STRIP = 0.35  # inches of a row of patches
GAP = 2  # pixels between patches


def to_svg(found: Found, outcome: Outcome) -> str | None:
    """The figure; None if the item has none, or if no cell has anything to show.

    Raises:
        ExtraMissingError: if matplotlib is not installed.
    """
    figure = found.item.figure
    cells = [one for one in outcome.cells if not one.missing]
    if figure is None or not cells:
        return None
    with extras.needed("the figure of an item"):
        import matplotlib
        from matplotlib.figure import Figure as Canvas
    drawn = Canvas(figsize=(WIDE, _height(figure, cells)), layout="constrained")
    axes = drawn.subplots()
    _DRAW[figure.kind](axes, found, cells)
    if figure.kind != "strips":
        axes.set(xlabel=figure.x, ylabel=figure.y)
        if figure.log:
            axes.set_xscale("log")
        axes.legend(fontsize=7)
    budget = f"budget {outcome.budget}"
    axes.set_title(f"{found.item.title}\n{found.item.sources[0]}, {budget}", fontsize=9)
    text = io.StringIO()
    fixed: dict[Any, Any] = {"svg.hashsalt": found.name, "svg.fonttype": "none"}
    with matplotlib.rc_context(fixed):
        drawn.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n"


def _height(figure: Figure, cells: Sequence[Measured]) -> float:
    rows = sum(len(one.seen.strips) for one in cells if one.seen)
    return max(2.0, STRIP * rows + 1) if figure.kind == "strips" else HIGH


def _label(one: Measured, without: str = "") -> str:
    return ", ".join(value for axis, value in one.at.items() if axis != without)


def _scaled(one: Measured, value: float) -> float:
    return value if one.decimals is not None else 100 * value


def _bars(axes: Any, found: Found, cells: Sequence[Measured]) -> None:
    """Groups of bars by column, a colour for each row."""
    item = found.item
    rows = list(dict.fromkeys(", ".join(one.at[axis] for axis in item.rows) for one in cells))
    columns = list(dict.fromkeys(", ".join(one.at[axis] for axis in item.columns) for one in cells))
    width = 0.8 / len(rows)
    for one in cells:
        row = rows.index(", ".join(one.at[axis] for axis in item.rows))
        column = columns.index(", ".join(one.at[axis] for axis in item.columns))
        if one.value is not None:
            first = column == 0
            axes.bar(
                column + (row - (len(rows) - 1) / 2) * width,
                _scaled(one, one.value),
                width,
                color=f"C{row % 10}",
                hatch="//" if row >= 10 else None,
                label=rows[row] if first else None,
            )
    axes.set_xticks(range(len(columns)), columns)


def _lines(axes: Any, found: Found, cells: Sequence[Measured]) -> None:
    """A line for each row, over the numbers of an axis."""
    assert found.item.figure is not None
    along = found.item.figure.x
    lines: dict[str, list[tuple[float, float]]] = {}
    for one in cells:
        if one.value is not None:
            point = float(one.at[along]), _scaled(one, one.value)
            lines.setdefault(_label(one, along), []).append(point)
    for name, points in lines.items():
        axes.plot(*zip(*sorted(points), strict=True), marker="o", label=name)


def _epochs(axes: Any, found: Found, cells: Sequence[Measured]) -> None:
    """A line for each cell, over epochs."""
    for one in cells:
        points = [(value.epoch, _scaled(one, value.value)) for value in one.values if value.epoch]
        if points:
            axes.plot(*zip(*points, strict=True), marker="o", label=_label(one))


def _curves(axes: Any, found: Found, cells: Sequence[Measured]) -> None:
    """All curves of all cells."""
    for one in cells:
        for name, curve in (one.seen.curves if one.seen else {}).items():
            axes.plot(*zip(*curve, strict=True), label=name)


def _points(axes: Any, found: Found, cells: Sequence[Measured]) -> None:
    """The points of the cells, side by side; a colour for each name of points."""
    start = 0.0
    names: dict[str, int] = {}
    for one in cells:
        groups = {
            name: np.array(own) for name, own in (one.seen.points if one.seen else {}).items()
        }
        every = np.concatenate([own for own in groups.values() if len(own)])
        left, right = every[:, 0].min(), every[:, 0].max()
        for name, own in groups.items():
            first = name not in names
            colour = names.setdefault(name, len(names))
            if len(own):
                x = own[:, 0] - left + start
                axes.plot(
                    x, own[:, 1], ".", ms=2, color=f"C{colour}", label=name if first else None
                )
        axes.text(start, every[:, 1].max(), _titled(one), fontsize=7, va="bottom")
        start += 1.15 * (right - left)
    axes.set_xticks([])


def _titled(one: Measured) -> str:
    value = "" if one.value is None else f": {_scaled(one, one.value):.2f}"
    return f"{_label(one)}{value}"


def _strips(axes: Any, found: Found, cells: Sequence[Measured]) -> None:
    """Rows of patches, with labels, and lines between joined rows."""
    strips = [strip for one in cells if one.seen for strip in one.seen.strips]
    top = 0
    middle: dict[str, float] = {}
    widest = 0
    for strip in strips:
        side = strip.side
        patches = [
            np.frombuffer(bytes.fromhex(text), np.uint8).reshape(side, side)
            for text in strip.patches
        ]
        row = np.full((side, len(patches) * (side + GAP)), 255, np.uint8)
        for i, patch in enumerate(patches):
            row[:, i * (side + GAP) : i * (side + GAP) + side] = patch
        axes.imshow(row, cmap="gray", vmin=0, vmax=255, extent=(0, row.shape[1], top + side, top))
        axes.text(-GAP, top + side / 2, strip.label, ha="right", va="center", fontsize=5)
        middle[strip.label] = top + side / 2
        widest = max(widest, row.shape[1])
        top += side + GAP
    for number, strip in enumerate(strips):
        for other in strip.links:
            if other in middle and middle[other] > middle[strip.label]:
                x = widest + 4 * (1 + number % 5)
                axes.plot([x, x], [middle[strip.label], middle[other]], "r", lw=0.8)
    axes.set_xlim(0, widest + 30)
    axes.set_ylim(top, 0)
    axes.axis("off")


_DRAW: Mapping[str, Callable[[Any, Found, Sequence[Measured]], None]] = {
    "bars": _bars,
    "lines": _lines,
    "epochs": _epochs,
    "curves": _curves,
    "points": _points,
    "strips": _strips,
}
