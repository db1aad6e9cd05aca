"""Given keypoints are described by the patches of the protocols, whatever form they have."""

import cv2
import numpy as np
import pytest
from scene_images import texture

import harness
from harness.errors import InputError, InputTypeError
from protocols.eth.protocol import _Cut
from protocols.imaging.affine import from_similarity
from protocols.imaging.png import encode

ROWS = np.array([[100.25, 80.5, 2.0, 0.3], [160, 120, 4.5, -2.0], [6, 120, 3.0, 0.0]])


def frames():
    return from_similarity(*ROWS.T)


def opencv_keypoints():
    return [
        cv2.KeyPoint(x, y, 2 * scale, float(np.degrees(angle)) % 360)
        for x, y, scale, angle in ROWS.tolist()
    ]


def test_vectors_are_those_of_the_patches_of_the_protocol(tmp_path):
    (tmp_path / "a.png").write_bytes(encode(texture(), compress=True))
    cut = _Cut(side=65, extent=7.5, smoothing=0.8)
    patches = cut.of_file(tmp_path / "a.png", frames())
    model = harness.load_model("rootsift", device="cpu")
    vectors, inside = harness.describe_keypoints(texture(), frames(), model)
    np.testing.assert_array_equal(vectors, model.describe(patches))
    assert inside.tolist() == [True, True, False]


@pytest.mark.parametrize("form", ["opencv", "similarity", "affine"])
def test_every_form_of_the_same_keypoints_gives_the_same_vectors(form):
    affine = np.concatenate([ROWS[:, :2], frames().matrix.reshape(-1, 4)], axis=1)
    keypoints = {"opencv": opencv_keypoints(), "similarity": ROWS, "affine": affine}[form]
    wanted = harness.describe_keypoints(texture(), frames(), "rootsift")
    found = harness.describe_keypoints(texture(), keypoints, "rootsift")
    # OpenCV keeps float32 numbers and degrees: a few pixels of a patch round the other way.
    np.testing.assert_allclose(found.vectors, wanted.vectors, atol=0.02)
    assert (found.inside == wanted.inside).all()


def test_no_keypoint_gives_no_row():
    for none in ([], np.empty((0, 4)), from_similarity(*np.empty((4, 0)))):
        vectors, inside = harness.describe_keypoints(texture(), none, "hashsift.256")
        assert vectors.shape == (0, 32) and vectors.dtype == np.uint8
        assert inside.shape == (0,)


def test_colours_are_described_by_their_grey():
    colours = np.stack([texture()] * 3, axis=2)
    grey = harness.describe_keypoints(texture(), ROWS, "rootsift").vectors
    for image in (colours, np.dstack([colours, texture()]), texture()[:, :, None]):
        found = harness.describe_keypoints(image, ROWS, "rootsift").vectors
        np.testing.assert_array_equal(found, grey)


def test_the_extent_of_patches_can_be_given():
    wide, inside = harness.describe_keypoints(texture(), ROWS, "rootsift", extent=20)
    assert inside.tolist() == [True, False, False]
    assert not np.array_equal(wide, harness.describe_keypoints(texture(), ROWS, "rootsift").vectors)


def test_the_adapter_takes_the_place_of_an_opencv_descriptor():
    detector = cv2.SIFT.create(200)
    keypoints = detector.detect(texture(), None)
    described = harness.OpenCVDescriptor("hashsift.256")
    same, vectors = described.compute(texture(), keypoints)
    assert same is keypoints
    assert vectors.shape == (len(keypoints), described.descriptorSize())
    matcher = cv2.BFMatcher(described.defaultNorm(), crossCheck=True)
    matches = matcher.match(vectors, vectors)
    assert len(matches) > 100 and all(match.distance == 0 for match in matches)
    assert described.descriptorType() == cv2.CV_8U
    assert harness.OpenCVDescriptor("rootsift").defaultNorm() == cv2.NORM_L2


@pytest.mark.parametrize(
    ("image", "keypoints", "error", "told"),
    [
        (texture().astype(float), ROWS, InputTypeError, "image is float64; a uint8 array"),
        (texture()[0], ROWS, InputError, "image of shape"),
        (texture(), ROWS[:, :3], InputError, "rows of 4 numbers"),
        (texture(), [(1, 2)], InputTypeError, "a sequence of cv2.KeyPoint"),
        (texture(), ROWS * [1, 1, 0, 1], InputError, "keypoint 0 of 3.*a size above 0"),
        (texture(), ROWS * [100, 1, 1, 1], InputError, "region 0 of 3"),
        (texture(), [cv2.KeyPoint(5, 5, 0)], InputError, "keypoint 0 of 1"),
    ],
)
def test_what_is_no_keypoint_of_the_image_is_refused(image, keypoints, error, told):
    with pytest.raises(error, match=told):
        harness.describe_keypoints(image, keypoints, "rootsift")


def test_a_folder_of_vectors_describes_nothing(tmp_path):
    (tmp_path / "v_a").mkdir()
    (tmp_path / "v_a/ref.csv").write_text("1,2\n3,4\n")
    with pytest.raises(InputTypeError, match="is a folder of vectors"):
        harness.OpenCVDescriptor(str(tmp_path))
