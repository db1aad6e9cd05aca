"""Detects keypoints with COLMAP's SIFT; the cache keeps them by the contents of the image."""

import logging
import tempfile
from importlib.metadata import version
from pathlib import Path

import pycolmap

from harness import cache as caches
from protocols.colmap import keypoints
from protocols.colmap.keypoints import KeypointTable

FEATURES = 8192
"""COLMAP's default number of keypoints.

The detector keeps whole levels of scale space, the coarsest first, until there are at least so many
keypoints: up to about 13,000 in images of six megapixels.
"""

log = logging.getLogger(__name__)


def detected(images: Path, name: str, sha256: str, features: int = FEATURES) -> KeypointTable:
    """The keypoints of one image, in COLMAP's coordinates, on one thread.

    Args:
        images: the folder that the name is relative to.
        name: of the image.
        sha256: of the file of the image.
        features: see FEATURES.
    """
    options = pycolmap.FeatureExtractionOptions(num_threads=1, use_gpu=False)
    options.sift.max_num_features = features
    settings = {"options": str(options.todict()), "pycolmap": version("pycolmap")}
    cache = caches.kept("keypoints")
    origin = settings | {"image": sha256}
    table = cache.read_array(origin)
    if table is None:
        table = _detect(images, name, options)
        cache.write_array(origin, table)
    return table


def _detect(images: Path, name: str, options: pycolmap.FeatureExtractionOptions) -> KeypointTable:
    log.info("SIFT keypoints of %s", images / name)
    with tempfile.TemporaryDirectory(prefix="sift-") as folder:
        database = Path(folder) / "database.db"
        pycolmap.Database.open(database).close()
        pycolmap.extract_features(
            database, images, [name], extraction_options=options, device=pycolmap.Device.cpu
        )
        return keypoints.read(database, [name], f"{images / name} may be no image: replace it")[
            name
        ]
