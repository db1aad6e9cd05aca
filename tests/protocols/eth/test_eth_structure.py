"""Reconstruction of made-up cameras and points: what is put in exactly comes out exactly."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pycolmap
import pytest

from protocols.colmap.keypoints import frames_of, places_for_colmap
from protocols.colmap.mapping import quiet
from protocols.eth import truth
from protocols.eth.scenes import ImageScene
from protocols.eth.structure import reconstruct

IMAGES, POINTS = 7, 120


def table_of(points):
    """Keypoints of scale 1, upright, as COLMAP has them."""
    table = np.zeros((len(points), 4), np.float32)
    table[:, :2], table[:, 2] = points, 1
    return table


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A scene with COLMAP's database, the matches of its points, and its known cameras."""
    database = tmp_path_factory.mktemp("made") / "database.db"
    pycolmap.set_random_seed(0)
    options = pycolmap.SyntheticDatasetOptions(
        num_rigs=1,
        num_cameras_per_rig=1,
        num_frames_per_rig=IMAGES,
        num_points3D=POINTS,
        num_points2D_without_point3D=0,
        camera_has_prior_focal_length=True,
        camera_params=[1280.0, 500.0, 390.0, 0.0],
    )
    with pycolmap.Database.open(database) as opened:
        model = pycolmap.synthesize_dataset(options, opened)
    images = sorted(model.images.values(), key=lambda image: image.name)
    frames, rows = [], []
    for image in images:
        frames.append(frames_of(table_of([p.xy for p in image.points2D])))
        rows.append({p.point3D_id: k for k, p in enumerate(image.points2D)})
    matched = {
        (i, j): np.array([(rows[i][p], rows[j][p]) for p in rows[i] if p in rows[j]], np.uint32)
        for i in range(IMAGES)
        for j in range(i + 1, IMAGES)
    }
    camera = model.cameras[1]
    known = truth.KnownCameras(
        intrinsics=np.tile([[1280.0, 0, 499.5], [0, 1280, 389.5], [0, 0, 1]], (IMAGES, 1, 1)),
        size=np.tile([camera.width, camera.height], (IMAGES, 1)),
        rotation=np.array([i.cam_from_world().rotation.matrix().T for i in images]),
        centre=np.array([i.projection_center() for i in images]),
    )
    names = tuple(image.name for image in images)
    scene = ImageScene(
        name="made",
        images=database.parent,
        names=names,
        sha256=("",) * IMAGES,
        frames=tuple(frames),
        points=None,
        cameras=known,
        database=database,
        evidence="",
    )
    return scene, matched


@pytest.fixture(autouse=True)
def silent():
    with quiet(failures=False):
        yield


def by_known_cameras(scene):
    """Without a database: the cameras are put into one."""
    return replace(scene, database=None)


@pytest.mark.parametrize("change", [lambda scene: scene, by_known_cameras])
def test_exact_matches_give_the_whole_scene_exactly(made, change):
    scene, matched = made
    found = reconstruct(change(scene), matched, 0)
    assert found["registered"] == IMAGES
    assert found["points"] == POINTS
    assert found["observations"] == sum(map(len, scene.frames))
    assert found["track_length"] == found["observations"] / POINTS
    assert found["observations_per_image"] == found["observations"] / IMAGES
    assert found["inlier_pairs"] == len(matched)
    assert found["inlier_matches"] == sum(map(len, matched.values()))
    assert found["reprojection_error_px"] < 1e-3


@pytest.mark.parametrize("change", [lambda scene: scene, by_known_cameras])
def test_the_half_pixel_is_added_once(made, change):
    """Exact keypoints give exact cameras: half a pixel more or less would turn all of them."""
    scene, matched = made
    found = reconstruct(change(scene), matched, 0)
    assert found["position_error_m"] < 1e-3
    assert found["rotation_error_deg"] < 1e-2  # half a pixel is 0.02


def test_places_come_back_from_colmap_as_they_went(made):
    frames = made[0].frames[0]
    again = frames_of(table_of(places_for_colmap(frames)))
    np.testing.assert_array_equal(again.x, frames.x)
    np.testing.assert_array_equal(again.y, frames.y)


def test_the_same_matches_give_the_same_bits(made):
    scene, matched = made
    rng = np.random.default_rng(0)
    noisy = {
        pair: np.concatenate([m, rng.integers(0, len(scene.frames[0]), (20, 2), np.uint32)])
        for pair, m in matched.items()
    }
    assert reconstruct(scene, noisy, 3) == reconstruct(scene, noisy, 3)


def test_without_matches_there_is_no_model_and_no_error_of_one(made):
    scene, matched = made
    found = reconstruct(scene, {pair: m[:0] for pair, m in matched.items()}, 0)
    assert found == dict.fromkeys(
        ("inlier_pairs", "inlier_matches", "registered", "points", "observations"), 0.0
    )


def test_images_out_of_reach_are_not_registered(made):
    scene, matched = made
    cut = {pair: m if IMAGES - 1 not in pair else m[:0] for pair, m in matched.items()}
    found = reconstruct(scene, cut, 0)
    assert found["registered"] == IMAGES - 1
    assert found["inlier_pairs"] == sum(len(m) > 0 for m in cut.values())


def test_the_users_database_is_not_written_to(made):
    scene, matched = made
    assert scene.database is not None
    before = scene.database.read_bytes()
    reconstruct(scene, matched, 0)
    assert scene.database.read_bytes() == before
    assert [f.name for f in Path(scene.database.parent).iterdir()] == [scene.database.name]


def test_no_descriptors_are_in_the_database(made, monkeypatch):
    scene, matched = made
    counted = []

    def look(database, *rest, **options):
        with pycolmap.Database.open(database) as opened:
            counted.append((opened.num_descriptors(), opened.num_keypoints()))

    monkeypatch.setattr(pycolmap, "incremental_mapping", lambda database, *_: look(database) or {})
    reconstruct(scene, matched, 0)
    assert counted == [(0, sum(map(len, scene.frames)))]


def test_the_database_may_have_its_images_in_another_order(made):
    scene, matched = made
    order = list(range(IMAGES))[::-1]
    turned = replace(
        scene,
        names=tuple(scene.names[i] for i in order),
        frames=tuple(scene.frames[i] for i in order),
        cameras=truth.KnownCameras(*(part[order] for part in vars(scene.cameras).values())),
    )
    there = {
        (IMAGES - 1 - b, IMAGES - 1 - a): np.ascontiguousarray(m[:, ::-1])
        for (a, b), m in matched.items()
    }
    found = reconstruct(turned, there, 0)
    assert found["registered"] == IMAGES
    assert found["points"] == POINTS
    assert found["position_error_m"] < 1e-3


def test_images_of_equal_intrinsics_share_a_camera(made, monkeypatch):
    scene, matched = made
    seen = []

    def look(database, *rest):
        with pycolmap.Database.open(database) as opened:
            seen.append([camera.params.tolist() for camera in opened.read_all_cameras()])
        return {}

    monkeypatch.setattr(pycolmap, "incremental_mapping", look)
    reconstruct(by_known_cameras(scene), matched, 0)
    assert seen == [[[1280.0, 500.0, 390.0, 0.0]]]  # of COLMAP, half a pixel more
