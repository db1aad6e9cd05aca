"""The data set `phototour-sample`: three small scenes in the official format.

They are made from scikit-image's photographs. The patches of one point are sampled through known
maps, each in another light. The set is for first trials and for end-to-end tests; its scores are
not those of PhotoTour and appear in no table with them. Like `hpatches-sample`, it has the same
bytes on every machine.
"""

import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from jaxtyping import Float32, Float64, Int, UInt8

from harness.files import atomic
from protocols.imaging.detect import detect
from protocols.imaging.frames import (
    DRAWS,
    NOISE,
    Maps,
    compose,
    image_from_patch,
    inside,
    jitter,
    thin,
    uniform,
)
from protocols.imaging.sampling import read, rounded, smooth
from protocols.phototour.writer import SIDE, write_scene
from protocols.samples import kept, photograph

VERSION = 1  # raised with SHA256
SHA256 = "a62b1670541121c5ba5b138add7b5e1007bc973336736350f7de270461f10d39"
"""Hash of the whole set; see `cache.fingerprint`."""

SCENES = {"astronaut": "astronaut.png", "camera": "camera.png", "coffee": "coffee.png"}
"""Photographs in the public domain or under CC0, all PNG: decoders agree on every pixel."""

POINTS = 300  # most points of a scene, the strongest
LARGEST = 32.0  # half a side of a region in pixels: a patch's pixel is at most about one of them
IMAGES = 4  # reference images, assigned to points in turn
VIEWS = ("e", "e", "h")  # jitter of each patch of a point; every other point lacks the third
LIGHTS = ((1.0, 0.0), (0.75, 30.0), (1.25, -40.0))  # gain and offset of each view
GRAIN = 8.0  # noise in grey values; its standard deviation is 0.58 times this
PAIRS = 1000  # half of them are matches


def sample() -> Path:
    """The folder of the set; it is made on first use, in some seconds, and kept in the cache.

    If its files have changed, it is made again.

    Raises:
        ComputeError: if the set made on this machine has another hash.
    """
    return kept("phototour-sample", VERSION, make, SHA256)


def make(folder: Path) -> None:
    """Write the set into a folder."""
    for name, file in SCENES.items():
        _scene(folder / name, photograph(file, "phototour-sample"))
    about = {"name": "phototour-sample", "version": VERSION, "photographs": SCENES}
    atomic.write_json(folder / "dataset.json", about)


def _scene(folder: Path, image: UInt8[np.ndarray, "height width"]) -> None:
    seed = (VERSION, zlib.crc32(folder.name.encode()))
    detected = detect(image)
    detected = detected.take(np.flatnonzero(detected.half <= LARGEST))
    squares = image_from_patch(detected)
    draws = uniform((*seed, 1), len(VIEWS), len(detected), DRAWS)
    maps = [compose(squares, jitter(NOISE[v], d)) for v, d in zip(VIEWS, draws, strict=True)]
    seen = np.logical_and.reduce([inside(views, *image.shape) for views in maps])
    chosen = np.flatnonzero(seen)
    chosen = chosen[thin(detected.take(chosen))][:POINTS]

    patch = np.arange(len(chosen) * len(VIEWS))
    point, view = np.divmod(patch, len(VIEWS))
    there = (view < 2) | (point % 2 == 1)
    point, view = point[there], view[there]
    regions = np.stack(maps, axis=1)[chosen[point], view]

    angle = np.arctan2(detected.sin[chosen], detected.cos[chosen])[point]
    scale = np.log2(detected.half[chosen] / SIDE * 2)[point]
    x, y = detected.x[chosen][point], detected.y[chosen][point]
    write_scene(
        folder,
        _patches(smooth(image.astype(np.float32), 0.5), regions, view, seed),
        point,
        np.stack([point % IMAGES, x, y, angle, scale], axis=1),
        {f"m50_{PAIRS}_{PAIRS}_0.txt": _pairs(point, seed)},
    )


def _patches(
    image: Float32[np.ndarray, "height width"],
    regions: Maps,
    view: Int[np.ndarray, " n"],
    seed: tuple[int, ...],
) -> Iterator[UInt8[np.ndarray, "_ 64 64"]]:
    line = (np.arange(SIDE) - (SIDE - 1) / 2) / (SIDE / 2)
    for i in range(len(regions)):
        gain, offset = LIGHTS[view[i]]
        draws: Float64[np.ndarray, "4 64 64"] = uniform((*seed, 2, i), 4, SIDE, SIDE)
        bell = draws[0] + draws[1] + draws[2] + draws[3] - 2
        grey = read(image, regions[i : i + 1], line, line).astype(np.float64)
        yield rounded((gain * grey + offset + GRAIN * bell).astype(np.float32))


def _pairs(point: Int[np.ndarray, " n"], seed: tuple[int, ...]) -> Int[np.ndarray, "m 2"]:
    """As many matches as non-matches, in random order."""
    numbers = uniform((*seed, 3), 4, 4 * PAIRS)
    first, other = np.nonzero(point[:, None] == point)
    matches = np.stack([first, other], axis=1)[first < other]
    matches = matches[np.argsort(numbers[0, : len(matches)], kind="stable")][: PAIRS // 2]
    others = (numbers[1:3] * len(point)).astype(np.int64).T
    others = others[point[others[:, 0]] != point[others[:, 1]]][: PAIRS // 2]
    pairs = np.concatenate([matches, others])
    return pairs[np.argsort(numbers[3, : len(pairs)], kind="stable")]
