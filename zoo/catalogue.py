"""The zoo's models as rows of facts, for which neither PyTorch nor weights are needed."""

from pathlib import Path

from harness.catalogue import ModelRow
from harness.data.weights import Weights
from zoo import card as cards
from zoo.published.rows import DEEPDESC, HARDTFEAT, L2NET, TFEAT, TNET

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
        *(_published(row) for row in (*TFEAT.values(), *HARDTFEAT.values(), *DEEPDESC.values())),
        *(_published(row) for row in L2NET.values()),
        *(_published(row, row.name.replace("l2net", "l2net-cs"), 256) for row in L2NET.values()),
        *(_published(row, dim=256, packages=("torch", "h5py")) for row in TNET.values()),
    ]
    return [*shipped, *published]


def _published(
    row: Weights, name: str = "", dim: int = 128, packages: tuple[str, ...] = ("torch",)
) -> ModelRow:
    """The row of a model with published weights; its own name is that of the weights."""
    return ModelRow(
        name or row.name,
        dim,
        "l2",
        row.trained_on,
        row.licence,
        packages=packages,
        weights=(row.name,),
    )
