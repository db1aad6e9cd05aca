"""Draws batches of matching pairs of different points: anchors a0 .. a(n-1), then p0 .. p(n-1)."""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Float, Int

from harness.errors import InputError
from zoo.training.groups import Groups
from zoo.training.method import Sampler, Selection

Points = Int[np.ndarray, " n"]

STEP, EPOCH = 0xBA7C, 0xE90C  # mixed into seeds, so that each use has its own random numbers


def random_pairs(
    groups: Groups, n: int, seed: int, *, images: int | None = None, share: float = 0.5
) -> Sampler:
    """The selection of a step: n different points, and a random pair of patches of each.

    Args:
        groups: the training set.
        n: number of pairs.
        seed: decides all draws, together with the step.
        images: number of images that the share of the anchors comes from, drawn anew in each step;
            so many negatives are from the anchor's own image. Each drawn image gives an equal
            portion of the anchors; if it shows too few points, it gives them all, and further
            images give the rest. An image has as many chances to be drawn as it has portions, so
            points are drawn about as often as images show them. None: all anchors are from random
            images.
        share: share of the anchors that come from these images; their number is rounded.

    Raises:
        InputError: if there are too few points or images, or points without a pair.
    """
    draw = random_points(groups, n, seed, images=images, share=share)

    def select(step: int) -> Selection:
        point, first, rng = draw(step)
        return pairs_of(groups, point, rng, first)

    return select


Drawn = tuple[Points, Points | None, np.random.Generator]


def random_points(
    groups: Groups, n: int, seed: int, *, images: int | None = None, share: float = 0.5
) -> Callable[[int], Drawn]:
    """Draws for a step: n different points; their anchors, if `images` is given; and a generator.

    The generator is for further draws of the step. Arguments and errors: see `random_pairs`.
    """
    must_have_pairs(groups, n)
    if images is not None:
        return _from_few_images(groups, n, seed, images, round(share * n))

    def draw(step: int) -> Drawn:
        rng = np.random.default_rng([seed, step, STEP])
        return rng.choice(len(groups), n, replace=False), None, rng

    return draw


def pass_of_patches(groups: Groups, patches: int) -> int:
    """Number of full batches of this many patches in a training set."""
    return len(groups.order) // patches


def every_point(groups: Groups, n: int, seed: int) -> Sampler:
    """The selection of a step, where each epoch takes every point once, in a new random order.

    Each point gives a random pair of its patches. An epoch has only full batches, so up to n - 1
    points are left out of it.

    Args:
        groups: the training set.
        n: number of pairs.
        seed: decides all draws, together with the step.

    Raises:
        InputError: if there are too few points, or points without a pair.
    """
    must_have_pairs(groups, n)
    steps = len(groups) // n

    @lru_cache(maxsize=1)
    def order(epoch: int) -> Points:
        return np.random.default_rng([seed, epoch, EPOCH]).permutation(len(groups))

    def select(step: int) -> Selection:
        epoch, i = divmod(step, steps)
        point = order(epoch)[i * n : (i + 1) * n]
        return pairs_of(groups, point, np.random.default_rng([seed, step, STEP]))

    return select


def must_have_pairs(groups: Groups, n: int) -> None:
    """Refuse a training set that cannot give n pairs of different points.

    Raises:
        InputError: says which points have no pair, or how many points there are.
    """
    alone = np.flatnonzero(groups.size < 2)
    if alone.size:
        raise InputError(
            f"{alone.size} of {len(groups)} points have one patch, the first of them row"
            f" {groups.rows(alone[0])[0]} of the training set: they have no matching pair; leave"
            " them out"
        )
    if n > len(groups):
        raise InputError(
            f"a step needs {n} points, but the training set has {len(groups)}: ask for fewer (in"
            " most recipes --set method.pairs=...), or give more data"
        )


def pairs_of(
    groups: Groups, point: Points, rng: np.random.Generator, first: Points | None = None
) -> Selection:
    """A random pair of patches of each of these points.

    Args:
        groups: the training set.
        point: the point of each pair.
        rng: generator of the draws.
        first: number of the anchor among its point's patches, from 0; None draws it.
    """
    size = groups.size[point]
    first = rng.integers(size) if first is None else first
    second = rng.integers(size - 1)
    second += second >= first
    start = groups.start[point]
    rows = groups.order[np.concatenate([start + first, start + second])]
    return Selection(rows, np.tile(point, 2))


def other_points(
    taken: Int[np.ndarray, " taken"], groups: Groups, n: int, rng: np.random.Generator
) -> Points:
    """n different random points that are not among the taken ones."""
    drawn = rng.choice(len(groups), n + len(taken), replace=False)
    return drawn[~np.isin(drawn, taken)][:n]


def strangers(
    vectors: Float[torch.Tensor, "n dim"], random: torch.Generator
) -> Float[torch.Tensor, "n dim"]:
    """For each pair of a batch, the vector of another random pair: a negative without mining."""
    return vectors.roll(int(torch.randint(1, len(vectors), (), generator=random)), dims=0)


def _from_few_images(
    groups: Groups, n: int, seed: int, images: int, near: int
) -> Callable[[int], Drawn]:
    point_at = np.repeat(np.arange(len(groups)), groups.size)  # of places in groups.order
    number = np.unique(groups.image[groups.order], return_inverse=True)[1]
    parts = np.split(np.argsort(number, kind="stable"), np.cumsum(np.bincount(number))[:-1])
    if images > len(parts):
        raise InputError(
            f"anchors should come from {images} images, but the training set has {len(parts)}: ask"
            " for fewer (--set method.images=...), or leave this option out"
        )
    most = max(1, -(-near // images))
    portions = [-(-len(np.unique(point_at[part])) // most) for part in parts]
    turns = np.repeat(np.arange(len(parts)), portions)

    def draw(step: int) -> Drawn:
        rng = np.random.default_rng([seed, step, STEP])
        point, place = np.empty(0, np.int64), np.empty(0, np.int64)
        for image in rng.permutation(turns):  # enough: all portions together show all points
            places = rng.permutation(parts[image])
            shown, at = np.unique(point_at[places], return_index=True)
            new = rng.permutation(at[~np.isin(shown, point)])[: min(most, near - len(point))]
            point = np.concatenate([point, point_at[places[new]]])
            place = np.concatenate([place, places[new]])
            if len(point) == near:
                break
        point = np.concatenate([point, other_points(point, groups, n - near, rng)])
        first = rng.integers(groups.size[point])
        first[:near] = place - groups.start[point[:near]]
        return point, first, rng

    return draw
