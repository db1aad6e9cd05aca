"""HPatches strips as a Dataset: found, checked up front, read one strip at a time."""

import hashlib
import json
import logging
import struct
import zlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
from jaxtyping import Int

from harness import Block, Dataset
from harness.registry import unknown
from harness.types import Patches, Rows

NOISES = ("easy", "hard", "tough")
STRIPS = ("ref", *(f"{noise[0]}{k}" for noise in NOISES for k in range(1, 6)))
OFFICIAL = json.loads((files("protocols.hpatches") / "official.json").read_text())
"""Facts of the official release: bounds of each strip's length, task files' git blobs, splits."""

PNG = b"\x89PNG\r\n\x1a\n"
FOLDERS = ("patches", "hpatches-release", "data/hpatches-release")  # ours, and the official layouts

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class HPatches:
    """A split of a set in the official format: where each patch stands in its data set."""

    dataset: Dataset
    test: tuple[str, ...]  # sequences that are scored, in the order of splits.json
    train: tuple[str, ...]  # sequences that fit the whitening; () where the split has none
    lengths: Mapping[str, int]  # patches in each strip of a sequence
    offsets: Int[np.ndarray, "sequences 16"]  # row of the first patch of each strip; test, train
    tasks: Path | None  # the user's folder of task files

    def rows(
        self,
        sequence: Int[np.ndarray, "..."],
        kind: Int[np.ndarray, "..."],
        index: Int[np.ndarray, "..."],
        noise: str,
    ) -> Int[np.ndarray, "..."]:
        """Rows of patches given as in a task file: kind 0 is ref, k in 1..5 the k-th image."""
        first = 5 * NOISES.index(noise) + 1
        starts = self.offsets[:, [0, *range(first, first + 5)]]
        return starts.ravel()[6 * sequence + kind] + index

    def strip(self, sequence: int, name: str) -> slice:
        """Rows of one strip of a test sequence."""
        start = int(self.offsets[sequence, STRIPS.index(name)])
        return slice(start, start + self.lengths[self.test[sequence]])

    def train_rows(self) -> Rows:
        """Rows of the reference patches of the training sequences."""
        starts = self.offsets[len(self.test) :, 0]
        return np.concatenate(
            [np.arange(s, s + self.lengths[q]) for s, q in zip(starts, self.train, strict=True)]
            or [np.empty(0, np.intp)]
        )


class _Split(NamedTuple):
    test: tuple[str, ...]
    train: tuple[str, ...]


@lru_cache(maxsize=4)
def open_set(
    root: Path, split: str | None, *, allow_partial: bool = False, training: bool = False
) -> HPatches:
    """Find and check a set; no patch is decoded. `training` adds the split's training part.

    Raises:
        FileNotFoundError: if a sequence or a strip is missing.
        ValueError: if a file is damaged, or strips don't fit each other.
        LookupError: if the split is not in the user's splits.json.
    """
    patches, tasks = _folders(root)
    splits = _splits(patches, tasks)
    split = _chosen(splits, split, tasks)
    test, train = splits[split]
    asked = test
    if training and not train:
        raise ValueError(
            f"split {split!r} of {root} has no training part to fit the whitening on:"
            " take split a, b or c"
        )
    wanted = [(sequence, STRIPS) for sequence in test]
    wanted += [(sequence, STRIPS[:1]) for sequence in train if training]
    missing = [sequence for sequence, _ in wanted if not (patches / sequence).is_dir()]
    if missing:
        found = sum(folder.is_dir() for folder in patches.iterdir())
        some = ", ".join(missing[:5]) + (", ..." if len(missing) > 5 else "")
        message = (
            f"{patches} lacks {len(missing)} of {len(wanted)} sequences of split {split!r}"
            f" ({some}); it has {found} folders"
        )
        if not allow_partial or len(missing) == len(wanted):
            raise FileNotFoundError(
                f"{message}: complete it, choose another --split, or give --allow-partial"
                " to see scores that no table will take"
            )
        log.warning("%s: scores are partial and enter no table", message)
        test, train = (tuple(s for s in part if s not in missing) for part in (test, train))
        wanted = [(sequence, strips) for sequence, strips in wanted if sequence not in missing]
    train = train if training else ()
    opened = _checked(root, patches, wanted)
    dataset = replace(
        opened.dataset,
        name=_name(root, patches, split, asked, opened.lengths),
        split=split,
        sources=frozenset(f"hpatches/{sequence}" for sequence in test),
        complete=not missing,
    )
    return replace(opened, dataset=dataset, test=test, train=train, tasks=tasks)


def _checked(root: Path, patches: Path, wanted: Sequence[tuple[str, Sequence[str]]]) -> HPatches:
    """The set of all wanted strips, as one data set that has no name yet."""
    strips = [patches / sequence / f"{strip}.png" for sequence, names in wanted for strip in names]
    with ThreadPoolExecutor() as pool:  # reading and hashing let other threads run
        checks = dict(zip(strips, pool.map(_check, strips), strict=True))
    lengths: dict[str, int] = {}
    widths = {check.width for check in checks.values()}
    if len(widths) > 1:
        found = {check.width: file for file, check in checks.items()}
        examples = ", ".join(f"{width} in {file}" for width, file in sorted(found.items()))
        raise ValueError(f"{root} mixes patch widths: {examples}")
    blocks: list[Block] = []
    points: list[np.ndarray] = []
    offsets = np.full((len(wanted), len(STRIPS)), -1)
    start = point = 0
    for row, (sequence, names) in enumerate(wanted):
        files = [patches / sequence / f"{strip}.png" for strip in names]
        counts = {file: checks[file].patches for file in files}
        if len(set(counts.values())) > 1:
            odd = min(counts, key=lambda file: (list(counts.values()).count(counts[file]), file))
            raise ValueError(
                f"{odd} has {counts[odd]} patches, {files[0]} has {counts[files[0]]}: the strips of"
                " one sequence show the same points; get this sequence again"
            )
        n = lengths[sequence] = counts[files[0]]
        for column, file in enumerate(files):
            offsets[row, column] = start
            name = f"{sequence}/{file.stem}"
            blocks.append(Block(name, n, checks[file].sha256, partial(_read, file, n)))
            points.append(np.arange(point, point + n))
            start += n
        point += n
    image = np.repeat(np.arange(len(blocks)), [block.size for block in blocks])
    dataset = Dataset("", "", tuple(blocks), np.concatenate(points), image)
    return HPatches(dataset, (), (), lengths, offsets, None)


@dataclass(frozen=True)
class _Check:
    width: int
    patches: int
    sha256: str


def _check(file: Path) -> _Check:
    """Read one strip's bytes: every chunk's checksum, and a height of whole patches."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise FileNotFoundError(
            f"{file} is missing or unreadable ({error.strerror}): a sequence has the 16 strips"
            f" {', '.join(STRIPS)}"
        ) from error
    width, height = _size(file, data)
    if not width or height % width or not height:
        raise ValueError(
            f"{file} is {width} x {height} pixels: a strip is a column of square patches, so its"
            " height is a multiple of its width"
        )
    return _Check(width, height // width, hashlib.sha256(data).hexdigest())


def _size(file: Path, data: bytes) -> tuple[int, int]:
    """Width and height of a whole PNG."""
    if not data.startswith(PNG):
        raise ValueError(f"{file} is not a PNG file (it starts with {data[:8]!r}): get it again")
    at, kind, size = len(PNG), b"", (0, 0)
    while at + 12 <= len(data) and kind != b"IEND":
        (length,), kind = struct.unpack(">I", data[at : at + 4]), data[at + 4 : at + 8]
        body = data[at + 4 : at + 8 + length]
        end = at + 8 + length
        if zlib.crc32(body) != int.from_bytes(data[end : end + 4]):
            raise ValueError(f"{file} is damaged at byte {at}: get it again")
        if kind == b"IHDR":
            size = struct.unpack(">II", body[4:12])
            if body[12] > 8:
                raise ValueError(f"{file} has {body[12]} bits a sample; strips have 8")
        at = end + 4
    if kind != b"IEND":
        raise ValueError(f"{file} is cut off after {len(data)} bytes: get it again")
    return size


def _read(file: Path, n: int) -> Patches:
    image = cv2.imdecode(np.frombuffer(file.read_bytes(), np.uint8), cv2.IMREAD_GRAYSCALE)
    if image is None or image.shape[0] != n * image.shape[1]:
        raise ValueError(f"{file} can't be decoded as {n} grey patches: get it again")
    return image.reshape(n, image.shape[1], image.shape[1])


def _folders(root: Path) -> tuple[Path, Path | None]:
    if not root.is_dir():
        raise FileNotFoundError(f"{root} is not a folder: --data takes the folder of HPatches")
    inner = [root / name for name in FOLDERS if (root / name).is_dir()]
    patches = inner[0] if inner else root
    if not any(patches.glob("*/ref.png")) and not any(patches.glob("[iv]_*")):
        raise FileNotFoundError(
            f"{root} has no sequence (a folder such as v_wall with ref.png in it), directly or in"
            f" {' or '.join(FOLDERS)}"
        )
    for tasks in (root / "tasks", patches.parent / "tasks"):
        if tasks.is_dir():
            return patches, tasks
    return patches, None


def _splits(patches: Path, tasks: Path | None) -> dict[str, _Split]:
    file = tasks / "splits.json" if tasks else None
    if file is None or not file.is_file():
        everything = sorted(
            f.name for f in patches.iterdir() if f.is_dir() and any(f.glob("*.png"))
        )
        return {"full": _Split(tuple(everything), ())}
    try:
        return {
            name: _Split(tuple(map(str, one["test"])), tuple(map(str, one.get("train", ()))))
            for name, one in json.loads(file.read_text()).items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{file} is not a table of splits ({error!r}): it should map a split's name to"
            ' {"test": [sequences], "train": [sequences]}'
        ) from error


def _chosen(splits: dict[str, _Split], split: str | None, tasks: Path | None) -> str:
    if split is None:
        split = "a" if "a" in splits else next(iter(splits)) if len(splits) == 1 else None
    if split is None:
        raise LookupError(f"{tasks}/splits.json has {', '.join(splits)}: choose one with --split")
    if split not in splits:
        raise LookupError(unknown("splits", split, splits))
    return split


def _name(
    root: Path, patches: Path, split: str, asked: Sequence[str], lengths: Mapping[str, int]
) -> str:
    """The name that scores are kept under: "hpatches" only for a split of the real sequences."""
    for folder in (root, patches):
        if (folder / "dataset.json").is_file():
            return str(json.loads((folder / "dataset.json").read_text())["name"])
    bounds = OFFICIAL["lengths"]
    real = all(
        low <= n <= high for s, n in lengths.items() for low, high in [bounds.get(s, (0, 0))]
    )
    listed = hashlib.sha256("\n".join(sorted(asked)).encode()).hexdigest()
    if real and listed == OFFICIAL["split_test_sha256"].get(split):
        return "hpatches"
    return f"hpatches-{root.resolve().name.lower()}"
