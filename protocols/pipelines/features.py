"""Features of images: keypoints and their vectors, made image by image and kept until the end.

A work folder holds the features of each finished image in a file of its own. A run that was stopped
or killed continues at the first image without such a file.
"""

import hashlib
import io
import zipfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from harness.errors import InputError, SystemRefusedError, one_line
from harness.evaluation import describe as described
from harness.files import atomic
from harness.types import Block, Dataset, Descriptor, Patches, Vectors
from protocols.imaging.affine import AffineFrames
from protocols.imaging.keypoint_patches import KeypointCut
from protocols.pipelines.photographs import Photograph

T = TypeVar("T")
Detect = Callable[[Photograph], AffineFrames]


@dataclass(frozen=True, eq=False)
class Features:
    """The keypoints of one image, and one vector for each."""

    frames: AffineFrames
    vectors: Vectors


@dataclass(frozen=True)
class FeatureFolder:
    """A folder with the features of images, one file each."""

    folder: Path

    def has(self, photograph: Photograph) -> bool:
        """Whether the features of an image are here."""
        return zipfile.is_zipfile(self._file(photograph))

    def frames(self, photograph: Photograph) -> AffineFrames:
        """The keypoints of an image whose features are here; raises as `read` does."""
        return self._read(photograph, "x", "y", "matrix", "score", make=AffineFrames)

    def vectors(self, photograph: Photograph) -> Vectors:
        """The vectors of an image whose features are here; raises as `read` does."""
        return self._read(photograph, "vectors", make=np.asarray)

    def read(self, photograph: Photograph) -> Features:
        """The features of an image; they are here.

        Raises:
            SystemRefusedError: if their file is damaged; it is removed.
        """
        return Features(self.frames(photograph), self.vectors(photograph))

    def write(self, photograph: Photograph, features: Features) -> None:
        """Store the features of an image; no wait for the disk, since damage is noticed."""
        stream = io.BytesIO()
        np.savez(stream, **vars(features.frames), vectors=features.vectors)
        with atomic.writing(self._file(photograph), sync=False) as file:
            file.write(stream.getbuffer())

    def _read(self, photograph: Photograph, *names: str, make: Callable[..., T]) -> T:
        file = self._file(photograph)
        try:
            with np.load(file, allow_pickle=False) as arrays:
                return make(*(arrays[name] for name in names))
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            file.unlink(missing_ok=True)
            raise SystemRefusedError(
                f"{file}, with features of {photograph.name}, was damaged ({one_line(error)}) and"
                " is removed: run the command again, which makes it again"
            ) from error

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
    waiting = [one for one in photographs if not folder.has(one)]
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
