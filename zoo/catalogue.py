"""The zoo's models as rows of facts, for which neither PyTorch nor weights are needed."""

from pathlib import Path

from harness.catalogue import ModelRow
from zoo import card as cards
from zoo.card import Card
from zoo.published.git_rows import DSM, DSM_BINARY, GEODESC, HARDNET, HYNET, L2NET, SOSNET
from zoo.published.rows import DEEPDESC, HARDTFEAT, MKD, TFEAT, TNET

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
            sha256=card.weights,
            conventions=cards.conventions(card),
            more=_training(card),
        )
        for card in map(cards.read, sorted(FOLDER.glob("*.json")))
    ]
    published = [
        ModelRow(row.name, dim, distance, row.trained_on, row.licence, packages=("torch",))
        for tables, dim, distance in (
            (
                (TFEAT, HARDTFEAT, HARDNET, SOSNET, HYNET, DSM, DEEPDESC, GEODESC, L2NET, MKD),
                128,
                "l2",
            ),
            ((TNET,), 256, "l2"),
            ((DSM_BINARY,), 256, "hamming"),
        )
        for table in tables
        for row in table.values()
    ]
    central_surround = [  # of the same files as L2-Net
        ModelRow(
            row.name.replace("l2net", "l2net-cs"),
            256,
            "l2",
            row.trained_on,
            row.licence,
            packages=("torch",),
            weights=(row.name,),
        )
        for row in L2NET.values()
    ]
    return [*shipped, *published, *central_surround]


def _training(card: Card) -> dict[str, object]:
    """How weights were trained, for the card of the model."""
    return {
        "recipe": card.recipe.get("name"),
        "data": [each.name for each in card.data],
        "steps": card.steps,
        "hours": card.hours,
        "machine": card.machine,
        "seed": card.seed,
        "limits": card.limits,
        "scores": {name: each.value for name, each in card.scores.items()},
    }
