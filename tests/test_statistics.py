from functools import partial

import numpy as np
import pytest
from scipy import stats

from harness import statistics
from harness.statistics import COVERED

interval = partial(statistics.interval, least=0, most=1)
interval_of_mean = partial(statistics.interval_of_mean, least=0, most=1)


def test_one_scene_has_no_interval():
    assert interval_of_mean([0.5]) is None
    assert interval_of_mean([]) is None
    assert interval_of_mean([0.5, 0.5]) == (0.5, 0.5)


@pytest.mark.parametrize("scenes", [2, 3, 6, 8, 40])
def test_that_of_a_mean_is_students(scenes):
    values = np.random.default_rng(scenes).normal(0.5, 0.005, scenes)
    wanted = stats.ttest_1samp(values, 0).confidence_interval(COVERED)
    assert interval_of_mean(values.tolist()) == pytest.approx(tuple(wanted), rel=1e-12)


@pytest.mark.parametrize(
    ("scenes", "of_20", "covers"),
    [*((n, 14, COVERED) for n in (3, 6, 40)), (3, 19, 0.89), (6, 19, 0.90), (40, 19, 0.94)],
)
def test_it_covers_the_truth_about_as_often_as_it_says(scenes, of_20, covers):
    """Scores of scenes by a beta distribution; under 1, where they crowd, less often."""
    rng = np.random.default_rng(0)
    bounds = np.array(
        [interval_of_mean(rng.beta(of_20, 20 - of_20, scenes).tolist()) for _ in range(3000)]
    )
    covered = (bounds[:, 0] <= of_20 / 20) & (of_20 / 20 <= bounds[:, 1])
    assert covered.mean() == pytest.approx(covers, abs=0.015)


def test_it_covers_the_mean_over_cases_when_scenes_have_more_of_them_or_fewer():
    """Here scenes of many cases score less: the truth is the mean over cases, not over scenes."""
    rng = np.random.default_rng(0)
    covered = plain = 0
    for _ in range(2000):
        large = rng.integers(0, 2, 12)
        values, counts = rng.normal(0.7 - 0.3 * large, 0.05), 1.0 + 2 * large
        low, high = interval_of_mean(values.tolist(), counts.tolist())
        covered += low <= 0.475 <= high
        low, high = interval_of_mean(values.tolist())
        plain += low <= 0.475 <= high
    assert covered / 2000 == pytest.approx(COVERED, abs=0.03)
    assert plain / 2000 < 0.8


def test_each_scene_is_left_out_once():
    """A slow twin: scene by scene, with its cases."""
    values, counts = [0.1, 0.5, 0.9, 0.7], [1, 10, 2, 4]
    cases = [np.repeat(value, count) for value, count in zip(values, counts, strict=True)]
    value = np.concatenate(cases).mean()
    without = [np.concatenate(cases[:i] + cases[i + 1 :]).mean() for i in range(4)]
    error = np.sqrt(3 / 4 * np.square(without - np.mean(without)).sum())
    reach = stats.t.ppf(0.975, 3) * error
    assert interval_of_mean(values, counts) == pytest.approx((value - reach, value + reach))
    assert interval(value, np.array(without)) == pytest.approx((value - reach, value + reach))


def test_it_ends_where_values_end():
    assert interval_of_mean([0.0, 0.2, 0.9])[0] == 0
    assert interval_of_mean([0.8, 1.0, 1.0])[1] == 1
    assert statistics.interval_of_mean([-0.9, 0.9], least=-1, most=1) == (-1, 1)
