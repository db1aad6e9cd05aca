"""The reader of MATLAB 5 to 7.2 finds what SciPy wrote, as SciPy reads it, and refuses damage."""

import struct
import zlib

import numpy as np
import pytest
import scipy.io
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.errors import InputError
from zoo.published.files import matlab5


def cell(*values):
    array = np.empty((1, len(values)), object)
    array[0] = values
    return array


EXAMPLE = {
    "mean": np.arange(6.0).reshape(2, 3),
    "net": {"layers": cell({"type": "conv", "w": cell(np.arange(9.0).reshape(3, 3))}, "relu")},
}


@pytest.fixture(params=[False, True], ids=["plain", "packed"])
def file(request, tmp_path):
    scipy.io.savemat(tmp_path / "a.mat", EXAMPLE, do_compression=request.param)
    return tmp_path / "a.mat"


def plain(value):
    """A value that SciPy read, as lists, dicts, texts and arrays."""
    if isinstance(value, np.ndarray) and value.dtype.names:
        structs = [{n: plain(one[n]) for n in value.dtype.names} for one in value.ravel("F")]
        return structs[0] if len(structs) == 1 else structs
    if isinstance(value, np.ndarray) and value.dtype == object:
        return [plain(one) for one in value.ravel("F")]
    if isinstance(value, np.ndarray) and value.dtype.kind == "U":
        return "".join(value.ravel())
    return value


def of_scipy(file):
    loaded = scipy.io.loadmat(file)
    return {name: plain(value) for name, value in loaded.items() if name[0] != "_"}


def test_structs_cells_texts_and_numbers_are_those_of_scipy(file):
    np.testing.assert_equal(matlab5.read(file), of_scipy(file))


@pytest.mark.parametrize("dtype", ["f8", "f4", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8"])
@pytest.mark.parametrize("shape", [(1, 1), (3, 1), (2, 3), (2, 3, 4), (5, 4, 3, 2), (0, 0)])
def test_an_array_has_the_numbers_and_axes_of_scipy(tmp_path, dtype, shape):
    numbers = np.arange(np.prod(shape)).astype(dtype).reshape(shape)
    scipy.io.savemat(tmp_path / "a.mat", {"a": numbers})
    np.testing.assert_array_equal(matlab5.read(tmp_path / "a.mat")["a"], numbers)


def test_cells_with_two_axes_have_the_order_of_matlab(tmp_path):
    cells = np.array([["a", "b"], ["c", "d"]], object)
    scipy.io.savemat(tmp_path / "a.mat", {"a": cells})
    assert matlab5.read(tmp_path / "a.mat")["a"] == ["a", "c", "b", "d"]


def test_an_array_of_structs_is_a_list(tmp_path):
    array = np.zeros((1, 2), [("x", object)])
    array["x"] = [[np.ones((1, 1)), "text"]]
    scipy.io.savemat(tmp_path / "a.mat", {"a": array})
    assert matlab5.read(tmp_path / "a.mat")["a"] == [{"x": 1}, {"x": "text"}]


@pytest.mark.parametrize("text", ["conv", "", "für", "日本"])
def test_a_text_is_read(tmp_path, text):
    scipy.io.savemat(tmp_path / "a.mat", {"a": text})
    assert matlab5.read(tmp_path / "a.mat")["a"] == text


def test_long_names_of_fields_are_read(tmp_path):
    scipy.io.savemat(tmp_path / "a.mat", {"a": {"w" * 40: 1.0}}, long_field_names=True)
    assert list(matlab5.read(tmp_path / "a.mat")["a"]) == ["w" * 40]


@pytest.mark.parametrize(
    "value", [np.ones((2, 2)) * 1j, scipy.sparse.eye(3).tocsc()], ids=["complex", "sparse"]
)
def test_other_classes_are_refused(tmp_path, value):
    scipy.io.savemat(tmp_path / "a.mat", {"a": value})
    with pytest.raises(InputError, match=r"a\.mat is damaged: a is of class"):
        matlab5.read(tmp_path / "a.mat")


@pytest.mark.parametrize("kind", [0, 8, 10, 11, 19, 200])
def test_numbers_of_an_unknown_type_are_refused(tmp_path, kind):
    file = tmp_path / "a.mat"
    scipy.io.savemat(file, EXAMPLE)
    whole = bytearray(file.read_bytes())
    place = whole.index(np.arange(9.0).reshape(3, 3).T.tobytes()) - 8
    assert whole[place] == 9  # of doubles
    whole[place] = kind
    file.write_bytes(whole)
    with pytest.raises(InputError, match=rf"a\.mat is damaged: {kind} is not a type of numbers"):
        matlab5.read(file)


def test_a_file_that_is_cut_off_is_refused(file):
    whole = file.read_bytes()
    ends = {128, 128 + 8 + struct.unpack_from("<I", whole, 132)[0]}  # whole variables
    for cut in set(range(len(whole))) - ends:
        file.write_bytes(whole[:cut])
        with pytest.raises(InputError, match=r"a\.mat is (damaged|not a \.mat file)"):
            matlab5.read(file)


def variable(contents):
    """A packed variable with these contents after its tag."""
    whole = zlib.compress(struct.pack("<II", 14, len(contents)) + contents)
    head = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<H", 0x100) + b"IM"
    return head + struct.pack("<II", 15, len(whole)) + whole


def head(kind, *shape):
    flags = struct.pack("<IIII", 6, 8, kind, 0) + struct.pack("<II", 5, 4 * len(shape))
    sizes = struct.pack(f"<{len(shape)}i", *shape) + bytes(-4 * len(shape) % 8)
    return flags + sizes + struct.pack("<HH4s", 1, 1, b"a")


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(matlab5, "LARGEST", 1 << 20)
    file = tmp_path / "a.mat"
    many = bytes(8 << 20)
    file.write_bytes(variable(head(6, 1, 1 << 20) + struct.pack("<II", 9, len(many)) + many))
    assert file.stat().st_size < 20_000
    with pytest.raises(InputError, match="has over 1048576 bytes"):
        matlab5.read(file)


@pytest.mark.parametrize(
    ("contents", "problem"),
    [
        (head(1, 1 << 30, 1 << 30), "bytes should follow"),  # a cell without elements
        (head(2, 1 << 30, 1 << 30) + struct.pack("<HHiII", 5, 4, 32, 1, 0), "have no fields"),
        (head(2, 1, 1) + struct.pack("<HHiII", 5, 4, 0, 1, 0), "0 bytes each"),
        (head(6, 5, 5) + struct.pack("<IId", 9, 8, 1.0), r"no array of shape \(5, 5\)"),
        (head(6, -1, -1) + struct.pack("<IId", 9, 8, 1.0), r"shape \(-1, -1\)"),
        (head(6, 1, 1) + struct.pack("<IIQ", 9, 7, 1), "no whole number of float64"),
        (head(16, 1, 1), "class 16"),  # a function
        (head(6, 1), r"shape \(1,\)"),
    ],
)
def test_lengths_that_do_not_fit_are_refused(tmp_path, contents, problem):
    file = tmp_path / "a.mat"
    file.write_bytes(variable(contents))
    with pytest.raises(InputError, match=problem):
        matlab5.read(file)


def test_variables_too_deep_inside_each_other_are_refused(tmp_path):
    contents = head(1, 0, 0)
    for _ in range(200):
        contents = head(1, 1, 1) + struct.pack("<II", 14, len(contents)) + contents
    file = tmp_path / "a.mat"
    file.write_bytes(variable(contents))
    with pytest.raises(InputError, match="deep inside each other"):
        matlab5.read(file)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(changes=st.lists(st.tuples(st.integers(124, 900), st.integers(0, 255)), max_size=4))
def test_a_damaged_file_is_read_or_refused(tmp_path, changes):
    file = tmp_path / "a.mat"
    scipy.io.savemat(file, EXAMPLE)
    data = bytearray(file.read_bytes())
    for place, byte in changes:
        data[place % len(data)] = byte
    file.write_bytes(data)
    try:
        matlab5.read(file)
    except InputError as error:
        assert "a.mat" in str(error)
