"""Columns that count rows, found without taking what chance makes for one."""

import doctest

import numpy as np
import pytest

from harness import row_counters
from harness.row_counters import columns_that_count

KINDS = {
    "floats": lambda rng, n: rng.standard_normal((n, 8)),
    "sift": lambda rng, n: rng.integers(0, 256, (n, 128)) * (rng.random((n, 128)) < 0.6),
    "bits": lambda rng, n: rng.integers(0, 2, (n, 256)),
    "four levels": lambda rng, n: rng.integers(0, 4, (n, 64)),
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_chance_makes_no_counter_of_few_rows(kind):
    rng = np.random.default_rng(0)
    for _ in range(300):
        sizes = rng.integers(0, 6, rng.integers(1, 8))
        assert columns_that_count(kind(rng, n) for n in sizes) == []


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_a_counter_is_found_among_vectors_of_any_kind(kind):
    rng = np.random.default_rng(0)
    parts = [np.insert(kind(rng, n), 3, np.arange(n) + 10 * n, axis=1) for n in (7, 30, 1, 12)]
    assert columns_that_count(parts) == [3]


def test_a_counter_written_with_few_digits_is_found():
    rng = np.random.default_rng(0)
    index = np.round(np.arange(5000) / 5000, 3)  # steps of 0.0002 in thousandths
    assert columns_that_count([np.insert(rng.standard_normal((5000, 4)), 0, index, axis=1)]) == [0]


def test_float16_rounds_no_counter_away():
    rng = np.random.default_rng(0)
    index = np.arange(20_000).astype(np.float16)
    assert columns_that_count([np.insert(rng.standard_normal((20_000, 2)), 2, index, axis=1)]) == [
        2
    ]


def test_no_parts_and_no_rows_have_no_counter():
    assert columns_that_count([]) == columns_that_count([np.empty((0, 3))]) == []


def test_the_examples_are_right():
    assert doctest.testmod(row_counters).failed == 0
