"""Whether .mat files are whole."""

import numpy as np
import pytest
import scipy.io

from harness import matlab


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
