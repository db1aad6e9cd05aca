"""Checks that a .mat file is whole: SciPy accepts one whose last variable is cut off."""

import struct
from pathlib import Path

HEAD = 128
VARIABLE, PACKED = 14, 15  # types of what a file of MATLAB 5 to 7.2 may hold
SIZES = (8, 4, 4, 2, 2, 1)  # bytes of a number of MATLAB 4, by its type


def check(file: Path) -> None:
    """See whether a file ends where its last variable does, by the length that each begins with.

    A cut between two variables can't be seen. Of MATLAB 7.3, which is HDF5, only the mark is looked
    at.

    Raises:
        ValueError: if it is cut off, goes on after its end, or is no .mat file; doesn't name it.
    """
    size = file.stat().st_size
    with file.open("rb") as stream:
        head = stream.read(HEAD)
        order = {b"IM": "<", b"MI": ">"}.get(head[126:])
        of_matlab_4 = bool(head) and 0 in head[:4]  # it has no mark of its own
        if not of_matlab_4 and order is None:
            raise ValueError("it is no .mat file, or cut off")
        if order and not of_matlab_4 and struct.unpack(f"{order}H", head[124:126])[0] != 0x0100:
            return
        begin = end = 0 if of_matlab_4 else HEAD
        while end < size:
            stream.seek(end)
            end += (
                _length_in_matlab_4(stream.read(20))
                if of_matlab_4
                else _length(stream.read(8), order or "<")
            )
    if end != size or end == begin:
        raise ValueError(f"it is cut off: it has {size} bytes, and its last variable ends at {end}")


def _length(tag: bytes, order: str) -> int:
    """Bytes of a variable, its tag included."""
    if len(tag) < 8:
        raise ValueError("it is cut off, or goes on after its last variable")
    kind, length = struct.unpack(f"{order}II", tag)
    if kind not in (VARIABLE, PACKED):
        raise ValueError(f"it is damaged, or goes on after its last variable (type {kind})")
    return 8 + int(length)


def _length_in_matlab_4(head: bytes) -> int:
    """Bytes of a variable, its head included."""
    if len(head) < 20:
        raise ValueError("it is cut off, or goes on after its last variable")
    for order in "<>":
        kind, rows, columns, has_imaginary, name = struct.unpack(f"{order}5i", head)
        if (
            not 0 <= kind < 5000
            or min(rows, columns) < 0
            or has_imaginary not in (0, 1)
            or name < 1
        ):
            continue
        reserved, number, form = kind // 100 % 10, kind // 10 % 10, kind % 10
        if reserved == 0 and number < len(SIZES) and form <= 2:
            return 20 + name + SIZES[number] * rows * columns * (1 + has_imaginary)
    raise ValueError("it is no .mat file, or damaged")
