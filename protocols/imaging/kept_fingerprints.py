"""Fingerprints that a data set keeps of its photographs, for a comparison with test images.

A built data set has patches, not the photographs. With their fingerprints, whoever trains on the
set can still ask whether it shows a test image.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import UInt64

from harness.errors import InputError, one_line
from harness.files import atomic, texts
from protocols.imaging.same_photograph import CUTS, Cuts, of_folder, pairs

FORM = 1  # raised whenever an image could get other fingerprints; "fingerprints" in dataset.json
FILE = "fingerprints.npy"  # in the order of "images" in dataset.json

Many = UInt64[np.ndarray, "images cuts 4"]


def keep(dataset: Path, made: Many) -> None:
    """Write the fingerprints of a data set's images into its folder."""
    with atomic.writing(dataset / FILE) as stream:
        np.save(stream, made, allow_pickle=False)


def must_be_others(dataset: Path, tests: Sequence[Path]) -> None:
    """Refuse a built data set that shows photographs of some folders of test images.

    Raises:
        InputError: if it does, or if it keeps no fingerprints of its photographs; or if a folder
            has no image.
    """
    ours = _kept(dataset)
    for folder in tests:
        shared = pairs(ours, of_folder(folder))
        if shared:
            raise InputError(
                f"{dataset} shows {len({pair.first for pair in shared})} test images of {folder}:"
                f" {shared[0].first} is {shared[0].second}; build it anew with --set tests={folder}"
            )


def _kept(dataset: Path) -> dict[str, Cuts]:
    """The fingerprints of a data set's images, by the names of the images."""
    about = dataset / "dataset.json"
    told = texts.read_json(about) if about.is_file() else {}
    if not isinstance(told, dict) or told.get("fingerprints") != FORM:
        raise InputError(
            f"{dataset} keeps no fingerprints of form {FORM} of its photographs, so it can't be"
            " compared with test images: build it anew, or leave the comparison out"
        )
    try:
        # A map takes no memory, whatever size the file claims.
        made = np.load(dataset / FILE, mmap_mode="r", allow_pickle=False)
        names = [image["name"] for image in told["images"]]
    except (OSError, ValueError, LookupError, TypeError, ArithmeticError) as error:
        raise InputError(
            f"the fingerprints of {dataset} can't be read ({one_line(error)}): build it anew"
        ) from error
    if made.dtype != np.uint64 or made.shape != (len(names), len(CUTS) ** 4, 4):
        raise InputError(
            f"{dataset / FILE} has {made.dtype} {list(made.shape)} for the {len(names)} images of"
            f" {about.name}: take both files from one build"
        )
    return dict(zip(names, made, strict=True))
