"""The training half of RomePatches as training data."""

from dataclasses import replace
from pathlib import Path

from harness import Dataset
from protocols.romepatches.reader import HALVES, holds_set, open_set


def training_set(data: Path) -> Dataset | None:
    """The queries and the database of the half "train"; None if the folder has no such set.

    In the published set, each point has ten patches. Each patch counts as an image of its own,
    because the files do not tell the images of the patches.

    Raises:
        FileMissingError: if a file is missing.
        InputError: if a file is damaged, or patches and labels disagree.
    """
    if not holds_set(data):
        return None
    whole = open_set(data).dataset
    train = whole.blocks[HALVES.index("train")]
    assert train is whole.blocks[0]
    rows = slice(train.size)
    return replace(
        whole,
        split="train",
        blocks=(train,),
        point=whole.point[rows],
        image=whole.image[rows],
        sources=frozenset(["romepatches/train"]),
    )
