import numpy as np
import pytest
from toy import POINTS, toy_dataset, toy_descriptor, toy_protocol

from harness.cache import VectorCache
from harness.evaluate import describe, evaluate, export_vectors
from harness.plugins import model as load_model


def counting(calls):
    def describe(patches):
        calls.append(len(patches))
        return patches.reshape(len(patches), -1)[:, :8].astype(np.float32)

    return describe


def test_vectors_stand_in_the_order_of_the_patches():
    calls = []
    described = describe(toy_descriptor(describe=counting(calls)), toy_dataset(), batch_size=7)
    expected = np.concatenate([b.read().reshape(POINTS, -1)[:, :8] for b in toy_dataset().blocks])
    np.testing.assert_array_equal(described.vectors, expected)
    assert max(calls) == 7


def test_a_data_set_shared_by_protocols_is_described_once():
    calls = []
    dataset = toy_dataset()
    protocols = [toy_protocol(task, dataset) for task in ("verification", "matching")]
    assert len(list(evaluate(toy_descriptor(describe=counting(calls)), protocols))) == 2
    assert sum(calls) == 2 * POINTS


def test_cached_vectors_are_not_computed_again(tmp_path):
    calls = []
    model = toy_descriptor(describe=counting(calls))
    cache = VectorCache(tmp_path)
    one, two = (describe(model, toy_dataset(), cache=cache) for _ in range(2))
    np.testing.assert_array_equal(one.vectors, two.vectors)
    assert sum(calls) == 2 * POINTS


@pytest.mark.parametrize(
    "change", [{"weights": "1" * 64}, {"code": "2" * 64}, {"provider": "cuda"}, {"name": "other"}]
)
def test_another_origin_is_computed_again(tmp_path, change):
    calls = []
    cache = VectorCache(tmp_path)
    for fields in ({"name": "one"}, {"name": "one", **change}):
        describe(toy_descriptor(describe=counting(calls), **fields), toy_dataset(), cache=cache)
    assert sum(calls) == 4 * POINTS


def test_after_an_interruption_what_was_described_is_kept(tmp_path):
    cache = VectorCache(tmp_path)
    calls = []

    def interrupted(patches):
        if calls:
            raise KeyboardInterrupt
        return counting(calls)(patches)

    with pytest.raises(KeyboardInterrupt):
        describe(toy_descriptor(describe=interrupted), toy_dataset(), cache=cache)
    describe(toy_descriptor(describe=counting(calls)), toy_dataset(), cache=cache)
    assert calls == [POINTS, POINTS]


def test_a_damaged_cache_file_is_computed_again(tmp_path):
    cache = VectorCache(tmp_path)
    model = toy_descriptor()
    expected = describe(model, toy_dataset(), cache=cache).vectors
    for file in tmp_path.rglob("*.npy"):
        file.write_bytes(file.read_bytes()[:100])
    np.testing.assert_array_equal(describe(model, toy_dataset(), cache=cache).vectors, expected)


@pytest.mark.parametrize(
    ("describe_patches", "message"),
    [
        (lambda p: np.zeros((len(p) - 1, 8), np.float32), r"gave float32 \[29, 8\] for clean"),
        (lambda p: np.zeros((len(p), 9), np.float32), r"gave float32 \[30, 9\]"),
        (lambda p: np.zeros((len(p), 8)), r"gave float64 \[30, 8\]"),
        (lambda p: np.full((len(p), 8), np.nan, np.float32), "30 of 30 vectors of clean"),
    ],
)
def test_vectors_that_are_not_as_declared_are_refused(describe_patches, message):
    with pytest.raises(ValueError, match=message):
        describe(toy_descriptor(describe=describe_patches), toy_dataset())


def test_written_vectors_score_as_the_descriptor_does(tmp_path):
    model, protocol = toy_descriptor(), toy_protocol()
    export_vectors(model, protocol.dataset, tmp_path / "mean")
    (direct,) = evaluate(model, [protocol])
    (read,) = evaluate(load_model(str(tmp_path / "mean")), [protocol])
    assert read.scores == direct.scores


def test_progress_tells_of_every_patch():
    told = []
    describe(toy_descriptor(), toy_dataset(), progress=told.append)
    assert sum(told) == 2 * POINTS
