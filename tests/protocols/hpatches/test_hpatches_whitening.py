import numpy as np
import pytest
from hpatches_files import write_set

from harness import Descriptions
from harness.distances import HAMMING, L2
from protocols.hpatches.reader import open_set
from protocols.hpatches.whitening import whiten

LENGTHS = {"i_one": 40, "v_one": 50, "v_two": 30}
SPLITS = {"a": {"name": "a", "test": ["v_one"], "train": ["i_one", "v_two"]}}


@pytest.fixture
def opened(tmp_path):
    return open_set(write_set(tmp_path, LENGTHS, splits=SPLITS), "a", training=True)


def vectors_of(opened, dim=12):
    """Far from zero, where float32 loses most digits when they are centred."""
    rng = np.random.default_rng(0)
    mixed = rng.normal(size=(len(opened.dataset), dim)) @ rng.normal(size=(dim, dim))
    return (100 + mixed).astype(np.float32)


def slow(vectors, opened):
    """The official steps in whole float64, row by row: compute_pcapl of HPatches' hpatch.py."""
    vectors = vectors.astype(float)
    train = vectors[opened.train_rows()]
    centred = train - sum(train) / len(train)
    covariance = sum(np.outer(row, row) for row in centred) / (2 * len(centred))
    values, directions = np.linalg.eigh(covariance)
    values = np.maximum(values, values[int(0.6 * len(values))])
    turn = directions @ np.diag(values**-0.5) @ directions.T
    out, start = [], 0
    for block in opened.dataset.blocks:
        strip = vectors[start : start + block.size]
        for row in strip - sum(strip) / len(strip):
            turned = row @ turn
            turned = np.sign(turned) * np.abs(turned) ** 0.5
            out.append(turned / np.sqrt(sum(turned**2)))
        start += block.size
    return np.array(out)


def test_it_is_the_official_steps_in_float64(opened):
    vectors = vectors_of(opened)
    whitened = whiten(Descriptions(opened.dataset, vectors, L2), opened).vectors
    assert whitened.dtype == np.float64
    np.testing.assert_allclose(whitened, slow(vectors, opened), atol=1e-7)  # of a square root
    np.testing.assert_allclose(np.square(whitened), np.square(slow(vectors, opened)), atol=1e-11)


def test_equal_vectors_of_a_strip_stay_equal(opened):
    vectors = vectors_of(opened)
    block = opened.dataset.blocks[0]
    vectors[: block.size] = vectors[np.arange(block.size) % 3]
    whitened = whiten(Descriptions(opened.dataset, vectors, L2), opened).vectors
    assert len(np.unique(whitened[: block.size], axis=0)) == 3


def test_vectors_are_not_written_to(opened):
    vectors = vectors_of(opened)
    vectors.flags.writeable = False
    whiten(Descriptions(opened.dataset, vectors, L2), opened)


def test_bits_are_not_whitened(opened):
    bits = np.zeros((len(opened.dataset), 4), np.uint8)
    with pytest.raises(ValueError, match="compared by l2, not by hamming"):
        whiten(Descriptions(opened.dataset, bits, HAMMING), opened)
