"""Whether .mat files are whole."""

import struct
import zlib

import numpy as np
import pytest
import scipy.io

from harness.files import matlab


@pytest.fixture(params=[("5", False), ("5", True), ("4", False)], ids=["5", "5 packed", "4"])
def file(request, tmp_path):
    form, packed = request.param
    arrays = {"a": np.arange(12.0).reshape(3, 4), "b": np.arange(5, dtype=np.int16)}
    scipy.io.savemat(tmp_path / "a.mat", arrays, format=form, do_compression=packed)
    return tmp_path / "a.mat"


def test_a_whole_file_passes(file):
    matlab.check(file)


@pytest.mark.parametrize("cut", [1, 2, 7, 9, 20])
def test_a_file_cut_off_is_refused(file, cut):
    file.write_bytes(file.read_bytes()[:-cut])
    with pytest.raises(ValueError, match="it is cut off"):
        matlab.check(file)


@pytest.mark.parametrize("more", [b"\0", bytes(8), bytes(24), b"more of something else"])
def test_a_file_that_goes_on_is_refused(file, more):
    file.write_bytes(file.read_bytes() + more)
    with pytest.raises(ValueError, match=r"cut off|goes on|damaged"):
        matlab.check(file)


@pytest.mark.parametrize("data", [b"", b"sorry, moved" * 99, b"\0" * 19])
def test_what_is_no_mat_file_is_refused(tmp_path, data):
    (tmp_path / "a.mat").write_bytes(data)
    with pytest.raises(ValueError, match=r"no \.mat file|cut off"):
        matlab.check(tmp_path / "a.mat")


def test_a_variable_of_numbers_passes(file):
    for name in ("a", "b", "none"):
        matlab.must_be_numbers(file, name)


@pytest.mark.parametrize("kind", [0, 8, 11, 14, 15, 19, 200, 0xFFFF])
@pytest.mark.parametrize("packed", [False, True])
def test_numbers_of_an_unknown_type_are_refused_before_scipy_ends_the_process(
    tmp_path, kind, packed
):
    file = tmp_path / "a.mat"
    scipy.io.savemat(file, {"labels": np.arange(9.0)})
    whole = file.read_bytes()
    at = whole.index(b"labels\0\0") + 8
    assert whole[at] == 9  # of doubles
    spoilt = whole[:at] + kind.to_bytes(4, "little") + whole[at + 4 :]
    if packed:
        inner = zlib.compress(spoilt[128:])
        spoilt = whole[:128] + struct.pack("<II", 15, len(inner)) + inner
    file.write_bytes(spoilt)
    matlab.check(file)
    with pytest.raises(ValueError, match=f"labels holds type {kind}, .* not a type of numbers"):
        matlab.must_be_numbers(file, "labels")
    matlab.must_be_numbers(file, "others")


def test_numbers_that_go_on_after_their_variable_are_refused(tmp_path):
    file = tmp_path / "a.mat"
    scipy.io.savemat(file, {"labels": np.arange(9.0)})
    whole = file.read_bytes()
    at = whole.index(b"labels\0\0") + 12
    file.write_bytes(whole[:at] + b"\xff" + whole[at + 1 :])
    with pytest.raises(ValueError, match="go on after the end of their variable"):
        matlab.must_be_numbers(file, "labels")
    with pytest.raises(ValueError, match="is not an array of numbers"):
        scipy.io.savemat(file, {"labels": {"a": 1}})
        matlab.must_be_numbers(file, "labels")
