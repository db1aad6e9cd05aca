"""Metrics of a ranking: pure functions with one definition each, independent of row order.

`rank` sorts once and groups equal distances; every metric reads the groups. Some definitions need
an order within a group, such as the trapezoid. Their value is then the mean over all orders, in
closed form (McSherry & Najork 2008, for the step sum). So a constant distance scores the average of
random distances.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from harness.errors import InputError
from harness.types import Quantity

LOWER_IS_BETTER = frozenset({"fpr95"})
"""Metrics of which a lower value is better, by the last part of a score's name."""

NO_QUANTITIES: Mapping[str, Quantity] = MappingProxyType({})

Ties = Literal["mean", "matches-first", "matches-last"]


def lower_is_better(score: str, quantities: Mapping[str, Quantity] = NO_QUANTITIES) -> bool:
    """Whether a lower value of a score, such as "liberty/fpr95", is better."""
    name = score.rpartition("/")[2]
    return quantities[name].lower_is_better if name in quantities else name in LOWER_IS_BETTER


@dataclass(frozen=True)
class Ranking:
    """Pairs sorted by distance, in groups of equal distance along the last axis.

    Groups without a match may be left out, since `before` counts their pairs. A group without any
    pair is padding.
    """

    hits: Float[np.ndarray, "*rankings groups"]  # matches in the group, or their probabilities
    size: Float[np.ndarray, "*rankings groups"]  # pairs in the group, matches included
    before: Float[np.ndarray, "*rankings groups"]  # pairs strictly nearer than the group
    matches: float | Float[np.ndarray, "*rankings"]  # all matches, also those not retrieved
    pairs: float | Float[np.ndarray, "*rankings"]  # number of all pairs
    squared_hits: Float[np.ndarray, "*rankings groups"] | None = None  # squared probabilities

    def with_ties(self, ties: Ties) -> "Ranking":
        """The ranking with matches first, or last, among pairs of equal distance."""
        if ties == "mean":
            return self
        others = self.size - self.hits if ties == "matches-last" else 0
        return replace(self, size=self.hits, before=self.before + others)


def rank(match: Bool[np.ndarray, " n"], distance: Float[np.ndarray, " n"]) -> Ranking:
    """Rank n pairs by distance; `match` says which pairs are matches.

    Raises:
        InputError: if no pair is a match, or a distance is not finite.
    """
    return rank_apart(distance[match], distance[~match])


def rank_apart(matched: Float[np.ndarray, " m"], unmatched: Float[np.ndarray, " k"]) -> Ranking:
    """Rank pairs from the distances of m matches and of k non-matches.

    Raises:
        InputError: if there is no match, or a distance is not finite.
    """
    if not matched.size:
        raise InputError(f"no match among {unmatched.size} pairs: the metric is undefined")
    matched, unmatched = np.sort(matched), np.sort(unmatched)
    for distance in (matched, unmatched):  # sorted: a value that is not finite is at an end
        if distance.size and not (np.isfinite(distance[0]) and np.isfinite(distance[-1])):
            bad = np.count_nonzero(~np.isfinite(distance))
            raise InputError(f"{bad} of {distance.size} distances are not finite")
    first = np.flatnonzero(np.diff(matched, prepend=-np.inf))
    value = matched[first]
    hits = np.diff(first, append=matched.size).astype(float)
    nearer = np.searchsorted(unmatched, value, side="left")
    tied = np.zeros_like(nearer)
    if unmatched.size:  # few groups contain a non-match: only there search for the end of the tie
        at = np.flatnonzero(unmatched[np.minimum(nearer, unmatched.size - 1)] == value)
        at = at[nearer[at] < unmatched.size]
        tied[at] = np.searchsorted(unmatched, value[at], side="right") - nearer[at]
    total = float(matched.size + unmatched.size)
    return Ranking(hits, hits + tied, (first + nearer).astype(float), float(matched.size), total)


def rank_uncertain(
    chance: Float[np.ndarray, " n"], distance: Float[np.ndarray, " n"], matches: int
) -> Ranking:
    """Rank n pairs by distance; pair i is a match with probability chance[i].

    Args:
        chance: the probabilities.
        distance: the distances.
        matches: number of all matches, also those that are not among the n pairs.

    Raises:
        InputError: if `matches` is 0, or a distance is not finite.
    """
    if not matches > 0:
        raise InputError(f"no match among {distance.size} pairs: the metric is undefined")
    if not np.isfinite(distance).all():
        bad = np.count_nonzero(~np.isfinite(distance))
        raise InputError(f"{bad} of {distance.size} distances are not finite")
    order = np.argsort(distance)
    first = np.flatnonzero(np.diff(distance[order], prepend=-np.inf))
    hits, squared = (
        np.add.reduceat(x, first) if x.size else x
        for x in (chance[order], np.square(chance[order]))
    )
    size = np.diff(first, append=distance.size).astype(float)
    return Ranking(hits, size, first.astype(float), float(matches), float(distance.size), squared)


def rank_counted(
    matched: Float[np.ndarray, "rankings m"],
    nearer: Int[np.ndarray, "rankings m"],
    tied: Int[np.ndarray, "rankings m"],
) -> Ranking:
    """Many rankings of m matches each, from counts of their non-matches.

    Args:
        matched: distances of the matches, ascending in each ranking.
        nearer: number of non-matches strictly nearer than each match.
        tied: number of non-matches at the distance of each match.
    """
    equal = matched[:, :, None] == matched[:, None, :]
    first = np.argmax(equal, axis=2) == np.arange(matched.shape[1])  # equal distances are one group
    hits = np.where(first, equal.sum(axis=2), 0).astype(float)
    place = np.argmax(equal, axis=2)
    size = np.where(first, hits + tied, 0)
    return Ranking(
        hits, size, np.where(first, place + nearer, 0.0), float(matched.shape[1]), np.nan
    )


def average_precision(ranking: Ranking) -> Float[np.ndarray, "*rankings"] | float:
    """Area under the precision-recall steps, not interpolated; ties share one threshold.

    In [0, 1]; a constant distance scores the share of matches. It equals scikit-learn's
    `average_precision_score`. It is neither the trapezoid of HPatches nor the mean over tie orders.

    Example:
        >>> ranking = rank(np.array([True, False, True]), np.array([0.1, 0.2, 0.3]))
        >>> round(float(average_precision(ranking)), 4)
        0.8333
    """
    accepted = np.cumsum(ranking.hits, axis=-1)
    precision = accepted / np.maximum(ranking.before + ranking.size, 1)
    return (ranking.hits * precision).sum(axis=-1) / ranking.matches


def step_average_precision(ranking: Ranking) -> Float[np.ndarray, "*rankings"] | float:
    """Area under the precision-recall steps, not interpolated: the mean over all orders of ties.

    In [0, 1]. Without ties it equals `average_precision`. That gives a group of ties one threshold,
    and so, if matches are few, a constant distance scores less than random ones; here it does not.

    Raises:
        InputError: if matches have probabilities (`squared_hits`), which this sum does not support.

    Example:
        >>> ranking = rank(np.array([True, False, True]), np.array([0.1, 0.2, 0.3]))
        >>> round(float(step_average_precision(ranking)), 4)  # (1 + 2/3) / 2
        0.8333
        >>> ranking = rank(np.array([True, False]), np.array([0.1, 0.1]))
        >>> float(step_average_precision(ranking))  # (1 + 1/2) / 2
        0.75
    """
    if ranking.squared_hits is not None:
        raise InputError(
            "the ranking has uncertain matches (squared_hits); the step sum needs certain matches"
        )
    hits, size, before = ranking.hits, ranking.size, ranking.before
    earlier = np.cumsum(hits, axis=-1) - hits
    last = int((before + size).max(initial=0))
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, last + 1))])
    # A match is equally often at each place i = 1..size of its group. On average,
    # (hits - 1) (i - 1) / (size - 1) other matches of the group stand before it.
    inverse = harmonic[(before + size).astype(np.intp)] - harmonic[before.astype(np.intp)]
    weighted = size - (before + 1) * inverse  # sum of (i - 1) / (before + i)
    others = np.maximum(hits - 1, 0) / np.maximum(size - 1, 1)
    gain = hits * ((earlier + 1) * inverse + others * weighted) / np.maximum(size, 1)
    return gain.sum(axis=-1) / ranking.matches


def trapezoid_average_precision(ranking: Ranking) -> Float[np.ndarray, "*rankings"] | float:
    """Area under the precision-recall trapezoids, with a point after every pair, from (0, 1) on.

    The mean over all orders of pairs of equal distance. In [0, 1]. It is the "ap" of HPatches
    (official Python code) and the `auc` of VLFeat, within about 1e-3 of the step sum.

    Example:
        >>> ranking = rank(np.array([True, False, True]), np.array([0.1, 0.2, 0.3]))
        >>> round(float(trapezoid_average_precision(ranking)), 4)  # 1/2 (1 + (1/2 + 2/3)/2)
        0.7917
    """
    hits, size, before = ranking.hits, ranking.size, ranking.before
    squared = hits if ranking.squared_hits is None else ranking.squared_hits
    earlier = np.cumsum(hits, axis=-1) - hits
    # A pair is equally often at each place i = 1..size of its group, and another match of the group
    # is equally often at each other place. Sums over i are harmonic numbers:
    #   ahead = sum 1/(before + i - 1)    ahead_weighted = sum (i - 1)/(before + i - 1)
    #   upto  = sum 1/(before + i)        upto_weighted  = sum (i - 1)/(before + i)
    last = int((before + size).max(initial=0))
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, last + 2))])
    at = before.astype(np.intp)
    end = (before + size).astype(np.intp)
    upto = harmonic[end] - harmonic[at]
    upto_weighted = size - (before + 1) * upto
    ahead = harmonic[np.maximum(end - 1, 0)] - harmonic[np.maximum(at - 1, 0)]
    start = (before == 0) & (size > 0)  # the curve begins at (0, 1): precision 1, not 0/0
    ahead_weighted = np.where(start, size - 1, size - before * ahead)
    both = np.where(size > 1, np.square(hits) - squared, 0) / np.maximum(size - 1, 1)
    gain = np.where(start, hits, hits * earlier * ahead) + both * ahead_weighted
    gain += hits * (earlier + 1) * upto + both * upto_weighted
    return (gain / (2 * np.maximum(size, 1))).sum(axis=-1) / ranking.matches


def roc_auc(ranking: Ranking) -> Float[np.ndarray, "*rankings"] | float:
    """Probability that a match is nearer than a non-match; a tie counts half.

    In [0, 1]; a constant distance scores 1/2.

    Raises:
        InputError: if every pair is a match.

    Example:
        >>> float(roc_auc(rank(np.array([True, False, True]), np.array([0.1, 0.2, 0.3]))))
        0.5
    """
    others = _others(ranking)
    earlier = np.cumsum(ranking.hits, axis=-1) - ranking.hits
    nearer = ranking.before - earlier + (ranking.size - ranking.hits) / 2
    return 1 - (ranking.hits * nearer).sum(axis=-1) / (ranking.matches * others)


def roc_curve(
    ranking: Ranking,
) -> tuple[Float[np.ndarray, " corners"], Float[np.ndarray, " corners"]]:
    """Shares of accepted non-matches and of accepted matches at every corner of the curve.

    The curve of one ranking, from (0, 0) to (1, 1). Ties are accepted together: the curve is
    diagonal there, so that the area under it is `roc_auc`.

    Raises:
        InputError: if every pair is a match.

    Example:
        >>> ranking = rank(np.array([True, False, True]), np.array([0.1, 0.2, 0.3]))
        >>> [share.tolist() for share in roc_curve(ranking)]
        [[0.0, 0.0, 0.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.5, 0.5, 1.0, 1.0]]
    """
    others = _others(ranking)
    accepted = np.cumsum(ranking.hits)
    before, upto = accepted - ranking.hits, ranking.before + ranking.size
    wrong = np.stack([ranking.before - before, upto - accepted], axis=1).ravel()
    right = np.stack([before, accepted], axis=1).ravel()
    return (
        np.concatenate([[0.0], wrong, [others]]) / others,
        np.concatenate([[0.0], right, [ranking.matches]]) / ranking.matches,
    )


def precision_recall_curve(
    ranking: Ranking,
) -> tuple[Float[np.ndarray, " groups"], Float[np.ndarray, " groups"]]:
    """Recall and precision of one ranking at each threshold that accepts further matches.

    Ties are accepted together. The area under the steps is `average_precision`.

    Example:
        >>> ranking = rank(np.array([True, False, True, True]), np.array([0.1, 0.2, 0.3, 0.3]))
        >>> recall, precision = precision_recall_curve(ranking)
        >>> precision.tolist()
        [1.0, 0.75]
    """
    accepted = np.cumsum(ranking.hits)
    return accepted / ranking.matches, accepted / np.maximum(ranking.before + ranking.size, 1)


def fpr_at_95(ranking: Ranking) -> float:
    """Share of non-matches accepted by the smallest threshold that accepts 95 % of matches.

    In [0, 1]; a constant distance scores 1. Ties are accepted together.

    Raises:
        InputError: if every pair is a match.

    Example:
        >>> fpr_at_95(rank(np.array([True, False, True, False]), np.array([0.1, 0.2, 0.3, 0.4])))
        0.5
    """
    others = _others(ranking)
    accepted = np.cumsum(ranking.hits)
    at = int(np.argmax(20 * accepted >= 19 * ranking.matches))  # exact; 0.95 n is rounded
    return float(((ranking.before + ranking.size)[at] - accepted[at]) / others)


def _others(ranking: Ranking) -> float:
    others = float(ranking.pairs - ranking.matches)
    if not others > 0:
        raise InputError(f"all {ranking.pairs:g} pairs are matches: the metric is undefined")
    return others
