"""Writes grey PNG files whose bytes depend on the pixels alone, whatever zlib is installed."""

import struct
import zlib

import numpy as np
from jaxtyping import UInt8

STORED = 65535  # bytes in the longest block of deflate that is not compressed


def encode(image: UInt8[np.ndarray, "height width"], *, compress: bool) -> bytes:
    """An 8-bit grey PNG; not compressed, it has the same bytes on every machine.

    Compressed bytes depend on the flavour of zlib: zlib-ng and zlib differ at one level. The level
    is the fastest: higher ones save 8 % of strips and take five times as long.
    """
    height, width = image.shape
    rows = np.zeros((height, 1 + width), np.uint8)
    rows[:, 1:] = image
    if compress:  # each row less the one above, which deflates better
        rows[1:, 1:] -= image[:-1]
        rows[:, 0] = 2
    data = zlib.compress(rows.tobytes(), 1) if compress else _stored(rows.tobytes())
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", data), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, body) for kind, body in chunks)


def _stored(data: bytes) -> bytes:
    """A zlib stream (RFC 1950, 1951) that holds the data as they are."""
    parts = [data[i : i + STORED] for i in range(0, len(data), STORED)] or [b""]
    blocks = [
        struct.pack("<BHH", part is parts[-1], len(part), len(part) ^ 0xFFFF) + part
        for part in parts
    ]
    return b"\x78\x01" + b"".join(blocks) + struct.pack(">I", zlib.adler32(data))


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
