"""Features of images: keypoints and their vectors, made image by image and kept until the end.

A work folder holds the features of each finished image in a file of its own. A run that was stopped
or killed continues at the first image without such a file.
"""

import hashlib
import io
import logging
import zipfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from harness.errors import InputError
from harness.evaluation import describe as described
from harness.files import atomic
from harness.types import Block, Dataset, Descriptor, Patches, Vectors
from protocols.imaging.affine import AffineFrames
from protocols.imaging.keypoint_patches import KeypointCut
from protocols.pipelines.photographs import Photograph

Detect = Callable[[Photograph], AffineFrames]

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Features:
    """The keypoints of one image, and one vector for each."""

    frames: AffineFrames
    vectors: Vectors


@dataclass(frozen=True)
class FeatureFolder:
    """A folder with the features of images, one file each."""

    folder: Path

    def read(self, photograph: Photograph) -> Features | None:
        """The features of an image; None if they are missing, damaged, or of another file."""
        try:
            with np.load(self._file(photograph), allow_pickle=False) as arrays:
                frames = AffineFrames(*(arrays[name] for name in ("x", "y", "matrix", "score")))
                return Features(frames, arrays["vectors"])
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None

    def write(self, photograph: Photograph, features: Features) -> None:
        """Store the features of an image; no wait for the disk, since damage is noticed."""
        stream = io.BytesIO()
        np.savez(stream, **vars(features.frames), vectors=features.vectors)
        with atomic.writing(self._file(photograph), sync=False) as file:
            file.write(stream.getbuffer())

    def _file(self, photograph: Photograph) -> Path:
        name = hashlib.sha256(f"{photograph.name}\0{photograph.sha256}".encode()).hexdigest()
        return self.folder / f"{name}.npz"


def vectors_of(model: Descriptor, patches: Patches, image: str) -> Vectors:
    """One vector for each patch of an image, checked as in an evaluation; errors name the image."""
    n = len(patches)
    block = Block(image, n, "", lambda: patches)
    dataset = Dataset("images", image, (block,), np.arange(n), np.zeros(n, np.intp))
    return described(model, dataset).vectors


def make(
    photographs: Sequence[Photograph],
    detect: Detect,
    model: Descriptor,
    cut: KeypointCut,
    folder: FeatureFolder,
    advance: Callable[[int], None] = lambda done: None,
) -> dict[str, str]:
    """Store the features of every image; returns for each image that fails the reason.

    While an image is described, the keypoints of the next image are detected. Two images are in
    memory at a time.
    """
    skipped: dict[str, str] = {}
    waiting = [one for one in photographs if folder.read(one) is None]
    advance(len(photographs) - len(waiting))
    for photograph, found in _ahead(detect, waiting):
        try:
            frames = found.result()
            patches = cut.patches(photograph.read(), frames)
        except InputError as error:
            skipped[photograph.name] = str(error)
        else:
            vectors = vectors_of(model, patches, photograph.name)
            folder.write(photograph, Features(frames, vectors))
        advance(1)
    return skipped


def _ahead(
    detect: Detect, photographs: Sequence[Photograph]
) -> Iterator[tuple[Photograph, "Future[AffineFrames]"]]:
    """Each image with its keypoints; those of the next image are detected in the meantime."""
    with ThreadPoolExecutor(1) as pool:
        try:
            waiting = [pool.submit(detect, one) for one in photographs[:1]]
            for i, photograph in enumerate(photographs):
                found = waiting.pop()
                found.exception()  # wait, so that only one image is ahead
                waiting += [pool.submit(detect, one) for one in photographs[i + 1 : i + 2]]
                yield photograph, found
        finally:
            pool.shutdown(cancel_futures=True)
