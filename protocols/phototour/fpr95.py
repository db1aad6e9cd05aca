"""The two published variants of FPR95 that do not treat ties as `harness.metrics.fpr_at_95` does.

They exist to repeat published numbers. On distances that all differ, hardnet's is the harness's
own, and tian's lies at most one match's rank above it; on distances that often tie, as Hamming's,
the three differ by up to half a point of percent.
"""

import numpy as np
from jaxtyping import Bool, Float

from harness.errors import InputError
from harness.metrics import Ranking


def fpr_at_95_hardnet(match: Bool[np.ndarray, " n"], distance: Float[np.ndarray, " n"]) -> float:
    """Share of non-matches that sort before the match at which 95 % of matches are reached.

    HardNet's `ErrorRateAt95Recall` (A. Mishchuk et al., 2017), which most later papers took over.
    **Pairs of equal distance stay in the order that they are given in**, so it depends on the
    order of a list of pairs. The original sorts by NumPy's default, which leaves that order open,
    and first takes 1 / (1 / (d + 1e-8) + 1e-8) of the distance d, which rounding may tie.

    Raises:
        InputError: if there is no match, or nothing else.

    Example:
        >>> same = np.ones(4)
        >>> fpr_at_95_hardnet(np.array([True, False, False, True]), same)
        1.0
        >>> fpr_at_95_hardnet(np.array([True, True, False, False]), same)
        0.0
    """
    if match.all() or not match.any():
        raise InputError(f"{np.count_nonzero(match)} matches among {match.size} pairs: undefined")
    if not np.isfinite(distance).all():
        raise InputError(f"{np.count_nonzero(~np.isfinite(distance))} distances are not finite")
    ordered = match[np.argsort(distance, kind="stable")]
    at = int(np.argmax(20 * np.cumsum(ordered) >= 19 * np.count_nonzero(ordered)))
    return float(np.count_nonzero(~ordered[:at]) / np.count_nonzero(~ordered))


def fpr_at_95_tian(ranking: Ranking) -> float:
    """Share of non-matches no farther than match number ceil(0.95 n) + 1 of n, ascending.

    Y. Tian's `cal_fpr95` (HyNet, 2020) and the evaluation of TFeat. Ties are accepted together.

    Raises:
        InputError: if there are fewer than 20 matches: number ceil(0.95 n) + 1 doesn't exist; or
            if every pair is a match.

    Example:
        >>> from harness.metrics import rank
        >>> match = np.arange(22) < 20
        >>> fpr_at_95_tian(rank(match, np.r_[np.arange(20.0), 18.5, 19.5]))  # up to the 20th match
        0.5
    """
    if ranking.matches < 20:
        raise InputError(f"{ranking.matches:g} matches: tian's FPR95 needs 20 or more")
    if not ranking.pairs > ranking.matches:
        raise InputError(f"all {ranking.pairs:g} pairs are matches: undefined")
    wanted = -(-19 * int(ranking.matches) // 20) + 1
    found = np.cumsum(ranking.hits)
    at = int(np.argmax(found >= wanted))
    accepted = (ranking.before + ranking.size)[at] - found[at]
    return float(accepted) / float(ranking.pairs - ranking.matches)
