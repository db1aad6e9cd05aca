"""Describes given keypoints of an image: of OpenCV, of a table, or regions of our own."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool

from harness.errors import InputError, InputTypeError
from harness.types import Descriptor, Vectors
from protocols.imaging.affine import AffineFrames, from_similarity, must_lie_on
from protocols.imaging.grey import of_colours
from protocols.imaging.keypoint_patches import KeypointCut
from protocols.pipelines.features import vectors_of


def describe_keypoints(
    image: np.ndarray, keypoints: object, model: Descriptor, **cut: Any
) -> tuple[Vectors, Bool[np.ndarray, " n"]]:
    """The vector of each keypoint, and whether its whole patch lies on the image.

    `harness.describe_keypoints` documents the arguments.
    """
    grey = _grey(image)
    frames = frames_of(keypoints)
    height, width = grey.shape
    must_lie_on(frames, width, height, "keypoints")
    cutting = KeypointCut(**cut)
    patches = cutting.patches(grey.astype(np.float32), frames)
    return vectors_of(model, patches, "the image"), cutting.inside(frames, height, width)


def frames_of(keypoints: object) -> AffineFrames:
    """Keypoints in any accepted form as regions.

    Raises:
        InputError: if a keypoint is not finite or has no size, or a table has other columns.
        InputTypeError: if the keypoints have an unknown type.
    """
    if isinstance(keypoints, AffineFrames):
        return keypoints
    if isinstance(keypoints, np.ndarray):
        return _of_table(keypoints)
    if isinstance(keypoints, Sequence) and all(_is_opencv(one) for one in keypoints):
        return _of_opencv(keypoints)
    raise InputTypeError(
        f"keypoints is {type(keypoints).__name__}; a sequence of cv2.KeyPoint, an array with rows"
        " x, y, scale, angle or x, y, a11, a12, a21, a22, or AffineFrames is wanted"
    )


def _is_opencv(keypoint: object) -> bool:
    return all(hasattr(keypoint, name) for name in ("pt", "size", "angle", "response"))


def _of_opencv(keypoints: Sequence[Any]) -> AffineFrames:
    """OpenCV's `size` is a diameter; its angle is in degrees, and -1 if there is none."""
    rows = [(*one.pt, one.size / 2, one.angle, one.response) for one in keypoints]
    x, y, scale, angle, score = np.array(rows, np.float64).reshape(-1, 5).T
    _must_have_size(np.stack([x, y, scale]), scale)
    turned = np.radians(np.where(angle == -1, 0.0, angle))
    return from_similarity(x, y, scale, turned, score)


def _of_table(table: np.ndarray) -> AffineFrames:
    if table.ndim != 2 or table.shape[1] not in (4, 6):
        raise InputError(
            f"keypoints of shape {list(table.shape)}; rows of 4 numbers (x, y, scale, angle) or of"
            " 6 (x, y, a11, a12, a21, a22) are wanted"
        )
    table = table.astype(np.float64)
    x, y, *shape = table.T.copy()
    if len(shape) == 2:
        _must_have_size(table.T, shape[0])
        return from_similarity(x, y, *shape)
    matrix = np.stack(shape, axis=1).reshape(-1, 2, 2)
    _must_have_size(table.T, np.abs(np.linalg.det(matrix)))
    return AffineFrames(x, y, matrix, np.zeros(len(table)))


def _must_have_size(columns: np.ndarray, size: np.ndarray) -> None:
    bad = np.flatnonzero(~(np.isfinite(columns).all(axis=0) & (size > 0)))
    if len(bad):
        raise InputError(
            f"keypoint {bad[0]} of {len(size)}, counted from 0, is {columns[:, bad[0]].tolist()};"
            " finite numbers and a size above 0 are wanted"
        )


def _grey(image: np.ndarray) -> np.ndarray:
    """An image as 8-bit grey; colours are in OpenCV's order: blue, green, red."""
    if not isinstance(image, np.ndarray) or image.dtype != np.uint8:
        came = getattr(image, "dtype", type(image).__name__)
        raise InputTypeError(f"image is {came}; a uint8 array is wanted")
    if image.ndim == 3 and image.shape[2] in (3, 4):
        return of_colours(image[..., :3])
    if image.ndim == 3 and image.shape[2] == 1:
        image = image[..., 0]
    if image.ndim != 2 or not image.size:
        raise InputError(
            f"image of shape {list(image.shape)}; [height, width] or [height, width, 3] is wanted"
        )
    return image
