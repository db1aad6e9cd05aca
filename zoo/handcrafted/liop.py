"""LIOP: the order of grey values around each pixel, by VLFeat's conventions, in NumPy.

Z. Wang, B. Fan, F. Wu, Local intensity order pattern for feature description, ICCV 2011.
VLFeat 0.9.21 (H. Sarbortova, A. Vedaldi, BSD): vl_liopdesc with its default parameters.

The patch is resized to 41x41. It is not smoothed: vl_covdet smooths while it cuts a patch, and the
patches of a benchmark are cut already. The pixels of a circle around the centre are sorted by grey
value, and split into six bins of as many pixels; the last bin takes the rest. Each pixel has four
neighbours, 6 pixels away from it, of which the first lies straight outwards. The order of their
grey values is one of 24. It is counted in the bin of the pixel, once for each pair of neighbours
that differ by more than 5/255 of the range of the circle.

Equal grey values stay in the order of rows, and of neighbours; VLFeat leaves their order to its
quicksort. Where no two are equal, the vectors are VLFeat's up to rounding: 1e-7. vl_covdet gives
the transposed patch to LIOP, so its numbers are these of the transposed patch.
"""

from dataclasses import dataclass
from functools import cache
from itertools import combinations

import numpy as np
from jaxtyping import Float, Float32, Int

from harness.distances import L2
from harness.types import Conventions, Descriptor, Patches
from zoo.describing import LIBRARIES, in_threads, resized

SIDE = 41
BINS = 6
NEIGHBOURS = 4
ORDERS = 24  # of four neighbours
DISTANCE = 6  # of the neighbours, in pixels
MARGIN = 0.6  # pixels that VLFeat adds to the radius of the circle
THRESHOLD = 5 / 255  # of the range of grey values in the circle


@dataclass(frozen=True, eq=False)
class Circle:
    """The pixels that are described, and where their neighbours are; indices of a flat patch."""

    pixel: Int[np.ndarray, " c"]
    corner: Int[np.ndarray, "c 4"]  # upper left of the four pixels around a neighbour
    right: Float[np.ndarray, "c 4"]  # how far a neighbour is from its corner, in pixels
    down: Float[np.ndarray, "c 4"]


def _describe(patches: Patches) -> Float32[np.ndarray, "n 144"]:
    return in_threads(_part, patches, BINS * ORDERS, np.float32)


def _part(patches: Patches) -> Float32[np.ndarray, "n 144"]:
    return order_patterns(np.array([resized(patch, SIDE) for patch in patches], np.float32))


def order_patterns(patches: Float32[np.ndarray, "n 41 41"]) -> Float32[np.ndarray, "n 144"]:
    """The LIOP of patches as they are; a flat patch gives zeros."""
    n, circle = len(patches), _circle()
    flat = patches.reshape(n, SIDE * SIDE)
    grey = flat[:, circle.pixel]  # (n, c)
    around = _neighbours(flat, circle)  # (n, c, 4)
    rank = np.argsort(np.argsort(grey, axis=1, kind="stable"), axis=1)
    bin_ = np.minimum(rank // (grey.shape[1] // BINS), BINS - 1)
    order = _number(np.argsort(around, axis=2, kind="stable"))
    threshold = THRESHOLD * (grey.max(axis=1) - grey.min(axis=1))
    different = [
        np.abs(around[..., i] - around[..., k]) > threshold[:, None]
        for i, k in combinations(range(NEIGHBOURS), 2)
    ]
    weight = np.sum(different, axis=0)
    place = (np.arange(n)[:, None] * BINS + bin_) * ORDERS + order
    counts = np.bincount(place.ravel(), weight.ravel(), n * BINS * ORDERS)
    counts = counts.reshape(n, BINS * ORDERS)
    norm = np.sqrt(np.einsum("nd,nd->n", counts, counts))[:, None]
    return (counts / np.where(norm == 0, 1, norm)).astype(np.float32)


def _neighbours(
    flat: Float32[np.ndarray, "n pixels"], circle: Circle
) -> Float32[np.ndarray, "n c 4"]:
    """Grey values of the neighbours, interpolated bilinearly."""
    upper, lower = (
        flat[:, row] * (1 - circle.right) + flat[:, row + 1] * circle.right
        for row in (circle.corner, circle.corner + SIDE)
    )
    return (upper * (1 - circle.down) + lower * circle.down).astype(np.float32)


def _number(order: Int[np.ndarray, "n c 4"]) -> Int[np.ndarray, "n c"]:
    """Place of each order of 0, 1, 2, 3 in the list of all, sorted as words are."""
    number = np.zeros(order.shape[:2], np.intp)
    for i in range(NEIGHBOURS):
        smaller = (order[..., i + 1 :] < order[..., i, None]).sum(axis=2)
        number = number * (NEIGHBOURS - i) + smaller
    return number


@cache
def _circle() -> Circle:
    centre = (SIDE - 1) // 2
    at = np.arange(SIDE) - centre
    y, x = np.nonzero(at[:, None] ** 2 + at**2 <= int((centre - DISTANCE + MARGIN) ** 2))
    turn = np.arange(NEIGHBOURS) * 2 * np.pi / NEIGHBOURS
    angle = np.arctan2(y - centre, x - centre)[:, None] + turn
    right, down = x[:, None] + DISTANCE * np.cos(angle), y[:, None] + DISTANCE * np.sin(angle)
    # The outermost neighbours lie on the last row or column: at 1 behind the one before.
    column, row = (np.clip(np.floor(v), 0, SIDE - 2).astype(np.intp) for v in (right, down))
    return Circle(y * SIDE + x, row * SIDE + column, right - column, down - row)


def liop() -> Descriptor:
    """Histograms of the order of four neighbours, in six bins of grey values."""
    return Descriptor(
        "liop",
        _describe,
        L2,
        dim=BINS * ORDERS,
        libraries=LIBRARIES,
        licence="Apache-2.0",
        conventions=Conventions(
            keypoint="a circle of 14.6 pixels around the centre pixel of 41x41",
            side=SIDE,
            normalisation="none of grey values, whose order counts; the vector to unit length",
            source="Wang, Fan, Wu, ICCV 2011; VLFeat 0.9.21",
        ),
    )
