"""Chooses the pairs of images of a scene to match: all, those that look alike, or those of a list.

All pairs of a large scene take days: their number grows with the square of the number of images.
"""

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from harness import parallel
from harness.errors import InputError
from protocols.eth import pair_lists, vocabulary
from protocols.eth.pair_lists import EXHAUSTIVE, RETRIEVAL, ImagePairs
from protocols.eth.scenes import ImageScene

VOCABULARY = "vocabulary-tree"
WAYS = (EXHAUSTIVE, VOCABULARY, RETRIEVAL)

LARGE = 2000
"""With so many images or more, an image is matched only with those that a vocabulary tree finds."""

NEIGHBOURS = 100  # images found for each image
MANY = 300  # images; matching all pairs of so many is told with its cost
# To match two images, for each pair of a keypoint and a keypoint; on one core, of 128 numbers.
# Measured by benchmarks/eth_matching.py: 0.5 s for two images of 10,000 keypoints.
SECONDS = 5e-9

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Choice:
    """How the pairs of scenes are chosen."""

    way: str | None  # one of WAYS, or a file; None: by the number of images
    neighbours: int

    def of(self, images: int) -> str:
        """The way for a scene of so many images."""
        return self.way or (VOCABULARY if images >= LARGE else EXHAUSTIVE)

    def options(self, sizes: Sequence[int]) -> dict[str, str]:
        """The unusual ones of the options `pairs` and `neighbours`, for scenes of these sizes.

        A list is told by its contents, since its path says nothing about it.
        """
        found = {}
        usual = Choice(None, NEIGHBOURS)
        if self.way not in (None, *WAYS):
            digest = hashlib.sha256(Path(str(self.way)).read_bytes()).hexdigest()
            found["pairs"] = f"list-{digest:.12}"
        elif any(self.of(size) != usual.of(size) for size in sizes):
            found["pairs"] = str(self.way)
        if self.neighbours != NEIGHBOURS:
            found["neighbours"] = str(self.neighbours)
        return found


def chosen(pairs: str | Path | None, neighbours: int | None, sizes: Sequence[int]) -> Choice:
    """The choice that a user's options make, for scenes of these numbers of images.

    Raises:
        InputError: if the file is missing, is given for several scenes, or if `neighbours` has no
            meaning for these pairs.
    """
    choice = Choice(None if pairs is None else str(pairs), neighbours or NEIGHBOURS)
    if neighbours is None:
        pass
    elif neighbours < 1:
        raise InputError(f"neighbours {neighbours}: it must be at least 1")
    elif not {choice.of(size) for size in sizes} & {VOCABULARY, RETRIEVAL}:
        raise InputError(
            f"neighbours {neighbours}: no image is matched with its neighbours only; leave it out,"
            f" or choose pairs by --set pairs={VOCABULARY} or --set pairs={RETRIEVAL}"
        )
    if choice.way not in (None, *WAYS):
        if not Path(str(choice.way)).is_file():
            raise InputError(
                f"pairs {choice.way}: there is no such file; pairs are {', '.join(WAYS)}, or a file"
                " of two names a line"
            )
        if len(sizes) > 1:
            raise InputError(
                f"pairs {choice.way}: a list is of one scene, and {len(sizes)} scenes are tested:"
                " take one by --split"
            )
    return choice


def listed(scene: ImageScene, choice: Choice) -> ImagePairs | None:
    """The pairs of images to be matched, by number, the smaller first, in order.

    None if they follow from the vectors.

    Raises:
        InputError: if a list has no pair of two images of the scene, or can't be read.
    """
    way = choice.of(len(scene))
    if way == RETRIEVAL:
        return None
    if way == VOCABULARY:
        return vocabulary.alike(scene.images, scene.names, scene.sha256, choice.neighbours)
    if way == EXHAUSTIVE:
        if len(scene) >= MANY:
            _tell_cost(scene)
        return pair_lists.exhaustive(len(scene))
    found, unknown = pair_lists.listed(Path(way), scene.names)
    if not found:
        raise InputError(
            f"pairs {way}: no line names two images of {scene.name}; names are relative to"
            f" {scene.images}, such as {scene.names[0]}"
        )
    if unknown:
        log.warning("%s: %d lines name an image that %s does not have", way, unknown, scene.name)
    return found


def _tell_cost(scene: ImageScene) -> None:
    """Say what all pairs of a scene cost, and what costs less."""
    sizes = [len(frames) for frames in scene.frames]
    products = (sum(sizes) ** 2 - sum(size**2 for size in sizes)) // 2
    taken = timedelta(seconds=round(products * SECONDS / parallel.CORES))
    log.info(
        "%s: all %s pairs of its %s images will be matched, in about %s on %d cores. Fewer pairs:"
        " --set pairs=%s (images that COLMAP finds alike, the same for every descriptor), --set"
        " pairs=%s (those that the descriptor finds alike), or --set pairs=FILE (two names a line)",
        scene.name, f"{len(sizes) * (len(sizes) - 1) // 2:,}", f"{len(sizes):,}", taken,
        parallel.CORES, VOCABULARY, RETRIEVAL,
    )  # fmt: skip
