"""Describes keypoints of an image: `harness.describe_keypoints`, and an adapter for OpenCV.

The pipelines behind it are found by name, like protocols; this module imports none of them.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Bool

from harness import loading, registry
from harness.distances import HAMMING
from harness.errors import InputTypeError
from harness.types import Descriptor, Vectors
from harness.vector_folder import Model

if TYPE_CHECKING:
    from collections.abc import Sequence


class DescribedKeypoints(NamedTuple):
    """The result of `describe_keypoints`; row i belongs to keypoint i."""

    vectors: Vectors  # float32 numbers, or bits packed into uint8
    inside: Bool[np.ndarray, " n"]  # whether the whole patch lies on the image


def describer(model: str | Path | Model, *, device: str = "auto") -> Descriptor:
    """A model that can describe new patches.

    Raises:
        InputTypeError: if it is a folder of vectors.
        HarnessError: as `load_model` does.
    """
    loaded = loading.load_model(model, device=device)
    if not isinstance(loaded, Descriptor):
        raise InputTypeError(f"{loaded.name} is a folder of vectors: it can't describe new patches")
    return loaded


def describe_keypoints(
    image: np.ndarray,
    keypoints: object,
    model: str | Path | Model,
    *,
    device: str = "auto",
    **cut: Any,
) -> DescribedKeypoints:
    """The vector of each keypoint of an image, and a mask of patches that lie on the image.

    Patches are cut as in the protocol `eth`: 65 x 65 pixels, with the keypoint's direction to the
    right, and from the middle to the centres of the outermost pixels 7.5 scales. A patch that
    leaves the image is described, too: there the border is repeated, and its entry of the mask is
    False.

    Args:
        image: uint8 [height, width], or [height, width, 3] in OpenCV's order blue, green, red.
        keypoints: a sequence of `cv2.KeyPoint` (the scale is half of `size`; an angle of -1 is 0);
            or an array of rows x, y, scale, angle or x, y, a11, a12, a21, a22; or `AffineFrames`.
            Pixel centres are at integers, the first at (0, 0); lengths are pixels, angles radians.
        model: a model in any form that `load_model` takes.
        device: as for `load_model`.
        cut: other numbers of the cut: `side` (65), `extent` (7.5), `smoothing` (0.8).

    Raises:
        InputError: if a keypoint is not finite, has no size or can't be of this image, or the
            array has another shape; says which keypoint.
        InputTypeError: if the image or the keypoints have an unknown type.
        HarnessError: as `load_model` does.
    """
    loaded = describer(model, device=device)
    vectors, inside = registry.load("pipelines", "keypoints")(image, keypoints, loaded, **cut)
    return DescribedKeypoints(vectors, inside)


class OpenCVDescriptor:
    """A model with the methods of OpenCV's `cv2.Feature2D` that describe keypoints.

    harness.OpenCVDescriptor("adasample").compute(image, keypoints) takes the place of
    cv2.SIFT.create().compute(image, keypoints).
    """

    def __init__(self, model: str | Path | Model, *, device: str = "auto", **cut: Any) -> None:
        """Load the model; arguments as for `describe_keypoints`."""
        self.model = describer(model, device=device)
        self._cut = cut

    def compute(
        self, image: np.ndarray, keypoints: "Sequence[Any]"
    ) -> tuple["Sequence[Any]", Vectors]:
        """All keypoints, unchanged and in their order, and the vector of each."""
        return keypoints, describe_keypoints(image, keypoints, self.model, **self._cut).vectors

    def descriptorSize(self) -> int:
        """Columns of the vectors: numbers, or bytes of packed bits."""
        return self.model.width

    def descriptorType(self) -> int:
        """OpenCV's number of the type of the vectors: CV_32F, or CV_8U for packed bits."""
        import cv2

        return cv2.CV_8U if self.model.distance is HAMMING else cv2.CV_32F

    def defaultNorm(self) -> int:
        """OpenCV's number of the norm for matchers: NORM_L2, or NORM_HAMMING for packed bits."""
        import cv2

        return cv2.NORM_HAMMING if self.model.distance is HAMMING else cv2.NORM_L2

    def empty(self) -> bool:
        """False: a model is always ready."""
        return False

    def getDefaultName(self) -> str:
        """The name of the model."""
        return self.model.name
