"""The data set `eth-sample`: photographs on two walls and a floor, seen by five cameras.

scikit-image ships the photographs. Regions are detected in the photographs and projected into every
view, where they are the keypoints: so the keypoints of one point are known, and the cameras too.
The set is for first trials and for end-to-end tests; its scores appear in no table with those of
real scenes. Like `hpatches-sample`, it has the same bytes on every machine.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float64, UInt8

from harness.files import atomic
from protocols.eth import truth
from protocols.eth.files import write_keypoints, write_points
from protocols.eth.keypoints import FOLDER
from protocols.eth.scenes import IMAGES, MADE, POINTS, SAMPLE
from protocols.imaging.detect import detect
from protocols.imaging.frames import MAGNIFICATION, Frames, compose, thin, uniform
from protocols.imaging.png import encode
from protocols.imaging.sampling import read, rounded, smooth
from protocols.samples import kept, photograph

VERSION = 1  # raised with SHA256
SHA256 = "be90fb41c9b054e0b493b009f1791be074c0071d8ace07405b7fcf143acbc48c"
"""Hash of the whole set; see `cache.fingerprint`."""

SCENE = "corner"
WALLS = {"astronaut.png": (1, 2), "camera.png": (0, 2), "coffee.png": (0, 1)}
"""Photographs in the public domain or under CC0, and the world axes of their width and height."""

METRES = 2.0  # the shorter side of each wall; all walls start at the corner
EYES = ((3.6, 2.2, 1.9), (3.4, 2.7, 2.3), (3.1, 3.1, 2.1), (2.8, 3.4, 2.4), (2.3, 3.6, 2.0))
TARGET = (0.7, 0.7, 0.6)
WIDTH, HEIGHT = 400, 320
INTRINSICS = np.array([[420.0, 0, 199.5], [0, 420, 159.5], [0, 0, 1]])

REGIONS = 50  # strongest regions of a photograph that are used
SMALLEST = 1.0  # smallest scale of a keypoint, pixels
JITTER = 0.3  # largest error of a keypoint along each axis, pixels
LIGHTS = ((1.0, 0.0), (0.8, 20.0), (1.15, -20.0))  # gain and offset; views take them in turn
GRAIN = 8.0  # noise in grey values; its standard deviation is 0.58 times this
NOWHERE = 128.0  # grey value beyond the walls

Map = Float64[np.ndarray, "3 3"]


def sample() -> Path:
    """The folder of the set; it is made on first use, in some seconds, and kept in the cache.

    Raises:
        ComputeError: if the set made on this machine has another hash.
    """
    return kept(SAMPLE, VERSION, make, SHA256)


def make(folder: Path) -> None:
    """Write the set into a folder."""
    walls = [_wall(file, spanned) for file, spanned in WALLS.items()]
    for number, eye in enumerate(np.array(EYES)):
        _view(folder / SCENE, number, eye, _looking_at(np.array(TARGET) - eye), walls)
    about = {"name": SAMPLE, "version": VERSION, "photographs": sorted(WALLS)}
    atomic.write_json(folder / MADE, about)


@dataclass(frozen=True, eq=False)
class _Wall:
    photograph: UInt8[np.ndarray, "height width"]
    regions: Frames
    world_from: Map  # from (u, v, 1) of a pixel to its place in the world


def _wall(file: str, spanned: tuple[int, int]) -> _Wall:
    image = photograph(file, SAMPLE)
    regions = detect(image)
    regions = regions.take(np.flatnonzero(thin(regions))[:REGIONS])
    world_from = np.zeros((3, 3))
    for column, axis in enumerate(spanned):
        world_from[axis, column] = METRES / min(image.shape)
    return _Wall(image, regions, world_from)


def _looking_at(forward: Float64[np.ndarray, "3"]) -> Map:
    """The rotation from the world to an upright camera: its rows are right, down and forward."""
    x, y, z = forward / np.sqrt(_sum(forward * forward))
    level = np.sqrt(x * x + y * y)
    right = np.array([y / level, -x / level, 0.0])
    down = np.array([x * z / level, y * z / level, -level])
    return np.stack([right, down, np.array([x, y, z])])


def _view(scene: Path, number: int, eye: np.ndarray, rotation: Map, walls: list[_Wall]) -> None:
    """Write one image, its keypoints and its camera."""
    name = f"{number:04}.png"
    draws = uniform((VERSION, number), 4, HEIGHT, WIDTH)
    bell = draws[0] + draws[1] + draws[2] + draws[3] - 2
    gain, offset = LIGHTS[number % len(LIGHTS)]
    grey = np.full((HEIGHT, WIDTH), NOWHERE)
    keypoints, points = [], []
    for k, wall in enumerate(walls):
        camera_from = wall.world_from.copy()
        camera_from[:, 2] -= eye
        image_from = compose(INTRINSICS, compose(rotation, camera_from))
        seen, values = _seen(wall.photograph, image_from)
        grey = np.where(seen, values, grey)
        projected = _project(wall.regions, image_from)
        projected[:, :2] += JITTER * (2 * uniform((VERSION, number, k), len(projected), 2) - 1)
        inside = (projected[:, :2] > 0).all(1) & (projected[:, :2] < (WIDTH - 1, HEIGHT - 1)).all(1)
        rows = np.flatnonzero(inside & (projected[:, 2] >= SMALLEST))
        keypoints.append(projected[rows])
        points.append(k * REGIONS + rows)
    image = rounded((gain * grey + offset + GRAIN * bell).astype(np.float32))
    with atomic.writing(scene / IMAGES / name) as stream:
        stream.write(encode(image, compress=False))
    write_keypoints(scene / FOLDER / f"{name}.bin", np.concatenate(keypoints).astype(np.float32))
    write_points(scene / POINTS / f"{name}.bin", np.concatenate(points))
    lines = [*INTRINSICS, np.zeros(3), *rotation.T, eye, np.array([WIDTH, HEIGHT])]
    text = "".join(" ".join(f"{value:.9g}" for value in line) + "\n" for line in lines)
    atomic.write_text(scene / truth.FOLDER / f"{name}.camera", text)


def _seen(
    photograph: UInt8[np.ndarray, "height width"], image_from: Map
) -> tuple[np.ndarray, np.ndarray]:
    """Which pixels of a view show a wall, and the wall's grey values there."""
    wall_from = _inverse(image_from)
    x, y = np.arange(float(WIDTH)), np.arange(float(HEIGHT))
    u, v, w = (row[0] * x + (row[1] * y[:, None] + row[2]) for row in wall_from)
    height, width = photograph.shape
    seen = (w > 0) & (u >= 0) & (v >= 0) & (u <= (width - 1) * w) & (v <= (height - 1) * w)
    blurred = smooth(photograph.astype(np.float32), 0.7)  # a view's pixel is about two pixels wide
    return seen, read(blurred, wall_from[None], x, y)[0].astype(np.float64)


def _project(regions: Frames, image_from: Map) -> Float64[np.ndarray, "n 4"]:
    """x, y, scale and angle of regions of a wall in a view."""
    x, y, depth = (row[0] * regions.x + row[1] * regions.y + row[2] for row in image_from)
    x, y = x / depth, y / depth
    # The Jacobian of x and y along the two axes of the wall.
    (a, b), (c, d) = (
        [(row[i] - at * image_from[2, i]) / depth for i in (0, 1)]
        for row, at in zip(image_from[:2], (x, y), strict=True)
    )
    scale = regions.half / MAGNIFICATION * np.sqrt(np.abs(a * d - b * c))
    right, down = a * regions.cos + b * regions.sin, c * regions.cos + d * regions.sin
    # Rounded, because the last bit of arctan2 differs between machines.
    return np.stack([x, y, scale, np.arctan2(down, right).round(4)], axis=1)


def _inverse(m: Map) -> Map:
    """The inverse by cofactors, in operations that IEEE 754 defines exactly."""
    rows = [np.cross(m[1], m[2]), np.cross(m[2], m[0]), np.cross(m[0], m[1])]
    return np.stack(rows, axis=1) / _sum(m[0] * rows[0])


def _sum(v: Float64[np.ndarray, "3"]) -> float:
    return float(v[0] + v[1] + v[2])
