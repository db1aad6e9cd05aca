"""Two images are matched: counts, geometry and picture."""

import json

import cv2
import numpy as np
import pytest
from scene_images import texture, write_png

from harness import load_model
from harness.errors import InputError
from protocols.pipelines import geometry
from protocols.pipelines.match import match
from protocols.samples import photograph

H = np.array([[1.05, 0.08, 6.0], [-0.06, 0.98, 11.0], [1e-4, -5e-5, 1.0]])


@pytest.fixture
def pair(tmp_path):
    """Two images of a plane; H maps the first to the second."""
    grey = photograph("coffee.png", "a test")
    moved = cv2.warpPerspective(grey, H, grey.shape[::-1])
    files = tmp_path / "a b.png", tmp_path / "ü.png"
    for file, image in zip(files, (grey[:300, :400], moved[:300, :400]), strict=True):
        write_png(file, image)
    return files


def found(pair, **options):
    given = {"keypoints": 400} | options
    return match(*pair, model=load_model("rootsift", device="cpu"), **given)


def test_the_homography_of_a_plane_is_found(pair):
    result = found(pair, kind="homography", threshold=2.0)
    assert result.inlier.sum() > 50
    corners = np.array([[20, 20, 1], [380, 20, 1], [380, 280, 1], [20, 280, 1.0]])
    wanted, got = (corners @ h.T for h in (H, result.geometry.matrix))
    off = wanted[:, :2] / wanted[:, 2:] - got[:, :2] / got[:, 2:]
    assert np.abs(off).max() < 1.5


def test_inliers_lie_within_the_threshold_of_the_matrix(pair):
    for kind in ("homography", "fundamental"):
        result = found(pair, kind=kind)
        a, b = (np.column_stack([p, np.ones(len(p))])[result.inlier] for p in result.places)
        matrix = result.geometry.matrix
        if kind == "homography":
            mapped = a @ matrix.T
            off = np.linalg.norm(mapped[:, :2] / mapped[:, 2:] - b[:, :2], axis=1)
        else:
            lines = a @ matrix.T
            off = np.abs((lines * b).sum(axis=1)) / np.linalg.norm(lines[:, :2], axis=1)
        assert np.median(off) < 1, kind
        assert len(off) > 20


def test_the_same_seed_gives_the_same_inliers(pair):
    first, again, other = (found(pair, seed=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.geometry.matrix, again.geometry.matrix)
    np.testing.assert_array_equal(first.inlier, again.inlier)
    np.testing.assert_array_equal(first.matches, other.matches)


def test_a_stricter_ratio_gives_some_of_the_matches(pair):
    all_pairs, strict = (set(map(tuple, found(pair, ratio=r).matches)) for r in (1.0, 0.6))
    assert strict < all_pairs


def test_too_few_matches_give_no_geometry():
    few = np.random.default_rng(0).uniform(0, 100, (3, 2))
    for kind in ("fundamental", "homography"):
        estimated = geometry.estimate(few, few, kind)
        assert estimated.matrix is None and not estimated.inlier.any()


def test_the_picture_shows_both_images(pair, tmp_path):
    found(pair, draw=tmp_path / "new/m.png")
    drawn = cv2.imread(str(tmp_path / "new/m.png"))
    assert drawn.shape[1] == 1600
    colours = {tuple(pixel) for pixel in drawn.reshape(-1, 3).tolist()}
    assert (115, 158, 0) in colours


def test_the_command_prints_counts_and_matches(run, pair):
    command = ["match", *pair, "--model", "rootsift"]
    status, out, _ = run(*command, "--keypoints", 300)
    assert status == 0
    assert "matches: mutual nearest neighbours, ratio 0.8" in out
    assert "seed 0" in out and "MAGSAC" in out
    status, out, _ = run(*command, "--keypoints", 300, "--json")
    told = json.loads(out)
    assert status == 0 and len(told["matched"]) == told["matches"]
    assert sum(row[4] for row in told["matched"]) == told["inliers"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"ratio": 0.0}, "ratio 0.0"),
        ({"threshold": -1.0}, "threshold -1.0"),
        ({"keypoints": 0}, "keypoints is 0"),
    ],
)
def test_numbers_out_of_range_are_refused(pair, options, told):
    with pytest.raises(InputError, match=told):
        found(pair, **options)


def test_an_image_without_keypoints_is_an_error_that_names_it(pair, tmp_path):
    write_png(tmp_path / "blank.png", np.full((200, 200), 7, np.uint8))
    with pytest.raises(InputError, match=r"blank\.png has no keypoint"):
        found((pair[0], tmp_path / "blank.png"))
    with pytest.raises(InputError, match=r"there is no image .*none\.png"):
        found((pair[0], tmp_path / "none.png"))
    (tmp_path / "bad.png").write_bytes(b"text")
    with pytest.raises(InputError, match=r"bad\.png can't be decoded"):
        found((pair[0], tmp_path / "bad.png"))


def test_two_images_of_different_sizes_are_matched(pair, tmp_path):
    write_png(tmp_path / "small.png", texture(150, 200))
    assert len(found((pair[0], tmp_path / "small.png")).matches) > 5
