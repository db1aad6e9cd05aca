"""Chooses the regions of an image sequence and writes their patches as HPatches strips."""

import zlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from harness.errors import InputError
from harness.files import atomic
from protocols.imaging import frames, png
from protocols.imaging.detect import detect
from protocols.imaging.frames import NOISE, Frames, Maps
from protocols.imaging.sampling import SIDE, patches
from protocols.imaging.sequences import Homography

IMAGES = 6  # that the strips of a sequence are cut from: `ref`, then those of levels 1 to 5

Grey = UInt8[np.ndarray, "height width"]


@dataclass(frozen=True)
class RegionTally:
    """Counts of one sequence's regions, by what happened to them; they add up to `detected`."""

    sequence: str
    detected: int
    outside: tuple[int, ...]  # by image 1, 2, ...: counted at the first image that lacks it
    overlapping: int  # more than half, with a stronger region
    over_cap: int  # beyond the largest number of regions
    kept: int


@dataclass(frozen=True, eq=False)
class Regions:
    """The kept regions of one sequence, in image 1, and their jitters in the other images."""

    frames: Frames
    jitters: Mapping[str, Maps]  # by strip; "e1" is of image 2


def select(
    name: str,
    first: Grey,
    *,
    shapes: Sequence[tuple[int, int]],
    from_first: Sequence[Homography],
    seed: int,
    most: int,
) -> tuple[Regions, RegionTally]:
    """The strongest regions of a sequence that are visible in all images and don't overlap much.

    Raises:
        InputError: if fewer than two regions are left.
    """
    detected = detect(first)
    draws = frames.uniform(
        (seed, zlib.crc32(name.encode())), len(NOISE), IMAGES - 1, len(detected), frames.DRAWS
    )
    jitters = {
        f"{level}{k}": frames.jitter(noise, image_draws)
        for (level, noise), level_draws in zip(NOISE.items(), draws, strict=True)
        for k, image_draws in enumerate(level_draws, 1)
    }
    squares = frames.image_from_patch(detected)
    alive = np.ones(len(detected), bool)
    outside = []
    for k, (h, shape) in enumerate(zip(from_first, shapes, strict=True)):
        maps = frames.compose(h, squares)
        visible = frames.inside(maps, *shape)
        for level in NOISE if k else ():
            visible &= frames.inside(frames.compose(maps, jitters[f"{level}{k}"]), *shape)
        outside.append(int(np.count_nonzero(alive & ~visible)))
        alive &= visible
    rows = np.flatnonzero(alive)
    apart = rows[frames.thin(detected.take(rows))]
    kept = apart[:most]
    tally = RegionTally(
        sequence=name,
        detected=len(detected),
        outside=tuple(outside),
        overlapping=len(rows) - len(apart),
        over_cap=len(apart) - len(kept),
        kept=len(kept),
    )
    if len(kept) < 2:
        raise InputError(
            f"{name} is left with {len(kept)} of {len(detected)} regions; {sum(outside)} regions"
            " are not visible in all images: check its homographies, or take it out"
        )
    return Regions(
        detected.take(kept), {strip: maps[kept] for strip, maps in jitters.items()}
    ), tally


def write_strips(
    folder: Path,
    load: Sequence[Callable[[], Grey]],
    *,
    from_first: Sequence[Homography],
    regions: Regions,
    compress: bool,
) -> None:
    """Write the 16 strips of a sequence; `load` has a function for each image that reads it."""
    squares = frames.image_from_patch(regions.frames)

    def write(k: int) -> None:
        strips = [f"{level}{k}" for level in NOISE] if k else ["ref"]
        maps = frames.compose(from_first[k], squares)
        jittered = [frames.compose(maps, regions.jitters[s]) if k else maps for s in strips]
        read = patches(load[k]().astype(np.float32), np.concatenate(jittered))
        for strip, column in zip(strips, np.split(read, len(strips)), strict=True):
            with atomic.writing(folder / f"{strip}.png") as stream:
                stream.write(png.encode(column.reshape(-1, SIDE), compress=compress))

    with ThreadPoolExecutor() as pool:  # NumPy and zlib release the GIL
        list(pool.map(write, range(IMAGES)))
