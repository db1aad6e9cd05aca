"""The laws that descriptors and protocols keep, as functions: for our tests, and for yours.

A test of a package of its own is `assert all(law.passed for law in check_descriptor(mine()))`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from harness.distances import DISTANCES, HAMMING, L2, Distance
from harness.metrics import lower_is_better
from harness.types import Block, Dataset, Descriptions, Descriptor, Patches, Protocol, Scores

SIDES = (65, 64, 32)  # pixels: HPatches, PhotoTour, most networks
NOISY = 1e-4  # of the largest number: batches of other sizes add up in another order

RANDOM = 10  # descriptors without information that show what chance scores, and how widely
CHANCE = 4.0  # standard deviations of one of them; their mean is known to about a third of one
LEAST_SPREAD = 1e-3  # where the random ones agree, as two pairs of coarse scores may
MISLABELLED = 0.02  # of three HPatches sequences, 0.3 % of "inter" negatives do show one point


@dataclass(frozen=True)
class Law:
    """A sentence about behaviour, and whether it holds."""

    name: str
    passed: bool
    detail: str = ""  # what broke it, or a remark


class _Broken(Exception):
    """Says what broke a law."""


def _tried(name: str, law: Callable[[], str | None]) -> Law:
    try:
        return Law(name, True, law() or "")
    except _Broken as broken:
        return Law(name, False, str(broken))
    except Exception as error:  # what is checked may fail in any way
        return Law(name, False, f"{type(error).__name__}: {error}")


def check_descriptor(descriptor: Descriptor) -> list[Law]:
    """Every law of descriptors, tried on noise, flat patches and nothing; it never raises."""
    sizes = _tried("patches of 65, 64 or 32 pixels are described", partial(_sizes, descriptor))
    side = next((s for s in SIDES if _describes(descriptor, s)), SIDES[0])
    laws: Mapping[str, Callable[[Descriptor, int], str | None]] = {
        "n patches give n rows, of the type and length declared": _rows,
        "no patches give no rows, of the same type and length": _no_rows,
        "every number is finite": _finite,
        "flat patches are described": _flat,
        "a nearly flat patch is described": _nearly_flat,
        "a row does not depend on its batch": _batch,
        "a row does not depend on the order of its batch": _order,
        "the same patches give the same rows again": _again,
        "rows once returned stay as they are": _kept,
        "the patches are not written to": _patches_stay,
        "different patches give different rows (a remark only)": _distinct,
    }
    declared = _tried("what the descriptor declares is well formed", partial(_declared, descriptor))
    return [
        declared,
        sizes,
        *(_tried(name, partial(law, descriptor, side)) for name, law in laws.items()),
    ]


def _noise(side: int, n: int = 7) -> Patches:
    return np.random.default_rng(0).integers(0, 256, (n, side, side), dtype=np.uint8)


def _described(descriptor: Descriptor, patches: Patches) -> np.ndarray:
    """Rows of a copy of the patches, copied: so that no law depends on another."""
    return np.array(descriptor.describe(patches.copy()))


def _width(descriptor: Descriptor) -> int:
    return -(-descriptor.dim // 8) if descriptor.distance is HAMMING else descriptor.dim


def _must_fit(descriptor: Descriptor, rows: Any, n: int) -> None:
    dtype = np.dtype(descriptor.distance.dtype)
    if not isinstance(rows, np.ndarray):
        raise _Broken(f"{type(rows).__name__} came, a NumPy array is wanted")
    if rows.shape != (n, _width(descriptor)) or rows.dtype != dtype:
        raise _Broken(
            f"{rows.dtype} {list(rows.shape)} came for {n} patches;"
            f" {descriptor.distance.name} and dim {descriptor.dim} want"
            f" {dtype} {[n, _width(descriptor)]}"
        )


def _must_be_finite(rows: np.ndarray, what: str) -> None:
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if bad.size:
        raise _Broken(f"row {bad[0]} of {what} is not finite")


def _must_agree(came: np.ndarray, wanted: np.ndarray, what: str) -> None:
    if came.shape != wanted.shape:
        raise _Broken(f"{what}: {list(came.shape)} instead of {list(wanted.shape)}")
    exact = came.dtype == np.uint8
    allowed = 0 if exact else NOISY * float(np.abs(wanted).max(initial=0))
    off = np.abs(came.astype(float) - wanted.astype(float)).max(axis=1, initial=0)
    if not (off <= allowed).all():
        raise _Broken(
            f"{what}: row {int(off.argmax())} differs by {off.max():.3g}, {allowed:.3g} is allowed"
        )


def _declared(descriptor: Descriptor) -> None:
    if not descriptor.name:
        raise _Broken("it has no name")
    if descriptor.distance not in DISTANCES.values():
        raise _Broken(f"distance is {descriptor.distance!r:.60}, none of {', '.join(DISTANCES)}")
    if not isinstance(descriptor.dim, int) or descriptor.dim < 1:
        raise _Broken(f"dim is {descriptor.dim!r}")
    if not isinstance(descriptor.trained_on, frozenset):
        raise _Broken(f"trained_on is {descriptor.trained_on!r:.60}; a frozenset is wanted")


def _describes(descriptor: Descriptor, side: int) -> bool:
    try:
        descriptor.describe(_noise(side))
    except Exception:
        return False
    return True


def _sizes(descriptor: Descriptor) -> str:
    """A model may be made for one size if it says so: ValueError, not a crash within."""
    refused = {}
    for side in SIDES:
        try:
            _must_fit(descriptor, descriptor.describe(_noise(side)), 7)
        except ValueError as error:
            refused[side] = str(error)
        except _Broken as broken:
            raise _Broken(f"{side} x {side}: {broken}") from broken
        except Exception as error:
            raise _Broken(f"{side} x {side}: {type(error).__name__}: {error}") from error
    if len(refused) == len(SIDES):
        raise _Broken(f"none of {SIDES}: {refused[SIDES[0]]}")
    return "; ".join(f"{side} refused: {message}" for side, message in refused.items())


def _rows(descriptor: Descriptor, side: int) -> None:
    for n in (7, 1):
        _must_fit(descriptor, descriptor.describe(_noise(side, n)), n)


def _no_rows(descriptor: Descriptor, side: int) -> None:
    _must_fit(descriptor, descriptor.describe(_noise(side, 0)), 0)


def _finite(descriptor: Descriptor, side: int) -> None:
    _must_be_finite(_described(descriptor, _noise(side)), "noise")


def _flat(descriptor: Descriptor, side: int) -> None:
    for grey in (0, 128, 255):
        rows = descriptor.describe(np.full((2, side, side), grey, np.uint8))
        _must_fit(descriptor, rows, 2)
        _must_be_finite(rows, f"patches of {grey}")


def _nearly_flat(descriptor: Descriptor, side: int) -> None:
    patches = np.full((1, side, side), 128, np.uint8)
    patches[0, side // 2, side // 2] += 1
    rows = descriptor.describe(patches)
    _must_fit(descriptor, rows, 1)
    _must_be_finite(rows, "a patch of 128 with one pixel of 129")


def _batch(descriptor: Descriptor, side: int) -> None:
    patches = _noise(side)
    together = _described(descriptor, patches)
    alone = [_described(descriptor, patch[None]) for patch in patches]
    _must_agree(np.concatenate(alone), together, "alone and in a batch")
    # Flat neighbours would move anything that is normalised over the batch.
    beside = _described(descriptor, np.concatenate([patches, np.zeros_like(patches)]))
    _must_agree(beside[: len(patches)], together, "beside flat patches and without")


def _order(descriptor: Descriptor, side: int) -> None:
    patches = _noise(side)
    _must_agree(
        _described(descriptor, patches[::-1])[::-1], _described(descriptor, patches), "reversed"
    )


def _again(descriptor: Descriptor, side: int) -> None:
    first, second = (_described(descriptor, _noise(side)) for _ in range(2))
    if not np.array_equal(first, second, equal_nan=first.dtype.kind == "f"):
        raise _Broken(f"{np.count_nonzero((first != second).any(axis=1))} of 7 rows changed")


def _kept(descriptor: Descriptor, side: int) -> None:
    rows = descriptor.describe(_noise(side))
    before = rows.copy()
    descriptor.describe(255 - _noise(side))
    if not np.array_equal(rows, before, equal_nan=rows.dtype.kind == "f"):
        raise _Broken("the next call overwrote them: return an array of its own each time")


def _patches_stay(descriptor: Descriptor, side: int) -> None:
    patches = _noise(side)
    patches.flags.writeable = False  # what is read from a memory map can't be written either
    descriptor.describe(patches)
    if not np.array_equal(patches, _noise(side)):  # from_numpy of PyTorch ignores the flag
        raise _Broken("it changed them")


def _distinct(descriptor: Descriptor, side: int) -> str:
    different = len(np.unique(_described(descriptor, _noise(side)), axis=0))
    return "" if different == 7 else f"7 patches gave {different} different rows"


def check_protocol(protocol: Protocol) -> list[Law]:
    """Every law of protocols, tried on made-up vectors for its own patches; it never raises.

    Scores a dozen descriptors, so give it a small data set.
    """
    laws: Mapping[str, Callable[[Protocol], str | None]] = {
        "the patches are those of the table": _table,
        "reading again gives the same patches and the same hash": _stable,
        "the headline is among the scores": _headline,
        "every score is a fraction": _fractions,
        "an oracle scores best": _oracle,
        "a constant descriptor scores chance": _chance,
        "the scale of vectors does not matter": _scale,
        "bits compared by Hamming score as numbers 0 and 1 by L2": _bits,
        "the same vectors score the same again": _score_again,
        "the vectors are not written to": _vectors_stay,
        "the order of rows does not matter": _row_order,
    }
    return [_tried(name, partial(law, protocol)) for name, law in laws.items()]


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
    """Four vectors for all patches, half of them by point: informed, and tied most of the time."""
    rng = np.random.default_rng(0)
    guess = rng.integers(0, 4, len(protocol.dataset))
    informed = np.where(rng.random(len(guess)) < 0.5, protocol.dataset.point % 4, guess)
    return np.eye(4, dtype=np.float32)[informed]


def _table(protocol: Protocol) -> None:
    dataset = protocol.dataset
    declared = sum(block.size for block in dataset.blocks)
    if not declared == len(dataset.point) == len(dataset.image):
        raise _Broken(
            f"blocks hold {declared} patches, the table has {len(dataset.point)} points"
            f" and {len(dataset.image)} images"
        )
    if not declared:
        raise _Broken("there are no patches")
    names = [block.name for block in dataset.blocks]
    if len(set(names)) < len(names):
        raise _Broken("two blocks have one name")
    for block in dataset.blocks:
        _must_hold_patches(block)


def _must_hold_patches(block: Block) -> None:
    patches = block.read()
    if not isinstance(patches, np.ndarray) or patches.dtype != np.uint8 or patches.ndim != 3:
        came = f"{getattr(patches, 'dtype', type(patches).__name__)} {np.shape(patches)}"
        raise _Broken(f"{block.name} gave {came}; uint8 [n, side, side] is wanted")
    if len(patches) != block.size:
        raise _Broken(f"{block.name} gave {len(patches)} patches and declares {block.size}")
    if patches.shape[1] != patches.shape[2]:
        raise _Broken(f"{block.name} gave patches of {patches.shape[1]} x {patches.shape[2]}")


def _stable(protocol: Protocol) -> None:
    dataset = protocol.dataset
    block = dataset.blocks[0]
    if not np.array_equal(block.read(), block.read()):
        raise _Broken(f"{block.name} gave other patches when read again")
    for block in dataset.blocks:
        if not block.sha256:
            raise _Broken(f"{block.name} has no hash, so its vectors can't be kept")
    if dataset.sha256 != replace(dataset).sha256:
        raise _Broken("the hash of the data set changed")


def _headline(protocol: Protocol) -> None:
    scores = _score(protocol, _normal(protocol)).values
    if protocol.headline not in scores:
        raise _Broken(f"{protocol.headline!r} is none of {', '.join(scores)}")


def _fractions(protocol: Protocol) -> None:
    for vectors in (_normal(protocol), _coarse(protocol)):
        scores = _score(protocol, vectors)
        numbers = dict(scores.values)
        for scene, of_scene in scores.scenes.items():
            numbers |= {f"{name} of {scene}": value for name, value in of_scene.items()}
        for name, (low, high) in scores.intervals.items():
            if name not in scores.values:
                raise _Broken(f"an interval is given for {name!r}, which is no score")
            if not low <= high:
                raise _Broken(f"the interval of {name} is {low} to {high}")
            numbers |= {f"lower end of {name}": low, f"upper end of {name}": high}
        for name, value in numbers.items():
            if not 0 <= value <= 1:  # NaN is none either
                raise _Broken(f"{name} is {value}")


def _oracle(protocol: Protocol) -> None:
    for name, value in _score(protocol, _vector_of_each_point(protocol)).values.items():
        best = 0.0 if lower_is_better(name) else 1.0
        if not abs(value - best) <= MISLABELLED:
            raise _Broken(f"vectors that tell every point apart score {name} = {value}, not {best}")


def _chance(protocol: Protocol) -> None:
    """Tied distances must score what random ones do: neither what is met first, nor last."""
    constant = _score(protocol, np.ones((len(protocol.dataset), 8), np.float32)).values
    random = [_score(protocol, _normal(protocol, seed)).values for seed in range(1, RANDOM + 1)]
    for name, value in constant.items():
        scored = [scores[name] for scores in random]
        mean, spread = np.mean(scored), max(float(np.std(scored, ddof=1)), LEAST_SPREAD)
        if lower_is_better(name) and value == 1:
            continue  # one threshold accepts every tied pair: the worst score there is
        if not abs(value - mean) <= CHANCE * spread:
            raise _Broken(
                f"a constant scores {name} = {value:.6g}, random vectors {mean:.6g} +- {spread:.2g}"
            )


def _scale(protocol: Protocol) -> None:
    vectors = _normal(protocol)
    _must_score_alike(
        _score(protocol, 4 * vectors),  # a power of two: every float keeps its digits
        _score(protocol, vectors),
        "four times the vectors",
        within=0.0,
    )


def _bits(protocol: Protocol) -> None:
    bits = np.random.default_rng(0).integers(0, 2, (len(protocol.dataset), 16), dtype=np.uint8)
    _must_score_alike(
        _score(protocol, np.packbits(bits, axis=1), HAMMING),
        _score(protocol, bits.astype(np.float32)),
        "packed bits",
        within=1e-9,
    )


def _score_again(protocol: Protocol) -> None:
    first, second = (_score(protocol, _coarse(protocol)) for _ in range(2))
    _must_score_alike(second, first, "the second time", within=0.0)


def _vectors_stay(protocol: Protocol) -> None:
    vectors = _normal(protocol)
    vectors.flags.writeable = False
    protocol.score(Descriptions(protocol.dataset, vectors, L2))


def _row_order(protocol: Protocol) -> str:
    """Of meaning only where pairs are drawn from the table that is handed in, not from files."""
    dataset = protocol.dataset
    order = np.random.default_rng(0).permutation(len(dataset))
    shuffled = replace(dataset, point=dataset.point[order], image=dataset.image[order])
    not_so = "does not apply: the pairs belong to fixed rows"
    try:
        of_oracle = _score(protocol, _vector_of_each_point(protocol)[order], dataset=shuffled)
    except Exception:
        return not_so
    for name, value in of_oracle.values.items():
        if not abs(value - (0 if lower_is_better(name) else 1)) <= MISLABELLED:
            return not_so
    _must_score_alike(
        _score(protocol, _coarse(protocol)[order], dataset=shuffled),
        _score(protocol, _coarse(protocol)),
        "rows in another order",
        within=1e-9,
    )
    return ""


def _must_score_alike(came: Scores, wanted: Scores, what: str, *, within: float) -> None:
    for name, value in wanted.values.items():
        if not abs(came.values[name] - value) <= within:
            raise _Broken(f"{what}: {name} is {came.values[name]!r} instead of {value!r}")
