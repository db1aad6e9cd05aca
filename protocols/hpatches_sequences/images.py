"""The images of sequences at the size in which they are used, their keypoints and patches."""

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version

import cv2
import numpy as np

from harness import Block, parallel
from harness import cache as caches
from harness.code import code_sha256
from harness.types import Patches
from protocols.hpatches_sequences.homography import Points
from protocols.imaging import sift
from protocols.imaging.affine import AffineFrames
from protocols.imaging.grey import Grey, read_grey
from protocols.imaging.keypoint_patches import KeypointCut
from protocols.imaging.sequences import Homography, Sequence
from protocols.oxford.regions import from_table, table

OPENCV = "opencv-contrib-python-headless"


@dataclass(frozen=True, eq=False)
class Image:
    """An image of a sequence at the size in which it is used, with its keypoints."""

    sequence: Sequence
    k: int  # index of the image, from 0
    shape: tuple[int, int]
    to_size: Homography  # from pixels of the file to pixels of the used size
    frames: AffineFrames

    @property
    def places(self) -> Points:
        """Centres of the keypoints."""
        return np.stack([self.frames.x, self.frames.y], axis=1)


def images_of(sequences: list[Sequence], keypoints: int, size: int | None) -> list[Image]:
    """All images, by sequence and number."""
    places = [(sequence, k) for sequence in sequences for k in range(len(sequence.files))]
    _code()  # computed before threads start

    def image(place: tuple[Sequence, int]) -> Image:
        sequence, k = place
        shape, to_size = _resizing(sequence.shapes[k], size)
        frames = _keypoints(sequence, k, keypoints, size)
        return Image(sequence, k, shape, to_size, _ordered(frames, k))

    return parallel.each(image, places)


def _resizing(shape: tuple[int, int], size: int | None) -> tuple[tuple[int, int], Homography]:
    """The shape of a resized image, and the map from pixels of the file to its pixels."""
    if size is None:
        return shape, np.eye(3)
    height, width = (round(side * size / min(shape)) for side in shape)
    tall, wide = height / shape[0], width / shape[1]
    to_size = np.array([[wide, 0, (wide - 1) / 2], [0, tall, (tall - 1) / 2], [0, 0, 1]])
    return (height, width), to_size


def _read(sequence: Sequence, k: int, size: int | None) -> Grey:
    """An image at the size in which it is used."""
    grey = read_grey(sequence.files[k])
    height, width = _resizing(grey.shape, size)[0]
    if (height, width) == grey.shape:
        return grey
    how = cv2.INTER_AREA if height < grey.shape[0] else cv2.INTER_LINEAR
    return np.asarray(cv2.resize(grey, (width, height), interpolation=how), np.uint8)


def _keypoints(sequence: Sequence, k: int, most: int, size: int | None) -> AffineFrames:
    """The strongest keypoints of an image; kept in the cache, by the image's hash."""
    kept = caches.kept("keypoints")
    origin = {
        "image": sequence.sha256[k],
        "size": str(size),
        "most": str(most),
        "opencv": version(OPENCV),
        "code": _code(),
    }
    rows = kept.read_array(origin)
    if rows is None:
        rows = table(sift.sift(_read(sequence, k, size), most))
        kept.write_array(origin, rows)
    return from_table(rows)


@cache
def _code() -> str:
    """A hash of the code that detects keypoints, resizes images, and cuts out patches."""
    return code_sha256(__name__)


def _ordered(frames: AffineFrames, k: int) -> AffineFrames:
    """Keypoints in the order of a hash of each, which carries no information about matches.

    The hash covers the number of the image: equal images have equal keypoints in other orders.
    """
    drawn = [
        hashlib.blake2b(row.tobytes(), digest_size=8, key=f"image {k}".encode()).digest()
        for row in np.ascontiguousarray(table(frames)[:, :6])
    ]
    return frames.take(np.argsort(np.array(drawn, dtype="S8"), kind="stable"))


def block_of(image: Image, *, size: int | None, cut: KeypointCut) -> Block:
    """The patches of one image; their hash is cached by all inputs that decide it."""
    sequence, k, frames = image.sequence, image.k, image.frames

    def read() -> Patches:
        return cut.patches(_read(sequence, k, size).astype(np.float32), frames)

    kept = caches.kept("keypoints")
    origin = {
        "image": sequence.sha256[k],
        "size": str(size),
        "cut": str(cut),
        "keypoints": hashlib.sha256(table(frames).tobytes()).hexdigest(),
        "code": _code(),
    }
    digest = kept.read(origin)
    if digest is None:
        digest = hashlib.sha256(read().tobytes()).digest()
        kept.write(origin, digest)
    return Block(f"{sequence.folder}/{k + 1}", len(frames), digest.hex(), read)
