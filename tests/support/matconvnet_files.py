"""Writes .mat files with structs, cells, texts and arrays, in both forms of MATLAB, for tests."""

from pathlib import Path

import h5py
import numpy as np
import scipy.io

HEADER = b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\0\x02IM"


def write_matlab5(file: Path, variables: dict[str, object]) -> None:
    """Write a file of MATLAB 5; lists become cells with one row."""
    scipy.io.savemat(file, {name: _cells(value) for name, value in variables.items()})


def write_matlab73(file: Path, variables: dict[str, object]) -> None:
    """Write a file of MATLAB 7.3: axes in reverse order, cells as references into #refs#."""
    with h5py.File(file, "w", userblock_size=512) as opened:
        refs = opened.create_group("#refs#")
        for name, value in variables.items():
            _write(opened, name, value, refs)
    with file.open("r+b") as stream:
        stream.write(HEADER)


def _cells(value: object) -> object:
    if isinstance(value, dict):
        return {name: _cells(part) for name, part in value.items()}
    if isinstance(value, list):
        cell = np.empty((1, len(value)), object)
        cell[0] = [_cells(part) for part in value]
        return cell
    return value


def _write(group: h5py.Group, name: str, value: object, refs: h5py.Group) -> None:
    if isinstance(value, dict):
        kind, made = "struct", group.create_group(name)
        for field, part in value.items():
            _write(made, field, part, refs)
    elif isinstance(value, list):
        places = []
        for part in value:
            place = str(len(refs))
            _write(refs, place, part, refs)
            places.append([refs[place].ref])
        kind, made = "cell", group.create_dataset(name, data=np.array(places, h5py.ref_dtype))
    elif isinstance(value, str):
        codes = np.array([[ord(letter)] for letter in value], np.uint16)
        kind, made = "char", group.create_dataset(name, data=codes)
    else:
        array = np.atleast_2d(np.asarray(value))
        kind = {"f4": "single", "f8": "double"}[array.dtype.str[1:]]
        made = group.create_dataset(name, data=array.T)
    made.attrs["MATLAB_class"] = np.bytes_(kind)
