"""COLMAP's models and databases: what is cut off, damaged or absurd is refused by name."""

import shutil
import sqlite3
import struct
from contextlib import closing

import numpy as np
import pycolmap
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.colmap import keypoints, model

STEMS = ("cameras", "images", "points3D")
REMEDY = "give another"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A model, in both formats, and its database."""
    folder = tmp_path_factory.mktemp("made")
    options = pycolmap.SyntheticDatasetOptions(
        num_rigs=2, num_cameras_per_rig=1, num_frames_per_rig=3, num_points3D=20
    )
    pycolmap.set_random_seed(0)
    with pycolmap.Database.open(folder / "database.db") as database:
        sparse = pycolmap.synthesize_dataset(options, database)
        for image in database.read_all_images():
            table = np.ones((len(database.read_keypoints(image.image_id)), 4), np.float32)
            database.update_keypoints(image.image_id, table)
    for form in ("bin", "txt"):
        (folder / form).mkdir()
    sparse.write_binary(folder / "bin")
    sparse.write_text(folder / "txt")
    return folder


def spoilt(made, tmp_path, name, change):
    """A copy of a model with one file changed."""
    folder = tmp_path / "model"
    shutil.copytree(made / name.partition(".")[2], folder, dirs_exist_ok=True)
    (folder / name).write_bytes(change((folder / name).read_bytes()))
    return folder


@pytest.mark.parametrize("form", ["bin", "txt"])
def test_a_model_is_what_colmap_reads(made, form):
    found, wanted = model.read(made / form), pycolmap.Reconstruction(made / form)
    assert sorted(found.images) == sorted(wanted.images)
    for number, image in found.images.items():
        other = wanted.images[number]
        assert image.name == other.name
        np.testing.assert_array_equal(image.xy, [point.xy for point in other.points2D])
        np.testing.assert_allclose(
            image.pose.matrix(), other.cam_from_world().matrix(), rtol=0, atol=1e-14
        )
        camera, its = found.cameras[image.camera], wanted.cameras[other.camera_id]
        assert repr(camera) == repr(its)
    assert found.point.tolist() == sorted(wanted.points3D)
    np.testing.assert_array_equal(found.xyz, [wanted.points3D[k].xyz for k in found.point.tolist()])
    told = {
        (p, e.image_id, e.point2D_idx) for p, q in wanted.points3D.items() for e in q.track.elements
    }
    assert set(map(tuple, found.track.tolist())) == told


def test_the_binary_files_are_read_where_both_are_there(made, tmp_path):
    shutil.copytree(made / "bin", tmp_path / "both")
    shutil.copytree(made / "txt", tmp_path / "both", dirs_exist_ok=True)
    found = model.files_of(tmp_path / "both")
    assert [file.name for file in found] == [f"{stem}.bin" for stem in STEMS]


@pytest.mark.parametrize("stem", STEMS)
@pytest.mark.parametrize("form", ["bin", "txt"])
def test_a_model_cut_anywhere_is_refused(made, tmp_path, stem, form):
    name = f"{stem}.{form}"
    size = len((made / form / name).read_bytes())
    for cut in {*range(1, 40), *range(40, size, 97), size}:
        with pytest.raises(ValueError, match="model"):
            model.read(spoilt(made, tmp_path, name, lambda data, cut=cut: data[:-cut]))


@pytest.mark.parametrize("stem", STEMS)
def test_a_binary_file_that_goes_on_after_its_end_is_refused(made, tmp_path, stem):
    folder = spoilt(made, tmp_path, f"{stem}.bin", lambda data: data + b"\0")
    with pytest.raises(ValueError, match=rf"{stem}\.bin: goes on after its end"):
        model.read(folder)


@pytest.mark.parametrize("count", [2**20, 2**40, 2**64 - 1])
@pytest.mark.parametrize("stem", STEMS)
def test_an_absurd_count_takes_neither_time_nor_memory(made, tmp_path, stem, count):
    change = lambda data: struct.pack("<Q", count) + data[8:]  # noqa: E731
    with pytest.raises(ValueError, match=rf"{stem}\.bin: is cut off, or its counts are damaged"):
        model.read(spoilt(made, tmp_path, f"{stem}.bin", change))


def test_the_length_of_a_track_is_compared_with_the_file(made, tmp_path):
    at = 8 + 8 + 3 * 8 + 3 + 8
    change = lambda data: data[:at] + struct.pack("<Q", 2**33) + data[at + 8 :]  # noqa: E731
    with pytest.raises(ValueError, match=r"points3D\.bin: is cut off, or its counts are damaged"):
        model.read(spoilt(made, tmp_path, "points3D.bin", change))


def test_files_of_two_models_are_refused(made, tmp_path):
    folder = spoilt(made, tmp_path, "points3D.txt", lambda data: data[data.index(b"\n1 ") + 1 :])
    lines = (folder / "points3D.txt").read_text().split("\n")
    (folder / "points3D.txt").write_text("\n".join(lines[1:]))
    with pytest.raises(ValueError, match=r"point 1, image \d, keypoint \d+ is in images, not in"):
        model.read(folder)


def test_a_blank_in_the_name_of_an_image_asks_for_binary_files(made, tmp_path):
    name = b"camera000001_frame000000.png"
    folder = spoilt(
        made, tmp_path, "images.txt", lambda data: data.replace(name, b"my first image.png")
    )
    with pytest.raises(ValueError, match=r"'my first image.png'.*write the model as \.bin"):
        model.read(folder)
    folder = spoilt(
        made, tmp_path / "b", "images.bin", lambda data: data.replace(name, b"my first image.png")
    )
    assert "my first image.png" in {image.name for image in model.read(folder).images.values()}


@pytest.mark.parametrize("line_end", [b"\r\n", b"\r"])
def test_text_is_read_with_any_line_end_and_a_byte_order_mark(made, tmp_path, line_end):
    for stem in STEMS:
        folder = spoilt(
            made,
            tmp_path / stem,
            f"{stem}.txt",
            lambda data: b"\xef\xbb\xbf" + data.replace(b"\n", line_end),
        )
        assert len(model.read(folder).images) == 6


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(STEMS), st.sampled_from(["bin", "txt"]), st.data())
def test_a_spoilt_model_is_read_or_refused(made, tmp_path_factory, stem, form, data):
    def change(whole):
        spoilt = bytearray(whole)
        for _ in range(data.draw(st.integers(1, 3))):
            at = data.draw(st.integers(0, len(spoilt) - 1))
            spoilt[at : at + 1] = data.draw(st.binary(max_size=9))
        return bytes(spoilt)

    folder = spoilt(made, tmp_path_factory.mktemp("spoilt"), f"{stem}.{form}", change)
    try:
        model.read(folder)
    except ValueError as error:
        assert str(folder) in str(error)


# ---- databases


def names(database):
    with closing(sqlite3.connect(database)) as opened:
        return sorted(name for (name,) in opened.execute("SELECT name FROM images"))


def test_a_database_cut_in_its_last_page_is_refused(made, tmp_path):
    """SQLite itself reads zeros there: keypoints at (0, 0), without a word."""
    whole = (made / "database.db").read_bytes()
    listed = names(made / "database.db")
    assert len(keypoints.read(made / "database.db", listed, REMEDY)) == 6
    for cut in (1, 100, 3400, 4095):
        (tmp_path / "cut.db").write_bytes(whole[:-cut])
        for read in (keypoints.read, keypoints.must_list):
            with pytest.raises(
                ValueError, match=r"cut\.db can't be read .*is cut off.*; give anoth"
            ):
                read(tmp_path / "cut.db", listed, REMEDY)


def test_a_database_that_lacks_a_page_is_refused(made, tmp_path):
    whole = (made / "database.db").read_bytes()
    (tmp_path / "cut.db").write_bytes(whole[: -2 * 4096])
    with pytest.raises(ValueError, match=r"cut\.db can't be read as a database of COLMAP"):
        keypoints.read(tmp_path / "cut.db", names(made / "database.db"), REMEDY)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("UPDATE keypoints SET rows = rows + 1", "and stores"),
        ("UPDATE keypoints SET rows = -1, cols = 4", "declares -1 x 4 numbers"),
        ("UPDATE keypoints SET rows = 'many'", "declares 'many' x 4 numbers"),
        ("UPDATE keypoints SET rows = 4611686018427387904", "x 4 numbers"),
        ("UPDATE keypoints SET data = 7", "and stores 0"),
        ("UPDATE keypoints SET data = zeroblob(16 * rows)", "has no size"),
        ("DELETE FROM keypoints", "has no keypoints of"),
    ],
)
def test_absurd_keypoints_are_refused(made, tmp_path, change, message):
    shutil.copy(made / "database.db", tmp_path / "a.db")
    with closing(sqlite3.connect(tmp_path / "a.db")) as opened, opened:
        opened.execute(change)
    with pytest.raises(ValueError, match=rf"a\.db.*{message}.*give another"):
        keypoints.read(tmp_path / "a.db", names(made / "database.db"), REMEDY)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("UPDATE cameras SET model = 99", "no camera of the image .*, or a damaged one"),
        ("UPDATE cameras SET params = zeroblob(7)", "or a damaged one"),
        ("UPDATE cameras SET width = 0", "or a damaged one"),
        ("PRAGMA foreign_keys = 0; DELETE FROM cameras", "no camera of the image"),
        ("PRAGMA foreign_keys = 0; DELETE FROM images WHERE image_id = 1", "lacks the image"),
    ],
)
def test_damaged_cameras_are_refused(made, tmp_path, change, message):
    shutil.copy(made / "database.db", tmp_path / "a.db")
    with closing(sqlite3.connect(tmp_path / "a.db")) as opened:
        opened.executescript(change)
    with pytest.raises(ValueError, match=rf"a\.db.*{message}.*give another"):
        keypoints.must_list(tmp_path / "a.db", names(made / "database.db"), REMEDY)
