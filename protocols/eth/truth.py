"""Reads known cameras, and measures the errors of a model's cameras against them.

A file of Strecha et al. (CVPR 2008) holds the 3 x 3 matrix K, three numbers of distortion, the
rotation, the centre, and the size of the image. The rotation maps from the camera to the world: its
columns are the camera's axes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pycolmap
from jaxtyping import Float64, Int

from harness.errors import InputError
from harness.files import folders, texts

FOLDER = "gt_dense_cameras"
NUMBERS = 9 + 3 + 9 + 3 + 2
ORTHONORMAL = 1e-3  # largest error of R R' - I: files have six digits
FARTHEST = 1e9  # largest coordinate of a centre in metres; map projections reach 1e7
LARGEST = 1e6  # longest side of an image, pixels
LEAST = 3  # cameras that determine a similarity
NEAR = 0.01  # largest error of an inlier camera in the alignment / spread of the cameras
LINE = 1e-3  # least spread of the centres across a line / spread along it

Matrix = Float64[np.ndarray, "3 3"]
Matrices = Float64[np.ndarray, "n 3 3"]
Places = Float64[np.ndarray, "n 3"]


@dataclass(frozen=True, eq=False)
class KnownCameras:
    """Cameras of images, in their order."""

    intrinsics: Matrices  # K; the centre of the first pixel is (0, 0)
    size: Int[np.ndarray, "n 2"]  # width and height of the image
    rotation: Matrices  # from the camera to the world
    centre: Places  # in the world


def read(folder: Path, names: Sequence[str]) -> KnownCameras:
    """The known cameras of the images.

    Raises:
        InputError: if a file is missing or malformed; names the file.
    """
    cameras = [_read(file_of(folder, name)) for name in names]
    return KnownCameras(*(np.array(part) for part in zip(*cameras, strict=True)))


def file_of(folder: Path, name: str) -> Path:
    """The file of the camera of an image."""
    return folders.at(folder, f"{name}.camera")


def errors(
    model: pycolmap.Reconstruction, names: Sequence[str], known: KnownCameras, seed: int
) -> dict[str, float]:
    """`position_error_m` and `rotation_error_deg`: means over the registered images.

    The model is aligned to the known centres by a least-squares similarity over RANSAC's inliers;
    rotations are not used for it. Metres are the units of the known cameras. The result is empty
    for fewer than three images, and for centres on one line.

    Args:
        model: the reconstruction.
        names: of the images whose cameras are known.
        known: the known cameras.
        seed: of RANSAC.
    """
    poses = {
        folders.same_form(image.name): image for image in model.images.values() if image.has_pose
    }
    rows = [row for row, name in enumerate(names) if folders.same_form(name) in poses]
    centre, rotation = known.centre[rows], known.rotation[rows]
    spread = np.linalg.svd(centre - centre.mean(axis=0), compute_uv=False) if rows else np.zeros(0)
    if len(rows) < LEAST or spread[1] <= LINE * spread[0]:
        return {}
    images = [poses[folders.same_form(names[row])] for row in rows]
    model_centre = np.array([image.projection_center() for image in images])
    options = pycolmap.RANSACOptions(max_error=NEAR * spread[0], random_seed=seed)
    robust: Any = pycolmap.estimate_sim3d_robust(model_centre, centre, options)  # a dict, or None
    near = robust["inlier_mask"] if robust else []
    world_from_model = pycolmap.estimate_sim3d(model_centre[near], centre[near]) if robust else None
    if world_from_model is None:
        return {}
    turn = world_from_model.rotation.matrix()
    placed = world_from_model.scale * model_centre @ turn.T + world_from_model.translation
    off = np.array(
        [
            known_one.T @ turn @ image.cam_from_world().rotation.matrix().T
            for known_one, image in zip(rotation, images, strict=True)
        ]
    )
    return {
        "position_error_m": float(np.linalg.norm(placed - centre, axis=1).mean()),
        "rotation_error_deg": float(np.degrees(angles(off)).mean()),
    }


def angles(rotations: Matrices) -> Float64[np.ndarray, " n"]:
    """Rotation angle of each matrix, in radians; atan2 keeps small angles exact."""
    skew = rotations - rotations.swapaxes(1, 2)
    sine = np.sqrt(np.square(skew).sum(axis=(1, 2)) / 8)
    return np.arctan2(sine, (np.trace(rotations, axis1=1, axis2=2) - 1) / 2)


def _read(file: Path) -> tuple[Matrix, Int[np.ndarray, "2"], Matrix, Float64[np.ndarray, "3"]]:
    remedy = f"{NUMBERS} numbers are wanted: K, distortion, rotation, centre, width and height"
    if not file.is_file():
        raise InputError(
            f"{file} is missing: add it, or move {file.parent} away to go without known cameras"
        )
    text = texts.read_table(file)
    try:
        numbers = np.array([texts.number(word) for word in text.split()])
    except ValueError as error:
        raise InputError(f"{file} can't be read as a camera ({error}): {remedy}") from error
    if len(numbers) != NUMBERS or not np.isfinite(numbers).all():
        raise InputError(f"{file} holds {len(numbers)} numbers, or not all are finite: {remedy}")
    intrinsics, rotation = numbers[:9].reshape(3, 3), numbers[12:21].reshape(3, 3)
    if not (intrinsics[0, 0] > 0 and (intrinsics[2] == [0, 0, 1]).all()):
        raise InputError(f"{file}: numbers 1 to 9 are no matrix K: {remedy}")
    if not _is_rotation(rotation):
        raise InputError(f"{file}: numbers 13 to 21 are no rotation: {remedy}")
    if np.abs(numbers[21:24]).max() > FARTHEST:
        raise InputError(f"{file}: numbers 22 to 24 are no place on Earth: {remedy}")
    size = numbers[24:]
    if not ((size == np.rint(size)) & (size >= 1) & (size <= LARGEST)).all():
        raise InputError(f"{file}: numbers 25 and 26 are no size of an image: {remedy}")
    return intrinsics, size.astype(np.intp), rotation, numbers[21:24]


def _is_rotation(matrix: Matrix) -> bool:
    if np.abs(matrix).max() > 1 + ORTHONORMAL:  # products of larger numbers may overflow
        return False
    off = np.abs(matrix @ matrix.T - np.eye(3)).max()
    return bool(off <= ORTHONORMAL and np.linalg.det(matrix) > 0)
