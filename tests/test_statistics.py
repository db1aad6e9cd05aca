import numpy as np
import pytest

from harness.statistics import COVERED, interval, interval_of_mean


def test_one_scene_has_no_interval():
    assert interval_of_mean([0.5]) is None
    assert interval_of_mean([0.5, 0.5]) == (0.5, 0.5)


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(400):
        low, high = interval_of_mean(rng.normal(size=40).tolist())
        covered += low <= 0 <= high
    assert covered / 400 == pytest.approx(COVERED, abs=0.04)  # a bootstrap is a little too narrow


def test_it_is_the_middle_of_what_scenes_drawn_again_give():
    """A slow twin: scene by scene, with its cases."""
    values, counts = [0.1, 0.5, 0.9, 0.7], [1, 10, 2, 4]
    rng = np.random.default_rng(1)
    means = []
    for _ in range(20_000):
        some = rng.integers(0, 4, 4)
        cases = np.repeat([values[i] for i in some], [counts[i] for i in some])
        means.append(cases.mean())
    wanted = np.quantile(means, [(1 - COVERED) / 2, (1 + COVERED) / 2])
    assert interval_of_mean(values, counts) == pytest.approx(wanted, abs=0.02)
    assert interval_of_mean(values) != pytest.approx(wanted, abs=0.02)


def test_the_statistic_is_told_how_often_each_scene_was_drawn():
    def largest(drawn):
        assert drawn.shape[1] == 3 and (drawn.sum(axis=1) == 3).all()
        return drawn.max(axis=1).astype(float)

    assert interval(largest, 3) == (1, 3)
