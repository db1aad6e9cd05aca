"""A descriptor of 128 numbers with random weights, for students in tests."""

import hashlib
from dataclasses import replace

import torch

from harness.data.photographs import Photograph
from harness.distances import L2
from harness.types import Descriptor
from zoo.backbones import BatchNorm, Deployed, resize
from zoo.l2net_small import L2NetSmall
from zoo.trained import pack

SPEC = f"{__file__}:teacher"  # as `--model` takes it
LICENCE, DATA = "of the teacher", frozenset({"other/teacher"})
OPEN = f"{__file__}:open_teacher"
SHOWN = (
    Photograph("a.jpg", "A", "CC0-1.0", "README", 64 * "a"),
    Photograph("c.jpg", "C", "CC-BY-4.0", "README", 64 * "c"),
)


def network(seed):
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        made = L2NetSmall()
        for module in made.modules():
            if isinstance(module, BatchNorm):
                module.momentum = 1.0
        with torch.no_grad():
            made(resize(255 * torch.rand(64, 1, 4, 4), 32))  # its vectors spread from here on
        return Deployed(made)


def of(seed):
    made = network(seed)

    def describe(patches):
        with torch.inference_mode():
            return made(torch.tensor(patches)).numpy()

    return Descriptor(
        "teacher",
        describe,
        L2,
        dim=128,
        trained_on=DATA,
        licence=LICENCE,
        weights=hashlib.sha256(pack(made.network)).hexdigest(),
        network=lambda: network(seed),
    )


def teacher():
    return of(seed=0)


def open_teacher():
    """Its photographs are SHOWN, and its licence follows from them."""
    return replace(of(seed=0), licence="CC-BY-4.0 AND CC0-1.0", photographs=SHOWN)


def other():
    return of(seed=1)
