"""Builds a benchmark in the format of HPatches from image sequences with homographies.

As in HPatches, regions are detected in image 1, jittered at random with one of three strengths, and
mapped to each other image by its homography. Unlike HPatches, there is one detector (the difference
of Gaussians); the strongest regions are kept, not random ones; and a jittered region must be
visible as a whole: no patch shows anything beyond the border of an image.

HPatches has strips of six images. If a sequence has more images, the strips are of image 1 and of
five others, spread evenly over the sequence. If it has fewer, several strips are of one image, with
jitters of their own.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

import cv2
import numpy as np
from jaxtyping import UInt8

from harness.errors import InputError
from harness.files import atomic
from harness.files.atomic import placing
from protocols.hpatches import tasks
from protocols.hpatches.writer import IMAGES, Regions, RegionTally, select, write_strips
from protocols.imaging import frames
from protocols.imaging.detect import CONTRAST
from protocols.imaging.fit import Fit, check
from protocols.imaging.frames import MAGNIFICATION, NOISE
from protocols.imaging.grey import read_grey
from protocols.imaging.sequences import Sequence as ImageSequence
from protocols.imaging.sequences import find, if_lossy

VERSION = 1  # raised whenever the same images could give other patches
MOST = 10_000  # patches in a strip: OpenCV can't read a PNG higher than 1,000,000 pixels
MEASURED = 200  # regions of a strip that the median overlap is measured on

Grey = UInt8[np.ndarray, "height width"]
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class SequencesReport:
    """The result of a build. As text: a table of the tallies."""

    name: str  # of the data set
    folder: Path
    sequences: tuple[RegionTally, ...]
    overlap: Mapping[str, float]  # by noise: median overlap of a region with its jittered copy
    fits: tuple[Fit, ...]  # of the homographies, by sequence
    passed_over: tuple[Path, ...] = ()  # folders without images
    shown: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # see `_shown`, if unusual

    def __str__(self) -> str:
        """A table, a row for each sequence, the overlaps and the correlations."""
        head = ["sequence", "detected", *(f"out of {k}" for k in range(1, IMAGES + 1))]
        rows = [[*head, "overlapping", "over cap", "kept"]]
        for t in self.sequences:
            counts = (t.detected, *t.outside, t.overlapping, t.over_cap, t.kept)
            rows.append([t.sequence, *map(str, counts)])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [f"{self.name} in {self.folder}", ""]
        for first, *others in rows:
            cells = [first.ljust(widths[0])]
            cells += [text.rjust(width) for text, width in zip(others, widths[1:], strict=True)]
            lines.append("  ".join(cells))
        median = ", ".join(f"{noise} {overlap:.2f}" for noise, overlap in self.overlap.items())
        lines += ["", f"median overlap of a detected region with its jittered copy: {median}"]
        lines += ["", "mean correlation of matching patches, of image 1 and images 2, 3, ...:"]
        lines += [f"  {fit.sequence.name.ljust(widths[0])}  {fit}" for fit in self.fits]
        lines += [f"check it: {fit.doubt}" for fit in self.fits if fit.doubt]
        lines += [
            f"{name} has {'more' if len(set(shown)) == IMAGES else 'fewer'} than {IMAGES} images:"
            f" its strips are of images {', '.join(str(k + 1) for k in shown)}"
            for name, shown in self.shown.items()
        ]
        lines += [f"passed over, no images in it: {folder}" for folder in self.passed_over]
        return "\n".join(lines)


def build(
    images: Path,
    out: Path,
    *,
    name: str | None = None,
    seed: int = 0,
    max_keypoints: int = 2000,
    progress: Progress | None = None,
) -> SequencesReport:
    """Build a data set in the folder `out` from the sequences in the folder `images`.

    The same images give the same patches. `out` appears when the set is complete.

    Args:
        images: a folder of sequence folders, or a sequence folder; see `sequences`.
        out: a new or empty folder.
        name: the set is called "hpatches-built-NAME", and "hpatches-built-NAME-lossy" if an image
            was compressed with loss; None takes the name of `images`.
        seed: of the jitter.
        max_keypoints: largest number of patches in a strip.
        progress: called with the number of finished sequences and the number of all sequences.

    Raises:
        InputError: if a sequence is malformed, if its homographies don't fit its images, or if too
            few regions are visible in all its images.
        FileInTheWayError: if `out` is not empty.
    """
    if not 2 <= max_keypoints <= MOST:
        raise InputError(f"max_keypoints is {max_keypoints}: give a number from 2 to {MOST}")
    if seed < 0:
        raise InputError(f"seed is {seed}: give a number from 0 on")
    name = images.resolve().name if name is None else name
    if not re.fullmatch(r"[A-Za-z0-9_.+-]+", name):
        raise InputError(f"{name!r} can't name a set: give letters, digits and any of _ . + -")
    with placing(out) as folder:
        sequences, passed_over = find(images)
        fits = check(sequences)
        shown = {s.name: _shown(s) for s in sequences}
        chosen = [
            select(
                s.name,
                read_grey(s.files[0]),
                shapes=[s.shapes[k] for k in shown[s.name]],
                from_first=[s.from_first[k] for k in shown[s.name]],
                seed=seed,
                most=max_keypoints,
            )
            for s in sequences
        ]
        unusual = {s.name: shown[s.name] for s in sequences if len(s.files) != IMAGES}
        report = SequencesReport(
            f"hpatches-built-{name}{if_lossy(sequences)}",
            out,
            tuple(tally for _, tally in chosen),
            _median_overlap([regions for regions, _ in chosen]),
            tuple(fits),
            tuple(passed_over),
            unusual,
        )
        for done, (sequence, (regions, _)) in enumerate(zip(sequences, chosen, strict=True)):
            if progress:
                progress(done, len(sequences))
            target = folder / "patches" / sequence.name
            of_strips = shown[sequence.name]
            write_strips(
                target,
                [partial(read_grey, sequence.files[k]) for k in of_strips],
                from_first=[sequence.from_first[k] for k in of_strips],
                regions=regions,
                compress=True,
            )
        if progress:
            progress(len(sequences), len(sequences))
        atomic.write_json(folder / "tasks" / "splits.json", _splits([s.name for s in sequences]))
        about = {
            "name": report.name,
            "builder": {"version": VERSION, "opencv": cv2.__version__},
            "parameters": {
                "seed": seed,
                "max_keypoints": max_keypoints,
                "magnification": MAGNIFICATION,
                "contrast": CONTRAST,
                "noise": {level: asdict(noise) for level, noise in NOISE.items()},
            },
            "median_overlap": report.overlap,
            "sequences": {
                s.name: {
                    "folder": s.folder,
                    "origin": _origin(s.files[0].parent),
                    "images": {f.name: sha for f, sha in zip(s.files, s.sha256, strict=True)},
                    "from_image_1": [h.tolist() for h in s.from_first[1:]],
                    "correlation": [
                        agreement and round(agreement.matching, 4) for agreement in fit.measured
                    ],
                    "regions": asdict(tally),
                    **(
                        {"strips_of": [k + 1 for k in unusual[s.name]]} if s.name in unusual else {}
                    ),
                }
                for s, fit, (_, tally) in zip(sequences, fits, chosen, strict=True)
            },
        }
        atomic.write_json(folder / "dataset.json", about)
        tasks.make(folder)
    return report


def _shown(sequence: ImageSequence) -> tuple[int, ...]:
    """The indices of the six images that the strips are cut from; six images give 0 to 5."""
    others = np.linspace(1, len(sequence.files) - 1, IMAGES - 1).round().astype(int)
    return 0, *others.tolist()


def _strips_of(shown: tuple[int, ...] | None) -> dict[str, list[int]]:
    """The numbers of the images of the strips, for dataset.json, if they are not 1 to 6."""
    return {} if shown is None else {"strips_of": [k + 1 for k in shown]}


def _origin(folder: Path) -> str:
    """The data that a sequence comes from, such as "oxford_affine/graf": its last two folders."""
    return "/".join(folder.resolve().parts[1:][-2:])


def _median_overlap(chosen: Sequence[Regions]) -> dict[str, float]:
    overlaps = {
        level: np.concatenate(
            [
                frames.overlap(maps[:MEASURED])
                for regions in chosen
                for strip, maps in regions.jitters.items()
                if strip.startswith(level)
            ]
        )
        for level in NOISE
    }
    return {level: round(float(np.median(values)), 4) for level, values in overlaps.items()}


def _splits(sequences: Sequence[str]) -> dict[str, dict[str, object]]:
    """Split `full` tests on all sequences; `half`, if there are four or more, trains on a half.

    The sequences of each kind, i_ and v_, alternate between test and train.
    """
    splits: dict[str, dict[str, object]] = {"full": {"name": "full", "test": list(sequences)}}
    if len(sequences) >= 4:
        kinds = [[s for s in sequences if s.startswith(kind)] for kind in ("i_", "v_")]
        test, train = (sorted(s for kind in kinds for s in kind[i::2]) for i in (0, 1))
        splits["half"] = {"name": "half", "test": test, "train": train}
    return splits
