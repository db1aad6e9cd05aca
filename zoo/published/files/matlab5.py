"""Reader of .mat files of MATLAB 5 to 7.2: structs, cells, texts and arrays of numbers.

SciPy reads these files, too, but an unknown type of numbers inside a struct makes it crash, and
`harness.files.matlab` can only check variables that are arrays. Here, every length is checked
against the bytes that are left. Functions, objects and sparse arrays are refused.

The format is that of MathWorks, MAT-File Format.
"""

import math
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from harness.errors import InputError

HEAD = 128  # bytes of the header
VARIABLE, PACKED = 14, 15  # types of elements that contain others
NUMBERS = {
    1: "i1",
    2: "u1",
    3: "i2",
    4: "u2",
    5: "i4",
    6: "u4",
    7: "f4",
    9: "f8",
    12: "i8",
    13: "u8",
}
CELL, STRUCT, TEXT = 1, 2, 4  # classes of variables
OF_NUMBERS = range(6, 16)
COMPLEX = 0x800  # flag
LARGEST = 1 << 28  # bytes of all variables, decompressed
DEPTH = 30  # of variables inside variables


def read(file: Path) -> dict[str, object]:
    """The variables of a file by name: dict (a struct), list (a cell), str or NumPy array.

    A struct array, unless it is 1x1, is a list of dicts. Lists have MATLAB's order of elements.
    Arrays have MATLAB's axes, at least two, and the type of numbers in which they are stored.

    Raises:
        InputError: if the file is damaged, or contains another kind of variable; names the file.
    """
    data = file.read_bytes()
    order = {b"IM": "<", b"MI": ">"}.get(data[126:HEAD])
    if order is None or struct.unpack_from(f"{order}H", data, 124)[0] != 0x0100:
        raise InputError(f"{file} is not a .mat file of MATLAB 5 to 7.2")
    top, left, found = _Bytes(file, data, HEAD, order, ""), LARGEST, dict[str, object]()
    while top.at < len(data):
        kind, contents = top.element(aligned=False)
        inner = _Bytes(file, contents, 0, order, f"variable {len(found) + 1}, ")
        if kind == PACKED:
            unpacking = zlib.decompressobj()
            try:
                inner.data = unpacking.decompress(contents, left)
            except zlib.error as error:
                raise top.wrong(f"a variable can't be decompressed: {error}") from error
            if not unpacking.eof:
                raise top.wrong(f"a variable is cut off, or the file has over {LARGEST} bytes")
            kind, inner.data = inner.element()
            inner.at = 0
        left -= len(inner.data)
        if kind != VARIABLE or left < 0:
            raise top.wrong(f"type {kind} is not a variable, or the file is too large")
        name, value = inner.variable(0)
        found[name] = value
    return found


@dataclass
class _Bytes:
    file: Path
    data: bytes
    at: int  # the next byte
    order: str  # of the bytes of a number: "<" or ">"
    place: str  # of the data in the file, for messages

    def wrong(self, problem: str) -> InputError:
        return InputError(f"{self.file} is damaged: {problem} ({self.place}byte {self.at})")

    def take(self, count: int) -> bytes:
        if count > len(self.data) - self.at:
            left = len(self.data) - self.at
            raise self.wrong(f"{count} bytes should follow, and {left} do")
        self.at += count
        return self.data[self.at - count : self.at]

    def element(self, *, aligned: bool = True) -> tuple[int, bytes]:
        """Type and contents of the next element; elements inside a variable are aligned."""
        tag = self.take(8)
        kind, length = struct.unpack(f"{self.order}II", tag)
        if kind >> 16:  # up to 4 bytes are in the tag itself
            if kind >> 16 > 4:
                raise self.wrong(f"{kind >> 16} bytes should be in 4")
            return kind & 0xFFFF, tag[4 : 4 + (kind >> 16)]
        contents = self.take(length)
        if aligned:
            self.take(min(-length % 8, len(self.data) - self.at))
        return kind, contents

    def numbers(self) -> np.ndarray:
        kind, contents = self.element()
        if kind not in NUMBERS:
            raise self.wrong(f"{kind} is not a type of numbers")
        dtype = np.dtype(self.order + NUMBERS[kind])
        if len(contents) % dtype.itemsize:
            raise self.wrong(f"{len(contents)} bytes are no whole number of {dtype}")
        return np.frombuffer(contents, dtype)

    def inner(self, depth: int) -> object:
        """A variable inside this one."""
        kind, contents = self.element()
        if kind != VARIABLE:
            raise self.wrong(f"type {kind} is not a variable")
        if not contents:  # MATLAB's []
            return np.empty((0, 0))
        _, value = _Bytes(self.file, contents, 0, self.order, self.place).variable(depth)
        return value

    def variable(self, depth: int) -> tuple[str, object]:
        """Name and value of the variable that these bytes are."""
        if depth > DEPTH:
            raise self.wrong(f"variables are more than {DEPTH} deep inside each other")
        flags, shape = self.numbers(), tuple(int(n) for n in self.numbers())
        name = self.element()[1].decode("latin-1")
        if len(flags) != 2 or not 2 <= len(shape) <= 32 or min(shape) < 0:
            raise self.wrong(f"{name or 'a variable'} has {len(flags)} flags and shape {shape}")
        kind, count = int(flags[0]) & 0xFF, math.prod(shape)
        if kind == STRUCT:
            structs = self.structs(count, depth)
            return name, structs[0] if count == 1 else structs
        if kind == CELL:
            return name, [self.inner(depth + 1) for _ in range(count)]
        if kind == TEXT:
            return name, self.text()
        if kind not in OF_NUMBERS or int(flags[0]) & COMPLEX:
            raise self.wrong(f"{name or 'a variable'} is of class {kind}, which is not supported")
        numbers = self.numbers()
        if len(numbers) != count:
            raise self.wrong(f"{len(numbers)} numbers are no array of shape {shape}")
        return name, numbers.reshape(shape, order="F")

    def text(self) -> str:
        kind, contents = self.element()
        byte_order = {"<": "le", ">": "be"}[self.order]
        coding = {1: "latin-1", 2: "latin-1", 4: f"utf-16-{byte_order}", 16: "utf-8"}.get(kind)
        if coding is None:
            raise self.wrong(f"{kind} is not a type of texts")
        try:
            return contents.decode(coding)
        except UnicodeDecodeError as error:
            raise self.wrong(f"a text can't be read: {error}") from error

    def structs(self, count: int, depth: int) -> list[dict[str, object]]:
        lengths, names = self.numbers(), self.element()[1]
        length = int(lengths[0]) if len(lengths) == 1 else 0
        if length < 1 or len(names) % length:
            raise self.wrong(f"names of fields have {length} bytes each, {len(names)} in all")
        fields = [
            names[i : i + length].split(b"\0")[0].decode("latin-1")
            for i in range(0, len(names), length)
        ]
        if not fields and count > 1:
            raise self.wrong(f"{count} structs have no fields")  # no bytes would bound their number
        return [{field: self.inner(depth + 1) for field in fields} for _ in range(count)]
