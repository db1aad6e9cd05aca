"""Ranks of models on a board: models that can't be told apart share ranks."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool

from harness.differences import surely_above
from harness.metrics import lower_is_better
from harness.records.record import Record
from harness.records.scenes import is_quantity, scene_scores
from harness.statistics import FEWEST

NOTE = (
    "rank, by {headline}: the possible places of a model. First number: 1 + the number of models"
    " that are surely better. Second number: the number of models that are not surely worse."
    " Surely: the 95 % interval of the paired difference over scenes does not contain 0"
    " (`harness compare`)."
)


def ranks(records: Sequence[Record | None]) -> list[str]:
    """The rank of each record among all, as "2" or "1-3"; "" where there is none.

    A rank begins with 1 + the number of models that are surely better, and ends with the number of
    models less those that are surely worse. Records without a test (`surely_better`) have no rank
    and do not count.

    Args:
        records: of one protocol with one set of options; None has no rank.
    """
    places, better = surely_better(records)
    found = [""] * len(records)
    first, last = 1 + better.sum(axis=0), len(places) - better.sum(axis=1)
    for i, ends in zip(places, zip(first.tolist(), last.tolist(), strict=True), strict=True):
        found[i] = "-".join(map(str, dict.fromkeys(ends)))
    return found


def surely_better(
    records: Sequence[Record | None],
) -> tuple[list[int], Bool[np.ndarray, "tested tested"]]:
    """The places of the records that can be tested, and whether the first is surely better, [i, j].

    A model is surely better if the 95 % interval of the mean difference over scenes lies on its
    side of 0 (`differences.interval_of_difference`). Records with scores of fewer than 3 scenes
    can't be tested, nor can a single record.

    Args:
        records: of one protocol with one set of options; None can't be tested.
    """
    known = {i: scene_scores(one) for i, one in enumerate(records) if one is not None}
    known = {i: scores for i, scores in known.items() if len(scores) >= FEWEST}
    if len(known) < 2:
        return [], np.zeros((0, 0), bool)
    one = next(record for i, record in enumerate(records) if record is not None and i in known)
    names = sorted({name for scores in known.values() for name in scores})
    table = np.array([[own.get(name, np.nan) for name in names] for own in known.values()])
    better = surely_above(table, fractions=not is_quantity(one))
    lower = lower_is_better(one.protocol.headline, one.protocol.quantities)
    return [*known], better.T if lower else better
