"""Detectors of keypoints by name: `sift`, `harris-affine`, or a file.

| FILE | holds |
|---|---|
| `FILE.h5` | `keypoints` and `scales` of each image, as `harness extract` and hloc write them |
| `FILE.db` | COLMAP's database with keypoints |
| `FILE.py:NAME` | a function from uint8 pixels [height, width] to rows x, y, scale, angle, score |

Places and scales are in pixels, angles in radians, as `protocols.imaging.affine` defines them. The
angle and the score of a function's rows can be left out. Without angles, patches are upright.
"""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from harness import extras, plugins
from harness.errors import FAILURES, ComputeError, InputError, UnknownNameError, text_of
from harness.registry import unknown
from protocols.imaging.affine import AffineFrames, from_similarity, must_lie_on
from protocols.imaging.grey import read_grey
from protocols.imaging.harris_affine import harris_affine
from protocols.imaging.photographs import sha256
from protocols.pipelines.orientation import upright
from protocols.pipelines.photographs import Photograph

KEYPOINTS = 8192  # of an image: COLMAP's default
NAMES = SIFT, HARRIS_AFFINE = "sift", "harris-affine"
FORMS = f"{SIFT}, {HARRIS_AFFINE}, FILE.h5, FILE.db or FILE.py:NAME"
COLUMNS = (3, 4, 5)  # of the rows that a function returns


@dataclass(frozen=True)
class Detector:
    """A way to find the keypoints of an image."""

    identity: str  # equal only if the keypoints of an image are equal
    find: Callable[[Photograph], AffineFrames]

    def __call__(self, photograph: Photograph) -> AffineFrames:
        """The keypoints of an image.

        Raises:
            InputError: if a keypoint can't have been found in an image of this size.
        """
        frames = self.find(photograph)
        must_lie_on(frames, photograph.width, photograph.height, f"keypoints of {photograph.name}")
        return frames


def detector(spec: str, keypoints: int = KEYPOINTS) -> Detector:
    """The detector of a name or a file.

    Args:
        spec: one of FORMS.
        keypoints: wanted number for an image. `harris-affine` gives at most so many; `sift` keeps
            whole levels of scale space, until it has at least so many. Files have their own number.

    Raises:
        UnknownNameError: if it is neither a name nor a file of a known kind.
        InputError: if `keypoints` is not positive, or the file can't be read.
    """
    if keypoints < 1:
        raise InputError(f"keypoints is {keypoints}; it must be at least 1")
    if spec == SIFT:
        return _sift(keypoints)
    if spec == HARRIS_AFFINE:
        return Detector(
            f"{HARRIS_AFFINE} {keypoints}",
            lambda photograph: harris_affine(read_grey(photograph.file), keypoints),
        )
    in_file = re.fullmatch(r"(.+\.py):(\w+)", spec)
    if in_file:
        return _function(Path(in_file[1]), in_file[2])
    file = Path(spec)
    kinds = {".h5": _hdf5, ".hdf5": _hdf5, ".db": _database}
    if file.suffix.lower() not in kinds:
        raise UnknownNameError(f"{unknown('detectors', spec, NAMES)}; a detector is {FORMS}")
    if not file.is_file():
        raise InputError(f"there is no file {file} of keypoints")
    return kinds[file.suffix.lower()](file)


def frames_of_rows(rows: np.ndarray, subject: str) -> tuple[AffineFrames, bool]:
    """Rows x, y, scale, angle, score as frames, and whether they have angles.

    Raises:
        InputError: if there are not 3 to 5 columns of finite numbers; begins with `subject`.
    """
    if rows.ndim != 2 or rows.shape[1] not in COLUMNS:
        raise InputError(
            f"{subject}: keypoints of shape {list(rows.shape)}; rows of x, y, scale, angle and"
            " score are wanted (angle and score can be left out)"
        )
    table = rows.astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(table).all(axis=1) | (table[:, 2] <= 0))
    if len(bad):
        raise InputError(
            f"{subject}: keypoint {bad[0]} is {table[bad[0]].tolist()}; finite numbers and a scale"
            " above 0 are wanted"
        )
    x, y, scale = table[:, :3].T
    angle = table[:, 3] if table.shape[1] > 3 else np.zeros(len(table))
    score = table[:, 4] if table.shape[1] > 4 else None
    return from_similarity(x, y, scale, angle, score), table.shape[1] > 3


def _sift(keypoints: int) -> Detector:
    with extras.needed(f"detector {SIFT}"):
        from protocols.colmap import sift
        from protocols.colmap.keypoints import frames_of
        from protocols.colmap.mapping import quiet

    def find(photograph: Photograph) -> AffineFrames:
        with quiet():
            table = sift.detected(photograph.folder, photograph.name, photograph.sha256, keypoints)
        return frames_of(table)

    return Detector(f"{SIFT} {keypoints}", find)


def _function(file: Path, name: str) -> Detector:
    if not file.is_file():
        raise InputError(f"there is no file {file}")
    function, source = plugins.in_file(file, name, "detectors")

    def find(photograph: Photograph) -> AffineFrames:
        subject = f"{file}:{name} on {photograph.name}"
        try:
            rows = np.asarray(function(read_grey(photograph.file)))
        except FAILURES as error:
            raise ComputeError(f"{subject} fails: {text_of(error)}") from error
        frames, turned = frames_of_rows(rows, subject)
        return frames if turned else upright(photograph.file, frames)

    return Detector(f"{name} {hashlib.sha256(source).hexdigest()}", find)


def _database(file: Path) -> Detector:
    with extras.needed(f"{file}"):
        from protocols.colmap import keypoints as colmap

    def find(photograph: Photograph) -> AffineFrames:
        remedy = "give a database with keypoints of every image, or another --detector"
        table = colmap.read(file, [photograph.name], remedy)[photograph.name]
        return colmap.frames_of(table)

    return Detector(f"database {sha256(file)}", find)


def _hdf5(file: Path) -> Detector:
    with extras.needed(f"{file}"):
        from protocols.pipelines import hdf5

    def find(photograph: Photograph) -> AffineFrames:
        frames, turned = hdf5.read_frames(file, photograph.name)
        return frames if turned else upright(photograph.file, frames)

    return Detector(f"features {sha256(file)}", find)
