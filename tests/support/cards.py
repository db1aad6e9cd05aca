"""Model cards for the weights that tests make."""

import hashlib

import torch

from zoo.card import Card

FACTS = {
    "name": "adasample",
    "weights": "0" * 64,
    "network": {"name": "l2net", "dropout": 0.1},
    "distance": "l2",
    "dim": 128,
    "side": 32,
    "trained_on": ("made/up",),
    "licence": "Apache-2.0",
    "recipe": {"name": "adasample", "epochs": 1},
    "data": ({"name": "made-up", "sha256": "1" * 64},),
    "seed": 3,
    "steps": 10,
    "hours": 0.1,
    "machine": "two cores",
    "torch": torch.__version__,
    "curve": ({"step": 10, "loss": 0.5, "fpr95": 0.1},),
    "scores": {
        "hpatches/matching on hpatches-mini, split mini: matching/map": {
            "value": 0.5,
            "interval": (0.4, 0.6),
        }
    },
    "limits": "random weights",
}


def card_of(contents, **facts):
    """The card for the contents of a safetensors file; by default of AdaSample on L2-Net."""
    return Card(**FACTS | facts | {"weights": hashlib.sha256(contents).hexdigest()})
