"""Scenes of regions that a detector finds in views of images; with -m data, of a photograph."""

import json
import shutil
from dataclasses import fields

import cv2
import numpy as np
import pytest
from homography_images import picture, write

from harness import parallel
from protocols.builders.homography.shots import Asked
from protocols.builders.views.build import build
from protocols.builders.views.camera import DEFAULT, MOST, ViewStrengths, view
from protocols.builders.views.points import _points, _seen, detected
from protocols.imaging.affine import affine_patches
from protocols.oxford.ellipses import Ellipses, exact_overlap, linearised
from protocols.phototour.reader import blocks, read_reference_images, read_scene
from zoo.handcrafted import sift

STILL = ViewStrengths(**{field.name: 0 for field in fields(ViewStrengths)})
ASKED = Asked(points=30, versions=3, magnification=3, seed=0)


@pytest.fixture(scope="module")
def grey():
    return picture(3, 160, 200)


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    for k in range(2):
        write(folder / f"{k}.png", picture(k, 160, 200))
    return folder


@pytest.fixture(scope="module", autouse=True)
def one_process():
    """Starting others takes longer than the images here."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(parallel, "CORES", 1)
        yield


# Cameras


def test_a_still_camera_sees_the_image(grey):
    taken, from_first = view(grey, STILL, (0, 1))
    np.testing.assert_allclose(from_first, np.eye(3), atol=1e-12)
    assert taken.shape == grey.shape
    inner = slice(1, -1)
    # Each pixel is the mean of four samples of a bilinear image around its centre.
    kernel = np.outer([1, 6, 1], [1, 6, 1]) / 64
    expected = cv2.filter2D(grey.astype(float), -1, kernel)
    assert np.abs(taken[inner, inner] - expected[inner, inner]).max() <= 1


@pytest.mark.parametrize("seed", range(8))
def test_a_view_shows_the_image_where_its_map_says(seed):
    """OpenCV, which knows nothing of this camera, warps a smooth image to the same."""
    smooth = cv2.GaussianBlur(picture(1, 160, 200), (0, 0), 6)
    moving = ViewStrengths(blur=0, gamma=0, contrast=0, brightness=0, noise=0, jpeg_share=0)
    taken, from_first = view(smooth, moving, (seed,))
    corners = np.array([[0, 0], [199, 0], [199, 159], [0, 159.0]])
    onto, _ = linearised(from_first, corners)
    assert onto.min() > -1e-6  # all of it is seen, and no more than fits
    assert (onto.max(axis=0) <= np.array(taken.shape[::-1]) - 1 + 1e-6).all()
    assert (onto.max(axis=0) > np.array(taken.shape[::-1]) - 3).all()
    size = taken.shape[::-1]
    expected = cv2.warpPerspective(smooth, from_first, size, borderMode=cv2.BORDER_REPLICATE)
    whole = cv2.warpPerspective(np.ones_like(smooth), from_first, size)
    whole = cv2.erode(whole, np.ones((5, 5)), borderValue=0) > 0
    assert whole.mean() > 0.2
    assert np.abs(taken[whole].astype(float) - expected[whole]).max() <= 4


SHARES = {"blur_share": 1.0, "jpeg_share": 1.0}
STRENGTHS = [field.name for field in fields(ViewStrengths) if field.name not in SHARES]


@pytest.mark.parametrize("name", STRENGTHS)
def test_each_strength_changes_views(grey, name):
    other = ViewStrengths(**{**vars(STILL), **SHARES, name: getattr(DEFAULT, name)})
    still, moved = (view(grey, one, (0, 1))[0] for one in (STILL, other))
    assert moved.shape != still.shape or (moved != still).mean() > 0.05


def test_the_seed_decides(grey):
    a, b, c = (view(grey, DEFAULT, seed)[0] for seed in ((0, 1), (0, 1), (0, 2)))
    np.testing.assert_array_equal(a, b)
    assert a.shape != c.shape or (a != c).any()


@pytest.mark.parametrize("name", [field.name for field in fields(ViewStrengths)])
@pytest.mark.parametrize("value", [-1, np.nan, np.inf])
def test_what_no_camera_does_is_refused(name, value):
    with pytest.raises(ValueError, match=f"^{name} is .*: give a number from 0"):
        ViewStrengths(**{name: value})
    assert set(MOST) <= {field.name for field in fields(ViewStrengths)}


# Points


def test_patches_of_a_point_show_the_same(grey):
    made = detected(grey, 5, asked=ASKED, views=6, cameras=DEFAULT)
    n = len(made.patches)
    assert 5 < n <= 30 and made.patches.shape == (n, 3, 64, 64)
    a, b = (made.patches[:, k].reshape(n, -1).astype(float) for k in (0, 1))
    own = np.array([np.corrcoef(x, y)[0, 1] for x, y in zip(a, b, strict=True)])
    other = np.array([np.corrcoef(x, y)[0, 1] for x, y in zip(a, np.roll(b, 1, 0), strict=True)])
    assert own.mean() > 0.7 > 0.4 > other.mean()


def test_in_still_views_all_versions_are_the_point_itself(grey):
    made = detected(grey, 5, asked=ASKED, views=2, cameras=STILL)
    # The still camera blurs a little, so regions move a little.
    assert np.abs(made.interest[:, :, :2] - made.interest[:, :1, :2]).max() < 3
    octaves = made.interest[:, :, 3] - np.log2(made.squares.half / 3)[:, None]
    assert np.median(np.abs(octaves)) < 0.05


def test_an_image_without_others_gives_its_own_patches(grey):
    first = _seen(grey, np.eye(3), grey.shape, 120, 3.0)
    made = detected(grey, 5, asked=Asked(30, 2, 3.0, 0), views=1, cameras=STILL)
    patches = affine_patches(grey.astype(np.float32), first.regions, extent=3, side=64)
    every = {patch.tobytes() for patch in patches}
    assert all(patch.tobytes() in every for patch in made.patches[:, 0])


def test_points_of_an_image_overlap_by_less_than_half(grey):
    first = _seen(grey, np.eye(3), grey.shape, 300, 3.0)
    rows = _points(first.regions, np.ones(len(first.regions), bool))
    assert 0 < len(rows) < len(first.regions)
    few = first.regions.take(rows)
    centre = np.stack([few.x, few.y], axis=1)
    shape = few.matrix @ few.matrix.swapaxes(1, 2)
    a, b = np.triu_indices(len(rows), 1)
    overlap = exact_overlap(Ellipses(centre[a], shape[a]), Ellipses(centre[b], shape[b]))
    assert overlap.max() <= 0.5
    nested = np.linalg.norm(centre[a] - centre[b], axis=1) < 2
    assert nested.any()  # but some lie in each other


# Scenes


def all_files(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_the_readers_take_a_set(images, tmp_path):
    report = build(images, tmp_path / "set", points=12, views=5, versions=3)
    scene = read_scene(tmp_path / "set")
    assert len(scene) == 3 * report.points
    patches = np.concatenate([block.read() for block in blocks(scene)])
    assert patches.shape == (len(scene), 64, 64) and patches.std() > 10
    assert set(read_reference_images(scene)) == {0, 1}
    told = json.loads((tmp_path / "set/dataset.json").read_text())
    assert told["parameters"]["views"] == 5
    assert told["parameters"]["cameras"] == vars(DEFAULT)
    build(images, tmp_path / "again", points=12, views=5, versions=3, name="set")
    assert all_files(tmp_path / "set") == all_files(tmp_path / "again")


def test_a_stopped_build_goes_on(images, tmp_path):
    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(images, tmp_path / "set", points=5, views=3, versions=2, progress=stop)
    build(images, tmp_path / "set", points=5, views=3, versions=2)
    build(images, tmp_path / "whole", points=5, views=3, versions=2, name="set")
    assert all_files(tmp_path / "set") == all_files(tmp_path / "whole")


def test_bad_images_and_numbers_are_told(images, tmp_path):
    for file in images.iterdir():
        write(tmp_path / "images" / file.name, cv2.imread(str(file)))
    write(tmp_path / "images/flat.png", np.full((90, 90), 7, np.uint8))
    (tmp_path / "images/text.png").write_text("no image")
    report = build(tmp_path / "images", tmp_path / "set", points=5, views=3, versions=2)
    assert set(report.left_out) == {"flat.png", "text.png"}
    with pytest.raises(ValueError, match="views is 2: 4 versions of a point need at least 3"):
        build(images, tmp_path / "other", views=2)


@pytest.mark.data
def test_rootsift_finds_the_points_of_a_photograph_again(shared, tmp_path):
    shutil.copy(shared / "images/bsds500/train/100075.jpg", tmp_path)
    build(tmp_path, tmp_path / "set", points=100)
    patches = np.concatenate([block.read() for block in blocks(read_scene(tmp_path / "set"))])
    rootsift = sift.rootsift()
    a, b = (rootsift.describe(patches[k::4]) for k in (0, 1))
    nearest = rootsift.distance.cross(a, b).argmin(axis=1)
    assert 0.4 < np.mean(nearest == np.arange(len(a))) < 1  # real, so neither easy nor hopeless
