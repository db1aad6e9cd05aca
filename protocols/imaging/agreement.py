"""Measures whether matching patches are more alike than other pairs of patches."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int, Shaped

Grey = Shaped[np.ndarray, "n height width"]  # grey values, of any type

CHANCE = 0.65
"""If `ahead` is below this value, matching patches are no more alike than other pairs.

Unrelated patches reach 0.38 to 0.61 with 100 pairs. The lowest values of true image pairs are 0.79
(HPatches, i_ajuntament 1-4, other light) and 0.88 (Oxford, boat 1-6, zoom).
"""


@dataclass(frozen=True)
class Agreement:
    """How alike the two patches of matching pairs are, against patches of different pairs."""

    pairs: int
    matching: float  # mean correlation of the pairs
    others: float  # mean correlation of patches of different pairs
    # Share of comparisons in which a patch is more like its own partner than like the partner of
    # another pair: 0.5 by chance, 1 at best; a tie counts half.
    ahead: float

    @property
    def by_chance(self) -> bool:
        """Whether matching patches are no more alike than other pairs."""
        return self.ahead < CHANCE

    def __str__(self) -> str:
        """The three numbers, as part of a sentence."""
        return (
            f"mean correlation {self.matching:.2f}, of patches that should differ"
            f" {self.others:.2f}; more alike than such patches in {self.ahead:.0%} of comparisons"
        )


def agreement(a: Grey, b: Grey) -> Agreement:
    """Compare each patch of `a` with its partner in `b` and with all other patches of `b`.

    Args:
        a: patches, two or more.
        b: the partners; b[i] should show the same as a[i].
    """
    x, y = _standardised(a), _standardised(b)
    all_pairs = x @ y.T
    matched = np.diagonal(all_pairs)
    n = len(matched)
    ahead = [
        np.count_nonzero(all_pairs < partner) + (np.count_nonzero(all_pairs == partner) - n) / 2
        for partner in (matched[:, None], matched[None])
    ]
    return Agreement(
        pairs=n,
        matching=float(matched.mean()),
        others=float((all_pairs.sum() - matched.sum()) / (n * (n - 1))),
        ahead=float(np.mean(ahead) / (n * (n - 1))),
    )


def correlation(a: Grey, b: Grey) -> Float64[np.ndarray, " n"]:
    """Normalised cross-correlation of each a with its b, in [-1, 1]; 0 where either is flat."""
    return (_standardised(a) * _standardised(b)).sum(axis=1)


def spread(n: int, most: int) -> Int[np.ndarray, " some"]:
    """At most `most` of the numbers below n, evenly spread."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.intp))


def _standardised(patches: Grey) -> Float64[np.ndarray, "n pixels"]:
    """Patches as vectors of mean 0 and length 1; a flat patch becomes zeros."""
    rows = patches.reshape(len(patches), -1).astype(np.float64)
    rows -= rows.mean(axis=1, keepdims=True)
    norm = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, norm, out=np.zeros_like(rows), where=norm > 0)
