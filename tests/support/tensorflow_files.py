"""Writes frozen graphs of TensorFlow byte by byte, by the definition of protobuf, for tests."""

import struct

import numpy as np


def graph(*nodes: bytes) -> bytes:
    """A GraphDef."""
    return b"".join(part(1, node) for node in nodes)


def node(name: str, op: str, *inputs: str, **attributes: bytes) -> bytes:
    """A NodeDef; attributes are made by the functions below."""
    written = part(1, name.encode()) + part(2, op.encode())
    written += b"".join(part(3, one.encode()) for one in inputs)
    for key, value in attributes.items():
        written += part(5, part(1, key.encode()) + part(2, value))
    return written


def constant(name: str, array: np.ndarray, *, repeated: bool = False) -> bytes:
    """A node "Const"; with `repeated`, its equal numbers are written once."""
    kind = {"f": 1, "i": 3}[array.dtype.kind]
    dims = b"".join(part(2, number(1, size)) for size in array.shape)
    tensor = number(1, kind) + part(2, dims)
    if repeated:
        tensor += part(5, struct.pack("<f", array.flat[0]))
    else:
        tensor += part(4, array.tobytes())
    return node(name, "Const", value=part(8, tensor), dtype=number(6, kind))


def text(value: str) -> bytes:
    """An attribute that is a text."""
    return part(2, value.encode())


def real(value: float) -> bytes:
    """An attribute that is a float."""
    return _varint(4 << 3 | 5) + struct.pack("<f", value)


def flag(value: bool) -> bytes:
    """An attribute that is true or false."""
    return number(5, value)


def whole_numbers(*values: int) -> bytes:
    """An attribute that is a list of integers."""
    return part(1, part(3, b"".join(map(_varint, values))))


def part(field: int, contents: bytes) -> bytes:
    """A field with a message, a text or packed numbers."""
    return _varint(field << 3 | 2) + _varint(len(contents)) + contents


def number(field: int, value: int) -> bytes:
    """A field with a whole number."""
    return _varint(field << 3) + _varint(value)


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    written = bytearray()
    while value > 127:
        written.append(value & 127 | 128)
        value >>= 7
    return bytes([*written, value])
