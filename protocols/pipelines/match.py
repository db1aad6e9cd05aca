"""Matches two images, and finds the geometry that most of their matches agree with."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool

from harness.errors import InputError
from harness.files import atomic
from harness.types import Descriptor
from protocols.eth.matching import RATIO, Matches, axes
from protocols.eth.matching import match as matched
from protocols.imaging.affine import AffineFrames
from protocols.imaging.keypoint_patches import USUAL, KeypointCut
from protocols.pipelines import drawing, geometry, photographs
from protocols.pipelines.detectors import KEYPOINTS, SIFT
from protocols.pipelines.detectors import detector as detector_of
from protocols.pipelines.features import Features, vectors_of
from protocols.pipelines.geometry import Places
from protocols.pipelines.photographs import Photograph


@dataclass(frozen=True, eq=False)
class MatchedImages:
    """Matches of two images; pixel centres are at integers, the first at (0, 0)."""

    frames: tuple[AffineFrames, AffineFrames]  # keypoints of both images
    matches: Matches  # rows of the keypoints; as `protocols.eth.matching` defines them
    places: tuple[Places, Places]  # of the matches in both images, pixels
    geometry: geometry.Geometry
    ratio: float

    @property
    def inlier(self) -> Bool[np.ndarray, " m"]:
        """Which matches agree with the geometry."""
        return self.geometry.inlier

    def as_json(self) -> dict[str, object]:
        """Counts, settings, the matrix, and every match as x, y, x, y and whether it agrees."""
        matrix = self.geometry.matrix
        rows = np.concatenate(self.places, axis=1).tolist()
        return {
            "keypoints": [len(frames) for frames in self.frames],
            "ratio": self.ratio,
            "matches": len(self.matches),
            "inliers": int(self.inlier.sum()),
            "geometry": self.geometry.kind,
            "settings": self.geometry.settings,
            "matrix": None if matrix is None else matrix.tolist(),
            "matched": [
                [*row, bool(agrees)] for row, agrees in zip(rows, self.inlier, strict=True)
            ],
        }


def match(
    first: Path,
    second: Path,
    *,
    model: Descriptor,
    detector: str = SIFT,
    keypoints: int = KEYPOINTS,
    ratio: float = RATIO,
    kind: geometry.Kind = "fundamental",
    threshold: float = geometry.THRESHOLD,
    seed: int = 0,
    draw: Path | None = None,
    cut: KeypointCut = USUAL,
) -> MatchedImages:
    """Match two images: mutual nearest neighbours that pass the ratio test, as in `eth`.

    Args:
        first: an image file.
        second: another image file.
        model: the descriptor.
        detector: a name or a file; see `detectors`.
        keypoints: wanted number of keypoints in an image; see `detectors.detector`.
        ratio: largest accepted ratio of the distances to the nearest and second-nearest keypoint;
            1 accepts all.
        kind: "fundamental" for a scene with depth; "homography" for a plane or a turned camera.
        threshold: of an inlier, pixels; see `geometry.estimate`.
        seed: of random draws.
        draw: file of a picture of the matches, PNG.
        cut: how patches are cut.

    Raises:
        InputError: if an image can't be read or has no keypoint, or a number is out of range.
    """
    must_be_ratio(ratio)
    if draw is not None:
        atomic.must_be_writable(draw.parent, "the picture can't be written")
    detect = detector_of(detector, keypoints)
    pair = [photographs.one(file) for file in (first, second)]
    features = [_features(one, detect(one), model, cut) for one in pair]
    vectors = [one.vectors for one in features]
    by = axes(vectors, model.distance)
    matches = matched(vectors[0], vectors[1], by, ratio, least=1)
    frames = (features[0].frames, features[1].frames)
    first_places, second_places = (
        np.stack([one.x[rows], one.y[rows]], axis=1)
        for one, rows in zip(frames, matches.T, strict=True)
    )
    places = first_places, second_places
    estimated = geometry.estimate(*places, kind, threshold=threshold, seed=seed)
    found = MatchedImages(frames, matches, places, estimated, ratio)
    if draw is not None:
        picture = drawing.matches([one.read() for one in pair], places, estimated.inlier)
        with atomic.writing(draw) as stream:
            stream.write(picture)
    return found


def must_be_ratio(ratio: float) -> None:
    """Refuse a ratio that no pair of distances has."""
    if not 0 < ratio <= 1:
        raise InputError(f"ratio {ratio}: it must be above 0 and at most 1 (1 accepts all)")


def _features(
    photograph: Photograph, frames: AffineFrames, model: Descriptor, cut: KeypointCut
) -> Features:
    if not len(frames):
        raise InputError(
            f"{photograph.file} has no keypoint, so nothing can be matched: it may be blank or"
            " nearly black, or too small; try another --detector"
        )
    patches = cut.patches(photograph.read(), frames)
    return Features(frames, vectors_of(model, patches, photograph.name))
