"""DOAP's figure 8: clusters of label mining, and which of them are distractors of each other."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from zoo import doap_mining
from zoo.papers import patches_of
from zoo.training.patches import stored

CLUSTERS = 5  # shown of a sequence
PATCHES = 8  # shown of a cluster
SIDE = 32  # of a shown patch


def clusters(trained: Path | None, data: Sequence[Path], *, sequences: int) -> dict[str, Any]:
    """Random clusters of random sequences; the value is the share of pairs that are distractors.

    Args:
        trained: not used.
        data: training data; a block of a sequence is called SEQUENCE/STRIP.
        sequences: most sequences.
    """
    dataset = patches_of.opened(data)
    names = np.array([block.name.partition("/")[0] for block in dataset.blocks])
    of_row = np.repeat(names, [block.size for block in dataset.blocks])
    known = list(dict.fromkeys(names.tolist()))
    rng = np.random.default_rng(0)
    chosen = [known[i] for i in sorted(rng.permutation(len(known))[:sequences].tolist())]
    large, small = stored(dataset, doap_mining.SIDE), stored(dataset, SIDE)
    strips, shares = [], []
    for name in chosen:
        rows = np.flatnonzero(of_row == name)
        cluster, far = doap_mining.clusters(doap_mining.appearance(large[rows]))
        shares.append(float(far[np.triu_indices(len(far), 1)].mean()))
        some = sorted(rng.permutation(len(far))[:CLUSTERS].tolist())
        for one in some:
            own = rows[cluster == one][:PATCHES]
            joined = [f"{name}, cluster {other}" for other in some if far[one, other]]
            shown = {"label": f"{name}, cluster {one}", "side": SIDE}
            strips.append({**shown, "patches": patches_of.as_text(small[own]), "links": joined})
    return {"value": float(np.mean(shares)), "strips": strips}
