"""A protocol and descriptors small enough for a test."""

import dataclasses
import hashlib

import numpy as np

from harness import Block, Dataset, Descriptor, Protocol, Scores
from harness.distances import L2
from harness.evaluation import evaluate
from harness.metrics import average_precision, rank

POINTS = 30


def toy_patches():
    rng = np.random.default_rng(0)
    clean = rng.integers(0, 256, (POINTS, 16, 16), dtype=np.uint8)
    noisy = np.clip(clean + rng.normal(0, 40, clean.shape), 0, 255).astype(np.uint8)
    return {"clean": clean, "noisy": noisy}


def toy_dataset(**change):
    blocks = tuple(
        Block(name, POINTS, hashlib.sha256(patches.tobytes()).hexdigest(), lambda p=patches: p)
        for name, patches in toy_patches().items()
    )
    fields = {
        "name": "toy-data",
        "split": "all",
        "blocks": blocks,
        "point": np.tile(np.arange(POINTS), 2),
        "image": np.repeat([0, 1], POINTS),
        "sources": frozenset({"toy/scene"}),
    }
    return Dataset(**(fields | change))


def toy_protocol(task="verification", dataset=None, version=1):
    def score(described):
        a, b = np.divmod(np.arange(POINTS**2), POINTS)
        ranking = rank(a == b, described.paired(a, b + POINTS))
        return Scores(
            {f"{task}/ap": float(average_precision(ranking))},
            {"scene": {f"{task}/ap": 0.5}},
            {f"{task}/ap": (0.25, 1.0)},
        )

    return Protocol(f"toy/{task}", version, dataset or toy_dataset(), score, f"{task}/ap")


def toy_descriptor(name="mean", describe=None, **fields):
    def mean(patches):
        rows = patches.reshape(len(patches), -1, 32)
        return rows.mean(axis=2, dtype=np.float32)

    return Descriptor(name, describe or mean, L2, fields.pop("dim", 8), **fields)


def measured(
    name="mean", tasks=("verification",), score=None, dataset=None, options=None, **fields
):
    """Records of one toy descriptor on toy tasks; `score` replaces the headline."""
    protocols = [
        dataclasses.replace(toy_protocol(task, dataset), options=options or {}) for task in tasks
    ]
    for record in evaluate(toy_descriptor(name, **fields), protocols):
        if score is None:
            yield record
        else:
            yield record.model_copy(update={"scores": {record.protocol.headline: score}})


def scored(name, *scenes, headline="verification/ap", **fields):
    """A record with these scores of scenes, and their mean as its headline."""
    (one,) = measured(name, **fields)
    return one.model_copy(
        update={
            "protocol": one.protocol.model_copy(update={"headline": headline}),
            "scores": {headline: float(np.mean(scenes))},
            "intervals": {},
            "scenes": {f"s{i}": {headline: float(value)} for i, value in enumerate(scenes)},
        }
    )
