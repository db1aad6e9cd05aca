"""The figure of an item as SVG; the same outcome gives the same bytes."""

import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from harness import extras
from harness.reproduce.items import Figure, Found
from harness.reproduce.outcomes import Measured, Outcome

WIDE, HIGH = 7.0, 4.5  # inches
BESIDE = 1.25  # from the points of a cell to those of the next, in their size
TINY = 1e-9  # of points that are all at one place
STRIP = 0.35  # inches of a row of patches
GAP = 2  # pixels between patches
FURTHER = ("points", "curves")  # what measures give besides, in panels below


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
    further = [kind for kind in FURTHER if kind != figure.kind and _has(cells, kind)]
    if figure.kind == "strips":
        further = []
    height = _height(figure, cells) + HIGH * len(further)
    drawn = Canvas(figsize=(WIDE, height), layout="constrained")
    panels = drawn.subplots(1 + len(further), squeeze=False)[:, 0]
    for kind, axes in zip([figure.kind, *further], panels, strict=True):
        _DRAW[kind](axes, found, cells)
        if axes.get_legend_handles_labels()[0]:
            below = {"loc": "lower center", "ncols": 10} if kind == "points" else {}
            axes.legend(fontsize=6, **below)
    if figure.kind != "strips":
        panels[0].set(xlabel=figure.x, ylabel=figure.y)
    if figure.log:
        panels[0].set_xscale("log")
    title = f"{found.item.title}\n{found.item.sources[0]}, budget {outcome.budget}"
    panels[0].set_title(title, fontsize=9)
    text = io.StringIO()
    fixed: dict[Any, Any] = {"svg.hashsalt": found.name, "svg.fonttype": "none"}
    with matplotlib.rc_context(fixed):
        drawn.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n"


def _height(figure: Figure, cells: Sequence[Measured]) -> float:
    rows = sum(len(one.seen.strips) for one in cells if one.seen)
    return max(2.0, STRIP * rows + 1) if figure.kind == "strips" else HIGH


def _has(cells: Sequence[Measured], kind: str) -> bool:
    return any(one.seen and getattr(one.seen, kind) for one in cells)


def _label(one: Measured, without: str = "") -> str:
    return ", ".join(value for axis, value in one.at.items() if axis != without)


def _scaled(one: Measured, value: float) -> float:
    return value if one.decimals is not None else 100 * value


def _bars(axes: Any, found: Found, cells: Sequence[Measured]) -> None:
    """Groups of bars by column, a colour for each row."""
    item = found.item
    rows = list(dict.fromkeys(", ".join(one.at[axis] for axis in item.rows) for one in cells))
    columns = list(dict.fromkeys(", ".join(one.at[axis] for axis in item.columns) for one in cells))
    width, told = 0.8 / len(rows), set[str]()
    for one in cells:
        row = rows.index(", ".join(one.at[axis] for axis in item.rows))
        column = columns.index(", ".join(one.at[axis] for axis in item.columns))
        if one.value is not None:
            label = None if rows[row] in told else rows[row]
            told.add(rows[row])
            axes.bar(
                column + (row - (len(rows) - 1) / 2) * width,
                _scaled(one, one.value),
                width,
                color=f"C{row % 10}",
                hatch="//" if row >= 10 else None,
                label=label,
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
        assert one.seen is not None
        for name, curve in one.seen.curves.items():
            names = _label(one) if len(one.seen.curves) == 1 else f"{_label(one)}: {name}"
            label = name if len(cells) == 1 else names
            axes.plot(*zip(*curve, strict=True), label=label)


def _points(axes: Any, found: Found, cells: Sequence[Measured]) -> None:
    """The points of the cells, a colour for each name; several cells stand side by side, scaled."""
    names: dict[str, int] = {}
    shown = [one for one in cells if one.seen and one.seen.points]
    for column, one in enumerate(shown):
        assert one.seen is not None
        groups = {name: np.array(own) for name, own in one.seen.points.items() if own}
        every = np.concatenate([*groups.values()])
        low, size, start = np.zeros(2), 1.0, 0.0
        if len(shown) > 1:
            low, size = every.min(axis=0), max(float(np.ptp(every, axis=0).max()), TINY)
            start = BESIDE * column
            axes.text(start, 1.05, _titled(one), fontsize=7)
        for name, own in groups.items():
            label = name if name not in names else None
            colour = f"C{names.setdefault(name, len(names)) % 10}"
            axes.plot(*((own - low) / size + [start, 0]).T, ".", ms=2, color=colour, label=label)
            if name in one.seen.outlines:
                around = (np.array(one.seen.outlines[name]) - low) / size + [start, 0]
                axes.plot(*around.T, lw=0.7, color=colour)
    if len(shown) > 1:
        axes.set(xticks=[], yticks=[], ylim=(-0.25, 1.15), aspect="equal")


def _titled(one: Measured) -> str:
    if one.value is None:
        return _label(one)
    value = f"{one.value:.3f}" if one.decimals is not None else f"{100 * one.value:.2f} %"
    return f"{_label(one)}: {value}"


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
