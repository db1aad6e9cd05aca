"""HPatches strips as a Dataset: all are checked first, then read one strip at a time."""

import hashlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from jaxtyping import Int

from harness import Block, Dataset, data_names
from harness.errors import FileMissingError, InputError
from harness.files import folders
from harness.types import Rows
from harness.verified import Stamp, stamp
from protocols.hpatches import splits, strips
from protocols.hpatches.splits import Split
from protocols.naming import after_folder, granted, unless_wrong
from protocols.official import official

NOISES = ("easy", "hard", "tough")
STRIPS = ("ref", *(f"{noise[0]}{k}" for noise in NOISES for k in range(1, 6)))
OFFICIAL = official("hpatches")
"""Facts of the official release: bounds of each strip's length, hashes of some pixels, git blobs of
the task files, splits."""

UNCHECKED = (
    "the pixels of HPatches' strips; only their size and number are known, and the pixels of"
    f" {', '.join(OFFICIAL['pixels_sha256'])}."
)

SIDE = 65  # pixels of an official patch
# Our layout, the official layouts, and a folder of many data sets.
FOLDERS = ("patches", "hpatches-release", "data/hpatches-release", "hpatches/patches")
MADE = ("hpatches-sample", "hpatches-mini", "hpatches-built-NAME")  # names a dataset.json may give

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class HPatches:
    """A split of a set in the official format, with the row of each patch in its data set."""

    dataset: Dataset
    test: tuple[str, ...]  # sequences that are scored, in the order of splits.json
    train: tuple[str, ...]  # sequences that fit the whitening; () if not asked for
    lengths: Mapping[str, int]  # patches in each strip of a sequence
    offsets: Int[np.ndarray, "sequences 16"]  # first row of each strip; test before train
    tasks: Path | None  # the user's folder of task files

    def rows(
        self,
        sequence: Int[np.ndarray, "..."],
        kind: Int[np.ndarray, "..."],
        index: Int[np.ndarray, "..."],
        noise: str,
    ) -> Int[np.ndarray, "..."]:
        """Rows of patches that are given as in a task file: kind 0 is ref, k in 1..5 is strip k."""
        first = 5 * NOISES.index(noise) + 1
        starts = self.offsets[:, [0, *range(first, first + 5)]]
        return starts.ravel()[6 * sequence + kind] + index

    def strip(self, sequence: int, name: str) -> slice:
        """Rows of one strip of a test sequence."""
        start = int(self.offsets[sequence, STRIPS.index(name)])
        return slice(start, start + self.lengths[self.test[sequence]])

    def sequence_rows(self, sequence: int) -> Rows:
        """Rows of all strips of a test sequence."""
        start = int(self.offsets[sequence, 0])
        return np.arange(start, start + len(STRIPS) * self.lengths[self.test[sequence]])

    def train_rows(self) -> Rows:
        """Rows of the reference patches of the training sequences."""
        starts = self.offsets[len(self.test) :, 0]
        return np.concatenate(
            [np.arange(s, s + self.lengths[q]) for s, q in zip(starts, self.train, strict=True)]
            or [np.empty(0, np.intp)]
        )


def open_set(
    root: Path, split: str | None, *, allow_partial: bool = False, training: bool = False
) -> HPatches:
    """Find and check a set; no patch is decoded. `training` adds the split's training part.

    If the same strips are opened again, they are not read again, and the blocks are the same.

    Raises:
        FileMissingError: if a sequence or a strip is missing.
        InputError: if a file is damaged, or strips of a sequence disagree.
        UnknownNameError: if the split is not in the user's splits.json.
    """
    patches = _patches(root)
    places = list(dict.fromkeys([root / "tasks", patches.parent / "tasks"]))
    tasks = next((folder for folder in places if folder.is_dir()), None)
    split, asked = splits.choose(split, patches, [tasks] if tasks else places)
    if training and not asked.train:
        raise InputError(
            f"split {split!r} of {root} has no training part to fit the whitening on:"
            " take split a, b or c, of a built set half"
        )
    asked = asked if training else asked._replace(train=())
    left = _present(patches, split, asked, allow_partial=allow_partial)
    wanted = [[_strip(patches, s, strip) for strip in STRIPS] for s in left.test]
    wanted += [[_strip(patches, s, STRIPS[0])] for s in left.train]
    table = _checked(
        tuple(map(tuple, wanted)), tuple(stamp(file) for files in wanted for file in files)
    )
    known = _identified(root, patches, split, asked, table)
    dataset = Dataset(
        known.name,
        split,
        table.blocks,
        table.point,
        table.image,
        sources=_sources(known, left.test),
        complete=left == asked,
        unchecked=known.unchecked,
    )
    return HPatches(dataset, left.test, left.train, table.lengths, table.offsets, tasks)


def holds_sequences(root: Path) -> bool:
    """Whether a folder has sequences, or parts of sequences."""
    patches = _inner(root)
    if not patches.is_dir():
        return False
    inner = folders.entries(patches)
    return any(
        entry.name.startswith(("i_", "v_")) or (entry / "ref.png").exists() for entry in inner
    )


def open_training(root: Path, wanted: Sequence[str] = STRIPS) -> Dataset:
    """All patches of these strips of the training sequences of the default split.

    Raises:
        FileMissingError: if a sequence or a strip is missing.
        InputError: if a file is damaged, or the split has no training part.
    """
    patches = _patches(root)
    split, asked = splits.choose(None, patches, [root / "tasks", patches.parent / "tasks"])
    if not asked.train:
        raise InputError(f"split {split!r} of {root} has no training part: take it from split a")
    _present(patches, split, asked._replace(test=()), allow_partial=False)
    files = tuple(tuple(_strip(patches, s, strip) for strip in wanted) for s in asked.train)
    table = _checked(
        files, tuple(stamp(file) for sequence_files in files for file in sequence_files)
    )
    known = _identified(root, patches, split, asked, table)
    return Dataset(
        known.name,
        f"{split}@train" if len(wanted) == len(STRIPS) else f"{split}@train:{','.join(wanted)}",
        table.blocks,
        table.point,
        table.image,
        sources=_sources(known, asked.train),
        unchecked=known.unchecked,
    )


def _strip(patches: Path, sequence: str, strip: str) -> Path:
    return folders.at(patches, sequence) / f"{strip}.png"


def _inner(root: Path) -> Path:
    inner = [root / name for name in FOLDERS if (root / name).is_dir()]
    return inner[0] if inner else root


def _patches(root: Path) -> Path:
    """The folder of sequences, below `root` or `root` itself."""
    if not root.is_dir():
        raise FileMissingError(f"{root} is not a folder: --data takes the folder of HPatches")
    patches = _inner(root)
    if not holds_sequences(root):
        raise FileMissingError(
            f"{root} has no sequence (a folder such as v_wall with ref.png in it), directly or in"
            f" {' or '.join(FOLDERS)}"
        )
    return patches


def _present(patches: Path, split: str, asked: Split, *, allow_partial: bool) -> Split:
    """The sequences of a split that exist; all must exist unless the user allows a part."""
    sequences = asked.test + asked.train
    missing = [name for name in sequences if not folders.at(patches, name).is_dir()]
    if not missing:
        return asked
    folder_count = len(folders.folders(patches))
    some = ", ".join(missing[:5]) + (", ..." if len(missing) > 5 else "")
    message = (
        f"{patches} lacks {len(missing)} of {len(sequences)} sequences of split {split!r}"
        f" ({some}); it has {folder_count} folders"
    )
    if not allow_partial:
        raise FileMissingError(
            f"{message}: complete it, choose another --split, or give --allow-partial"
            " to see scores that appear in no table"
        )
    left = Split(*(tuple(s for s in part if s not in missing) for part in asked))
    for kind, before, after in zip(Split._fields, asked, left, strict=True):
        if before and not after:
            raise FileMissingError(
                f"{message}: no {kind} sequence is left; complete it, or choose another --split"
            )
    log.warning("%s: scores are partial and appear in no table", message)
    return left


@dataclass(frozen=True, eq=False)
class _CheckedStrips:
    """Checked strips, and the rows of their patches."""

    blocks: tuple[Block, ...]
    point: Rows
    image: Rows
    lengths: Mapping[str, int]
    offsets: Int[np.ndarray, "sequences 16"]
    width: int


@lru_cache(maxsize=4)  # the three tasks of one command share strips; `stamps` detect changes
def _checked(
    wanted: tuple[tuple[Path, ...], ...], stamps: tuple[Stamp | None, ...]
) -> _CheckedStrips:
    """The strips of each sequence, each checked, and checked against each other."""
    every = [file for files in wanted for file in files]
    log.info("checking %d strips of %s", len(every), every[0].parent.parent)
    checked = dict(zip(every, strips.check_all(every), strict=True))
    example = {strip.width: file for file, strip in checked.items()}
    if len(example) > 1:
        widths = ", ".join(f"{width} in {file}" for width, file in sorted(example.items()))
        raise InputError(f"{every[0].parent.parent} mixes patch widths: {widths}")
    blocks: list[Block] = []
    points: list[np.ndarray] = []
    lengths: dict[str, int] = {}
    offsets = np.full((len(wanted), len(STRIPS)), -1)
    start = point = 0
    for row, files in enumerate(wanted):
        sequence = folders.same_form(files[0].parent.name)
        counts = {file: checked[file].patches for file in files}
        if len(set(counts.values())) > 1:
            odd = min(counts, key=lambda file: (list(counts.values()).count(counts[file]), file))
            raise InputError(
                f"{odd} has {counts[odd]} patches, {files[0]} has {counts[files[0]]}: the strips of"
                " one sequence show the same points; get this sequence again"
            )
        n = lengths[sequence] = counts[files[0]]
        for column, file in enumerate(files):
            offsets[row, column] = start
            strip = checked[file]
            name = f"{sequence}/{file.stem}"
            blocks.append(Block(name, n, strip.sha256, partial(strips.read, strip)))
            points.append(np.arange(point, point + n))
            start += n
        point += n
    image = np.repeat(np.arange(len(blocks)), [block.size for block in blocks])
    return _CheckedStrips(
        tuple(blocks), np.concatenate(points), image, lengths, offsets, checked[every[0]].width
    )


@dataclass(frozen=True)
class _Identity:
    """The identity of a data set."""

    name: str  # the data set's name for records
    origins: Mapping[str, str]  # of sequences, if known
    unchecked: tuple[str, ...] = ()


def _identified(
    root: Path, patches: Path, split: str, asked: Split, table: _CheckedStrips
) -> _Identity:
    """The identity of a set; it is "hpatches" only if all known facts of the official set hold."""
    for file in (root / "dataset.json", patches / "dataset.json"):
        if file.is_file():
            name, about = granted(file, *MADE)
            return _Identity(name, _origins(about.get("sequences", {}), file))
    made = ("hpatches-sample", "hpatches-built-")
    if not set(asked.test + asked.train) <= OFFICIAL["lengths"].keys():
        return _Identity(after_folder("hpatches", root, *made), {})
    name = unless_wrong("hpatches", [*_faults(patches, split, asked, table)], root, *made)
    return _Identity(name, {}, (UNCHECKED,) if name == "hpatches" else ())


def _faults(patches: Path, split: str, asked: Split, table: _CheckedStrips) -> Iterator[str]:
    """Yields the known differences of a set with official names from the official set."""
    if table.width != SIDE:
        yield f"patches are {table.width} pixels wide, not {SIDE}"
    for part, sequences in asked._asdict().items():
        listed = hashlib.sha256("\n".join(sorted(sequences)).encode()).hexdigest()
        if sequences and listed != OFFICIAL[f"split_{part}_sha256"].get(split):
            yield f"its split {split} has other sequences to {part}"
    for sequence, n in table.lengths.items():
        low, high = OFFICIAL["lengths"][sequence]
        if not low <= n <= high:
            wanted = low if low == high else f"{low} to {high}"
            yield f"{sequence} has {n} patches, not {wanted}"
    for name, known in OFFICIAL["pixels_sha256"].items():
        file = patches / f"{name}.png"  # checked if it exists, also outside the split
        if file.is_file():
            strip = strips.check(file)
            if hashlib.sha256(strips.read(strip).tobytes()).hexdigest() != known:
                yield f"{file} has other pixels"


def _origins(made: object, file: Path) -> Mapping[str, str]:
    """The origins of the sequences of a set that was built here, as its builder wrote them."""
    if not isinstance(made, dict) or not all(isinstance(facts, dict) for facts in made.values()):
        raise InputError(
            f"{file}: its sequences are {made!r:.60}; facts by the name of each sequence are"
            " wanted: correct the file, or move it away to name the set by its folder"
        )
    return {name: str(facts["origin"]) for name, facts in made.items() if "origin" in facts}


def _sources(known: _Identity, test: tuple[str, ...]) -> frozenset[str]:
    """All names of the tested patches' data; no sequence of the sample has an official name."""
    named = {f"{known.name}/{sequence}" for sequence in test}
    official = {f"hpatches/{sequence}" for sequence in test if sequence in OFFICIAL["lengths"]}
    names = data_names.known()
    origins = {names.declared(known.origins[s]) for s in test if s in known.origins}
    return frozenset(named | official | origins)
