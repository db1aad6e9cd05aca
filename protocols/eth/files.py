"""Reads and writes the official files of keypoints, descriptors and matches.

A file has two little-endian int32, the numbers of rows and columns, then rows of float32, or of
uint32 for matches, which count keypoints from 0. The centre of the first pixel is (0, 0).
"""

import struct
from pathlib import Path

import numpy as np
from jaxtyping import Float32, Int, UInt32

from harness.errors import InputError
from harness.files import atomic

HEAD = struct.Struct("<ii")
MOST_ANGLE = 4 * np.pi  # two full turns; no detector gives more than one


def read_keypoints(file: Path) -> Float32[np.ndarray, "n 4"]:
    """x, y, scale in pixels, and angle in radians of each keypoint.

    Raises:
        InputError: if the file is missing or malformed; names the file and the fault.
    """
    table = _read(file, "<f4", columns=4)
    bad = np.flatnonzero(~np.isfinite(table).all(axis=1) | (table[:, 2] <= 0))
    if len(bad):
        raise InputError(
            f"{file}: keypoint {bad[0]} is {table[bad[0]].tolist()}; finite numbers and a scale"
            " above 0 are wanted: write the file again"
        )
    turned = np.flatnonzero(np.abs(table[:, 3]) > MOST_ANGLE)
    if len(turned):
        raise InputError(
            f"{file}: keypoint {turned[0]} has the angle {table[turned[0], 3]:g}; radians are"
            f" wanted, from -{MOST_ANGLE:.3g} to {MOST_ANGLE:.3g}: are these degrees, or is the"
            " file damaged? Write it again"
        )
    return table


def read_descriptors(file: Path) -> Float32[np.ndarray, "n dim"]:
    """The descriptor of each keypoint.

    Raises:
        InputError: as `read_keypoints`.
    """
    table = _read(file, "<f4")
    bad = np.flatnonzero(~np.isfinite(table).all(axis=1))
    if len(bad):
        raise InputError(f"{file}: descriptor {bad[0]} is not finite: write the file again")
    return table


def read_matches(file: Path) -> UInt32[np.ndarray, "m 2"]:
    """Matches as pairs of keypoint numbers, of the first and of the second image.

    Raises:
        InputError: as `read_keypoints`.
    """
    return _read(file, "<u4", columns=2)


def read_points(file: Path) -> Int[np.ndarray, " n"]:
    """The number of each keypoint's 3-D point; the official sets have no such file.

    Raises:
        InputError: as `read_keypoints`.
    """
    return _read(file, "<u4", columns=1)[:, 0].astype(np.intp)


def write_keypoints(file: Path, keypoints: Float32[np.ndarray, "n 4"]) -> None:
    """Write a file for `read_keypoints`."""
    _write(file, keypoints.astype("<f4"))


def write_descriptors(file: Path, descriptors: Float32[np.ndarray, "n dim"]) -> None:
    """Write a file for `read_descriptors`."""
    _write(file, descriptors.astype("<f4"))


def write_matches(file: Path, matches: UInt32[np.ndarray, "m 2"]) -> None:
    """Write a file for `read_matches`."""
    _write(file, matches.astype("<u4"))


def write_points(file: Path, points: Int[np.ndarray, " n"]) -> None:
    """Write a file for `read_points`."""
    _write(file, points[:, None].astype("<u4"))


def _read(file: Path, kind: str, columns: int | None = None) -> np.ndarray:
    try:
        size = file.stat().st_size
        with file.open("rb") as stream:
            head = stream.read(HEAD.size)
            if len(head) < HEAD.size:
                raise InputError(
                    f"{file} has {len(head)} bytes, its head alone has 8: write it again"
                )
            rows, width = HEAD.unpack(head)
            _must_fit(file, rows, width, columns, size)
            data = stream.read(size)
    except FileNotFoundError as error:
        raise InputError(f"{file} is missing: add it, or take its image out") from error
    # A writable copy in the byte order of this machine.
    table = np.frombuffer(data, kind).reshape(rows, width)
    return table.astype(table.dtype.newbyteorder("="))


def _must_fit(file: Path, rows: int, width: int, columns: int | None, size: int) -> None:
    """Refuse a head that disagrees with the wanted columns or the length of the file."""
    if rows < 0 or width < 0 or (columns is not None and width != columns):
        wanted = "some" if columns is None else columns
        raise InputError(
            f"{file} says that it has {rows} rows of {width} columns; {wanted} columns are wanted:"
            " is it a file of another kind, or of big-endian numbers?"
        )
    wanted_size = HEAD.size + 4 * rows * width
    if size != wanted_size:
        fault = "is cut off" if size < wanted_size else "goes on after its end"
        raise InputError(
            f"{file} {fault}: {rows} x {width} numbers make {wanted_size} bytes, it has {size};"
            " write it again"
        )


def _write(file: Path, table: np.ndarray) -> None:
    with atomic.writing(file) as stream:
        stream.write(HEAD.pack(*table.shape))
        stream.write(table.tobytes())
