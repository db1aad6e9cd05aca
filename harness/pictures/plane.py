"""`harness show map`: the vectors of a model on a plane, with the patches of some points."""

from collections.abc import Mapping
from pathlib import Path

import cv2
import numpy as np
from jaxtyping import Float, Float64

from harness.distances import HAMMING
from harness.pictures.canvas import SIDE, WIDTH, line, paper, png
from harness.pictures.patches import dataset_of, read, some_rows
from harness.types import Dataset, Descriptions, Picture, Rows, Vectors

MOST = 4_000  # patches on the map
POINTS, EACH = 8, 6  # points whose patches are drawn, and most patches of each
HEIGHT, EDGE = 900, 50  # pixels
COLOURS = [(0, 114, 178), (213, 94, 0), (0, 158, 115), (204, 121, 167), (86, 180, 233),
           (230, 159, 0), (120, 80, 180), (0, 0, 0)]  # fmt: skip


def plane(
    protocol: str,
    *,
    data: Path | None = None,
    split: str | None = None,
    seed: int = 0,
) -> Picture:
    """The first two principal components of vectors, with the patches of some points.

    Args:
        protocol: its name, or a family of protocols.
        data: folder of the data set; None takes the sample.
        split: a split of the data set.
        seed: of the choice of patches and points.
    """
    dataset = dataset_of(protocol, data, split)

    def draw(models: Mapping[str, Descriptions]) -> bytes:
        ((name, described),) = models.items()
        return _drawn(name, described, seed)

    return Picture(dataset, draw)


def components(
    vectors: Float[np.ndarray, "n d"],
) -> tuple[Float64[np.ndarray, "n 2"], Float64[np.ndarray, " 2"]]:
    """The first two principal components, and the share of the variance of each.

    The sign of a component is such that its largest entry is positive. Equal vectors are at 0.
    """
    centred = np.asarray(vectors, np.float64) - vectors.mean(axis=0, dtype=np.float64)
    _, scatter, axes = np.linalg.svd(centred, full_matrices=False)
    axes, scatter = (
        np.pad(axes, ((0, 2), (0, 0)))[:2],
        np.pad(scatter, (0, 2)),
    )
    found = centred @ axes.T
    largest = np.take_along_axis(found, np.abs(found).argmax(axis=0)[None], axis=0)
    total = max(float((scatter**2).sum()), np.finfo(float).tiny)
    return found * np.where(largest < 0, -1, 1), scatter[:2] ** 2 / total


def _drawn(name: str, described: Descriptions, seed: int) -> bytes:
    dataset = described.dataset
    rows = some_rows(dataset, seed, MOST)
    places, shares = components(_numbers(described, rows))
    spread = np.ptp(places, axis=0)
    inside = (places - places.min(axis=0)) / np.where(spread > 0, spread, 1)
    x = EDGE + inside[:, 0] * (WIDTH - 2 * EDGE)
    y = HEIGHT - EDGE - inside[:, 1] * (HEIGHT - 2 * EDGE)
    canvas = paper(HEIGHT)
    for at in zip(x.round().astype(int).tolist(), y.round().astype(int).tolist(), strict=True):
        cv2.circle(canvas, at, 2, (190, 190, 190), -1, cv2.LINE_AA)
    chosen = _chosen(dataset, rows, seed)
    patches = read(dataset, rows[[place for group in chosen for place in group]])
    for colour, group in zip(COLOURS, chosen, strict=False):
        for place in group:
            half = SIDE // 4
            left = int(np.clip(x[place] - half, 2, WIDTH - 2 * half - 4))
            top = int(np.clip(y[place] - half, 2, HEIGHT - 2 * half - 4))
            small = cv2.resize(
                patches[int(rows[place])], (2 * half, 2 * half), interpolation=cv2.INTER_AREA
            )
            canvas[top - 2 : top + 2 * half + 2, left - 2 : left + 2 * half + 2] = colour
            canvas[top : top + 2 * half, left : left + 2 * half] = small[..., None]
    text = (
        f"{name} on {dataset.name}: {len(rows):,} vectors on their first two principal components"
        f" ({100 * shares[0]:.0f} % and {100 * shares[1]:.0f} % of the variance)"
    )
    told = "Patches with frames of one colour are of one point; grey dots are the other patches"
    return png([line(text), line(told), canvas])


def _numbers(described: Descriptions, rows: Rows) -> Vectors:
    """Vectors as numbers; bits are 0 and 1."""
    found = described.vectors[rows]
    is_packed = described.distance is HAMMING
    return np.unpackbits(found, axis=1).astype(np.float32) if is_packed else found


def _chosen(dataset: Dataset, rows: Rows, seed: int) -> list[list[int]]:
    """Places of the patches of some points with several patches."""
    _, which, size = np.unique(dataset.point[rows], return_inverse=True, return_counts=True)
    several = np.flatnonzero(size > 1)
    chosen = np.random.default_rng(seed).permutation(several)[:POINTS]
    return [np.flatnonzero(which == point)[:EACH].tolist() for point in chosen]
