"""Reads keypoints from the official files or a database, or detects them with COLMAP's SIFT."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float32

from harness import parallel
from harness.files import folders
from protocols.colmap import keypoints as colmap
from protocols.colmap import sift
from protocols.colmap.mapping import quiet
from protocols.eth.files import read_keypoints
from protocols.imaging.affine import AffineFrames, from_similarity, scale_and_angle

FOLDER = "keypoints"  # of the official files


def official(folder: Path, names: Sequence[str]) -> tuple[AffineFrames, ...]:
    """The keypoints of the official files `<image>.bin`.

    Raises:
        InputError: if a file is missing or damaged.
    """
    files = (folders.at(folder, f"{name}.bin") for name in names)
    tables = (read_keypoints(file).astype(np.float64) for file in files)
    return tuple(from_similarity(*table.T) for table in tables)


def table_of(frames: AffineFrames) -> Float32[np.ndarray, "n 4"]:
    """Regions as rows of the official files: circles of the same area."""
    return np.stack([frames.x, frames.y, *scale_and_angle(frames)], axis=1).astype(np.float32)


def in_database(database: Path, names: Sequence[str]) -> tuple[AffineFrames, ...]:
    """The keypoints in a database of COLMAP.

    Raises:
        InputError: if the database can't be read, or has no keypoints of an image.
    """
    remedy = "give keypoints of every image, or --set keypoints=sift to have them detected"
    tables = colmap.read(database, names, remedy)
    return tuple(colmap.frames_of(tables[name]) for name in names)


def detected(images: Path, names: Sequence[str], sha256: Sequence[str]) -> tuple[AffineFrames, ...]:
    """The keypoints of COLMAP's SIFT detector with its defaults, as for the published results."""

    def of_image(row: int) -> AffineFrames:
        return colmap.frames_of(sift.detected(images, names[row], sha256[row]))

    with quiet():
        return tuple(parallel.each(of_image, range(len(names))))
