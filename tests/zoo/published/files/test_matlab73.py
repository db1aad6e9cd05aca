"""The reader of MATLAB 7.3, on HDF5 files written in the layout of the published file of TNet."""

import h5py
import numpy as np
import pytest
from matconvnet_files import write_matlab73

from harness.errors import InputError
from zoo.published.files import matlab73

EXAMPLE = {
    "mean": np.arange(6.0).reshape(2, 3),
    "net": {"layers": [{"type": "conv", "weights": [np.arange(24.0).reshape(1, 2, 3, 4)]}, "x"]},
}


@pytest.fixture
def file(tmp_path):
    write_matlab73(tmp_path / "a.mat", EXAMPLE)
    return tmp_path / "a.mat"


def test_values_have_the_axes_of_matlab(file):
    assert matlab73.is_matlab73(file)
    np.testing.assert_equal(matlab73.read(file), EXAMPLE)


def test_a_cell_that_is_in_two_cells_is_read_once(file):
    with h5py.File(file, "a") as opened:
        place = opened["net/layers"][0, 0]
        for name in ("a", "b"):
            opened[name] = np.array([[place]], h5py.ref_dtype)
            opened[name].attrs["MATLAB_class"] = np.bytes_("cell")
    found = matlab73.read(file)
    assert found["a"][0] is found["b"][0]


def test_empty_values_are_empty(file):
    with h5py.File(file, "a") as opened:
        for kind in ("double", "char", "cell"):
            opened[kind] = np.array([0, 0], np.uint64)  # the shape, in place of numbers
            opened[kind].attrs["MATLAB_class"] = np.bytes_(kind)
            opened[kind].attrs["MATLAB_empty"] = np.uint8(1)
    found = matlab73.read(file)
    assert found["double"].shape == (0, 0) and found["char"] == "" and found["cell"] == []


@pytest.mark.parametrize("link", [h5py.SoftLink("/mean"), h5py.ExternalLink("b.h5", "/x")])
def test_a_link_is_refused(file, link):
    with h5py.File(file, "a") as opened:
        opened["other"] = link
    with pytest.raises(InputError, match=r"a\.mat can't be read .* 'other', a link"):
        matlab73.read(file)


def test_numbers_in_another_file_are_refused(file):
    with h5py.File(file, "a") as opened:
        opened.create_dataset("other", (4,), "f8", external=[(file.parent / "b", 0, 32)])
    with pytest.raises(InputError, match="/other is not an array in this file"):
        matlab73.read(file)


def test_a_view_of_another_array_is_refused(file):
    with h5py.File(file, "a") as opened:
        layout = h5py.VirtualLayout((3, 2), "f8")
        layout[:] = h5py.VirtualSource(opened["mean"])
        opened.create_virtual_dataset("other", layout)
    with pytest.raises(InputError, match="/other is not an array in this file"):
        matlab73.read(file)


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_a_huge_array_in_few_bytes_is_refused(file, compression):
    with h5py.File(file, "a") as opened:
        shape, chunks = (1 << 20, 1 << 20), (1 << 10, 1 << 10)
        opened.create_dataset("other", shape, "f8", chunks=chunks, compression=compression)
    with pytest.raises(InputError, match="/other and the arrays before it have over"):
        matlab73.read(file)


def test_a_cell_that_contains_itself_is_refused(file):
    with h5py.File(file, "a") as opened:
        cell = opened.create_dataset("other", (1, 1), h5py.ref_dtype)
        cell.attrs["MATLAB_class"] = np.bytes_("cell")
        cell[0, 0] = cell.ref
    with pytest.raises(InputError, match="/other is more than 30 deep"):
        matlab73.read(file)


def test_an_empty_reference_is_refused(file):
    with h5py.File(file, "a") as opened:
        cell = opened.create_dataset("other", (1, 1), h5py.ref_dtype)
        cell.attrs["MATLAB_class"] = np.bytes_("cell")
    with pytest.raises(InputError, match="/other refers to nothing"):
        matlab73.read(file)


@pytest.mark.parametrize(
    "value", [np.bytes_("text"), np.array(["a"], h5py.string_dtype()), np.zeros(2, "f4,i4")]
)
def test_values_that_are_no_numbers_are_refused(file, value):
    with h5py.File(file, "a") as opened:
        opened["other"] = value
    with pytest.raises(InputError, match="/other is a value without class of"):
        matlab73.read(file)


def test_a_file_that_is_cut_off_is_refused(file):
    whole = file.read_bytes()
    for cut in range(520, len(whole), 61):
        file.write_bytes(whole[:cut])
        with pytest.raises(InputError, match=r"a\.mat is damaged, or not HDF5"):
            matlab73.read(file)
