"""What a sparse reconstruction says of each observation: of which point, where, seen how.

Pixels count from the centre of the upper left one, not from its corner as in COLMAP.
"""

import math
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pycolmap
from jaxtyping import Bool, Float64, Int

from protocols.hpatches.frames import Frames

MAGNIFICATION = 6.0
"""Half a side of a patch over the keypoint's scale: the 4 x 4 cells of SIFT, 3 scales each."""

HALF = 32.0
"""Half a side, in pixels, of a patch that no keypoint gives a size: its pixels are the image's."""

Matrices = Float64[np.ndarray, "n 2 2"]


@dataclass(frozen=True, eq=False)
class Observations:
    """Where points are seen: one row an observation, those of a point together."""

    images: tuple[str, ...]
    sizes: tuple[tuple[int, int], ...]  # width and height of each
    point: Int[np.ndarray, " n"]
    image: Int[np.ndarray, " n"]
    xyz: Float64[np.ndarray, "n 3"]  # of the point
    detected: Float64[np.ndarray, "n 2"]  # pixels
    projected: Float64[np.ndarray, "n 2"]  # pixels: where the model says that the point is
    keypoint: Matrices | None  # from units of the keypoint's scale, along its axes, to pixels
    image_from_plane: Matrices
    """From units of the model to pixels, on the plane through the point that faces its viewers."""

    def __len__(self) -> int:
        """How many there are."""
        return len(self.point)

    def take(self, rows: Int[np.ndarray, " m"]) -> "Observations":
        """These observations, in this order."""
        return Observations(
            self.images,
            self.sizes,
            self.point[rows],
            self.image[rows],
            self.xyz[rows],
            self.detected[rows],
            self.projected[rows],
            None if self.keypoint is None else self.keypoint[rows],
            self.image_from_plane[rows],
        )


def read(model: Path, database: Path | None) -> Observations:
    """The observations of every point that two images or more see.

    Args:
        model: a folder in COLMAP's binary or text format.
        database: the one that the model was made from, for the scale and direction of keypoints.

    Raises:
        ValueError: if the model can't be read, sees too little, or isn't the database's.
    """
    sparse = _open(model)
    rows = [
        (point_id, element.image_id, element.point2D_idx)
        for point_id, point in sorted(sparse.points3D.items())
        for element in sorted(point.track.elements, key=lambda e: (e.image_id, e.point2D_idx))
    ]
    table = np.array(rows, np.int64).reshape(-1, 3)
    # An image that sees a point twice is sure of neither place.
    _, inverse, counts = np.unique(table[:, :2], axis=0, return_inverse=True, return_counts=True)
    table = table[counts[inverse] == 1]
    _, inverse, counts = np.unique(table[:, 0], return_inverse=True, return_counts=True)
    table = table[counts[inverse] >= 2]
    if not len(table):
        raise ValueError(f"{model} has no point that two images see: give a finished model")
    images = sorted((sparse.images[i] for i in np.unique(table[:, 1])), key=lambda i: i.name)
    number = {image.image_id: k for k, image in enumerate(images)}
    point, index = table[:, 0], table[:, 2]
    image = np.array([number[i] for i in table[:, 1].tolist()])
    xyz = np.array([sparse.points3D[i].xyz for i in point.tolist()])
    axes = _facing(xyz - np.array([i.projection_center() for i in images])[image], point)
    detected, projected = np.empty((2, len(table), 2))
    image_from_plane = np.empty((len(table), 2, 2))
    keypoint = None if database is None else np.empty((len(table), 2, 2))
    keypoints = {} if database is None else _keypoints(database, [i.name for i in images])
    for k, one in enumerate(images):
        here = np.flatnonzero(image == k)
        detected[here] = np.array([p.xy for p in one.points2D])[index[here]]
        camera, pose = sparse.cameras[one.camera_id], one.cam_from_world()
        projected[here], image_from_plane[here] = _look(camera, pose, xyz[here], axes[here])
        if keypoint is not None:
            columns = keypoints[one.name]
            far = math.inf
            if len(columns) > index[here].max():
                columns = columns[index[here]]
                far = float(np.abs(columns[:, :2] - detected[here]).max())
            if far > 0.01:
                raise ValueError(
                    f"{database} has other keypoints of {one.name} than {model}: give the database"
                    " that the model was made from (database=FILE)"
                )
            keypoint[here] = _axes(columns)
    return Observations(
        tuple(i.name for i in images),
        tuple((c.width, c.height) for c in (sparse.cameras[i.camera_id] for i in images)),
        point,
        image,
        xyz,
        detected - 0.5,
        projected - 0.5,
        keypoint,
        image_from_plane,
    )


def frames_detected(seen: Observations) -> Frames:
    """Patches as the detector found them in each image."""
    if seen.keypoint is None:
        raise ValueError("no scale and no direction of the keypoints is known: give their database")
    return _frames(seen.detected, MAGNIFICATION * seen.keypoint)


def frames_projected(seen: Observations, reference: Int[np.ndarray, " n"]) -> Frames:
    """Patches that show the same piece of the plane through the point: that of the reference.

    Args:
        seen: the observations.
        reference: for each the row of the observation of its point that sets size and direction:
            those of the keypoint, or upright and as large as `HALF` where the image that sees the
            point smallest has its half side.
    """
    of = seen.image_from_plane[reference]
    if seen.keypoint is not None:
        plane_from_patch = np.linalg.inv(of) @ (MAGNIFICATION * seen.keypoint[reference])
    else:
        plane_from_patch = np.linalg.inv(of)
        pixels = np.sqrt(np.abs(np.linalg.det(seen.image_from_plane @ plane_from_patch)))
        smallest = np.full(len(seen), np.inf)
        np.minimum.at(smallest, reference, pixels)
        plane_from_patch *= (HALF / smallest[reference])[:, None, None]
    return _frames(seen.projected, seen.image_from_plane @ plane_from_patch)


def on_plane(
    seen: Observations, frames: Frames
) -> tuple[Float64[np.ndarray, " n"], Float64[np.ndarray, " n"]]:
    """Half a side of each patch in units of the model, and its direction on the point's plane.

    Patches of one point that show the same have the same.
    """
    square = np.stack([frames.cos, -frames.sin, frames.sin, frames.cos], 1).reshape(-1, 2, 2)
    maps = np.linalg.inv(seen.image_from_plane) @ (frames.half[:, None, None] * square)
    return _size(maps), _angle(maps)


def facing(seen: Observations) -> Bool[np.ndarray, " n"]:
    """Whether the image sees the point's plane from the front."""
    return np.linalg.det(seen.image_from_plane) > 0


def _open(model: Path) -> pycolmap.Reconstruction:
    files = [
        f"{stem}{end}" for end in (".bin", ".txt") for stem in ("cameras", "images", "points3D")
    ]
    if not any(all((model / f).is_file() for f in files[i : i + 3]) for i in (0, 3)):
        raise ValueError(
            f"{model} is no sparse model of COLMAP: give the folder that holds"
            " cameras, images and points3D, as .bin or .txt"
        )
    try:
        return pycolmap.Reconstruction(model)
    except (RuntimeError, ValueError, IndexError, KeyError) as error:
        raise ValueError(f"{model} can't be read, it is cut off or damaged: {error}") from error


def _facing(
    rays: Float64[np.ndarray, "n 3"], point: Int[np.ndarray, " n"]
) -> Float64[np.ndarray, "n 3 2"]:
    """Two axes of the plane through each point at right angles to its mean ray.

    With the mean ray, which is the third axis, they are right-handed.
    """
    starts = np.flatnonzero(np.diff(point, prepend=point[0] - 1))
    mean = np.add.reduceat(rays / np.linalg.norm(rays, axis=1, keepdims=True), starts)
    mean /= np.linalg.norm(mean, axis=1, keepdims=True)
    helper = np.eye(3)[np.abs(mean).argmin(1)]
    first = np.cross(helper, mean)
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    axes = np.stack([first, np.cross(mean, first)], 2)
    return np.repeat(axes, np.diff(starts, append=len(point)), axis=0)


def _look(
    camera: pycolmap.Camera,
    pose: pycolmap.Rigid3d,
    xyz: Float64[np.ndarray, "n 3"],
    axes: Float64[np.ndarray, "n 3 2"],
) -> tuple[Float64[np.ndarray, "n 2"], Matrices]:
    """Where points are in an image, and how pixels change along the axes of their planes."""
    rotation, shift = pose.rotation.matrix(), np.asarray(pose.translation)

    def project(points: Float64[np.ndarray, "n 3"]) -> Float64[np.ndarray, "n 2"]:
        return np.asarray(camera.img_from_cam(points @ rotation.T + shift))

    depth = (xyz @ rotation.T + shift)[:, 2:]
    step = 1e-4 * np.abs(depth)  # a tenth of a pixel or so: lenses are smooth
    columns = [
        (project(xyz + step * axes[:, :, i]) - project(xyz - step * axes[:, :, i])) / (2 * step)
        for i in (0, 1)
    ]
    return project(xyz), np.stack(columns, 2)


def _keypoints(database: Path, names: Sequence[str]) -> dict[str, np.ndarray]:
    """The table of each image's keypoints.

    Read as SQLite, since COLMAP itself opens a database only to write to it.
    """
    if not database.is_file():
        raise ValueError(f"{database} is not there: give the database of the model (database=FILE)")
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
        raise ValueError(f"{database} can't be read as a database of COLMAP: {error}") from error
    missing = [name for name in names if name not in found]
    if missing:
        raise ValueError(
            f"{database} has no keypoints of {missing[0]}: give the database that the model was"
            " made from (database=FILE)"
        )
    return found


def _axes(keypoints: np.ndarray) -> Matrices:
    """COLMAP's columns after x, y: scale and direction, or a11 a12 a21 a22 of an affine shape."""
    columns = keypoints[:, 2:].astype(np.float64)
    if columns.shape[1] == 4:
        return columns.reshape(-1, 2, 2)
    if columns.shape[1] != 2:
        raise ValueError(f"keypoints of {2 + columns.shape[1]} columns have no scale: give 4 or 6")
    scale, angle = columns.T
    cos, sin = scale * np.cos(angle), scale * np.sin(angle)
    return np.stack([cos, -sin, sin, cos], 1).reshape(-1, 2, 2)


def _frames(centre: Float64[np.ndarray, "n 2"], image_from_patch: Matrices) -> Frames:
    """The squares that are nearest to the parallelograms that the matrices make of [-1, 1]^2."""
    angle = _angle(image_from_patch)
    x, y = centre.T.copy()
    half = _size(image_from_patch)
    return Frames(x, y, half, np.cos(angle), np.sin(angle), np.zeros(len(x)))


def _size(maps: Matrices) -> Float64[np.ndarray, " n"]:
    return np.sqrt(np.abs(np.linalg.det(maps)))


def _angle(maps: Matrices) -> Float64[np.ndarray, " n"]:
    """Of the rotation nearest to each map."""
    return np.arctan2(maps[:, 1, 0] - maps[:, 0, 1], maps[:, 0, 0] + maps[:, 1, 1])
