"""The training half of RomePatches, to train on."""

from dataclasses import replace
from pathlib import Path

from harness import Dataset
from protocols.romepatches.reader import HALVES, holds_set, open_set


def training_set(data: Path) -> Dataset | None:
    """The queries and the database of the half "train", points of ten patches; None if not there.

    Each patch counts as an image of its own: which image it is from, no file tells.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if a file is damaged, or patches and labels don't fit each other.
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
