"""Reads image sequences with homographies: six images of one plane, and maps between them.

Two layouts are read: that of HPatches (`1.ppm` .. `6.ppm`, `H_1_2` .. `H_1_6`) and that of the
Oxford set of Mikolajczyk & Schmid (`img1.ppm` .. `img6.ppm`, `H1to2p` .. `H1to6p`).
"""

import hashlib
import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from jaxtyping import Float64

from harness.errors import InputError
from harness.files import folders, texts
from protocols.imaging.grey import decode

IMAGES = 6
LAYOUTS = (("{}", "H_1_{}"), ("img{}", "H1to{}p"))  # names of image k and of its homography
ENDINGS = (".ppm", ".pgm", ".png")  # lossless, and decoders notice a file that is cut off
OTHER_ENDINGS = (".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp")

STILL = 0.05
"""A sequence is named `i_` if no corner moves by more than this share of image 1's diagonal.

This value separates Oxford's sequences of blur, light and JPEG (corners move up to 0.042, because
the camera was touched) from its sequences of viewpoint, zoom and rotation.
"""

Homography = Float64[np.ndarray, "3 3"]


@dataclass(frozen=True, eq=False)
class Sequence:
    """Six images of one plane. `from_first[k]` maps pixels of image 1 to pixels of image k + 1."""

    name: str  # with the prefix i_ or v_
    folder: str  # its name below the folder that was searched
    files: tuple[Path, ...]
    sha256: tuple[str, ...]  # of the image files
    pixels: tuple[str, ...]  # sha256 of the grey values of each image, row by row
    shapes: tuple[tuple[int, int], ...]  # height and width of each image
    from_first: tuple[Homography, ...]  # the first is the identity
    map_files: tuple[Path, ...]  # of the homographies to images 2 to 6


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


_WANTED = (
    "a sequence is a folder with 1.ppm to 6.ppm and H_1_2 to H_1_6, or img1.ppm to img6.ppm and"
    " H1to2p to H1to6p (images may also be .pgm or .png)"
)


def _has_images(folder: Path) -> bool:
    return any(p.suffix.lower() in ENDINGS + OTHER_ENDINGS for p in folders.entries(folder))


def _sequence(folder: Path) -> Sequence:
    image, homography = next(
        (names for names in LAYOUTS if _candidates(folder, names[0].format(1))), (None, None)
    )
    if image is None or homography is None:
        raise InputError(
            f"{folder} has images, but no image 1: {_WANTED}; move images of other kinds away"
        )
    files = tuple(_image_file(folder, image.format(k)) for k in range(1, IMAGES + 1))
    contents = [file.read_bytes() for file in files]
    decoded = [decode(data, file) for data, file in zip(contents, files, strict=True)]
    height, width = decoded[0].shape
    map_files = tuple(folder / homography.format(k) for k in range(2, IMAGES + 1))
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
    )


def _candidates(folder: Path, stem: str) -> list[Path]:
    there = folders.entries(folder)
    return [p for p in there if p.stem == stem and p.suffix.lower() in ENDINGS]


def _image_file(folder: Path, stem: str) -> Path:
    candidates = _candidates(folder, stem)
    if not candidates:
        raise InputError(
            f"{folder / stem}.* is missing: {_WANTED}; add the image, or take the folder out"
        )
    if len(candidates) > 1:
        raise InputError(
            f"{' and '.join(map(str, candidates))} are the same image twice: remove one"
        )
    return candidates[0]


def _homography(file: Path, width: int, height: int) -> Homography:
    if not file.is_file():
        raise InputError(f"{file} is missing: {_WANTED}; add the homography")
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
