"""Known cameras against the images."""

import shutil

import cv2
import numpy as np
import pytest

from protocols.eth import fit, truth
from protocols.eth.sample import SCENE, sample
from protocols.eth.scenes import open_scenes
from protocols.imaging.photographs import find


@pytest.fixture
def scene(tmp_path):
    """A copy of the sample's scene."""
    return shutil.copytree(sample() / SCENE, tmp_path / "rooms" / SCENE)


def edit(scene, change):
    """Write the cameras again, with rotation and centre changed."""
    for file in sorted((scene / truth.FOLDER).iterdir()):
        numbers = np.array(file.read_text().split(), float)
        rotation, centre = change(numbers[12:21].reshape(3, 3), numbers[21:24])
        text = [*numbers[:12], *rotation.ravel(), *centre, *numbers[24:].astype(int)]
        file.write_text(" ".join(map(str, text)) + "\n")


def checked(scene):
    """The check alone, without keypoints."""
    names = find(scene / "images")
    fit.check(scene / "images", names, truth.read(scene / truth.FOLDER, names))


def opened(scene):
    return open_scenes(scene, None, None)


def test_cameras_that_fit_are_taken(scene):
    assert opened(scene).scenes[0].cameras is not None


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda r, c: (r.T, c), "rotations lead from the world to the camera: transpose"),
        (lambda r, c: (r, -r.T @ c), "the last three numbers are translations t"),
        (lambda r, c: (r.T, -r.T @ c), "rotations and translations lead from the world"),
        (lambda r, c: (r * [1, -1, -1], c), "y points up and z backwards"),
    ],
)
def test_cameras_stored_in_another_way_are_refused_by_its_name(scene, change, told):
    edit(scene, change)
    with pytest.raises(ValueError, match=rf"cameras of 5 of 5 images.*{told}.*lie on them then"):
        opened(scene)


def test_cameras_of_other_images_are_refused(scene):
    files = sorted((scene / truth.FOLDER).iterdir())
    texts = [file.read_text() for file in files]
    for file, text in zip(files, texts[2:] + texts[:2], strict=True):
        file.write_text(text)
    with pytest.raises(ValueError, match="may be those of other images, or in another order"):
        opened(scene)


def test_one_wrong_camera_is_named(scene):
    names = find(scene / "images")
    file = scene / truth.FOLDER / f"{names[4]}.camera"
    numbers = file.read_text().split()
    numbers[12:21] = map(str, np.diag([1.0, -1, -1]).ravel())
    file.write_text(" ".join(numbers) + "\n")
    with pytest.raises(ValueError, match=rf"cameras of 1 of 5 images, {names[4]}, do not fit"):
        opened(scene)


def test_images_of_another_size_than_their_cameras_are_refused(scene):
    for file in (scene / "images").iterdir():
        cv2.imwrite(str(file), cv2.resize(cv2.imread(str(file)), None, fx=0.5, fy=0.5))
    with pytest.raises(ValueError, match=r"0000.png is 200 x 160 pixels, its camera .* 400 x 320"):
        checked(scene)


def test_cameras_that_fitted_are_compared_again_only_if_they_change(scene, caplog):
    caplog.set_level("INFO")

    def compared():
        caplog.clear()
        opened(scene)
        return "comparing 5 images with their cameras" in caplog.text

    compared()
    assert not compared()
    edit(scene, lambda r, c: (r, c + 1e-6))
    assert [compared() for _ in range(2)] == [True, False]


def test_images_that_show_too_little_are_not_judged(scene):
    for file in (scene / "images").iterdir():
        cv2.imwrite(str(file), np.full((320, 400), 90, np.uint8))
    edit(scene, lambda r, c: (r.T, c))
    checked(scene)


@pytest.mark.data
@pytest.mark.parametrize("name", ["Fountain-P11", "Herzjesu-P8"])
def test_the_cameras_of_real_scenes_fit(shared, name):
    images = shared / "sfm" / name / "images"
    names = find(images)
    fit.check(images, names, truth.read(images.parent / truth.FOLDER, names))
