"""Opens the scenes of a folder as one data set, and names their scores; both tasks use it."""

import hashlib
import logging
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path

import numpy as np

from harness import Block, Dataset, Descriptions, Parts, Scores
from harness.errors import FileMissingError, InputError, UnknownNameError
from harness.files import folders
from harness.registry import unknown
from harness.statistics import Interval, interval_over_parts
from protocols.naming import after_folder, granted, remarked, unless_wrong
from protocols.official import official
from protocols.phototour.reader import Numbers, PatchScene, blocks, read_scene
from protocols.phototour.sample import sample

SIZES: dict[str, dict[str, int]] = official("phototour")
"""For each official scene of DoG points: bytes of its files, and number and bytes of its tiles."""

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
LONGEST = 100  # characters; a longer list of scenes does not become part of a folder's name
MADE = "phototour-NAME"  # form of the names that a dataset.json may give
PLAIN = re.compile(r"[\w.-]+", re.ASCII)  # names that may be part of a folder's name

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class PatchScenes:
    """Scenes of one folder, in the order of their names."""

    name: str  # of the data set
    scenes: tuple[PatchScene, ...]
    unchecked: tuple[str, ...]  # as of the data set


def open_scenes(data: Path | None, split: str | None) -> PatchScenes:
    """The checked scenes of a folder; the folder may also be a scene itself.

    Args:
        data: a folder of scene folders, or one scene; None: the sample.
        split: names of scenes joined by "+"; None: all, except that of the two detectors of one
            place (liberty, liberty_harris) only the first is taken.

    Raises:
        FileMissingError: if there is no scene, or a part of a scene is missing.
        UnknownNameError: if a scene of the split is not there.
        InputError: if a file of a scene is damaged, or two folders are the same scene.
    """
    root, folder_of = _folders(sample() if data is None else data)
    asked = folders.same_form(split) if split else ""
    chosen = sorted(set(asked.split("+"))) if asked else _without_twins(root, folder_of)
    for name in chosen:
        if name not in folder_of:
            raise UnknownNameError(f"{root}: {unknown('scenes', name, folder_of)}")
    if MEAN in chosen:
        raise InputError(
            f"{folder_of[MEAN]}: a scene can't be called {MEAN!r}, because scores use this name;"
            " rename the folder"
        )
    seen: dict[Path | str, str] = {}
    for name in chosen:
        for same in (folder_of[name].resolve(), name.lower()):  # links; upper and lower case
            if seen.setdefault(same, name) != name:
                raise InputError(f"{root}: {seen[same]} and {name} are one scene; remove one")
    scenes = tuple(read_scene(folder_of[name], name) for name in chosen)
    name = _name(root, scenes)
    unchecked = [UNCHECKED if scene.name in SIZES else UNCHECKED_HARRIS for scene in scenes]
    return PatchScenes(name, scenes, tuple(dict.fromkeys(unchecked)) if name == "phototour" else ())


def join(
    opened: PatchScenes,
    rows: Sequence[Numbers],
    images: Sequence[Numbers],
    truth: Sequence[str],
    lists: Sequence[str] = (),
) -> Dataset:
    """One data set of some patches of each scene, scene after scene.

    Args:
        opened: the scenes.
        rows: for each scene: the patches to describe, ascending.
        images: for each scene: the image of each of its patches.
        truth: for each scene: sha256 of the numbers that define its task.
        lists: names of the lists of pairs if they are not the papers'; they become remarks on the
            split.
    """
    points, numbers = [], []
    parts: list[Block] = []
    next_point = next_image = 0
    for scene, of_scene, image in zip(opened.scenes, rows, images, strict=True):
        _, point = np.unique(scene.point, return_inverse=True)
        _, number = np.unique(image, return_inverse=True)
        points.append(point[of_scene] + next_point)
        numbers.append(number + next_image)
        next_point += int(point.max()) + 1
        next_image += int(number.max()) + 1
        parts += blocks(scene, of_scene)
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


def cells(opened: PatchScenes) -> dict[str, frozenset[str]]:
    """The data that each scene's patches come from.

    Both detectors ran on the same photographs: a model trained on liberty has seen liberty_harris.
    A folder may be called Liberty, and the dataset.json of a built scene gives another name for it.
    """
    sources = {}
    for scene in opened.scenes:
        recorded = _recorded(scene.folder)
        names = {scene.name} | ({recorded.removeprefix("phototour-")} if recorded else set())
        names |= {name.lower() for name in names}
        places = {name.removesuffix(HARRIS) for name in names}
        sources[scene.name] = frozenset(
            f"phototour/{place}{end}" for place in places for end in ("", HARRIS)
        )
    return sources


def of_scenes(
    measured: Mapping[str, Mapping[str, float]],
    metrics: Sequence[str],
    intervals: Mapping[str, Interval | None],
) -> Scores:
    """`<scene>/<metric>` of some scenes.

    Args:
        measured: numbers of each scene, by name; those that are not in `metrics` appear only in
            the breakdown of the scene.
        metrics: names of scores.
        intervals: of scores of scenes.
    """
    values = {f"{scene}/{m}": numbers[m] for scene, numbers in measured.items() for m in metrics}
    return Scores(values, measured, {name: b for name, b in intervals.items() if b is not None})


def sum_up(scored: Scores, names: Sequence[str], metrics: Sequence[str]) -> Scores:
    """`<scene>/<metric>` and `mean/<metric>`, which is the plain mean over scenes.

    Args:
        scored: from `of_scenes`, of all scenes. The interval of a mean is computed from those of
            the scenes: they are independent, and they are not a sample of other scenes.
        names: of the scenes.
        metrics: names of scores.
    """
    values = {f"{scene}/{m}": scored.scenes[scene][m] for scene in names for m in metrics}
    bounds: dict[str, Interval] = {}
    for metric in metrics:
        each = [f"{scene}/{metric}" for scene in names]
        numbers = [values[name] for name in each]
        values[f"{MEAN}/{metric}"] = float(np.mean(numbers))
        of_mean = interval_over_parts(numbers, [scored.intervals.get(name) for name in each])
        if of_mean is not None:
            bounds[f"{MEAN}/{metric}"] = of_mean
    return Scores(values, intervals=bounds)


def parts(
    dataset: Dataset,
    sizes: Mapping[str, int],
    metrics: Sequence[str],
    score: Callable[[Descriptions, Sequence[str]], Scores],
) -> Parts:
    """The scenes of a protocol, each of which can be scored alone.

    Args:
        dataset: from `join`.
        sizes: number of patches of each scene, in the order of the scenes.
        metrics: names of scores.
        score: the numbers of some scenes, from `of_scenes`.
    """
    names = tuple(sizes)
    end = dict(zip(names, accumulate(sizes.values()), strict=True))
    return Parts(
        names,
        lambda scene: np.arange(len(dataset))[end[scene] - sizes[scene] : end[scene]],
        score,
        lambda scored: sum_up(scored, names, metrics),
    )


def whole(parts: Parts, described: Descriptions) -> Scores:
    """The scores of all scenes, and of their means."""
    scored = parts.score(described, parts.names)
    summed = parts.sum_up(scored)
    return replace(summed, scenes=scored.scenes, intervals={**scored.intervals, **summed.intervals})


def _folders(root: Path) -> tuple[Path, dict[str, Path]]:
    """The folder of scenes, and the folder of each scene; a scene's own folder holds one scene."""
    if not root.is_dir():
        raise FileMissingError(f"{root} is not a folder: --data takes a folder of PhotoTour scenes")
    if (root / "info.txt").is_file():
        return root, {folders.same_form(root.resolve().name): root}
    scenes = [folder for folder in folders.folders(root) if _has_parts(folder)]
    if not scenes and (root / "phototour").is_dir():  # a folder of many data sets
        return _folders(root / "phototour")
    if not scenes:
        raise FileMissingError(
            f"{root} has no scene, and is not a scene itself: a scene is a folder such as liberty,"
            " with info.txt and patches0000.bmp in it"
        )
    return root, {folders.same_form(folder.name): folder for folder in scenes}


def _without_twins(root: Path, names: Iterable[str]) -> list[str]:
    """The names in order, without the Harris scene of a place whose other scene is there, too."""
    lower = {name.lower() for name in names}
    twins = {n for n in names if n.lower().endswith(HARRIS) and n.lower()[: -len(HARRIS)] in lower}
    if twins:
        log.info(
            "%s: %s left out, because another scene has the same photographs; --split can choose",
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
    """Whether a folder has a file of a scene; the reader reports the files that are missing."""
    return (folder / "info.txt").exists() or any(folder.glob("patches*.bmp"))


def _name(root: Path, scenes: Sequence[PatchScene]) -> str:
    """The data set's name for records; it is "phototour" only if all known facts hold."""
    if recorded := _recorded(root):
        return recorded
    if not all(scene.name in OFFICIAL for scene in scenes):
        return after_folder("phototour", root, "phototour-sample")
    faults = [fault for scene in scenes for fault in _faults(scene)]
    return unless_wrong("phototour", faults, root, "phototour-sample")


def _faults(scene: PatchScene) -> Iterator[str]:
    """Yields the known differences of a scene with an official name from the official scene.

    Files that no protocol reads may be missing.
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
        if file.is_file() and (held := file.stat().st_size) != size:
            yield f"{file} has {held} bytes, not {size}"


def _recorded(folder: Path) -> str | None:
    """The name that a folder's dataset.json gives, if there is one."""
    about = folder / "dataset.json"
    return granted(about, MADE)[0] if about.is_file() else None
