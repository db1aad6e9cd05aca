"""Reader of Torch7's binary files (`.t7`), as Lua's `torch.save` writes them on 64-bit Linux.

The file is a tree of tagged values: numbers, texts, booleans, tables and objects of classes.
Tensors and storages become NumPy arrays. An object of another class is returned as a dict: "kind"
is the name of its class, "fields" its table. Nothing is executed: functions are refused. Every
count is checked against the bytes that are left, so a damaged file can't ask for much more memory
than it has bytes.

The format is that of File.lua, generic/Tensor.c and generic/Storage.c of torch/torch7.
"""

import math
import struct
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from harness.errors import InputError

NIL, NUMBER, TEXT, TABLE, OBJECT, BOOLEAN = range(6)  # tags; larger ones are of functions
DEPTH = 100  # of values inside values: a network inside a network takes three
AXES = 8  # of a tensor
EXACT = 2**53  # below it, float64 has every whole number
KINDS = {  # numbers of a tensor or storage, by the first part of its class
    "Byte": "u1",
    "Char": "i1",
    "Short": "<i2",
    "Int": "<i4",
    "Long": "<i8",
    "Float": "<f4",
    "Double": "<f8",
    "Cuda": "<f4",
}


def read(file: Path) -> object:
    """The value in a file: None, bool, int, float, str, NumPy array, or dict: a table or an object.

    Whole numbers below 2^53 are of type int.

    Raises:
        InputError: if the file is damaged, or contains more than data; gives the file and the byte.
    """
    reader = _Reader(file, file.read_bytes())
    value = reader.value(0)
    if reader.at != len(reader.data):
        raise reader.wrong("the file goes on after its value")
    return value


@dataclass
class _Reader:
    file: Path
    data: bytes
    at: int = 0  # the next byte
    known: dict[int, object] = field(default_factory=dict)  # tables and objects by their index

    def wrong(self, problem: str) -> InputError:
        return InputError(f"{self.file} can't be read as a Torch7 file: {problem} (byte {self.at})")

    def take(self, count: int) -> bytes:
        left = len(self.data) - self.at
        if not 0 <= count <= left:
            raise self.wrong(f"{count} bytes should follow, and {left} do")
        self.at += count
        return self.data[self.at - count : self.at]

    def int32(self) -> int:
        return int(struct.unpack("<i", self.take(4))[0])

    def int64s(self, count: int) -> tuple[int, ...]:
        return struct.unpack(f"<{count}q", self.take(8 * count))

    def text(self) -> str:
        return self.take(self.int32()).decode("latin-1")  # texts of Lua are bytes

    def value(self, depth: int) -> object:
        if depth > DEPTH:
            raise self.wrong(f"values are more than {DEPTH} deep inside each other")
        tag = self.int32()
        if tag == NIL:
            return None
        if tag == NUMBER:
            number = float(struct.unpack("<d", self.take(8))[0])
            return int(number) if abs(number) < EXACT and number.is_integer() else number
        if tag == TEXT:
            return self.text()
        if tag == BOOLEAN:
            return self.int32() != 0
        if tag not in (TABLE, OBJECT):
            raise self.wrong(f"a value has the tag {tag}: it is a function, or the file is damaged")
        index = self.int32()
        if index in self.known:  # the same table or object again, perhaps inside itself
            return self.known[index]
        return self.table(index, depth) if tag == TABLE else self.object(index, depth)

    def table(self, index: int, depth: int) -> dict[object, object]:
        table: dict[object, object] = {}
        self.known[index] = table
        for _ in range(self.int32()):
            key = self.value(depth + 1)
            if not isinstance(key, int | float | str):
                raise self.wrong(f"a key of a table is of type {type(key).__name__}")
            table[key] = self.value(depth + 1)
        return table

    def object(self, index: int, depth: int) -> object:
        version = self.text()
        kind = (
            self.text() if version.startswith("V ") else version
        )  # the first files had no version
        package, _, name = kind.partition(".")
        numbers = KINDS.get(name.removesuffix("Tensor").removesuffix("Storage"))
        if package == "torch" and numbers and name.endswith("Storage"):
            made: object = self.storage(numbers)
        elif package == "torch" and numbers and name.endswith("Tensor"):
            made = self.tensor(kind, depth)
        else:
            made = {"kind": kind, "fields": self.value(depth + 1)}
        self.known[index] = made
        return made

    def storage(self, numbers: str) -> np.ndarray:
        dtype = np.dtype(numbers)
        (count,) = self.int64s(1)
        return np.frombuffer(self.take(count * dtype.itemsize), dtype)

    def tensor(self, kind: str, depth: int) -> np.ndarray:
        axes = self.int32()
        if not 0 <= axes <= AXES:
            raise self.wrong(f"a {kind} has {axes} axes")
        shape, strides = self.int64s(axes), self.int64s(axes)
        (first,) = self.int64s(1)  # counted from 1
        stored = self.value(depth + 1)
        if stored is None or axes == 0:
            return np.empty(0, np.float32)
        if not isinstance(stored, np.ndarray) or stored.ndim != 1:
            raise self.wrong(f"a {kind} has no storage")
        # Strides may repeat elements; a count above that of the storage would be a bomb.
        if min(*shape, *strides) < 0 or first < 1 or math.prod(shape) > stored.size:
            raise self.wrong(f"a {kind} of shape {shape} has a storage of {stored.size} numbers")
        last = first - 1 + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
        if math.prod(shape) and last >= stored.size:
            raise self.wrong(f"a {kind} of shape {shape} goes on after its storage")
        steps = [step * stored.itemsize for step in strides]
        begin = stored[min(first - 1, stored.size) :]
        return np.lib.stride_tricks.as_strided(begin, shape, steps, writeable=False)
