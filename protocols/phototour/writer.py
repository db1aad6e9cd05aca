"""Writes a scene in the official PhotoTour format: tiles of patches, and text files."""

import json
import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int, Shaped, UInt8

from harness.errors import InputError
from harness.files import atomic
from harness.files.atomic import placing

SIDE = 64  # pixels of a patch
GRID = 16  # patches along each side of a tile
TILE = GRID * GRID  # patches of a tile
PIXELS = GRID * SIDE  # along each side of a tile
HEADER = 14 + 40 + 4 * 256  # bytes before the pixels: two headers and a palette
PAIRS = re.compile(r"m50_\w+\.txt")

Patches = UInt8[np.ndarray, "_ 64 64"]


def write_scene(
    folder: Path,
    patches: Iterable[Patches],
    points: Int[np.ndarray, " n"],
    interest: Float[np.ndarray, "n 5"],
    pairs: Mapping[str, Int[np.ndarray, "_ 2"]],
    *,
    second: Int[np.ndarray, " n"] | None = None,
    about: Mapping[str, object] | None = None,
) -> None:
    """Write one scene into a new folder, with `fill`; the folder appears when it is complete.

    Raises:
        InputError: as `fill` does; the folder does not appear then.
        FileInTheWayError: if the folder is not empty.
    """
    with placing(folder) as unfinished:
        fill(unfinished, patches, points, interest, pairs, second=second, about=about)


def fill(
    folder: Path,
    patches: Iterable[Patches],
    points: Int[np.ndarray, " n"],
    interest: Float[np.ndarray, "n 5"],
    pairs: Mapping[str, Int[np.ndarray, "_ 2"]],
    *,
    second: Int[np.ndarray, " n"] | None = None,
    about: Mapping[str, object] | None = None,
) -> None:
    """Write the files of one scene into an unfinished folder; see `atomic.placing`.

    Patches are taken batch by batch, and at most one tile of them is held in memory. The same
    arguments write the same bytes.

    Args:
        folder: the folder.
        patches: batches of any sizes, in the order of `points`.
        points: number of the 3-D point that each patch shows.
        interest: for each patch the number of the reference image, in which its *point* was found
            (so the same for all patches of a point), x, y, orientation, scale.
        pairs: rows of patches to compare, by file name, such as "m50_100000_100000_0.txt".
        second: second column of info.txt, which official data do not use; None writes zeros.
        about: written as dataset.json; its "name" is the data set's name.

    Raises:
        InputError: if the shapes of the arguments disagree, or a value is out of range.
    """
    n = len(points)
    if not n or interest.shape != (n, 5):
        raise InputError(
            f"{n} points, interest {list(interest.shape)}: n > 0 and [n, 5] are wanted"
        )
    other = np.zeros(n, int) if second is None else second
    for name, rows in pairs.items():
        if not PAIRS.fullmatch(name):
            raise InputError(f"{name!r} can't name a list of pairs, as m50_100000_100000_0.txt can")
        if rows.ndim != 2 or rows.shape[1] != 2 or (rows < 0).any() or (rows >= n).any():
            raise InputError(
                f"{name}: {list(rows.shape)}, or rows outside of 0 .. {n - 1}; [m, 2] is wanted"
            )
    for number, tile in enumerate(_tiles(patches, n)):
        with atomic.writing(folder / f"patches{number:04}.bmp") as stream:
            stream.write(_bitmap(tile))
    columns = zip(points.tolist(), other.tolist(), strict=True)
    text = [f"{point} {number}\n" for point, number in columns]
    atomic.write_text(folder / "info.txt", "".join(text))
    text = [
        f"{image:.0f} {x:.4f} {y:.4f} {o:.6f} {s:.6f}\n" for image, x, y, o, s in interest.tolist()
    ]
    atomic.write_text(folder / "interest.txt", "".join(text))
    for name, rows in pairs.items():
        lines = np.zeros((len(rows), 6), np.int64)
        lines[:, [0, 3]], lines[:, [1, 4]] = rows, points[rows]
        text = [" ".join(map(str, line)) + "\n" for line in lines.tolist()]
        atomic.write_text(folder / name, "".join(text))
    if about is not None:
        text_about = json.dumps(about, indent=1, sort_keys=True) + "\n"
        atomic.write_text(folder / "dataset.json", text_about)


def _tiles(patches: Iterable[Patches], n: int) -> Iterator[UInt8[np.ndarray, "1024 1024"]]:
    """Yields tiles filled row by row from n patches; the rest of the last tile is black."""
    tile = np.zeros((GRID, SIDE, GRID, SIDE), np.uint8)
    filled = total = 0
    for batch in patches:
        if batch.dtype != np.uint8 or batch.shape[1:] != (SIDE, SIDE):
            raise InputError(
                f"{batch.dtype} {list(batch.shape)} came; patches are uint8 [n, 64, 64]"
            )
        total += len(batch)
        if total > n:
            break
        while len(batch):
            some, batch = batch[: TILE - filled], batch[TILE - filled :]
            row, column = np.divmod(np.arange(filled, filled + len(some)), GRID)
            tile[row, :, column, :] = some
            filled += len(some)
            if filled == TILE:
                yield tile.reshape(PIXELS, PIXELS)
                filled = 0
                tile[:] = 0
    if total != n:
        raise InputError(f"{total}{' and more' * (total > n)} patches came for {n} points")
    if filled:
        yield tile.reshape(PIXELS, PIXELS)


def _bitmap(tile: Shaped[np.ndarray, "1024 1024"]) -> bytes:
    """The bytes of an 8-bit BMP with a grey palette and the bottom row first."""
    size = HEADER + tile.size
    file = struct.pack("<2sIHHI", b"BM", size, 0, 0, HEADER)
    image = struct.pack("<IiiHHIIiiII", 40, PIXELS, PIXELS, 1, 8, 0, tile.size, 2835, 2835, 256, 0)
    grey = np.zeros((256, 4), np.uint8)
    grey[:, :3] = np.arange(256)[:, None]
    return file + image + grey.tobytes() + tile[::-1].tobytes()
