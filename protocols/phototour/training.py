"""PhotoTour scenes as training data: all patches, not only those in a list of pairs."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np

from harness import Dataset
from harness.errors import InputError
from harness.files import texts
from harness.types import Rows
from protocols.imaging import kept_fingerprints
from protocols.phototour.reader import PatchScene, read_reference_images, sha256
from protocols.phototour.scenes import holds_scenes, join, open_scenes


def training_set(data: Path, tests: Sequence[Path] = ()) -> Dataset | None:
    """All patches of the scenes in a folder; None if there is no scene.

    The folder may itself be a scene. The image of a patch is its point's reference image, from
    interest.txt; without that file, all patches of a scene have one image.

    Args:
        data: the folder.
        tests: folders of test images, with which scenes must share no photograph.

    Raises:
        FileMissingError: if a part of a scene is missing.
        InputError: if a file of a scene is damaged, two scenes are the same, or a photograph of a
            scene is a test image, or can't be compared with them.
    """
    if not holds_scenes(data):
        return None
    opened = open_scenes(data, None)
    if tests:
        for scene in opened.scenes:
            kept_fingerprints.must_be_others(scene.folder, tests)
    rows = [np.arange(len(scene)) for scene in opened.scenes]
    images = [
        read_reference_images(scene)
        if (scene.folder / "interest.txt").is_file()
        else np.zeros(len(scene), np.int64)
        for scene in opened.scenes
    ]
    truth = [sha256(s.point, image) for s, image in zip(opened.scenes, images, strict=True)]
    joined = join(opened, rows, images, truth, "@all")
    listed = list(map(_listed, opened.scenes))
    files = chain.from_iterable(map(_files, opened.scenes, images, listed))
    return replace(
        joined,
        photographs=tuple(files),
        cut_from=frozenset(chain.from_iterable(listed)) if all(listed) else None,
    )


def _files(scene: PatchScene, image: Rows, listed: Sequence[str]) -> Iterator[str]:
    """Yields the sha256 of each image's file, by ascending image number; "" if it is not known."""
    known = dict(enumerate(listed)) if (scene.folder / "interest.txt").is_file() else {}
    for number in np.unique(image).tolist():
        yield known.get(number, "")


def _listed(scene: PatchScene) -> list[str]:
    """The sha256 of each image file that a builder cut patches from; [] if no builder tells."""
    about = scene.folder / "dataset.json"
    try:
        listed = texts.read_json(about).get("images", []) if about.is_file() else []
        return [entry["sha256"] for entry in listed]
    except (LookupError, TypeError, AttributeError) as error:
        raise InputError(
            f'{about} does not list images as builders do, {{"name": ..., "sha256": ...}} each:'
            " correct it, or leave images out of it"
        ) from error
