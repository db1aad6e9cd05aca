"""Reader of .mat files of MATLAB 7.3, which are HDF5: structs, cells, texts and arrays of numbers.

HDF5 can point to other files, and can describe huge arrays in few bytes: the first is refused, the
second has a limit.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from harness import extras
from harness.errors import InputError, one_line

LARGEST = 1 << 28  # bytes of all arrays
DEPTH = 30  # of values inside values
SIGNATURE = 512, b"\x89HDF\r\n\x1a\n"  # place, bytes; MATLAB's header is before it


def is_matlab73(file: Path) -> bool:
    """Whether a file is HDF5 with a header of MATLAB."""
    place, signature = SIGNATURE
    with file.open("rb") as stream:
        stream.seek(place)
        return stream.read(len(signature)) == signature


def read(file: Path) -> dict[str, object]:
    """The variables of a file by name: dict (a struct), list (a cell), str or NumPy array.

    HDF5 has the axes in reverse order: arrays and cells are returned in MATLAB's.

    Raises:
        ExtraMissingError: if h5py is not installed.
        InputError: if the file is damaged, or contains another kind of variable; names the file.
    """
    with extras.needed(f"reading {file}"):
        import h5py

    try:
        with h5py.File(file, "r") as opened:
            reader = _Reader(file, opened)
            return {name: reader.member(opened, name, 0) for name in opened if name[0] != "#"}
    except InputError:
        raise
    except Exception as error:  # its type depends on the damage
        raise InputError(
            f"{file} is damaged, or not HDF5: {type(error).__name__}: {one_line(error)}"
        ) from error


@dataclass
class _Reader:
    file: Path
    opened: Any  # h5py.File
    left: int = LARGEST
    known: dict[str, object] = field(default_factory=dict)  # values of references, by their place

    def wrong(self, node: Any, problem: str) -> InputError:
        return InputError(f"{self.file} can't be read as a .mat file: {node.name} {problem}")

    def member(self, group: Any, name: str, depth: int) -> object:
        import h5py

        if not isinstance(group.get(name, getlink=True), h5py.HardLink):
            raise self.wrong(group, f"has {name!r}, a link to another place")
        return self.value(group[name], depth)

    def value(self, node: Any, depth: int) -> object:
        import h5py

        if depth > DEPTH:
            raise self.wrong(node, f"is more than {DEPTH} deep inside other values")
        if isinstance(node, h5py.Group):
            return {name: self.member(node, name, depth + 1) for name in node}
        kind = node.attrs.get("MATLAB_class", b"").decode()
        if not isinstance(node, h5py.Dataset) or node.is_virtual or node.external:
            raise self.wrong(node, "is not an array in this file")
        self.left -= node.size * node.dtype.itemsize
        if self.left < 0:
            raise self.wrong(node, f"and the arrays before it have over {LARGEST} bytes")
        if node.attrs.get("MATLAB_empty", 0):
            return [] if kind == "cell" else "" if kind == "char" else np.empty((0, 0))
        if kind == "cell" and node.dtype == h5py.ref_dtype:
            return [self.referred(node, place, depth) for place in node[()].ravel()]
        if kind == "char" and node.dtype.kind == "u":
            return "".join(map(chr, node[()].ravel()))
        if kind == "struct" or node.dtype.kind not in "iuf":
            raise self.wrong(node, f"is a {kind or 'value without class'} of {node.dtype}")
        return node[()].T

    def referred(self, cell: Any, reference: Any, depth: int) -> object:
        if not reference:
            raise self.wrong(cell, "refers to nothing")
        node = self.opened[reference]
        if node.name not in self.known:  # a value that is in many cells is read once
            self.known[node.name] = self.value(node, depth + 1)
        return self.known[node.name]
