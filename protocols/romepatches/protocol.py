"""RomePatches retrieval: find a point's nine other patches among 9,000 (Paulin et al., ICCV 2015).

Each of 1,000 queries ranks the 9,000 database patches of its half by distance, and average
precision is averaged over queries. Both halves are reported, as in papers; the headline is of the
test half. If distances are equal, the score is the mean over all orders. These rules were read from
a third party's port, because the official script was not available.

Not verified: the official average precision may be the trapezoid from (0, 1) or the step sum
(`--set ap=step`). The port has the trapezoid, so it is the default here. The two differ by some
thousandths at most.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from jaxtyping import Float

from harness import Descriptions, Parts, Protocol, Scores, parallel
from harness.distances import count_below
from harness.metrics import (
    Ranking,
    rank_counted,
    step_average_precision,
    trapezoid_average_precision,
)
from harness.statistics import interval_of_mean
from harness.types import Rows
from protocols.headlines import HEADLINES
from protocols.naming import unusual
from protocols.romepatches.reader import Half, open_set

VERSION = 3  # raised whenever a number could change
ROWS = 128  # queries at a time: their distances to 9,000 patches take 4.4 MiB

Precision = Callable[[Ranking], Float[np.ndarray, " q"] | float]
AP: dict[str, Precision] = {
    "trapezoid": trapezoid_average_precision,
    "step": step_average_precision,
}


def romepatches(
    *, data: Path | None = None, ap: Literal["trapezoid", "step"] = "trapezoid"
) -> Protocol:
    """Mean over queries of average precision: `{train,test}/map`.

    Args:
        data: folder of the official files; None: the sample.
        ap: area under the precision-recall curve: "trapezoid", starting at (0, 1), or "step", the
            step sum.
    """
    opened = open_set(data)

    halves = {half.name: half for half in opened.halves}

    def score(described: Descriptions, names: Sequence[str]) -> Scores:
        return _score([halves[name] for name in names], described, AP[ap])

    def rows(name: str) -> Rows:
        return np.concatenate([halves[name].query, halves[name].database])

    return Protocol(
        "romepatches",
        VERSION,
        opened.dataset,
        lambda described: score(described, tuple(halves)),
        headline=HEADLINES["romepatches"],
        options=unusual({"ap": "trapezoid"}, ap=ap),
        # No score follows from the two halves together.
        parts=Parts(tuple(halves), rows, score, lambda scored: Scores({})),
    )


def _score(halves: Sequence[Half], described: Descriptions, precision: Precision) -> Scores:
    values, intervals = {}, {}
    for half in halves:

        def some(rows: slice, half: Half = half) -> Float[np.ndarray, " q"]:
            return np.asarray(precision(_ranking(half, rows, described)))

        parts = [slice(i, i + ROWS) for i in range(0, len(half.query), ROWS)]
        each = np.concatenate(parallel.each(some, parts))
        name = f"{half.name}/map"
        values[name] = float(each.mean())
        # The interval is over queries, because their images are not known.
        bounds = interval_of_mean(each.tolist())
        if bounds:
            intervals[name] = bounds
    return Scores(values, intervals=intervals)


def _ranking(half: Half, rows: slice, described: Descriptions) -> Ranking:
    """Ranking of the database by some of the queries."""
    query, vectors = half.query[rows], described.vectors
    matched = described.paired(query, half.database[half.positive[rows]].T)
    matched = np.sort(matched.T, axis=1)
    nearer, upto = described.distance.count_nearer(
        vectors[query], vectors[half.database], matched
    )  # positives are among them
    nearer -= count_below(matched, matched, "left")
    upto -= count_below(matched, matched, "right")
    return rank_counted(matched, nearer, upto - nearer)
