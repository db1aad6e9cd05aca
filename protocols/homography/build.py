"""Makes training data in the official PhotoTour format out of any images, by known homographies.

Points are found in each image, blobs and corners at all scales. Each gets some patches, its
*versions*: the region around it as a detector might have found it in other pictures, turned,
scaled, stretched, shifted and tilted at random, and read from the image in one go; then blurred,
relit, made noisy and compressed at random. `Strengths` has all that can be changed about this.

At strength 0 half a side is six times the detected scale, as in scenes that are built from
photographs; see `protocols.phototour.build`. Scales are 1.6 pixels and more. A patch never shows
what lies beyond the border of its image. Images that are the same byte for byte are used once, and
points whose squares overlap much become one: training would learn that the same is not the same.
For that reason give images of different things. Photographs of one place show its points again and
again, and each time as another one.

In `interest.txt` are the number of a patch's image, so that samplers find others of the same image,
and its own x, y, direction in radians and binary logarithm of the scale, as a detector would have
given them; `dataset.json` lists the images. Pairs of the m50 lists are any two versions of a point,
and versions of two points of one image.

A point's versions depend on the seed, the contents of its image and the point alone. The same
images give the same bytes with the same libraries; with others a grey value may differ here or
there.
"""

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
from protocols.homography.points import octave
from protocols.homography.shots import Shot, UselessImageError, shoot
from protocols.homography.strengths import DEFAULT, Strengths
from protocols.images import photographs
from protocols.images.detect import SMALLEST
from protocols.images.frames import Frames
from protocols.phototour import pairs
from protocols.phototour.observations import MAGNIFICATION
from protocols.phototour.place import check_place
from protocols.phototour.writer import write_scene
from protocols.resuming import resuming

VERSION = 1  # raised whenever the same images could give other patches
MOST_VERSIONS = 100
SHOWN = 5  # images left out that a message names
APART = 1e9  # pixels between two images, for what overlaps
KEPT = ("left_out", "short", "points", "octaves", "pairs", "correlation")  # of the report

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Report:
    """What a build made."""

    name: str  # of the data set
    folder: Path
    images: int  # that patches come from
    left_out: Mapping[str, str]  # images without patches, and why
    short: int  # images with fewer points than asked for
    points: int
    versions: int  # patches of each
    octaves: tuple[int, ...]  # points by scale, the smallest first
    pairs: Mapping[str, int]  # in each list
    correlation: Mapping[str, float]  # mean over matches, and over non-matches of one image

    def __str__(self) -> str:
        """A paragraph of it."""
        lists = ", ".join(f"{name} ({n})" for name, n in self.pairs.items())
        return "\n".join(
            [
                f"{self.name} in {self.folder}",
                f"{self.points * self.versions} patches of {self.points} points, {self.versions}"
                f" each, from {self.images} images",
                f"{self.short} images with fewer points than asked for",
                f"{len(self.left_out)} images left out{_some(self.left_out)}",
                f"points by octave of scale, from {SMALLEST} pixels:"
                f" {' '.join(map(str, self.octaves))}",
                f"lists of pairs: {lists}",
                "mean correlation of patches: "
                + ", ".join(f"{kind} {value:.3f}" for kind, value in self.correlation.items()),
            ]
        )


def build(
    images: Path,
    out: Path,
    *,
    points: int = 100,
    versions: int = 8,
    name: str | None = None,
    seed: int = 0,
    strengths: Strengths = DEFAULT,
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """Make a set in the folder `out` from the images in a folder and below it.

    `out` appears when the set is whole. What is done is kept beside it until then, so that a build
    that was stopped goes on where it was. Images that can't be read, or show nothing that stands
    out, are left out and reported.

    Args:
        images: a folder; those in folders below it are found too.
        out: a new folder, or an empty one. Its name is that of the scene.
        points: of each image, at most. A larger number gives the same points and others.
        versions: patches of each point.
        name: the data set is called "phototour-" and this; the name of `out` where None.
        seed: of all that is random.
        strengths: of the differences between versions.
        progress: called with the number of finished images and that of all.

    Raises:
        ValueError: if a number is out of range, or there are no images, or no points in them.
        FileExistsError: if there is something in `out`.
        BlockingIOError: if another process makes the same set.
    """
    if points < 1 or not 2 <= versions <= MOST_VERSIONS or seed < 0:
        raise ValueError(
            f"points is {points}, versions {versions}, seed {seed}: give at least 1 point, from 2"
            f" to {MOST_VERSIONS} versions and a seed from 0"
        )
    out = out.absolute()
    name = out.name if name is None else name
    check_place(out, name)
    listed = photographs.find(images)
    hashes = dict(
        zip(listed, parallel.each(lambda n: photographs.sha256(images / n), listed), strict=True)
    )
    parameters = {
        "points": points,
        "versions": versions,
        "seed": seed,
        "magnification": MAGNIFICATION,
        "strengths": asdict(strengths),
    }
    builder = {
        "version": VERSION,
        **{library: version(library) for library in ("numpy", "scipy")},
        "opencv": cv2.__version__,
    }
    work = out.with_name(f".{out.name}.patches")
    with resuming(work, {"builder": builder, "parameters": parameters}):
        make = partial(
            shoot, work, points=points, versions=versions, seed=seed, strengths=strengths
        )
        shots, left_out = _shots(images, hashes, make, progress)
        squares = [shot.squares for shot in shots.values()]
        found = [len(own) for own in squares]
        if sum(found) < 2:
            shutil.rmtree(work)
            raise ValueError(
                f"points in the {len(listed)} images of {images}: {sum(found)}, two are needed"
                f"{_some(left_out)}; give other images, or larger ones"
            )
        number = np.repeat(np.arange(len(shots)), found)
        lists = _lists(number, squares, versions, seed)
        same, other = np.concatenate([shot.correlation for shot in shots.values()]).T
        report = Report(
            name=f"phototour-{name}",
            folder=out,
            images=len(shots),
            left_out=left_out,
            short=sum(n < points for n in found),
            points=len(number),
            versions=versions,
            octaves=tuple(np.bincount(octave(_all(squares, "half"))).tolist()),
            pairs={file: len(rows) for file, rows in lists.items()},
            correlation={
                kind: round(float(values.mean()), 4)
                for kind, values in (("matches", same), ("non-matches", other[~np.isnan(other)]))
                if len(values)
            },
        )
        about = {
            "name": report.name,
            "builder": builder,
            "parameters": parameters,
            "images": [{"name": one, "sha256": hashes[one]} for one in shots],
            **{key: value for key, value in asdict(report).items() if key in KEPT},
        }
        image = np.repeat(number, versions)
        interest = np.concatenate([shot.interest for shot in shots.values()])
        write_scene(
            out,
            (shot.patches() for shot in shots.values()),
            np.repeat(np.arange(len(number)), versions),
            np.column_stack([image, interest]),
            lists,
            second=image,
            about=about,
        )
    shutil.rmtree(work)
    return report


def _shots(
    images: Path,
    hashes: Mapping[str, str],
    make: Callable[[Path, str], Shot],
    progress: Callable[[int, int], None] | None,
) -> tuple[dict[str, Shot], dict[str, str]]:
    """What became of each image: its patches, or why there are none."""
    first: dict[str, str] = {}
    for one, sha in hashes.items():
        first.setdefault(sha, one)
    asked = [(images / one, sha) for sha, one in first.items()]
    made = parallel.each_apart(partial(_attempt, make), asked, progress)
    found = dict(zip(first.values(), made, strict=True))
    same = {one: f"the same as {first[sha]}" for one, sha in hashes.items()}
    outcome = {one: found.get(one, same[one]) for one in hashes}
    left_out = {one: why for one, why in outcome.items() if isinstance(why, str)}
    if left_out:
        log.warning("%d of %d images left out%s", len(left_out), len(hashes), _some(left_out))
    return {one: shot for one, shot in outcome.items() if isinstance(shot, Shot)}, left_out


def _attempt(make: Callable[[Path, str], Shot], image: tuple[Path, str]) -> Shot | str:
    try:
        return make(*image)
    except UselessImageError as error:
        return str(error)


def _lists(
    image: Int[np.ndarray, " points"], squares: Sequence[Frames], versions: int, seed: int
) -> dict[str, pairs.Pairs]:
    """Lists of pairs: all versions of a point match, whatever has become of them."""
    xyz = np.column_stack([_all(squares, "x"), _all(squares, "y"), APART * image])
    point = np.repeat(np.arange(len(image)), versions)
    zero = np.zeros(len(point))
    half = _all(squares, "half")[point]
    drawn = pairs.Patches(point, image[point], xyz[point], half, zero, zero)
    two = np.column_stack(np.triu_indices(versions, 1))
    fit = (versions * np.arange(len(image))[:, None, None] + two).reshape(-1, 2)
    return pairs.lists(drawn, fit, seed)


def _all(squares: Sequence[Frames], column: str) -> Float64[np.ndarray, " points"]:
    return np.concatenate([getattr(own, column) for own in squares])


def _some(left_out: Mapping[str, str]) -> str:
    """The first of the images left out, with the reasons."""
    texts = [f"{one} ({why})" for one, why in left_out.items()]
    more = [f"and {len(texts) - SHOWN} more"] * (len(texts) > SHOWN)
    return ": " * bool(texts) + ", ".join(texts[:SHOWN] + more)
