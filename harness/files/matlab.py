"""Checks that .mat files are whole and sound: SciPy misses cut ends and unknown types."""

import struct
import zlib
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import IO, Any

from harness.errors import InputError

HEAD = 128
VARIABLE, PACKED = 14, 15  # types of what a file of MATLAB 5 to 7.2 may hold
NUMBERS = frozenset({1, 2, 3, 4, 5, 6, 7, 9, 12, 13, 16, 17, 18})  # types that hold numbers
ARRAYS = range(4, 16)  # classes of variables that hold no variables: texts and arrays of numbers
PIECE = 1 << 18
SIZES = (8, 4, 4, 2, 2, 1)  # bytes of a number of MATLAB 4, by its type


def check(file: Path) -> None:
    """See whether a file ends where its last variable does, by the length that each begins with.

    A cut between two variables can't be seen. Of MATLAB 7.3, which is HDF5, only the mark is looked
    at.

    Raises:
        InputError: if it is cut off, goes on after its end, or is no .mat file; doesn't name it.
    """
    size = file.stat().st_size
    with file.open("rb") as stream:
        head = stream.read(HEAD)
        order = {b"IM": "<", b"MI": ">"}.get(head[126:])
        of_matlab_4 = bool(head) and 0 in head[:4]  # it has no mark of its own
        if not of_matlab_4 and order is None:
            raise InputError("it is no .mat file, or cut off")
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
    """See whether a variable is an array of numbers, all of types that there are.

    SciPy ends the process where it meets a type that it does not know. Files of MATLAB 4, where
    `check` has looked at the types, pass.

    Args:
        file: for which `check` has passed.
        name: of the variable, which may be missing.

    Raises:
        InputError: if it is not; doesn't name the file.
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
    """What a variable holds, unpacked as far as it is read."""

    stream: IO[bytes]
    left: int  # bytes of the file
    packed: Any = None  # what unpacks it
    held: bytes = field(default=b"", init=False)

    def read(self, n: int) -> bytes:
        """The next bytes; fewer only at the end."""
        while len(self.held) < n and (piece := self._piece()):
            self.held += piece
        found, self.held = self.held[:n], self.held[n:]
        return found

    def skip(self, n: int) -> None:
        """Pass over bytes."""
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
    of = -1
    for place in count():  # flags, sizes, name, then numbers
        tag = contents.read(8)
        if len(tag) < 8:
            return
        kind, length = struct.unpack(f"{order}II", tag)
        inside = kind >> 16  # up to 4 bytes may stand in the tag
        kind, length = (kind & 0xFFFF, inside) if inside else (kind, length)
        if kind not in NUMBERS:
            what = f"holds type {kind}, which is none of numbers"
            raise InputError(f"{name} {what}: it is damaged, or no plain array")
        known = tag[4 : 4 + length] if inside else b""
        if place in (0, 2) and not inside:
            known = contents.read(min(length, PIECE))
        if not inside:
            contents.skip(length - len(known))
            contents.read(-length % 8)  # elements begin at multiples of 8
        if place == 0:
            of = struct.unpack(f"{order}I", known[:4].ljust(4, b"\0"))[0] & 0xFF
        if place == 2 and known != name.encode():
            return
        if place == 2 and of not in ARRAYS:
            raise InputError(f"{name} is no array of numbers")


def _length(tag: bytes, order: str) -> int:
    """Bytes of a variable, its tag included."""
    if len(tag) < 8:
        raise InputError("it is cut off, or goes on after its last variable")
    kind, length = struct.unpack(f"{order}II", tag)
    if kind not in (VARIABLE, PACKED):
        raise InputError(f"it is damaged, or goes on after its last variable (type {kind})")
    return 8 + int(length)


def _length_in_matlab_4(head: bytes) -> int:
    """Bytes of a variable, its head included."""
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
    raise InputError("it is no .mat file, or damaged")
