"""The overlap of ellipses as VLB counts it, in the same single precision.

A NumPy version of K. Mikolajczyk's `c_eoverlap`, which VLBenchmarks and VLB call.
"""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int

from protocols.oxford.ellipses import Ellipses

STEPS = 50  # grid steps along the shorter side of the box around both ellipses
POINTS = 1 << 18  # grid points counted at a time: they fit into the processor's cache

Form = Float32[np.ndarray, "3 n"]
"""xx, xy and yy of each ellipse's quadratic form, which is below 1 inside the ellipse."""


def raster_overlap(a: Ellipses, b: Ellipses) -> Float64[np.ndarray, " n"]:
    """Intersection over union of each ellipse with its partner, counted on a grid of points.

    The grid begins a whole number of pixels from the centre of a. The largest error seen was 0.01
    on pairs of real regions that overlap by more than a half; on synthetic ellipses it was 0.02 at
    a ratio of radii of 6, and 0.14 at a ratio of 25.
    """
    forms = [_form(ellipses) for ellipses in (a, b)]
    offset = (b.centre - a.centre).T.astype(np.float32)
    low, high = _box(forms, offset)
    step = (np.min(high - low, axis=0).astype(np.float64) / STEPS).astype(np.float32)
    points = np.ceil((high - low) / step).astype(int) + 2
    out = np.empty(len(a))
    for some in _alike(points):
        x, y = (
            _line(low[axis, some], high[axis, some], step[some], int(points[axis, some].max()))
            for axis in (0, 1)
        )
        dx, dy = offset[:, some, None]
        in_a = _inside(forms[0][:, some], x, y)
        in_b = _inside(forms[1][:, some], x - dx, y - dy)
        both = np.count_nonzero(in_a & in_b, axis=(1, 2)).astype(np.float32)
        either = np.count_nonzero(in_a | in_b, axis=(1, 2)).astype(np.float32)
        error = (100.0 * (1 - both / either).astype(np.float64)).astype(np.float32)
        out[some] = 1 - error.astype(np.float64) / 100
    return out


def _form(ellipses: Ellipses) -> Form:
    inverse = np.linalg.inv(ellipses.shape)
    parts = [inverse[:, 0, 0], inverse[:, 0, 1], inverse[:, 1, 1]]
    return np.stack(parts).astype(np.float32)


def _box(
    forms: list[Form], offset: Float32[np.ndarray, "2 n"]
) -> tuple[Float32[np.ndarray, "2 n"], Float32[np.ndarray, "2 n"]]:
    """The corners of a box of whole pixels around both ellipses, from the centre of the first."""
    first, second = (
        np.sqrt(form[[2, 0]] / (form[0] * form[2] - form[1] * form[1])) for form in forms
    )
    return (
        np.floor(np.minimum(-first, offset - second)),
        np.ceil(np.maximum(first, offset + second)),
    )


def _alike(points: Int[np.ndarray, "2 n"]) -> Iterator[Int[np.ndarray, " some"]]:
    """Yields rows whose grids have about the same size, so that they can be counted together."""
    order = np.lexsort((points.max(axis=0), points[0] > points[1]))
    size = points[:, order]
    begin = 0
    while begin < len(order):
        largest = np.maximum.accumulate(size[:, begin : begin + POINTS], axis=1).prod(axis=0)
        fits = largest * np.arange(1, len(largest) + 1) <= POINTS
        end = begin + max(1, int(np.count_nonzero(fits)))
        yield order[begin:end]
        begin = end


def _line(
    low: Float32[np.ndarray, " n"],
    high: Float32[np.ndarray, " n"],
    step: Float32[np.ndarray, " n"],
    points: int,
) -> Float32[np.ndarray, "n points"]:
    """Grid points from low to high, by repeated addition in single precision; then NaN."""
    at = np.repeat(step[:, None], points, axis=1)
    at[:, 0] = low
    np.cumsum(at, axis=1, out=at)
    at[at > high[:, None]] = np.nan
    return at


def _inside(
    form: Form, x: Float32[np.ndarray, "n columns"], y: Float32[np.ndarray, "n rows"]
) -> Bool[np.ndarray, "n columns rows"]:
    xx, xy, yy = form[:, :, None]
    value = (2 * xy * x)[:, :, None] * y[:, None, :]
    value += (xx * x * x)[:, :, None]
    value += (yy * y * y)[:, None, :]
    return value < 1
