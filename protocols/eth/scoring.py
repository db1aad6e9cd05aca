"""Scores scenes: matches their images, lets COLMAP reconstruct them, and counts."""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TypeVar

import numpy as np

from harness import Descriptions, Scores, parallel, progress, unfinished
from harness.distances import Distance
from harness.errors import FileInTheWayError
from harness.files import atomic
from harness.statistics import COVERED
from harness.types import Rows, Vectors
from protocols.colmap.mapping import quiet
from protocols.eth import files as official
from protocols.eth.keypoints import table_of
from protocols.eth.matching import numbers_of
from protocols.eth.pair_lists import ImagePairs
from protocols.eth.retrieval import alike
from protocols.eth.scenes import TOTAL, ImageScene
from protocols.eth.structure import Matched, reconstruct
from protocols.eth.tiles import Tile, all_tiles, by_tile, match_tile, matched

SUMMED = ("registered", "points", "observations")
FEW = 15  # images; with fewer, the seed decides whether a run registers nearly all or only two
TOLD = 20  # pairs of images; matching this many takes long enough for a log message

T = TypeVar("T")

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Scoring:
    """The scenes of a protocol, and how they are scored."""

    scenes: Sequence[ImageScene]
    listed: Sequence[ImagePairs | None]  # of each scene; None: as many images as `neighbours` that
    neighbours: int  # the descriptor finds alike
    ratio: float
    repeats: int
    files: Path | None  # a new folder for files in the official formats

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all scenes."""
        return tuple(scene.name for scene in self.scenes)

    def rows(self, name: str) -> Rows:
        """Rows of all keypoints of a scene."""
        at = self.names.index(name)
        sizes = [sum(map(len, scene.frames)) for scene in self.scenes]
        start = sum(sizes[:at])
        return np.arange(start, start + sizes[at])

    def score(self, described: Descriptions, names: Collection[str]) -> Scores:
        """The scores of some scenes, and their sums; an interrupted matching goes on."""
        each = zip(self.scenes, self.listed, self._by_image(described), strict=True)
        some = [three for three in each if three[0].name in names]
        with unfinished.kept_until_end():
            return self._scored(some, described.distance)

    def alone(self, described: Descriptions, names: Collection[str]) -> Scores:
        """The scores of some scenes, without what `sum_up` gives."""
        found = self.score(described, names)
        few = self._of_few([scene for scene in self.scenes if scene.name in names])
        return replace(
            found,
            values=_without_total(found.values),
            intervals=_without_total(found.intervals),
            warnings=tuple(text for text in found.warnings if text not in few),
        )

    def sum_up(self, scored: Scores) -> Scores:
        """The totals over all scenes: the mean of a sum is the sum of means."""
        totals = {
            f"{TOTAL}/{name}": sum(scored.values[f"{scene}/{name}"] for scene in self.names)
            for name in SUMMED
        }
        return Scores(totals, warnings=self._of_few(self.scenes))

    def _of_few(self, scenes: Sequence[ImageScene]) -> tuple[str, ...]:
        """A warning if scenes with few images are mapped by one run."""
        few = [f"{scene.name} ({len(scene)})" for scene in scenes if len(scene) < FEW]
        if not few or self.repeats > 1:
            return ()
        return (
            f"Fewer than {FEW} images, mapped by one run of COLMAP: {', '.join(few)}. Another seed"
            " may register many more of them, or many fewer; --set repeats=5 measures how much the"
            " runs differ.",
        )

    def _scored(
        self,
        some: Sequence[tuple[ImageScene, ImagePairs | None, Sequence[Vectors]]],
        distance: Distance,
    ) -> Scores:
        scenes = [scene for scene, _, _ in some]
        matches = []
        for scene, listed, vectors in some:
            pairs = listed
            if pairs is None:
                pairs = self.alike(self.names.index(scene.name), vectors.__getitem__, distance)
            if len(pairs) >= TOLD:
                log.info("%s: matching %d pairs of images", scene.name, len(pairs))
            matches.append(matched(scene.name, vectors, pairs, distance, self.ratio))
        if self.files is not None:
            _write(self.files, scenes, [vectors for _, _, vectors in some], matches, distance)
        jobs = [
            (*job, seed)
            for job in zip(scenes, matches, strict=True)
            for seed in range(self.repeats)
        ]
        with quiet(failures=False), progress.step("runs of COLMAP", len(jobs)) as advance:

            def run(job: tuple[ImageScene, Matched, int]) -> dict[str, float]:
                measured = reconstruct(*job)
                advance(1)
                return measured

            runs = parallel.each(run, jobs)
        of_scenes = {
            scene.name: runs[i * self.repeats : (i + 1) * self.repeats]
            for i, scene in enumerate(scenes)
        }
        values, intervals = _summed_up(of_scenes)
        breakdowns = {
            scene.name: _breakdown(scene, of_scene)
            for scene, of_scene in zip(scenes, matches, strict=True)
        }
        warnings = (*self._of_few(scenes), *_of_failures(scenes, of_scenes))
        return Scores(values, breakdowns, intervals, warnings)

    def units(self, name: str) -> int:
        """Number of units in which the pairs of a scene can be matched ahead."""
        return len(self._tiles(self.names.index(name)))

    def match_ahead(
        self, name: str, number: int, read: Callable[[int], Vectors], distance: Distance
    ) -> None:
        """Match a unit of pairs of a scene, unless its matches are kept.

        Args:
            name: of the scene.
            number: of the unit.
            read: gives the vectors of an image, by its number among those of all scenes.
            distance: of the vectors.
        """
        at = self.names.index(name)
        before = sum(map(len, self.scenes[:at]))

        def of_scene(image: int) -> Vectors:
            return read(before + image)

        tile, tiled = self._tiles(at)[number], self._tiled[at]
        if tiled is None:
            tiled = _tiled_alike(self, at, read, distance)
        if tile in tiled:
            match_tile(of_scene, tiled[tile], distance, self.ratio)

    def _tiles(self, at: int) -> list[Tile]:
        """The tiles of a scene in which there may be pairs."""
        tiled = self._tiled[at]
        return all_tiles(len(self.scenes[at])) if tiled is None else [*tiled]

    @cached_property
    def _tiled(self) -> list[dict[Tile, ImagePairs] | None]:
        """The pairs of each scene by their tiles; None if they follow from vectors."""
        return [None if listed is None else by_tile(listed) for listed in self.listed]

    def alike(self, at: int, read: Callable[[int], Vectors], distance: Distance) -> ImagePairs:
        """The pairs of images of a scene that the descriptor finds alike.

        Args:
            at: number of the scene.
            read: gives the vectors of an image of the scene.
            distance: of the vectors.
        """
        scene = self.scenes[at]
        log.info("%s: finding images that look alike", scene.name)
        return alike(len(scene), read, distance, self.neighbours)

    def _by_image(self, described: Descriptions) -> list[list[Vectors]]:
        sizes = [len(frames) for scene in self.scenes for frames in scene.frames]
        parts = iter(np.split(described.vectors, np.cumsum(sizes)[:-1]))
        return [[next(parts) for _ in scene.frames] for scene in self.scenes]


@lru_cache(maxsize=2)
def _tiled_alike(
    scoring: Scoring, at: int, read: Callable[[int], Vectors], distance: Distance
) -> dict[Tile, ImagePairs]:
    """The pairs of a scene that a descriptor finds alike, by their tiles.

    A worker finds them once for all units of a model.
    """
    before = sum(map(len, scoring.scenes[:at]))
    return by_tile(scoring.alike(at, lambda image: read(before + image), distance))


def _without_total(scored: Mapping[str, T]) -> dict[str, T]:
    return {name: x for name, x in scored.items() if name.partition("/")[0] != TOTAL}


def must_be_free(files: Path) -> None:
    """Refuse a folder for official files that exists.

    Raises:
        FileInTheWayError: if it does.
    """
    try:
        atomic.must_be_free(files)
    except FileExistsError as error:
        raise FileInTheWayError(f"{error}, by --set files=DIR; only with one model") from error


def _of_failures(
    scenes: Sequence[ImageScene], of_scenes: Mapping[str, Sequence[Mapping[str, float]]]
) -> Iterator[str]:
    """Yields a warning for each scene of which COLMAP registered nothing."""
    for scene in scenes:
        failed = sum(not run["registered"] for run in of_scenes[scene.name])
        if failed:
            yield (
                f"COLMAP registered none of the {len(scene)} images of {scene.name} in {failed} of"
                f" {len(of_scenes[scene.name])} runs."
            )


def _summed_up(
    of_scenes: Mapping[str, Sequence[Mapping[str, float]]],
) -> tuple[dict[str, float], dict[str, tuple[float, float]]]:
    """Means over runs and intervals of the middle 95 % of runs, by scene and for the total."""
    runs = dict(of_scenes)
    runs[TOTAL] = [
        {name: sum(run[name] for run in together) for name in SUMMED}
        for together in zip(*of_scenes.values(), strict=True)
    ]
    values, intervals = {}, {}
    for scene, of_scene in runs.items():
        for name in set.intersection(*map(set, of_scene)):  # scores that every run defines
            numbers = [run[name] for run in of_scene]
            values[f"{scene}/{name}"] = float(np.mean(numbers))
            if len(numbers) > 1:
                tails = [(1 - COVERED) / 2, (1 + COVERED) / 2]
                low, high = np.quantile(numbers, tails).tolist()
                intervals[f"{scene}/{name}"] = (low, high)
    return values, intervals


def _breakdown(scene: ImageScene, matched: Matched) -> dict[str, float]:
    counts = [len(matches) for matches in matched.values()]
    return {
        "images": float(len(scene)),
        "keypoints": float(sum(map(len, scene.frames))),
        "pairs": float(len(matched)),
        "matched_pairs": float(np.count_nonzero(counts)),
        "matches": float(sum(counts)),
    }


def _write(
    folder: Path,
    scenes: Sequence[ImageScene],
    vectors: Sequence[Sequence[Vectors]],
    matched: Sequence[Matched],
    distance: Distance,
) -> None:
    """Write keypoints, descriptors and matches in the official formats, scene by scene."""
    must_be_free(folder)  # another model of this evaluation may have written it
    with atomic.placing(folder) as unfinished:
        for scene, of_images, pairs in zip(scenes, vectors, matched, strict=True):
            root = unfinished / scene.name
            for name, frames, rows in zip(scene.names, scene.frames, of_images, strict=True):
                numbers = numbers_of(rows, distance)
                official.write_keypoints(root / f"keypoints/{name}.bin", table_of(frames))
                official.write_descriptors(root / f"descriptors/{name}.bin", numbers)
            for (a, b), matches in pairs.items():
                file = f"{scene.names[a]}---{scene.names[b]}.bin"
                official.write_matches(root / f"matches/{file}", matches)
