"""Reads image sequences with homographies: two images or more of one plane, and maps between them.

Images are numbered from 1, as HPatches names them (`1.ppm`, `2.ppm`, ...) or as the Oxford set of
Mikolajczyk & Schmid does (`img1.ppm`, ...). A file for each further image k holds the homography
from image 1 to it: `H_1_k`, `H1tokp` or `H1tok`, each also with the ending .txt.
"""

import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from jaxtyping import Float64

from harness.errors import InputError
from harness.files import folders, texts
from protocols.imaging.grey import decode
from protocols.imaging.headers import header

IMAGE = re.compile(r"(?:img)?0*([1-9][0-9]*)")  # the name of an image file, without its ending
HOMOGRAPHY = re.compile(r"(?:H_1_0*([1-9][0-9]*)|H1to0*([1-9][0-9]*)p?)(?:\.txt)?")

LOSSLESS = (".ppm", ".pgm", ".png", ".bmp", ".tif", ".tiff")  # but a TIFF file may hold a JPEG
LOSSY_ENDINGS = (".jpg", ".jpeg")
ENDINGS = LOSSLESS + LOSSY_ENDINGS
OTHER_ENDINGS = (".webp",)  # images that can't be read

LOSSY = "-lossy"
"""The end of the name of a data set with lossy images: compression blurs details and adds blocks,
so scores on such a set are not those of the images it was made from."""

STILL = 0.05
"""A sequence is named `i_` if no corner moves by more than this share of image 1's diagonal.

This value separates Oxford's sequences of blur, light and JPEG (corners move up to 0.042, because
the camera was touched) from its sequences of viewpoint, zoom and rotation.
"""

Homography = Float64[np.ndarray, "3 3"]


@dataclass(frozen=True, eq=False)
class Sequence:
    """Images of one plane. `from_first[k]` maps pixels of image 1 to pixels of image k + 1."""

    name: str  # with the prefix i_ or v_
    folder: str  # its name below the folder that was searched
    files: tuple[Path, ...]
    sha256: tuple[str, ...]  # of the image files
    pixels: tuple[str, ...]  # sha256 of the grey values of each image, row by row
    shapes: tuple[tuple[int, int], ...]  # height and width of each image
    from_first: tuple[Homography, ...]  # the first is the identity
    map_files: tuple[Path, ...]  # of the homographies to images 2, 3, ...
    lossy: tuple[Path, ...] = ()  # the images that were compressed with loss


def find(root: Path) -> tuple[list[Sequence], list[Path]]:
    """The sequences in a folder, and its subfolders without images, which are passed over.

    The folder may itself be a sequence. Every image is decoded and every homography read, so that
    an error comes before any work.

    Raises:
        InputError: if there is no sequence, or a sequence is malformed; names the file.
    """
    if not root.is_dir():
        raise InputError(f"{root} is not a folder: give one that holds image sequences")
    if _has_images(root):
        return [_sequence(root)], []
    inner = folders.folders(root)
    passed_over = [folder for folder in inner if not _has_images(folder)]
    sequences = [_sequence(folder) for folder in inner if folder not in passed_over]
    if not sequences:
        raise InputError(f"no images in {root} nor in a folder directly below it: {_WANTED}")
    sequences.sort(key=lambda sequence: sequence.name)
    for a, b in pairwise(sequences):
        if a.name == b.name:
            raise InputError(
                f"folders {a.folder} and {b.folder} of {root} would both be called {a.name}:"
                " rename one"
            )
    return sequences, passed_over


def if_lossy(every: Iterable[Sequence]) -> str:
    """The end of the name of a data set of these sequences: LOSSY if an image is, else nothing."""
    return LOSSY if any(sequence.lossy for sequence in every) else ""


_WANTED = (
    "a sequence is a folder with two images or more, 1.ppm, 2.ppm and so on, and a homography for"
    " each further image, H_1_2, H_1_3 and so on; or img1.ppm, img2.ppm and H1to2p (images may also"
    " be .pgm, .png, .bmp, .tif or .jpg)"
)


def _has_images(folder: Path) -> bool:
    return any(p.suffix.lower() in ENDINGS + OTHER_ENDINGS for p in folders.entries(folder))


def _sequence(folder: Path) -> Sequence:
    files = _image_files(folder)
    map_files = _map_files(folder, len(files))
    contents = [file.read_bytes() for file in files]
    decoded = [decode(data, file) for data, file in zip(contents, files, strict=True)]
    height, width = decoded[0].shape
    maps = (np.eye(3), *(_homography(file, width, height) for file in map_files))
    return Sequence(
        name=_name(folder, maps, width, height),
        folder=folder.name,
        files=files,
        sha256=tuple(hashlib.sha256(data).hexdigest() for data in contents),
        pixels=tuple(hashlib.sha256(grey.tobytes()).hexdigest() for grey in decoded),
        shapes=tuple(grey.shape for grey in decoded),
        from_first=maps,
        map_files=map_files,
        lossy=tuple(file for data, file in zip(contents, files, strict=True) if header(data).lossy),
    )


def _image_files(folder: Path) -> tuple[Path, ...]:
    """The files of images 1, 2, ...; of an image that is there twice, the lossless one."""

    def number(file: Path) -> str | None:
        named = IMAGE.fullmatch(file.stem) if file.suffix.lower() in ENDINGS else None
        return named[1] if named else None

    found = _numbered(folder, number)
    if 1 not in found:
        raise InputError(
            f"{folder} has images, but no image 1: {_WANTED}; move images of other kinds away"
        )
    images = next(k for k in range(1, len(found) + 1) if k + 1 not in found)
    if images < len(found):
        raise InputError(
            f"{folder} has an image {max(found)}, but no image {images + 1}: {_WANTED}; add the"
            " image, or number the images without a gap"
        )
    if images == 1:
        raise InputError(f"{folder} has only one image: {_WANTED}; add images, or take it out")
    return tuple(_only(_lossless_first(found[k]), "image") for k in range(1, images + 1))


def _lossless_first(files: list[Path]) -> list[Path]:
    lossless = [file for file in files if file.suffix.lower() in LOSSLESS]
    return lossless or files


def _map_files(folder: Path, images: int) -> tuple[Path, ...]:
    """The files of the homographies from image 1 to images 2, 3, ..."""

    def number(file: Path) -> str | None:
        named = HOMOGRAPHY.fullmatch(file.name)
        return named[1] or named[2] if named else None

    found = _numbered(folder, number)
    for k in range(2, images + 1):
        if k not in found:
            raise InputError(
                f"{folder / f'H_1_{k}'} is missing, and so is H1to{k}p: {_WANTED}; add the"
                " homography"
            )
    for k in sorted(found.keys() - {1}):
        if k > images:
            raise InputError(
                f"{found[k][0]} is there, but {folder} has no image {k}: add the image, or take"
                " the homography away"
            )
    return tuple(_only(found[k], "homography") for k in range(2, images + 1))


def _numbered(folder: Path, number: Callable[[Path], str | None]) -> dict[int, list[Path]]:
    """Files of a folder by the number in their names; files without one are left out."""
    found: dict[int, list[Path]] = {}
    for file in folders.entries(folder):
        if (digits := number(file)) and file.is_file():
            found.setdefault(int(digits), []).append(file)
    return found


def _only(files: list[Path], kind: str) -> Path:
    if len(files) > 1:
        raise InputError(f"{' and '.join(map(str, files))} are the same {kind} twice: remove one")
    return files[0]


def _homography(file: Path, width: int, height: int) -> Homography:
    remedy = "it must hold the 3 x 3 numbers, row by row, that map image 1 to this image"
    words = re.split(r"[\s,;]+", texts.read_table(file).strip())
    try:
        numbers = np.array([texts.number(word) for word in words])
    except ValueError as error:
        raise InputError(f"{file} can't be read as a homography ({error}): {remedy}") from error
    if numbers.size != 9 or not np.isfinite(numbers).all():
        raise InputError(f"{file} holds {numbers.size} numbers, or not all are finite: {remedy}")
    h = numbers.reshape(3, 3)
    # Hadamard's bound on the determinant; rounding leaves up to 1e-12 of it in a singular matrix.
    if abs(np.linalg.det(h)) <= 1e-12 * np.prod(np.linalg.norm(h, axis=1)):
        raise InputError(f"{file} is singular, it maps the plane to a line: {remedy}")
    middle = float(h[2, 0] * (width - 1) / 2 + h[2, 1] * (height - 1) / 2 + h[2, 2])
    if middle == 0:
        raise InputError(f"{file} maps the middle of image 1 to infinity: {remedy}")
    return h / middle  # a positive third coordinate now means "in front of the camera"


def _name(folder: Path, maps: tuple[Homography, ...], width: int, height: int) -> str:
    name = folder.resolve().name
    if not re.fullmatch(r"[A-Za-z0-9_.+-]+", name):
        raise InputError(
            f"{folder} can't name a sequence: rename it to letters, digits and any of _ . + -"
        )
    if name.startswith(("i_", "v_")):
        return name
    return ("i_" if _furthest_move(maps, width, height) <= STILL else "v_") + name


def _furthest_move(maps: tuple[Homography, ...], width: int, height: int) -> float:
    """The largest move of a corner of image 1, as a share of the diagonal."""
    x = np.array([0.0, width - 1, width - 1, 0.0])
    y = np.array([0.0, 0.0, height - 1, height - 1])
    furthest = 0.0
    for h in maps:
        u, v, w = h @ np.stack([x, y, np.ones(4)])
        if (w <= 0).any():
            return float("inf")
        furthest = max(furthest, float(np.hypot(u / w - x, v / w - y).max()))
    return furthest / float(np.hypot(width - 1, height - 1))
