"""Matches become a sparse model: COLMAP verifies them, maps, and counts."""

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pycolmap

from protocols.colmap.keypoints import HALF_PIXEL, places_for_colmap
from protocols.colmap.mapping import largest_model
from protocols.eth import truth
from protocols.eth.matching import Matches
from protocols.eth.scenes import Scene

Pairs = Mapping[tuple[int, int], Matches]
"""Matches by the numbers of the two images in their scene, the smaller first."""


def reconstruct(scene: Scene, pairs: Pairs, seed: int) -> dict[str, float]:
    """What is counted and measured of the largest model that COLMAP makes of some matches.

    Where nothing can be put together, what would be measured on a model is left out. COLMAP works
    on one thread, by its defaults and with this seed: so the same matches give the same bits.
    """
    with tempfile.TemporaryDirectory(prefix="eth-") as folder:
        database = Path(folder) / "database.db"
        _fill(database, scene, pairs)
        verification = pycolmap.TwoViewGeometryOptions()
        verification.ransac.random_seed = seed
        pycolmap.set_random_seed(seed)
        pycolmap.geometric_verification(
            database,
            verifier_options=pycolmap.GeometricVerifierOptions(num_threads=1),
            two_view_geometry_options=verification,
        )
        with pycolmap.Database.open(database) as opened:
            found = {
                "inlier_pairs": float(opened.num_verified_image_pairs()),
                "inlier_matches": float(opened.num_inlier_matches()),
            }
        model = largest_model(database, scene.images, seed=seed, threads=1)
    if model is None:
        return found | dict.fromkeys(("registered", "points", "observations"), 0.0)
    found |= {
        "registered": float(model.num_reg_images()),
        "points": float(model.num_points3D()),
        "observations": float(model.compute_num_observations()),
        "track_length": model.compute_mean_track_length(),
        "observations_per_image": model.compute_mean_observations_per_reg_image(),
        "reprojection_error_px": model.compute_mean_reprojection_error(),
    }
    if scene.cameras is not None:
        found |= truth.errors(model, scene.names, scene.cameras, seed)
    return found


def _fill(database: Path, scene: Scene, pairs: Pairs) -> None:
    """Images, keypoints and matches; no descriptors, which COLMAP would take for its own."""
    if scene.database is not None:
        shutil.copyfile(scene.database, database)
    with pycolmap.Database.open(database) as opened:
        if scene.database is not None:
            for clear in ("keypoints", "descriptors", "matches", "two_view_geometries"):
                getattr(opened, f"clear_{clear}")()
        elif scene.cameras is not None:
            _add_known(opened, scene, scene.cameras)
    if scene.database is None and scene.cameras is None:
        pycolmap.import_images(database, scene.images, pycolmap.CameraMode.AUTO, list(scene.names))
    with pycolmap.Database.open(database) as opened:
        ids = {image.name: image.image_id for image in opened.read_all_images()}
        for name, frames in zip(scene.names, scene.frames, strict=True):
            opened.write_keypoints(ids[name], places_for_colmap(frames))
        for (a, b), matches in pairs.items():
            if len(matches):
                opened.write_matches(ids[scene.names[a]], ids[scene.names[b]], matches)
