"""Writes Torch7's binary files, by the description of the format, for tests."""

import struct
from itertools import count

import numpy as np

KINDS = {"u1": "Byte", "i8": "Long", "f4": "Float", "f8": "Double"}


class Module(dict):
    """Fields of an object of a class of Torch."""

    def __init__(self, kind: str, **fields: object) -> None:
        super().__init__(fields)
        self.kind = kind


def written(value: object) -> bytes:
    """The bytes of a file; a dict or an array that occurs twice is written once."""
    known: dict[int, int] = {}
    numbers = count(1)

    def text(value: str) -> bytes:
        return struct.pack("<i", len(value)) + value.encode("latin-1")

    def index(value: object) -> tuple[bytes, bool]:
        is_known = id(value) in known
        return struct.pack("<i", known.setdefault(id(value), next(numbers))), is_known

    def table(value: dict) -> bytes:
        return struct.pack("<i", len(value)) + b"".join(
            one(part) for item in value.items() for part in item
        )

    def one(value: object) -> bytes:
        if value is None:
            return struct.pack("<i", 0)
        if isinstance(value, bool):
            return struct.pack("<ii", 5, value)
        if isinstance(value, int | float):
            return struct.pack("<id", 1, value)
        if isinstance(value, str):
            return struct.pack("<i", 2) + text(value)
        place, is_known = index(value)
        if isinstance(value, np.ndarray):
            kind = KINDS[value.dtype.str[1:]]
            head = struct.pack("<i", 4) + place
            if is_known:
                return head
            steps = [step // value.itemsize for step in value.strides]
            sizes = struct.pack(f"<i{2 * value.ndim}q", value.ndim, *value.shape, *steps)
            last = sum((n - 1) * step for n, step in zip(value.shape, steps, strict=True))
            stored = np.lib.stride_tricks.as_strided(value, (last + 1,), (value.itemsize,))
            storage = struct.pack("<ii", 4, next(numbers)) + text("V 1")
            storage += text(f"torch.{kind}Storage") + struct.pack("<q", len(stored))
            first = struct.pack("<q", 1)
            named = text("V 1") + text(f"torch.{kind}Tensor")
            return head + named + sizes + first + storage + stored.tobytes()
        if isinstance(value, Module):
            head = struct.pack("<i", 4) + place
            fields = struct.pack("<ii", 3, next(numbers)) + table(value)
            return head if is_known else head + text("V 1") + text(value.kind) + fields
        head = struct.pack("<i", 3) + place
        return head if is_known else head + table(value)

    return one(value)
