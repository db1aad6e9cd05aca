"""HPatches sequences as training data."""

from pathlib import Path

from harness import Dataset
from protocols.hpatches.reader import holds_sequences, open_training


def training_set(data: Path) -> Dataset | None:
    """All strips of the default split's training sequences; None if the folder has no sequence.

    Each strip counts as an image, so that all patches of a point have different images.

    Raises:
        FileMissingError: if a sequence or a strip is missing.
        InputError: if a file is damaged, or the split has no training part.
    """
    return open_training(data) if holds_sequences(data) else None
