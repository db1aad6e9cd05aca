"""Wrong labels: some patches of the training set are given to a wrong point.

M. Keller, Z. Chen, F. Maffra, P. Schmuck, M. Chli, Learning deep descriptors with scale-aware
triplet networks, CVPR 2018, section 4.3: "wrong labels" for five per cent of all patches. The paper
does not say how they are drawn. Here, the labels of the chosen patches are dealt out among them, so
each point keeps its number of patches, and no method has to leave out a point.
"""

import numpy as np
from jaxtyping import Int

from harness.errors import InputError

WRONG = 0x3701  # mixed into the seed, so that these draws have their own random numbers


def with_wrong_labels(
    point: Int[np.ndarray, " all"], rows: Int[np.ndarray, " rows"], share: float, seed: int
) -> Int[np.ndarray, " all"]:
    """The point of each row, of which a share of some rows is wrong; other rows do not change.

    Exactly round(share * len(rows)) rows get a wrong label. They are drawn without replacement, and
    each gets the label of another of them, of another point.

    Args:
        point: the true point of each row of the training set.
        rows: the rows to train on, from which the wrong ones are drawn.
        share: in [0, 1).
        seed: decides all draws.

    Raises:
        InputError: if half of the chosen rows or more show one point, so that not all can be wrong.
    """
    k = round(share * len(rows))
    if not k:
        return point
    rng = np.random.default_rng([seed, WRONG])
    chosen = rng.choice(rows, k, replace=False)
    true = point[chosen]
    most = int(np.unique(true, return_counts=True)[1].max())
    if 2 * most > k:
        raise InputError(
            f"wrong_labels={share:g} chooses {k} of {len(rows)} patches, and {most} of them show"
            " one point: they can't all get the label of another point; choose another share, or"
            " give more data"
        )
    given = rng.permutation(true)
    while len(right := np.flatnonzero(given == true)):
        for i, j in zip(right, rng.integers(k, size=len(right)), strict=True):
            # After such a swap, both labels are wrong; some draw allows it, since 2 most <= k.
            if given[j] != true[i] and given[i] != true[j]:
                given[i], given[j] = given[j], given[i]
    changed = point.copy()
    changed[chosen] = given
    return changed
