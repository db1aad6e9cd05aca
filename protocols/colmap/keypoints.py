"""Images and keypoints in COLMAP's databases; the half pixel between its coordinates and ours."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32

from protocols.images.affine import AffineFrames, from_similarity

HALF_PIXEL = 0.5
"""COLMAP counts from the corner of the first pixel, `protocols.images` from its centre.

Keypoints lose it here, where those of COLMAP are read, and get it where they are written, and
nowhere else; principal points and projections of COLMAP's cameras differ by it, too.
"""

Table = Float32[np.ndarray, "n columns"]
"""As COLMAP has it: x, y, and scale and angle, or a11 a12 a21 a22 of an affine shape."""


def images(database: Path, remedy: str) -> set[str]:
    """Names of the images.

    Raises:
        ValueError: if the file is no database.
    """
    return {name for (name,) in _selected(database, "SELECT name FROM images", remedy)}


def read(database: Path, names: Sequence[str], remedy: str) -> dict[str, Table]:
    """The table of each image's keypoints, of 4 or 6 columns.

    Args:
        database: COLMAP's file.
        names: of the images.
        remedy: what a user can do where there are none, or the file is another.

    Raises:
        ValueError: if the file is no database, an image is not in it, or a keypoint is none; names
            the file and the image.
    """
    query = "SELECT name, rows, cols, data FROM keypoints JOIN images USING (image_id)"
    found = {}
    for name, rows, cols, data in _selected(database, query, remedy):
        if name not in names:
            continue
        if cols not in (4, 6) or len(data or b"") != 4 * rows * cols:
            raise ValueError(
                f"{database} has {rows} x {cols} numbers of the keypoints of {name}; rows of 4 or 6"
                f" are wanted, without which they have no scale: {remedy}"
            )
        found[name] = np.frombuffer(data or b"", "<f4").reshape(rows, cols)
        if not np.isfinite(found[name]).all():
            raise ValueError(f"{database}: a keypoint of {name} is not finite: {remedy}")
    missing = [name for name in names if name not in found]
    if missing:
        raise ValueError(f"{database} has no keypoints of {missing[0]}: {remedy}")
    return found


def copy(database: Path, to: Path) -> None:
    """Copy a database, with what stands in its write-ahead log only."""
    with _opened(database) as own, closing(sqlite3.connect(to)) as other:
        own.backup(other)


def log_of(database: Path) -> Path:
    """The write-ahead log beside a database, where COLMAP left one."""
    return database.with_name(f"{database.name}-wal")


def _opened(database: Path) -> closing[sqlite3.Connection]:
    """As SQLite to read only, since COLMAP itself opens one only to write to it."""
    # Without a log there, no other file is made.
    mode = "mode=ro" if log_of(database).exists() else "immutable=1"
    return closing(sqlite3.connect(f"{database.absolute().as_uri()}?{mode}", uri=True))


def _selected(database: Path, query: str, remedy: str) -> Iterator[tuple[Any, ...]]:
    """Rows of a database."""
    if not database.is_file():
        raise ValueError(f"{database} is not there: {remedy}")
    try:
        with _opened(database) as opened:
            yield from opened.execute(query)
    except sqlite3.Error as error:
        raise ValueError(
            f"{database} can't be read as a database of COLMAP: {error}; {remedy}"
        ) from error


def frames_of(table: Table) -> AffineFrames:
    """Keypoints as regions, in our coordinates."""
    x, y, *shape = table.astype(np.float64).T
    x, y = x - HALF_PIXEL, y - HALF_PIXEL
    if len(shape) == 2:
        return from_similarity(x, y, *shape)
    return AffineFrames(x, y, np.stack(shape, axis=1).reshape(-1, 2, 2), np.zeros(len(table)))


def places_for_colmap(frames: AffineFrames) -> Float32[np.ndarray, "n 2"]:
    """The centres of regions in COLMAP's coordinates."""
    return (np.stack([frames.x, frames.y], axis=1) + HALF_PIXEL).astype(np.float32)
