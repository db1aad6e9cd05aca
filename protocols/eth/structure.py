"""Reconstructs a sparse model from matches: COLMAP verifies the matches, maps, and counts."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pycolmap

from harness.files.folders import same_form
from protocols.colmap.keypoints import HALF_PIXEL, copy, places_for_colmap
from protocols.colmap.mapping import largest_model
from protocols.eth import truth
from protocols.eth.matching import Matches
from protocols.eth.scenes import ImageScene

Matched = Mapping[tuple[int, int], Matches]
"""Matches by the numbers of the two images in their scene, the smaller first."""


def reconstruct(scene: ImageScene, matched: Matched, seed: int) -> dict[str, float]:
    """Counts and measures of the largest model that COLMAP reconstructs from matches.

    If there is no model, its counts are 0 and its other measures are left out. COLMAP runs on one
    thread, with its defaults and this seed: so the same matches give the same bits.
    """
    with tempfile.TemporaryDirectory(prefix="eth-") as folder:
        database = Path(folder) / "database.db"
        _fill(database, scene, matched)
        verification = pycolmap.TwoViewGeometryOptions()
        verification.ransac.random_seed = seed
        pycolmap.set_random_seed(seed)
        pycolmap.geometric_verification(
            database,
            verifier_options=pycolmap.GeometricVerifierOptions(num_threads=1),
            two_view_geometry_options=verification,
        )
        with pycolmap.Database.open(database) as opened:
            _, inliers = opened.read_two_view_geometry_num_inliers()  # 0 for pairs that failed
            measures = {
                "inlier_pairs": float(np.count_nonzero(inliers)),
                "inlier_matches": float(sum(inliers)),
            }
        model = largest_model(database, scene.images, seed=seed, threads=1)
    if model is None:
        return measures | dict.fromkeys(("registered", "points", "observations"), 0.0)
    measures |= {
        "registered": float(model.num_reg_images()),
        "points": float(model.num_points3D()),
        "observations": float(model.compute_num_observations()),
        "track_length": model.compute_mean_track_length(),
        "observations_per_image": model.compute_mean_observations_per_reg_image(),
        "reprojection_error_px": model.compute_mean_reprojection_error(),
    }
    if scene.cameras is not None:
        measures |= truth.errors(model, scene.names, scene.cameras, seed)
    return measures


def _fill(database: Path, scene: ImageScene, matched: Matched) -> None:
    """Write images, keypoints and matches; COLMAP would read descriptors as SIFT's bytes."""
    if scene.database is not None:
        copy(scene.database, database)
    elif scene.cameras is not None:
        _add_known(database, scene.names, scene.cameras)
    else:
        pycolmap.Database.open(database).close()
        pycolmap.import_images(database, scene.images, pycolmap.CameraMode.AUTO, list(scene.names))
    with pycolmap.Database.open(database) as opened:
        opened.clear_keypoints()
        opened.clear_descriptors()
        opened.clear_matches()
        opened.clear_two_view_geometries()
        listed = opened.read_all_images()
        ids = {same_form(image.name): image.image_id for image in listed}
        for name, frames in zip(scene.names, scene.frames, strict=True):
            opened.write_keypoints(ids[same_form(name)], places_for_colmap(frames))
        for (a, b), matches in matched.items():
            if len(matches):
                first, second = (ids[same_form(scene.names[k])] for k in (a, b))
                opened.write_matches(first, second, matches)


def _add_known(database: Path, names: Sequence[str], known: truth.KnownCameras) -> None:
    """Write images with their known intrinsics; images with the same intrinsics share a camera.

    COLMAP refines focal length and distortion, but never the principal point. In Strecha's images
    it is 23 pixels from the middle: this half degree would hide all other errors of rotation.
    """
    ids: dict[bytes, int] = {}
    with pycolmap.Database.open(database) as opened:
        for name, matrix, size in zip(names, known.intrinsics, known.size, strict=True):
            key = matrix.tobytes() + size.tobytes()
            if key not in ids:
                focal = (matrix[0, 0] + matrix[1, 1]) / 2
                camera = pycolmap.Camera.create_from_model_name(
                    len(ids) + 1, "SIMPLE_RADIAL", focal, *size.tolist()
                )
                camera.params = [focal, *matrix[:2, 2] + HALF_PIXEL, 0]
                camera.has_prior_focal_length = True
                ids[key] = opened.write_camera(camera)
            opened.write_image(pycolmap.Image(name=name, camera_id=ids[key]))
