"""The laws of protocols, tried on artificial vectors for their own patches."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np

from harness.contracts.law import Broken, Law, tried
from harness.distances import HAMMING, L2, Distance
from harness.metrics import lower_is_better
from harness.parts import together
from harness.types import Block, Dataset, Descriptions, Protocol, Scores

AT_ONCE = 8  # blocks that are read together
RANDOM = 10  # random descriptors, which give mean and spread of chance scores
CHANCE = 4.0  # standard deviations of one score; the mean of RANDOM scores is known to 1/3 of one
LEAST_SPREAD = 1e-3  # least standard deviation, as coarse scores of few pairs may all agree
NO_PARTS = "does not apply: no part can be scored without the others"
MISLABELLED = 0.02  # error of an oracle: 0.3 % of "inter" negatives in 3 HPatches sequences match


def check_protocol(protocol: Protocol) -> list[Law]:
    """The results of all laws, tried on artificial vectors for its patches; it never raises.

    It scores a dozen descriptors, so use a small data set.
    """
    laws: Mapping[str, Callable[[Protocol], str | None]] = {
        "the patches are those of the table": _table,
        "reading again gives the same patches and the same hash": _stable,
        "several threads can read at once": _threads,
        "the headline is among the scores": _headline,
        "every score is a fraction, or a quantity": _ranges,
        "an oracle scores best": _oracle,
        "a constant descriptor scores chance": _chance,
        "the scale of vectors does not matter": _scale,
        "bits compared by Hamming score as numbers 0 and 1 by L2": _bits,
        "the same vectors score the same again": _score_again,
        "the vectors are not written to": _vectors_stay,
        "the order of rows does not matter": _row_order,
        "each part scores alone as with the others": _parts_alone,
        "what is no part's own follows from the parts": _parts_summed,
    }
    return [tried(name, partial(law, protocol)) for name, law in laws.items()]


def _score(
    protocol: Protocol, vectors: np.ndarray, distance: Distance = L2, dataset: Dataset | None = None
) -> Scores:
    return protocol.score(Descriptions(dataset or protocol.dataset, vectors.copy(), distance))


def _normal(protocol: Protocol, seed: int = 0, dim: int = 8) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((len(protocol.dataset), dim), dtype=np.float32)


def _vector_of_each_point(protocol: Protocol) -> np.ndarray:
    points, which = np.unique(protocol.dataset.point, return_inverse=True)
    rng = np.random.default_rng(0)
    return rng.standard_normal((len(points), 16), dtype=np.float32)[which]


def _coarse(protocol: Protocol) -> np.ndarray:
    """Four different vectors, for half of the patches chosen by point: informed, with many ties."""
    rng = np.random.default_rng(0)
    guess = rng.integers(0, 4, len(protocol.dataset))
    informed = np.where(rng.random(len(guess)) < 0.5, protocol.dataset.point % 4, guess)
    return np.eye(4, dtype=np.float32)[informed]


def _table(protocol: Protocol) -> None:
    dataset = protocol.dataset
    declared = sum(block.size for block in dataset.blocks)
    if not declared == len(dataset.point) == len(dataset.image):
        raise Broken(
            f"blocks hold {declared} patches, the table has {len(dataset.point)} points"
            f" and {len(dataset.image)} images"
        )
    if not declared:
        raise Broken("there are no patches")
    names = [block.name for block in dataset.blocks]
    if len(set(names)) < len(names):
        raise Broken("two blocks have one name")
    for block in dataset.blocks:
        _must_hold_patches(block)


def _must_hold_patches(block: Block) -> None:
    patches = block.read()
    if not isinstance(patches, np.ndarray) or patches.dtype != np.uint8 or patches.ndim != 3:
        came = f"{getattr(patches, 'dtype', type(patches).__name__)} {np.shape(patches)}"
        raise Broken(f"{block.name} gave {came}; uint8 [n, side, side] is wanted")
    if len(patches) != block.size:
        raise Broken(f"{block.name} gave {len(patches)} patches and declares {block.size}")
    if patches.shape[1] != patches.shape[2]:
        raise Broken(f"{block.name} gave patches of {patches.shape[1]} x {patches.shape[2]}")


def _stable(protocol: Protocol) -> None:
    dataset = protocol.dataset
    block = dataset.blocks[0]
    if not np.array_equal(block.read(), block.read()):
        raise Broken(f"{block.name} gave other patches when read again")
    for block in dataset.blocks:
        if not block.sha256:
            raise Broken(f"{block.name} has no hash, so its vectors can't be kept")
    if dataset.sha256 != replace(dataset).sha256:
        raise Broken("the hash of the data set changed")


def _threads(protocol: Protocol) -> None:
    """Reading ahead must not mix up what blocks share, such as a position in an open file."""
    blocks = protocol.dataset.blocks[:AT_ONCE]
    alone = [block.read() for block in blocks]
    with ThreadPoolExecutor(2 * AT_ONCE) as pool:
        among_others = list(pool.map(lambda block: block.read(), [*blocks, *blocks]))
    for block, once, again in zip([*blocks, *blocks], [*alone, *alone], among_others, strict=True):
        if not np.array_equal(once, again):
            raise Broken(f"{block.name} gave other patches when several threads read blocks")


def _headline(protocol: Protocol) -> None:
    scores = _score(protocol, _normal(protocol)).values
    if protocol.headline not in scores:
        raise Broken(f"{protocol.headline!r} is none of {', '.join(scores)}")


def _ranges(protocol: Protocol) -> None:
    for vectors in (_normal(protocol), _coarse(protocol)):
        scores = _score(protocol, vectors)
        numbers = dict(scores.values)
        for scene, scene_scores in scores.scenes.items():
            numbers |= {f"{scene}/{name}": value for name, value in scene_scores.items()}
        for name, (low, high) in scores.intervals.items():
            if name not in scores.values:
                raise Broken(f"an interval is given for {name!r}, which is no score")
            if not low <= high:
                raise Broken(f"the interval of {name} is {low} to {high}")
            numbers |= {f"lower end of {name}": low, f"upper end of {name}": high}
        for name, value in numbers.items():
            limit = np.finfo(float).max if _is_quantity(protocol, name) else 1
            if not 0 <= value <= limit:  # also refuses NaN
                raise Broken(f"{name} is {value}")


def _oracle(protocol: Protocol) -> None:
    """Fractions are the best possible; scores of unknown best value are no worse than random's."""
    random = _score(protocol, _normal(protocol)).values
    for name, value in _score(protocol, _vector_of_each_point(protocol)).values.items():
        lower = lower_is_better(name, protocol.quantities)
        best = 0.0 if lower else 1.0
        if _is_quantity(protocol, name) or name.rpartition("/")[2] in protocol.best_unknown:
            best = random.get(name, value)
            kept = value <= best if lower else value >= best
        else:
            kept = abs(value - best) <= MISLABELLED
        if not kept:
            raise Broken(f"vectors that tell every point apart score {name} = {value}, not {best}")


def _chance(protocol: Protocol) -> None:
    """Tied distances must score like random distances, not like a lucky or unlucky order."""
    constant = _score(protocol, np.ones((len(protocol.dataset), 8), np.float32)).values
    random = [_score(protocol, _normal(protocol, seed)).values for seed in range(1, RANDOM + 1)]
    for name, value in constant.items():
        scored = [scores[name] for scores in random if name in scores]
        if not scored:
            continue  # undefined for random vectors
        mean, spread = np.mean(scored), max(float(np.std(scored, ddof=1)), LEAST_SPREAD)
        if lower_is_better(name, protocol.quantities) and value == 1:
            continue  # one threshold accepts all tied pairs: the worst score
        if not abs(value - mean) <= CHANCE * spread:
            raise Broken(
                f"a constant scores {name} = {value:.6g}, random vectors {mean:.6g} +- {spread:.2g}"
            )


def _scale(protocol: Protocol) -> None:
    vectors = _normal(protocol)
    _must_score_alike(
        _score(protocol, 4 * vectors),  # a power of two, so that no float is rounded
        _score(protocol, vectors),
        "four times the vectors",
        within=0.0,
    )


def _bits(protocol: Protocol) -> str:
    if protocol.distances is not None and HAMMING.name not in protocol.distances:
        return f"does not apply: vectors are compared by {' or '.join(protocol.distances)}"
    bits = np.random.default_rng(0).integers(0, 2, (len(protocol.dataset), 16), dtype=np.uint8)
    _must_score_alike(
        _score(protocol, np.packbits(bits, axis=1), HAMMING),
        _score(protocol, bits.astype(np.float32)),
        "packed bits",
        within=1e-9,
    )
    return ""


def _score_again(protocol: Protocol) -> None:
    first, second = (_score(protocol, _coarse(protocol)) for _ in range(2))
    _must_score_alike(second, first, "the second time", within=0.0)


def _vectors_stay(protocol: Protocol) -> None:
    vectors = _normal(protocol)
    vectors.flags.writeable = False
    protocol.score(Descriptions(protocol.dataset, vectors, L2))


def _row_order(protocol: Protocol) -> str:
    """Applies only if pairs are drawn from the data set's arrays, not read from files."""
    dataset, vectors = protocol.dataset, _coarse(protocol)
    order = np.random.default_rng(0).permutation(len(dataset))
    shuffled = replace(dataset, point=dataset.point[order], image=dataset.image[order])
    wanted = _score(protocol, vectors)
    if _score(protocol, vectors, dataset=shuffled).values == wanted.values:
        return "does not apply: the table is not used, so the pairs are of fixed rows"
    _must_score_alike(
        _score(protocol, vectors[order], dataset=shuffled),
        wanted,
        "rows in another order",
        within=1e-9,
    )
    return ""


def _parts_alone(protocol: Protocol) -> str:
    """A part is scored with the vectors of its rows only; all others are zeros.

    The parts together give the whole to the last bit, since records of a cluster are made of them.
    """
    if protocol.parts is None:
        return NO_PARTS
    vectors = _normal(protocol)
    whole = _score(protocol, vectors)
    every = []
    for name in protocol.parts.names:
        some = np.zeros_like(vectors)
        rows = protocol.parts.rows(name)
        some[rows] = vectors[rows]
        alone = protocol.parts.score(Descriptions(protocol.dataset, some, L2), [name])
        if alone.scenes.keys() - {name}:
            raise Broken(f"{name} alone has scores of {', '.join(alone.scenes)}")
        _must_hold(alone, whole, f"{name} alone", within=1e-12)
        every.append(alone)
    if protocol.parts.sums_intervals:
        put = together(protocol.parts, every)
        _must_hold(put, whole, "the parts together", within=0)
        if left := _numbers(whole).keys() - _numbers(put).keys():
            raise Broken(f"the parts together lack {min(left)}")
        if put.warnings != whole.warnings:
            raise Broken("the parts together have other warnings than the whole")
    return ""


def _parts_summed(protocol: Protocol) -> str:
    """Each score and interval is a part's own, or follows from those of all parts."""
    if protocol.parts is None:
        return NO_PARTS
    vectors = _normal(protocol)
    whole = _score(protocol, vectors)
    own = protocol.parts.score(Descriptions(protocol.dataset, vectors, L2), protocol.parts.names)
    summed = protocol.parts.sum_up(whole)
    _must_hold(summed, whole, "the sum of the parts", within=1e-12)
    explained = {*own.values, *summed.values}
    if left := whole.values.keys() - explained:
        raise Broken(f"{min(left)} is neither a part's own nor follows from the parts")
    bounds = {*own.intervals, *summed.intervals}
    if protocol.parts.sums_intervals and (left := whole.intervals.keys() - bounds):
        raise Broken(f"the interval of {min(left)} is neither a part's own nor follows from them")
    return ""


def _must_hold(found: Scores, whole: Scores, subject: str, *, within: float) -> None:
    """Each number that was found is the number of the whole protocol."""
    wanted = _numbers(whole)
    for name, value in _numbers(found).items():
        if name not in wanted:
            raise Broken(f"{subject}: {name} is no score of the protocol")
        if not abs(value - wanted[name]) <= within * max(1.0, abs(wanted[name])):
            raise Broken(f"{subject}: {name} is {value!r} instead of {wanted[name]!r}")


def _numbers(scores: Scores) -> dict[str, float]:
    """Scores, breakdowns and ends of intervals, by texts that name them."""
    numbers = dict(scores.values)
    for name, (low, high) in scores.intervals.items():
        numbers |= {f"lower end of {name}": low, f"upper end of {name}": high}
    for scene, of_scene in scores.scenes.items():
        numbers |= {f"{name} of {scene}": value for name, value in of_scene.items()}
    return numbers


def _is_quantity(protocol: Protocol, name: str) -> bool:
    return name.rpartition("/")[2] in protocol.quantities


def _must_score_alike(came: Scores, wanted: Scores, subject: str, *, within: float) -> None:
    if odd := came.values.keys() ^ wanted.values.keys():
        raise Broken(f"{subject}: {min(odd)} is a score of one and not of the other")
    for name, value in wanted.values.items():
        if not abs(came.values[name] - value) <= within:
            raise Broken(f"{subject}: {name} is {came.values[name]!r} instead of {value!r}")
