"""A small network, method, recipe and training set, for trainings that take a moment."""

import numpy as np
import torch
from torch import nn

from harness import Block, Dataset
from zoo.backbones import BatchNorm, Network, standardise, unit
from zoo.training.method import Method, Selection

POINTS, EACH, SIDE = 120, 3, 8


class Small(Network):
    side = SIDE
    dim = 16

    def __init__(self, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 8, 3, bias=False), BatchNorm(8), nn.ReLU(), nn.Dropout(dropout),
            nn.Conv2d(8, 16, 6, bias=False), BatchNorm(16),
        )  # fmt: skip

    def forward(self, patches):
        return unit(self.layers(standardise(patches)).flatten(1))


class Contrast(Method):
    """Margin loss: two patches of one point against the patch of another point in the batch."""

    def __init__(self, *, pairs: int = 16) -> None:
        super().__init__()
        self.pairs = pairs
        self.margin = nn.Parameter(torch.ones(()))
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))

    def sampler(self, groups, seed):
        def draw(step):
            rng = np.random.default_rng([seed, step])
            points = rng.choice(len(groups), self.pairs, replace=False)
            two = np.array([rng.choice(groups.rows(p), 2, replace=False) for p in points])
            return Selection(two.T.ravel(), np.tile(points, 2))

        return draw

    def forward(self, batch):
        self.seen += 1
        a, b = batch.pair_vectors(separate=False)
        matched = (a - b).square().sum(1)
        other = (a - b.roll(1, 0)).square().sum(1)
        return (self.margin + matched - other).clamp(min=0).mean()


TABLE = {
    "name": "toy",
    "data": ["toy"],
    "epochs": 4,
    "steps_per_epoch": 3,
    "held_out": 0.5,
    "method": {"name": "small_training:Contrast"},
    "network": {"name": "small_training:Small", "dropout": 0.2},
    "optimiser": {"lr": 0.1, "weight_decay": 1e-4},
    "schedule": {"name": "linear"},
    "augmentation": {"dihedral": True},
}


def dataset():
    rng = np.random.default_rng(0)
    shown = np.kron(rng.integers(0, 256, (POINTS, 1, 4, 4)), np.ones((2, 2)))
    noise = rng.normal(0, 90, (POINTS, EACH, SIDE, SIDE))
    patches = np.clip(shown + noise, 0, 255).astype(np.uint8).reshape(-1, SIDE, SIDE)
    block = Block("all", len(patches), "toy", lambda: patches)
    point = np.repeat(np.arange(POINTS), EACH)
    return Dataset("toy", "", (block,), point, point // 4), patches
