import shutil
import sqlite3
from contextlib import closing

import numpy as np
import pycolmap
import pytest

from protocols.colmap.keypoints import copy
from protocols.eth import keypoints
from protocols.eth.files import write_keypoints
from protocols.imaging.affine import affine_patches
from protocols.imaging.agreement import correlation
from protocols.imaging.photographs import sha256
from protocols.imaging.png import encode

SIDE = 200
BLOBS = np.array([[60.0, 50.0], [140.25, 52.5], [97.75, 130.0]])  # the centre of a pixel is a whole


def blobs():
    """Bright ellipses around known centres; none looks alike when it is turned."""
    y, x = np.mgrid[:SIDE, :SIDE].astype(float)
    image = np.full((SIDE, SIDE), 60.0)
    for k, (u, v) in enumerate(BLOBS):
        image += (120 + 20 * k) * np.exp(-((x - u) ** 2 / 60 + (y - v) ** 2 / (90 + 20 * k)))
        image += 60 * np.exp(-((x - u - 14) ** 2 + (y - v - 9) ** 2) / 30)
    return np.clip(image, 0, 255).astype(np.uint8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    for name, image in (("a.png", blobs()), ("turned.png", np.rot90(blobs(), -1))):
        (folder / name).write_bytes(encode(np.ascontiguousarray(image), compress=True))
    return folder


def found(folder, name):
    (frames,) = keypoints.detected(folder, [name], [sha256(folder / name)])
    return frames


def near(frames, place):
    """The regions around a place, the best first."""
    off = np.hypot(frames.x - place[0], frames.y - place[1])
    return frames.take(np.argsort(off)[: np.count_nonzero(off < 3)])


def test_keypoints_lie_where_the_blobs_are(folder):
    """Half a pixel more or less would show: COLMAP counts from the corner of the first pixel."""
    frames = found(folder, "a.png")
    for place in BLOBS:
        one = near(frames, place)
        assert abs(one.x[0] - place[0]) < 0.3
        assert abs(one.y[0] - place[1]) < 0.3


def test_a_patch_turns_with_its_image(folder):
    """Turned clockwise by 90 degrees, (x, y) comes to (SIDE - 1 - y, x); patches stay upright."""
    cut = {"extent": 5.0, "side": 64, "smoothing": 1.0}
    image = blobs().astype(np.float32)
    turned = np.rot90(blobs(), -1).astype(np.float32)
    for x, y in BLOBS:
        one = near(found(folder, "a.png"), (x, y))
        other = near(found(folder, "turned.png"), (SIDE - 1 - y, x))
        a = affine_patches(image, one, **cut)
        b = affine_patches(turned, other, **cut)
        agreement = [correlation(a, np.broadcast_to(patch, a.shape)) for patch in b]
        assert np.max(agreement) > 0.98


def test_what_was_detected_is_kept(folder, monkeypatch):
    before = found(folder, "a.png")
    monkeypatch.setattr(pycolmap, "extract_features", None)
    np.testing.assert_array_equal(found(folder, "a.png").matrix, before.matrix)


def test_another_image_of_the_same_name_is_detected_anew(folder, tmp_path):
    before = found(folder, "a.png")
    (tmp_path / "a.png").write_bytes((folder / "turned.png").read_bytes())
    assert not np.array_equal(found(tmp_path, "a.png").x, before.x)


def test_a_damaged_file_of_the_cache_is_made_again(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path))
    before = found(folder, "a.png")
    (kept,) = tmp_path.rglob("*.entry")
    whole = kept.read_bytes()
    kept.write_bytes(whole[:-99] + bytes(99))  # of the last keypoint's numbers, among others
    np.testing.assert_array_equal(found(folder, "a.png").x, before.x)
    assert kept.read_bytes() == whole


def test_what_is_no_image_is_named(tmp_path):
    (tmp_path / "a.png").write_bytes(b"no image")
    with pytest.raises(ValueError, match=r"a\.png may be no image: replace it"):
        found(tmp_path, "a.png")


def test_official_keypoints_are_not_moved(tmp_path):
    """Their files count from the centre of the first pixel already."""
    table = np.array([[10.25, 20.5, 2.0, np.pi / 2]], np.float32)
    write_keypoints(tmp_path / "a.png.bin", table)
    (frames,) = keypoints.official(tmp_path, ["a.png"])
    assert (frames.x[0], frames.y[0]) == (10.25, 20.5)
    # A quarter turn from x towards y, which runs down.
    np.testing.assert_allclose(frames.matrix[0], [[0, -2], [2, 0]], atol=1e-6)


def test_regions_come_back_from_their_table(tmp_path):
    table = np.array([[10.25, 20.5, 2.0, 0.5], [1, 2, 3, -2.5]], np.float32)
    write_keypoints(tmp_path / "a.png.bin", table)
    (frames,) = keypoints.official(tmp_path, ["a.png"])
    np.testing.assert_allclose(keypoints.table_of(frames), table, rtol=1e-6)


def written(folder, table):
    database = folder / "database.db"
    with pycolmap.Database.open(database) as opened:
        camera = pycolmap.Camera.create_from_model_name(1, "PINHOLE", 100.0, 20, 20)
        image = pycolmap.Image(name="a.png", camera_id=opened.write_camera(camera))
        opened.write_keypoints(opened.write_image(image), table)
    return database


@pytest.mark.parametrize(
    "table",
    [[[10.75, 21.0, 2.0, np.pi / 2]], [[10.75, 21.0, 0.0, -2.0, 2.0, 0.0]]],
)
def test_keypoints_of_a_database_are_moved_by_half_a_pixel(tmp_path, table):
    database = written(tmp_path, np.array(table, np.float32))
    (frames,) = keypoints.in_database(database, ["a.png"])
    assert (frames.x[0], frames.y[0]) == (10.25, 20.5)
    np.testing.assert_allclose(frames.matrix[0], [[0, -2], [2, 0]], atol=1e-6)


def test_a_database_without_keypoints_of_an_image_is_refused(tmp_path):
    database = written(tmp_path, np.ones((1, 4), np.float32))
    with pytest.raises(ValueError, match=r"no keypoints of b\.png: .*--set keypoints=sift"):
        keypoints.in_database(database, ["a.png", "b.png"])
    with pytest.raises(ValueError, match=r"other\.db is not there: .*--set keypoints=sift"):
        keypoints.in_database(tmp_path / "other.db", ["a.png"])


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            np.ones((3, 2), np.float32),
            r"3 x 2 numbers for .* a\.png, and stores 6; .*no scale",
        ),
        (np.full((1, 4), np.nan, np.float32), r"a keypoint of a\.png is not finite"),
    ],
)
def test_keypoints_that_are_none_are_refused(tmp_path, table, message):
    database = written(tmp_path, np.ones((1, 4), np.float32))
    with closing(sqlite3.connect(database)) as opened, opened:
        values = (*table.shape, table.tobytes())
        opened.execute("UPDATE keypoints SET rows = ?, cols = ?, data = ?", values)
    with pytest.raises(ValueError, match=rf"database\.db.*{message}.*--set keypoints=sift"):
        keypoints.in_database(database, ["a.png"])


def test_an_image_of_one_grey_has_no_keypoints(tmp_path):
    (tmp_path / "a.png").write_bytes(encode(np.full((90, 90), 128, np.uint8), compress=True))
    assert len(found(tmp_path, "a.png")) == 0


def test_what_stands_only_in_the_log_of_a_database_is_copied(tmp_path):
    (tmp_path / "left").mkdir()
    with closing(sqlite3.connect(tmp_path / "a.db")) as opened:
        opened.execute("PRAGMA journal_mode=WAL")
        opened.execute("CREATE TABLE images (name)")
        opened.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        opened.execute("INSERT INTO images VALUES ('0000.png')")
        opened.commit()
        for file in tmp_path.glob("a.db*"):  # as another process that is at work leaves them
            shutil.copy(file, tmp_path / "left")
    copy(tmp_path / "left/a.db", tmp_path / "b.db")
    for name, there in (("b.db", 1), ("left/a.db", 0)):
        address = f"{(tmp_path / name).as_uri()}?immutable=1"
        with closing(sqlite3.connect(address, uri=True)) as opened:
            assert len(opened.execute("SELECT name FROM images").fetchall()) == there
