"""HPatches sequences as training data."""

from pathlib import Path

from harness import Dataset
from harness.errors import InputError, UnknownNameError
from harness.registry import unknown
from protocols.hpatches.reader import NOISES, STRIPS, holds_sequences, open_training

EVERY = "+".join(NOISES)


def training_set(data: Path, *, strips: str = EVERY) -> Dataset | None:
    """Strips of the default split's training sequences; None if the folder has no sequence.

    Each strip counts as an image, so that all patches of a point have different images.

    Args:
        data: folder of HPatches.
        strips: levels of noise, as in "easy+hard", whose strips are read beside the reference
            patches.

    Raises:
        FileMissingError: if a sequence or a strip is missing.
        InputError: if a file is damaged, the split has no training part, or `strips` is not a list
            of different levels.
    """
    return open_training(data, _named(strips)) if holds_sequences(data) else None


def _named(levels: str) -> tuple[str, ...]:
    """Names of the strips of some levels and of ref, in the order of STRIPS."""
    listed = levels.split("+")
    for level in listed:
        if level not in NOISES:
            raise UnknownNameError(
                f"strips={levels}: {unknown('strips', level, NOISES)}; join several by +"
            )
    if len(set(listed)) < len(listed):
        raise InputError(f"strips={levels} names a level twice")
    first = tuple(level[0] for level in listed)
    return tuple(strip for strip in STRIPS if strip == "ref" or strip.startswith(first))
