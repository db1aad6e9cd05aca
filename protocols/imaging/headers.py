"""Reads the header of an image file and checks that the file is whole, without decoding pixels.

Decoders allocate as many pixels as a header declares, and some fill in missing pixels silently.
"""

import re
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass

from harness.errors import InputError

PNG = b"\x89PNG\r\n\x1a\n"
LOSSY_IN_TIFF = (6, 7, 34892, 50001)  # compression by JPEG (old, new, in DNG) and by WebP
PADDING = 3  # zero bytes allowed after a bitmap: some programs pad files to whole words


class DamagedError(InputError):
    """A file is not whole or not an image. The text is the rest of a sentence: "FILE is ..."."""


@dataclass(frozen=True)
class Header:
    """The size and depth that an image file declares."""

    form: str  # "PNG"
    width: int
    height: int
    bits: int  # of a sample
    most: int | None = None  # the value of white, if the file gives it
    lossy: bool = False  # whether the pixels were compressed with loss


def header(data: bytes) -> Header:
    """The header of an image file; the file's length and checksums are checked.

    Raises:
        DamagedError: if the file is cut off, too long, or in an unknown format.
    """
    for start, read in _FORMS.items():
        if data.startswith(start):
            try:
                parsed = read(data)
            except (struct.error, IndexError) as error:
                raise DamagedError(f"is cut off after {len(data)} bytes") from error
            if parsed.width < 1 or parsed.height < 1:
                raise DamagedError(f"declares {parsed.width} x {parsed.height} pixels")
            return parsed
    if not data:
        raise DamagedError("is empty")
    raise DamagedError(
        f"is no JPEG, PNG, PNM, BMP or TIFF file (it starts with {data[:8]!r})",
    )


@dataclass(frozen=True)
class PNGHeader:
    """The first chunk of a PNG file."""

    width: int
    height: int
    bits: int  # of a sample
    colour: int  # colour type; 0 is grey
    interlace: int


def png(data: bytes) -> PNGHeader:
    """The first chunk of a PNG file, after a check of all its checksums.

    Raises:
        DamagedError: if the file is not PNG, damaged, or cut off.
    """
    if not data.startswith(PNG):
        raise DamagedError(f"is not a PNG file (it starts with {data[:8]!r})")
    at, kind, first = len(PNG), b"", None
    while at + 12 <= len(data) and kind != b"IEND":
        kind = data[at + 4 : at + 8]
        end = at + 8 + int.from_bytes(data[at : at + 4])
        if end + 4 > len(data):
            raise DamagedError(f"is cut off after {len(data)} bytes")
        if zlib.crc32(data[at + 4 : end]) != int.from_bytes(data[end : end + 4]):
            raise DamagedError(f"is damaged at byte {at}")
        if first is None:
            first = _first_chunk(kind, data[at + 8 : end])
        at = end + 4
    if kind != b"IEND" or first is None:
        raise DamagedError(f"is cut off after {len(data)} bytes")
    return first


def _first_chunk(kind: bytes, body: bytes) -> PNGHeader:
    if kind != b"IHDR" or len(body) != 13:
        raise DamagedError(f"begins with {kind!r} of {len(body)} bytes, a PNG with b'IHDR' of 13")
    width, height, bits, colour, _, _, interlace = struct.unpack(">IIBBBBB", body)
    return PNGHeader(width, height, bits, colour, interlace)


def _png(data: bytes) -> Header:
    first = png(data)
    return Header("PNG", first.width, first.height, first.bits)


def _jpeg(data: bytes) -> Header:
    """Follow the segments up to the first scan; an end mark must come after it."""
    at, frame = 2, None
    while True:
        at = data.find(b"\xff", at)
        if at < 0:
            raise DamagedError(f"is cut off after {len(data)} bytes")
        kind = data[at + 1]
        if kind == 0xFF:  # padding
            at += 1
        elif kind in (0x00, 0x01) or 0xD0 <= kind <= 0xD8:  # markers without a length
            at += 2
        elif kind == 0xD9:
            raise DamagedError("ends before its pixels")
        else:
            if 0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC):
                bits, height, width = struct.unpack_from(">BHH", data, at + 4)
                frame = Header("JPEG", width, height, bits, lossy=True)
            if kind == 0xDA:
                break
            at += 2 + struct.unpack_from(">H", data, at + 2)[0]
    if frame is None:
        raise DamagedError("does not say its size before its pixels")
    if data.rfind(b"\xff\xd9") < at:
        raise DamagedError(f"is cut off after {len(data)} bytes: its end mark is missing")
    return frame


def _bmp(data: bytes) -> Header:
    offset, length = struct.unpack_from("<II", data, 10)
    if length == 12:
        width, height, _, bits = struct.unpack_from("<HHHH", data, 18)
        packing = 0
    else:
        width, height, _, bits, packing = struct.unpack_from("<iiHHI", data, 18)
    height = abs(height)
    if packing in (0, 3, 6):  # not compressed
        _must_end(data, offset + 4 * (-(-width * bits // 32)) * height, padding=PADDING)
    return Header("BMP", width, height, 8)


_PNM = re.compile(rb"P([1-6])" + 3 * rb"(?:\s|#[^\n\r]*[\n\r])+(\d{1,10})" + rb"\s")
_PBM = re.compile(rb"P([14])" + 2 * rb"(?:\s|#[^\n\r]*[\n\r])+(\d{1,10})" + rb"\s")


def _pnm(data: bytes) -> Header:
    bitmap = data[1:2] in b"14"
    head = (_PBM if bitmap else _PNM).match(data)
    if head is None:
        raise DamagedError(f"is cut off after {len(data)} bytes, or its header is damaged")
    kind, width, height = (int(head[i]) for i in (1, 2, 3))
    most = 1 if bitmap else int(head[4])
    if not 1 <= most <= 65535:
        raise DamagedError(f"says that {most} is white")
    samples = width * height * (3 if kind in (3, 6) else 1)
    if kind == 1:
        digits = len(data[head.end() :]) - sum(data.count(c, head.end()) for c in b" \t\r\n\v\f")
        if digits != samples:
            raise DamagedError(f"has {digits} pixels, and declares {width} x {height}")
    elif kind < 4:
        words = len(data[head.end() :].split())
        if words != samples:
            raise DamagedError(f"has {words} samples, and declares {samples}")
    else:
        row = -(-width // 8) if kind == 4 else width * (samples // (width * height or 1))
        _must_end(data, head.end() + row * (2 if most > 255 else 1) * height)
    return Header("PNM", width, height, 16 if most > 255 else 8, most if kind > 4 else None)


def _tiff(data: bytes) -> Header:
    order = "<" if data[:2] == b"II" else ">"
    version = struct.unpack_from(f"{order}H", data, 2)[0]
    if version not in (42, 43):
        raise DamagedError(f"is no TIFF file of a known version ({version})")
    big = version == 43
    (at,) = struct.unpack_from(order + ("8xQ" if big else "4xI"), data)
    (count,) = struct.unpack_from(order + ("Q" if big else "H"), data, at)
    at += 8 if big else 2
    size = 20 if big else 12
    if at + size * count > len(data):
        raise DamagedError(f"is cut off after {len(data)} bytes")
    tags = {}
    for entry in range(at, at + size * count, size):
        tag, kind, number = struct.unpack_from(f"{order}HH{'Q' if big else 'I'}", data, entry)
        if tag in (256, 257, 258, 259) and kind in (3, 4, 16):
            form = order + {3: "H", 4: "I", 16: "Q"}[kind]
            place = entry + (12 if big else 8)
            if number * struct.calcsize(form) > (8 if big else 4):  # an offset, not the value
                (place,) = struct.unpack_from(order + ("Q" if big else "I"), data, place)
            (tags[tag],) = struct.unpack_from(form, data, place)
    if not {256, 257} <= tags.keys():
        raise DamagedError("does not say its size")
    lossy = tags.get(259) in LOSSY_IN_TIFF
    return Header("TIFF", tags[256], tags[257], tags.get(258, 1), lossy=lossy)


def _must_end(data: bytes, end: int, *, padding: int = 0) -> None:
    if len(data) < end:
        raise DamagedError(f"is cut off after {len(data)} of {end} bytes")
    if len(data) > end + padding or any(data[end:]):
        raise DamagedError(f"goes on after its end: it has {len(data)} bytes, its pixels end {end}")


_FORMS: dict[bytes, Callable[[bytes], Header]] = {
    PNG: _png,
    b"\xff\xd8": _jpeg,
    b"BM": _bmp,
    **{b"P%d" % kind: _pnm for kind in range(1, 7)},
    b"II": _tiff,
    b"MM": _tiff,
}
