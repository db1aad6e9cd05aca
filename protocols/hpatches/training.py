"""HPatches sequences to train on."""

from pathlib import Path

from harness import Dataset
from protocols.hpatches.reader import holds_sequences, open_training


def training_set(data: Path) -> Dataset | None:
    """All strips of the sequences that the default split trains on; None if there is no sequence.

    The image of a patch is its strip: patches of one point are of as many images.

    Raises:
        FileNotFoundError: if a sequence or a strip is missing.
        ValueError: if a file is damaged, or the split has no training part.
    """
    return open_training(data) if holds_sequences(data) else None
