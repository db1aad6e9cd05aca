"""Draws classes of k patches of one point, and matching pairs from the classes.

If a point has fewer than k patches, the class is filled with its patches again, turned by random
angles. X.-Y. Zhang et al., AdaSample, section 5.2, mark methods that are trained like this by "*".
"""

import numpy as np

from harness.errors import InputError
from zoo.training.groups import Groups
from zoo.training.method import Sampler, Selection
from zoo.training.pairs import Points, random_points


def classes(
    groups: Groups, point: Points, k: int, turn: float, rng: np.random.Generator
) -> Selection:
    """k patches of each of these points, point after point.

    A point with more than k patches gives k random patches. A point with fewer gives some patches
    again, turned by random angles of up to `turn` degrees in either direction.
    """
    n = len(point)
    size = groups.size[point][:, None]
    place = np.arange(max(k, int(size.max())))
    shuffled = np.where(place < size, rng.random((n, len(place))), 1).argsort(axis=1)[:, :k]
    made = place[:k] >= size
    which = np.where(made, rng.integers(size, size=(n, k)), shuffled)
    degrees = np.where(made, rng.uniform(-turn, turn, (n, k)), 0).astype(np.float32)
    rows = groups.order[groups.start[point][:, None] + which]
    return Selection(rows.ravel(), np.repeat(point, k), degrees.ravel())


def any_pairs(selected: Selection, k: int, rng: np.random.Generator) -> Selection:
    """A random pair of patches of each class of k: anchors first, then positives."""
    n = len(selected) // k
    anchor = rng.integers(k, size=n)
    other = (anchor + rng.integers(1, k, size=n)) % k
    at = np.concatenate([np.arange(n) * k + anchor, np.arange(n) * k + other])
    assert selected.angle is not None
    return Selection(selected.rows[at], selected.point[at], selected.angle[at])


def random_pairs(
    groups: Groups,
    n: int,
    seed: int,
    *,
    k: int,
    turn: float,
    images: int | None = None,
    share: float = 0.5,
) -> Sampler:
    """The selection of a step: n different points, and a random pair of each point's class of k.

    Arguments and errors are those of `pairs.random_pairs`; `k` and `turn` are those of `classes`.
    """
    draw = random_points(groups, n, seed, images=images, share=share)

    def select(step: int) -> Selection:
        point, _, rng = draw(step)
        return any_pairs(classes(groups, point, k, turn, rng), k, rng)

    return select


def refuse_copies(k: int | None, turn: float) -> None:
    """Refuse classes in which a patch and its unchanged copy could be a random pair.

    Raises:
        InputError: if there are such classes; says which options to give.
    """
    if k is not None and k > 2 and not turn:
        raise InputError(
            "class_size is over 2 and turn is 0: then classes are filled with unchanged copies, and"
            " a patch and its copy could be a pair: give a turn, or class_size 2"
        )
