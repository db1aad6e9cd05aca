"""What the protocols have in common: the scenes of a folder as one data set, and their scores."""

import hashlib
import logging
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from harness import Block, Dataset, Scores
from harness.errors import FileMissingError, InputError, UnknownNameError
from harness.files import folders
from harness.registry import unknown
from harness.statistics import Interval, interval_over_parts
from protocols.naming import after_folder, granted, remarked, unless_wrong
from protocols.official import official
from protocols.phototour.reader import Numbers, Scene, blocks, read_scene
from protocols.phototour.sample import sample

SIZES: dict[str, dict[str, int]] = official("phototour")
"""Of each official scene of DoG points: bytes of its files, number and bytes of its tiles."""

UNCHECKED = "the pixels and numbers in PhotoTour's files; only the sizes of the files are known."
UNCHECKED_HARRIS = (
    "the files of PhotoTour's Harris scenes; only their numbers of patches are known."
)

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
    unchecked: tuple[str, ...]  # as of the data set


def open_scenes(data: Path | None, split: str | None) -> Opened:
    """Find and check the scenes of a folder, or the one that it is; the sample where None.

    Args:
        data: a folder of scene folders, or one of these.
        split: names of scenes joined by "+"; where None all, but of the two detectors of one
            place (liberty, liberty_harris) only the first.

    Raises:
        FileMissingError: if there is no scene, or a part of one is missing.
        UnknownNameError: if a scene of the split is not there.
        InputError: if a file of a scene is damaged, or two scenes are one.
    """
    root, found = _folders(sample() if data is None else data)
    asked = folders.same_form(split) if split else ""
    chosen = sorted(set(asked.split("+"))) if asked else _without_twins(root, found)
    for name in chosen:
        if name not in found:
            raise UnknownNameError(f"{root}: {unknown('scenes', name, found)}")
    if MEAN in chosen:
        raise InputError(f"{found[MEAN]}: a scene can't be called {MEAN!r}, as scores are")
    seen: dict[Path | str, str] = {}
    for name in chosen:
        for same in (found[name].resolve(), name.lower()):  # links, and names in other letters
            if seen.setdefault(same, name) != name:
                raise InputError(f"{root}: {seen[same]} and {name} are one scene; remove one")
    scenes = tuple(read_scene(found[name], name) for name in chosen)
    name = _name(root, scenes)
    said = [UNCHECKED if scene.name in SIZES else UNCHECKED_HARRIS for scene in scenes]
    return Opened(name, scenes, tuple(dict.fromkeys(said)) if name == "phototour" else ())


def join(
    opened: Opened,
    rows: Sequence[Numbers],
    images: Sequence[Numbers],
    truth: Sequence[str],
    lists: Sequence[str] = (),
) -> Dataset:
    """One data set of some patches of each scene, scene after scene.

    Args:
        opened: the scenes.
        rows: of each scene: the patches to describe, ascending.
        images: of each scene: the image of each of these.
        truth: of each scene: sha256 of what defines its task.
        lists: of pairs, where they are not the papers': remarks on the split.
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
    split = remarked("+".join(names), *lists)
    plain = all(map(PLAIN.fullmatch, [*names, *lists]))
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
        unchecked=opened.unchecked,
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
        raise FileMissingError(f"{root} is not a folder: --data takes a folder of PhotoTour scenes")
    if (root / "info.txt").is_file():
        return root, {folders.same_form(root.resolve().name): root}
    inner = [folder for folder in folders.folders(root) if _has_parts(folder)]
    found = {folders.same_form(folder.name): folder for folder in inner}
    if not found and (root / "phototour").is_dir():  # a folder of many data sets
        return _folders(root / "phototour")
    if not found:
        raise FileMissingError(
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
    return any(
        place.is_dir() and any(map(_has_parts, (place, *folders.folders(place))))
        for place in (folder, folder / "phototour")
    )


def _has_parts(folder: Path) -> bool:
    """A scene, or what is left of one: its reader says what is missing."""
    return (folder / "info.txt").exists() or any(folder.glob("patches*.bmp"))


def _name(root: Path, scenes: Sequence[Scene]) -> str:
    """The name that scores are kept under: "phototour" only if no known fact is missed."""
    if recorded := _recorded(root):
        return recorded
    if not all(scene.name in OFFICIAL for scene in scenes):
        return after_folder("phototour", root, "phototour-sample")
    faults = [fault for scene in scenes for fault in _faults(scene)]
    return unless_wrong("phototour", faults, root, "phototour-sample")


def _faults(scene: Scene) -> Iterator[str]:
    """How a scene with an official name differs from the official one, as far as that is known.

    Files that no protocol asks for may be missing.
    """
    if len(scene) != OFFICIAL[scene.name]:
        yield f"{scene.folder} has {len(scene)} patches, not {OFFICIAL[scene.name]}"
    known = dict(SIZES.get(scene.name, {}))
    if not known:
        return
    tiles, size = known.pop("tiles"), known.pop("bytes of a tile")
    if len(scene.tiles) != tiles:
        yield f"{scene.folder} has {len(scene.tiles)} tiles, not {tiles}"
    wanted = {scene.folder / name: size for name, size in known.items()}
    wanted |= {tile.file: size for tile in scene.tiles}
    for file, size in wanted.items():
        if file.is_file() and (own := file.stat().st_size) != size:
            yield f"{file} has {own} bytes, not {size}"


def _recorded(folder: Path) -> str | None:
    """The name that a folder's dataset.json gives, if there is one."""
    about = folder / "dataset.json"
    return granted(about, MADE)[0] if about.is_file() else None
