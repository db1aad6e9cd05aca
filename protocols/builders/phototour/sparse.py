"""Reads a sparse reconstruction of COLMAP: its photographs, and the observations of its points."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pycolmap
from jaxtyping import Float64, Int

from harness.errors import InputError
from protocols.builders.phototour.observations import Matrices, Observations, Places
from protocols.colmap import keypoints as colmap
from protocols.colmap import model as colmap_model
from protocols.colmap.keypoints import HALF_PIXEL
from protocols.colmap.model import Model

REMEDY = "give the database that the model was made from (--set database=FILE)"


@dataclass(frozen=True, eq=False)
class Photograph:
    """One photograph of the model. Pixel (0, 0) is the centre of the upper left pixel."""

    name: str  # of the file, below the folder of images
    width: int
    height: int
    centre: Float64[np.ndarray, "3"]  # of the camera, in the model
    detected: Places  # all keypoints
    keypoint: Matrices | None  # each: from units of its scale, along its axes, to pixels
    camera: pycolmap.Camera
    pose: pycolmap.Rigid3d

    def look(
        self, xyz: Float64[np.ndarray, "n 3"], axes: Float64[np.ndarray, "n 3 2"]
    ) -> tuple[Places, Matrices]:
        """Where the image shows points, and the derivatives along the axes of their planes."""
        rotation, shift = self.pose.rotation.matrix(), np.asarray(self.pose.translation)

        def project(points: Float64[np.ndarray, "n 3"]) -> Places:
            return np.asarray(self.camera.img_from_cam(points @ rotation.T + shift))

        depth = (xyz @ rotation.T + shift)[:, 2:]
        step = 1e-4 * np.abs(depth)  # about a tenth of a pixel, which suits smooth distortion
        columns = [
            (project(xyz + step * axes[:, :, i]) - project(xyz - step * axes[:, :, i])) / (2 * step)
            for i in (0, 1)
        ]
        return project(xyz) - HALF_PIXEL, np.stack(columns, 2)


def read(model: Path, database: Path | None) -> tuple[tuple[Photograph, ...], Observations]:
    """The photographs, and the observations of every point that two or more photographs see.

    Args:
        model: a folder in COLMAP's binary or text format.
        database: the model's database, which has the scale and direction of keypoints.

    Raises:
        InputError: if the model can't be read, no two images see the same point, or the model was
            not made from the database.
    """
    sparse = colmap_model.read(model)
    table = sparse.track
    # Drop observations of images that see a point at two keypoints: either may be wrong.
    _, inverse, counts = np.unique(table[:, :2], axis=0, return_inverse=True, return_counts=True)
    table = table[counts[inverse] == 1]
    _, inverse, counts = np.unique(table[:, 0], return_inverse=True, return_counts=True)
    table = table[counts[inverse] >= 2]
    if not len(table):
        raise InputError(
            f"{model} has no point that two images see: give a finished model (--model FOLDER)"
        )
    ids = sorted(np.unique(table[:, 1]).tolist(), key=lambda i: sparse.images[i].name)
    keypoints = None
    if database is not None:
        keypoints = colmap.read(database, [sparse.images[i].name for i in ids], REMEDY)
    ascending = np.argsort(ids)
    numbers = ascending[np.searchsorted(np.array(ids)[ascending], table[:, 1])]
    table = np.stack([table[:, 0], numbers, table[:, 2]], axis=1)
    point, image, index = table[np.lexsort((table[:, 1], table[:, 0]))].T
    photos = []
    for k, i in enumerate(ids):
        columns = None if keypoints is None else keypoints[sparse.images[i].name]
        photos.append(_photo(sparse, i, columns, index[image == k], f"{database} and {model}"))
    xyz = sparse.xyz[np.searchsorted(sparse.point, point)]
    axes = _facing(xyz - np.array([photo.centre for photo in photos])[image], point)
    return tuple(photos), observe(photos, point, image, index, xyz, axes)


def observe(
    photos: Sequence[Photograph],
    point: Int[np.ndarray, " n"],
    image: Int[np.ndarray, " n"],
    index: Int[np.ndarray, " n"],
    xyz: Float64[np.ndarray, "n 3"],
    axes: Float64[np.ndarray, "n 3 2"],
) -> Observations:
    """The observations of these points by these keypoints of the photographs."""
    detected, projected = np.empty((2, len(point), 2))
    image_from_plane = np.empty((len(point), 2, 2))
    keypoint = np.empty((len(point), 2, 2))
    for k, photo in enumerate(photos):
        here = np.flatnonzero(image == k)
        detected[here] = photo.detected[index[here]]
        projected[here], image_from_plane[here] = photo.look(xyz[here], axes[here])
        if photo.keypoint is not None:
            keypoint[here] = photo.keypoint[index[here]]
    return Observations(
        point=point,
        image=image,
        index=index,
        xyz=xyz,
        axes=axes,
        detected=detected,
        projected=projected,
        keypoint=None if any(photo.keypoint is None for photo in photos) else keypoint,
        image_from_plane=image_from_plane,
    )


def _photo(
    sparse: Model,
    image_id: int,
    keypoints: np.ndarray | None,
    used: Int[np.ndarray, " n"],
    between: str,
) -> Photograph:
    image = sparse.images[image_id]
    camera = sparse.cameras[image.camera]
    detected = image.xy
    if keypoints is not None:
        far = math.inf
        if len(keypoints) > used.max():
            far = float(np.abs(keypoints[used, :2] - detected[used]).max())
        if far > 0.01:
            raise InputError(f"{between} have different keypoints of {image.name}: {REMEDY}")
        detected = keypoints[:, :2].astype(np.float64)
    return Photograph(
        name=image.name,
        width=camera.width,
        height=camera.height,
        centre=np.asarray(image.pose.inverse().translation),
        detected=detected - HALF_PIXEL,
        keypoint=None if keypoints is None else colmap.frames_of(keypoints).matrix,
        camera=camera,
        pose=image.pose,
    )


def _facing(
    rays: Float64[np.ndarray, "n 3"], point: Int[np.ndarray, " n"]
) -> Float64[np.ndarray, "n 3 2"]:
    """Two axes of the plane through each point that is perpendicular to its mean viewing ray.

    The two axes and the mean ray, in this order, form a right-handed system.
    """
    starts = np.flatnonzero(np.diff(point, prepend=point[0] - 1))
    mean = np.add.reduceat(rays / np.linalg.norm(rays, axis=1, keepdims=True), starts)
    mean /= np.linalg.norm(mean, axis=1, keepdims=True)
    helper = np.eye(3)[np.abs(mean).argmin(1)]
    first = np.cross(helper, mean)
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    axes = np.stack([first, np.cross(mean, first)], 2)
    return np.repeat(axes, np.diff(starts, append=len(point)), axis=0)
