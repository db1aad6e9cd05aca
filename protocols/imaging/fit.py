"""Checks homographies against their images, and names the mistake if they do not fit.

Regions of image 1 are cut out of image 1 and, through the homography, out of image k. If the
homography is right, both patches look alike. If not, other readings of the same nine numbers are
tried. A reading is an interpretation: inverted, transposed, in pixels of another image size, from
the file of another image, and so on.
"""

import hashlib
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
from jaxtyping import Float32

from harness import cache as caches
from harness import parallel
from harness.code import code_sha256
from harness.errors import InputError
from protocols.imaging import frames, sequences
from protocols.imaging.agreement import CHANCE, Agreement, agreement, spread
from protocols.imaging.detect import detect
from protocols.imaging.frames import Frames, Maps
from protocols.imaging.grey import read_grey
from protocols.imaging.sampling import Image, middles, read, smooth
from protocols.imaging.sequences import Homography

SIDE = 16  # pixels of the patches that are compared
SMALLEST = 16.0
"""Smallest half side of a compared region, in pixels, in both images.

Smaller regions disagree even if a homography is off by only a pixel or two. On Oxford's boat 1-6,
100 regions of 8 pixels and more correlate at 0.41; regions of 16 pixels and more at 0.52 to 0.60,
depending on the choice of regions.
"""
FEWEST, MOST = 8, 100  # number of regions that are compared

MARGIN = 0.1
"""Another reading is taken as right if it raises the mean correlation of a sequence by this much.

On the eight sequences of Oxford and four of HPatches, whose homographies are right, no other
reading gains more than 0.01.
"""
DOUBT = 0.02  # a gain between DOUBT and MARGIN is only reported

log = logging.getLogger(__name__)

Pyramid = list[Float32[np.ndarray, "_ _"]]  # an image at full size, half, a quarter, ...


@dataclass(frozen=True)
class Fit:
    """How well the homographies of a sequence fit its images."""

    sequence: sequences.Sequence
    measured: tuple[Agreement | None, ...]  # with images 2, 3, ...; None: too few regions in both
    fault: str = ""  # what is wrong, and what to do; "" if nothing is
    doubt: str = ""  # what might be wrong

    def __str__(self) -> str:
        """Mean correlations with images 2, 3, ..., and the mean of patches that should differ."""
        known = [measure for measure in self.measured if measure]
        if not known:
            return "not measured: too few regions"
        texts = [f"{measure.matching:.2f}" if measure else "-" for measure in self.measured]
        others = np.mean([measure.others for measure in known])
        return f"{' '.join(texts)}; of patches that should differ {others:.2f}"


def check(every: Sequence[sequences.Sequence]) -> list[Fit]:
    """Measure how well the homographies of sequences fit their images.

    Raises:
        InputError: if patches that a homography maps onto each other are no more alike than other
            pairs, or if the homographies of a sequence fit clearly better in another reading;
            names the reading that fits, for each file.
    """
    fits = parallel.each(fit, every)
    for result in fits:
        if result.doubt:
            log.warning("%s", result.doubt)
    faults = [result.fault for result in fits if result.fault]
    if faults:
        more = [f"and {len(faults) - 3} more sequences"] * (len(faults) > 3)
        raise InputError("; ".join([*faults[:3], *more]))
    return fits


def check_once(every: Sequence[sequences.Sequence]) -> None:
    """Like `check`, but sequences that passed before, with the same files, are not measured again.

    Raises:
        InputError: as `check` does.
    """
    kept = caches.kept("fits")
    origins = [_origin(sequence) for sequence in every]
    new = [i for i, origin in enumerate(origins) if kept.read(origin) is None]
    if new:
        log.info("comparing the images of %d sequences through their homographies", len(new))
    for i, result in zip(new, check([every[i] for i in new]), strict=True):
        if not result.doubt:  # a doubt is reported each time
            kept.write(origins[i], str(result).encode())


def _origin(sequence: sequences.Sequence) -> caches.Origin:
    maps = np.stack(sequence.from_first).astype("<f8")
    return {
        "images": sequence.sha256,
        "maps": hashlib.sha256(maps.tobytes()).hexdigest(),
        "code": _code(),
    }


@cache
def _code() -> str:
    return code_sha256(__name__)


def fit(sequence: sequences.Sequence) -> Fit:
    """Measure one sequence; a fault is returned, not raised."""
    regions = detect(read_grey(sequence.files[0]))
    images = [_pyramid(read_grey(file).astype(np.float32)) for file in sequence.files]
    measured = tuple(
        _measured(images[0], image, regions, h)
        for image, h in zip(images[1:], sequence.from_first[1:], strict=True)
    )
    if all(measure and measure.matching > 1 - DOUBT for measure in measured):
        return Fit(sequence, measured)  # no other reading could fit better
    pairs = []
    wrong: set[str] = set()  # readings at chance in a pair where the given homography is not
    for k, given in enumerate(measured, 1):

        def all_of(maps: Mapping[str, Homography], image: Pyramid = images[k]) -> Agreements:
            known = {name: _measured(images[0], image, regions, h) for name, h in maps.items()}
            return {name: measure for name, measure in known.items() if measure}

        maps = _readings(sequence, k)
        if given and not given.by_chance:
            readings = all_of({name: h for name, h in maps.items() if name not in wrong})
            wrong |= {name for name in maps if name not in readings or readings[name].by_chance}
        else:
            readings = all_of(maps)
        pairs.append(PairAgreement(given, readings, all_of(_of_other_files(sequence, k))))
    if fault := _fault(sequence, pairs):
        return Fit(sequence, measured, fault=fault)
    gain, better = _better(pairs)
    text = (
        f"{sequence.files[0].parent}: all homographies together fit better when read {better} (the"
        f" mean correlation of matching patches rises by {gain:.2f})"
    )
    if gain > MARGIN:
        return Fit(sequence, measured, fault=f"{text}. {_REMEDY}")
    return Fit(sequence, measured, doubt=text if gain > DOUBT else "")


Agreements = dict[str, Agreement]  # by reading; no entry where too few regions lie on both images


@dataclass(frozen=True)
class PairAgreement:
    """How well images 1 and k agree through the given homography and through other readings."""

    given: Agreement | None
    read: Agreements  # other readings of the given homography
    of_others: Agreements  # the homographies in the files of other images

    @property
    def fitting(self) -> Agreements:
        """The readings that fit clearly: of about fifty readings, one may fit by accident.

        The bound of `ahead` is 0.75 with 100 regions, and 1 with 8.
        """
        readings = {**self.read, **self.of_others}
        return {
            n: measure
            for n, measure in readings.items()
            if measure.ahead >= CHANCE + measure.pairs**-0.5
        }

    @property
    def is_wrong(self) -> bool:
        """Whether the given homography is no better than chance, or clearly of another image."""
        if self.given is None:
            return bool(self.fitting)  # if no other reading fits either, nothing is known
        best = max((measure.matching for measure in self.of_others.values()), default=0)
        return self.given.by_chance or best > self.given.matching + MARGIN


_REMEDY = (
    "Correct the files: each should hold, row by row, the map from pixels of image 1 to pixels of"
    " the other image, counted from (0, 0), x first"
)


def _fault(sequence: sequences.Sequence, pairs: Sequence[PairAgreement]) -> str:
    """What is wrong with the homographies that fit no better than chance; "" if none is."""
    bad = {k: pair for k, pair in enumerate(pairs) if pair.is_wrong}
    if not bad:
        return ""
    known = {k: given for k, pair in bad.items() if (given := pair.given)}
    worst = min(known, key=lambda k: known[k].ahead, default=min(bad))
    why = str(known[worst]) if known else f"fewer than {FEWEST} regions lie on both images"
    remedies: dict[str, list[int]] = {}
    shared = _best([pair.read for pair in bad.values()])
    for k, pair in bad.items():
        best = _best([pair.fitting])
        of_shared = pair.fitting.get(shared)
        if of_shared and of_shared.matching > pair.fitting[best].matching - MARGIN:
            best = shared  # one cause for many files is the most likely
        remedies.setdefault(best, []).append(k)
    causes = [
        f"{_files(sequence, images)} {'fits' if len(images) == 1 else 'fit'} when read {name}"
        if name
        else f"no reading of {_files(sequence, images)} fits: they, or the images, may be of"
        " another scene, or the images in another order"
        for name, images in remedies.items()
    ]
    return (
        f"{sequence.files[0].parent}: {_files(sequence, bad)} can't be right, since patches that"
        f" they map onto each other are not alike (worst is {_files(sequence, [worst])}: {why})."
        f" {'; '.join(causes)}. {_REMEDY}"
    )


def _best(of_pairs: Sequence[Agreements]) -> str:
    """The simplest reading of all pairs whose mean correlation is within 0.01 of the best."""
    shared = [name for name in of_pairs[0] if all(name in readings for readings in of_pairs)]
    mean = {name: np.mean([readings[name].matching for readings in of_pairs]) for name in shared}
    most = max(mean.values(), default=0)
    return next((name for name, value in mean.items() if value > most - 0.01), "")


def _better(pairs: Sequence[PairAgreement]) -> tuple[float, str]:
    """The reading that fits all pairs best, and how much better it fits than the given one."""
    given = [pair.given.matching for pair in pairs if pair.given]
    best = _best([pair.read for pair in pairs])
    if not best or len(given) < len(pairs):
        return 0.0, ""
    return float(np.mean([pair.read[best].matching for pair in pairs]) - np.mean(given)), best


def _files(sequence: sequences.Sequence, pairs: Iterable[int]) -> str:
    return ", ".join(sequence.map_files[k].name for k in pairs)


def _readings(sequence: sequences.Sequence, k: int) -> dict[str, Homography]:
    """Other maps from image 1 to image k that the file may mean; the simplest first."""
    h = sequence.from_first[k]
    inverse = np.linalg.inv(h)
    written = {
        "": h,
        "inverted": inverse,
        "transposed": h.T,
        "inverted and transposed": inverse.T,
    }
    first, other = (_coordinates(*sequence.shapes[i]) for i in (0, k))
    maps = {
        ", ".join(filter(None, (how, frame))): np.linalg.inv(other[frame]) @ g @ first[frame]
        for frame, (how, g) in product(first, written.items())
    }
    (height, width), (tall, wide) = sequence.shapes[0], sequence.shapes[k]
    if (tall, wide) != (height, width):  # an image was resized, and its homography was not
        resized = f"between images of the size of image 1, {width} x {height}"
        maps[resized] = np.diag([wide / width, tall / height, 1]) @ h
        resized = f"between images of the size of image {k + 1}, {wide} x {tall}"
        maps[resized] = h @ np.diag([wide / width, tall / height, 1])
    step = np.eye(3)
    for g in sequence.from_first[1 : k + 1]:
        step = g @ step
    maps["as the map from the image before"] = step
    return _others(maps, sequence, k)


def _of_other_files(sequence: sequences.Sequence, k: int) -> dict[str, Homography]:
    """The homographies in the files of the other images."""
    known = zip(sequence.map_files, sequence.from_first[1:], strict=True)
    return _others({f"as {file.name}": h for file, h in known}, sequence, k)


def _others(
    maps: Mapping[str, Homography], sequence: sequences.Sequence, k: int
) -> dict[str, Homography]:
    """The maps that differ from the given homography, scaled to depth 1 in image 1's middle."""
    height, width = sequence.shapes[0]
    middle = np.array([(width - 1) / 2, (height - 1) / 2, 1])
    ahead = {name: h / depth for name, h in maps.items() if (depth := float(h[2] @ middle))}
    given = sequence.from_first[k]
    return {name: h for name, h in ahead.items() if not np.allclose(h, given, rtol=1e-9, atol=1e-9)}


def _coordinates(height: int, width: int) -> dict[str, Homography]:
    """Maps from our pixel coordinates to others that a homography may be written in."""
    x, y = (width - 1) / 2, (height - 1) / 2
    swapped = np.eye(3)[[1, 0, 2]]
    return {
        "": np.eye(3),
        "with y before x": swapped,
        "in pixels of images of half the size": np.diag([0.5, 0.5, 1]),
        "in pixels of images of a quarter of the size": np.diag([0.25, 0.25, 1]),
        "in pixels of images of twice the size": np.diag([2.0, 2, 1]),
        "in pixels of images of four times the size": np.diag([4.0, 4, 1]),
        "with pixels counted from 1": np.array([[1, 0, 1], [0, 1, 1], [0, 0, 1.0]]),
        "with pixels counted from the middle": np.array([[1, 0, -x], [0, 1, -y], [0, 0, 1.0]]),
        "in fractions of width and height": np.diag([1 / width, 1 / height, 1]),
        "in coordinates from -1 to 1": np.array(
            [[2 / width, 0, -1], [0, 2 / height, -1], [0, 0, 1.0]]
        ),
        "with y counted upwards": np.array([[1, 0, 0], [0, -1, 2 * y], [0, 0, 1.0]]),
    }


def _measured(first: Pyramid, other: Pyramid, regions: Frames, h: Homography) -> Agreement | None:
    """How well two images agree if `h` is the map between them; None: too few regions."""
    here, there = _both(first[0].shape, other[0].shape, regions, h)
    if len(here) < FEWEST:
        return None
    rows = spread(len(here), MOST)
    return agreement(_cut(first, here[rows]), _cut(other, there[rows]))


def _both(
    first: tuple[int, ...], other: tuple[int, ...], regions: Frames, h: Homography
) -> tuple[Maps, Maps]:
    """Maps of the regions that lie on both images, into each image; small regions are enlarged."""
    squares = frames.image_from_patch(regions)
    depth = frames.compose(h, squares)[:, 2, 2]
    seen = np.flatnonzero(depth > 0)
    squares, half = squares[seen], regions.half[seen]
    zoom = np.sqrt(np.abs(np.linalg.det(h)) / depth[seen] ** 3)  # of lengths, at the centre
    larger = np.maximum(1, SMALLEST / (half * np.minimum(1, zoom)))
    squares[:, :2, :2] *= larger[:, None, None]
    mapped = frames.compose(h, squares)
    visible = frames.inside(squares, *first) & frames.inside(mapped, *other)
    return squares[visible], mapped[visible]


def _pyramid(image: Image) -> Pyramid:
    levels = [image]
    while min(levels[-1].shape) > 2 * SIDE:
        levels.append(np.ascontiguousarray(smooth(levels[-1], 1.0)[::2, ::2]))
    return levels


def _cut(levels: Pyramid, image_from_patch: Maps) -> Float32[np.ndarray, "n side side"]:
    """Small patches, each from the pyramid level whose pixels are about as large as its own."""
    depth = image_from_patch[:, 2, 2]
    size = np.sqrt(np.abs(np.linalg.det(image_from_patch)) / depth**3) / (SIDE / 2)
    level = np.clip(np.rint(np.log2(size)), 0, len(levels) - 1).astype(int)
    patches = np.empty((len(image_from_patch), SIDE, SIDE), np.float32)
    line = middles(SIDE)
    for i in np.unique(level).tolist():
        rows = np.flatnonzero(level == i)
        to_level = np.diag([0.5**i, 0.5**i, 1])
        patches[rows] = read(levels[i], to_level @ image_from_patch[rows], line, line)
    return patches
