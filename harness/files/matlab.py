"""Checks .mat files for cut ends and unknown types, which SciPy does not detect."""

import struct
import zlib
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import IO, Any

from harness.errors import InputError

HEAD = 128  # bytes of the header
VARIABLE, PACKED = 14, 15  # types of elements at the top of a file of MATLAB 5 to 7.2
NUMBERS = frozenset({1, 2, 3, 4, 5, 6, 7, 9, 12, 13, 16, 17, 18})  # types of numbers
ARRAYS = range(4, 16)  # classes of arrays that contain no other arrays: texts and arrays of numbers
PIECE = 1 << 18  # bytes read at a time
SIZES = (8, 4, 4, 2, 2, 1)  # bytes of a number in MATLAB 4, by type


def check(file: Path) -> None:
    """Refuse a file that does not end with its last variable, by the lengths of the variables.

    A cut between two variables can't be detected. Files of MATLAB 7.3, which are HDF5, are only
    recognised by their header.

    Raises:
        InputError: if the file is cut off, goes on after its end, or is not a .mat file; the
            message does not name the file.
    """
    size = file.stat().st_size
    with file.open("rb") as stream:
        head = stream.read(HEAD)
        order = {b"IM": "<", b"MI": ">"}.get(head[126:])
        of_matlab_4 = bool(head) and 0 in head[:4]  # MATLAB 4 has no signature
        if not of_matlab_4 and order is None:
            raise InputError("it is not a .mat file, or it is cut off")
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
        raise InputError(f"it is cut off: it has {size} bytes, and its last variable ends at {end}")


def must_be_numbers(file: Path, name: str) -> None:
    """Refuse a variable that is not an array of numbers, or has elements of an unknown type.

    An unknown type makes SciPy crash. Files of MATLAB 4 pass: `check` has checked their types.

    Args:
        file: a file that `check` accepted.
        name: of the variable; it may be missing.

    Raises:
        InputError: if the variable is refused; the message does not name the file.
    """
    size = file.stat().st_size
    with file.open("rb") as stream:
        head = stream.read(HEAD)
        order = {b"IM": "<", b"MI": ">"}.get(head[126:])
        if order is None or 0 in head[:4]:
            return
        while stream.tell() < size:
            kind, length = struct.unpack(f"{order}II", stream.read(8))
            end = stream.tell() + length
            contents = _Contents(stream, length, zlib.decompressobj() if kind == PACKED else None)
            try:
                if kind == PACKED:
                    contents.read(8)  # the tag of the variable
                _must_be_numbers(contents, name, order)
            except zlib.error as error:
                raise InputError(f"it is damaged ({error})") from error
            stream.seek(end)


@dataclass
class _Contents:
    """The bytes of a variable, decompressed while they are read."""

    stream: IO[bytes]
    left: int  # bytes of the variable not yet read from the file
    packed: Any = None  # its zlib decompressor
    held: bytes = field(default=b"", init=False)

    def read(self, n: int) -> bytes:
        """The next n bytes; fewer only at the end."""
        while len(self.held) < n and (piece := self._piece()):
            self.held += piece
        data, self.held = self.held[:n], self.held[n:]
        return data

    def skip(self, n: int) -> None:
        """Skip n bytes."""
        while n > 0 and (piece := self.read(min(n, PIECE))):
            n -= len(piece)
        if n > 0:
            raise InputError("it is damaged: numbers go on after the end of their variable")

    def _piece(self) -> bytes:
        rest = self.packed.unconsumed_tail if self.packed else b""
        if not rest:
            rest = self.stream.read(min(self.left, PIECE))
            self.left -= len(rest)
        return self.packed.decompress(rest, PIECE) if self.packed else rest


def _must_be_numbers(contents: _Contents, name: str, order: str) -> None:
    array_class = -1
    for place in count():  # flags, sizes, name, then numbers
        tag = contents.read(8)
        if len(tag) < 8:
            return
        kind, length = struct.unpack(f"{order}II", tag)
        inside = kind >> 16  # up to 4 bytes of data can be in the tag itself
        kind, length = (kind & 0xFFFF, inside) if inside else (kind, length)
        if kind not in NUMBERS:
            problem = f"holds type {kind}, which is not a type of numbers"
            raise InputError(f"{name} {problem}: it is damaged, or not a plain array")
        known = tag[4 : 4 + length] if inside else b""
        if place in (0, 2) and not inside:
            known = contents.read(min(length, PIECE))
        if not inside:
            contents.skip(length - len(known))
            contents.read(-length % 8)  # elements start at multiples of 8 bytes
        if place == 0:
            array_class = struct.unpack(f"{order}I", known[:4].ljust(4, b"\0"))[0] & 0xFF
        if place == 2 and known != name.encode():
            return
        if place == 2 and array_class not in ARRAYS:
            raise InputError(f"{name} is not an array of numbers")


def _length(tag: bytes, order: str) -> int:
    """Number of bytes of a variable, with its tag."""
    if len(tag) < 8:
        raise InputError("it is cut off, or goes on after its last variable")
    kind, length = struct.unpack(f"{order}II", tag)
    if kind not in (VARIABLE, PACKED):
        raise InputError(f"it is damaged, or goes on after its last variable (type {kind})")
    return 8 + int(length)


def _length_in_matlab_4(head: bytes) -> int:
    """Number of bytes of a variable of MATLAB 4, with its header."""
    if len(head) < 20:
        raise InputError("it is cut off, or goes on after its last variable")
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
    raise InputError("it is not a .mat file, or it is damaged")
