"""A descriptor of 128 numbers with random weights, for students in tests."""

import hashlib

import torch

from harness.distances import L2
from harness.types import Descriptor
from zoo.backbones import Deployed
from zoo.small import Small
from zoo.trained import pack

SPEC = f"{__file__}:teacher"  # as `--model` takes it
LICENCE, DATA = "of the teacher", frozenset({"other/teacher"})


def network(seed):
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        return Deployed(Small())


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


def other():
    return of(seed=1)
