"""Finds images that look alike, from the vectors of any descriptor: one global vector an image.

The global vector is VLAD (Jégou et al., CVPR 2010): for each word of a small vocabulary, the sum of
the differences of its local vectors from the word. Each sum is normalised, then the whole
(Arandjelović & Zisserman, All about VLAD, CVPR 2013). The vocabulary is learned from a sample of
the images' own vectors.

COLMAP's vocabulary tree does not serve here: pycolmap builds one only for vectors of 128 or 256
numbers, and its search reads the vectors from the database, as bytes of COLMAP's own extractors.
"""

import warnings
from collections.abc import Callable

import numpy as np
from jaxtyping import Float32, Float64
from threadpoolctl import threadpool_limits

from harness.distances import Distance
from protocols.eth.matching import numbers_of
from protocols.eth.pair_lists import sequential

Numbers = Float32[np.ndarray, "n dim"]

WORDS = 64
SAMPLE = 20_000  # vectors that the vocabulary is learned from
ITERATIONS = 20
SEED = 0


def alike(
    count: int,
    vectors: Callable[[int], np.ndarray],
    distance: Distance,
    neighbours: int,
) -> list[tuple[int, int]]:
    """Pairs of each image with the images that are most alike, the smaller number first, in order.

    Args:
        count: number of images.
        vectors: gives the vectors of an image; images without vectors are in no pair.
        distance: of the vectors.
        neighbours: images that are found for each image.
    """
    with threadpool_limits(1, user_api="blas"):  # more threads round otherwise
        return _alike(count, vectors, distance, neighbours)


def _alike(
    count: int, vectors: Callable[[int], np.ndarray], distance: Distance, neighbours: int
) -> list[tuple[int, int]]:
    most = -(-SAMPLE // max(count, 1))
    sample = [_thinned(numbers_of(vectors(row), distance), most) for row in range(count)]
    learned = np.concatenate(sample)
    if len(learned) < WORDS:  # nothing to compare
        return sequential(count, neighbours)
    words = _vocabulary(learned)
    whole = np.stack([vlad(numbers_of(vectors(row), distance), words) for row in range(count)])
    similarity = whole @ whole.T
    np.fill_diagonal(similarity, -np.inf)
    empty = ~whole.any(axis=1)
    similarity[empty] = similarity[:, empty] = -np.inf
    order = np.argsort(-similarity, axis=1, kind="stable")[:, :neighbours]
    found = {
        (min(a, b), max(a, b))
        for a, row in enumerate(order.tolist())
        for b in row
        if similarity[a, b] > -np.inf
    }
    return sorted(found)


def vlad(numbers: Numbers, words: Float64[np.ndarray, "words dim"]) -> Float64[np.ndarray, " _"]:
    """The global vector of an image's vectors, of length 1; zeros if there are none."""
    sums = np.zeros_like(words)
    if len(numbers):
        nearest = _nearest(numbers, words)
        np.add.at(sums, nearest, numbers - words[nearest])
    sums = _unit(sums)
    return _unit(sums.reshape(1, -1))[0]


def _thinned(numbers: Numbers, most: int) -> Numbers:
    return numbers[:: -(-len(numbers) // most) or 1]


def _vocabulary(learned: Numbers) -> Float64[np.ndarray, "words dim"]:
    from scipy.cluster.vq import kmeans2

    rng = np.random.default_rng(SEED)
    with warnings.catch_warnings(category=UserWarning, action="ignore"):  # of words without vectors
        words, _ = kmeans2(learned.astype(np.float64), WORDS, iter=ITERATIONS, minit="++", rng=rng)
    return np.asarray(words)


def _nearest(numbers: Numbers, words: Float64[np.ndarray, "words dim"]) -> np.ndarray:
    squares = (words**2).sum(axis=1) - 2 * numbers.astype(np.float64) @ words.T
    return squares.argmin(axis=1)


def _unit(rows: Float64[np.ndarray, "n dim"]) -> Float64[np.ndarray, "n dim"]:
    norm = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, norm, out=np.zeros_like(rows), where=norm > 0)
