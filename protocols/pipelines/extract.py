"""Writes the features of images as one HDF5 file, for hloc and its relatives."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import h5py

from harness import progress
from harness.cache import fingerprint as folder_sha256
from harness.evaluation import fingerprint
from harness.files import atomic
from harness.types import Descriptor
from protocols.imaging.affine import AffineFrames
from protocols.imaging.keypoint_patches import USUAL, KeypointCut
from protocols.pipelines import hdf5, photographs
from protocols.pipelines import masks as mask_files
from protocols.pipelines.detectors import KEYPOINTS, SIFT
from protocols.pipelines.detectors import detector as detector_of
from protocols.pipelines.features import FeatureFolder, make
from protocols.pipelines.photographs import Photograph
from protocols.resuming import resuming

WORK = ".parts"  # end of the name of the work folder


@dataclass(frozen=True)
class Extracted:
    """The contents of a file of features, and what a run added."""

    file: Path
    images: int  # in the file
    added: int  # of them, described by this run
    keypoints: int  # in the file
    empty: tuple[str, ...]  # images without a keypoint
    skipped: Mapping[str, str]  # images that are not in the file, and why


def extract(
    images: Path,
    out: Path,
    *,
    model: Descriptor,
    detector: str = SIFT,
    keypoints: int = KEYPOINTS,
    masks: Path | None = None,
    precision: Literal["float32", "float16"] = "float32",
    cut: KeypointCut = USUAL,
    silent: bool = True,
) -> Extracted:
    """Write the keypoints and vectors of all images in a folder; `hdf5` describes the layout.

    The file appears when it is complete. A run that was stopped or killed continues at the first
    unfinished image. If the file exists, only images are described that it lacks, or whose files
    have changed; all others stay in it.

    Args:
        images: a folder of images; images in folders below it have names like "left/a.jpg".
        out: the HDF5 file.
        model: the descriptor.
        detector: a name or a file; see `detectors`.
        keypoints: wanted number of keypoints in an image; see `detectors.detector`.
        masks: a folder of masks; see `masks`.
        precision: of descriptors that are numbers; keypoints are always float32.
        cut: how patches are cut.
        silent: show no progress.

    Raises:
        InputError: if no image can be read, or `out` has features of another model or setting.
        FileInTheWayError: if unfinished work of another model or setting is beside `out`.
        BlockingIOError: if another process is writing `out`.
    """
    atomic.must_be_writable(out.parent, f"{out} can't be written", "choose another --out")
    detect = detector_of(detector, keypoints)
    facts = {
        "model": model.name,
        "weights": model.weights or "",
        "revision": model.revision,
        "fingerprint": fingerprint(model),
        "distance": model.distance.name,
        "dim": model.dim,
        "precision": precision,
        "detector": detect.identity,
        "masks": "" if masks is None else folder_sha256(masks),
        **asdict(cut),
    }
    there = hdf5.images_of(out, facts)
    readable, skipped = photographs.opened(images)
    new = [one for one in readable if there.get(one.name) != one.sha256]

    def found(photograph: Photograph) -> AffineFrames:
        return mask_files.kept(masks, photograph, detect(photograph))

    work = out.with_name(f".{out.name}{WORK}")
    with resuming(work, facts, replace=False):
        parts = FeatureFolder(work)
        with progress.shown("images described", len(new), silent=silent) as advance:
            skipped |= make(new, found, model, cut, parts, advance)
        new = [one for one in new if one.name not in skipped]
        if new or not out.exists():
            _assemble(out, facts, new, parts, model, precision)
        shutil.rmtree(work)
    photographs.report(skipped, len(readable) + len(skipped))
    return _extracted(out, len(new), skipped)


def _assemble(
    out: Path,
    facts: Mapping[str, object],
    new: Sequence[Photograph],
    parts: FeatureFolder,
    model: Descriptor,
    precision: str,
) -> None:
    """Write the file: groups that it had before and that did not change, then new ones."""
    replaced = {one.name for one in new}
    before = [name for name in hdf5.images_of(out, facts) if name not in replaced]
    with atomic.writing(out) as stream, h5py.File(stream, "w") as file:
        hdf5.write_facts(file, facts)
        if before:
            with h5py.File(out, "r") as old:
                for name in before:
                    old.copy(old[name], file, name)
        for photograph in new:
            hdf5.write(file, photograph, parts.read(photograph), model, precision)


def _extracted(out: Path, added: int, skipped: Mapping[str, str]) -> Extracted:
    counts = hdf5.keypoint_counts(out)
    return Extracted(
        file=out,
        images=len(counts),
        added=added,
        keypoints=sum(counts.values()),
        empty=tuple(name for name, count in counts.items() if not count),
        skipped=skipped,
    )
