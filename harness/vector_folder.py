"""Reads and writes vectors in the format of the official HPatches tools: a CSV file for each block.

A file has one row for each patch and no header. Cells are separated by "," or ";" and may begin
with blanks. A folder may have a `descriptor.json` with facts about its vectors; without it they are
compared by L2. Its model's name begins with "csv:", so that records of other models are never mixed
with it.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32, UInt8

from harness.data import copies
from harness.distances import DISTANCES, HAMMING, L2, Distance
from harness.errors import FileMissingError, InputError
from harness.files import atomic, folders, texts
from harness.row_counters import columns_that_count
from harness.types import Block, Descriptor, Vectors, is_text

ABOUT = "descriptor.json"
PREFIX = "csv:"
PLAIN = "pandas writes vectors alone by to_csv(file, header=False, index=False)"


@dataclass(frozen=True)
class VectorFolder:
    """A model whose vectors were computed elsewhere and are read from `<root>/<block name>.csv`."""

    name: str
    root: Path
    distance: Distance
    dim: int  # columns of every file
    trained_on: frozenset[str] | None  # None if the folder does not say
    licence: str
    weights: str  # sha256 of names and contents of all CSV files: vectors take the place of weights
    revision: int = 1
    code: str = ""
    libraries: tuple[str, ...] = ()
    provider: str = "csv"
    recipe: str | None = None
    seed: int | None = None

    @property
    def width(self) -> int:
        """Number of columns of its array of vectors; 8 bits are packed into one column."""
        return self.distance.columns(self.dim)

    def file(self, block: str) -> Path:
        """The path of the file of a block; it may not exist."""
        return folders.at(self.root, f"{block}.csv")

    def read(self, block: Block) -> Vectors:
        """The vectors of one block, in the order of its patches.

        Raises:
            FileMissingError: if the folder has no file for the block.
            InputError: if a cell is not a finite number (not 0 or 1, for bits), or the number of
                rows is not that of patches; names the file, and the line of a bad cell.
        """
        file = self.file(block.name)
        if not file.is_file():
            raise FileMissingError(
                f"{self.name} has no vectors for {block.name}: no file {file}; each block of the"
                " data set needs a file, so describe these patches, too"
            )
        numbers = _numbers(file, self.dim, bits=self.distance is HAMMING)
        if len(numbers) != block.size:
            raise InputError(
                f"{file} has {len(numbers)} rows, but {block.name} has {block.size} patches, and"
                f" each patch needs one row: {_why_rows_differ(numbers, block.size)}"
            )
        return np.packbits(numbers != 0, axis=1) if self.distance is HAMMING else numbers

    def must_not_count_rows(self, blocks: Mapping[str, Vectors]) -> None:
        """Refuse vectors with a column that counts the rows in every file.

        Args:
            blocks: the vectors that `read` returned, by the name of the block.

        Raises:
            InputError: if there is such a column; names the column and a file.
        """
        bits = self.distance is HAMMING
        parts = (
            np.unpackbits(vectors, axis=1, count=self.dim) if bits else vectors
            for vectors in blocks.values()
        )
        if index := columns_that_count(parts):
            largest = max(blocks, key=lambda name: len(blocks[name]))
            raise InputError(
                f"{self.file(largest)}: column {index[0] + 1} is the number of the row (shifted or"
                f" scaled), as in all {len(blocks)} files that were read. An index is no part of a"
                f" vector: write the files without it; {PLAIN}"
            )


Model = Descriptor | VectorFolder
"""Something that is evaluated: a descriptor, or vectors that were made elsewhere."""


def open_folder(root: Path) -> VectorFolder:
    """The model of a folder of CSV files; `descriptor.json` is read, and every file is hashed.

    Raises:
        InputError: if there is no CSV file, or `descriptor.json` is not valid.
    """
    files = [file for file in folders.files(root) if file.suffix == ".csv"]
    if not files:
        raise InputError(
            f"no CSV file in {root}; the official format is {root / '<sequence>' / '<strip>.csv'}"
        )
    about = _about(root / ABOUT)
    trained_on = about.get("trained_on")
    return VectorFolder(
        name=PREFIX + about.get("name", root.resolve().name),
        root=root,
        distance=DISTANCES[about.get("distance", L2.name)],
        dim=_dim(files, root),
        trained_on=None if trained_on is None else frozenset(trained_on),
        licence=about.get("licence", "unknown"),
        weights=_sha256(files, root),
    )


def write(
    root: Path, block: str, vectors: Vectors, distance: Distance, *, dim: int | None = None
) -> Path:
    """Write the vectors of one block in the official format; reading returns the same bits.

    Args:
        root: the folder of all files.
        block: the name of the block, "v_wall/e3": its file is `<root>/v_wall/e3.csv`.
        vectors: of the dtype of `distance`; packed bits become columns of 0 and 1.
        distance: between the vectors.
        dim: number of bits to write, if they do not fill the last byte; None writes all bits.

    Raises:
        InputError: if the vectors can't be written: one column, another dtype, or not finite.
    """
    if vectors.dtype != distance.dtype:
        raise InputError(
            f"{block}: {vectors.dtype} vectors to be written, but {distance.name} distance"
            f" takes {np.dtype(distance.dtype).name}"
        )
    table = np.unpackbits(vectors, axis=1, count=dim) if distance is HAMMING else vectors
    if table.shape[1] == 1:
        raise InputError(
            f"{block}: vectors of one number can't be written, because readers of the official"
            " format take a single column for a wrong delimiter; a second, constant number changes"
            " no distance"
        )
    if not np.isfinite(table).all():
        bad = int(np.flatnonzero(~np.isfinite(table).all(axis=1))[0])
        raise InputError(f"{block}: vector {bad} is not finite and can't be written")
    file = root / f"{block}.csv"
    with atomic.writing(file) as stream:
        stream.write(_text_of_bits(table) if distance is HAMMING else _text_of_floats(table))
    return file


def describe_folder(root: Path, model: Model) -> None:
    """Write `descriptor.json`, the facts about the model that CSV files do not contain."""
    about = {
        "name": model.name.removeprefix(PREFIX),
        "distance": model.distance.name,
        "trained_on": None if model.trained_on is None else sorted(model.trained_on),
        "licence": model.licence,
    }
    atomic.write_text(root / ABOUT, json.dumps(about, indent=1) + "\n")


def _about(file: Path) -> dict[str, Any]:
    if not file.is_file():
        return {}
    wanted = {
        "name": "a name",
        "distance": f"one of {', '.join(DISTANCES)}",
        "trained_on": "a list of data names, or null if they are not known",
        "licence": "a text",
    }
    about = texts.read_json(file)
    if not isinstance(about, dict):
        raise InputError(f"{file} holds {about!r:.60}; an object of {', '.join(wanted)} is wanted")
    for key, value in about.items():
        if key not in wanted:
            raise InputError(f"{file}: unknown key {key!r}; known: {', '.join(wanted)}")
        if key == "trained_on":
            names = [] if value is None else value
            good = isinstance(names, list) and all(map(is_text, names))
        else:
            good = is_text(value)
        if not good or (key == "distance" and value not in DISTANCES):
            raise InputError(f"{file}: {key} is {value!r:.80}; it should be {wanted[key]}")
    return about


def _dim(files: Iterable[Path], root: Path) -> int:
    for file in files:
        if file.stat().st_size:  # the file of a block without patches is empty
            return _columns(file)[1]
    raise InputError(f"every CSV file in {root} is empty")


def _sha256(files: Iterable[Path], root: Path) -> str:
    digest = hashlib.sha256()
    for file in files:
        name = folders.same_form(file.relative_to(root).as_posix())
        digest.update(f"{name} {copies.digest(file)}\n".encode())
    return digest.hexdigest()


def _columns(file: Path) -> tuple[str, int]:
    """The delimiter and the number of cells of the first line."""
    with file.open(encoding="utf-8-sig", errors="replace") as stream:
        first = stream.readline()
    delimiter = ";" if ";" in first else ","
    columns = first.count(delimiter) + 1
    if columns == 1:
        raise InputError(
            f'{file} has one column: its cells must be separated by "," or ";"'
            " (and vectors of a single number are refused, as the official tools refuse them)"
        )
    return delimiter, columns


def _numbers(file: Path, dim: int, *, bits: bool) -> Float32[np.ndarray, "n dim"]:
    import pandas as pd

    if not file.stat().st_size:
        return np.empty((0, dim), np.float32)
    delimiter, columns = _columns(file)
    if columns != dim:
        raise InputError(
            f"{file} has {columns} columns where the folder's first file has {dim}:"
            " all files of one descriptor have the same number"
        )
    try:
        with np.errstate(over="ignore"):  # too large for float32: infinite, reported below
            table = pd.read_csv(
                file,
                sep=delimiter,
                header=None,
                dtype=np.float32,
                na_filter=False,  # an empty cell is an error, not NaN
                quoting=3,
                low_memory=False,
            )
    except ValueError as error:
        raise InputError(f"{file}: {_first_fault(file, delimiter, dim, bits) or error}") from error
    with file.open("rb") as stream:
        stream.seek(-1, 2)
        if stream.read() not in (b"\n", b"\r"):
            raise InputError(f"{file}: {texts.CUT}; write it again from these patches")
    numbers = np.ascontiguousarray(table.to_numpy())
    good = (numbers == 0) | (numbers == 1) if bits else np.isfinite(numbers)
    if not good.all():
        fault = _first_fault(file, delimiter, dim, bits)
        odd = np.flatnonzero(~good.all(axis=0))
        steps = np.diff(numbers[:, odd], axis=0)
        if bits and len(steps) > 1 and (counts := (steps == steps[0]).all(axis=0)).any():
            fault = f"{fault}: column {odd[counts][0] + 1} counts the rows; {PLAIN}"
        raise InputError(f"{file}: {fault}")
    return numbers


def _why_rows_differ(numbers: Float32[np.ndarray, "n dim"], patches: int) -> str:
    """Advice for a file with too many or too few rows, as the end of a message."""
    header = np.arange(numbers.shape[1])
    if len(numbers) == patches + 1 and any(np.array_equal(numbers[0], header + k) for k in (0, 1)):
        return f"its first line is a header, which counts the columns; {PLAIN}"
    return "write the file again from these patches"


def _first_fault(file: Path, delimiter: str, dim: int, bits: bool) -> str | None:
    """Locate the first malformed cell of a file; pandas does not report it."""
    with file.open(encoding="utf-8-sig", errors="replace") as stream:
        for number, line in enumerate(stream, 1):
            cells = line.strip().split(delimiter)
            if cells == [""]:
                continue
            if len(cells) != dim:
                return f"line {number} has {len(cells)} cells where the first line has {dim}"
            for column, cell in enumerate(cells, 1):
                if not _is_good(cell, bits):
                    return (
                        f"line {number}, column {column} holds {cell.strip()!r:.40}; it should be"
                        f" {'0 or 1' if bits else 'a finite number'}, and no header line"
                        f"{f'; {PLAIN}' if number == 1 else ''}"
                    )
    return None


def _is_good(cell: str, bits: bool) -> bool:
    try:
        with np.errstate(over="ignore"):
            number = np.float32(float(cell))
    except ValueError:
        return False
    return "_" not in cell and bool(number in (0, 1) if bits else np.isfinite(number))


def _text_of_floats(table: Float32[np.ndarray, "n dim"]) -> bytes:
    row = ",".join(["%.9g"] * table.shape[1]) + "\n"  # 9 digits distinguish all float32 numbers
    return (row * len(table) % tuple(table.ravel().tolist())).encode()


def _text_of_bits(table: UInt8[np.ndarray, "n dim"]) -> bytes:
    text = np.full((*table.shape, 2), ord(","), np.uint8)
    text[:, :, 0] = table + ord("0")
    text[:, -1:, 1] = ord("\n")
    return text.tobytes()
