"""Assembles the patches of many images into one scene in the official PhotoTour format."""

import logging
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path

import cv2
import numpy as np
from jaxtyping import Float64, Int

from harness import parallel
from harness.errors import InputError
from harness.files.atomic import placing
from protocols.builders.homography.points import octave
from protocols.builders.homography.shots import Asked, Shot, UselessImageError
from protocols.builders.phototour import pairs
from protocols.imaging import kept_fingerprints, photographs, same_photograph
from protocols.imaging.frames import Frames
from protocols.phototour.scene_names import check_name
from protocols.phototour.writer import fill
from protocols.resuming import resuming

APART = 1e9  # distance of two images in pixels, so that their points never overlap
KEPT = ("left_out", "short", "points", "octaves", "pairs", "correlation")  # in dataset.json

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SingleImagesReport:
    """The result of a build."""

    name: str  # of the data set
    folder: Path
    images: int  # number of images with patches
    left_out: Mapping[str, str]  # images without patches, and why
    short: int  # images with fewer points than asked for
    points: int
    versions: int  # patches of each point
    smallest: float  # scale in pixels at which the first octave begins
    octaves: tuple[int, ...]  # points by octave of scale, the smallest first
    pairs: Mapping[str, int]  # in each list
    correlation: Mapping[str, float]  # mean over matches, and over non-matches of one image

    def __str__(self) -> str:
        """The report as a paragraph."""
        lists = ", ".join(f"{name} ({n})" for name, n in self.pairs.items())
        return "\n".join(
            [
                f"{self.name} in {self.folder}",
                f"{self.points * self.versions} patches of {self.points} points, {self.versions}"
                f" each, from {self.images} images",
                f"{self.short} images with fewer points than asked for",
                f"{len(self.left_out)} images left out{photographs.some(self.left_out)}",
                f"points by octave of scale, from {self.smallest:g} pixels:"
                f" {' '.join(map(str, self.octaves))}",
                f"lists of pairs: {lists}",
                "mean correlation of patches: "
                + ", ".join(f"{kind} {value:.3f}" for kind, value in self.correlation.items()),
            ]
        )


def assemble(
    images: Path,
    out: Path,
    shoot: Callable[[Path, Path, str], Shot],
    asked: Asked,
    *,
    name: str | None,
    builder: int,
    smallest: float,
    parameters: Mapping[str, object],
    tests: Path | None,
    progress: Callable[[int, int], None] | None,
) -> SingleImagesReport:
    """Build a data set in the folder `out` from the patches that `shoot` makes of each image.

    Finished work is kept beside `out` until the set is complete.

    Args:
        images: a folder; images in its subfolders are found too.
        out: a new or empty folder. Its name becomes the name of the scene.
        shoot: makes the patches of an image; takes a folder to keep them in, the file, its sha256.
        asked: the settings of `shoot`.
        name: the data set is called "phototour-NAME"; None takes the name of `out`.
        builder: version of the builder.
        smallest: scale of the smallest possible point, in pixels.
        parameters: the other settings that decide the patches.
        tests: a folder of test images; images of their photographs are left out.
        progress: called with the number of finished images and the number of all images.

    Raises:
        InputError: if there are no images, or no points in them.
        FileInTheWayError: if `out` is not empty.
        BlockingIOError: if another process builds the same set.
    """
    out = out.absolute()
    name = out.name if name is None else name
    check_name(out, name)
    with placing(out) as folder:
        listed = photographs.find(images)
        hashes = dict(
            zip(
                listed, parallel.each(lambda n: photographs.sha256(images / n), listed), strict=True
            )
        )
        origin = {
            "builder": {
                "version": builder,
                **{library: version(library) for library in ("numpy", "scipy")},
                "opencv": cv2.__version__,
            },
            "parameters": {**asdict(asked), **parameters},
            "fingerprints": kept_fingerprints.FORM,
        }
        work = folder.with_name(f".{out.name}.patches")
        with resuming(work, origin):
            tested = _tested(images, tests)
            used = {image: sha for image, sha in hashes.items() if image not in tested}
            shots, left_out = _shots(images, used, partial(shoot, work), progress)
            left_out |= tested
            squares = [shot.squares for shot in shots.values()]
            counts = [len(frames) for frames in squares]
            if sum(counts) < 2:
                shutil.rmtree(work)
                raise InputError(
                    f"the {len(listed)} images of {images} have {sum(counts)} points, two are"
                    f" needed{photographs.some(left_out)}; give other images, or larger ones"
                )
            number = np.repeat(np.arange(len(shots)), counts)
            lists = _lists(number, squares, asked.versions, asked.seed)
            same, other = np.concatenate([shot.correlation for shot in shots.values()]).T
            octaves = octave(_all(squares, "half") / asked.magnification, smallest)
            report = SingleImagesReport(
                name=f"phototour-{name}",
                folder=out,
                images=len(shots),
                left_out=left_out,
                short=sum(n < asked.points for n in counts),
                points=len(number),
                versions=asked.versions,
                smallest=smallest,
                octaves=tuple(np.bincount(octaves).tolist()),
                pairs={file: len(rows) for file, rows in lists.items()},
                correlation={
                    kind: round(float(values.mean()), 4)
                    for kind, values in (
                        ("matches", same),
                        ("non-matches", other[~np.isnan(other)]),
                    )
                    if len(values)
                },
            )
            about = {
                "name": report.name,
                **origin,
                "images": [
                    {"name": image_name, "sha256": hashes[image_name]} for image_name in shots
                ],
                **{key: value for key, value in asdict(report).items() if key in KEPT},
            }
            kept_fingerprints.keep(folder, np.stack([one.fingerprints for one in shots.values()]))
            image = np.repeat(number, asked.versions)
            interest = np.concatenate([shot.interest for shot in shots.values()])
            fill(
                folder,
                (shot.patches() for shot in shots.values()),
                np.repeat(np.arange(len(number)), asked.versions),
                np.column_stack([image, interest]),
                lists,
                second=image,
                about=about,
            )
        shutil.rmtree(work)
    return report


def _tested(images: Path, tests: Path | None) -> dict[str, str]:
    """The reasons to leave out the images whose photographs are test images."""
    if tests is None:
        return {}
    pairs = same_photograph.shared(images, tests)
    reasons = {pair.first: f"the same photograph as {tests / pair.second}" for pair in pairs[::-1]}
    for image, reason in reasons.items():
        log.warning("%s is left out: it is %s", image, reason)
    return reasons


def _shots(
    images: Path,
    hashes: Mapping[str, str],
    make: Callable[[Path, str], Shot],
    progress: Callable[[int, int], None] | None,
) -> tuple[dict[str, Shot], dict[str, str]]:
    """The patches of each image, and the reasons of images without patches."""
    first: dict[str, str] = {}
    for image, sha in hashes.items():
        first.setdefault(sha, image)
    asked = [(images / image, sha) for sha, image in first.items()]
    made = parallel.each_apart(partial(_attempt, make), asked, progress)
    by_name = dict(zip(first.values(), made, strict=True))
    same = {image: f"the same as {first[sha]}" for image, sha in hashes.items()}
    outcome = {image: by_name.get(image, same[image]) for image in hashes}
    left_out = {image: why for image, why in outcome.items() if isinstance(why, str)}
    if left_out:
        log.warning(
            "%d of %d images left out%s", len(left_out), len(hashes), photographs.some(left_out)
        )
    return {image: shot for image, shot in outcome.items() if isinstance(shot, Shot)}, left_out


def _attempt(make: Callable[[Path, str], Shot], image: tuple[Path, str]) -> Shot | str:
    try:
        return make(*image)
    except UselessImageError as error:
        return str(error)


def _lists(
    image: Int[np.ndarray, " points"], squares: Sequence[Frames], versions: int, seed: int
) -> dict[str, pairs.RowPairs]:
    """Lists of pairs: any two versions of a point match, however different they look."""
    xyz = np.column_stack([_all(squares, "x"), _all(squares, "y"), APART * image])
    point = np.repeat(np.arange(len(image)), versions)
    zero = np.zeros(len(point))
    half = _all(squares, "half")[point]
    drawn = pairs.PatchFacts(point, image[point], xyz[point], half, zero, zero)
    two = np.column_stack(np.triu_indices(versions, 1))
    fit = (versions * np.arange(len(image))[:, None, None] + two).reshape(-1, 2)
    return pairs.lists(drawn, fit, seed)


def _all(squares: Sequence[Frames], column: str) -> Float64[np.ndarray, " points"]:
    return np.concatenate([getattr(frames, column) for frames in squares])
