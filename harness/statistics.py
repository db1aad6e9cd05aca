"""Error bars: percentile bootstrap over scenes, seeded."""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float, Int

DRAWS = 2000
COVERED = 0.95


def interval(
    statistic: Callable[[Int[np.ndarray, "draws scenes"]], Float[np.ndarray, " draws"]],
    scenes: int,
) -> tuple[float, float] | None:
    """The middle 95 % of a statistic over scenes drawn with replacement; None for one scene.

    Args:
        statistic: how often each scene was drawn -> its value, for many draws at once.
        scenes: how many there are. Below about 10 the interval is too narrow: a bootstrap is.
    """
    if scenes < 2:
        return None
    rng = np.random.default_rng(0)
    drawn = rng.multinomial(scenes, np.full(scenes, 1 / scenes), size=DRAWS)
    tail = (1 - COVERED) / 2
    low, high = np.quantile(statistic(drawn), [tail, 1 - tail])
    return float(low), float(high)


def interval_of_mean(
    values: Sequence[float], counts: Sequence[float] | None = None
) -> tuple[float, float] | None:
    """The interval of the mean of scenes' values, each weighted by its count of cases."""
    value = np.asarray(values, float)
    count = np.ones_like(value) if counts is None else np.asarray(counts, float)
    return interval(lambda drawn: (drawn @ (value * count)) / (drawn @ count), len(value))
