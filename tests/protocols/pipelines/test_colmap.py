"""Databases of any descriptor: COLMAP maps them, and interrupted runs continue."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import cv2
import numpy as np
import pycolmap
import pytest
from scene_images import calls, grid_detector, texture, views, write_png

from harness import load_model
from harness.errors import InputError
from protocols.colmap import sift
from protocols.colmap.keypoints import frames_of
from protocols.colmap.mapping import models, quiet
from protocols.eth import pair_lists, retrieval, truth
from protocols.eth.sample import SCENE, sample
from protocols.imaging.grey import read_grey
from protocols.imaging.photographs import sha256
from protocols.pipelines.colmap import colmap

NAMES = ["a b.png", "left/é.png", "left/c.png"]


@pytest.fixture
def images(tmp_path):
    return views(tmp_path / "images", NAMES)


def rootsift():
    return load_model("rootsift", device="cpu")


def filled(images, database, **options):
    given = {"keypoints": 200} | options
    return colmap(images, database, model=rootsift(), **given)


def tables(database):
    """The contents of a database, without the numbers that COLMAP draws for its rows."""
    queries = {
        "images": "SELECT name, camera_id FROM images ORDER BY name",
        "cameras": "SELECT model, width, height, params FROM cameras ORDER BY camera_id",
        "keypoints": "SELECT name, rows, cols, data FROM keypoints JOIN images USING (image_id)"
        " ORDER BY name",
        "matches": "SELECT pair_id, rows, data FROM matches ORDER BY pair_id",
        "geometries": "SELECT pair_id, rows, data, config, F, E, H FROM two_view_geometries"
        " ORDER BY pair_id",
    }
    with closing(sqlite3.connect(database)) as opened:
        return {name: opened.execute(query).fetchall() for name, query in queries.items()}


def test_pycolmap_maps_the_database_of_a_real_scene(tmp_path):
    images = sample() / SCENE / "images"
    found = colmap(
        images, tmp_path / "ü b.db", model=rootsift(), keypoints=600, mapped=tmp_path / "map"
    )
    assert found.images == 5 and found.added == found.pairs == 10
    assert found.models[0].registered == 5
    assert found.models[0].reprojection_error_px < 1
    written = pycolmap.Reconstruction(found.models[0].folder)
    assert written.num_reg_images() == 5
    with quiet():
        again = models(tmp_path / "ü b.db", images, seed=0, threads=1)[0]
    assert again.num_points3D() == found.models[0].points


@pytest.mark.data
def test_bits_map_all_of_herzjesu_with_the_right_cameras(shared, tmp_path):
    scene = shared / "sfm/Herzjesu-P8"
    for file in sorted((scene / "images").glob("*.jpg")):
        small = cv2.resize(read_grey(file), (768, 512), interpolation=cv2.INTER_AREA)
        write_png(tmp_path / "images" / f"é {file.stem}.png", small)
    model = load_model("hashsift.256", device="cpu")
    found = colmap(
        tmp_path / "images", tmp_path / "d.db", model=model, keypoints=1500, camera_mode="single",
        mapped=tmp_path / "map",
    )  # fmt: skip
    assert found.models[0].registered == found.images == 8
    assert found.models[0].reprojection_error_px < 0.6
    mapped = pycolmap.Reconstruction(found.models[0].folder)
    stems = sorted(file.stem for file in (scene / "images").glob("*.jpg"))
    known = truth.read(scene / truth.FOLDER, [f"{stem}.jpg" for stem in stems])
    errors = truth.errors(mapped, [f"é {stem}.png" for stem in stems], known, 0)
    assert errors["position_error_m"] < 0.1


def test_keypoints_are_colmaps_and_no_descriptors_are_written(images, tmp_path):
    filled(images, tmp_path / "d.db")
    with pycolmap.Database.open(tmp_path / "d.db") as opened:
        for image in opened.read_all_images():
            table = opened.read_keypoints(image.image_id)
            wanted = sift.detected(images, image.name, sha256(images / image.name), 200)
            np.testing.assert_allclose(table[:, :2], wanted[:, :2], atol=1e-4)
            np.testing.assert_allclose(frames_of(table).matrix, frames_of(wanted).matrix, atol=1e-4)
            assert not opened.exists_descriptors(image.image_id)
        assert opened.num_images() == 3 and opened.num_cameras() == 3


def test_matches_agree_with_the_way_the_images_were_turned(images, tmp_path):
    found = filled(images, tmp_path / "d.db")
    assert found.counts["verified_pairs"] == 3
    turns = [cv2.getRotationMatrix2D((200, 150), 4.0 * k, 1 + 0.03 * k) for k in range(len(NAMES))]
    with pycolmap.Database.open(tmp_path / "d.db") as opened:
        listed = {image.name: image.image_id for image in opened.read_all_images()}
        a, b = (listed[name] for name in NAMES[:2])
        matches = opened.read_two_view_geometry(a, b).inlier_matches
        first, second = (opened.read_keypoints(k)[:, :2] - 0.5 for k in (a, b))
    inverse = cv2.invertAffineTransform(turns[0])
    photograph = first[matches[:, 0]] @ inverse[:, :2].T + inverse[:, 2]
    moved = photograph @ turns[1][:, :2].T + turns[1][:, 2]
    assert np.median(np.linalg.norm(moved - second[matches[:, 1]], axis=1)) < 0.5


def test_a_killed_run_continues_at_images_and_pairs(images, tmp_path):
    command = [sys.executable, "-m", "harness", "colmap", images, "--model", "rootsift"]
    detector = grid_detector(tmp_path, stop=3)
    first = [*command, "--database", tmp_path / "k.db", "--detector", detector]
    assert subprocess.run(first, capture_output=True).returncode == -9  # while it describes
    killed_at_pairs = (
        "import os, signal, sys\n"
        "from protocols.pipelines import colmap, database\n"
        "write = database.write_pairs\n"
        "def once(*given):\n"
        "    write(*given)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "colmap.TOGETHER, database.write_pairs = 1, once\n"
        "from harness.commands.main import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", killed_at_pairs, *map(str, first[3:])], capture_output=True
    )
    assert done.returncode == -9, done.stderr
    with closing(sqlite3.connect(tmp_path / "k.db")) as opened:
        assert opened.execute("SELECT count(*) FROM two_view_geometries").fetchone() == (1,)
    described = calls(tmp_path, 3)
    done = subprocess.run(first, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert calls(tmp_path, 3) == described  # no image was detected again
    assert "3 pairs of images, 2 of them matched now" in done.stdout
    filled(images, tmp_path / "whole.db", detector=grid_detector(tmp_path))
    assert tables(tmp_path / "k.db") == tables(tmp_path / "whole.db")
    assert not [*tmp_path.glob(".*")]


def test_a_complete_database_is_left_alone_and_new_images_are_added(images, tmp_path):
    grid, database = grid_detector(tmp_path), tmp_path / "d.db"
    filled(images, database, detector=grid)
    before = tables(database)
    assert filled(images, database, detector=grid).added == 0
    assert tables(database) == before and calls(tmp_path) == 3
    write_png(images / "new.png", texture())
    found = filled(images, database, detector=grid)
    assert (found.pairs, found.added) == (6, 3)
    after = tables(database)
    assert set(before["geometries"]) < set(after["geometries"])
    assert set(before["keypoints"]) < set(after["keypoints"])


def test_keypoints_and_cameras_of_a_given_database_are_kept(images, tmp_path):
    database = tmp_path / "given.db"
    pycolmap.Database.open(database).close()
    with quiet():
        options = pycolmap.FeatureExtractionOptions(num_threads=1, use_gpu=False)
        options.sift.max_num_features = 200
        reader = pycolmap.ImageReaderOptions(camera_model="OPENCV")
        pycolmap.extract_features(
            database, images, camera_mode=pycolmap.CameraMode.SINGLE, reader_options=reader,
            extraction_options=options, device=pycolmap.Device.cpu,
        )  # fmt: skip
    before = tables(database)
    with pytest.raises(InputError, match="leave out --detector"):
        filled(images, database, detector="harris-affine")
    with pytest.raises(InputError, match="--masks drop keypoints when they are detected"):
        filled(images, database, masks=tmp_path)
    found = filled(images, database)
    assert found.counts["verified_pairs"] == 3
    after = tables(database)
    for name in ("images", "cameras", "keypoints"):
        assert after[name] == before[name]
    with pycolmap.Database.open(database) as opened:
        assert opened.num_descriptors() > 0  # COLMAP's own, of these keypoints: nothing is lost
    assert filled(images, database).added == 0  # and once more: still the database's keypoints


def test_keypoints_on_black_pixels_of_a_mask_are_not_in_the_database(images, tmp_path):
    filled(images, tmp_path / "all.db")
    mask = np.full((240, 320), 255, np.uint8)
    mask[:, :160] = 0
    write_png(tmp_path / "masks/left/c.png.png", mask)
    masks = tmp_path / "masks"
    assert filled(images, tmp_path / "right.db", masks=masks).counts["verified_pairs"] == 3
    everywhere, right = (
        {name: np.frombuffer(data, np.float32).reshape(rows, columns)
         for name, rows, columns, data in tables(tmp_path / file)["keypoints"]}
        for file in ("all.db", "right.db")
    )  # fmt: skip
    # COLMAP's pixel 160, the first that is not black, has x in [160, 161).
    assert everywhere["left/c.png"][:, 0].min() < 100 < 160 <= right["left/c.png"][:, 0].min()
    for name in ("a b.png", "left/é.png"):  # they have no mask
        assert np.array_equal(everywhere[name], right[name])


def test_matches_of_another_origin_are_not_mixed(images, tmp_path):
    filled(images, tmp_path / "d.db")
    with pytest.raises(InputError, match="was filled with model rootsift, not meanstd"):
        colmap(images, tmp_path / "d.db", model=load_model("meanstd", device="cpu"), keypoints=200)
    with pytest.raises(InputError, match=r"was filled with ratio 0\.8, not 0\.7"):
        filled(images, tmp_path / "d.db", ratio=0.7)
    with closing(sqlite3.connect(tmp_path / "d.db")) as opened, opened:
        opened.execute("DROP TABLE harness_facts")
    with pytest.raises(InputError, match="has matches of 3 pairs that were not made here"):
        filled(images, tmp_path / "d.db")


def test_images_that_cannot_be_used_are_told_and_counted(images, tmp_path, caplog):
    database = tmp_path / "d.db"
    filled(images, database)
    write_png(images / "a b.png", texture(100, 100))
    write_png(images / "left/é.png", texture())
    write_png(images / "other.png", texture())
    (images / "bad.png").write_bytes(b"no image")
    write_png(images / "blank.png", np.full((240, 320), 80, np.uint8))
    (images / "left/c.png").unlink()
    found = filled(images, database)
    assert found.skipped.keys() == {"a b.png", "bad.png", "left/é.png"}
    assert "its file has changed since" in found.skipped["left/é.png"]
    assert "it has 100 x 100 pixels, its camera in" in found.skipped["a b.png"]
    assert found.empty == ("blank.png",)
    assert "3 of 5 images skipped" in caplog.text
    assert "1 images of" in caplog.text and "left/c.png" in caplog.text


def test_too_few_images_are_an_error(tmp_path):
    write_png(tmp_path / "one/a.png", texture())
    with pytest.raises(InputError, match="has one image"):
        filled(tmp_path / "one", tmp_path / "d.db")
    assert not (tmp_path / "d.db").exists()
    (tmp_path / "one/b.png").write_bytes(b"no image")
    with pytest.raises(InputError, match="1 images can be used"):
        filled(tmp_path / "one", tmp_path / "d.db")
    (tmp_path / "text.db").write_text("no database")
    with pytest.raises(InputError, match=r"text\.db can't be read as a database"):
        filled(tmp_path / "one", tmp_path / "text.db")


def test_images_share_cameras_as_asked(images, tmp_path):
    for mode, cameras in (("single", 1), ("per-folder", 2), ("per-image", 3)):
        filled(images, tmp_path / f"{mode}.db", camera_mode=mode, camera_model="PINHOLE",
               pairs="sequential", neighbours=1)  # fmt: skip
        with pycolmap.Database.open(tmp_path / f"{mode}.db") as opened:
            known = opened.read_all_cameras()
        assert len(known) == cameras
        assert {camera.model.name for camera in known} == {"PINHOLE"}
    with pytest.raises(InputError, match="camera model 'PINHOL'"):
        filled(images, tmp_path / "x.db", camera_model="PINHOL")


def test_pairs_are_listed_by_names_with_blanks(tmp_path):
    names = ["a b.png", "b.png", "b.png a", "é.png"]
    file = tmp_path / "pairs.txt"
    file.write_text("# pairs\na b.png b.png\n\nb.png\té.png\né.png a b.png\nb.png none.png\n")
    assert pair_lists.listed(file, names) == ([(0, 1), (0, 3), (1, 3)], 1)
    file.write_text("b.png a b.png\n")
    with pytest.raises(InputError, match=r"line 1: .* can be read as several pairs"):
        pair_lists.listed(file, names)
    file.write_text("alone\n")
    with pytest.raises(InputError, match="holds no two names"):
        pair_lists.listed(file, names)
    with pytest.raises(InputError, match="pairs are exhaustive, sequential, retrieval"):
        pair_lists.listed(Path("exhaustve"), names)


def test_sequential_pairs_are_of_neighbours():
    assert pair_lists.sequential(4, 2) == [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)]
    assert pair_lists.sequential(3, 9) == pair_lists.exhaustive(3)


def test_images_of_one_place_are_found_by_their_vectors():
    rng = np.random.default_rng(0)
    places = [rng.normal(size=(300, 32)) for _ in range(4)]
    vectors = [
        (place + rng.normal(scale=0.3, size=place.shape)).astype(np.float32)
        for place in places
        for _ in range(3)
    ]
    distance = rootsift().distance
    found = retrieval.alike(len(vectors), lambda row: vectors[row], distance, 2)
    assert found == [(3 * p + a, 3 * p + b) for p in range(4) for a, b in pair_lists.exhaustive(3)]
    vectors[0] = vectors[0][:0]
    found = retrieval.alike(len(vectors), lambda row: vectors[row], distance, 2)
    assert all(0 not in pair for pair in found)


def test_retrieved_pairs_are_kept_while_the_images_are_the_same(images, tmp_path):
    grid, given = grid_detector(tmp_path), {"pairs": "retrieval", "neighbours": 1}
    first = filled(images, tmp_path / "d.db", detector=grid, **given)
    again = filled(images, tmp_path / "d.db", detector=grid, **given)
    assert (again.pairs, again.added) == (first.pairs, 0)
    assert calls(tmp_path) == 3
    write_png(images / "new.png", texture())
    assert filled(images, tmp_path / "d.db", detector=grid, **given).pairs >= first.pairs
    assert calls(tmp_path) == 7


def test_the_command_says_what_it_did(run, images, tmp_path):
    file = tmp_path / "pairs.txt"
    file.write_text("a b.png left/é.png\n")
    status, out, _ = run("colmap", images, "--model", "rootsift", "--keypoints", 200,
                         "--database", tmp_path / "d.db", "--pairs", file)  # fmt: skip
    assert status == 0
    assert "1 pairs of images, 1 of them matched now" in out
    status, out, _ = run("colmap", images, "--model", "rootsift", "--keypoints", 200,
                         "--database", tmp_path / "d.db", "--pairs", "retrieval",
                         "--neighbours", 2, "--map", tmp_path / "map")  # fmt: skip
    assert status == 0
    assert "3 pairs of images, 2 of them matched now" in out
