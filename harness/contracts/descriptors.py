"""The laws of descriptors, tried on noise patches, flat patches and zero patches."""

from collections.abc import Callable, Mapping
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from harness import data_names
from harness.contracts.law import Broken, Law, tried
from harness.distances import ANGLE, HAMMING
from harness.errors import FAILURES, InputError, text_of
from harness.evaluation import SIDES, UNIT
from harness.types import Descriptor, Patches, must_be_stored_exactly

NOISY = 1e-4  # share of the largest number: the size of a batch changes the order of sums


def check_descriptor(descriptor: Descriptor) -> list[Law]:
    """The results of all laws, tried on noise, flat and zero patches; it never raises."""
    sizes = tried("patches of 65, 64 or 32 pixels are described", partial(_sizes, descriptor))
    side = next((s for s in SIDES if _describes(descriptor, s)), SIDES[0])
    laws: Mapping[str, Callable[[Descriptor, int], str | None]] = {
        "n patches give n rows, of the type and length declared": _rows,
        "no patches give no rows, of the same type and length": _no_rows,
        "every row can be compared": _comparable,
        "flat patches are described": _flat,
        "a nearly flat patch is described": _nearly_flat,
        "a row does not depend on its batch": _batch,
        "a row does not depend on the order of its batch": _order,
        "the same patches give the same rows again": _again,
        "returned rows are not changed by later calls": _kept,
        "the patches are not written to": _patches_stay,
        "different patches give different rows (a remark only)": _distinct,
    }
    declared = tried(
        "the libraries that the descriptor declares are installed", partial(_installed, descriptor)
    )
    return [
        declared,
        sizes,
        *(tried(name, partial(law, descriptor, side)) for name, law in laws.items()),
    ]


def _noise(side: int, n: int = 7) -> Patches:
    return np.random.default_rng(0).integers(0, 256, (n, side, side), dtype=np.uint8)


def _described(descriptor: Descriptor, patches: Patches) -> np.ndarray:
    """A copy of the rows of a copy of the patches, so that no law affects another."""
    return np.array(descriptor.describe(patches.copy()))


def _must_fit(descriptor: Descriptor, rows: Any, n: int) -> None:
    dtype = np.dtype(descriptor.distance.dtype)
    if not isinstance(rows, np.ndarray):
        raise Broken(f"{type(rows).__name__} came, a NumPy array is wanted")
    if rows.shape != (n, descriptor.width) or rows.dtype != dtype:
        raise Broken(
            f"{rows.dtype} {list(rows.shape)} came for {n} patches;"
            f" {descriptor.distance.name} and dim {descriptor.dim} want"
            f" {dtype} {[n, descriptor.width]}"
        )


def _must_be_comparable(descriptor: Descriptor, rows: np.ndarray, subject: str) -> None:
    """Require finite rows; for angles unit length; for bits zeros in the last byte's padding."""
    if descriptor.distance is HAMMING:
        fill = np.unpackbits(rows, axis=1)[:, descriptor.dim :]
        if fill.any():
            raise Broken(
                f"{subject}: bits beyond the {descriptor.dim} declared are set, and are compared"
            )
        return
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if bad.size:
        raise Broken(f"row {bad[0]} of {subject} is not finite")
    try:
        must_be_stored_exactly(rows, descriptor.stored, subject)
    except InputError as error:
        raise Broken(str(error)) from error
    if descriptor.distance is ANGLE:
        off = np.abs(np.linalg.norm(rows, axis=1) - 1)
        if not (off <= UNIT).all():
            raise Broken(
                f"row {int(off.argmax())} of {subject} has a length that is off 1 by"
                f" {off.max():.2g}; angles are measured between unit vectors"
            )


def _must_agree(came: np.ndarray, wanted: np.ndarray, subject: str) -> None:
    if came.shape != wanted.shape:
        raise Broken(f"{subject}: {list(came.shape)} instead of {list(wanted.shape)}")
    exact = came.dtype == np.uint8
    allowed = 0 if exact else NOISY * float(np.abs(wanted).max(initial=0))
    off = np.abs(came.astype(float) - wanted.astype(float)).max(axis=1, initial=0)
    if not (off <= allowed).all():
        raise Broken(
            f"{subject}: row {int(off.argmax())} differs by {off.max():.3g}; allowed: {allowed:.3g}"
        )


def _installed(descriptor: Descriptor) -> str:
    """Require that the libraries are installed; remark on unknown names of training data."""
    for library in descriptor.libraries:
        try:
            version(library)
        except PackageNotFoundError as error:
            raise Broken(
                f"libraries names {library!r}, but no such distribution is installed"
            ) from error
    names = data_names.known()
    unknown = names.unknown(descriptor.trained_on or (), ())
    return "; ".join(
        f"no protocol knows the data {name!r} of trained_on; {names.hint(name)}" for name in unknown
    )


def _describes(descriptor: Descriptor, side: int) -> bool:
    try:
        descriptor.describe(_noise(side))
    except FAILURES:
        return False
    return True


def _sizes(descriptor: Descriptor) -> str:
    """A model may refuse a size by ValueError; any other error is a failure."""
    refused = {}
    for side in SIDES:
        try:
            _must_fit(descriptor, descriptor.describe(_noise(side)), 7)
        except ValueError as error:
            refused[side] = str(error)
        except Broken as broken:
            raise Broken(f"{side} x {side}: {broken}") from broken
        except FAILURES as error:
            raise Broken(f"{side} x {side}: {text_of(error)}") from error
    if len(refused) == len(SIDES):
        raise Broken(f"none of {SIDES}: {refused[SIDES[0]]}")
    return "; ".join(f"{side} refused: {message}" for side, message in refused.items())


def _rows(descriptor: Descriptor, side: int) -> None:
    for n in (7, 1):
        _must_fit(descriptor, descriptor.describe(_noise(side, n)), n)


def _no_rows(descriptor: Descriptor, side: int) -> None:
    _must_fit(descriptor, descriptor.describe(_noise(side, 0)), 0)


def _comparable(descriptor: Descriptor, side: int) -> None:
    _must_be_comparable(descriptor, _described(descriptor, _noise(side)), "noise")


def _flat(descriptor: Descriptor, side: int) -> None:
    for grey in (0, 128, 255):
        rows = descriptor.describe(np.full((2, side, side), grey, np.uint8))
        _must_fit(descriptor, rows, 2)
        _must_be_comparable(descriptor, rows, f"patches of {grey}")


def _nearly_flat(descriptor: Descriptor, side: int) -> None:
    patches = np.full((1, side, side), 128, np.uint8)
    patches[0, side // 2, side // 2] += 1
    rows = descriptor.describe(patches)
    _must_fit(descriptor, rows, 1)
    _must_be_comparable(descriptor, rows, "a patch of 128 with one pixel of 129")


def _batch(descriptor: Descriptor, side: int) -> None:
    patches = _noise(side)
    together = _described(descriptor, patches)
    alone = [_described(descriptor, patch[None]) for patch in patches]
    _must_agree(np.concatenate(alone), together, "alone and in a batch")
    # Flat patches in the batch change any model that normalises over the batch.
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
        raise Broken(f"{np.count_nonzero((first != second).any(axis=1))} of 7 rows changed")


def _kept(descriptor: Descriptor, side: int) -> None:
    rows = descriptor.describe(_noise(side))
    before = rows.copy()
    descriptor.describe(255 - _noise(side))
    if not np.array_equal(rows, before, equal_nan=rows.dtype.kind == "f"):
        raise Broken("the next call overwrote them: return a new array each time")


def _patches_stay(descriptor: Descriptor, side: int) -> None:
    patches = _noise(side)
    patches.flags.writeable = False  # like patches from a memory map
    descriptor.describe(patches)
    if not np.array_equal(patches, _noise(side)):  # torch.from_numpy ignores the flag
        raise Broken("it changed them")


def _distinct(descriptor: Descriptor, side: int) -> str:
    different = len(np.unique(_described(descriptor, _noise(side)), axis=0))
    return "" if different == 7 else f"7 patches gave {different} different rows"
