"""The official .mat files of RomePatches as a Dataset: two halves, their queries first.

`patch_retrieval_Rome_{train,test}.mat` has the variable `patches`, 10,000 patches of 51 x 51;
`patch_retrieval_Rome_{train,test}_labels.mat` has `labels_gt`, the points of the first 1,000, which
are the queries, and `labels`, the points of the other 9,000, which are the database. That is how a
third party reads them; the official script, ckn_patch_retrieval.m, was not to be had.

Not verified: the order of axes, so it is detected; which of the two axes of 51 are the rows, the
first is taken; whether three channels are red, green and blue in this order; whether a query or
a positive carries a mark to be ignored, none is known.
"""

import hashlib
import logging
import math
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
from jaxtyping import Int

from harness import Block, Dataset
from harness.errors import FileMissingError, InputError, one_line
from harness.files import matlab
from harness.types import Patches
from protocols.naming import granted, unless_wrong
from protocols.romepatches.sample import sample

HALVES = ("train", "test")
SIDE, QUERIES, DATABASE, POSITIVES = 51, 1000, 9000, 9  # of the published set
MADE = "romepatches-NAME"  # names that a dataset.json may give
GREY = (299, 587, 114)  # thousandths of red, green and blue in grey: BT.601

LARGEST = 2**53  # whole number up to which a float holds all
DENSEST = 1032  # bytes that deflate packs into one: a file can't hold more
UNCHECKED = "the patches and labels of RomePatches; only their size and numbers are known."

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Half:
    """Where the queries of one half and their positives stand in the data set."""

    name: str
    query: Int[np.ndarray, " q"]  # rows
    database: Int[np.ndarray, " n"]  # rows
    positive: Int[np.ndarray, "q m"]  # places in `database`


@dataclass(frozen=True, eq=False)
class RomePatches:
    """The set: patches of both halves, one block each."""

    dataset: Dataset
    halves: tuple[Half, ...]


def open_set(data: Path | None) -> RomePatches:
    """Read both halves of a set; the patches stay in memory, 26 MiB for each published half.

    The set may lie in the folder or in its `romepatches`. As long as no file of it changes it is
    read once, so that protocols share its patches.

    Raises:
        FileMissingError: if a file is missing.
        InputError: if a file is damaged, or patches and labels don't fit each other; names both.
    """
    root = sample() if data is None else data
    if not root.is_dir():
        raise FileMissingError(f"{root} is not a folder: --data takes that of the .mat files")
    if not _has_parts(root) and (root / "romepatches").is_dir():
        root = root / "romepatches"
    missing = [file.name for file in _files(root) if not file.is_file()]
    if missing:
        raise FileMissingError(f"{root} lacks {', '.join(missing)}: harness data fetch romepatches")
    return _read(root.absolute(), tuple(map(_stamp, (*_files(root), root / "dataset.json"))))


def holds_set(folder: Path) -> bool:
    """Whether the set, or a part of it, lies in a folder or in its `romepatches`."""
    return _has_parts(folder) or _has_parts(folder / "romepatches")


def _has_parts(root: Path) -> bool:
    return any(file.is_file() for file in _files(root))


def _files(root: Path) -> list[Path]:
    """Patches and labels of each half in turn."""
    return [
        root / f"patch_retrieval_Rome_{half}{ending}.mat"
        for half in HALVES
        for ending in ("", "_labels")
    ]


def _stamp(file: Path) -> tuple[int, int] | None:
    """What changes when a file does: its size and when it was written."""
    if not file.is_file():
        return None
    found = file.stat()
    return found.st_size, found.st_mtime_ns


@lru_cache(maxsize=2)
def _read(root: Path, stamps: tuple[tuple[int, int] | None, ...]) -> RomePatches:
    """The set; the stamps are there for the cache."""
    files = _files(root)
    halves: list[Half] = []
    blocks: list[Block] = []
    points: list[np.ndarray] = []
    truth = hashlib.sha256()
    start = point = 0
    for name, patch_file, label_file in zip(HALVES, files[::2], files[1::2], strict=True):
        queries, database = (_labels(label_file, part) for part in ("labels_gt", "labels"))
        positive = _positives(queries, database, label_file)
        labels = np.concatenate([queries, database])
        patches = _patches(patch_file, len(labels), label_file)
        rows = np.arange(start, start + len(labels))
        halves.append(Half(name, rows[: len(queries)], rows[len(queries) :], positive))
        contents = hashlib.sha256(np.array(patches.shape).tobytes() + patches.tobytes())
        blocks.append(Block(name, len(patches), contents.hexdigest(), partial(np.copy, patches)))
        numbers, which = np.unique(labels, return_inverse=True)
        points.append(which + point)  # the halves show different points, whatever their labels
        truth.update(which[: len(queries)].tobytes() + b"\0" + which[len(queries) :].tobytes())
        start += len(labels)
        point += len(numbers)
    name = _name(root, halves, blocks)
    dataset = Dataset(
        name=name,
        split="full",
        blocks=tuple(blocks),
        point=np.concatenate(points),
        image=np.arange(start),  # not known: every patch counts as of an image of its own
        truth=truth.hexdigest(),
        sources=frozenset(f"romepatches/{half}" for half in HALVES),
        unchecked=(UNCHECKED,) if name == "romepatches" else (),
    )
    return RomePatches(dataset, tuple(halves))


def _labels(file: Path, variable: str) -> Int[np.ndarray, " n"]:
    found = _variable(file, variable)
    if found.dtype.kind not in "iuf" or not found.size or found.size != max(found.shape):
        raise InputError(
            f"{file}: {variable} is {found.dtype} of shape {found.shape}; a vector of numbers of"
            " points is wanted"
        )
    if not (np.abs(found.astype(np.float64)) <= LARGEST).all() or (found != np.round(found)).any():
        raise InputError(f"{file}: {variable} holds what is no whole number")
    return found.ravel().astype(np.int64)


def _positives(
    queries: Int[np.ndarray, " q"], database: Int[np.ndarray, " n"], file: Path
) -> Int[np.ndarray, "q m"]:
    """Places of each query's matches in the database; as many for each."""
    if len(np.unique(queries)) < len(queries):
        raise InputError(f"{file}: labels_gt has a point twice; each query has a point of its own")
    order = np.argsort(database, kind="stable")
    begin, end = (np.searchsorted(database[order], queries, side) for side in ("left", "right"))
    counts = end - begin
    if counts.min() != counts.max() or not counts.min():
        odd = int(np.argmin(counts))
        raise InputError(
            f"{file}: point {queries[odd]} of labels_gt is {counts[odd]} times in labels, others up"
            f" to {counts.max()} times; every query has as many matches, officially {POSITIVES}"
        )
    return order[begin[:, None] + np.arange(counts[0])]


def _patches(file: Path, n: int, label_file: Path) -> Patches:
    """The patches in 8-bit grey, the rows of each first."""
    found = _variable(file, "patches")
    number = [axis for axis, size in enumerate(found.shape) if size == n]
    rest = [axis for axis in range(found.ndim) if axis not in number]
    colour = [axis for axis in rest if found.shape[axis] in (1, 3)]
    sides = [axis for axis in rest if axis not in colour]
    is_square = len(sides) == 2 and found.shape[sides[0]] == found.shape[sides[1]]
    if len(number) != 1 or len(colour) > 1 or not is_square:
        raise InputError(
            f"{file}: patches has the shape {found.shape}; one axis of {n}, as many as"
            f" {label_file.name} has labels, two of one other size and perhaps one of 3 are wanted,"
            " in any order"
        )
    moved = np.moveaxis(found, (*number, *sides, *colour), range(found.ndim))
    values = _bytes(moved, file)
    if not colour:
        return np.ascontiguousarray(values)
    if values.shape[-1] == 1:
        return np.ascontiguousarray(values[..., 0])
    red, green, blue = (values[..., i].astype(np.uint32) * GREY[i] for i in range(3))
    return ((red + green + blue + 500) // 1000).astype(np.uint8)


def _bytes(values: np.ndarray, file: Path) -> np.ndarray:
    """Numbers as 0..255; MATLAB keeps images as bytes, or as fractions of 1."""
    if values.dtype == np.uint8:
        return values
    if values.dtype.kind not in "iuf" or not np.isfinite(values).all():
        raise InputError(f"{file}: patches is {values.dtype}, or not all finite; bytes are wanted")
    low, high = values.min(), values.max()
    scale = 255 if values.dtype.kind == "f" and high <= 1 else 1
    if low < 0 or high > 255:
        raise InputError(
            f"{file}: patches has values from {low:g} to {high:g}; 0 to 255 are wanted"
        )
    return np.floor(values * scale + 0.5).astype(np.uint8)


def _variable(file: Path, name: str) -> np.ndarray:
    try:
        matlab.check(file)
        shapes = {known: shape for known, shape, _ in scipy.io.whosmat(file)}
        if math.prod(shapes.get(name, ())) > DENSEST * file.stat().st_size:
            raise InputError(f"{name} has the shape {shapes[name]}, too many numbers for its bytes")
        matlab.must_be_numbers(file, name)
        loaded: dict[str, Any] = scipy.io.loadmat(file, variable_names=[name])
    except NotImplementedError as error:
        raise InputError(
            f"{file} is in the form of MATLAB 7.3 (HDF5), which SciPy does not read: save it again"
            " in MATLAB with the option -v7"
        ) from error
    except Exception as error:  # of many types, by the way in which the file is broken
        raise InputError(
            f"{file} can't be read as a .mat file ({type(error).__name__}: {one_line(error)}):"
            " get it again"
        ) from error
    if name not in loaded:
        held = ", ".join(shapes) or "nothing"
        raise InputError(f"{file} has no variable {name!r}; it has {held}")
    return np.asarray(loaded[name])


def _name(root: Path, halves: list[Half], blocks: list[Block]) -> str:
    """The name that scores are kept under: "romepatches" only for a set of the published size."""
    if (root / "dataset.json").is_file():
        return granted(root / "dataset.json", MADE)[0]
    faults = []
    for half, block in zip(halves, blocks, strict=True):
        (queries, matches), database = half.positive.shape, len(half.database)
        side = block.read().shape[1]
        if (queries, matches, database, side) != (QUERIES, POSITIVES, DATABASE, SIDE):
            faults.append(
                f"{half.name} has {queries} queries of {matches} matches each among {database}"
                f" patches of {side} pixels, not {QUERIES}, {POSITIVES}, {DATABASE}, {SIDE}"
            )
    return unless_wrong("romepatches", faults, root, "romepatches-sample")
