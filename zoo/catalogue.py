"""The zoo's models as rows of facts, for which neither PyTorch nor weights are needed."""

from pathlib import Path

from harness.catalogue import ModelRow
from zoo import card as cards
from zoo.card import Card
from zoo.published import conventions
from zoo.published.git_rows import DSM, DSM_BINARY, HARDNET, HYNET, SOSNET
from zoo.published.rows import HARDTFEAT, TFEAT

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
            ((TFEAT, HARDTFEAT, HARDNET, SOSNET, HYNET, DSM), 128, "l2"),
            ((DSM_BINARY,), 256, "hamming"),
        )
        for table in tables
        for row in table.values()
    ]
    return [*shipped, *published]


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
