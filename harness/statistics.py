"""95 % confidence intervals of scores that are fractions in [0, 1].

`interval` and `interval_of_mean` are for scores of scenes, `interval_of_rate` for a share of pairs,
`interval_over_parts` for the mean of scores that have intervals already. Their coverage is right
near 0 and 1 too, and their misses fall on both sides; tests/harness/test_statistics.py measures the
coverage by simulation.
"""

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from scipy.special import expit, logit, stdtrit

COVERED = 0.95
FEWEST = 3  # scenes: with two, Student's t is 12.7 and most intervals cover nearly all of [0, 1]
WIDEST = 0.75  # a wider interval has almost no information

Interval = tuple[float, float]


def interval(value: float, without: Float[np.ndarray, " scenes"]) -> Interval | None:
    """95 % confidence interval of a score over scenes, from its leave-one-scene-out values.

    Student's t of the jackknife's pseudo-values (Tukey 1958), computed on the logit of the score:
    the jackknife needs an unbounded scale on which the error depends little on the value (Miller,
    The jackknife - a review, Biometrika 61, 1974). On the plain scale, intervals of scores near 1
    are too short, and nearly always too high if they miss. For beta-distributed scores of scenes,
    93 to 96 % of intervals cover the truth, from 3 scenes on; 90 to 94 % if the mean is 0.99 and
    the standard deviation as large as 0.02. If one scene in eight is far worse than all others,
    86 to 94 % of intervals from 3 to 8 scenes do, since the sample may not contain such a scene.

    None if the scenes are too few for an interval: fewer than 3, or all but one of them score
    exactly 0 or exactly 1, or the interval would be wider than 0.75. The shares above count None
    as an interval that covers all values.

    Args:
        value: the score over all scenes.
        without: for each i, the score over all scenes but scene i.
    """
    scenes = len(without)
    if scenes < FEWEST or not 0 < value < 1 or not 0 < without.min() <= without.max() < 1:
        return None
    low, high = _students(np.array([value]), without).tolist()
    if high - low > WIDEST:
        return None
    return min(low, value), max(high, value)  # rounding, if all scenes are equal


def _students(
    value: Float[np.ndarray, "*many 1"], without: Float[np.ndarray, "*many scenes"]
) -> Float[np.ndarray, "*many 2"]:
    """Ends of the intervals of one or many scores, from the pseudo-values of their logits."""
    scenes = without.shape[-1]
    pseudo = scenes * logit(value) - (scenes - 1) * logit(without)
    middle = pseudo.mean(axis=-1)
    reach = students_t(scenes - 1) * pseudo.std(axis=-1, ddof=1) / math.sqrt(scenes)
    return expit(np.stack([middle - reach, middle + reach], axis=-1))


def interval_of_mean(
    values: Sequence[float], counts: Sequence[float] | None = None
) -> Interval | None:
    """95 % confidence interval of the mean of the scores of scenes; see `interval`.

    Args:
        values: the score of each scene.
        counts: the weight of each scene, above 0; None for equal weights.
    """
    if len(values) < FEWEST:
        return None
    count = np.ones(len(values)) if counts is None else np.asarray(counts, float)
    sums, total = count * values, count.sum()
    return interval(float(sums.sum() / total), (sums.sum() - sums) / (total - count))


def interval_of_rate(rate: float, variance: float, units: int) -> Interval:
    """95 % confidence interval of a share of cases that depend on each other.

    Wilson's score interval (1927) with the effective number of cases, rate (1 - rate) / variance,
    as in cluster surveys (Dean and Pagano, Evaluating confidence interval methods for binomial
    proportions in clustered surveys, J. Survey Statistics and Methodology 3, 2015). The variance is
    0 if the share is 0 or 1. Then the effective number of cases is the number of units, which is
    cautious: all cases of one unit count as one case.

    93 to 96 % of intervals contain the truth if 50 clusters or more have a case, and as many lack
    one; about 88 % if 5 clusters have a case.

    Args:
        rate: the share.
        variance: of the share, measured from clusters of cases.
        units: number of independent units that the cases come from, such as points or images;
            2 or more.
    """
    spread = rate * (1 - rate)  # variance of one case
    effective = spread / variance if spread > 0 < variance else units
    ratio = students_t(units - 1) ** 2 / effective
    middle = (rate + ratio / 2) / (1 + ratio)
    reach = math.sqrt(ratio * spread + ratio**2 / 4) / (1 + ratio)
    return max(min(middle - reach, rate), 0.0), min(max(middle + reach, rate), 1.0)


def interval_over_parts(
    values: Sequence[float], intervals: Sequence[Interval | None]
) -> Interval | None:
    """95 % confidence interval of the plain mean of independent scores with known intervals.

    The parts are fixed, not a sample of a larger set. The distances from values to lower ends are
    added in squares, and so are those to upper ends ("MOVER": Zou and Donner, Construction of
    confidence limits about effect measures, Statistics in Medicine 27, 2008). None if a part has no
    interval.
    """
    known = [ends for ends in intervals if ends is not None]
    if not known or len(known) < len(intervals):
        return None
    low, high = np.array(known).T
    mean = float(np.mean(values))
    below, above = (math.hypot(*(end - values)) / len(values) for end in (low, high))
    return max(mean - below, 0.0), min(mean + above, 1.0)


def students_t(degrees: int) -> float:
    """Half the width of a 95 % interval in standard errors, by Student's t."""
    return float(stdtrit(degrees, (1 + COVERED) / 2))
