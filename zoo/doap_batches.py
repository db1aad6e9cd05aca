"""DOAP's batches: a batch has all patches of its points (section 5.5, appendices C.2 and D)."""

import numpy as np
from jaxtyping import Int
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from harness.errors import InputError
from zoo.training.groups import Groups
from zoo.training.method import Sampler, Selection
from zoo.training.pairs import must_have_pairs, random_points

DRAW, SEQUENCES = 0xD0A9, 0xD0AB  # mixed into seeds, so that each use has its own random numbers


def whole_groups(
    groups: Groups,
    patches: int,
    seed: int,
    *,
    in_turn: bool = False,
    images: int | None = None,
    share: float = 0.5,
) -> Sampler:
    """The selection of a step: random points with all their patches, as many as fit into a batch.

    Args:
        groups: the training set.
        patches: M, most patches in a batch; a batch lacks fewer patches than the largest point has.
        seed: decides all draws, together with the step.
        in_turn: whether step k takes point k first, through all points again and again.
        images: number of images that show about the share of the patches, drawn as in
            `pairs.random_pairs`; None: points of any image.
        share: share of the patches.

    Raises:
        InputError: if the training set has too few patches or images, or if a point has more
            patches than a batch, or only one.
    """
    _check(groups, patches)
    if patches > len(groups.order):
        raise InputError(
            f"a batch needs {patches} patches, but the training set has {len(groups.order)}: ask"
            " for fewer (--set method.patches=...), or give more data"
        )
    most = min(len(groups), patches // int(groups.size.min()) + 1)
    near = share * min(1.0, patches / float(groups.size.mean()) / most)
    few = images and random_points(groups, most, seed, images=images, share=near)

    def select(step: int) -> Selection:
        if few:
            drawn = few(step)[0]
        else:
            rng = np.random.default_rng([seed, step, DRAW])
            drawn = rng.choice(len(groups), most, replace=False)
        if in_turn:
            first = step % len(groups)
            drawn = np.concatenate([[first], drawn[drawn != first]])
        return _of(groups, drawn[groups.size[drawn].cumsum() <= patches])

    return select


def two_sequences(groups: Groups, patches: int, seed: int) -> Sampler:
    """The selection of a step: equally many points of two sequences.

    An epoch takes each pair of sequences once.

    Args:
        groups: the training set.
        patches: M, patches in a batch if all points have as many as the largest; otherwise fewer.
        seed: decides all draws, together with the step.

    Raises:
        InputError: if there is only one sequence, or a sequence has too few points.
    """
    _check(groups, patches)
    each = patches // (2 * int(groups.size.max()))
    sequence = sequences(groups)
    count = int(sequence.max()) + 1
    members = [np.flatnonzero(sequence == i) for i in range(count)]
    fewest = min(members, key=len)
    if count < 2 or not 1 <= each <= len(fewest):
        raise InputError(
            f"a batch of {patches} patches needs {each} points of each of two sequences, but the"
            f" training set has {count} of them, the smallest with {len(fewest)} points (row"
            f" {groups.rows(fewest[0])[0]} shows one): ask for other batches (--set"
            " method.patches=...), or give other data"
        )
    first, second = np.triu_indices(count, 1)

    def select(step: int) -> Selection:
        epoch, k = divmod(step, len(first))
        pair = np.random.default_rng([seed, epoch, SEQUENCES]).permutation(len(first))[k]
        rng = np.random.default_rng([seed, step, DRAW])
        return _of(
            groups,
            np.concatenate(
                [rng.choice(members[i], each, replace=False) for i in (first[pair], second[pair])]
            ),
        )

    return select


def sequences(groups: Groups) -> Int[np.ndarray, " points"]:
    """Sequence number of each point; images that share a point belong to one sequence."""
    point = np.repeat(np.arange(len(groups)), groups.size)
    _, image = np.unique(groups.image[groups.order], return_inverse=True)
    nodes = len(groups) + int(image.max()) + 1
    edges = (np.ones(len(point)), (point, len(groups) + image))
    _, number = connected_components(sparse.coo_array(edges, (nodes, nodes)))
    return np.unique(number[: len(groups)], return_inverse=True)[1]


def _check(groups: Groups, patches: int) -> None:
    must_have_pairs(groups, 1)
    largest = int(groups.size.argmax())
    if groups.size[largest] > patches:
        raise InputError(
            f"a batch has {patches} patches, but one point has {groups.size[largest]} (row"
            f" {groups.rows(largest)[0]} shows it), and all patches of a point go into one batch:"
            " ask for larger batches (--set method.patches=...)"
        )


def _of(groups: Groups, point: Int[np.ndarray, " points"]) -> Selection:
    rows = np.concatenate([groups.rows(p) for p in point])
    return Selection(rows, np.repeat(point, groups.size[point]))
