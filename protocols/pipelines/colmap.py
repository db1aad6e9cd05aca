"""Any descriptor into COLMAP: a database of verified matches, and models mapped from it."""

import logging
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, TypeVar

import pycolmap

from harness import parallel, progress
from harness.cache import fingerprint as folder_sha256
from harness.errors import InputError
from harness.evaluation import fingerprint
from harness.files import atomic
from harness.files.folders import same_form
from harness.types import Descriptor, Vectors
from protocols.colmap.keypoints import KeypointTable, frames_of, table_for_colmap
from protocols.colmap.mapping import models, quiet
from protocols.colmap.verification import verified
from protocols.eth import pair_lists, retrieval
from protocols.eth.matching import RATIO, SAMPLE, Axes, axes
from protocols.eth.matching import match as matched
from protocols.imaging.affine import AffineFrames
from protocols.imaging.keypoint_patches import USUAL, KeypointCut
from protocols.pipelines import database as databases
from protocols.pipelines import masks as mask_files
from protocols.pipelines import photographs
from protocols.pipelines.database import ListedImage, VerifiedPair
from protocols.pipelines.detectors import KEYPOINTS, SIFT
from protocols.pipelines.detectors import detector as detector_of
from protocols.pipelines.features import FeatureFolder, make
from protocols.pipelines.match import must_be_ratio
from protocols.pipelines.photographs import Photograph
from protocols.resuming import resuming

RETRIEVED = "retrieved"  # the fact that holds pairs of images that look alike
STORED = "database"  # the detector that takes the keypoints of the database
NEIGHBOURS = 20  # of an image, for sequential pairs and retrieval
WORK = ".parts"  # end of the name of the work folder
TOGETHER = 32  # pairs that are matched between two writes to the database
HELD = 16  # images whose vectors are in memory

log = logging.getLogger(__name__)

CameraMode = Literal["auto", "single", "per-folder", "per-image"]


@dataclass(frozen=True)
class Mapped:
    """One model that COLMAP mapped."""

    folder: Path
    registered: int
    points: int
    observations: int
    track_length: float
    reprojection_error_px: float


@dataclass(frozen=True)
class Filled:
    """The contents of a database, and what a run added."""

    database: Path
    images: int  # with keypoints that were described, or were before
    pairs: int  # that were asked for
    added: int  # of them, matched by this run
    counts: Mapping[str, int]  # see `database.counts`
    empty: tuple[str, ...]  # images without a keypoint
    skipped: Mapping[str, str]  # images that are left out, and why
    models: tuple[Mapped, ...]  # the largest first; () if none was asked for


def colmap(
    images: Path,
    database: Path,
    *,
    model: Descriptor,
    detector: str | None = None,
    keypoints: int = KEYPOINTS,
    masks: Path | None = None,
    pairs: str = pair_lists.EXHAUSTIVE,
    neighbours: int = NEIGHBOURS,
    ratio: float = RATIO,
    camera_mode: CameraMode = "auto",
    camera_model: str = "SIMPLE_RADIAL",
    seed: int = 0,
    mapped: Path | None = None,
    cut: KeypointCut = USUAL,
    silent: bool = True,
) -> Filled:
    """Fill a COLMAP database with keypoints and verified matches of a descriptor.

    The database serves `colmap mapper` and pycolmap at once. It has no descriptors. A run that was
    stopped or killed continues at the first image that is not described, or the first pair that is
    not matched. New images and pairs are added to those of earlier runs of the same settings.

    Args:
        images: a folder of images; those in folders below it have names like "left/a.jpg".
        database: COLMAP's file; made if it is missing. Cameras and keypoints that it has are taken.
        model: the descriptor.
        detector: a name or a file; see `detectors`. None: the keypoints of the database if it has
            some, otherwise SIFT's.
        keypoints: wanted number of keypoints in an image; see `detectors.detector`.
        masks: a folder of masks; see `masks`.
        pairs: "exhaustive", "sequential", "retrieval", or a file of two names a line.
        neighbours: images that each image is matched with, for sequential pairs and retrieval.
        ratio: largest accepted ratio of distances, as in `eth`.
        camera_mode: which images share a camera, as in COLMAP: "auto" (those with the same camera
            in their EXIF data), "single", "per-folder" or "per-image".
        camera_model: of new cameras, as COLMAP names it.
        seed: of random draws in verification and mapping.
        mapped: a new folder for the models that COLMAP maps: `0`, `1`, ..., the largest first.
        cut: how patches are cut.
        silent: show no progress.

    Raises:
        InputError: if fewer than two images can be used, the file is no database, or it holds
            keypoints or matches that this run would mix with others.
        BlockingIOError: if another process is filling the database.
    """
    must_be_ratio(ratio)
    _must_be_possible(images, neighbours, camera_model, seed, mapped)
    atomic.must_be_writable(database.parent, f"{database} can't be written", "choose another path")
    readable, skipped = photographs.opened(images)
    total = len(readable) + len(skipped)
    if total < 2:
        raise InputError(f"{images} has one image: two or more are needed for matches")
    work = database.with_name(f".{database.name}{WORK}")
    detect_name = _detector_name(database, detector)
    detect = None if detect_name == STORED else detector_of(detect_name, keypoints)
    if detect is None and masks is not None:
        raise InputError(
            "--masks drop keypoints when they are detected; those of the database are there"
            " already: give a database without keypoints, or no --masks"
        )
    facts: dict[str, object] = {
        "model": model.name,
        "weights": model.weights or "",
        "revision": model.revision,
        "fingerprint": fingerprint(model),
        "detector": STORED if detect is None else detect.identity,
        "masks": "" if masks is None else folder_sha256(masks),
        "ratio": ratio,
        "seed": seed,
        **asdict(cut),
    }
    if database.exists():
        _must_not_mix(database, facts)
    with resuming(work, facts, replace=False), quiet():
        databases.make(database)
        databases.add_facts(database, facts)
        chosen = _listed(database, readable, skipped, camera_mode, camera_model)
        run = _Run(database, model, cut, ratio, seed, chosen, FeatureFolder(work), silent)
        finder = run.stored_frames if detect is None else _masked(detect, masks)
        asked = run.pairs_of(pairs, neighbours, finder, skipped)
        added = run.match(asked, finder, skipped)
        shutil.rmtree(work)
        maps = () if mapped is None else _mapped(database, images, mapped, seed, silent)
    photographs.report(skipped, total)
    listed = databases.images(database)
    used = [name for name in chosen if name not in skipped]
    return Filled(
        database=database,
        images=len(used),
        pairs=sum(not skipped.keys() & {*pair} for pair in asked),
        added=added,
        counts=databases.counts(database),
        empty=tuple(name for name in used if not listed[same_form(name)].keypoints),
        skipped=skipped,
        models=maps,
    )


T = TypeVar("T")

Finder = Callable[[Photograph], AffineFrames]


@dataclass(frozen=True)
class _Run:
    """One run on a database; images by their names, in order."""

    database: Path
    model: Descriptor
    cut: KeypointCut
    ratio: float
    seed: int
    images: dict[str, tuple[Photograph, ListedImage]]
    parts: FeatureFolder
    silent: bool

    def stored_frames(self, photograph: Photograph) -> AffineFrames:
        """The keypoints that the database has of an image."""
        _, listed = self.images[photograph.name]
        if listed.keypoints is None:
            raise InputError("the database has keypoints of other images, but none of this one")
        return frames_of(databases.read_keypoints(self.database, listed.number))

    def pairs_of(
        self, way: str, neighbours: int, find: Finder, skipped: dict[str, str]
    ) -> list[tuple[str, str]]:
        """The pairs of names to be matched."""
        names = list(self.images)
        if way == pair_lists.EXHAUSTIVE:
            rows = pair_lists.exhaustive(len(names))
        elif way == pair_lists.SEQUENTIAL:
            rows = pair_lists.sequential(len(names), neighbours)
        elif way == pair_lists.RETRIEVAL:
            return self._retrieved(neighbours, find, skipped)
        else:
            rows, unknown = pair_lists.listed(Path(way), names)
            if unknown:
                log.warning("%s: %d lines name an image that is not used", way, unknown)
        if not rows:
            raise InputError(f"pairs {way}: there is no pair of two images that can be used")
        return [(names[a], names[b]) for a, b in rows]

    def _retrieved(
        self, neighbours: int, find: Finder, skipped: dict[str, str]
    ) -> list[tuple[str, str]]:
        """Pairs of images that look alike; the database keeps those of the same images."""
        origin = [[name, one.sha256] for name, (one, _) in self.images.items()]
        known = databases.facts(self.database).get(RETRIEVED)
        if isinstance(known, dict) and known["of"] == [neighbours, origin]:
            return [(a, b) for a, b in known["pairs"]]
        self.describe(list(self.images), find, skipped)
        names = [name for name in self.images if name not in skipped]
        rows = retrieval.alike(
            len(names), lambda row: self._vectors(names[row]), self.model.distance, neighbours
        )
        pairs = [(names[a], names[b]) for a, b in rows]
        if not skipped.keys() & self.images.keys():
            found = {RETRIEVED: {"of": [neighbours, origin], "pairs": pairs}}
            databases.add_facts(self.database, found)
        return pairs

    def describe(self, names: Sequence[str], find: Finder, skipped: dict[str, str]) -> None:
        """Make the features of images, and write keypoints of images that have none."""
        some = [self.images[name][0] for name in names]
        with progress.shown("images described", len(some), silent=self.silent) as advance:
            skipped |= make(some, find, self.model, self.cut, self.parts, advance)
        listed = databases.images(self.database)
        for group in _groups([name for name in names if name not in skipped]):
            tables = []
            for name in group:
                image = listed[same_form(name)]
                frames = self.parts.frames(self.images[name][0])
                if image.keypoints is None:
                    tables.append((image.number, table_for_colmap(frames)))
                elif image.keypoints != len(frames):
                    raise InputError(
                        f"{self.database} has {image.keypoints} keypoints of {name}, and"
                        f" {len(frames)} are found now: give another --database"
                    )
            databases.write_keypoints(self.database, tables)
            described = {_fact_of(name): self.images[name][0].sha256 for name in group}
            databases.add_facts(self.database, described)

    def match(
        self, wanted: Sequence[tuple[str, str]], find: Finder, skipped: dict[str, str]
    ) -> int:
        """Match and verify the pairs that the database lacks; returns their number."""
        done = databases.verified_pairs(self.database)
        waiting = [pair for pair in wanted if self._numbers(pair) not in done]
        lacking = [name for name, (_, image) in self.images.items() if image.keypoints is None]
        needed = {name for pair in waiting for name in pair} | set(lacking)
        self.describe([name for name in self.images if name in needed], find, skipped)
        waiting = [pair for pair in waiting if not {*pair} & skipped.keys()]
        if not waiting:
            return 0
        held = lru_cache(HELD)(self._vectors)
        tables = lru_cache(HELD)(self._table)
        by = self._axes([name for name in self.images if name in needed - skipped.keys()])

        def verify(pair: tuple[str, str]) -> VerifiedPair:
            (_, first), (_, second) = (self.images[name] for name in pair)
            a, b = (held(name) for name in pair)
            matches = matched(a, b, by, self.ratio)
            places = tables(pair[0])[:, :2], tables(pair[1])[:, :2]
            geometry = verified((first.camera, second.camera), places, matches, self.seed)
            return VerifiedPair(first.number, second.number, matches, geometry)

        with (
            progress.shown("pairs matched", len(wanted), silent=self.silent) as advance,
            pycolmap.Database.open(self.database) as opened,
        ):
            advance(len(wanted) - len(waiting))
            for group in _groups(waiting):
                databases.write_pairs(opened, parallel.each(verify, group))
                advance(len(group))
        return len(waiting)

    def _vectors(self, name: str) -> Vectors:
        return self.parts.vectors(self.images[name][0])

    def _table(self, name: str) -> KeypointTable:
        return table_for_colmap(self.parts.frames(self.images[name][0]))

    def _numbers(self, pair: tuple[str, str]) -> tuple[int, int]:
        first, second = (self.images[name][1].number for name in pair)
        return min(first, second), max(first, second)

    def _axes(self, names: Sequence[str]) -> Axes:
        """The axes of a sample of the images' vectors; one image is in memory at a time."""
        most = -(-SAMPLE // len(names))
        sample: list[Vectors] = []
        for name in names:
            vectors = self._vectors(name)
            sample.append(vectors[:: -(-len(vectors) // most) or 1].copy())
        return axes(sample, self.model.distance)


def _groups(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Items that are written to the database together."""
    return (items[i : i + TOGETHER] for i in range(0, len(items), TOGETHER))


def _must_be_possible(
    images: Path, neighbours: int, camera_model: str, seed: int, mapped: Path | None
) -> None:
    if neighbours < 1 or not 0 <= seed < 1 << 31:
        raise InputError(
            f"neighbours {neighbours}, seed {seed}: at least 1 neighbour, and a seed from 0 to"
            " 2^31 - 1 are wanted"
        )
    known = [name for name, kind in pycolmap.CameraModelId.__members__.items() if int(kind) >= 0]
    if camera_model not in known:
        raise InputError(f"camera model {camera_model!r}; COLMAP's are {', '.join(known)}")
    if mapped is not None:
        atomic.must_be_free(mapped)
    if not images.is_dir():
        raise InputError(f"{images} is not a folder: give one that holds photographs")


def _detector_name(database: Path, given: str | None) -> str:
    """The given detector, else the way in which the database gets its keypoints."""
    if not database.exists():
        return given or SIFT
    databases.make(database)
    known = databases.facts(database)
    has_keypoints = any(one.keypoints for one in databases.images(database).values())
    if not known and has_keypoints:
        if given:
            raise InputError(
                f"{database} has keypoints: leave out --detector to take them, or give a database"
                " without keypoints"
            )
        return STORED
    return given or (STORED if known.get("detector") == STORED else SIFT)


def _must_not_mix(database: Path, facts: Mapping[str, object]) -> None:
    """Refuse a database with matches of another origin, or of other settings."""
    known = databases.facts(database)
    remedy = "give another --database, or a copy without them"
    if not known:
        counts = databases.counts(database)
        if counts["matched_pairs"] or counts["verified_pairs"]:
            raise InputError(
                f"{database} has matches of {counts['matched_pairs']} pairs that were not made"
                f" here, and would be mixed with those of {facts['model']}: {remedy}"
            )
    for name, value in facts.items():
        if known and known.get(name) != value:
            raise InputError(
                f"{database} was filled with {name} {known.get(name)!s:.80}, not"
                f" {value!s:.80}: {remedy}"
            )


def _listed(
    database: Path,
    readable: Sequence[Photograph],
    skipped: dict[str, str],
    camera_mode: str,
    camera_model: str,
) -> dict[str, tuple[Photograph, ListedImage]]:
    """The images that the database and the folder have; new images are added to the database."""
    there = databases.images(database)
    new = [one for one in readable if same_form(one.name) not in there]
    databases.add_images(database, new, camera_mode, camera_model)
    there, known = databases.images(database), databases.facts(database)
    chosen = {}
    for one in readable:
        listed = there.get(same_form(one.name))
        if listed is None:
            skipped[one.name] = "COLMAP can't read it, or it has another size than its camera"
            continue
        width, height = listed.camera.width, listed.camera.height
        if (width, height) != (one.width, one.height):
            skipped[one.name] = (
                f"it has {one.width} x {one.height} pixels, its camera in {database} has"
                f" {width} x {height}"
            )
            continue
        if known.get(_fact_of(one.name), one.sha256) != one.sha256:
            skipped[one.name] = (
                f"its file has changed since its keypoints were written to {database}: give another"
                " --database"
            )
            continue
        chosen[one.name] = one, listed
    in_folder = {same_form(one.name) for one in readable} | set(map(same_form, skipped))
    absent = sorted(there.keys() - in_folder)
    if absent:
        log.warning(
            "%d images of %s are not in the folder, and are left as they are: %s%s",
            len(absent), database, absent[0], " and others" * (len(absent) > 1),
        )  # fmt: skip
    if len(chosen) < 2:
        photographs.report(skipped, len(readable) + len(skipped))
        raise InputError(f"{len(chosen)} images can be used: two or more are needed for matches")
    return chosen


def _fact_of(name: str) -> str:
    """The fact that holds the hash of an image file."""
    return f"sha256 of {same_form(name)}"


def _masked(detect: Finder, masks: Path | None) -> Finder:
    return lambda photograph: mask_files.kept(masks, photograph, detect(photograph))


def _mapped(database: Path, images: Path, out: Path, seed: int, silent: bool) -> tuple[Mapped, ...]:
    """Map the database, and write each model in a folder of its own, in binary form.

    Names of images may have blanks, which the text form can't hold.
    """
    with atomic.placing(out) as unfinished, progress.shown("mapping", silent=silent):
        found = models(database, images, seed=seed, threads=1, colours=True)
        told = []
        for number, model in enumerate(found):
            folder = unfinished / str(number)
            folder.mkdir()
            model.write_binary(folder)
            told.append(
                Mapped(
                    out / str(number),
                    registered=model.num_reg_images(),
                    points=model.num_points3D(),
                    observations=model.compute_num_observations(),
                    track_length=model.compute_mean_track_length(),
                    reprojection_error_px=model.compute_mean_reprojection_error(),
                )
            )
    return tuple(told)
