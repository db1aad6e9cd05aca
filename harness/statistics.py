"""Error bars: Student's t of the jackknife over scenes."""

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from scipy.special import stdtrit

COVERED = 0.95


def interval(
    value: float, without: Float[np.ndarray, " scenes"], least: float = 0, most: float = 1
) -> tuple[float, float] | None:
    """What covers the truth in 95 of 100 draws of as many scenes of the kind; None for one scene.

    The value, less and more t of n - 1 degrees times the jackknife's standard error (Tukey 1958;
    Efron and Tibshirani, An Introduction to the Bootstrap, 1993, eq. 11.5). For a mean it is
    Student's interval, which holds for few scenes, too, where that of a bootstrap is too narrow:
    the middle 95 % of one over three scenes cover 74 % if those are distributed normally.

    Args:
        value: over all scenes.
        without: the same, each scene left out once.
        least: where it ends, as nothing is less.
        most: nor more.
    """
    scenes = len(without)
    if scenes < 2:
        return None
    error = math.sqrt((scenes - 1) * np.var(without))
    reach = stdtrit(scenes - 1, (1 + COVERED) / 2) * error
    return max(float(value - reach), least), min(float(value + reach), most)


def interval_of_mean(
    values: Sequence[float],
    counts: Sequence[float] | None = None,
    least: float = 0,
    most: float = 1,
) -> tuple[float, float] | None:
    """The interval of the mean of scenes' values, each weighted by its count of cases, above 0."""
    count = np.ones(len(values)) if counts is None else np.asarray(counts, float)
    if len(values) < 2:
        return None
    sums, cases = count * values, count.sum()
    return interval(sums.sum() / cases, (sums.sum() - sums) / (cases - count), least, most)
