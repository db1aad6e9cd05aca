"""Detectors by name and from files give regions in our coordinates."""

import h5py
import numpy as np
import pycolmap
import pytest
from scene_images import grid_detector, texture, write_png

from harness import load_model
from harness.errors import ComputeError, InputError, UnknownNameError
from protocols.colmap.keypoints import table_for_colmap
from protocols.pipelines import photographs
from protocols.pipelines.detectors import detector
from protocols.pipelines.extract import extract


@pytest.fixture
def image(tmp_path):
    write_png(tmp_path / "images/a b.png", texture())
    return photographs.opened(tmp_path / "images")[0][0]


@pytest.mark.parametrize("name", ["sift", "harris-affine"])
def test_keypoints_of_a_file_of_features_are_those_that_were_extracted(image, tmp_path, name):
    model = load_model("meanstd", device="cpu")
    extract(image.folder, tmp_path / "f.h5", model=model, detector=name, keypoints=100)
    found, wanted = detector(str(tmp_path / "f.h5"))(image), detector(name, 100)(image)
    for key, values in vars(wanted).items():
        if key != "score":
            np.testing.assert_allclose(getattr(found, key), values, rtol=1e-5, atol=1e-4)


def test_keypoints_of_a_database_are_half_a_pixel_less(image, tmp_path):
    with pycolmap.Database.open(tmp_path / "k.db") as opened:
        camera = pycolmap.Camera.create_from_model_name(1, "PINHOLE", 400, 320, 240)
        number = opened.write_camera(camera)
        there = opened.write_image(pycolmap.Image(name="a b.png", camera_id=number))
        opened.write_keypoints(there, np.array([[100.5, 80.5, 3, 1.5]], np.float32))
    frames = detector(str(tmp_path / "k.db"))(image)
    assert (frames.x[0], frames.y[0]) == (100, 80)
    np.testing.assert_allclose(table_for_colmap(frames), [[100.5, 80.5, 3, 1.5]])


def test_a_function_gives_rows_of_three_to_five_numbers(image, tmp_path):
    file = tmp_path / "own.py"
    file.write_text(
        "import numpy as np\n"
        "def three(grey): return np.array([[50, 60, 2]])\n"
        "def five(grey): return np.array([[50, 60, 2, 0.5, 7]])\n"
        "def two(grey): return np.array([[50, 60]])\n"
        "def flat(grey): return np.array([[50, 60, 0]])\n"
        "def bad(grey): raise ValueError('no corner')\n"
    )
    assert detector(f"{file}:three")(image).matrix.tolist() == [[[2, 0], [0, 2]]]
    five = detector(f"{file}:five")(image)
    assert five.score.tolist() == [7]
    assert np.arctan2(five.matrix[0, 1, 0], five.matrix[0, 0, 0]) == pytest.approx(0.5)
    with pytest.raises(InputError, match=r"rows of x, y, scale"):
        detector(f"{file}:two")(image)
    with pytest.raises(InputError, match=r"keypoint 0 is .*a scale above 0"):
        detector(f"{file}:flat")(image)
    with pytest.raises(ComputeError, match=r"bad on a b\.png fails: ValueError: no corner"):
        detector(f"{file}:bad")(image)
    with pytest.raises(UnknownNameError, match="did you mean 'three'"):
        detector(f"{file}:thre")


def test_the_same_detector_has_the_same_identity(tmp_path):
    first, again = (detector(grid_detector(tmp_path)).identity for _ in range(2))
    assert first == again
    assert detector("sift", 10).identity != detector("sift", 20).identity


def test_keypoints_without_scales_are_refused(image, tmp_path):
    with h5py.File(tmp_path / "f.h5", "w") as file:
        file["a b.png/keypoints"] = np.zeros((3, 2))
        file["other/keypoints"] = np.zeros((3, 2))
    with pytest.raises(InputError, match="keypoints without scales"):
        detector(str(tmp_path / "f.h5"))(image)
    with h5py.File(tmp_path / "g.h5", "w") as file:
        file["other/keypoints"] = np.zeros((3, 2))
    with pytest.raises(InputError, match=r"has no keypoints of a b\.png"):
        detector(str(tmp_path / "g.h5"))(image)


def test_keypoints_of_a_larger_image_are_refused(image, tmp_path):
    with h5py.File(tmp_path / "f.h5", "w") as file:
        file["a b.png/keypoints"] = np.full((1, 2), 900.0)
        file["a b.png/scales"] = np.ones(1)
    with pytest.raises(InputError, match=r"can't have been found in an image of 320 x 240"):
        detector(str(tmp_path / "f.h5"))(image)
