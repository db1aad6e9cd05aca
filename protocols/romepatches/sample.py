"""Makes the set `romepatches-sample`, in the official layout, from photographs of scikit-image.

Each point has ten patches: a detected region of a photograph, each time shifted, rotated, scaled
and lit a little differently. The set is for trials and for tests of the whole protocol; its scores
say nothing about RomePatches.

Like `hpatches-sample`, the patches are the same on every machine.
"""

import hashlib
import io
import json
from pathlib import Path

import numpy as np
import scipy.io
from jaxtyping import Float64, UInt8

from harness.cache import fingerprint
from harness.errors import InputError
from harness.files import atomic, matlab
from protocols.imaging.detect import detect
from protocols.imaging.frames import NOISE, compose, image_from_patch, inside, jitter, thin, uniform
from protocols.imaging.sampling import patches, rounded
from protocols.samples import kept, photograph

VERSION = 1  # raised with SHA256
SHA256 = "fae189dd3e646c093b0c1779195589f04b0bc4567e3a13d4c1629b3a6cfc9ed9"
"""Hash of the patches of both halves, in order; see `contents`."""

PHOTOGRAPHS = {
    "train": ("coffee.png", "chelsea.png"),
    "test": ("astronaut.png", "camera.png"),
}
"""All are in the public domain or under CC0, and PNG, so that decoders agree on every pixel."""

POINTS = 30  # of each photograph
VIEWS = 10  # of each point; the first is the query
SIDE = 51
MARGIN = 7  # pixels cut off each side of a patch of 65
LIGHT = 0.3  # largest change of contrast
SHADE = 20.0  # largest change of brightness, in grey values
GRAIN = 12.0  # noise, in grey values; its standard deviation is 0.41 times this


def sample() -> Path:
    """The folder of the set; it is made on first use, in some seconds, and kept in the cache.

    If its patches, labels or name have changed, it is made again.

    Raises:
        ComputeError: if the set made on this machine has another hash.
    """
    return kept("romepatches-sample", VERSION, make, SHA256, contents)


def make(folder: Path) -> None:
    """Write the set into a folder: the four official files and dataset.json."""
    for seed, (half, names) in enumerate(PHOTOGRAPHS.items()):
        views = np.concatenate([_views(name, (seed, i)) for i, name in enumerate(names)])
        queries, database = views[:, 0], views[:, 1:].reshape(-1, SIDE, SIDE)
        every = np.concatenate([queries, database])
        _write(folder / f"patch_retrieval_Rome_{half}.mat", patches=np.moveaxis(every, 0, 2))
        _write(folder / f"patch_retrieval_Rome_{half}_labels.mat", **_labels(len(views)))
    atomic.write_text(folder / "dataset.json", _about())


def contents(folder: Path) -> str:
    """SHA-256 of the patches of both halves, point by point; each point's query comes first.

    The hash is not of the files, because versions of SciPy may write the same numbers as different
    bytes. If a file can't be read, or the labels or the name have changed, the result is the
    folder's fingerprint, which never equals the hash.
    """
    try:
        views = [_read(folder / f"patch_retrieval_Rome_{half}") for half in PHOTOGRAPHS]
        if (folder / "dataset.json").read_text(encoding="utf-8") != _about():
            raise InputError("dataset.json has changed")
    except Exception:  # SciPy raises many types on damaged files
        return fingerprint(folder)
    return hashlib.sha256(b"".join(half.tobytes() for half in views)).hexdigest()


def _read(stem: Path) -> UInt8[np.ndarray, "points views 51 51"]:
    """The patches of one half, after a check of its labels."""
    matlab.must_be_numbers(Path(f"{stem}.mat"), "patches")
    for name in ("labels", "labels_gt"):
        matlab.must_be_numbers(Path(f"{stem}_labels.mat"), name)
    every = np.moveaxis(scipy.io.loadmat(f"{stem}.mat")["patches"], 2, 0)
    labels = scipy.io.loadmat(f"{stem}_labels.mat")
    points = len(every) // VIEWS
    if not all(np.array_equal(labels[k], wanted) for k, wanted in _labels(points).items()):
        raise InputError(f"{stem}_labels.mat has changed")
    database = every[points:].reshape(points, VIEWS - 1, SIDE, SIDE)
    return np.concatenate([every[:points, None], database], axis=1)


def _labels(points: int) -> dict[str, Float64[np.ndarray, "n 1"]]:
    """The variables of a file of labels: the points of the queries and of the database."""
    query = np.arange(1.0, points + 1)
    return {"labels_gt": query[:, None], "labels": np.repeat(query, VIEWS - 1)[:, None]}


def _about() -> str:
    about = {"name": "romepatches-sample", "version": VERSION, "photographs": PHOTOGRAPHS}
    return json.dumps(about, indent=1) + "\n"


def _views(name: str, seed: tuple[int, int]) -> UInt8[np.ndarray, "points views 51 51"]:
    """Ten patches of each of the strongest regions of one photograph."""
    image = photograph(name, "romepatches-sample")
    regions = detect(image)
    maps = image_from_patch(regions.take(np.flatnonzero(thin(regions))))
    draws: Float64[np.ndarray, "views n 5"] = uniform((*seed, 0), VIEWS, len(maps), 5)
    seen = np.stack([compose(maps, jitter(NOISE["h"], draws[k])) for k in range(VIEWS)], axis=1)
    visible = [inside(seen[:, k], *image.shape) for k in range(VIEWS)]
    chosen = seen[np.flatnonzero(np.logical_and.reduce(visible))[:POINTS]]
    cut = patches(image.astype(np.float32), chosen.reshape(-1, 3, 3))
    cut = cut[:, MARGIN:-MARGIN, MARGIN:-MARGIN].astype(np.float64) - 128
    light, shade = 2 * uniform((*seed, 1), 2, len(cut), 1, 1) - 1
    grain = uniform((*seed, 2), 2, *cut.shape)
    value = cut * (1 + LIGHT * light) + (128 + SHADE * shade) + GRAIN * (grain[0] + grain[1] - 1)
    return rounded(value.astype(np.float32)).reshape(-1, VIEWS, SIDE, SIDE)


def _write(file: Path, **variables: np.ndarray) -> None:
    """Write a .mat file of version 5, without the date and system that SciPy puts in the header."""
    out = io.BytesIO()
    scipy.io.savemat(out, variables)
    with atomic.writing(file) as stream:
        stream.write(b"MATLAB 5.0 MAT-file".ljust(116) + out.getvalue()[116:])
