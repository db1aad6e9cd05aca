"""`harness show mistakes`: the hardest false matches and missed matches of a model."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float, Int

from harness.distances import chunks
from harness.pictures.canvas import EACH, PLAIN, RIGHT, WIDTH, WRONG, Colours, columns, line, png
from harness.pictures.patches import dataset_of, must_match, read, some_rows
from harness.types import Dataset, Descriptions, Picture

QUERIES = 2_000  # patches whose neighbours are searched
FRAMES = (PLAIN, RIGHT, WRONG)  # of the query, its match and the wrong patch
SHOWN = 2 * EACH  # most mistakes of a kind that are drawn


@dataclass(frozen=True)
class Mistakes:
    """Queries with their matches and with the nearest patch that does not match; rows of a set."""

    query: Int[np.ndarray, " n"]
    nearest: Int[np.ndarray, " n"]  # the nearest match
    farthest: Int[np.ndarray, " n"]  # the farthest match
    wrong: Int[np.ndarray, " n"]  # the nearest patch of another point and another image
    to_nearest: Float[np.ndarray, " n"]  # distances
    to_farthest: Float[np.ndarray, " n"]
    to_wrong: Float[np.ndarray, " n"]

    @property
    def is_false(self) -> Bool[np.ndarray, " n"]:
        """Whether the wrong patch is at least as near as every match; so a tie is a mistake."""
        return self.to_wrong <= self.to_nearest


def mistakes(
    protocol: str,
    *,
    data: Path | None = None,
    split: str | None = None,
    seed: int = 0,
) -> Picture:
    """False matches and missed matches among some patches of a protocol's data.

    Args:
        protocol: its name, or a family of protocols.
        data: folder of the data set; None takes the sample.
        split: a split of the data set.
        seed: of the choice of patches, if there are many.

    Raises:
        InputError: if the data do not say which patches match.
    """
    dataset = dataset_of(protocol, data, split)
    must_match(dataset)

    def draw(models: Mapping[str, Descriptions]) -> bytes:
        ((name, described),) = models.items()
        title, found = strips(name, described, seed)
        shown = [part for strip in found for part in (line(strip.told), strip.drawn)]
        return png([line(title), *shown])

    return Picture(dataset, draw)


@dataclass(frozen=True)
class Strip:
    """A row of mistakes of one kind: what it shows, and columns of three patches."""

    told: str
    drawn: Colours


def strips(
    name: str, described: Descriptions, seed: int = 0, shown: int = SHOWN, width: int = WIDTH
) -> tuple[str, list[Strip]]:
    """How often a model is wrong, as a sentence; and strips of its false and missed matches.

    Args:
        name: of the model.
        described: its vectors.
        seed: of the choice of patches, if there are many.
        shown: most mistakes of a kind.
        width: of the strips, pixels.
    """
    dataset = described.dataset
    found = find(described, seed)
    false = np.flatnonzero(found.is_false)
    false = false[np.argsort(found.to_wrong[false], kind="stable")]
    excess = found.to_farthest - found.to_wrong
    missed = np.flatnonzero(excess > 0)
    missed = missed[np.argsort(-excess[missed], kind="stable")]
    share = 100 * float(found.is_false.mean())
    title = (
        f"{name} on {dataset.name}: the nearest patch is wrong for {share:.1f} % of"
        f" {len(found.query):,} patches"
    )
    made = []
    for told, kind, match in (
        ("False matches, the nearest first. In each column: a patch, its nearest match, and the"
         " wrong patch that is nearer", false, found.nearest),
        ("Missed matches, the worst first. In each column: a patch, its farthest match, and the"
         " nearest wrong patch", missed, found.farthest),
    ):  # fmt: skip
        places = _apart(dataset, found, kind, shown)
        rows = np.stack([found.query[places], match[places], found.wrong[places]], axis=1)
        patches = read(dataset, rows.ravel())
        stacks = [
            [(patches[row], frame) for row, frame in zip(three, FRAMES, strict=True)]
            for three in rows.tolist()
        ]
        made.append(
            Strip(told if stacks else f"{told.partition(',')[0]}: none", columns(stacks, (), width))
        )
    return title, made


def find(described: Descriptions, seed: int = 0) -> Mistakes:
    """The matches and the nearest wrong patch of some patches that have a match.

    Raises:
        InputError: if no two patches match.
    """
    dataset, distance = described.dataset, described.distance
    must_match(dataset)
    rows = some_rows(dataset, seed)
    vectors, point, image = described.vectors[rows], dataset.point[rows], dataset.image[rows]
    _, which, size = np.unique(point, return_inverse=True, return_counts=True)
    queries = np.flatnonzero(size[which] > 1)
    if len(queries) > QUERIES:
        queries = np.sort(np.random.default_rng(seed).choice(queries, QUERIES, replace=False))
    is_of_one_image = len(np.unique(image)) == 1
    found = []
    for some in chunks(len(queries), len(rows)):
        own = queries[some]
        entries = distance.cross(vectors[own], vectors).astype(np.float64)
        same = point[own, None] == point
        matched, wrong = entries.copy(), entries
        matched[~same] = np.inf
        matched[np.arange(len(own)), own] = np.inf
        near = matched.argmin(axis=1)
        matched[np.isinf(matched)] = -np.inf
        far = matched.argmax(axis=1)
        wrong[same | ((image[own, None] == image) & (not is_of_one_image))] = np.inf
        found.append(np.stack([own, near, far, wrong.argmin(axis=1)]))
    query, near, far, nearest_wrong = np.concatenate(found, axis=1)
    to = [
        distance.unsquared(distance.paired(vectors, query, each))
        for each in (near, far, nearest_wrong)
    ]
    return Mistakes(rows[query], rows[near], rows[far], rows[nearest_wrong], *to)


def _apart(
    dataset: Dataset, found: Mistakes, places: Int[np.ndarray, " n"], most: int
) -> list[int]:
    """The first places whose query and wrong patch are not of points that were shown already."""
    told: set[frozenset[int]] = set()
    chosen = []
    for place in places.tolist():
        pair = frozenset(dataset.point[[found.query[place], found.wrong[place]]].tolist())
        if pair not in told:
            told.add(pair)
            chosen.append(place)
        if len(chosen) == most:
            break
    return chosen
