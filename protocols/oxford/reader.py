"""The Oxford sequences as one data set: regions, patches and ground-truth correspondences.

A set is named `oxford` if it holds the eight published sequences, equal in every pixel, with
regions of our own Harris-Affine detector; `oxford-six` if it lacks bark and trees, as in papers.
The split is named after the most regions of an image. Other sequences are named by their folder.
A folder of regions and a magnification of patches are options of the protocol.
"""

import hashlib
import logging
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from harness import Block, Dataset, parallel
from harness import cache as caches
from harness.errors import InputError
from harness.types import Patches
from protocols.imaging import fit
from protocols.imaging.affine import AffineFrames, affine_patches
from protocols.imaging.grey import read_grey
from protocols.imaging.sequences import Sequence, find, if_lossy
from protocols.naming import PARTIAL, after_folder, granted, remarked, unless_wrong
from protocols.official import official
from protocols.oxford import regions
from protocols.oxford.ellipses import Measure
from protocols.oxford.truth import Truth, correspondences

log = logging.getLogger(__name__)

SIX = ("graf", "bikes", "ubc", "leuven", "boat", "wall")  # of the papers
EIGHT = (*SIX, "bark", "trees")
PUBLISHED: dict[str, dict[str, Any]] = official("oxford")
"""First digits of the sha256 hashes of each published sequence: of its `_outline`, and of the grey
values of each image (`Sequence.pixels`)."""

SIDE = 65  # pixels of a patch


@dataclass(frozen=True, eq=False)
class Plane:
    """A sequence: the correspondences of image 1 with each of the other images."""

    name: str
    truths: tuple[Truth, ...]  # with images 2, 3, ...
    rows: tuple[slice, ...]  # of the patches of each image


@dataclass(frozen=True, eq=False)
class Oxford:
    """An opened data set."""

    dataset: Dataset
    planes: tuple[Plane, ...]  # in the order of their names
    published: bool  # whether all sequences are published ones


def folder_of(root: Path) -> Path:
    """The folder of the sequences; `root` may also be a folder of many data sets."""
    inner = root / "oxford"
    return inner if inner.is_dir() and any(inner.glob("*/H1to2p")) else root


def open_set(
    root: Path,
    *,
    frames: Path | None,
    features: int | None,
    magnification: float,
    measure: Measure,
    allow_partial: bool,
) -> Oxford:
    """Open a set: read its images, get its regions, and find their correspondences.

    Args:
        root: folder of the sequences.
        frames: folder of regions, as `regions` reads them; None detects them.
        features: most regions of an image, the strongest; None takes all regions of a folder.
        magnification: half a side of a patch, in radii of its region; it does not change the
            correspondences.
        measure: of overlap.
        allow_partial: whether published sequences may be missing.

    Raises:
        InputError: if a file is missing or malformed, if homographies don't fit the images, or if
            two images have no correspondence; names the file, or the images.
    """
    root = folder_of(root)
    all_sequences, _ = find(root)
    sequences = _with_regions(sorted(all_sequences, key=lambda sequence: sequence.folder), frames)
    base, complete = _name(root, sequences, allow_partial)
    check_fit(root, sequences)
    places = [(sequence, k) for sequence in sequences for k in range(len(sequence.files))]
    log.info("finding the regions of %d images", len(places))
    regions.code()  # computed before threads start
    every = parallel.each(partial(regions_of, frames=frames, features=features), places)
    log.info("cutting out %d patches", sum(map(len, every)))
    blocks = parallel.each(
        partial(block_of, magnification=magnification), zip(places, every, strict=True)
    )
    planes = _planes(sequences, every, measure)
    dataset = Dataset(
        name=base,
        split=remarked(str(features or "all"), *([] if complete else [PARTIAL])),
        blocks=tuple(blocks),
        point=_points(planes),
        image=np.repeat(np.arange(len(every)), list(map(len, every))),
        truth=_truth_sha256(sequences, every),
        sources=frozenset(f"{base.partition('-six')[0]}/{plane.name}" for plane in planes),
        complete=complete,
    )
    return Oxford(dataset, planes, published=base in ("oxford", "oxford-six"))


def _with_regions(sequences: list[Sequence], frames: Path | None) -> list[Sequence]:
    """The sequences that have files in a folder of regions."""
    if frames is None:
        return sequences
    known = [sequence for sequence in sequences if regions.has_files(frames, sequence.folder)]
    if not known:
        raise InputError(
            f"{frames} has no regions of {', '.join(sequence.folder for sequence in sequences)}:"
            f" {sequences[0].folder}.npz is wanted, or a folder {sequences[0].folder}"
        )
    for sequence in sequences:
        if sequence not in known:
            log.warning("skipped: %s, since %s has no regions of it", sequence.folder, frames)
    return known


def _name(root: Path, sequences: list[Sequence], allow_partial: bool) -> tuple[str, bool]:
    """The name of a set's sequences, and whether it is complete."""
    if (root / "dataset.json").is_file():
        return granted(root / "dataset.json", "oxford-sample")[0], True
    made = ("oxford-sample", "oxford-six")
    names = {sequence.folder for sequence in sequences}
    if not names <= PUBLISHED.keys():
        return after_folder("oxford", root, *made) + if_lossy(sequences), True
    if faults := [fault for sequence in sequences if (fault := differs(sequence))]:
        return unless_wrong("oxford", faults, root, *made, end=if_lossy(sequences)), True
    for name, wanted in (("oxford", EIGHT), ("oxford-six", SIX)):
        if names == set(wanted):
            return name, True
    if not allow_partial:
        missing = (
            ", ".join(sequence for sequence in SIX if sequence not in names)
            or "one of bark and trees"
        )
        raise InputError(
            f"of the published sequences, {missing} is missing; add it, or give --allow-partial"
            " to score the other sequences; such scores appear on no leaderboard"
        )
    return "oxford", False


def check_fit(root: Path, sequences: list[Sequence]) -> None:
    """Check homographies against images, except in published sequences and in sets made here.

    Raises:
        InputError: as `fit.check_once` does.
    """
    if not (root / "dataset.json").is_file():
        fit.check_once([sequence for sequence in sequences if differs(sequence)])


def differs(sequence: Sequence) -> str:
    """How a sequence differs from the published one of its name; "" if it does not."""
    known = PUBLISHED.get(sequence.folder)
    if known is None:
        return f"no sequence is called {sequence.folder}"
    if len(sequence.files) != len(known["pixels"]):
        return f"{sequence.folder} has {len(sequence.files)} images"
    if not hashlib.sha256(_outline(sequence).encode()).hexdigest().startswith(known["outline"]):
        return f"{sequence.folder} has images of other sizes, or other homographies"
    for file, digest, published in zip(
        sequence.files, sequence.pixels, known["pixels"], strict=True
    ):
        if not digest.startswith(published):
            return f"{file} has other pixels"
    return ""


def _outline(sequence: Sequence) -> str:
    """The sizes of a sequence's images and its homographies, as text."""
    numbers = " ".join(f"{value:.9g}" for h in sequence.from_first for value in h.ravel())
    return f"{sequence.shapes} {numbers}"


def _truth_sha256(sequences: list[Sequence], every: list[AffineFrames]) -> str:
    digest = hashlib.sha256("\n".join(map(_outline, sequences)).encode())
    for frames in every:
        digest.update(regions.table(frames).tobytes())
    return digest.hexdigest()


def regions_of(
    place: tuple[Sequence, int], *, frames: Path | None, features: int | None
) -> AffineFrames:
    """The regions of one image, detected or read; in the order of `regions.chosen`."""
    sequence, k = place
    if features is not None and features < 1:
        raise InputError(f"features={features}: an image needs at least one region")
    if frames is None:
        if features is None:
            raise InputError(
                "features=none takes all regions of files, but a detector needs a limit: give a"
                " number"
            )
        all_regions = regions.detected(sequence.files[k], sequence.sha256[k], features)
    else:
        all_regions = regions.read(frames, sequence.folder, k + 1, sequence.files[k])
    if not len(all_regions):
        raise InputError(f"{sequence.files[k]} has no regions: leave the sequence out")
    return regions.chosen(all_regions, features)


def block_of(
    image_regions: tuple[tuple[Sequence, int], AffineFrames], *, magnification: float
) -> Block:
    """The patches of one image; their hash is cached by all inputs that decide it."""
    (sequence, k), frames = image_regions
    if not 0 < magnification < np.inf:
        raise InputError(f"magnification={magnification:g}: a number above 0 is wanted")

    def read() -> Patches:
        image = read_grey(sequence.files[k]).astype(np.float32)
        return affine_patches(image, frames, extent=magnification, side=SIDE)

    cache = caches.kept("regions")
    origin = {
        "image": sequence.sha256[k],
        "regions": hashlib.sha256(regions.table(frames).tobytes()).hexdigest(),
        "magnification": repr(magnification),
        "side": str(SIDE),
        "code": regions.code(),
    }
    digest = cache.read(origin)
    if digest is None:
        digest = hashlib.sha256(read().tobytes()).digest()
        cache.write(origin, digest)
    return Block(f"{sequence.folder}/img{k + 1}", len(frames), digest.hex(), read)


def _planes(
    sequences: list[Sequence], every: list[AffineFrames], measure: Measure
) -> tuple[Plane, ...]:
    ends = np.cumsum([0, *(len(frames) for frames in every)]).tolist()
    starts = np.cumsum([0, *(len(sequence.files) for sequence in sequences)]).tolist()  # images
    log.info("comparing regions")

    def truth(place: tuple[int, int]) -> Truth:
        i, k = place
        sequence, first, other = sequences[i], every[starts[i]], every[starts[i] + k]
        common = correspondences(first, other, sequence.from_first[k], measure)
        if not len(common.a):
            raise InputError(
                f"no region of {sequence.files[0]} corresponds to one of {sequence.files[k].name}:"
                " there is nothing to score; take more regions, or leave the sequence out"
            )
        return common

    pairs = [(i, k) for i, s in enumerate(sequences) for k in range(1, len(s.files))]
    truths = iter(parallel.each(truth, pairs))
    return tuple(
        Plane(
            sequence.folder,
            tuple(next(truths) for _ in sequence.map_files),
            tuple(slice(ends[j], ends[j + 1]) for j in range(starts[i], starts[i + 1])),
        )
        for i, sequence in enumerate(sequences)
    )


def _points(planes: tuple[Plane, ...]) -> Int[np.ndarray, " n"]:
    """Point numbers: a region of image 1 and its assigned regions in other images are one point."""
    point = np.arange(planes[-1].rows[-1].stop)
    for plane in planes:
        for truth, rows in zip(plane.truths, plane.rows[1:], strict=True):
            a, b = truth.a[truth.assigned], truth.b[truth.assigned]
            point[rows.start + b] = plane.rows[0].start + a
    return point
