"""Matches the pairs of a scene in units, whose matches are kept until the scene is scored.

The pairs are a part of the table of all images by all images. A unit is a tile of that table: the
pairs of up to 16 images with up to 16 others. So a unit needs the vectors of 32 images at most,
and an interrupted run loses a minute of work.

Matches depend on the vectors, the distance and the ratio: kept ones are found by a hash of these
and of the code. They do not depend on the model's name, the keypoints or the scene.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import version
from itertools import combinations_with_replacement

import numpy as np

from harness import cache as caches
from harness import parallel, progress, unfinished
from harness.cache import Origin
from harness.code import code_sha256
from harness.distances import Distance
from harness.types import Vectors
from protocols.eth.matching import Matches, axes, match
from protocols.eth.pair_lists import ImagePairs
from protocols.eth.structure import Matched

SIDE = 16  # images; a full tile of images of 10,000 keypoints takes a minute on two cores

KEPT = "matches"  # kind of results in the cache

Tile = tuple[int, int]
Read = Callable[[int], Vectors]  # gives the vectors of an image by its number in the scene


def all_tiles(images: int) -> list[Tile]:
    """All tiles of a scene of so many images, in order."""
    return list(combinations_with_replacement(range(-(-images // SIDE)), 2))


def by_tile(wanted: ImagePairs) -> dict[Tile, ImagePairs]:
    """The pairs of each tile that has some."""
    tiles: dict[Tile, ImagePairs] = {}
    for a, b in wanted:
        tiles.setdefault((a // SIDE, b // SIDE), []).append((a, b))
    return tiles


def matched(
    scene: str, vectors: Sequence[Vectors], wanted: ImagePairs, distance: Distance, ratio: float
) -> Matched:
    """The matches of pairs of images; a run that was interrupted continues.

    The kept matches are done with at the end; see `unfinished`.
    """
    hashes = parallel.each(sha256_of, vectors)
    found: dict[tuple[int, int], Matches] = {}
    origins = []
    with progress.step(f"{scene}: pairs of images matched", len(wanted)) as advance:
        for pairs in by_tile(wanted).values():
            origin = _origin(hashes.__getitem__, pairs, distance, ratio)
            made = _matches(vectors.__getitem__, pairs, distance, ratio, origin, advance)
            found |= zip(pairs, made, strict=True)
            origins.append(origin)
    unfinished.done_with((KEPT, origin) for origin in origins)
    return {pair: found[pair] for pair in wanted}


def match_tile(read: Read, pairs: ImagePairs, distance: Distance, ratio: float) -> None:
    """Match the pairs of one tile into the cache, unless their matches are there."""
    vectors = {image: read(image) for image in _images(pairs)}
    hashes = {image: sha256_of(rows) for image, rows in vectors.items()}
    origin = _origin(hashes.__getitem__, pairs, distance, ratio)
    _matches(vectors.__getitem__, pairs, distance, ratio, origin)


def sha256_of(vectors: Vectors) -> str:
    """SHA-256 of the vectors of an image."""
    told = f"{vectors.dtype.str} {vectors.shape} ".encode()
    return hashlib.sha256(told + np.ascontiguousarray(vectors).tobytes()).hexdigest()


def _origin(
    hashed: Callable[[int], str], pairs: ImagePairs, distance: Distance, ratio: float
) -> Origin:
    digest = hashlib.sha256(json.dumps([[hashed(a), hashed(b)] for a, b in pairs]).encode())
    return {
        "code": _code(),
        "numpy": version("numpy"),
        "distance": distance.name,
        "ratio": ratio,
        "pairs": digest.hexdigest(),
    }


@cache
def _code() -> str:
    return code_sha256("protocols.eth.matching", "harness.distances")


def _matches(
    read: Read,
    pairs: ImagePairs,
    distance: Distance,
    ratio: float,
    origin: Origin,
    advance: Callable[[int], None] = lambda done: None,
) -> list[np.ndarray]:
    """The matches of the pairs of a tile, from the cache if it has them."""
    kept = caches.kept(KEPT)
    known = kept.read_array(origin)
    if known is not None:
        advance(len(pairs))
        return _unpacked(known, len(pairs))

    def one(pair: tuple[int, int]) -> Matches:
        found = match(read(pair[0]), read(pair[1]), by, ratio)
        advance(1)
        return found

    by = axes([read(image) for image in _images(pairs)], distance)
    made = parallel.each(one, pairs)
    kept.write_array(origin, _packed(made))
    return made


def _images(pairs: ImagePairs) -> list[int]:
    return sorted({image for pair in pairs for image in pair})


def _packed(matches: Sequence[np.ndarray]) -> np.ndarray:
    """The numbers of matches, then all matches, in one array."""
    counts = np.array([len(rows) for rows in matches], np.uint32)
    return np.concatenate([counts, *(rows.ravel() for rows in matches)])


def _unpacked(packed: np.ndarray, pairs: int) -> list[np.ndarray]:
    counts, rows = packed[:pairs], packed[pairs:].reshape(-1, 2)
    return np.split(rows, np.cumsum(counts)[:-1])
