"""Draws a picture of a descriptor's matches between two images of a plane, for a person to judge.

The upper half shows the surest right matches, the lower half the surest wrong matches: their places
in both images, and the two matched patches, with the first image's above the second's. Of matches
that are near each other, only the surest is shown.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import cv2
import numpy as np
from jaxtyping import Float64, Int, Int32, UInt8

from harness import Dataset, Descriptions
from harness.errors import InputError, UnknownNameError
from harness.files import folders
from harness.pictures.canvas import GAP, PAPER, RIGHT, WIDTH, WRONG, Colours, line, png
from harness.registry import unknown
from harness.types import Picture
from protocols.imaging.affine import AffineFrames
from protocols.imaging.grey import read_grey
from protocols.imaging.sequences import find
from protocols.oxford.matching import Matches
from protocols.oxford.protocol import FEATURES, STRATEGIES, pair_scores
from protocols.oxford.raster import raster_overlap
from protocols.oxford.reader import SIDE, block_of, check_fit, folder_of, regions_of
from protocols.oxford.sample import sample
from protocols.oxford.truth import MAGNIFICATION, correspondences

SHOWN = 60  # most matches of a kind that are drawn
APART = 12.0  # least distance between drawn matches, in pixels of the first image
FRACTION = 4  # binary digits of places between pixels
ANGLES = np.linspace(0, 2 * np.pi, 48, endpoint=False)
CIRCLE = np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1)


def matches(
    sequence: str,
    first: str,
    second: str,
    *,
    data: Path | None = None,
    frames: Path | None = None,
    features: int | None = FEATURES,
    magnification: float = MAGNIFICATION,
    matching: Literal["greedy", "nearest", "mutual", "ratio"] = "greedy",
) -> Picture:
    """Right and wrong matches of two images of a sequence; the protocol has the same options.

    Args:
        sequence: name of its folder.
        first: number of an image, from 1.
        second: number of another image.
        data: folder of sequences; None takes the sample.
        frames: folder of regions; None detects them.
        features: most regions of an image.
        magnification: half a side of a patch, in radii of its region.
        matching: strategy of matching.
    """
    root = sample() if data is None else folder_of(data)
    known = [folder.name for folder in folders.folders(root)]
    if sequence not in known:
        raise UnknownNameError(unknown("sequences", sequence, known))
    (plane, *others), _ = find(root / sequence)
    if others:
        raise InputError(f"{root / sequence} holds several sequences: give it as --data")
    check_fit(root, [plane])
    numbers = [_number(text, len(plane.files)) for text in (first, second)]
    places = [(plane, k) for k in numbers]
    regions = [regions_of(place, frames=frames, features=features) for place in places]
    pairs = zip(places, regions, strict=True)
    blocks = tuple(block_of(pair, magnification=magnification) for pair in pairs)
    rows = np.arange(sum(len(image_regions) for image_regions in regions))
    image = np.repeat([0, 1], [len(image_regions) for image_regions in regions])
    h = plane.from_first[numbers[1]] @ np.linalg.inv(plane.from_first[numbers[0]])
    truth = correspondences(regions[0], regions[1], h, raster_overlap)

    def draw(models: Mapping[str, Descriptions]) -> bytes:
        (described,) = models.values()
        n = len(regions[0])
        a, b = described.vectors[:n], described.vectors[n:]
        made = STRATEGIES[matching](described.distance, a, b)
        order = np.argsort(made.distance, kind="stable")
        made = Matches(made.a[order], made.b[order], made.distance[order])
        scores = pair_scores(described.distance, a, b, truth, matching)
        title = (
            f"{sequence} {first}-{second}: {len(a)} and {len(b)} regions,"
            f" {scores['correspondences']:.0f} correspondences, {scores['correct']:.0f} of"
            f" {len(made.a)} matches right, average precision {scores['ap']:.3f}"
        )
        views = [
            _View(read_grey(plane.files[k]), image_regions, block.read())
            for k, image_regions, block in zip(numbers, regions, blocks, strict=True)
        ]
        right = truth.holds(made)
        parts = [line(title)]
        for name, colour, kind in (("right", RIGHT, right), ("wrong", WRONG, ~right)):
            rows = np.flatnonzero(kind)
            surest = rows[_spread(regions[0].take(made.a[rows]))]
            text = f"the {len(surest)} surest, apart from each other, of {len(rows)} {name} matches"
            ends = np.stack([made.a[surest], made.b[surest]], axis=1)
            parts += [line(text), _lines(views, ends, colour), _strip(views, ends, colour)]
        return png(parts)

    dataset = Dataset("oxford-picture", sequence, blocks, rows, image)
    return Picture(dataset, draw)


def _number(text: str, images: int) -> int:
    """The index of an image, from 0."""
    if text not in map(str, range(1, images + 1)):
        raise InputError(f"image {text!r} is none of 1 to {images}")
    return int(text) - 1


@dataclass(frozen=True, eq=False)
class _View:
    """An image, its regions, and their patches."""

    grey: UInt8[np.ndarray, "height width"]
    regions: AffineFrames
    patches: UInt8[np.ndarray, "n side side"]


def _spread(regions: AffineFrames) -> Int[np.ndarray, " shown"]:
    """The first SHOWN regions that are not too near an earlier chosen region."""
    chosen: list[int] = []
    for i in range(len(regions)):
        x, y = regions.x[chosen] - regions.x[i], regions.y[chosen] - regions.y[i]
        if (np.hypot(x, y) > APART).all():
            chosen.append(i)
        if len(chosen) == SHOWN:
            break
    return np.array(chosen, np.intp)


def _lines(
    views: list[_View], matches: Int[np.ndarray, "m 2"], colour: tuple[int, int, int]
) -> Colours:
    """Both images, pale, with the outlines of matched regions, joined by lines."""
    heights, widths = zip(*(view.grey.shape for view in views), strict=True)
    scale = (WIDTH - GAP) / sum(widths)
    canvas = np.full((round(max(heights) * scale), WIDTH, 3), PAPER, np.uint8)
    lefts = (0, round(widths[0] * scale) + GAP)
    for view, left in zip(views, lefts, strict=True):
        size = round(view.grey.shape[1] * scale), round(view.grey.shape[0] * scale)
        pale = 96 + cv2.resize(view.grey, size, interpolation=cv2.INTER_AREA) // 8 * 5
        canvas[: size[1], left : left + size[0]] = pale[:, : WIDTH - left, None]
    for match in matches[::-1].tolist():  # the surest is drawn last, on top
        middles = []
        for view, left, row in zip(views, lefts, match, strict=True):
            middle = np.array([view.regions.x[row], view.regions.y[row]])
            rim = middle + MAGNIFICATION * CIRCLE @ view.regions.matrix[row].T
            points = _fixed((rim + 0.5) * scale - 0.5 + [left, 0])
            cv2.polylines(canvas, [points], True, colour, 1, cv2.LINE_AA, FRACTION)
            middles.append(_fixed((middle + 0.5) * scale - 0.5 + [left, 0]).tolist())
        cv2.line(canvas, middles[0], middles[1], colour, 1, cv2.LINE_AA, FRACTION)
    return canvas


def _strip(
    views: list[_View], matches: Int[np.ndarray, "m 2"], colour: tuple[int, int, int]
) -> Colours:
    """The patches of the first matches; the first image's patches are above."""
    strip = np.full((2 * SIDE + 2 * GAP, WIDTH, 3), PAPER, np.uint8)
    for i, match in enumerate(matches[: WIDTH // (SIDE + GAP)].tolist()):
        pair = np.concatenate([view.patches[row] for view, row in zip(views, match, strict=True)])
        left = i * (SIDE + GAP)
        strip[: 2 * SIDE + GAP, left : left + SIDE + GAP] = colour
        strip[GAP // 2 :, left + GAP // 2 :][: 2 * SIDE, :SIDE] = pair[..., None]
    return strip


def _fixed(points: Float64[np.ndarray, "*n 2"]) -> Int32[np.ndarray, "*n 2"]:
    """Places in OpenCV's fixed-point form, for fractions of pixels."""
    return np.round(points * 2**FRACTION).astype(np.int32)
