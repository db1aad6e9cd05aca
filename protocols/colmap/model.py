"""Reads a sparse model in COLMAP's binary or text format, strictly.

COLMAP's own reader trusts the counts in a file: on a file that is cut off or damaged, it allocates
memory for billions of points, or never ends. This reader compares each count with the bytes that
are left, and the three files with each other. Poses come from the file of images.
"""

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

import numpy as np
import pycolmap
from jaxtyping import Float64, Int

from harness.errors import InputError
from harness.files import texts

STEMS = ("cameras", "images", "points3D")
T = TypeVar("T")

NONE = -1  # the point number of a keypoint without a point
FARTHEST = 1e12  # largest coordinate; a larger one is damaged, and overflows when squared
UNIT = 1e-3  # largest deviation of a quaternion's norm from 1
AGAIN = "write the model again, or get it again"


@dataclass(frozen=True, eq=False)
class RegisteredImage:
    """A registered image."""

    name: str
    camera: int  # its number
    pose: pycolmap.Rigid3d  # from the model to the camera
    xy: Float64[np.ndarray, "n 2"]  # keypoints, in COLMAP's coordinates
    point: Int[np.ndarray, " n"]  # the number of the point that each keypoint shows, or NONE


@dataclass(frozen=True, eq=False)
class Model:
    """A sparse model; cameras and images by their numbers."""

    cameras: Mapping[int, pycolmap.Camera]
    images: Mapping[int, RegisteredImage]
    point: Int[np.ndarray, " p"]  # numbers of the points, ascending
    xyz: Float64[np.ndarray, "p 3"]
    track: Int[np.ndarray, "t 3"]  # point, image, index of the keypoint; sorted by point


def files_of(folder: Path) -> tuple[Path, ...]:
    """The three files of a model; the binary files are preferred if all three exist.

    Raises:
        InputError: if the folder has neither all three binary files nor all three text files.
    """
    for end in ("bin", "txt"):
        files = tuple(folder / f"{stem}.{end}" for stem in STEMS)
        if all(file.is_file() for file in files):
            return files
    raise InputError(
        f"{folder} is no sparse model of COLMAP: give the folder that holds"
        " cameras, images and points3D, as .bin or .txt (--model FOLDER)"
    )


def read(folder: Path) -> Model:
    """The model in a folder; its files are compared with each other.

    Raises:
        InputError: if a file is missing, cut off, too long, or damaged, or if two files disagree;
            names the file.
    """
    files = files_of(folder)
    read_cameras, read_images, read_points = _BINARY if files[0].suffix == ".bin" else _TEXT
    cameras = _named(read_cameras, files[0])
    images = _named(read_images, files[1])
    point, xyz, track = _named(read_points, files[2])
    try:
        _compare(cameras, images, point, track)
    except _DamagedError as error:
        raise InputError(f"{folder}: {error}: files of two models? {AGAIN}") from error
    return Model(cameras, images, point, xyz, track)


def _named(read: Callable[[Path], T], file: Path) -> T:
    """The reader's result for a file; errors name the file."""
    try:
        return read(file)
    except _DamagedError as error:
        raise InputError(f"{file}: {error}; {AGAIN}") from error


class _DamagedError(InputError):
    """A fault of a file; the text does not name the file."""


Cameras = dict[int, pycolmap.Camera]
Images = dict[int, RegisteredImage]
PointArrays = tuple[np.ndarray, np.ndarray, np.ndarray]


@cache
def camera_models() -> dict[int, tuple[str, int]]:
    """Name and number of parameters of each camera model, by COLMAP's number of the model."""
    models = {}
    for name, kind in pycolmap.CameraModelId.__members__.items():
        if int(kind) >= 0:
            camera = pycolmap.Camera.create_from_model_name(1, name, 1.0, 1, 1)
            models[int(kind)] = name, len(camera.params)
    return models


def _camera(number: int, name: str, width: int, height: int, params: np.ndarray) -> pycolmap.Camera:
    if not (0 < width < 1 << 31 and 0 < height < 1 << 31) or not np.isfinite(params).all():
        raise _DamagedError(f"camera {number} of {width} x {height} pixels has {params.tolist()}")
    return pycolmap.Camera(
        camera_id=number, model=name, width=width, height=height, params=params.tolist()
    )


def _image(
    number: int, name: str, camera: int, pose: np.ndarray, xy: np.ndarray, point: np.ndarray
) -> RegisteredImage:
    sound = all(bool((np.abs(part) < FARTHEST).all()) for part in (pose, xy))
    norm = float(np.linalg.norm(pose[:4])) if sound else 0.0
    if abs(norm - 1) > UNIT:
        raise _DamagedError(f"image {number} ({name}) has an invalid pose or keypoint")
    w, x, y, z = pose[:4] / norm
    rotation = pycolmap.Rotation3d(np.array([x, y, z, w]))
    return RegisteredImage(name, camera, pycolmap.Rigid3d(rotation, pose[4:]), xy, point)


class _Bytes:
    """The bytes of a file, read from its beginning."""

    def __init__(self, file: Path) -> None:
        """Read the whole file."""
        self.data, self.at = file.read_bytes(), 0

    def take(self, form: str) -> tuple[int | float, ...]:
        """The next numbers, in a format of `struct`, little-endian."""
        self._must_have(struct.calcsize("<" + form))
        values = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return values

    def count(self, least: int) -> int:
        """The next number, a count of items of at least `least` bytes each."""
        (count,) = self.take("Q")
        self._must_have(int(count) * least)
        return int(count)

    def rows(self, kind: np.dtype, count: int) -> np.ndarray:
        """The next `count` rows."""
        self._must_have(kind.itemsize * count)
        table = np.frombuffer(self.data, kind, count, self.at)
        self.at += kind.itemsize * count
        return table

    def text(self) -> str:
        """The next text, which ends with a zero byte."""
        end = self.data.find(b"\0", self.at)
        if end < 0:
            raise _DamagedError(f"is cut off after {len(self.data)} bytes")
        name = self.data[self.at : end]
        self.at = end + 1
        try:
            return name.decode()
        except UnicodeDecodeError as error:
            raise _DamagedError(f"the name {name!r:.60} is not UTF-8") from error

    def must_end(self) -> None:
        """Refuse bytes after the last counted item."""
        if self.at != len(self.data):
            raise _DamagedError(
                f"goes on after its end: it has {len(self.data)} bytes, its counted items end at"
                f" {self.at}"
            )

    def _must_have(self, size: int) -> None:
        if size > len(self.data) - self.at:
            raise _DamagedError(
                f"is cut off, or its counts are damaged: at byte {self.at} of {len(self.data)} it"
                f" declares {size} more"
            )


def _binary_cameras(file: Path) -> Cameras:
    data = _Bytes(file)
    cameras: Cameras = {}
    for _ in range(data.count(24)):
        number, kind, width, height = map(int, data.take("IiQQ"))
        if kind not in camera_models():
            raise _DamagedError(f"camera {number} is of the unknown model {kind}")
        name, size = camera_models()[kind]
        _add(cameras, number, _camera(number, name, width, height, np.array(data.take(size * "d"))))
    data.must_end()
    return cameras


_KEYPOINT = np.dtype([("xy", "<f8", 2), ("point", "<u8")])
_SEEN = np.dtype([("image", "<u4"), ("index", "<u4")])


def _binary_images(file: Path) -> Images:
    data = _Bytes(file)
    images: Images = {}
    for _ in range(data.count(4 + 7 * 8 + 4 + 1 + 8)):
        (number,) = map(int, data.take("I"))
        pose = np.array(data.take("7d"))
        (camera,) = map(int, data.take("I"))
        name = data.text()
        rows = data.rows(_KEYPOINT, data.count(_KEYPOINT.itemsize))
        point = rows["point"].astype(np.int64)  # 2^64 - 1, which means no point, becomes -1
        _add(images, number, _image(number, name, camera, pose, rows["xy"].copy(), point))
    data.must_end()
    return images


def _binary_points(file: Path) -> PointArrays:
    data = _Bytes(file)
    xyz: dict[int, tuple[float, ...]] = {}
    tracks = []
    for _ in range(data.count(8 + 3 * 8 + 3 + 8 + 8)):
        (number,) = map(int, data.take("Q"))
        _add(xyz, number, data.take("3d"))
        data.take("3Bd")  # colour and error
        seen = data.rows(_SEEN, data.count(_SEEN.itemsize))
        tracks.append((number, np.stack([seen["image"], seen["index"]], axis=1)))
    data.must_end()
    return _points(xyz, tracks)


def _points(
    xyz: Mapping[int, tuple[float, ...]], tracks: list[tuple[int, np.ndarray]]
) -> PointArrays:
    if any(not 0 <= number < 1 << 63 for number in xyz):
        raise _DamagedError(f"has a point of the number {max(xyz, key=abs)}")
    number = np.array(sorted(xyz), np.int64)
    places = np.array([xyz[k] for k in number.tolist()], np.float64).reshape(-1, 3)
    bad = np.flatnonzero(~(np.abs(places) < FARTHEST).all(axis=1))
    if len(bad):
        raise _DamagedError(f"point {number[bad[0]]} is at {places[bad[0]].tolist()}")
    track = [
        np.concatenate([np.full((len(seen), 1), k), seen.astype(np.int64)], axis=1)
        for k, seen in sorted(tracks, key=lambda entry: entry[0])
    ]
    return number, places, np.concatenate([np.empty((0, 3), np.int64), *track])


def _add(entries: dict[int, T], number: int, entry: T) -> None:
    if number in entries:
        raise _DamagedError(f"has number {number} twice")
    entries[number] = entry


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    """Every line of a text file, with its number from 1."""
    yield from enumerate(texts.read_table(file).split("\n"), 1)


def _told(lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, list[str]]]:
    """Number and words of each line that is neither blank nor a comment."""
    for number, line in lines:
        if line.strip() and not line.lstrip().startswith("#"):
            yield number, line.split()


def _numbers(line: int, words: list[str]) -> list[float]:
    return _each(line, words, texts.number)


def _each(line: int, words: list[str], kind: Callable[[str], T]) -> list[T]:
    try:
        return [kind(word) for word in words]
    except ValueError as error:
        raise _DamagedError(f"line {line}: {error}") from error


def _whole(word: str) -> int:
    if not word.lstrip("-").isdecimal() or not word.isascii() or len(word) > 20:
        raise InputError(f"{word[:40]!r} is not a whole number")
    return int(word)


def _text_cameras(file: Path) -> Cameras:
    sizes = dict(camera_models().values())
    cameras: Cameras = {}
    for line, words in _told(_lines(file)):
        if len(words) < 5 or words[1] not in sizes or len(words) != 4 + sizes[words[1]]:
            raise _DamagedError(
                f"line {line} is cut off or damaged: CAMERA_ID, MODEL, WIDTH, HEIGHT and the"
                " parameters of the model are wanted"
            )
        number, width, height = _each(line, [words[0], *words[2:4]], _whole)
        params = np.array(_numbers(line, words[4:]))
        _add(cameras, number, _camera(number, words[1], width, height, params))
    return cameras


def _text_images(file: Path) -> Images:
    lines = _lines(file)
    images: Images = {}
    for line, words in _told(lines):
        if len(words) > 10:
            raise _DamagedError(
                f"line {line}: the name of an image has a blank ({' '.join(words[9:])!r:.80}),"
                " which COLMAP's text can't hold: write the model as .bin (colmap model_converter"
                " --output_type BIN)"
            )
        _, keypoints = next(lines, (0, None))
        if len(words) < 10 or keypoints is None or len(keypoints.split()) % 3:
            raise _DamagedError(
                f"line {line} or the next is cut off or damaged: IMAGE_ID, QW, QX, QY, QZ, TX, TY,"
                " TZ, CAMERA_ID, NAME are wanted, and then X, Y, POINT3D_ID of each keypoint"
            )
        number, camera = _each(line, [words[0], words[8]], _whole)
        pose = np.array(_numbers(line, words[1:8]))
        parts = keypoints.split()
        columns = [_numbers(line + 1, parts[k::3]) for k in (0, 1)]
        xy = np.array(columns, np.float64).reshape(2, -1).T
        numbers = _each(line + 1, parts[2::3], _whole)
        if any(not -(1 << 63) <= point_number < 1 << 63 for point_number in numbers):
            raise _DamagedError(f"line {line + 1} has a point of the number {max(numbers)}")
        point = np.array(numbers, np.int64)
        _add(images, number, _image(number, words[9], camera, pose, xy, point))
    return images


def _text_points(file: Path) -> PointArrays:
    xyz: dict[int, tuple[float, ...]] = {}
    tracks = []
    for line, words in _told(_lines(file)):
        if len(words) < 8 or len(words) % 2:
            raise _DamagedError(
                f"line {line} is cut off or damaged: POINT3D_ID, X, Y, Z, R, G, B, ERROR are"
                " wanted, and then IMAGE_ID and POINT2D_IDX of each image"
            )
        (number,) = _each(line, words[:1], _whole)
        seen = _each(line, words[8:], _whole)
        if any(not 0 <= value < 1 << 32 for value in seen):
            raise _DamagedError(f"line {line} has the number {max(seen, key=abs)} in its track")
        _add(xyz, number, tuple(_numbers(line, words[1:4])))
        tracks.append((number, np.array(seen, np.int64).reshape(-1, 2)))
    return _points(xyz, tracks)


_BINARY = (_binary_cameras, _binary_images, _binary_points)
_TEXT = (_text_cameras, _text_images, _text_points)


def _compare(cameras: Cameras, images: Images, point: np.ndarray, track: np.ndarray) -> None:
    """Refuse images without a camera, and points whose tracks disagree with the keypoints."""
    names: dict[str, int] = {}
    sides = [np.empty((0, 3), np.int64)]
    for number, image in images.items():
        if image.camera not in cameras:
            raise _DamagedError(
                f"image {number} ({image.name}) has the unknown camera {image.camera}"
            )
        if names.setdefault(image.name, number) != number:
            raise _DamagedError(f"images {names[image.name]} and {number} are both {image.name}")
        index = np.flatnonzero(image.point != NONE)
        sides.append(np.stack([image.point[index], np.full(len(index), number), index], axis=1))
    seen = np.concatenate(sides)
    seen = seen[np.lexsort(seen.T[::-1])]
    told = track[np.lexsort(track.T[::-1])]
    if not np.array_equal(seen, told):
        ours, theirs = (set(map(tuple, table.tolist())) for table in (seen, told))
        odd = min(ours ^ theirs, default=None)
        fault = (
            "a track has a keypoint twice"
            if odd is None
            else (
                f"point {odd[0]}, image {odd[1]}, keypoint {odd[2]} is in"
                f" {'images, not in points3D' if odd in ours else 'points3D, not in images'}"
            )
        )
        raise _DamagedError(f"images and points3D disagree: {fault}")
