"""The regions of an image: detected by Harris-Affine, or read from files of other detectors.

There are two kinds of files:
- `<sequence>.npz` with arrays `img1`, `img2`, ..., in VLFeat's form. A row is a region: x, y, a11,
  a21, a12, a22. The centre of the first pixel is (1, 1).
- `<sequence>/img1.*`, `img2.*`, ..., in the text form of Oxford's detectors: a length and the
  number of regions, then rows of x, y, a, b, c of a x^2 + 2 b x y + c y^2 = 1 around the centre;
  further columns are ignored. The centre of the first pixel is (0, 0). These regions have no
  direction; they get the main direction of the image's gradients.
"""

import hashlib
from functools import cache
from pathlib import Path
from zipfile import ZipFile

import numpy as np
from jaxtyping import Float64

from harness import cache as caches
from harness.code import code_sha256
from harness.errors import InputError, one_line
from harness.files import folders, texts
from protocols.imaging.affine import AffineFrames, must_lie_on
from protocols.imaging.grey import check, read_grey
from protocols.imaging.harris_affine import harris_affine, oriented
from protocols.imaging.sequences import ENDINGS, OTHER_ENDINGS

LARGEST = 1 << 26  # most bytes of the regions of an image: more than a million regions


@cache
def code() -> str:
    """A hash of the code that detects regions, and of the code that cuts out patches.

    Python 3.11 can't parse in several threads: call this function before they start.
    """
    return code_sha256(harris_affine.__module__)


def detected(image: Path, sha256: str, most: int) -> AffineFrames:
    """The strongest Harris-Affine regions of an image; kept in the cache, by the image's hash."""
    kept = caches.kept("regions")
    origin = {"image": sha256, "most": str(most), "code": code()}
    rows = kept.read_array(origin)
    if rows is None:
        rows = table(harris_affine(read_grey(image), most))
        kept.write_array(origin, rows)
    return from_table(rows)


def has_files(folder: Path, sequence: str) -> bool:
    """Whether a folder of regions has files of a sequence."""
    return (folder / f"{sequence}.npz").is_file() or (folder / sequence).is_dir()


def read(folder: Path, sequence: str, number: int, image: Path) -> AffineFrames:
    """The regions of one image from files, in the files' order.

    Raises:
        InputError: if a file is missing or malformed; names the file.
    """
    arrays = folder / f"{sequence}.npz"
    if arrays.is_file():
        return _checked(_of_vlfeat(arrays, f"img{number}"), image, f"{arrays}: img{number}")
    inner = folders.entries(folder / sequence) if (folder / sequence).is_dir() else []
    files = [
        file
        for file in inner
        if file.name.startswith(f"img{number}.")
        and file.suffix.lower() not in ENDINGS + OTHER_ENDINGS
    ]
    if len(files) != 1:
        raise InputError(
            f"{folder / sequence} has {len(files)} files of regions called img{number}.*; one file"
            f" is wanted, or {arrays.name} beside that folder with all regions of the sequence"
        )
    return oriented(read_grey(image), _checked(_of_oxford(files[0]), image, str(files[0])))


def _of_vlfeat(file: Path, name: str) -> AffineFrames:
    remedy = "rows of x, y, a11, a21, a12, a22 are wanted, 1-based"
    try:
        with ZipFile(file) as packed:
            size = packed.getinfo(f"{name}.npy").file_size
        if size > LARGEST:
            raise InputError(f"it would have {size} bytes, more than {LARGEST}")
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            rows = arrays[name]
    except Exception as error:  # a broken file gives errors of many types
        told = f"{type(error).__name__}: {one_line(error)}"
        raise InputError(f"{file} has no array {name} ({told}): {remedy}") from error
    if rows.ndim != 2 or rows.shape[1] != 6 or rows.dtype.kind not in "iuf":
        raise InputError(f"{file}: {name} has the shape {rows.shape} ({rows.dtype}): {remedy}")
    x, y, a11, a21, a12, a22 = rows.astype(np.float64).T
    matrix = np.stack([a11, a12, a21, a22], axis=1).reshape(-1, 2, 2)
    return AffineFrames(x - 1, y - 1, matrix, np.zeros(len(x)))


def _of_oxford(file: Path) -> AffineFrames:
    remedy = "a length, a number of regions, and as many rows of x, y, a, b, c are wanted"
    text = texts.read_table(file)
    try:
        _, count, *lines = [line for line in text.split("\n") if line.strip()]
        rows = np.array([[texts.number(word) for word in line.split()[:5]] for line in lines])
        if rows.shape != (int(count), 5):
            raise InputError(f"{count.strip()} regions are declared, there are {len(rows)} rows")
    except ValueError as error:
        raise InputError(f"{file} can't be read as regions ({error}): {remedy}") from error
    x, y, a, b, c = rows.T.copy()
    matrix = np.zeros((len(x), 2, 2))
    with np.errstate(all="ignore"):  # rows that are not ellipses are refused later
        # The lower triangular root of the inverse form: it keeps upright regions upright.
        wide = np.sqrt(c / (a * c - b * b))
        matrix[:, 0, 0], matrix[:, 1, 0] = wide, -b * wide / c
        matrix[:, 1, 1] = 1 / np.sqrt(c)
    return AffineFrames(x, y, matrix, np.zeros(len(x)))


def _checked(frames: AffineFrames, image: Path, subject: str) -> AffineFrames:
    with np.errstate(all="ignore"):  # rows may not be ellipses
        sound = np.isfinite(table(frames)).all(axis=1) & (np.linalg.det(frames.matrix) != 0)
    if not sound.all():
        bad = np.flatnonzero(~sound)[0] + 1
        raise InputError(f"{subject}: region {bad} of {len(frames)} is no ellipse; leave it out")
    height, width = check(image)
    must_lie_on(frames, width, height, subject)
    return frames


def chosen(frames: AffineFrames, most: int | None) -> AffineFrames:
    """The strongest regions, ordered by a hash of each region.

    So where distances tie, neither the order of a file nor the strength of regions matters. If
    regions are equally strong, as regions of files are, the first in this order are taken.
    """
    rows = np.ascontiguousarray(table(frames)[:, :6])
    drawn = [hashlib.blake2b(row.tobytes(), digest_size=8).digest() for row in rows]
    order = np.argsort(np.array(drawn, dtype="S8"), kind="stable")
    strongest = np.argsort(-frames.score[order], kind="stable")[:most]
    return frames.take(order[np.sort(strongest)])


def table(frames: AffineFrames) -> Float64[np.ndarray, "n 7"]:
    """Regions as rows: x, y, the matrix row by row, score."""
    matrix = frames.matrix.reshape(-1, 4)
    return np.concatenate(
        [frames.x[:, None], frames.y[:, None], matrix, frames.score[:, None]], axis=1
    )


def from_table(rows: Float64[np.ndarray, "n 7"]) -> AffineFrames:
    """The regions of a `table`."""
    x, y, *_, score = rows.T.copy()
    return AffineFrames(x, y, rows[:, 2:6].reshape(-1, 2, 2), score)
