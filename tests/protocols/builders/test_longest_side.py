"""Builders of patches from single images make large images smaller first."""

import json

import numpy as np
import pytest
from homography_images import picture, write

from harness import parallel
from protocols.builders.homography.build import build as homography
from protocols.builders.homography.shots import reduced
from protocols.builders.views.build import build as views

SHAPES = [(60, 90), (91, 60), (70, 70), (1, 200), (300, 7)]


def areas(n, m):
    """The share of each of n pixels in each of m larger pixels, row by row."""
    a, b = np.arange(n) * m / n, (np.arange(n) + 1) * m / n
    at = np.arange(m)[:, None]
    share = np.clip(np.minimum(b, at + 1) - np.maximum(a, at), 0, None)
    return share / share.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_pixel_is_the_mean_over_its_area(shape):
    image = picture(0, *shape)
    small = reduced(image, 40)
    rows, columns = (areas(n, m) for n, m in zip(shape, small.shape, strict=True))
    assert np.abs(small - rows @ image @ columns.T).max() <= 0.51


@pytest.mark.parametrize("shape", SHAPES)
def test_the_longer_side_is_as_asked_and_the_shape_stays(shape):
    small = reduced(picture(0, *shape), 40)
    assert max(small.shape) == 40 and small.dtype == np.uint8
    wanted = np.maximum(np.array(shape) * 40 / max(shape), 1)
    assert np.abs(small.shape - wanted).max() <= 0.5


@pytest.mark.parametrize("longest_side", [None, 128, 500])
def test_smaller_images_stay_as_they_are(longest_side):
    image = picture(0, 96, 128)
    assert reduced(image, longest_side) is image


@pytest.mark.parametrize(("build", "few"), [(homography, {}), (views, {"views": 2})])
def test_patches_are_of_the_smaller_image(build, few, tmp_path, monkeypatch):
    monkeypatch.setattr(parallel, "CORES", 1)  # starting others takes longer than the image here
    write(tmp_path / "images/a.png", picture(0, 300, 400))
    tables = {}
    for longest_side in (None, 200):
        out = tmp_path / f"set-{longest_side}"
        given = {"points": 40, "versions": 2, **few}
        build(tmp_path / "images", out, longest_side=longest_side, **given)
        told = json.loads((out / "dataset.json").read_text())
        assert told["parameters"]["longest_side"] == longest_side
        tables[longest_side] = np.loadtxt(out / "interest.txt")[::2]  # the image itself, in views
    assert tables[None][:, 1].max() > 200 > tables[200][:, 1].max() > 100
    assert 150 > tables[200][:, 2].max() > 75


@pytest.mark.parametrize("build", [homography, views])
def test_a_side_smaller_than_a_patch_is_refused(build, tmp_path):
    with pytest.raises(ValueError, match="longest_side is 63: give at least 64 pixels"):
        build(tmp_path, tmp_path / "out", longest_side=63)
