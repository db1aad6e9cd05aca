"""The task files of HPatches: the user's files or, if there are none, made by the official recipe.

Made files differ from the official ones: a few numbers of patches were off by one when those were
made, so with the known numbers no made verification file has the git blob of its official twin. So
a split with made files is named "...@generated-tasks", and shares no table with official scores.
"""

import csv
import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from io import StringIO
from pathlib import Path
from typing import TypeVar

import numpy as np
import pandas as pd
from jaxtyping import Int

from harness import Dataset
from harness import cache as caches
from harness.errors import FileMissingError, InputError, one_line
from harness.files import atomic, folders, texts
from protocols.hpatches.reader import OFFICIAL, HPatches, open_set
from protocols.naming import remarked

VERIFICATION = tuple(f"verif_{k}_split-{{}}.csv" for k in ("pos", "neg_intra", "neg_inter"))
RETRIEVAL = ("retr_queries_split-{}.csv", "retr_distractors_split-{}.csv")
PAIRS, QUERIES, DISTRACTORS = 1_000_000, 10_000, 20_000  # rows of the official files
FLAT = 10  # reference patches with a standard deviation up to this are not used in retrieval
SEED = 42
VERSION = 1  # raised whenever the recipe could draw other rows

log = logging.getLogger(__name__)

Column = Int[np.ndarray, " n"]
Writer = Callable[[HPatches, Sequence[Path]], None]


@dataclass(frozen=True, eq=False)
class PatchPairs:
    """Pairs of patches to verify; a sequence's number is its index in the split's test list."""

    s1: Column
    t1: Column
    idx1: Column
    s2: Column
    t2: Column
    idx2: Column

    def take(self, rows: Column) -> "PatchPairs":
        """The pairs at these rows, in this order."""
        return PatchPairs(*(getattr(self, column.name)[rows] for column in fields(self)))


@dataclass(frozen=True, eq=False)
class Verification:
    """The three files of the verification task; row i of each has the same first patch.

    Rows are sorted by the first patch's sequence, so that patches of a sequence are read together.
    `place` is the index of a row in its file.
    """

    positive: PatchPairs
    intra: PatchPairs
    inter: PatchPairs
    place: Column


@dataclass(frozen=True, eq=False)
class Patchlist:
    """Reference patches: number s of the test sequence, and index idx in its strip."""

    s: Column
    idx: Column

    def take(self, rows: Column) -> "Patchlist":
        """The patches at these rows, in this order."""
        return Patchlist(self.s[rows], self.idx[rows])


@dataclass(frozen=True, eq=False)
class Retrieval:
    """The two files of the retrieval task."""

    queries: Patchlist
    distractors: Patchlist


Columns = TypeVar("Columns", PatchPairs, Patchlist)


def verification(opened: HPatches) -> tuple[Verification, Dataset]:
    """The verification task, and its data set, whose name tells the origin of the task files."""
    files, dataset = _files(opened, VERIFICATION, _write_verification)
    tables = [_read(file, opened, PatchPairs) for file in files]
    for column in ("s1", "t1", "idx1"):
        first = getattr(tables[0], column)
        if not all(np.array_equal(first, getattr(other, column)) for other in tables[1:]):
            raise InputError(
                f"{_all(files)} differ in {column}: each row must have the"
                " same first patch in all three; take the files of one split from one source"
            )
    there = np.all([(table.s1 >= 0) & (table.s2 >= 0) for table in tables], axis=0)
    rows = np.flatnonzero(there)  # the same rows of all three files
    if not rows.size:
        raise InputError(f"{_all(files)} hold no pair of the sequences that exist")
    return sorted_by_sequence(*(table.take(rows) for table in tables)), dataset


def sorted_by_sequence(positive: PatchPairs, intra: PatchPairs, inter: PatchPairs) -> Verification:
    """The verification task from three tables whose rows are in the files' order."""
    place = np.argsort(positive.s1, kind="stable")
    return Verification(positive.take(place), intra.take(place), inter.take(place), place)


def retrieval(opened: HPatches) -> tuple[Retrieval, Dataset]:
    """The retrieval task, and its data set, whose name tells the origin of the task files."""
    files, dataset = _files(opened, RETRIEVAL, _write_retrieval)
    tables = [_read(file, opened, Patchlist) for file in files]
    queries, distractors = (table.take(np.flatnonzero(table.s >= 0)) for table in tables)
    if not queries.s.size or not distractors.s.size:
        raise InputError(f"{_all(files)} hold no query or no distractor of the existing sequences")
    if len(opened.test) == 1:  # a query's pool does not include its own sequence
        raise InputError(
            f"retrieval has no distractor, since {opened.test[0]} is the only sequence: evaluate"
            " only verification and matching, or take more sequences"
        )
    return Retrieval(queries, distractors), dataset


def make(folder: Path) -> None:
    """Write the task files of all splits of a set, by the official recipe."""
    for split in texts.read_json(folder / "tasks" / "splits.json"):
        opened = open_set(folder, split)
        for names, write in ((VERIFICATION, _write_verification), (RETRIEVAL, _write_retrieval)):
            write(opened, [folder / "tasks" / name.format(split) for name in names])


def matching(opened: HPatches) -> tuple[None, Dataset]:
    """The data set of the matching task, which has no task file besides the split."""
    truth = hashlib.sha256("\n".join(opened.test).encode()).hexdigest()
    return None, replace(opened.dataset, truth=truth)


def _files(opened: HPatches, names: Sequence[str], write: Writer) -> tuple[list[Path], Dataset]:
    """The task files of a split; the data set with their hash, and a remark if one is needed."""
    dataset = opened.dataset
    wanted = [name.format(dataset.split) for name in names]
    own_files = {name: opened.tasks / name for name in wanted if opened.tasks}
    there = {name for name, file in own_files.items() if file.is_file()}
    if there and there != set(wanted):
        raise FileMissingError(
            f"{opened.tasks} has {', '.join(sorted(there))} but lacks"
            f" {', '.join(sorted(set(wanted) - there))}: their rows belong together, so add the"
            " missing files, or move the others away: then all are made by the official recipe"
        )
    files = [own_files[name] for name in wanted] if there else _generated(opened, wanted, write)
    contents = [file.read_bytes() for file in files]
    official = all(
        _git_blob(content) == OFFICIAL["git_blob_sha1"].get(name)
        for name, content in zip(wanted, contents, strict=True)
    )
    remarks = [] if there else ["generated-tasks"]
    if there and dataset.name == "hpatches" and not official:
        log.warning("%s differ from the official files", _all(files))
        remarks = ["own-tasks"]
    truth = hashlib.sha256(b"".join(contents)).hexdigest()
    split = dataset.split if official else remarked(dataset.split, *remarks)
    return files, replace(dataset, split=split, truth=truth)


def _all(files: Sequence[Path]) -> str:
    return ", ".join(map(str, files))


def _git_blob(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _read(file: Path, opened: HPatches, form: type[Columns]) -> Columns:
    """One task file as numbers; a missing sequence, if that is allowed, has the number -1."""
    columns = [column.name for column in fields(form)]
    sequences = [column for column in columns if column[0] == "s"]
    types = {column: "category" if column in sequences else "int32" for column in columns}
    try:
        with np.errstate(invalid="ignore"):  # pandas raises an error for a failed cast
            table = pd.read_csv(StringIO(texts.read_table(file)), dtype=types)
    except (ValueError, OverflowError, OSError) as error:
        raise InputError(f"{file} can't be read as a task file: {one_line(error)}") from error
    if set(table.columns) != set(columns):
        raise InputError(
            f"{file} has the columns {', '.join(table.columns)}; {', '.join(columns)} are wanted"
        )
    number = {sequence: i for i, sequence in enumerate(opened.test)}
    for column in sequences:
        names = table[column].cat.categories
        code = np.array([number.get(folders.same_form(str(name)), -1) for name in names], np.int32)
        table[column] = np.append(code, np.int32(-1))[table[column].cat.codes]
    known = (table[sequences] >= 0).all(axis=1)
    if not known.all() and opened.dataset.complete:
        raise InputError(
            f"{file}, line {_line(~known)}: a sequence that is not in the test list of split"
            f" {opened.dataset.split!r}"
        )
    length = np.array([opened.lengths[sequence] for sequence in opened.test])
    for column in columns:
        kind, digit = column.rstrip("12"), column[-1] if column[-1] in "12" else ""
        if kind == "s":
            continue
        row_sequence = table[f"s{digit}"]
        bound = 6 if kind == "t" else length[row_sequence]
        bad = (row_sequence >= 0) & ((table[column] < 0) | (table[column] >= bound))
        if bad.any():
            raise InputError(
                f"{file}, line {_line(bad)}: {column} is {table[column][bad].iloc[0]}, beyond the"
                " strips of this data set; the file belongs to another set"
            )
    return form(*(table[column].to_numpy(np.int32) for column in columns))


def _line(bad: "pd.Series[bool]") -> int:
    return int(np.argmax(bad.to_numpy())) + 2  # counted from 1, after the header


def _generated(opened: HPatches, names: Sequence[str], write: Writer) -> list[Path]:
    """Task files by the official recipe, made once for this data set and kept in the cache."""

    def make(folder: Path) -> None:
        log.info(
            "making %s by the official recipe; files that differ from the official ones add"
            " 'generated-tasks' to the name of the split", " and ".join(names),
        )  # fmt: skip
        write(opened, [folder / name for name in names])
        caches.sum_up(folder)

    identity = [str(VERSION), opened.dataset.sha256, opened.dataset.split, *opened.test]
    key = hashlib.sha256(" ".join([*identity, *names]).encode()).hexdigest()[:16]
    folder = caches.folder("tasks", key, make=make, is_whole=caches.is_as_summed)
    return [folder / name for name in names]


def _write_verification(opened: HPatches, files: Sequence[Path]) -> None:
    """Write the verification files; the order of the draws is the official one."""
    lonely = [sequence for sequence in opened.test if opened.lengths[sequence] < 2]
    if lonely:
        raise InputError(
            f"{opened.dataset.name} has only one patch of {', '.join(lonely)}: verification"
            " compares two patches of a sequence; take it out of the test list"
        )
    random = np.random.RandomState(SEED)  # the legacy generator, as for the official files
    test, length = _sequences(opened)
    pairs = min(PAIRS, 50 * int(length.sum()))
    s = random.choice(len(test), pairs)
    idx = _first_two(random, length[s].tolist())
    t = _first_two_of(random, 5, pairs)  # 0 to 4, so strip 5 never occurs
    other = random.choice(len(test), pairs)
    other_idx = random.randint(length[other])
    s, other = test[s], test[other]
    second = {"pos": (s, idx[:, 0]), "neg_intra": (s, idx[:, 1]), "neg_inter": (other, other_idx)}
    for file, (s2, idx2) in zip(files, second.values(), strict=True):
        _write(
            file, {"s1": s, "t1": t[:, 0], "idx1": idx[:, 0], "s2": s2, "t2": t[:, 1], "idx2": idx2}
        )


def _first_two(random: np.random.RandomState, lengths: Sequence[int]) -> Int[np.ndarray, "n 2"]:
    """The first two items of a permutation of each length, copied: a slice would keep it all."""
    out = np.empty((len(lengths), 2), np.int64)
    for row, length in zip(out, lengths, strict=True):
        row[:] = random.permutation(length)[:2]
    return out


def _first_two_of(
    random: np.random.RandomState, length: int, count: int
) -> Int[np.ndarray, "count 2"]:
    """The first two items of many permutations of one short length, as `_first_two` draws them.

    A permutation swaps item i with a random one up to i, for i = length - 1, ..., 1. The same
    numbers are drawn here for all permutations at once; then the swaps are followed backwards.
    """
    bounds = np.tile(np.arange(length, 1, -1), count)
    drawn = random.randint(bounds).reshape(count, length - 1)[:, ::-1]
    item = np.stack([1 - drawn[:, 0], drawn[:, 0]], axis=1)
    for i in range(2, length):
        item = np.where(item == drawn[:, i - 1 : i], i, item)
    return item


def _sequences(opened: HPatches) -> tuple[np.ndarray, Column]:
    """The names of the tested sequences, and the patches in a strip of each."""
    return np.array(opened.test), np.array([opened.lengths[name] for name in opened.test])


def _write_retrieval(opened: HPatches, files: Sequence[Path]) -> None:
    """Write the retrieval files: queries, then distractors, without flat or repeated patches."""
    random = np.random.RandomState(SEED)
    test, length = _sequences(opened)
    patches = int(length.sum())
    queries = min(QUERIES, patches // 2)
    distractors = min(DISTRACTORS, patches - queries)
    structured = _structured(opened)
    chosen: list[dict[tuple[str, int], None]] = []
    for draws in (4 * queries, 10 * distractors):
        s = random.choice(len(test), draws)
        idx = random.randint(length[s])
        drawn = zip(test[s].tolist(), idx.tolist(), strict=True)
        chosen.append(dict.fromkeys(patch for patch in drawn if structured[patch[0]][patch[1]]))
    kept = list(chosen[0])[:queries]
    queried = set(kept)
    rest = [patch for patch in chosen[1] if patch not in queried][:distractors]
    if not kept or not rest:
        raise InputError(
            f"{opened.dataset.name} has too few structured reference patches for retrieval:"
            f" {len(kept)} queries and {len(rest)} distractors were drawn from {patches} patches"
        )
    for file, rows in zip(files, (kept, rest), strict=True):
        _write(file, {"s": [s for s, _ in rows], "idx": [i for _, i in rows]})


def _structured(opened: HPatches) -> dict[str, np.ndarray]:
    """Which reference patches deviate by more than FLAT; integers give the same on any machine."""
    blocks = {block.name: block for block in opened.dataset.blocks}
    structured = {}
    for sequence in opened.test:
        patches = blocks[f"{sequence}/ref"].read().astype(np.int64)
        n = patches[0].size
        total, squares = patches.sum(axis=(1, 2)), np.square(patches).sum(axis=(1, 2))
        structured[sequence] = n * squares - total**2 > FLAT**2 * n**2
    return structured


def _write(file: Path, columns: Mapping[str, Sequence[object] | np.ndarray]) -> None:
    text = pd.DataFrame(columns).to_csv(index=False, lineterminator="\n", quoting=csv.QUOTE_NONE)
    atomic.write_text(file, text)
