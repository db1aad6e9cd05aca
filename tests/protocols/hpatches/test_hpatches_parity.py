"""The numbers that the official Python code gives, on real patches, all of them."""

import json

import numpy as np
import pytest

from harness import Descriptions
from harness.evaluation import describe
from harness.plugins import model as load_model
from protocols.hpatches.matching import matching
from protocols.hpatches.retrieval import retrieval
from protocols.hpatches.verification import verification

pytestmark = pytest.mark.data

CASES = {
    "sift L2": ("sift", "none"),
    "brief L1": ("brief", "none"),
    "sift+pcapl L2": ("sift", "pcapl"),
}


def scored(shared, name, ties):
    folder, whitening = CASES[name]
    mini = shared / "hpatches/mini"
    model = load_model(str(mini / "descriptors" / folder))
    values, scenes = {}, {}
    for make in (verification, matching, retrieval):
        protocol = make(data=mini, ties=ties, whitening=whitening)
        scores = protocol.score(describe(model, protocol.dataset))
        values |= scores.values
        for scene, own in scores.scenes.items():
            scenes.setdefault(scene, {}).update(own)
    return values, scenes


def official(shared, name):
    return json.loads((shared / "hpatches/mini/official_python.json").read_text())[name]


# Rounding near zero, 1e-16, is 1e-8 after whitening's square root: of 4e8 pairs 9 change places.
BOUNDS = {"sift L2": 1e-11, "brief L1": 1e-11, "sift+pcapl L2": 3e-8}


@pytest.mark.parametrize("name", CASES)
def test_every_number_equals_the_official_one(shared, name):
    values, scenes = scored(shared, name, "official")
    expected = official(shared, name)
    pairs = {key: table for key, table in expected.items() if isinstance(table, dict)}
    assert set(values) == set(expected) - set(pairs)
    for key in values:
        assert values[key] == pytest.approx(expected[key], abs=BOUNDS[name]), key
    for key, table in pairs.items():
        noise = key.split("/")[1]
        for scene, aps in table.items():
            ours = [scenes[scene][f"matching/{noise}/{k}/ap"] for k in range(1, 6)]
            np.testing.assert_allclose(ours, aps, rtol=0, atol=1e-11)


@pytest.mark.parametrize(("name", "bound"), [("sift L2", 3e-5), ("sift+pcapl L2", 3e-5)])
def test_float_descriptors_hardly_tie(shared, name, bound):
    """What is left is ties: integer SIFT, and "inter" pairs that happen to be positives too."""
    values, _ = scored(shared, name, "mean")
    expected = official(shared, name)
    assert max(abs(values[key] - expected[key]) for key in values) < bound


def test_binary_descriptors_owe_their_official_retrieval_to_ties(shared):
    right, _ = scored(shared, "brief L1", "mean")
    assert right["retrieval/map"] < official(shared, "brief L1")["retrieval/map"] - 0.005


def test_zero_one_columns_compared_by_l2_or_hamming_score_the_same(shared):
    mini = shared / "hpatches/mini"
    model = load_model(str(mini / "descriptors/brief"))
    protocol = retrieval(data=mini)
    described = describe(model, protocol.dataset)
    from harness.distances import HAMMING

    packed = Descriptions(
        protocol.dataset, np.packbits(described.vectors.astype(np.uint8), axis=1), HAMMING
    )
    assert protocol.score(packed).values == pytest.approx(protocol.score(described).values)
