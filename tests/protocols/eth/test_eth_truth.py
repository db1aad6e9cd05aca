import numpy as np
import pycolmap
import pytest

from protocols.eth import truth
from protocols.eth.truth import angles, errors, read

IDENTITY = """1000 0 320
0 1000 240
0 0 1
0 0 0
1 0 0
0 1 0
0 0 1
0.5 -2 7
640 480
"""


def rotation(axis, degrees):
    axis = np.asarray(axis, float) / np.linalg.norm(axis)
    return pycolmap.Rotation3d(axis * np.radians(degrees)).matrix()


@pytest.fixture
def made():
    """A model of twelve cameras as COLMAP has it, and the same cameras as they are known."""
    pycolmap.set_random_seed(0)
    model = pycolmap.synthesize_dataset(
        pycolmap.SyntheticDatasetOptions(num_rigs=1, num_frames_per_rig=12, num_points3D=20)
    )
    images = sorted(model.images.values(), key=lambda image: image.name)
    known = truth.KnownCameras(
        intrinsics=np.tile(np.eye(3), (12, 1, 1)),
        size=np.tile([640, 480], (12, 1)),
        rotation=np.array([i.cam_from_world().rotation.matrix().T for i in images]),
        centre=np.array([i.projection_center() for i in images]),
    )
    return model, [image.name for image in images], known


def test_a_camera_is_read(tmp_path):
    (tmp_path / "a.png.camera").write_text(IDENTITY)
    known = read(tmp_path, ["a.png"])
    np.testing.assert_array_equal(known.centre, [[0.5, -2, 7]])
    np.testing.assert_array_equal(known.intrinsics[0], [[1000, 0, 320], [0, 1000, 240], [0, 0, 1]])
    np.testing.assert_array_equal(known.size, [[640, 480]])


def test_the_rotation_of_a_file_is_from_the_camera_to_the_world(tmp_path):
    """A camera at (0, -5, 0) that looks along y: a point before it projects to the middle."""
    text = IDENTITY.replace("1 0 0\n0 1 0\n0 0 1\n0.5 -2 7", "1 0 0\n0 0 1\n0 -1 0\n0 -5 0")
    (tmp_path / "a.png.camera").write_text(text)
    known = read(tmp_path, ["a.png"])
    in_camera = known.rotation[0].T @ (np.array([0.0, 3, 0]) - known.centre[0])
    np.testing.assert_allclose(in_camera, [0, 0, 8])


def test_a_model_that_is_moved_turned_and_scaled_has_no_error(made):
    model, names, known = made
    turn = pycolmap.Rotation3d(np.array([0.1, -0.2, 0.3]))
    model.transform(pycolmap.Sim3d(7.0, turn, np.array([1.0, 2, 3])))
    found = errors(model, names, known, 0)
    assert found["position_error_m"] < 1e-9
    assert found["rotation_error_deg"] < 1e-6


def test_the_stored_rotation_turned_round_is_an_error(made):
    """If the files held the rotation from the world to the camera, it would show."""
    model, names, known = made
    turned = truth.KnownCameras(
        known.intrinsics, known.size, known.rotation.swapaxes(1, 2), known.centre
    )
    assert errors(model, names, turned, 0)["rotation_error_deg"] > 10


def test_a_camera_that_is_far_off_does_not_move_the_others(made):
    model, names, known = made
    centre, rotations = known.centre.copy(), known.rotation.copy()
    centre[3] += [0, 0, 6.0]
    rotations[5] = rotations[5] @ rotation([1, 2, 3], 3.0)
    off = truth.KnownCameras(known.intrinsics, known.size, rotations, centre)
    found = errors(model, names, off, 0)
    assert found["position_error_m"] == pytest.approx(6.0 / 12, abs=1e-6)
    assert found["rotation_error_deg"] == pytest.approx(3.0 / 12, abs=1e-6)


def test_only_registered_images_count(made):
    model, names, known = made
    centre = known.centre.copy()
    first = next(image for image in model.images.values() if image.name == names[0])
    model.deregister_frame(first.frame_id)
    centre[0] += 100
    off = truth.KnownCameras(known.intrinsics, known.size, known.rotation, centre)
    assert errors(model, names, off, 0)["position_error_m"] < 1e-9


def test_the_error_is_the_same_every_time(made):
    model, names, known = made
    noisy = known.centre + np.random.default_rng(0).normal(size=(12, 3)) * 0.05
    off = truth.KnownCameras(known.intrinsics, known.size, known.rotation, noisy)
    assert errors(model, names, off, 0) == errors(model, names, off, 0)


def test_too_few_cameras_or_cameras_in_a_line_have_no_error(made):
    model, names, known = made
    two = truth.KnownCameras(*(part[:2] for part in vars(known).values()))
    assert errors(model, names[:2], two, 0) == {}
    line = np.outer(np.arange(12.0), [1, 2, 3])
    straight = truth.KnownCameras(known.intrinsics, known.size, known.rotation, line)
    assert errors(model, names, straight, 0) == {}
    assert errors(model, ["other.png"], two, 0) == {}


@pytest.mark.parametrize("degrees", [0.0, 1e-5, 0.3, 90.0, 179.9])
def test_angles_are_those_of_the_rotations(degrees):
    found = angles(rotation([1, 2, 3], degrees)[None])
    assert np.degrees(found[0]) == pytest.approx(degrees, abs=1e-9)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (IDENTITY[:-4], "doesn't end with a line end, so its last number may be cut off"),
        (IDENTITY[:-1], "doesn't end with a line end"),
        (IDENTITY + "1\n", "holds 27 numbers"),
        (IDENTITY.replace("480", "480.5"), "no size of an image"),
        (IDENTITY.replace("480", "1e300"), "no size of an image"),
        (IDENTITY.replace("-2", "-2e300"), "no place on Earth"),
        (IDENTITY.replace("640", "6_40"), "can't be read as a camera"),
        (IDENTITY.replace("640", "wide"), "can't be read as a camera"),
        (IDENTITY.replace("640", "nan"), "not all are finite"),
        (IDENTITY.replace("1 0 0\n0 1 0\n0 0 1\n0.5", "1 0 0\n0 1 0\n0 0 2\n0.5"), "no rotation"),
        (IDENTITY.replace("1 0 0\n0 1 0\n0 0 1\n0.5", "1 0 0\n0 1 0\n0 0 -1\n0.5"), "no rotation"),
        (IDENTITY.replace("1 0 0\n0 1 0\n0 0 1\n0.5", "1 0 0\n0 1 0\n0 0 1e300\n0.5"), "no rot"),
        (IDENTITY.replace("0 0 1\n0 0 0", "0 0 2\n0 0 0"), "no matrix K"),
    ],
)
def test_a_bad_camera_is_refused_by_name_with_what_is_wanted(tmp_path, text, message):
    (tmp_path / "a.png.camera").write_text(text)
    with pytest.raises(ValueError, match=rf"a\.png\.camera.*({message})"):
        read(tmp_path, ["a.png"])


def test_a_missing_camera_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"a\.png\.camera is missing: add it, or move"):
        read(tmp_path, ["a.png"])


@pytest.mark.data
def test_the_real_cameras_look_at_the_fountain(shared):
    """Their axes meet: so the stored rotation is from the camera to the world, not the reverse."""
    folder = shared / "sfm" / "Fountain-P11" / truth.FOLDER
    known = read(folder, [f"{i:04}.jpg" for i in range(11)])

    def spread(forward):
        """Mean distance of the axes from the point that is nearest to all of them."""
        beside = np.eye(3) - forward[:, :, None] * forward[:, None, :]
        point = np.linalg.solve(beside.sum(0), (beside @ known.centre[:, :, None]).sum(0))[:, 0]
        ahead = np.einsum("nd,nd->n", forward, point - known.centre)
        return np.linalg.norm(beside @ (point - known.centre)[:, :, None], axis=1).mean(), ahead

    right, ahead = spread(known.rotation[:, :, 2])
    wrong, _ = spread(known.rotation[:, 2, :])
    assert (ahead > 0).all()
    assert right < wrong / 2
