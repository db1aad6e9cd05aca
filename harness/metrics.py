"""Metrics of a ranking: pure functions, one definition each, never decided by row order.

`rank` sorts once and groups equal distances; every metric reads the groups. Where the definition
needs an order within a group (the trapezoid does), the value is the mean over all orders, in closed
form (McSherry & Najork 2008, for the step sum). So a constant distance scores what random distances
score on average.
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
"""Metric names, as the last part of a score's name; every other metric is higher-is-better."""

NO_QUANTITIES: Mapping[str, Quantity] = MappingProxyType({})

Ties = Literal["mean", "matches-first", "matches-last"]


def lower_is_better(score: str, quantities: Mapping[str, Quantity] = NO_QUANTITIES) -> bool:
    """Whether the smaller value of a score such as "liberty/fpr95" is the better one."""
    name = score.rpartition("/")[2]
    return quantities[name].lower_is_better if name in quantities else name in LOWER_IS_BETTER


@dataclass(frozen=True)
class Ranking:
    """Pairs from the nearest to the farthest, in groups of equal distance. Last axis: groups.

    Groups without a match may be left out, since `before` counts their pairs; a group with no
    match and no pair is padding.
    """

    hits: Float[np.ndarray, "*rankings groups"]  # matches in the group; a probability each
    size: Float[np.ndarray, "*rankings groups"]  # pairs in the group, matches included
    before: Float[np.ndarray, "*rankings groups"]  # pairs strictly nearer than the group
    matches: float | Float[np.ndarray, "*rankings"]  # all there are, also those not retrieved
    pairs: float | Float[np.ndarray, "*rankings"]  # all there are
    squared_hits: Float[np.ndarray, "*rankings groups"] | None = None  # sum of squared chances

    def with_ties(self, ties: Ties) -> "Ranking":
        """The ranking in which matches come first, or last, among pairs of equal distance."""
        if ties == "mean":
            return self
        others = self.size - self.hits if ties == "matches-last" else 0
        return replace(self, size=self.hits, before=self.before + others)


def rank(match: Bool[np.ndarray, " n"], distance: Float[np.ndarray, " n"]) -> Ranking:
    """Rank n pairs, of which `match` says whether they are matches, by distance.

    Raises:
        InputError: if no pair is a match, or a distance is not finite.
    """
    return rank_apart(distance[match], distance[~match])


def rank_apart(matched: Float[np.ndarray, " m"], unmatched: Float[np.ndarray, " k"]) -> Ranking:
    """Rank the distances of m matches among those of k pairs that are none.

    Raises:
        InputError: if there is no match, or a distance is not finite.
    """
    if not matched.size:
        raise InputError(f"no match among {unmatched.size} pairs: the metric is undefined")
    matched, unmatched = np.sort(matched), np.sort(unmatched)
    for distance in (matched, unmatched):  # sorted: what is not finite stands at an end
        if distance.size and not (np.isfinite(distance[0]) and np.isfinite(distance[-1])):
            bad = np.count_nonzero(~np.isfinite(distance))
            raise InputError(f"{bad} of {distance.size} distances are not finite")
    first = np.flatnonzero(np.diff(matched, prepend=-np.inf))
    value = matched[first]
    hits = np.diff(first, append=matched.size).astype(float)
    nearer = np.searchsorted(unmatched, value, side="left")
    tied = np.zeros_like(nearer)
    if unmatched.size:  # few groups hold a pair that is no match: look only there for its end
        at = np.flatnonzero(unmatched[np.minimum(nearer, unmatched.size - 1)] == value)
        at = at[nearer[at] < unmatched.size]
        tied[at] = np.searchsorted(unmatched, value[at], side="right") - nearer[at]
    total = float(matched.size + unmatched.size)
    return Ranking(hits, hits + tied, (first + nearer).astype(float), float(matched.size), total)


def rank_uncertain(
    chance: Float[np.ndarray, " n"], distance: Float[np.ndarray, " n"], matches: int
) -> Ranking:
    """Rank n pairs, each a match with a chance of its own, out of `matches` there are to find.

    Raises:
        InputError: if there is nothing to find, or a distance is not finite.
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
    """Many rankings at once, of m matches each, from counts of the other pairs.

    Args:
        matched: distances of the matches, ascending in each ranking.
        nearer: other pairs strictly nearer than this match.
        tied: other pairs at the distance of this match.
    """
    equal = matched[:, :, None] == matched[:, None, :]
    first = np.argmax(equal, axis=2) == np.arange(matched.shape[1])  # one group for equal ones
    hits = np.where(first, equal.sum(axis=2), 0).astype(float)
    place = np.argmax(equal, axis=2)
    size = np.where(first, hits + tied, 0)
    return Ranking(
        hits, size, np.where(first, place + nearer, 0.0), float(matched.shape[1]), np.nan
    )


def average_precision(ranking: Ranking) -> Float[np.ndarray, "*rankings"] | float:
    """Area under the precision-recall steps, not interpolated; ties share one threshold.

    In [0, 1]; a constant distance scores the share of matches. It is what `average_precision_score`
    of scikit-learn computes; it is neither the trapezoid of HPatches nor the mean over tie orders.

    Example:
        >>> ranking = rank(np.array([True, False, True]), np.array([0.1, 0.2, 0.3]))
        >>> round(float(average_precision(ranking)), 4)
        0.8333
    """
    found = np.cumsum(ranking.hits, axis=-1)
    precision = found / np.maximum(ranking.before + ranking.size, 1)
    return (ranking.hits * precision).sum(axis=-1) / ranking.matches


def step_average_precision(ranking: Ranking) -> Float[np.ndarray, "*rankings"] | float:
    """Area under the precision-recall steps, not interpolated: the mean over all orders of ties.

    In [0, 1]. Without ties it is what `average_precision` is; with ties that gives a group of them
    one threshold, and so a constant distance less than random ones score where matches are few.

    Raises:
        InputError: if matches are certain only to a chance (`squared_hits`): the order of such ties
            is not followed here.

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
            "the ranking has hits by chance (squared_hits); the step sum is of whole matches only"
        )
    hits, size, before = ranking.hits, ranking.size, ranking.before
    found = np.cumsum(hits, axis=-1) - hits
    last = int((before + size).max(initial=0))
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, last + 1))])
    # A match stands at place i = 1..size of its group equally often, and before it stand
    # (hits - 1) (i - 1) / (size - 1) others of the group on average.
    inverse = harmonic[(before + size).astype(np.intp)] - harmonic[before.astype(np.intp)]
    weighted = size - (before + 1) * inverse  # sum of (i - 1) / (before + i)
    others = np.maximum(hits - 1, 0) / np.maximum(size - 1, 1)
    gain = hits * ((found + 1) * inverse + others * weighted) / np.maximum(size, 1)
    return gain.sum(axis=-1) / ranking.matches


def trapezoid_average_precision(ranking: Ranking) -> Float[np.ndarray, "*rankings"] | float:
    """Area under the precision-recall trapezoids, a point after every pair, from (0, 1) on.

    The mean over all orders of pairs of equal distance. In [0, 1]. HPatches' "ap" (official Python
    code), VLFeat's `auc`; within about 1e-3 of the step sum.

    Example:
        >>> ranking = rank(np.array([True, False, True]), np.array([0.1, 0.2, 0.3]))
        >>> round(float(trapezoid_average_precision(ranking)), 4)  # 1/2 (1 + (1/2 + 2/3)/2)
        0.7917
    """
    hits, size, before = ranking.hits, ranking.size, ranking.before
    squared = hits if ranking.squared_hits is None else ranking.squared_hits
    found = np.cumsum(hits, axis=-1) - hits
    # A pair stands at place i = 1..size of its group equally often; another match of the group
    # stands before it with the same chance at each place. Sums over i are harmonic numbers:
    #   ahead = sum 1/(before + i - 1)    ahead_weighted = sum (i - 1)/(before + i - 1)
    #   upto  = sum 1/(before + i)        upto_weighted  = sum (i - 1)/(before + i)
    last = int((before + size).max(initial=0))
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, last + 2))])
    at = before.astype(np.intp)
    end = (before + size).astype(np.intp)
    upto = harmonic[end] - harmonic[at]
    upto_weighted = size - (before + 1) * upto
    ahead = harmonic[np.maximum(end - 1, 0)] - harmonic[np.maximum(at - 1, 0)]
    start = (before == 0) & (size > 0)  # the first point of all is (0, 1): precision 1, not 0/0
    ahead_weighted = np.where(start, size - 1, size - before * ahead)
    both = np.where(size > 1, np.square(hits) - squared, 0) / np.maximum(size - 1, 1)
    gain = np.where(start, hits, hits * found * ahead) + both * ahead_weighted
    gain += hits * (found + 1) * upto + both * upto_weighted
    return (gain / (2 * np.maximum(size, 1))).sum(axis=-1) / ranking.matches


def roc_auc(ranking: Ranking) -> Float[np.ndarray, "*rankings"] | float:
    """Chance that a match is nearer than a pair that is none; a tie counts half.

    In [0, 1]; a constant distance scores 1/2.

    Raises:
        InputError: if every pair is a match.

    Example:
        >>> float(roc_auc(rank(np.array([True, False, True]), np.array([0.1, 0.2, 0.3]))))
        0.5
    """
    others = _others(ranking)
    found = np.cumsum(ranking.hits, axis=-1) - ranking.hits
    nearer = ranking.before - found + (ranking.size - ranking.hits) / 2
    return 1 - (ranking.hits * nearer).sum(axis=-1) / (ranking.matches * others)


def roc_curve(
    ranking: Ranking,
) -> tuple[Float[np.ndarray, " corners"], Float[np.ndarray, " corners"]]:
    """Shares of non-matches and of matches accepted, at every corner of the curve.

    From (0, 0) to (1, 1), one ranking. Ties are accepted together: there the curve runs slantwise,
    so that the area under it is `roc_auc`.

    Raises:
        InputError: if every pair is a match.

    Example:
        >>> ranking = rank(np.array([True, False, True]), np.array([0.1, 0.2, 0.3]))
        >>> [share.tolist() for share in roc_curve(ranking)]
        [[0.0, 0.0, 0.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.5, 0.5, 1.0, 1.0]]
    """
    others = _others(ranking)
    found = np.cumsum(ranking.hits)
    before, upto = found - ranking.hits, ranking.before + ranking.size
    wrong = np.stack([ranking.before - before, upto - found], axis=1).ravel()
    right = np.stack([before, found], axis=1).ravel()
    return (
        np.concatenate([[0.0], wrong, [others]]) / others,
        np.concatenate([[0.0], right, [ranking.matches]]) / ranking.matches,
    )


def precision_recall_curve(
    ranking: Ranking,
) -> tuple[Float[np.ndarray, " groups"], Float[np.ndarray, " groups"]]:
    """Recall and precision at each threshold that accepts further matches, one ranking.

    Ties are accepted together. The area under its steps is `average_precision`.

    Example:
        >>> ranking = rank(np.array([True, False, True, True]), np.array([0.1, 0.2, 0.3, 0.3]))
        >>> recall, precision = precision_recall_curve(ranking)
        >>> precision.tolist()
        [1.0, 0.75]
    """
    found = np.cumsum(ranking.hits)
    return found / ranking.matches, found / np.maximum(ranking.before + ranking.size, 1)


def fpr_at_95(ranking: Ranking) -> float:
    """Share of non-matches accepted by the least threshold that accepts 95 % of matches.

    In [0, 1]; a constant distance scores 1. Ties are accepted together.

    Raises:
        InputError: if every pair is a match.

    Example:
        >>> fpr_at_95(rank(np.array([True, False, True, False]), np.array([0.1, 0.2, 0.3, 0.4])))
        0.5
    """
    others = _others(ranking)
    found = np.cumsum(ranking.hits)
    at = int(np.argmax(20 * found >= 19 * ranking.matches))  # integers: 0.95 n rounds either way
    return float(((ranking.before + ranking.size)[at] - found[at]) / others)


def _others(ranking: Ranking) -> float:
    others = float(ranking.pairs - ranking.matches)
    if not others > 0:
        raise InputError(f"all {ranking.pairs:g} pairs are matches: the metric is undefined")
    return others
