"""The data set `hpatches-sample`: small, in HPatches' format, made from scikit-image's photographs.

Views and lights are computed, so every correspondence is known exactly. The set is for first trials
and for end-to-end tests; its scores are not those of HPatches and appear in no table with them.

Scores are compared between machines, so the set has the same bytes on every machine: this file,
`frames`, `detect`, `sampling` and `png` use only operations that IEEE 754 defines exactly.
"""

import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
from jaxtyping import Float32, Float64, UInt8

from harness.files import atomic
from protocols.hpatches import tasks
from protocols.hpatches.writer import select, write_strips
from protocols.imaging.frames import uniform
from protocols.imaging.png import encode
from protocols.imaging.sampling import read, rounded, smooth
from protocols.imaging.sequences import Homography
from protocols.samples import kept, photograph

VERSION = 1  # raised with SHA256
SHA256 = "b5af7f8a7374c30a5400be10a890523f71e9a9ea77ba680b9ba3753aeae5745b"
"""Hash of the whole set; see `cache.fingerprint`."""

PATCHES = 100  # most patches in a strip
SEQUENCES = {
    "i_brick": "brick.png",
    "i_camera": "camera.png",
    "i_coins": "coins.png",
    "i_grass": "grass.png",
    "v_astronaut": "astronaut.png",
    "v_chelsea": "chelsea.png",
    "v_coffee": "coffee.png",
    "v_gravel": "gravel.png",
}
"""Photographs in the public domain or under CC0, all PNG: decoders agree on every pixel."""

TRAIN = ("i_grass", "v_chelsea")


@dataclass(frozen=True)
class Light:
    """Changes of the grey values of one image, in this order."""

    blur: float = 0.0  # pixels
    tone: float = 1.0  # of the curve v / (v + tone (1 - v)), v in [0, 1]: below 1 is brighter
    gain: float = 1.0  # in the upper left corner
    right: float = 0.0  # added to the gain at the right border
    down: float = 0.0  # added to the gain at the lower border
    offset: float = 0.0  # grey values
    noise: float = 2.0  # grey values; the standard deviation is 0.58 times this


LIGHTS = (
    Light(tone=1.5),
    Light(gain=1.25, offset=-20),
    Light(gain=0.45, right=0.5, down=0.3),
    Light(blur=1.5, tone=2.5, noise=4),
    Light(blur=0.8, tone=3.0, gain=0.9, right=-0.5, offset=30, noise=8),
)

# Views of images 2 to 6. First the places in the photograph that the upper left, upper right, lower
# right and lower left corner of the image show, as fractions of the photograph's width and height;
# then the width and height of the image, as fractions of the photograph's.
Corner = tuple[float, float]
VIEWS: tuple[tuple[tuple[Corner, Corner, Corner, Corner], float, float], ...] = (
    (((0.08, 0.05), (0.96, 0.10), (0.92, 0.96), (0.03, 0.92)), 0.90, 0.90),
    (((0.00, 0.14), (0.88, 0.00), (1.00, 0.86), (0.12, 1.00)), 0.85, 0.85),
    (((0.02, 0.10), (0.90, 0.00), (0.98, 0.95), (0.06, 0.88)), 0.60, 0.90),
    (((0.22, 0.00), (1.00, 0.22), (0.80, 1.00), (0.00, 0.78)), 0.75, 0.75),
    (((0.00, 0.05), (1.00, 0.12), (0.78, 0.98), (0.16, 0.90)), 0.85, 0.50),
)


def sample() -> Path:
    """The folder of the set; it is made on first use, in some seconds, and kept in the cache.

    If its files have changed, it is made again.

    Raises:
        ComputeError: if the set made on this machine has another hash.
    """
    return kept("hpatches-sample", VERSION, make, SHA256)


def make(folder: Path) -> None:
    """Write the set into a folder."""
    regions = {}
    for name, file in SEQUENCES.items():
        images, from_first = sequence(name, photograph(file, "hpatches-sample"))
        shapes = [image.shape for image in images]
        chosen, tally = select(
            name, images[0], shapes=shapes, from_first=from_first, seed=VERSION, most=PATCHES
        )
        load = [partial(np.copy, image) for image in images]
        target = folder / "patches" / name
        write_strips(target, load, from_first=from_first, regions=chosen, compress=False)
        regions[name] = {"photograph": file, **asdict(tally)}
    test = sorted(set(SEQUENCES) - set(TRAIN))
    splits = {"sample": {"name": "sample", "test": test, "train": sorted(TRAIN)}}
    atomic.write_json(folder / "tasks" / "splits.json", splits)
    about = {"name": "hpatches-sample", "version": VERSION, "sequences": regions}
    atomic.write_json(folder / "dataset.json", about)
    tasks.make(folder)


def sequence(
    name: str, photograph: UInt8[np.ndarray, "height width"]
) -> tuple[list[UInt8[np.ndarray, "_ _"]], list[Homography]]:
    """Six images, and the maps from the first image, the photograph, to each."""
    first = photograph.astype(np.float32)
    images, from_first = [photograph], [np.eye(3)]
    for k in range(len(LIGHTS)):
        image, light = first, LIGHTS[k]
        if name.startswith("v_"):
            image, back = _view(first, *VIEWS[k])
            light = Light()
            from_first.append(_inverse(back))
        else:
            from_first.append(np.eye(3))
        images.append(_lit(image, light, (zlib.crc32(name.encode()), k)))
    return images, from_first


def write_sequences(
    folder: Path,
    photographs: Mapping[str, UInt8[np.ndarray, "height width"]],
    *,
    image: str,
    homography: str,
) -> None:
    """Write whole image sequences: six images each as PNG, and the map from the first to each.

    Args:
        folder: gets a folder for each sequence.
        photographs: the first image of each sequence, by its name.
        image: file name of image k, with "{k}" for the number.
        homography: file name of the map from image 1 to image k, with "{k}".
    """
    for name, first in photographs.items():
        images, from_first = sequence(name, first)
        for k, (view, matrix) in enumerate(zip(images, from_first, strict=True), start=1):
            with atomic.writing(folder / name / image.format(k=k)) as stream:
                stream.write(encode(view, compress=False))
            if k > 1:
                rows = (" ".join(map(repr, row)) for row in matrix.tolist())
                atomic.write_text(folder / name / homography.format(k=k), "\n".join(rows) + "\n")


def _view(
    photograph: Float32[np.ndarray, "height width"],
    corners: tuple[Corner, Corner, Corner, Corner],
    width: float,
    height: float,
) -> tuple[Float32[np.ndarray, "rows columns"], Homography]:
    """A camera's view of the photograph, and the map from the view's pixels to the photograph's."""
    tall, wide = photograph.shape
    rows, columns = round(height * tall), round(width * wide)
    quad = _from_unit_square([(x * (wide - 1), y * (tall - 1)) for x, y in corners])
    back = quad / np.array([columns - 1.0, rows - 1.0, 1.0])
    # A view's pixels lie 1 to 2 of the photograph's apart: without blur, fine texture would alias.
    blurred = smooth(photograph, 0.5)
    seen = read(blurred, back[None], np.arange(columns) * 1.0, np.arange(rows) * 1.0)
    return seen[0], back


def _from_unit_square(corners: list[Corner]) -> Homography:
    """The map from (0, 0), (1, 0), (1, 1), (0, 1) to four corners (Heckbert 1989, section 2.2)."""
    (x0, y0), (x1, y1), (x2, y2), (x3, y3) = corners
    ax, ay, bx, by = x1 - x2, y1 - y2, x3 - x2, y3 - y2
    sx, sy = x0 - x1 + x2 - x3, y0 - y1 + y2 - y3
    area = ax * by - bx * ay
    g, h = (sx * by - bx * sy) / area, (ax * sy - sx * ay) / area
    return np.array(
        [
            [x1 - x0 + g * x1, x3 - x0 + h * x3, x0],
            [y1 - y0 + g * y1, y3 - y0 + h * y3, y0],
            [g, h, 1.0],
        ]
    )


def _inverse(h: Homography) -> Homography:
    """The inverse up to a positive factor: the adjugate, without a linear algebra library."""
    (a, b, c), (d, e, f), (g, i, j) = h.tolist()
    rows = [
        [e * j - f * i, c * i - b * j, b * f - c * e],
        [f * g - d * j, a * j - c * g, c * d - a * f],
        [d * i - e * g, b * g - a * i, a * e - b * d],
    ]
    return np.array(rows)


def _lit(
    image: Float32[np.ndarray, "rows columns"], light: Light, seed: tuple[int, ...]
) -> UInt8[np.ndarray, "rows columns"]:
    if light.blur:
        image = smooth(image, light.blur)
    rows, columns = image.shape
    share = image.astype(np.float64) / 255
    share = share / (share + light.tone * (1 - share))
    x, y = np.arange(columns) / (columns - 1), np.arange(rows) / (rows - 1)
    gain = light.gain + light.right * x + (light.down * y)[:, None]
    draws: Float64[np.ndarray, "4 rows columns"] = uniform(seed, 4, rows, columns)
    bell = draws[0] + draws[1] + draws[2] + draws[3] - 2
    value = 255 * share * gain + light.offset + light.noise * bell
    return rounded(value.astype(np.float32))
