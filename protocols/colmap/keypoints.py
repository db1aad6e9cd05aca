"""Keypoints in COLMAP's databases, and the half pixel between its coordinates and ours."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
from jaxtyping import Float32

from protocols.images.affine import AffineFrames, from_similarity

HALF_PIXEL = 0.5
"""COLMAP counts from the corner of the first pixel, `protocols.images` from its centre.

It is taken off here, where keypoints of COLMAP are read, and put on where they are written, and
nowhere else.
"""

Table = Float32[np.ndarray, "n columns"]
"""As COLMAP has it: x, y, and scale and angle, or a11 a12 a21 a22 of an affine shape."""


def read(database: Path, names: Sequence[str], remedy: str) -> dict[str, Table]:
    """The table of each image's keypoints.

    Read as SQLite, since COLMAP itself opens a database only to write to it.

    Args:
        database: COLMAP's file.
        names: of the images.
        remedy: what a user can do where there are none, or the file is another.

    Raises:
        ValueError: if the file is no database, or an image is not in it.
    """
    if not database.is_file():
        raise ValueError(f"{database} is not there: {remedy}")
    found = {}
    try:
        # COLMAP's databases have a write-ahead log: without one there, no other file is made.
        logged = database.with_name(f"{database.name}-wal").exists()
        address = f"{database.absolute().as_uri()}?{'mode=ro' if logged else 'immutable=1'}"
        with closing(sqlite3.connect(address, uri=True)) as opened:
            query = "SELECT name, rows, cols, data FROM keypoints JOIN images USING (image_id)"
            for name, rows, cols, data in opened.execute(query):
                if name in names:
                    found[name] = np.frombuffer(data or b"", "<f4").reshape(rows, cols)
    except (sqlite3.Error, ValueError) as error:
        raise ValueError(
            f"{database} can't be read as a database of COLMAP: {error}; {remedy}"
        ) from error
    missing = [name for name in names if name not in found]
    if missing:
        raise ValueError(f"{database} has no keypoints of {missing[0]}: {remedy}")
    return found


def frames_of(table: Table) -> AffineFrames:
    """Keypoints as regions, in our coordinates.

    Raises:
        ValueError: if there are neither 4 nor 6 columns.
    """
    x, y, *shape = table.astype(np.float64).T
    x, y = x - HALF_PIXEL, y - HALF_PIXEL
    if len(shape) == 2:
        return from_similarity(x, y, *shape)
    if len(shape) != 4:
        raise ValueError(f"keypoints of {2 + len(shape)} columns have no scale: give 4 or 6")
    return AffineFrames(x, y, np.stack(shape, axis=1).reshape(-1, 2, 2), np.zeros(len(table)))


def places_for_colmap(frames: AffineFrames) -> Float32[np.ndarray, "n 2"]:
    """The centres of regions in COLMAP's coordinates."""
    return (np.stack([frames.x, frames.y], axis=1) + HALF_PIXEL).astype(np.float32)
