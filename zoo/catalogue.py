"""The zoo's models as rows of facts, for which neither PyTorch nor weights are needed."""

from pathlib import Path

from harness.catalogue import ModelRow, Moment
from zoo import card as cards
from zoo.card import Card
from zoo.published import conventions
from zoo.published.git_rows import DSM, DSM_BINARY, GEODESC, HARDNET, HYNET, L2NET, SOSNET
from zoo.published.rows import DEEPDESC, HARDTFEAT, MKD, TFEAT, TNET

FOLDER = Path(__file__).with_name("weights")
OTHERS = {"hardnet-ps": conventions.HARDNET_PS, "hardnet8": conventions.HARDNET8}
PUBLISHED = [  # rows of weights, dim, distance, conventions
    (TFEAT.values(), 128, "l2", conventions.TFEAT),
    (HARDTFEAT.values(), 128, "l2", conventions.HARDTFEAT),
    ([HARDNET[name] for name in HARDNET if name not in OTHERS], 128, "l2", conventions.HARDNET),
    *(([HARDNET[name]], 128, "l2", said) for name, said in OTHERS.items()),
    (SOSNET.values(), 128, "l2", conventions.SOSNET),
    (HYNET.values(), 128, "l2", conventions.HYNET),
    (DSM.values(), 128, "l2", conventions.DSM),
    (DSM_BINARY.values(), 256, "hamming", conventions.DSM_BINARY),
    (DEEPDESC.values(), 128, "l2", conventions.DEEPDESC),
    (GEODESC.values(), 128, "l2", conventions.GEODESC),
    (L2NET.values(), 128, "l2", conventions.L2NET),
    (TNET.values(), 256, "l2", conventions.TNET),
    ([row for row in MKD.values() if "-lw" in row.name], 128, "l2", conventions.MKD_LW),
    ([row for row in MKD.values() if "-pcawt" in row.name], 128, "l2", conventions.MKD_PCAWT),
]


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
            images=frozenset(one.licence for one in card.photographs) or None,
            curve=tuple(Moment(one.step, one.loss, one.fpr95) for one in card.curve),
        )
        for card in map(cards.read, sorted(FOLDER.glob("*.json")))
    ]
    published = [
        ModelRow(
            row.name,
            dim,
            distance,
            row.trained_on,
            row.licence,
            packages=("torch",),
            conventions=said,
        )
        for rows, dim, distance, said in PUBLISHED
        for row in rows
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
            conventions=conventions.L2NET_CS,
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
        "photographs": {one.file: f"{one.author}, {one.licence}" for one in card.photographs},
    }
