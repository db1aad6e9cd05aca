"""The set `romepatches-sample`: small, in the official layout, made from photographs at hand.

Each point is seen ten times: a region that a detector found in a photograph of scikit-image is
moved, turned, scaled and lit a little differently each time. It is for trying things out and for
tests of the whole; its scores are not those of RomePatches.

Like `hpatches-sample`, the patches are the same on every machine.
"""

import hashlib
import io
import json
import logging
import platform
from importlib import resources
from importlib.metadata import version
from pathlib import Path

import numpy as np
import scipy.io
from filelock import FileLock
from jaxtyping import Float64, UInt8

from harness import atomic, home
from harness.atomic import placing
from protocols.hpatches.detect import detect
from protocols.hpatches.frames import (
    NOISE,
    compose,
    image_from_patch,
    inside,
    jitter,
    thin,
    uniform,
)
from protocols.hpatches.sampling import patches, rounded
from protocols.hpatches.sequences import read_grey

VERSION = 1  # raised with SHA256
SHA256 = "7599ebc200a2e31e8524a7db6e31f766ad50c3991ad13760e2168881645d1924"
"""Of the patches of both halves, in order."""

PHOTOGRAPHS = {
    "train": ("coffee.png", "chelsea.png"),
    "test": ("astronaut.png", "camera.png"),
}
"""In the public domain or under CC0, all PNG: decoders agree on every pixel."""

POINTS = 30  # of a photograph
VIEWS = 10  # of a point; the first is the query
SIDE = 51
MARGIN = 7  # pixels cut off each side of a patch of 65
LIGHT = 0.3  # largest change of contrast
SHADE = 20.0  # largest change of brightness, in grey values
GRAIN = 12.0  # grey values; the standard deviation is 0.41 of it

log = logging.getLogger(__name__)


def sample() -> Path:
    """The folder of the set; it is made on first use, in some seconds, and kept in the cache.

    Raises:
        RuntimeError: if this machine makes another set than it should.
    """
    folder = home.cache("datasets", f"romepatches-sample-v{VERSION}")
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_name(f"{folder.name}.lock")):
        if not folder.is_dir():
            log.info("making romepatches-sample in %s", folder)
            with placing(folder) as unfinished:
                make(unfinished)
    return folder


def make(folder: Path) -> None:
    """Write the set into a folder: the four official files."""
    digest = hashlib.sha256()
    for seed, (half, names) in enumerate(PHOTOGRAPHS.items()):
        views = np.concatenate([_views(name, (seed, i)) for i, name in enumerate(names)])
        digest.update(views.tobytes())
        queries, database = views[:, 0], views[:, 1:].reshape(-1, SIDE, SIDE)
        every = np.concatenate([queries, database])
        points = np.arange(1, len(views) + 1)
        _write(folder / f"patch_retrieval_Rome_{half}.mat", patches=np.moveaxis(every, 0, 2))
        _write(
            folder / f"patch_retrieval_Rome_{half}_labels.mat",
            labels_gt=points[:, None].astype(float),
            labels=np.repeat(points, VIEWS - 1)[:, None].astype(float),
        )
    if digest.hexdigest() != SHA256:
        libraries = [f"{name} {version(name)}" for name in ("numpy", "scikit-image")]
        raise RuntimeError(
            f"the sample made here has sha256 {digest.hexdigest()}, that of version {VERSION} is"
            f" {SHA256}: scores on it would not compare. Report this line: "
            + ", ".join([*libraries, platform.machine(), platform.platform()])
        )
    about = {"name": "romepatches-sample", "version": VERSION, "photographs": PHOTOGRAPHS}
    atomic.write_text(folder / "dataset.json", json.dumps(about, indent=1) + "\n")


def _views(name: str, seed: tuple[int, int]) -> UInt8[np.ndarray, "points views 51 51"]:
    """The strongest regions of one photograph, ten times each."""
    file = Path(str(resources.files("skimage") / "data" / name))
    if not file.is_file():
        raise RuntimeError(
            f"scikit-image {version('scikit-image')} comes without {name}, which"
            " romepatches-sample is made from: install 0.26"
        )
    photograph = read_grey(file)
    found = detect(photograph)
    maps = image_from_patch(found.take(np.flatnonzero(thin(found))))
    draws: Float64[np.ndarray, "views n 5"] = uniform((*seed, 0), VIEWS, len(maps), 5)
    seen = np.stack([compose(maps, jitter(NOISE["h"], draws[k])) for k in range(VIEWS)], axis=1)
    visible = [inside(seen[:, k], *photograph.shape) for k in range(VIEWS)]
    chosen = seen[np.flatnonzero(np.logical_and.reduce(visible))[:POINTS]]
    cut = patches(photograph.astype(np.float32), chosen.reshape(-1, 3, 3))
    cut = cut[:, MARGIN:-MARGIN, MARGIN:-MARGIN].astype(np.float64) - 128
    light, shade = 2 * uniform((*seed, 1), 2, len(cut), 1, 1) - 1
    grain = uniform((*seed, 2), 2, *cut.shape)
    value = cut * (1 + LIGHT * light) + (128 + SHADE * shade) + GRAIN * (grain[0] + grain[1] - 1)
    return rounded(value.astype(np.float32)).reshape(-1, VIEWS, SIDE, SIDE)


def _write(file: Path, **variables: np.ndarray) -> None:
    """A .mat file of version 5, without the date and the system that SciPy puts in its header."""
    out = io.BytesIO()
    scipy.io.savemat(out, variables)
    with atomic.writing(file) as stream:
        stream.write(b"MATLAB 5.0 MAT-file".ljust(116) + out.getvalue()[116:])
