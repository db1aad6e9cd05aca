"""Builds a scene in the official PhotoTour format from photographs, by structure from motion.

COLMAP reconstructs a sparse model of the photographs, or the user gives one. An *observation* is a
keypoint of an image that shows a point of the model. For each point that two images or more
observe, a square around each observation is cut out and scaled to 64 x 64 pixels.

The square has the centre, size and direction of the keypoint that was detected in *this* image. So
the patches of a point differ as a detector makes them differ, like the official patches (of the
newer release, "centred on real interest point detections"). Half a side is six times the keypoint's
scale. SIFT describes the same square, 4 x 4 cells of three scales each, so no descriptor sees less
than SIFT. The scale is that of the Gaussian; most scales are 1 to 2 pixels, so most patches are
enlarged. With `frames="projected"` all patches of a point show the same piece of the world instead:
one image gives size and direction, and the geometry maps them to the other images.

Keypoints that SIFT matched are easy to match, and the official matches were found by geometry
alone. So an unmatched keypoint also becomes an observation if the model projects a point to its
place (`extend`). Without these few observations, SIFT looks better than it is: with them, on scenes
of a facade and a fountain, FPR95 is 0.13 % and 0.22 % for RootSIFT, 0.11 % and 0.14 % for TFeat.
Expect numbers far below the official ones, for three reasons: SIFT matched every point in two
images; photographs that COLMAP can't place are not used; and photographs of one day differ less
than those of many tourists. A patch shows nothing beyond the border of an image.

Pairs follow the official rules. Matches agree in place to 5 pixels, in scale to 0.25 octaves and in
direction to pi/8, after mapping by the geometry. Non-matches show two points with the same
reference image whose patches do not overlap much. A point's reference image is the image that shows
it largest; its number is the first one in `interest.txt`. The other numbers there (x, y, direction
in radians, binary logarithm of the scale) belong to the patch, in its own image; that image's
number is the second one in `info.txt`. `dataset.json` lists the images.
"""

import logging
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import IO

import cv2
import numpy as np
from jaxtyping import Int, UInt8

from harness.errors import InputError
from harness.files import folders
from harness.files.atomic import placing
from protocols.builders.phototour import extension, fit, observations, pairs
from protocols.builders.phototour.observations import MAGNIFICATION
from protocols.builders.phototour.patches import extract
from protocols.builders.phototour.reconstruct import DATABASE, reconstruct
from protocols.builders.phototour.selection import ObservationTally, choose
from protocols.builders.phototour.sparse import Photograph, read
from protocols.colmap.model import files_of
from protocols.imaging import kept_fingerprints, photographs, same_photograph
from protocols.imaging.agreement import correlation
from protocols.imaging.frames import Frames
from protocols.imaging.grey import read_grey
from protocols.imaging.photographs import sha256
from protocols.phototour.scene_names import check_name
from protocols.phototour.writer import SIDE, TILE, fill

VERSION = 1  # raised whenever the same images could give other patches
COMPARED = 2000  # most pairs of each kind for the mean correlation
KEPT = "colmap"  # the folder of the reconstruction, inside the scene's folder
HOW = ("detected", "projected")

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SceneReport:
    """The result of a build."""

    name: str  # of the data set
    folder: Path
    images: int  # readable images in the folder
    left_out: Mapping[str, str]  # images that can't be read, and why
    registered: int  # images that COLMAP could place
    added: int  # observations that SIFT had not matched
    by_chance: float  # estimated share of chance hits among these, see `extension`
    tally: ObservationTally
    pairs: Mapping[str, int]  # number of pairs in each list
    fit: float  # share of all pairs of patches of one point that may be matches
    offset_px: float  # median distance of keypoints from the projections of their points
    correlation: Mapping[str, float]  # mean over some matches, and over some non-matches

    def __str__(self) -> str:
        """The report as a paragraph."""
        t = self.tally
        lists = ", ".join(f"{name} ({n})" for name, n in self.pairs.items())
        return "\n".join(
            [
                f"{self.name} in {self.folder}",
                f"{self.registered} of {self.images} images registered by COLMAP",
                f"{len(self.left_out)} images left out{photographs.some(self.left_out)}",
                f"{t.patches} patches of {t.points} points, {t.patches / t.points:.2f} each",
                f"{t.observations} observations, {self.added} of them found by geometry alone"
                f" ({self.by_chance:.1%} of these by chance)",
                f"left out: {t.outside} extend beyond the border, {t.alone} have no partner left,"
                f" {t.behind} show their points from behind, {t.over_cap} exceed max_patches",
                f"lists of pairs: {lists}",
                f"{self.fit:.1%} of all pairs of a point's patches can be matches",
                f"keypoints lie {self.offset_px:.2f} px from their points (median)",
                "mean correlation of patches: "
                + ", ".join(f"{kind} {value:.3f}" for kind, value in self.correlation.items()),
            ]
        )


@dataclass(frozen=True)
class Base:
    """The reconstruction that a scene is built from."""

    model: Path
    database: Path | None  # has the keypoints of the model
    about: Mapping[str, object]  # for dataset.json


def build(
    images: Path,
    out: Path,
    *,
    model: Path | str | None = None,
    database: Path | str | None = None,
    name: str | None = None,
    frames: str | None = None,
    extend: bool = True,
    max_patches: int | None = None,
    shared_camera: bool | None = None,
    threads: int = 2,
    seed: int = 0,
    tests: Path | None = None,
) -> SceneReport:
    """Build a scene in the folder `out` from a folder of photographs of one place.

    Images that can't be read are left out and reported. `out` appears when the scene is complete.
    COLMAP's work is kept beside it until then, so that a build that was stopped can resume, and
    becomes its subfolder `colmap` at the end. The same model gives the same scene. COLMAP itself is
    seeded, but may give another model on another machine.

    Args:
        images: a folder; images in its subfolders are found too.
        out: a new or empty folder. Its name becomes the name of the scene.
        model: folder of a sparse model in COLMAP's binary or text format, made from `images`; None
            runs COLMAP.
        database: COLMAP's database of the model; None looks for it beside the model.
        name: the data set is called "phototour-NAME"; None takes the name of `out`.
        frames: "detected" or "projected"; None takes "detected" if the keypoints' scales and
            directions are known: always, unless a model comes without its database. Without them, a
            projected patch is upright in the reference image.
        extend: whether keypoints that SIFT did not match become observations of points that the
            model projects there; needs the database.
        max_patches: whole points are left out at random until there are at most so many patches.
        shared_camera: whether one camera with one zoom took all photographs; None takes True if
            all photographs have the same size.
        threads: most threads of COLMAP.
        seed: of COLMAP and of the pairs.
        tests: a folder of test images, with which the images must share no photograph.

    Raises:
        InputError: if images are missing, if fewer than two can be read or reconstructed, or if the
            images are not those of the model.
        FileInTheWayError: if `out` is not empty.
    """
    if frames not in (None, *HOW):
        raise InputError(f"frames is {frames!r}: give --set frames={' or frames='.join(HOW)}")
    if seed < 0:
        raise InputError(f"seed is {seed}: give a number from 0 on")
    out = out.absolute()
    name = out.name if name is None else name
    check_name(out, name)
    with placing(out) as folder:
        listed = photographs.find(images)
        if tests is not None and (tested := same_photograph.shared(images, tests)):
            raise InputError(
                f"{len({pair.first for pair in tested})} images of {images} are test images of"
                f" {tests}: {tested[0].first} is {tested[0].second}; take them out of the folder"
            )
        left_out: Mapping[str, str] = {}
        work = folder.with_name(f".{out.name}.{KEPT}")
        if model is None:
            shapes, left_out = photographs.readable(images, listed)
            listed = list(shapes)
            if len(listed) < 2:
                raise InputError(
                    f"{images} has {len(listed)} images that can be read,"
                    f" {', '.join(listed) or 'none'}{photographs.some(left_out)}: give two or more"
                    " of one place"
                )
            shared = len(set(shapes.values())) == 1 if shared_camera is None else shared_camera
            base = _reconstruct(images, listed, work, shared, seed, threads)
        else:
            base = _given(Path(model), None if database is None else Path(database))
        photos, seen = read(base.model, base.database)
        names = [photo.name for photo in photos]
        photographs.check_names(names, images, listed, base.model)
        how = frames or ("projected" if seen.keypoint is None else "detected")
        extended, by_chance = seen, 0.0
        if extend and seen.keypoint is not None:
            extended, by_chance = extension.extend(photos, seen)
        chosen, squares, reference, tally = choose(photos, extended, how, max_patches, seed)
        half, angle = observations.on_plane(chosen, squares)
        offset = np.hypot(squares.x - chosen.projected[:, 0], squares.y - chosen.projected[:, 1])
        drawn = pairs.PatchFacts(chosen.point, reference, chosen.xyz, half, angle, offset)
        fitting = pairs.matching(drawn)
        lists = pairs.lists(drawn, fitting, seed)
        with tempfile.TemporaryFile(dir=folder) as file:
            pixels = _mapped(file, tally.patches)
            log.info("%d patches", tally.patches)
            files = [folders.at(images, photograph) for photograph in names]
            cut = [
                _cut(file, photo, np.flatnonzero(chosen.image == k), squares, pixels)
                for k, (file, photo) in enumerate(zip(files, photos, strict=True))
            ]
            kept_fingerprints.keep(folder, np.stack([made for _, made in cut]))
            fit.check(files, chosen.image, chosen.point, squares, pixels)
            report = SceneReport(
                name=f"phototour-{name}",
                folder=out,
                images=len(listed),
                left_out=left_out,
                registered=len(photos),
                added=len(extended) - len(seen),
                by_chance=round(by_chance, 4),
                tally=tally,
                pairs={file_name: len(rows) for file_name, rows in lists.items()},
                fit=round(len(fitting) / _pairs_of_a_point(chosen.point), 4),
                offset_px=round(float(np.median(np.hypot(*(seen.detected - seen.projected).T))), 4),
                correlation=_correlations(pixels, chosen.point, next(iter(lists.values()))),
            )
            about = {
                "name": report.name,
                "builder": {
                    "version": VERSION,
                    "pycolmap": version("pycolmap"),
                    "opencv": cv2.__version__,
                },
                "parameters": {
                    "frames": how,
                    "extend": extended is not seen,
                    "magnification": MAGNIFICATION,
                    "max_patches": max_patches,
                    "seed": seed,
                },
                "reconstruction": base.about,
                "images": [
                    {"name": photograph, "sha256": sha}
                    for photograph, (sha, _) in zip(names, cut, strict=True)
                ],
                "fingerprints": kept_fingerprints.FORM,
                "images_not_placed": sorted(set(listed) - set(names)),
                "left_out": dict(left_out),
                "patches": asdict(tally),
                "pairs": report.pairs,
                "added": report.added,
                "by_chance": report.by_chance,
                "fit": report.fit,
                "offset_px": report.offset_px,
                "correlation": report.correlation,
            }
            scale = np.log2(squares.half / MAGNIFICATION)
            direction = np.arctan2(squares.sin, squares.cos)
            interest = np.stack([reference, squares.x, squares.y, direction, scale], 1)
            batches = (np.asarray(pixels[i : i + TILE]) for i in range(0, len(pixels), TILE))
            # The official data do not use the second number. Here it is the number of the patch's
            # own image: x and y in interest.txt are pixels of that image.
            second = chosen.image
            fill(folder, batches, chosen.point, interest, lists, second=second, about=about)
            if model is None:
                work.rename(folder / KEPT)
    return report


def _reconstruct(
    images: Path,
    listed: Sequence[str],
    work: Path,
    shared: bool,
    seed: int,
    threads: int,
) -> Base:
    hashes = {photograph: sha256(images / photograph) for photograph in listed}
    sparse = reconstruct(images, hashes, work, shared_camera=shared, seed=seed, threads=threads)
    return Base(sparse, work / DATABASE, {"shared_camera": shared})


def _given(model: Path, database: Path | None) -> Base:
    """The user's model, with the given database, or with a database that is found beside it."""
    if database is None:
        places = (folder / DATABASE for folder in (model, *model.absolute().parents[:2]))
        database = next((file for file in places if file.is_file()), None)
    files = [*files_of(model), *(file for file in (database,) if file and file.is_file())]
    return Base(model, database, {"files": {file.name: sha256(file) for file in files}})


def _cut(
    file: Path,
    photo: Photograph,
    rows: Int[np.ndarray, " m"],
    squares: Frames,
    pixels: UInt8[np.ndarray, "n 64 64"],
) -> tuple[str, same_photograph.Cuts]:
    """The sha256 and the fingerprints of an image, after its patches are written to their rows."""
    grey = read_grey(file)
    height, width = grey.shape
    if (width, height) != (photo.width, photo.height):
        raise InputError(
            f"{file} is {width} x {height} pixels, in the model it is {photo.width} x"
            f" {photo.height}: give the images that the model was made from"
        )
    for part, patches in extract(grey, squares.take(rows)):
        pixels[rows[part]] = patches
    return sha256(file), same_photograph.fingerprints(grey)


def _mapped(file: IO[bytes], n: int) -> UInt8[np.ndarray, "n 64 64"]:
    """An array of patches that is mapped to a file.

    The disk space is allocated now: on a full disk, a later write to a page would end the process.

    Raises:
        SystemRefusedError: if the disk has too little room.
    """
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, n * SIDE * SIDE)
    return np.memmap(file, np.uint8, "w+", shape=(n, SIDE, SIDE))


def _pairs_of_a_point(point: Int[np.ndarray, " n"]) -> int:
    number = np.bincount(point)
    return int((number * (number - 1) // 2).sum())


def _correlations(
    pixels: UInt8[np.ndarray, "n 64 64"], point: Int[np.ndarray, " n"], rows: pairs.RowPairs
) -> dict[str, float]:
    match = point[rows[:, 0]] == point[rows[:, 1]]
    means = {}
    for kind, chosen in (("matches", rows[match]), ("non-matches", rows[~match])):
        a, b = chosen[:COMPARED].T
        means[kind] = round(float(correlation(pixels[a], pixels[b]).mean()), 4)
    return means
