import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from protocols.eth import files

rows = st.integers(0, 20)
some = settings(max_examples=40, deadline=None)  # files are written: disks are slow at times
numbers = st.floats(-1e6, 1e6, width=32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


def written(folder, data, name="a.png.bin"):
    file = folder / name
    file.write_bytes(data)
    return file


@some
@given(st.data())
def test_keypoints_come_back_as_they_were_written(folder, data):
    table = data.draw(hnp.arrays(np.float32, (data.draw(rows), 4), elements=numbers))
    table[:, 2] = np.abs(table[:, 2]) + 0.5
    table[:, 3] %= 6
    files.write_keypoints(folder / "k.bin", table)
    again = files.read_keypoints(folder / "k.bin")
    assert again.dtype == np.float32
    np.testing.assert_array_equal(again, table)


@some
@given(st.data())
def test_descriptors_come_back_as_they_were_written(folder, data):
    shape = data.draw(rows), data.draw(st.integers(1, 9))
    table = data.draw(hnp.arrays(np.float32, shape, elements=numbers))
    files.write_descriptors(folder / "d.bin", table)
    np.testing.assert_array_equal(files.read_descriptors(folder / "d.bin"), table)


@some
@given(st.data())
def test_matches_come_back_as_they_were_written(folder, data):
    table = data.draw(hnp.arrays(np.uint32, (data.draw(rows), 2)))
    files.write_matches(folder / "m.bin", table)
    again = files.read_matches(folder / "m.bin")
    assert again.dtype == np.uint32
    np.testing.assert_array_equal(again, table)


@some
@given(hnp.arrays(np.intp, rows, elements=st.integers(0, 2**32 - 1)))
def test_points_come_back_as_they_were_written(folder, points):
    files.write_points(folder / "p.bin", points)
    np.testing.assert_array_equal(files.read_points(folder / "p.bin"), points)


def test_the_bytes_are_those_of_the_official_layout(folder):
    files.write_keypoints(folder / "k.bin", np.array([[1, 2, 3, 4]], np.float32))
    assert (folder / "k.bin").read_bytes() == struct.pack("<ii4f", 1, 4, 1, 2, 3, 4)
    files.write_matches(folder / "m.bin", np.array([[7, 2**32 - 1]], np.uint32))
    assert (folder / "m.bin").read_bytes() == struct.pack("<ii2I", 1, 2, 7, 2**32 - 1)


def test_no_rows_are_allowed(folder):
    for columns, read in (
        (4, files.read_keypoints), (80, files.read_descriptors), (2, files.read_matches),
    ):  # fmt: skip
        found = read(written(folder, struct.pack("<ii", 0, columns)))
        assert found.shape == (0, columns)


def test_what_was_read_may_be_changed(folder):
    files.write_keypoints(folder / "k.bin", np.ones((2, 4), np.float32))
    files.read_keypoints(folder / "k.bin")[0] = 0


whole = struct.pack("<ii4f", 1, 4, 1, 2, 3, 4)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "has 0 bytes, its head alone has 8"),
        (whole[:7], "has 7 bytes"),
        (whole[:-1], r"is cut off: 1 x 4 numbers make 24 bytes, it has 23; write it again"),
        (whole + b"\0", "goes on after its end"),
        (struct.pack(">ii4f", 1, 4, 1, 2, 3, 4), "big-endian"),
        (struct.pack("<ii6f", 1, 6, *range(6)), "1 rows of 6 columns; 4 columns are wanted"),
        (struct.pack("<ii", -1, 4), "-1 rows"),
        (struct.pack("<ii4f", 1, 4, 1, np.nan, 3, 4), r"keypoint 0 is \[1.0, nan, 3.0, 4.0\]"),
        (struct.pack("<ii4f", 1, 4, 1, 2, 0, 4), "a scale above 0"),
    ],
)
def test_a_bad_file_is_refused_by_name_with_a_remedy(folder, data, message):
    with pytest.raises(ValueError, match=rf"a\.png\.bin.*{message}"):
        files.read_keypoints(written(folder, data))


def test_a_missing_file_is_named(folder):
    with pytest.raises(ValueError, match=r"b\.png\.bin is missing: add it, or take its image out"):
        files.read_matches(folder / "b.png.bin")


def test_descriptors_that_are_not_finite_are_refused(folder):
    with pytest.raises(ValueError, match="descriptor 1 is not finite"):
        files.read_descriptors(written(folder, struct.pack("<ii2f", 2, 1, 0, np.inf)))


@some
@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(folder, data):
    for read in (files.read_keypoints, files.read_descriptors, files.read_matches):
        try:
            assert read(written(folder, data)).nbytes == len(data) - 8
        except ValueError as error:
            assert "a.png.bin" in str(error)
