"""Reads a scene in the official PhotoTour format: text is checked first, tiles are memory-mapped.

A scene is a folder of these files:
- Tiles `patches0000.bmp`, `patches0001.bmp`, ...: 16 x 16 patches of 64 x 64 pixels each, row by
  row; the last tile is padded.
- `info.txt`: a line a patch; its first number is the number of the patch's 3-D point.
- Lists of pairs `m50_*.txt`: columns 1 and 4 are patches counted from 0, 2 and 5 their points.
- `interest.txt`, optional: the first number is the reference image, in which the point was found.
Further columns are ignored, but all lines of a file must have the same number of columns.
"""

import hashlib
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Int, UInt8

from harness import Block, verified
from harness.data import copies
from harness.errors import FileMissingError, InputError
from harness.files import folders, texts
from harness.types import Patches, Rows
from protocols.phototour.writer import GRID, PIXELS, SIDE, TILE

CHECK = "phototour tile 1"  # kind of the facts that are kept of a tile: its sha256
TOGETHER = 16  # tiles of a block: at most 16 MiB of patches
TEST = "m50_100000_100000_0.txt"  # the pairs of papers' results
NUMBERED = re.compile(r"patches(\d+)\.bmp", re.IGNORECASE)
LARGEST = 2**53  # a float represents every whole number up to this
AGAIN = "get the scene again"

Numbers = Int[np.ndarray, "_"]
"""Whole numbers; arrays of this type may differ in length."""


@dataclass(frozen=True)
class Tile:
    """One bitmap: the offset of its pixels, and the order of its rows."""

    file: Path
    offset: int  # bytes
    upright: bool  # whether the top row comes first; bitmaps usually begin with the bottom row


@dataclass(frozen=True, eq=False)
class PatchScene:
    """A scene whose info.txt was read and whose tiles were found; no pixel was read."""

    name: str
    folder: Path
    point: Rows  # the point of every patch, numbered within the scene
    tiles: tuple[Tile, ...]

    def __len__(self) -> int:
        """The number of patches."""
        return len(self.point)


@dataclass(frozen=True, eq=False)
class PairList:
    """A list of pairs of patches of one scene."""

    file: Path
    a: Rows
    b: Rows
    match: Bool[np.ndarray, " m"]

    @property
    def sha256(self) -> str:
        """Hash of the numbers; line ends and unused columns do not change it."""
        return sha256(self.a, self.b, self.match)


def read_scene(folder: Path, name: str | None = None) -> PatchScene:
    """The scene in a folder; every tile's header and length is checked.

    Args:
        folder: of the scene.
        name: of the scene; None takes the folder's name, after following links.

    Raises:
        FileMissingError: if info.txt or a tile is missing.
        InputError: if a file is damaged, or the numbers of tiles and lines disagree.
    """
    point = _whole(_table(folder / "info.txt", 1)[:, 0], folder / "info.txt")
    lines = f"{folder / 'info.txt'} has {len(point)} lines"
    files = _numbered(folder, -(-len(point) // TILE), lines)
    if (len(files) - 1) * TILE >= len(point):
        raise InputError(
            f"{folder} has {len(files)} tiles, and {lines}, which {-(-len(point) // TILE)} tiles"
            f" would hold: the text is cut off, or tiles of another scene lie there; {AGAIN}"
        )
    interest = folder / "interest.txt"
    if interest.is_file() and (count := _lines(interest)) != len(point):
        raise InputError(f"{interest} has {count} lines, and {lines}: one is cut off; {AGAIN}")
    name = folder.resolve().name if name is None else name
    return PatchScene(name, folder, point, tuple(_tile(file) for file in files))


def read_pairs(scene: PatchScene, name: str | None = None) -> PairList:
    """The pairs of a list; None takes the papers' list or, if it is missing, the largest list.

    Raises:
        FileMissingError: if there is no such list.
        InputError: if the name has a folder in it, or the list is not as long as its name says,
            or disagrees with info.txt.
    """
    if name is not None and (name in ("", ".", "..") or re.search(r"[/\\\0]", name)):
        raise InputError(
            f"pairs is {name!r}: give the plain name of a file in the scene's folder, as {TEST}"
        )
    file = scene.folder / (_largest(scene.folder) if name is None else name)
    if not file.is_file():
        others = ", ".join(_lists(scene.folder))
        raise FileMissingError(f"{file} is missing; {scene.folder} has {others or 'no such list'}")
    column = _whole(_table(file, 5)[:, [0, 3, 1, 4]], file)
    rows, points = column[:, :2], column[:, 2:]
    named = re.fullmatch(r"m50_(\d+)_\1_\d+\.txt", file.name)
    if named and len(rows) != int(named[1]):
        raise InputError(
            f"{file} has {len(rows)} lines, its name says {named[1]}: it is cut off or another"
            f" list; {AGAIN}"
        )
    outside = np.flatnonzero(((rows < 0) | (rows >= len(scene))).any(axis=1))
    if outside.size:
        raise InputError(
            f"{file}, line {_line(file, outside[0])}: patches {rows[outside[0]].tolist()}, but the"
            f" scene has {len(scene)} (lines of info.txt); {AGAIN}"
        )
    wrong = np.flatnonzero((scene.point[rows] != points).any(axis=1))
    if wrong.size:
        raise InputError(
            f"{file}, line {_line(file, wrong[0])}: patches {rows[wrong[0]].tolist()} show points"
            f" {points[wrong[0]].tolist()}, in info.txt {scene.point[rows[wrong[0]]].tolist()}"
            f" ({wrong.size} of {len(rows)} pairs disagree): files of two scenes; {AGAIN}"
        )
    match = points[:, 0] == points[:, 1]
    if match.all() or not match.any():
        raise InputError(
            f"{file} has {np.count_nonzero(match)} matches among {len(match)} pairs: both matches"
            " and non-matches are needed"
        )
    return PairList(file, rows[:, 0], rows[:, 1], match)


def read_reference_images(scene: PatchScene) -> Rows:
    """The number of the reference image of each patch's point.

    Raises:
        FileMissingError: if the scene has no interest.txt.
        InputError: if the file is cut off.
    """
    file = scene.folder / "interest.txt"
    return _whole(_table(file, 1)[:, 0], file)


def blocks(scene: PatchScene, rows: Rows | None = None) -> tuple[Block, ...]:
    """The patches of a scene as blocks of up to 16 tiles.

    Tiles are hashed, but for those that did not change since an earlier run.

    Args:
        scene: from `read_scene`.
        rows: the wanted patches, ascending, without repeats; None takes all.
    """
    rows = np.arange(len(scene)) if rows is None else rows
    tiles = np.unique(rows // TILE).tolist()
    files = [scene.tiles[number].file for number in tiles]
    hashes = verified.facts(CHECK, files, lambda file: [copies.digest(file)])
    known = {number: sha256 for number, (sha256,) in zip(tiles, hashes, strict=True)}
    made = []
    for first in dict.fromkeys(number - number % TOGETHER for number in tiles):
        part = rows[slice(*np.searchsorted(rows, [first * TILE, (first + TOGETHER) * TILE]))]
        part = part - first * TILE
        together = scene.tiles[first : first + TOGETHER]
        digest = hashlib.sha256(part.astype("<i8").tobytes())
        for number in np.unique(part // TILE).tolist():
            digest.update(f"{number} {known[first + number]}\n".encode())
        name = f"{scene.name}/{first:04}-{first + len(together) - 1:04}"
        made.append(Block(name, len(part), digest.hexdigest(), partial(_read, together, part)))
    return tuple(made)


def _read(tiles: Sequence[Tile], rows: Rows) -> Patches:
    """The patches at these rows; row 0 is the first patch of the first tile."""
    out = np.empty((len(rows), SIDE, SIDE), np.uint8)
    for number, tile in enumerate(tiles):
        part = slice(*np.searchsorted(rows, [number * TILE, (number + 1) * TILE]))
        if part.start < part.stop:
            row, column = np.divmod(rows[part] - number * TILE, GRID)
            out[part] = _pixels(tile).reshape(GRID, SIDE, GRID, SIDE)[row, :, column]
    return out


def _pixels(tile: Tile) -> UInt8[np.ndarray, "1024 1024"]:
    mapped = np.memmap(tile.file, np.uint8, "r", tile.offset, (PIXELS, PIXELS))
    return mapped if tile.upright else mapped[::-1]


def _tile(file: Path) -> Tile:
    """The tile in a bitmap, after a check of its headers, palette and length."""
    with file.open("rb") as stream:
        head = stream.read(14 + 4)
        if len(head) < 18 or head[:2] != b"BM":
            raise InputError(f"{file} is no bitmap (it starts with {head[:8]!r}); {AGAIN}")
        offset, length = struct.unpack("<II", head[10:18])
        rest = stream.read(max(offset - len(head), 0)) if offset < 1 << 16 else b""
        size = stream.seek(0, 2)
    core = length == 12  # the oldest header: 16-bit numbers, colours of 3 bytes
    if len(rest) < offset - 18 or offset < 14 + length or not (core or 40 <= length):
        raise InputError(f"{file} is cut off after {size} bytes, or its header is damaged; {AGAIN}")
    if core:
        width, height, _, bits = struct.unpack("<HHHH", rest[:8])
        packing = colours = 0
    else:
        width, height, _, bits, packing = struct.unpack("<iiHHI", rest[:16])
        (colours,) = struct.unpack("<I", rest[28:32])
    if (width, abs(height), bits, packing) != (PIXELS, PIXELS, 8, 0):
        raise InputError(
            f"{file} is {width} x {abs(height)} pixels of {bits} bits"
            f"{', compressed' * bool(packing)}; a tile has {PIXELS} x {PIXELS} of 8, not compressed"
        )
    colour = 3 if core else 4
    palette = np.frombuffer(rest[length - 4 :], np.uint8)
    colours = min(colours or 256, len(palette) // colour)
    palette = palette[: colours * colour].reshape(-1, colour)[:, :3]
    if (palette != np.arange(colours)[:, None]).any():
        raise InputError(
            f"{file} has a palette of other colours; the 256 greys in order are wanted"
        )
    end = offset + PIXELS * PIXELS
    if size != end:
        fault = f"is cut off after {size} of" if size < end else f"has {size} bytes, more than its"
        raise InputError(f"{file} {fault} {end} bytes; {AGAIN}")
    return Tile(file, offset, upright=height < 0)


def _numbered(folder: Path, wanted: int, lines: str) -> list[Path]:
    """The tiles of a folder, sorted by number; numbers must run from 0 without a gap."""
    tiles: dict[int, Path] = {}
    for file in folders.entries(folder):
        named = NUMBERED.fullmatch(file.name)
        if named and tiles.setdefault(int(named[1]), file) != file:
            raise InputError(f"{tiles[int(named[1])]} and {file} have one number: remove one")
    wanted = max(wanted, len(tiles))
    missing = [number for number in range(wanted) if number not in tiles]
    if missing:
        some = ", ".join(f"patches{number:04}.bmp" for number in missing[:5])
        raise FileMissingError(
            f"{folder} lacks {len(missing)} of {wanted} tiles of {TILE} patches"
            f" ({some}{', ...' * (len(missing) > 5)}), and {lines}: {AGAIN}"
        )
    return [tiles[number] for number in sorted(tiles)]


def _lists(folder: Path) -> list[str]:
    """Names of the lists of pairs."""
    return [file.name for file in folders.entries(folder) if fnmatch(file.name, "m50_*.txt")]


def _largest(folder: Path) -> str:
    if (folder / TEST).is_file():
        return TEST
    lists = [file for file in _lists(folder) if file.endswith("_0.txt")]
    if not lists:
        raise FileMissingError(f"{folder} has no list of pairs, neither {TEST} nor any m50_*_0.txt")
    return max(lists, key=lambda name: ([int(part) for part in re.findall(r"\d+", name)], name))


def _table(file: Path, columns: int) -> np.ndarray:
    """The numbers of a text file, a row a line; all lines have equally many, at least `columns`."""
    if not file.is_file():
        raise FileMissingError(f"{file} is missing: {AGAIN}")
    text = texts.read(file)
    try:
        if not text.strip():
            raise InputError("no numbers")
        table = np.loadtxt(text.split("\n"), np.float64, comments=None, ndmin=2)
    except ValueError:
        table = np.empty((0, 0))
    if not len(table) or table.shape[1] < columns or not np.isfinite(table).all():
        raise InputError(_fault(file, text, columns))
    texts.must_be_whole(text, file)
    return table


def _lines(file: Path) -> int:
    """The number of lines that are not blank."""
    return sum(bool(line.strip()) for line in texts.read_table(file).split("\n"))


def _line(file: Path, row: np.integer) -> int:
    """The line number of a row, from 1; blank lines count as lines, not as rows."""
    lines = enumerate(texts.read(file).split("\n"), 1)
    return [number for number, line in lines if line.strip()][row]


def _fault(file: Path, text: str, columns: int) -> str:
    """The fault of a file that is not a table: the first line that differs from the first row."""
    lines = text.rstrip("\n").split("\n")
    if not text.strip():
        return f"{file} is empty: {AGAIN}"
    wanted = max(columns, len(text.lstrip().split("\n")[0].split()))
    for number, line in enumerate(lines, 1):
        fields = line.split()
        if fields and (len(fields) != wanted or not all(map(_is_number, fields))):
            return (
                f"{file}, line {number} of {len(lines)}: {line[:60]!r} are not {wanted} numbers;"
                f" the file is cut off or damaged, {AGAIN}"
            )
    return f"{file} can't be read as numbers: {AGAIN}"


def _is_number(field: str) -> bool:
    try:
        return bool(np.isfinite(texts.number(field)))
    except ValueError:
        return False


def _whole(numbers: np.ndarray, file: Path) -> Int[np.ndarray, "..."]:
    bad = np.argwhere((numbers != np.rint(numbers)) | (np.abs(numbers) > LARGEST))
    if bad.size:
        raise InputError(
            f"{file}, line {_line(file, bad[0, 0])}: {numbers[tuple(bad[0])]} is not a valid whole"
            f" number; {AGAIN}"
        )
    return numbers.astype(np.int64)


def sha256(*arrays: np.ndarray) -> str:
    """Hash of whole numbers; their integer type does not change it."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(array.astype("<i8").tobytes())
    return digest.hexdigest()
