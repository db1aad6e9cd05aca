"""The zoo's models as rows of facts, for which neither PyTorch nor weights are needed."""

from pathlib import Path

from harness.catalogue import ModelRow
from zoo import card as cards
from zoo.published.rows import HARDTFEAT, MKD, TFEAT

FOLDER = Path(__file__).with_name("weights")


def models() -> list[ModelRow]:
    """A row for each model that has weights; the others are quickly made, and asked."""
    shipped = [
        ModelRow(
            card.name,
            card.dim,
            card.distance,
            frozenset(card.trained_on),
            card.licence,
            packages=("torch", "onnx", "onnxscript", "onnxruntime"),
        )
        for card in map(cards.read, sorted(FOLDER.glob("*.json")))
    ]
    published = [
        ModelRow(row.name, 128, "l2", row.trained_on, row.licence, packages=("torch",))
        for row in (*TFEAT.values(), *HARDTFEAT.values(), *MKD.values())
    ]
    return [*shipped, *published]
