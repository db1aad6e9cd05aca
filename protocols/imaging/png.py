"""Writes grey PNG files; if not compressed, their bytes do not depend on the installed zlib."""

import struct
import zlib

import numpy as np
from jaxtyping import UInt8

STORED = 65535  # bytes in the longest block of deflate that is not compressed


def encode(image: UInt8[np.ndarray, "height width"], *, compress: bool) -> bytes:
    """The bytes of an 8-bit grey PNG; if not compressed, the same bytes on every machine.

    Compressed bytes depend on the library: zlib-ng and zlib differ at the same level. The level
    is the fastest: higher levels save 8 % of the bytes of strips and take five times as long.
    """
    height, width = image.shape
    rows = np.zeros((height, 1 + width), np.uint8)
    rows[:, 1:] = image
    if compress:  # the difference from the row above, which compresses better
        rows[1:, 1:] -= image[:-1]
        rows[:, 0] = 2
    data = zlib.compress(rows.tobytes(), 1) if compress else _stored(rows.tobytes())
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", data), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, body) for kind, body in chunks)


def _stored(data: bytes) -> bytes:
    """A zlib stream (RFC 1950, 1951) that holds the data uncompressed."""
    parts = [data[i : i + STORED] for i in range(0, len(data), STORED)] or [b""]
    blocks = [
        struct.pack("<BHH", part is parts[-1], len(part), len(part) ^ 0xFFFF) + part
        for part in parts
    ]
    return b"\x78\x01" + b"".join(blocks) + struct.pack(">I", zlib.adler32(data))


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
