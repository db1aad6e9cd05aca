"""What the protocols have in common: the scenes of a folder as one data set, and their scores."""

import hashlib
import logging
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from harness import Block, Dataset, Scores
from harness.registry import unknown
from harness.statistics import Interval, interval_over_parts
from protocols.naming import after_folder, granted
from protocols.phototour.reader import Numbers, Scene, blocks, read_scene
from protocols.phototour.sample import sample

OFFICIAL = {
    "liberty": 450092,
    "notredame": 468159,
    "yosemite": 633587,
    "liberty_harris": 379587,
    "notredame_harris": 325295,
    "yosemite_harris": 450912,
}
"""Patches of each official scene."""

MEAN = "mean"
HARRIS = "_harris"
LONGEST = 100  # letters of a list of scenes in the name of a folder
MADE = "phototour-NAME"  # names that a dataset.json may give
PLAIN = re.compile(r"[\w.-]+", re.ASCII)  # names that may stand in that of a folder

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Opened:
    """Scenes of one folder, in the order of their names."""

    name: str  # of the data set
    scenes: tuple[Scene, ...]


def open_scenes(data: Path | None, split: str | None) -> Opened:
    """Find and check the scenes of a folder, or the one that it is; the sample where None.

    Args:
        data: a folder of scene folders, or one of these.
        split: names of scenes joined by "+"; where None all, but of the two detectors of one
            place (liberty, liberty_harris) only the first.

    Raises:
        FileNotFoundError: if there is no scene, or a part of one is missing.
        LookupError: if a scene of the split is not there.
        ValueError: if a file of a scene is damaged, or two scenes are one.
    """
    root, folders = _folders(sample() if data is None else data)
    chosen = sorted(set(split.split("+"))) if split else _without_twins(root, folders)
    for name in chosen:
        if name not in folders:
            raise LookupError(f"{root}: {unknown('scenes', name, folders)}")
    if MEAN in chosen:
        raise ValueError(f"{folders[MEAN]}: a scene can't be called {MEAN!r}, as scores are")
    seen: dict[Path | str, str] = {}
    for name in chosen:
        for same in (folders[name].resolve(), name.lower()):  # links, and names in other letters
            if seen.setdefault(same, name) != name:
                raise ValueError(f"{root}: {seen[same]} and {name} are one scene; remove one")
    scenes = tuple(read_scene(folders[name], name) for name in chosen)
    return Opened(_name(root, scenes), scenes)


def join(
    opened: Opened,
    rows: Sequence[Numbers],
    images: Sequence[Numbers],
    truth: Sequence[str],
    variant: str = "",
) -> Dataset:
    """One data set of some patches of each scene, scene after scene.

    Args:
        opened: the scenes.
        rows: of each scene: the patches to describe, ascending.
        images: of each scene: the image of each of these.
        truth: of each scene: sha256 of what defines its task.
        variant: added to the split, which is the list of scenes.
    """
    points, numbers = [], []
    parts: list[Block] = []
    next_point = next_image = 0
    for scene, own, image in zip(opened.scenes, rows, images, strict=True):
        _, point = np.unique(scene.point, return_inverse=True)
        _, number = np.unique(image, return_inverse=True)
        points.append(point[own] + next_point)
        numbers.append(number + next_image)
        next_point += int(point.max()) + 1
        next_image += int(number.max()) + 1
        parts += blocks(scene, own)
    names = [scene.name for scene in opened.scenes]
    split = "+".join(names) + variant
    plain = all(map(PLAIN.fullmatch, [*names, *re.split(r"[@+]+", f"a{variant}")]))
    if len(split) > LONGEST or not plain:
        split = f"{len(names)}-scenes-{zlib.crc32(split.encode()):08x}"
    lines = "".join(f"{name} {sha}\n" for name, sha in zip(names, truth, strict=True))
    return Dataset(
        opened.name,
        split,
        tuple(parts),
        np.concatenate(points),
        np.concatenate(numbers),
        truth=hashlib.sha256(lines.encode()).hexdigest(),
        sources=frozenset().union(*cells(opened).values()),
    )


def cells(opened: Opened) -> dict[str, frozenset[str]]:
    """The data that each scene's patches come from.

    Both detectors looked at the same photographs: who learned liberty has seen liberty_harris. A
    folder may be called Liberty, and a scene that was built says its own name as well.
    """
    found = {}
    for scene in opened.scenes:
        own = _recorded(scene.folder)
        names = {scene.name} | ({own.removeprefix("phototour-")} if own else set())
        names |= {name.lower() for name in names}
        places = {name.removesuffix(HARRIS) for name in names}
        found[scene.name] = frozenset(
            f"phototour/{place}{end}" for place in places for end in ("", HARRIS)
        )
    return found


def scores(
    found: Mapping[str, Mapping[str, float]],
    metrics: Sequence[str],
    intervals: Mapping[str, Sequence[Interval | None]],
) -> Scores:
    """`<scene>/<metric>` and `mean/<metric>`, which is the plain mean over scenes.

    Args:
        found: what was measured on each scene; what is not in `metrics` stays a breakdown.
        metrics: names of scores.
        intervals: by metric: its interval on each scene. That of the mean comes of them: scenes
            are measured apart from each other, and are no sample of other scenes.
    """
    values = {f"{scene}/{m}": own[m] for scene, own in found.items() for m in metrics}
    for metric in metrics:
        values[f"{MEAN}/{metric}"] = float(np.mean([own[metric] for own in found.values()]))
    given: dict[str, Interval | None] = {}
    for metric, own in intervals.items():
        given |= {f"{scene}/{metric}": one for scene, one in zip(found, own, strict=True)}
        of_scenes = [values[f"{scene}/{metric}"] for scene in found]
        given[f"{MEAN}/{metric}"] = interval_over_parts(of_scenes, own)
    return Scores(values, found, {name: one for name, one in given.items() if one is not None})


def _folders(root: Path) -> tuple[Path, dict[str, Path]]:
    """The folder of scenes that a folder holds or is, and each scene's own."""
    if not root.is_dir():
        raise FileNotFoundError(
            f"{root} is not a folder: --data takes a folder of PhotoTour scenes"
        )
    if (root / "info.txt").is_file():
        return root, {root.resolve().name: root}
    inner = sorted(f for f in root.iterdir() if f.is_dir() and not f.name.startswith("."))
    found = {folder.name: folder for folder in inner if _has_parts(folder)}
    if not found and (root / "phototour").is_dir():  # a folder of many data sets
        return _folders(root / "phototour")
    if not found:
        raise FileNotFoundError(
            f"{root} has no scene (a folder such as liberty with info.txt and patches0000.bmp in"
            " it) and is none itself"
        )
    return root, found


def _without_twins(root: Path, names: Iterable[str]) -> list[str]:
    """The names in order, without the Harris scene of a place that has another scene there."""
    lower = {name.lower() for name in names}
    twins = {n for n in names if n.lower().endswith(HARRIS) and n.lower()[: -len(HARRIS)] in lower}
    if twins:
        log.info(
            "%s: %s left out, photographs that other scenes show too; --split chooses others",
            root, ", ".join(sorted(twins)),
        )  # fmt: skip
    return sorted(set(names) - twins)


def holds_scenes(folder: Path) -> bool:
    """Whether a folder is a scene, or a folder of scenes."""
    inner = [folder / "phototour", *folder.iterdir()] if folder.is_dir() else []
    inner += [scene for scene in (folder / "phototour").glob("*")]
    return _has_parts(folder) or any(_has_parts(one) for one in inner if one.is_dir())


def _has_parts(folder: Path) -> bool:
    """A scene, or what is left of one: its reader says what is missing."""
    return (folder / "info.txt").exists() or any(folder.glob("patches*.bmp"))


def _name(root: Path, scenes: Sequence[Scene]) -> str:
    """The name that scores are kept under: "phototour" only for scenes of the official size."""
    if recorded := _recorded(root):
        return recorded
    odd = [scene for scene in scenes if OFFICIAL.get(scene.name) != len(scene)]
    for scene in odd:
        if scene.name in OFFICIAL:
            log.warning(
                "%s has %d patches, PhotoTour's %s has %d: scores enter another table",
                scene.folder, len(scene), scene.name, OFFICIAL[scene.name],
            )  # fmt: skip
    return after_folder("phototour", root, "phototour-sample") if odd else "phototour"


def _recorded(folder: Path) -> str | None:
    """The name that a folder's dataset.json gives, if there is one."""
    about = folder / "dataset.json"
    return granted(about, MADE)[0] if about.is_file() else None
