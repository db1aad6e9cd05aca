"""Reads the official .mat files of RomePatches as a Dataset: two halves, the queries first in each.

`patch_retrieval_Rome_{train,test}.mat` has the variable `patches`: 10,000 patches of 51 x 51
pixels. `patch_retrieval_Rome_{train,test}_labels.mat` has two variables: `labels_gt` holds the
points of the first 1,000 patches, which are the queries; `labels` holds the points of the other
9,000 patches, which are the database. A third party reads the files in this way; the official
script, ckn_patch_retrieval.m, was not available.

Not verified:
- the order of the axes: it is detected;
- which of the two axes of 51 holds the rows: the first is used;
- whether three channels are red, green and blue, in this order;
- whether some queries or positives are marked as patches to ignore: no mark is known.
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
from harness.verified import Stamp, stamp
from protocols.naming import granted, unless_wrong
from protocols.romepatches.sample import sample

HALVES = ("train", "test")
SIDE, QUERIES, DATABASE, POSITIVES = 51, 1000, 9000, 9  # of the published set
MADE = "romepatches-NAME"  # form of the names that a dataset.json may give
GREY = (299, 587, 114)  # thousandths of red, green and blue in grey: BT.601

LARGEST = 2**53  # a float represents every whole number up to this
DENSEST = 1032  # deflate packs at most this many bytes into one byte of a file
UNCHECKED = "the patches and labels of RomePatches; only their size and numbers are known."

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Half:
    """Rows of the queries and of the database of one half, and the positives of each query."""

    name: str
    query: Int[np.ndarray, " q"]  # rows
    database: Int[np.ndarray, " n"]  # rows
    positive: Int[np.ndarray, "q m"]  # places in `database`


@dataclass(frozen=True, eq=False)
class RomePatches:
    """The data set of both halves, one block each."""

    dataset: Dataset
    halves: tuple[Half, ...]


def open_set(data: Path | None) -> RomePatches:
    """Both halves of a set; the patches stay in memory, 26 MiB for each published half.

    The set may be in the folder itself or in its folder `romepatches`. It is read once, until one
    of its files changes, so that protocols share its patches.

    Raises:
        FileMissingError: if a file is missing.
        InputError: if a file is damaged, or patches and labels disagree; names both files.
    """
    root = sample() if data is None else data
    if not root.is_dir():
        raise FileMissingError(f"{root} is not a folder: --data takes the folder of the .mat files")
    if not _has_parts(root) and (root / "romepatches").is_dir():
        root = root / "romepatches"
    missing = [file.name for file in _files(root) if not file.is_file()]
    if missing:
        raise FileMissingError(
            f"{root} lacks {', '.join(missing)}: try harness data fetch romepatches"
        )
    return _read(root.absolute(), tuple(map(stamp, (*_files(root), root / "dataset.json"))))


def holds_set(folder: Path) -> bool:
    """Whether a folder, or its folder `romepatches`, has a file of the set."""
    return _has_parts(folder) or _has_parts(folder / "romepatches")


def _has_parts(root: Path) -> bool:
    return any(file.is_file() for file in _files(root))


def _files(root: Path) -> list[Path]:
    """The file of patches and the file of labels of each half, half by half."""
    return [
        root / f"patch_retrieval_Rome_{half}{ending}.mat"
        for half in HALVES
        for ending in ("", "_labels")
    ]


@lru_cache(maxsize=2)
def _read(root: Path, stamps: tuple[Stamp | None, ...]) -> RomePatches:
    """The set; only `lru_cache` uses the stamps: if they change, the set is read again."""
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
        points.append(which + point)  # the halves show different points, even if labels are equal
        truth.update(which[: len(queries)].tobytes() + b"\0" + which[len(queries) :].tobytes())
        start += len(labels)
        point += len(numbers)
    name = _name(root, halves, blocks)
    dataset = Dataset(
        name=name,
        split="full",
        blocks=tuple(blocks),
        point=np.concatenate(points),
        image=np.arange(start),  # unknown: each patch counts as an image of its own
        truth=truth.hexdigest(),
        sources=frozenset(f"romepatches/{half}" for half in HALVES),
        unchecked=(UNCHECKED,) if name == "romepatches" else (),
    )
    return RomePatches(dataset, tuple(halves))


def _labels(file: Path, variable: str) -> Int[np.ndarray, " n"]:
    labels = _variable(file, variable)
    if labels.dtype.kind not in "iuf" or not labels.size or labels.size != max(labels.shape):
        raise InputError(
            f"{file}: {variable} is {labels.dtype} of shape {labels.shape}; it should be a vector"
            " of point numbers"
        )
    is_whole = labels == np.round(labels)
    if not (np.abs(labels.astype(np.float64)) <= LARGEST).all() or not is_whole.all():
        raise InputError(f"{file}: {variable} has a value that is not a valid whole number")
    return labels.ravel().astype(np.int64)


def _positives(
    queries: Int[np.ndarray, " q"], database: Int[np.ndarray, " n"], file: Path
) -> Int[np.ndarray, "q m"]:
    """Places of each query's matches in the database; all queries have equally many."""
    if len(np.unique(queries)) < len(queries):
        raise InputError(
            f"{file}: labels_gt has a point twice; each query must have a point of its own"
        )
    order = np.argsort(database, kind="stable")
    begin, end = (np.searchsorted(database[order], queries, side) for side in ("left", "right"))
    counts = end - begin
    if counts.min() != counts.max() or not counts.min():
        odd = int(np.argmin(counts))
        raise InputError(
            f"{file}: point {queries[odd]} of labels_gt is {counts[odd]} times in labels, others up"
            f" to {counts.max()} times; all queries must have equally many matches, officially"
            f" {POSITIVES}"
        )
    return order[begin[:, None] + np.arange(counts[0])]


def _patches(file: Path, n: int, label_file: Path) -> Patches:
    """The patches in 8-bit grey; of the two axes of a side, the first is the rows."""
    stored = _variable(file, "patches")
    number = [axis for axis, size in enumerate(stored.shape) if size == n]
    rest = [axis for axis in range(stored.ndim) if axis not in number]
    colour = [axis for axis in rest if stored.shape[axis] in (1, 3)]
    sides = [axis for axis in rest if axis not in colour]
    is_square = len(sides) == 2 and stored.shape[sides[0]] == stored.shape[sides[1]]
    if len(number) != 1 or len(colour) > 1 or not is_square:
        raise InputError(
            f"{file}: patches has the shape {stored.shape}; it should have one axis of {n} (the"
            f" number of labels in {label_file.name}), two equal axes of another size, and"
            " perhaps one axis of 3, in any order"
        )
    moved = np.moveaxis(stored, (*number, *sides, *colour), range(stored.ndim))
    values = _bytes(moved, file)
    if not colour:
        return np.ascontiguousarray(values)
    if values.shape[-1] == 1:
        return np.ascontiguousarray(values[..., 0])
    red, green, blue = (values[..., i].astype(np.uint32) * GREY[i] for i in range(3))
    return ((red + green + blue + 500) // 1000).astype(np.uint8)


def _bytes(values: np.ndarray, file: Path) -> np.ndarray:
    """Values as numbers from 0 to 255; MATLAB keeps images as bytes, or as fractions of 1."""
    if values.dtype == np.uint8:
        return values
    if values.dtype.kind not in "iuf" or not np.isfinite(values).all():
        raise InputError(
            f"{file}: patches is {values.dtype}, or has values that are not finite; it should hold"
            " bytes"
        )
    low, high = values.min(), values.max()
    scale = 255 if values.dtype.kind == "f" and high <= 1 else 1
    if low < 0 or high > 255:
        raise InputError(
            f"{file}: patches has values from {low:g} to {high:g}; they should be from 0 to 255"
        )
    return np.floor(values * scale + 0.5).astype(np.uint8)


def _variable(file: Path, name: str) -> np.ndarray:
    try:
        matlab.check(file)
        shapes = {known: shape for known, shape, _ in scipy.io.whosmat(file)}
        if math.prod(shapes.get(name, ())) > DENSEST * file.stat().st_size:
            raise InputError(f"{name} has the shape {shapes[name]}, too large for this file")
        matlab.must_be_numbers(file, name)
        loaded: dict[str, Any] = scipy.io.loadmat(file, variable_names=[name])
    except NotImplementedError as error:
        raise InputError(
            f"{file} is in the format of MATLAB 7.3 (HDF5), which SciPy can't read: save it again"
            " in MATLAB with the option -v7"
        ) from error
    except Exception as error:  # SciPy raises many types on damaged files
        raise InputError(
            f"{file} can't be read as a .mat file ({type(error).__name__}: {one_line(error)}):"
            " get it again"
        ) from error
    if name not in loaded:
        held = ", ".join(shapes) or "nothing"
        raise InputError(f"{file} has no variable {name!r}; it has {held}")
    return np.asarray(loaded[name])


def _name(root: Path, halves: list[Half], blocks: list[Block]) -> str:
    """The data set's name for records; it is "romepatches" only if the sizes are the published."""
    if (root / "dataset.json").is_file():
        return granted(root / "dataset.json", MADE)[0]
    faults = []
    for half, block in zip(halves, blocks, strict=True):
        (queries, matches), database = half.positive.shape, len(half.database)
        side = block.read().shape[1]
        if (queries, matches, database, side) != (QUERIES, POSITIVES, DATABASE, SIDE):
            faults.append(
                f"{half.name} has {queries} queries with {matches} matches each among {database}"
                f" patches of {side} pixels, not {QUERIES}, {POSITIVES}, {DATABASE}, {SIDE}"
            )
    return unless_wrong("romepatches", faults, root, "romepatches-sample")
