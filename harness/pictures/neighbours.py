"""`harness show neighbours` and `point`: what models find for a patch, and a point's patches."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from jaxtyping import Int

from harness.errors import InputError
from harness.pictures.canvas import EACH, PLAIN, RIGHT, WRONG, Colours, columns, line, png
from harness.pictures.patches import dataset_of, must_match, read, some_rows
from harness.types import Dataset, Descriptions, Picture

MODELS = 6  # most models in one picture


def neighbours(
    protocol: str,
    patch: str,
    *,
    data: Path | None = None,
    split: str | None = None,
    seed: int = 0,
) -> Picture:
    """The nearest patches of one patch, a row for each model.

    Args:
        protocol: its name, or a family of protocols.
        patch: its number in the data set, from 0.
        data: folder of the data set; None takes the sample.
        split: a split of the data set.
        seed: of the choice of patches, if there are many.
    """
    dataset = dataset_of(protocol, data, split)
    query = _number(patch, "patch", len(dataset))

    def draw(models: Mapping[str, Descriptions]) -> bytes:
        parts = [line(f"patch {query} of {dataset.name}, and its nearest patches of other images:"
                      " green frames are of its point, orange frames of others")]  # fmt: skip
        for name, described in models.items():
            parts += [line(name), _row(described, query, seed)]
        return png(parts)

    return Picture(dataset, draw, models=MODELS)


def point(
    protocol: str,
    number: str,
    *,
    data: Path | None = None,
    split: str | None = None,
) -> Picture:
    """All patches of one point, by their distance from its first patch.

    Args:
        protocol: its name, or a family of protocols.
        number: of the point, from 0, in the order in which points first appear.
        data: folder of the data set; None takes the sample.
        split: a split of the data set.

    Raises:
        InputError: if the data do not say which patches match.
    """
    dataset = dataset_of(protocol, data, split)
    must_match(dataset)
    points, first = np.unique(dataset.point, return_index=True)
    place = _number(number, "point", len(points))
    rows = np.flatnonzero(dataset.point == points[np.argsort(first)[place]])

    def draw(models: Mapping[str, Descriptions]) -> bytes:
        patches = read(dataset, rows)
        parts = [line(f"the {len(rows)} patches of point {place} of {dataset.name}; below each, its"
                      " distance from the first")]  # fmt: skip
        for name, described in models.items():
            distance = _true(described, np.full(len(rows), rows[0]), rows)
            order = np.argsort(distance, kind="stable")
            stacks = [[(patches[int(rows[i])], PLAIN)] for i in order]
            parts += [line(name), columns(stacks, [f"{distance[i]:.4g}" for i in order])]
        return png(parts)

    return Picture(dataset, draw, models=MODELS)


def _row(described: Descriptions, query: int, seed: int) -> Colours:
    """The query and its nearest patches of other images, with their distances."""
    dataset = described.dataset
    rows = some_rows(dataset, seed)
    others = rows[dataset.image[rows] != dataset.image[query]]
    if not len(others):
        others = rows[rows != query]
    distance = _true(described, np.full(len(others), query), others)
    order = np.argsort(distance, kind="stable")[: EACH - 1]
    nearest = others[order]
    patches = read(dataset, [query, *nearest.tolist()])
    frames = [_frame(dataset, query, row) for row in nearest.tolist()]
    stacks = [
        [(patches[query], PLAIN)],
        *([(patches[row], frame)] for row, frame in zip(nearest.tolist(), frames, strict=True)),
    ]
    return columns(stacks, ["", *(f"{each:.4g}" for each in distance[order])])


def _frame(dataset: Dataset, query: int, row: int) -> tuple[int, int, int]:
    return RIGHT if dataset.point[query] == dataset.point[row] else WRONG


def _true(
    described: Descriptions, a: Int[np.ndarray, " n"], b: Int[np.ndarray, " n"]
) -> np.ndarray:
    return described.distance.unsquared(described.paired(a, b))


def _number(text: str, what: str, n: int) -> int:
    if not text.isascii() or not text.isdigit() or int(text) >= n:
        raise InputError(f"{what} {text!r} is none of 0 to {n - 1}")
    return int(text)
