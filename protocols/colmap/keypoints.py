"""Reads images and keypoints from COLMAP's databases, and converts its coordinates to ours."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32, Float64

from harness.errors import InputError, one_line
from harness.files.folders import same_form
from protocols.colmap.model import camera_models
from protocols.imaging.affine import (
    AffineFrames,
    are_circles,
    from_similarity,
    scale_and_angle,
)

HALF_PIXEL = 0.5
"""COLMAP counts from the corner of the first pixel, `protocols.imaging` from its centre.

Only the functions of this file subtract it from keypoints that are read, and add it to keypoints
that are written. Principal points and projections of COLMAP's cameras differ by it, too.
"""

HEAD = 100  # bytes of the header of a database

KeypointTable = Float32[np.ndarray, "n columns"]
"""COLMAP's columns: x, y, and then scale and angle, or a11 a12 a21 a22 of an affine shape."""


def must_list(database: Path, names: Sequence[str], remedy: str) -> None:
    """Refuse a database that lacks an image, or the camera of an image.

    Raises:
        InputError: if the file is not a whole database, or lacks an image or a camera; names the
            file and the image.
    """
    query = "SELECT camera_id, model, width, height, params FROM cameras"
    cameras = {number for number, *told in _selected(database, query, remedy) if _is_camera(*told)}
    query = "SELECT name, camera_id FROM images"
    listed = {_form(name): camera for name, camera in _selected(database, query, remedy)}
    for name in names:
        if _form(name) not in listed:
            raise InputError(f"{database} lacks the image {name}: {remedy}")
        if listed[_form(name)] not in cameras:
            raise InputError(
                f"{database} has no camera of the image {name}, or a damaged one: {remedy}"
            )


def _is_camera(model: object, width: object, height: object, params: object) -> bool:
    sizes = dict(camera_models().values())
    known = {number: sizes[name] for number, (name, _) in camera_models().items()}
    return (
        isinstance(model, int)
        and isinstance(width, int)
        and isinstance(height, int)
        and isinstance(params, bytes)
        and model in known
        and min(width, height) > 0
        and len(params) == 8 * known[model]
        and bool(np.isfinite(np.frombuffer(params, "<f8")).all())
    )


def read(database: Path, names: Sequence[str], remedy: str) -> dict[str, KeypointTable]:
    """The keypoints of each image: a table of 4 or 6 columns.

    Args:
        database: COLMAP's file.
        names: of the images.
        remedy: what the user can do if keypoints are missing or the file is not a database.

    Raises:
        InputError: if the file is not a whole database, an image is missing, or a keypoint is not
            valid; names the file and the image.
    """
    query = "SELECT name, rows, cols, data FROM keypoints JOIN images USING (image_id)"
    wanted = {_form(name): name for name in names}
    tables = {}
    for told, rows, cols, data in _selected(database, query, remedy):
        name = wanted.get(_form(told))
        if name is None:
            continue
        data = b"" if data is None else data
        numbers = len(data) // 4 if isinstance(data, bytes) else 0
        if not (isinstance(rows, int) and cols in (4, 6) and numbers == rows * cols):
            raise InputError(
                f"{database} declares {rows!r:.20} x {cols!r:.20} numbers for the keypoints of"
                f" {name}, and stores {numbers}; 4 or 6 columns are wanted, since keypoints of"
                f" fewer have no scale: {remedy}"
            )
        table = tables[name] = np.frombuffer(data, "<f4", numbers).reshape(rows, cols)
        if not np.isfinite(table).all():
            raise InputError(f"{database}: a keypoint of {name} is not finite: {remedy}")
        if (table[:, 2] <= 0).any() if cols == 4 else (_determinants(table) == 0).any():
            raise InputError(f"{database}: a keypoint of {name} has no size: {remedy}")
    missing = [name for name in names if name not in tables]
    if missing:
        raise InputError(f"{database} has no keypoints of {missing[0]}: {remedy}")
    return tables


def _determinants(table: KeypointTable) -> Float64[np.ndarray, " n"]:
    return np.linalg.det(table[:, 2:].astype(np.float64).reshape(-1, 2, 2))


def _form(name: object) -> str:
    """The form of an image's name for comparisons; in a damaged database it may not be text."""
    return same_form(name) if isinstance(name, str) else repr(name)


def copy(database: Path, to: Path) -> None:
    """Copy a database, including the rows that are only in its write-ahead log."""
    with _opened(database) as source, closing(sqlite3.connect(to)) as other:
        source.backup(other)


def log_of(database: Path) -> Path:
    """The path of the write-ahead log that COLMAP may have left beside a database."""
    return database.with_name(f"{database.name}-wal")


def _opened(database: Path) -> closing[sqlite3.Connection]:
    """A read-only connection of SQLite; COLMAP itself can open a database only to write."""
    # Without a log, `immutable` keeps SQLite from making other files.
    mode = "mode=ro" if log_of(database).exists() else "immutable=1"
    return closing(sqlite3.connect(f"{database.absolute().as_uri()}?{mode}", uri=True))


def _selected(database: Path, query: str, remedy: str) -> Iterator[tuple[Any, ...]]:
    """The rows of a query, from a database that is checked to be whole."""
    if not database.is_file():
        raise InputError(f"{database} is not there: {remedy}")
    _must_be_whole_pages(database, remedy)
    try:
        with _opened(database) as opened:
            ((verdict,), *_) = opened.execute("PRAGMA quick_check(1)")
            if verdict != "ok":
                raise sqlite3.DatabaseError(verdict)
            yield from opened.execute(query)
    except (sqlite3.Error, UnicodeDecodeError, OverflowError) as error:
        raise InputError(
            f"{database} can't be read as a database of COLMAP: {one_line(error)}; {remedy}"
        ) from error


def _must_be_whole_pages(database: Path, remedy: str) -> None:
    """Refuse a database that is cut off in its last page: SQLite would read zeros there."""
    size = database.stat().st_size
    with database.open("rb") as stream:
        head = stream.read(HEAD)
    if not head.startswith(b"SQLite format 3\0") or len(head) < HEAD:
        return  # SQLite reports the fault
    page = int.from_bytes(head[16:18])
    page = 1 << 16 if page == 1 else page
    if page and size % page:
        raise InputError(
            f"{database} can't be read as a database of COLMAP: it has {size} bytes, which is no"
            f" whole number of pages of {page}, so it is cut off or goes on after its end; {remedy}"
        )


def frames_of(table: KeypointTable) -> AffineFrames:
    """COLMAP's keypoints as regions, in our coordinates."""
    x, y, *shape = table.astype(np.float64).T
    x, y = x - HALF_PIXEL, y - HALF_PIXEL
    if len(shape) == 2:
        return from_similarity(x, y, *shape)
    return AffineFrames(x, y, np.stack(shape, axis=1).reshape(-1, 2, 2), np.zeros(len(table)))


def places_for_colmap(frames: AffineFrames) -> Float32[np.ndarray, "n 2"]:
    """The centres of regions in COLMAP's coordinates."""
    return (np.stack([frames.x, frames.y], axis=1) + HALF_PIXEL).astype(np.float32)


def table_for_colmap(frames: AffineFrames) -> KeypointTable:
    """Regions as rows of COLMAP's database: 4 columns if all are circles, else 6."""
    places = places_for_colmap(frames)
    if are_circles(frames):
        shape = np.stack(scale_and_angle(frames), axis=1)
    else:
        shape = frames.matrix.reshape(-1, 4)
    return np.concatenate([places, shape.astype(np.float32)], axis=1)
