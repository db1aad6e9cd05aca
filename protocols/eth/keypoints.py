"""Reads keypoints from the official files or a database, or detects them with COLMAP's SIFT."""

import logging
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pycolmap
from jaxtyping import Float32

from harness import cache as caches
from harness import parallel
from harness.files import folders
from protocols.colmap import keypoints as colmap
from protocols.colmap.mapping import quiet
from protocols.eth.files import read_keypoints
from protocols.imaging.affine import AffineFrames, from_similarity

FOLDER = "keypoints"  # of the official files

log = logging.getLogger(__name__)


def official(folder: Path, names: Sequence[str]) -> tuple[AffineFrames, ...]:
    """The keypoints of the official files `<image>.bin`.

    Raises:
        InputError: if a file is missing or damaged.
    """
    files = (folders.at(folder, f"{name}.bin") for name in names)
    tables = (read_keypoints(file).astype(np.float64) for file in files)
    return tuple(from_similarity(*table.T) for table in tables)


def table_of(frames: AffineFrames) -> Float32[np.ndarray, "n 4"]:
    """Regions as rows of the official files: circles of the same area."""
    scale = np.sqrt(np.abs(np.linalg.det(frames.matrix)))
    angle = np.arctan2(frames.matrix[:, 1, 0], frames.matrix[:, 0, 0])
    return np.stack([frames.x, frames.y, scale, angle], axis=1).astype(np.float32)


def in_database(database: Path, names: Sequence[str]) -> tuple[AffineFrames, ...]:
    """The keypoints in a database of COLMAP.

    Raises:
        InputError: if the database can't be read, or has no keypoints of an image.
    """
    remedy = "give keypoints of every image, or --set keypoints=sift to have them detected"
    tables = colmap.read(database, names, remedy)
    return tuple(colmap.frames_of(tables[name]) for name in names)


def detected(images: Path, names: Sequence[str], sha256: Sequence[str]) -> tuple[AffineFrames, ...]:
    """The keypoints of COLMAP's SIFT detector with its defaults, as for the published results.

    The detector keeps whole levels of scale space, the coarsest first, until there are at least
    8,192 keypoints: up to about 13,000 in images of six megapixels. The keypoints are kept in the
    cache, by the contents of the image.
    """
    options = pycolmap.FeatureExtractionOptions(num_threads=1, use_gpu=False)
    settings = {"options": str(options.todict()), "pycolmap": version("pycolmap")}

    def of_image(row: int) -> AffineFrames:
        origin = settings | {"image": sha256[row]}
        table = cache.read_array(origin)
        if table is None:
            table = _detect(images, names[row], options)
            cache.write_array(origin, table)
        return colmap.frames_of(table)

    cache = caches.kept("keypoints")
    with quiet():
        return tuple(parallel.each(of_image, range(len(names))))


def _detect(
    images: Path, name: str, options: pycolmap.FeatureExtractionOptions
) -> colmap.KeypointTable:
    log.info("SIFT keypoints of %s", images / name)
    with tempfile.TemporaryDirectory(prefix="eth-") as folder:
        database = Path(folder) / "database.db"
        pycolmap.Database.open(database).close()
        pycolmap.extract_features(
            database, images, [name], extraction_options=options, device=pycolmap.Device.cpu
        )
        return colmap.read(database, [name], f"{images / name} may be no image: replace it")[name]
