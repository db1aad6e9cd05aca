"""Runs COLMAP on a folder of images: SIFT keypoints, matches, incremental mapping.

All results are kept in one folder, so that an interrupted run can resume: images with keypoints and
matched pairs are not processed again.
"""

import logging
import shutil
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

import pycolmap

from harness import cache as caches
from harness.errors import InputError
from harness.files import atomic
from protocols.colmap.mapping import largest_model, quiet
from protocols.resuming import resuming

EXHAUSTIVE = 200
"""With more images than this, only images near each other in the order of names are matched."""

DATABASE, MODEL = "database.db", "sparse"

log = logging.getLogger(__name__)


def reconstruct(
    images: Path,
    sha256: Mapping[str, str],
    folder: Path,
    *,
    shared_camera: bool,
    seed: int,
    threads: int,
) -> Path:
    """The folder of a sparse model of the images, made now or by an earlier call.

    Another list of images, another seed or another version of COLMAP starts over.

    Args:
        images: the folder that the names are relative to.
        sha256: of each image file, by its name.
        folder: for the database and the model.
        shared_camera: whether one camera with one zoom took all images.
        seed: of RANSAC and of the mapper.
        threads: most threads at a time.

    Raises:
        InputError: if COLMAP can't reconstruct a model of two images or more.
        BlockingIOError: if another process works in the folder.
    """
    request = {
        "images": dict(sha256),
        "shared_camera": shared_camera,
        "seed": seed,
        "pycolmap": version("pycolmap"),
    }
    with resuming(folder, request), quiet():
        if (folder / MODEL).is_dir() and not caches.is_as_summed(folder / MODEL):
            log.warning("%s is damaged: it is made again", folder / MODEL)
            shutil.rmtree(folder / MODEL)
        if not (folder / MODEL).is_dir():
            _run(images, list(sha256), folder, shared_camera, seed, threads)
    return folder / MODEL


def _run(
    images: Path,
    names: Sequence[str],
    folder: Path,
    shared_camera: bool,
    seed: int,
    threads: int,
) -> None:
    pycolmap.set_random_seed(seed)
    database = folder / DATABASE
    mode = pycolmap.CameraMode.SINGLE if shared_camera else pycolmap.CameraMode.PER_IMAGE
    # List the images first: otherwise parallel extraction numbers them in varying order.
    if not (folder / "listed").is_file():
        database.unlink(missing_ok=True)
        pycolmap.Database.open(database).close()
        pycolmap.import_images(database, images, mode, names)
        atomic.write_text(folder / "listed", "")
    log.info("keypoints of %d images", len(names))
    pycolmap.extract_features(
        database,
        images,
        names,
        camera_mode=mode,
        extraction_options=pycolmap.FeatureExtractionOptions(num_threads=threads, use_gpu=False),
        device=pycolmap.Device.cpu,
    )
    matching = pycolmap.FeatureMatchingOptions(num_threads=threads, use_gpu=False)
    verification = pycolmap.TwoViewGeometryOptions()
    verification.ransac.random_seed = seed
    exhaustive = len(names) <= EXHAUSTIVE
    log.info("matches of %s pairs", "all" if exhaustive else "neighbouring")
    (pycolmap.match_exhaustive if exhaustive else pycolmap.match_sequential)(
        database,
        matching_options=matching,
        verification_options=verification,
        device=pycolmap.Device.cpu,
    )
    log.info("mapping")
    model = largest_model(database, images, seed=seed, threads=threads)
    if model is None:
        with pycolmap.Database.open(database) as opened:
            pairs = opened.num_verified_image_pairs()
        raise InputError(
            f"COLMAP can't reconstruct a model from the {len(names)} images in {images}: it finds"
            f" {pairs} pairs of images that overlap; give images that overlap, taken from different"
            " places, or a sparse model of your own (model=FOLDER)"
        )
    with atomic.placing(folder / MODEL) as unfinished:
        model.write(unfinished)
        caches.sum_up(unfinished)
