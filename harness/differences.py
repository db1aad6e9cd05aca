"""Differences between two models over the same scenes, and between two recipes over seeds.

Scenes are the unit of all that is paired here: pairs of images and patches of one scene depend on
each other. tests/harness/test_differences.py measures the coverage of the intervals by simulation.
"""

import math
from collections.abc import Sequence
from itertools import product

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import expit, logit

from harness.statistics import FEWEST, Interval, students_t

ROUNDING = 1e-8  # standard deviations of differences below this are rounding
LISTED = 20  # scenes up to which all choices of signs are listed
STEPS = 2**17  # into which the sum of the sizes of more differences is divided
ORDERS = 100_000  # of seeds, up to which all are listed if scores are equal

Scores = Float[np.ndarray, " scenes"]


def interval_of_difference(a: Scores, b: Scores, *, fractions: bool = True) -> Interval | None:
    """95 % confidence interval of the mean of a less that of b; None for fewer than 3 scenes.

    Student's t of the differences scene by scene. Near 0 and 1 this is too short if the scores of
    one model scatter more than those of the other: for scores like those in results/, down to 90 %
    of intervals contain the truth. So the ends of an interval of fractions are also computed on the
    logit: at an end, each mean has moved by its share of the distance, on the logit of its score.
    The farther end counts. Then 93 to 97 % of intervals contain the truth. Fewer do

    - near 0 and 1, if two models have equal means and one scatters much more: 87 to 93 % from 3 to
      8 scenes for means of 0.99 and standard deviations of 0.004 and 0.014;
    - if the difference is made by one scene in six or eight: 75 to 93 % from 3 to 8 scenes, since
      the sample may not contain such a scene.

    Args:
        a: score of the first model on each scene.
        b: score of the second model on the same scenes.
        fractions: the scores lie in [0, 1]; False for counts and lengths.
    """
    if len(a) < FEWEST:
        return None
    low, high = (float(end.item()) for end in _ends(a[None], b[None], fractions))
    return low, high


def surely_above(
    scores: Float[np.ndarray, "models scenes"], *, fractions: bool = True
) -> Bool[np.ndarray, "models models"]:
    """Whether the interval of the mean of model i less that of model j lies above 0, at [i, j].

    NaN is a scene without a score; a pair of models is compared on the scenes of both. Each pair is
    tested alone: of 20 pairs of equal models, about one is told apart by chance.
    """
    above = np.zeros((len(scores), len(scores)), bool)
    kinds, kind = np.unique(~np.isnan(scores), axis=0, return_inverse=True)
    for first, second in product(range(len(kinds)), repeat=2):
        scenes = kinds[first] & kinds[second]
        if scenes.sum() >= FEWEST:
            i, j = (np.flatnonzero(kind.reshape(-1) == one) for one in (first, second))
            low, _ = _ends(scores[i][:, scenes], scores[j][:, scenes], fractions)
            above[np.ix_(i, j)] = low > 0
    return above


def _ends(
    a: Float[np.ndarray, "n scenes"], b: Float[np.ndarray, "m scenes"], fractions: bool
) -> tuple[Float[np.ndarray, "n m"], Float[np.ndarray, "n m"]]:
    """Lower and upper ends of the intervals between each model of `a` and each of `b`."""
    scenes = a.shape[1]
    mean_a, mean_b = a.mean(axis=1, keepdims=True), b.mean(axis=1)
    from_a, from_b = a - mean_a, b - mean_b[:, None]
    both = from_a @ from_b.T / (scenes - 1)
    # Covariance of the scores of a, and of b, with the differences; the variance of the differences
    # is the one less the other.
    with_a = (from_a**2).sum(axis=1, keepdims=True) / (scenes - 1) - both
    with_b = both - (from_b**2).sum(axis=1) / (scenes - 1)
    deviation = np.sqrt(np.maximum(with_a - with_b, ROUNDING**2))
    reach = students_t(scenes - 1) / math.sqrt(scenes) * deviation
    step, middle = reach / deviation**2, mean_a - mean_b
    low, high = middle - reach, middle + reach
    if fractions:
        low = np.minimum(low, _moved(mean_a, -step * with_a) - _moved(mean_b, -step * with_b))
        high = np.maximum(high, _moved(mean_a, step * with_a) - _moved(mean_b, step * with_b))
        low, high = np.maximum(low, -1), np.minimum(high, 1)
    return low, high


def _moved(
    mean: Float[np.ndarray, "..."], by: Float[np.ndarray, "n m"]
) -> Float[np.ndarray, "n m"]:
    """Means moved by small distances, on the logit, so that they stay in [0, 1]."""
    mean = np.clip(mean, 0, 1)  # scores may be out by rounding
    spread = np.broadcast_to(mean * (1 - mean), by.shape)
    # A mean of 0 or 1 is that of equal scores, which do not move.
    return expit(logit(mean) + np.divide(by, spread, out=np.zeros_like(by), where=spread > 0))


def sign_flip_p(differences: Scores) -> float:
    """Share of all choices of signs whose sum is as far from 0 as that of the differences, or more.

    The exact two-sided p-value of the hypothesis that each difference is as likely with the other
    sign (Fisher's randomisation test of pairs). Of n scenes it is at least 2 / 2**n. Of more than
    20 scenes it is rounded up a little: differences are rounded to 1/131072 of the sum of their
    sizes, and sums that may be equal before rounding count as equal.

    >>> sign_flip_p(np.array([0.1, 0.2, 0.3]))
    0.25
    """
    if len(differences) <= LISTED:
        sums = np.zeros(1)
        for difference in differences:
            sums = np.concatenate([sums - difference, sums + difference])
        return float(np.mean(np.abs(sums) >= abs(differences.sum()) - ROUNDING))
    sizes = np.abs(differences)
    steps = np.rint(sizes * (STEPS / max(sizes.sum(), ROUNDING))).astype(int)
    chance = np.ones(1)  # of each number of steps in the differences that are positive
    for step in steps:
        none = np.zeros(step)
        chance = (np.concatenate([chance, none]) + np.concatenate([none, chance])) / 2
    distance = np.abs(2 * np.arange(len(chance)) - steps.sum())
    found = abs((np.sign(differences) * steps).sum()) - len(steps)
    return min(1.0, float(chance[distance >= found].sum()))


def rank_sum(a: Sequence[float], b: Sequence[float]) -> tuple[float, float]:
    """U and p of Mann and Whitney's test (1947) that scores of recipe a are higher than those of b.

    U counts the pairs of seeds in which a is higher; equal scores count half. p is one-sided and
    exact: the probability that equal recipes give such a U, or a higher one. Only if scores are
    equal and the seeds have more than 100,000 orders, p is that of the normal approximation.

    >>> rank_sum([0.7, 0.8, 0.9], [0.5, 0.6, 0.75])
    (8.0, 0.1)
    """
    from scipy import stats  # slow to import

    method: object = "exact"  # which scipy offers for scores that all differ
    if len({*a, *b}) < len(a) + len(b):
        few = math.comb(len(a) + len(b), len(a)) <= ORDERS
        method = stats.PermutationMethod(n_resamples=ORDERS) if few else "asymptotic"
    found = stats.mannwhitneyu(a, b, alternative="greater", method=method)
    return float(found.statistic), float(found.pvalue)
