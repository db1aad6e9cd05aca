"""The Harris-Affine detector: where corners are, how large, in what shape, turned how."""

import os
import subprocess
import sys

import cv2
import numpy as np
import pytest
from checkout import ROOT

from protocols.imaging.affine import AffineFrames
from protocols.imaging.grey import read_grey
from protocols.imaging.harris_affine import _distinct, harris_affine, oriented
from protocols.imaging.sequences import find
from protocols.oxford import regions
from protocols.oxford.ellipses import exact_overlap
from protocols.oxford.truth import repeatability


def texture(seed=0, size=201):
    """Blobs and edges of several sizes."""
    rng = np.random.default_rng(seed)
    image = np.zeros((size, size))
    for sigma in (2, 4, 8):
        layer = cv2.GaussianBlur(rng.standard_normal((size, size)), (0, 0), sigma)
        image += np.where(layer > 0, 1, -1) * np.minimum(np.abs(layer) / layer.std(), 1)
    return np.clip(128 + 30 * cv2.GaussianBlur(image, (0, 0), 0.7), 0, 255).astype(np.uint8)


def squares(size=120, half=20):
    """A bright square in the middle: four corners."""
    image = np.full((size, size), 60, np.float32)
    image[size // 2 - half : size // 2 + half, size // 2 - half : size // 2 + half] = 200
    return cv2.GaussianBlur(image, (0, 0), 1).astype(np.uint8)


def repeated(image, other, homography, most=250):
    a, b = harris_affine(image, most), harris_affine(other, most)
    return repeatability(a, b, homography, (image.shape, other.shape), exact_overlap)[0]


def test_a_square_has_regions_at_its_corners():
    """A little inside, as Harris corners are, and alike at all four."""
    found = harris_affine(squares(), 100)
    corners = np.array([[39.5, 39.5], [39.5, 79.5], [79.5, 39.5], [79.5, 79.5]])
    place = np.stack([found.x, found.y], axis=1)
    nearest = np.linalg.norm(place[:, None] - corners, axis=2).min(axis=0)
    assert nearest.max() < 2.5 and np.ptp(nearest) < 1e-3


def test_regions_stay_under_a_turn_by_90_degrees():
    image = texture()
    found, turned = harris_affine(image, 300), harris_affine(np.rot90(image, -1).copy(), 300)
    back = AffineFrames(turned.y, 200 - turned.x, turned.matrix, turned.score)
    apart = np.hypot(found.x[:, None] - back.x, found.y[:, None] - back.y)
    same = apart.min(axis=1) < 0.05
    assert same.mean() > 0.9
    by_90 = np.array([[0.0, -1.0], [1.0, 0.0]])
    wanted = by_90 @ found.matrix  # several directions at one place: one of them must be right
    best = [
        np.abs(turned.matrix[apart[i] < 0.05] - wanted[i]).max(axis=(1, 2)).min()
        for i in np.flatnonzero(same)
    ]
    assert np.quantile(best, 0.9) < 0.02 * np.abs(wanted).max()


def test_regions_grow_with_the_image():
    image = texture()
    larger = cv2.resize(image, None, fx=1.7, fy=1.7, interpolation=cv2.INTER_CUBIC)
    map_ = np.array([[1.7, 0, 0.35], [0, 1.7, 0.35], [0, 0, 1.0]])
    assert repeated(image, larger, map_) > 0.6


def test_regions_follow_an_affine_map():
    image = texture()
    map_ = np.array([[0.5, 0.2, 10.0], [-0.3, 1.5, 70.0], [0, 0, 1]])
    mapped = cv2.warpAffine(cv2.GaussianBlur(image, (0, 0), 0.8), map_[:2], (160, 380))
    share = repeated(image, mapped, map_)
    circles = [
        AffineFrames(f.x, f.y, f.matrix[:, :1, :1] * 0 + np.eye(2) * radius(f), f.score)
        for f in (harris_affine(image, 250), harris_affine(mapped, 250))
    ]
    round_ = repeatability(*circles, map_, (image.shape, mapped.shape), exact_overlap)[0]
    assert share > 0.25 and share > 2 * round_  # it is the shapes that do it


def radius(frames):
    return np.sqrt(np.abs(np.linalg.det(frames.matrix)))[:, None, None]


@pytest.mark.parametrize("degrees", [0, 30, 100, 225])
def test_x_points_to_where_the_image_gets_brighter(degrees):
    y, x = np.mgrid[:101, :101] - 50
    turn = np.radians(degrees)
    edge = 128 + 60 * np.tanh((np.cos(turn) * x + np.sin(turn) * y) / 3)
    one = AffineFrames(np.full(1, 50.0), np.full(1, 50.0), 4 * np.eye(2)[None], np.zeros(1))
    found = oriented(edge.astype(np.uint8), one).matrix[0]
    assert found[:, 0] / 4 == pytest.approx([np.cos(turn), np.sin(turn)], abs=0.03)


def test_the_strongest_come_first_and_at_most_as_many_as_asked():
    many, few = harris_affine(texture(), 500), harris_affine(texture(), 50)
    assert len(few) == 50 and len(many) > 300
    assert (np.diff(many.score) <= 0).all()
    assert np.array_equal(few.matrix, many.matrix[:50])


def test_no_two_corners_are_alike():
    found = harris_affine(texture(), 500)
    scale = np.linalg.svd(found.matrix, compute_uv=False)[:, 1]
    own = np.stack([found.x, found.y, found.score], axis=1)
    corners, first = np.unique(own, axis=0, return_index=True)
    x, y, scale = *corners.T[:2], scale[first]
    factor = scale[:, None] / scale
    near = np.hypot(x[:, None] - x, y[:, None] - y) < 0.5 * np.minimum(scale[:, None], scale)
    assert not (near & (factor >= 1) & (factor < 1.499) & ~np.eye(len(x), dtype=bool)).any()
    assert len(corners) < len(found)  # several directions


@pytest.mark.parametrize("most", [0, 1, 700, 5000])
def test_distinct_corners_are_those_of_comparing_all_pairs(most):
    rng = np.random.default_rng(0)
    place, scale = rng.random((2500, 2)) * 100, 0.8 * 2 ** (3 * rng.random(2500))
    chosen = []
    for i in range(len(place)):
        kept = np.array(chosen, int)
        near = np.hypot(*(place[kept] - place[i]).T) <= 0.5 * scale[kept]
        factor = scale[i] / scale[kept]
        if not (near & (factor < 1.5) & (factor > 1 / 1.5)).any():
            chosen.append(i)
    assert 1024 < len(chosen) < 2500
    assert _distinct(place, scale, most).tolist() == chosen[:most]


@pytest.mark.parametrize("shape", [(1, 1), (5, 300), (23, 23), (64, 64)])
def test_an_image_without_corners_has_no_regions(shape):
    assert len(harris_affine(np.full(shape, 9, np.uint8), 10)) == 0


def test_regions_of_others_get_a_direction_and_none_is_lost():
    image = texture()
    image[:60, :60] = 128  # nothing to be seen
    matrix = np.stack([4 * np.eye(2), 1.5 * np.eye(2), 3 * np.eye(2)])
    given = AffineFrames(np.array([100.0, 20, 150]), np.array([90.0, 20, 60]), matrix, np.zeros(3))
    found = oriented(image, given)
    assert np.array_equal(found.x, given.x)
    shape = found.matrix @ found.matrix.swapaxes(1, 2)
    assert shape == pytest.approx(matrix @ matrix.swapaxes(1, 2))
    assert np.array_equal(found.matrix[1], matrix[1])
    turned = np.rot90(image, -1).copy()
    there = AffineFrames(200 - given.y, given.x, matrix, given.score)
    by_90 = np.array([[0.0, -1.0], [1.0, 0.0]])
    again = oriented(turned, there).matrix[[0, 2]]
    assert again == pytest.approx(by_90 @ found.matrix[[0, 2]], abs=0.05)


@pytest.mark.data
def test_regions_are_found_again_as_often_as_those_of_vlfeat(shared):
    """Of graf 1-3, at equal numbers of different outlines in each image."""
    oxford = shared / "oxford_affine"
    (graf,), _ = find(oxford / "graf")
    files, h = [graf.files[k] for k in (0, 2)], graf.from_first[2]
    theirs = [outlines(regions.read(oxford / "vlfeat_frames", "graf", k, files[0])) for k in (1, 3)]
    ours = [
        outlines(harris_affine(read_grey(file), 2 * len(own)), len(own))
        for file, own in zip(files, theirs, strict=True)
    ]
    shapes = graf.shapes[0], graf.shapes[2]
    scores = [repeatability(*pair, h, shapes, exact_overlap)[0] for pair in (ours, theirs)]
    assert scores[0] > scores[1] > 0.35


def outlines(frames, most=None):
    """Regions that differ by more than direction."""
    shape = (frames.matrix @ frames.matrix.swapaxes(1, 2)).reshape(-1, 4)
    key = np.round(np.concatenate([frames.x[:, None], frames.y[:, None], shape], axis=1), 2)
    first = np.unique(key, axis=0, return_index=True)[1]
    return frames.take(np.sort(first)[:most])


HERE = """
import hashlib
from homography_images import picture
from protocols.imaging.harris_affine import harris_affine
from protocols.oxford.regions import table
print(hashlib.sha256(table(harris_affine(picture(0, 160, 200), 300)).tobytes()).hexdigest())
"""


def test_other_processors_find_the_same_regions_bit_for_bit():
    """Of linear algebra and of NumPy's loops, there is a version for each family of them."""
    old = {"OPENBLAS_CORETYPE": "Prescott", "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4"}
    found = {
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", HERE],
            cwd=ROOT / "tests" / "support",
            env={**os.environ, **env},
            check=True,
            capture_output=True,
        ).stdout
        for env in ({}, old)
    }
    assert len(found) == 1
