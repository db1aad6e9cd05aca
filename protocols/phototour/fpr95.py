"""The two published variants of FPR95 that treat ties unlike `harness.metrics.fpr_at_95`.

They exist to reproduce published numbers. If all distances differ, hardnet's variant equals the
harness's FPR95, and tian's accepts at most one more match. On distances that often tie, like
Hamming's, the three differ by up to half a percentage point.
"""

import numpy as np
from jaxtyping import Bool, Float

from harness.errors import InputError
from harness.metrics import Ranking


def fpr_at_95_hardnet(match: Bool[np.ndarray, " n"], distance: Float[np.ndarray, " n"]) -> float:
    """Share of non-matches that are sorted before the match that completes 95 % of the matches.

    HardNet's `ErrorRateAt95Recall` (A. Mishchuk et al., 2017), which most later papers use. **Pairs
    of equal distance stay in the given order**, so the result depends on the order of the pairs.
    The original uses NumPy's default sort, which does not define the order of ties; and it first
    maps a distance d to 1 / (1 / (d + 1e-8) + 1e-8), where rounding may create ties.

    Raises:
        InputError: if there is no match, or no non-match.

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
    """Share of non-matches no farther than match number ceil(0.95 n) + 1 of n, in ascending order.

    Y. Tian's `cal_fpr95` (HyNet, 2020), also in TFeat's evaluation. Ties are accepted together.

    Raises:
        InputError: if there are fewer than 20 matches, so that match number ceil(0.95 n) + 1 does
            not exist; or if every pair is a match.

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
    matches = np.cumsum(ranking.hits)
    at = int(np.argmax(matches >= wanted))
    accepted = (ranking.before + ranking.size)[at] - matches[at]
    return float(accepted) / float(ranking.pairs - ranking.matches)
