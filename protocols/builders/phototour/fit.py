"""Checks that the photographs are those of the reconstruction, by comparing their patches."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float64, Int, UInt8

from harness.errors import InputError
from protocols.builders.phototour.patches import extract
from protocols.imaging.agreement import Agreement, agreement, spread
from protocols.imaging.frames import Frames
from protocols.imaging.grey import read_grey
from protocols.phototour.writer import SIDE

FEWEST, MOST = 8, 100  # number of pairs of an image that are compared
SHOWN = 5  # most images that a message names
TRIED = 200  # photographs that are tried in place of a wrong one

LEAST = 0.75
"""Below this `Agreement.ahead`, a photograph is not the one that the model was made from.

The eight photographs of Herzjesu-P8, at a third of their size, reach 0.97 to 1.00. Photographs with
exchanged names, there and in a scene of four, reach 0.42 to 0.61.
"""

Grey = UInt8[np.ndarray, "height width"]
Patches = UInt8[np.ndarray, "n 64 64"]


def check(
    files: Sequence[Path],
    image: Int[np.ndarray, " n"],
    point: Int[np.ndarray, " n"],
    squares: Frames,
    pixels: Patches,
) -> None:
    """Compare the patches of each photograph with other photographs' patches of the same points.

    Args:
        files: the photographs.
        image: number of each patch's photograph.
        point: number of each patch's point, ascending.
        squares: where each patch was cut out.
        pixels: the patches.

    Raises:
        InputError: if a photograph's patches are no more like other patches of the same points than
            like patches of other points; names the file, and the photograph that fits instead.
    """
    bad: dict[int, Agreement | None] = {}
    while True:  # remove the worst first: its patches lower the agreement of the others
        rows, partner = _pairs(point, np.flatnonzero(~np.isin(image, list(bad))))
        agreements = {}
        for k in np.unique(image[rows]).tolist():
            chosen = np.flatnonzero(image[rows] == k)
            if len(chosen) >= FEWEST:
                chosen = chosen[spread(len(chosen), MOST)]
                agreements[k] = agreement(
                    _small(pixels[rows[chosen]]), _small(pixels[partner[chosen]])
                )
        worst = min(agreements, key=lambda k: agreements[k].ahead, default=None)
        if worst is None or agreements[worst].ahead >= LEAST:
            break
        bad[worst] = agreements[worst]
    if not bad:
        return
    if not agreements:  # no photograph is left to compare with
        bad |= dict.fromkeys(set(range(len(files))) - set(bad))
    raise InputError(_message(files, bad, _causes(files, list(bad), image, point, squares, pixels)))


def _message(files: Sequence[Path], bad: dict[int, Agreement | None], causes: list[str]) -> str:
    first = next(iter(bad))
    named = ", ".join(files[k].name for k in list(bad)[:SHOWN]) + ", ..." * (len(bad) > SHOWN)
    cause = "; ".join(causes) or (
        "they may be other photographs under these names, or cropped, turned or undistorted since"
    )
    return (
        f"{named}: patches of the same points, as the model has them, are no more alike than"
        f" others (worst is {files[first].name}: {bad[first]}). {len(bad)} of {len(files)} images"
        f" are not those that the model was made from: {cause}. Give those images (--images), or"
        " the model of these (--model)"
    )


def _causes(
    files: Sequence[Path],
    bad: list[int],
    image: Int[np.ndarray, " n"],
    point: Int[np.ndarray, " n"],
    squares: Frames,
    pixels: Patches,
) -> list[str]:
    """Sentences that name photographs that fit in place of the first bad photographs, if any."""
    causes = []
    for k in bad[:SHOWN]:
        rows, partner = _pairs(point, np.flatnonzero((image == k) | ~np.isin(image, bad)))
        chosen = np.flatnonzero((image[rows] == k) & (image[partner] != k))
        if len(chosen) < FEWEST:
            continue
        chosen = chosen[spread(len(chosen), MOST)]
        wanted = _small(pixels[partner[chosen]])
        ahead = {
            cause: agreement(_small(_cut(grey, squares.take(rows[chosen]))), wanted).ahead
            for cause, grey in _others(files[k], files)
        }
        best = max(ahead, key=lambda cause: ahead[cause])
        if ahead[best] >= LEAST:
            causes.append(f"{files[k].name} {best}")
    return causes


def _pairs(
    point: Int[np.ndarray, " n"], rows: Int[np.ndarray, " m"]
) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"]]:
    """The rows whose points have several rows, and for each of them another row of the point."""
    points = point[rows]
    first = np.searchsorted(points, points)
    count = np.searchsorted(points, points, side="right") - first
    place = np.arange(len(rows))
    step = 1 + place % np.maximum(count - 1, 1)  # so that partners come from varying photographs
    partner = first + (place - first + step) % count
    several = count > 1
    return rows[several], rows[partner[several]]


def _small(patches: Patches) -> Float64[np.ndarray, "n 16 16"]:
    """Means of 4 x 4 pixels, since keypoints are off by some pixels."""
    return patches.reshape(-1, SIDE // 4, 4, SIDE // 4, 4).mean(axis=(2, 4))


def _others(file: Path, files: Sequence[Path]) -> Iterator[tuple[str, Grey]]:
    """Photographs that may belong in the place of a file, each with its phrase for the message."""
    grey = read_grey(file)
    turned: dict[str, Callable[[Grey], Grey]] = {
        "is turned by 180 degrees": lambda image: image[::-1, ::-1],
        "is mirrored": lambda image: image[:, ::-1],
        "is upside down": lambda image: image[::-1],
    }
    for said, change in turned.items():
        yield said, np.ascontiguousarray(change(grey))
    for other in files[:TRIED]:
        candidate = read_grey(other)
        if other != file and candidate.shape == grey.shape:
            yield f"fits when {other.name} takes its place", candidate


def _cut(grey: Grey, squares: Frames) -> Patches:
    patches = np.empty((len(squares), SIDE, SIDE), np.uint8)
    for rows, some in extract(grey, squares):
        patches[rows] = some
    return patches
