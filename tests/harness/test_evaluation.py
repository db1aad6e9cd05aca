import dataclasses

import numpy as np
import pytest
from toy import POINTS, toy_dataset, toy_descriptor, toy_protocol

from harness.cache import Cache
from harness.distances import ANGLE, HAMMING
from harness.evaluation import describe, evaluate, export_vectors
from harness.plugins import model as load_model

PROBE = 9  # patches that tell models apart


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
    assert sum(calls) == PROBE + 2 * POINTS


def test_a_model_is_probed_once_with_a_cache_too(tmp_path):
    calls = []
    protocols = [toy_protocol(), toy_protocol(dataset=toy_dataset())]
    model = toy_descriptor(describe=counting(calls))
    assert len(list(evaluate(model, protocols, cache=Cache(tmp_path)))) == 2
    assert sum(calls) == PROBE + 2 * POINTS


def test_data_described_without_some_cells_are_described_again_for_others():
    calls = []
    model = toy_descriptor(describe=counting(calls), trained_on=frozenset({"toy/clean"}))
    cells = {name: frozenset({f"toy/{name}"}) for name in ("clean", "noisy")}
    dataset = toy_dataset()
    with_cells = dataclasses.replace(toy_protocol(dataset=dataset), cells=cells)
    records = list(evaluate(model, [with_cells, toy_protocol(dataset=dataset)]))
    assert [record.data.refused for record in records] == [["clean"], []]
    assert sum(calls) == PROBE + 3 * POINTS
    (alone,) = evaluate(toy_descriptor(describe=counting([])), [toy_protocol()])
    assert records[1].scores == alone.scores


def test_cached_vectors_are_not_computed_again(tmp_path):
    calls = []
    model = toy_descriptor(describe=counting(calls))
    cache = Cache(tmp_path)
    one, two = (describe(model, toy_dataset(), cache=cache) for _ in range(2))
    np.testing.assert_array_equal(one.vectors, two.vectors)
    assert sum(calls) == 2 * POINTS + 2 * PROBE


@pytest.mark.parametrize(
    "change", [{"weights": "1" * 64}, {"code": "2" * 64}, {"provider": "cuda"}, {"name": "other"}]
)
def test_another_origin_is_computed_again(tmp_path, change):
    calls = []
    cache = Cache(tmp_path)
    for fields in ({"name": "one"}, {"name": "one", **change}):
        describe(toy_descriptor(describe=counting(calls), **fields), toy_dataset(), cache=cache)
    assert sum(calls) == 4 * POINTS + 2 * PROBE


def test_a_file_that_a_model_reads_on_its_own_is_seen(tmp_path):
    weights = [1.0]

    def scaled(patches):
        return patches.reshape(len(patches), -1)[:, :8].astype(np.float32) * weights[0]

    model, cache = toy_descriptor(describe=scaled), Cache(tmp_path)
    before = describe(model, toy_dataset(), cache=cache).vectors
    weights[0] = np.float32(2.0)
    np.testing.assert_array_equal(describe(model, toy_dataset(), cache=cache).vectors, 2 * before)


def test_the_record_tells_such_models_apart():
    prints = set()
    for factor in (1, 2):
        model = toy_descriptor(describe=lambda p, f=factor: counting([])(p) * np.float32(f))
        (record,) = evaluate(model, [toy_protocol()])
        prints.add(record.environment.fingerprint)
    assert len(prints) == 2


def test_a_model_may_reuse_its_memory():
    own = np.empty((POINTS, 8), np.float32)

    def reusing(patches):
        own[: len(patches)] = patches.reshape(len(patches), -1)[:, :8]
        return own[: len(patches)]

    described = describe(toy_descriptor(describe=reusing), toy_dataset(), batch_size=7)
    expected = describe(toy_descriptor(describe=counting([])), toy_dataset())
    np.testing.assert_array_equal(described.vectors, expected.vectors)


def test_after_an_interruption_what_was_described_is_kept(tmp_path):
    cache = Cache(tmp_path)
    calls = []

    def interrupted(patches):
        if len(calls) == 2:  # the probe, then one block
            raise KeyboardInterrupt
        return counting(calls)(patches)

    with pytest.raises(KeyboardInterrupt):
        describe(toy_descriptor(describe=interrupted), toy_dataset(), cache=cache)
    describe(toy_descriptor(describe=counting(calls)), toy_dataset(), cache=cache)
    assert calls == [PROBE, POINTS, PROBE, POINTS]


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path):
    (tmp_path / "file").touch()
    cache = Cache(tmp_path / "file")
    assert len(describe(toy_descriptor(), toy_dataset(), cache=cache).vectors) == 2 * POINTS


def test_a_failing_model_is_named_with_the_block():
    def failing(patches):
        raise IndexError("no such layer")

    with pytest.raises(RuntimeError, match=r"mean fails on clean: IndexError: no such layer"):
        describe(toy_descriptor(describe=failing), toy_dataset())


def test_angles_are_only_measured_between_unit_vectors():
    model = dataclasses.replace(toy_descriptor(), distance=ANGLE)
    with pytest.raises(ValueError, match="whose length differs from 1"):
        describe(model, toy_dataset())


def test_bits_that_only_fill_the_last_byte_are_zero():
    def bits(patches):
        return np.full((len(patches), 2), 0b1111_0000, np.uint8)

    model = dataclasses.replace(toy_descriptor(describe=bits), distance=HAMMING, dim=12)
    assert describe(model, toy_dataset()).vectors.any()
    with pytest.raises(ValueError, match=r"bits beyond its 11 .* of clean.*leave them 0"):
        describe(dataclasses.replace(model, dim=11), toy_dataset())


def test_vectors_that_a_protocol_cannot_score_are_refused_before_they_are_made():
    calls = []
    protocol = dataclasses.replace(toy_protocol(), distances=frozenset({"hamming"}))
    with pytest.raises(ValueError, match="takes vectors compared by hamming"):
        list(evaluate(toy_descriptor(describe=counting(calls)), [protocol]))
    assert sum(calls) == PROBE


def test_a_damaged_cache_file_is_computed_again(tmp_path):
    cache = Cache(tmp_path)
    model = toy_descriptor()
    expected = describe(model, toy_dataset(), cache=cache).vectors
    for file in tmp_path.rglob("*.npy"):
        file.write_bytes(file.read_bytes()[:100])
    np.testing.assert_array_equal(describe(model, toy_dataset(), cache=cache).vectors, expected)


@pytest.mark.parametrize(
    ("describe_patches", "message"),
    [
        (lambda p: np.zeros((len(p) - 1, 8), np.float32), r"gave float32 \[29, 8\] for 30 .*clean"),
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


def test_a_model_whose_vectors_count_the_patches_is_refused():
    def counted(patches):
        rows = patches.reshape(len(patches), -1)[:, :7].astype(np.float32)
        return np.column_stack([np.arange(len(patches), dtype=np.float32), rows])

    with pytest.raises(ValueError, match="mean gives vectors whose column 1 counts the patches"):
        list(evaluate(toy_descriptor(describe=counted), [toy_protocol()]))
