"""Verifies the matches of two images geometrically, as COLMAP does between matching and mapping."""

import numpy as np
import pycolmap
from jaxtyping import Float32, UInt32

Matches = UInt32[np.ndarray, "m 2"]
Places = Float32[np.ndarray, "_ 2"]


def verified(
    cameras: tuple[pycolmap.Camera, pycolmap.Camera],
    places: tuple[Places, Places],
    matches: Matches,
    seed: int,
) -> pycolmap.TwoViewGeometry:
    """The two-view geometry of two images, with COLMAP's default options.

    Args:
        cameras: of the images.
        places: all keypoints of each image, in COLMAP's coordinates.
        matches: rows of both images' keypoints.
        seed: of random draws; the result does not depend on the thread.
    """
    options = pycolmap.TwoViewGeometryOptions()
    options.ransac.random_seed = seed
    if len(matches) < options.min_num_inliers:
        return pycolmap.TwoViewGeometry()
    first, second = (points.astype(np.float64) for points in places)
    return pycolmap.estimate_two_view_geometry(
        cameras[0], first, cameras[1], second, matches, options
    )
