"""The 95 % confidence interval of FPR95 over 3-D points."""

import numpy as np
from jaxtyping import Bool, Float, Int

from harness.statistics import Interval, interval_of_rate

WINDOW = 0.01  # the ROC curve's slope is taken at least this far below and above 95 % recall

PointNumbers = Int[np.ndarray, " m"]


def interval_of_fpr95(
    rate: float,
    match: Bool[np.ndarray, " m"],
    distance: Float[np.ndarray, " m"],
    a: PointNumbers,
    b: PointNumbers,
) -> Interval | None:
    """95 % confidence interval over samples of such points; None if all pairs show one point.

    Pairs are not independent: a point is in many of them, as first or second patch. The threshold
    is itself estimated, from the matches. So FPR95 is linearised (Bahadur 1966). A non-match's
    influence is whether it is accepted; a match's influence is whether it is accepted, times minus
    the slope of the ROC curve at 95 % recall. The variance is the sum of the products of influences
    of any two pairs that share a point (Aronow, Samii and Assenova, Cluster-robust variance
    estimation for dyadic data, Political Analysis 23, 2015), but at least that of unrelated pairs.

    Args:
        rate: FPR95, or a variant of it.
        match: whether each pair is a match; both kinds must occur.
        distance: of each pair.
        a: the point of each pair's first patch.
        b: the point of each pair's second patch; for a match, the same point.
    """
    points = np.count_nonzero(np.bincount(np.append(a, b)))
    if points < 2:
        return None
    matched, others = np.sort(distance[match]), np.sort(distance[~match])
    threshold = matched[(19 * len(matched) - 1) // 20]  # the least that accepts 95 %
    accepted = (distance <= threshold).astype(float)
    share = np.where(match, accepted[match].mean(), accepted[~match].mean())
    weight = np.where(match, -_slope(matched, others) / len(matched), 1 / len(others))
    influence = (accepted - share) * weight
    return interval_of_rate(rate, _variance(influence, a, b), int(points))


def _slope(matched: Float[np.ndarray, " matches"], others: Float[np.ndarray, " others"]) -> float:
    """Slope of the false positive rate over recall, around 95 %; distances must ascend."""
    n = len(matched)
    window = max(WINDOW, n**-0.5)  # wide enough for some matches
    low, high = (int(np.clip(n * (0.95 + side), 1, n)) for side in (-window, window))
    accepted = np.searchsorted(others, matched[[low - 1, high - 1]], side="right")
    return float(np.diff(accepted)[0] / len(others) / (max(high - low, 1) / n))


def _variance(influence: Float[np.ndarray, " m"], a: PointNumbers, b: PointNumbers) -> float:
    """Variance of the sum of influences; two pairs that share a point are dependent."""
    apart = a != b
    end = 1 + int(max(a.max(), b.max()))
    point_sums = np.bincount(a, influence, end) + np.bincount(b[apart], influence[apart], end)
    low, high = np.sort(np.stack([a, b])[:, apart], axis=0)
    _, dyad = np.unique(low * end + high, return_inverse=True)
    pair_sums = np.bincount(dyad, influence[apart])  # counted twice above, at both points
    shared = np.square(point_sums).sum() - np.square(pair_sums).sum()
    return float(max(shared, np.square(influence).sum()))
