"""Images are looked at before they are decoded."""

import struct
import zlib

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.builders.views.build import build
from protocols.imaging.grey import LIMIT, check, decode, read_grey
from protocols.imaging.headers import DamagedError, header
from protocols.imaging.png import encode

ENDINGS = ("png", "jpg", "bmp", "ppm", "tif")


def picture(height=48, width=64, seed=0):
    small = np.random.default_rng(seed).integers(0, 255, (height // 4, width // 4, 3), np.uint8)
    return cv2.resize(small, (width, height))


def encoded(ending, image):
    return cv2.imencode(f".{ending}", image)[1].tobytes()


def bomb(width, height):
    """A PNG of zeros that declares so many pixels."""

    def chunk(kind, body):
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    packed = zlib.compressobj(9)
    pixels = b"".join(packed.compress(bytes(width + 1)) for _ in range(height)) + packed.flush()
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    )


@pytest.fixture(scope="module")
def large():
    return bomb(30_000, 6_000)


@pytest.mark.parametrize(
    ("ending", "deep"),
    [*((ending, False) for ending in ENDINGS), ("png", True), ("ppm", True), ("tif", True)],
)
def test_a_header_says_the_size_and_the_depth(ending, deep):
    image = picture().astype(np.uint16) * 257 if deep else picture()
    found = header(encoded(ending, image))
    assert (found.width, found.height, found.bits) == (64, 48, 16 if deep else 8)


def test_grey_is_luma_in_integers(tmp_path):
    (tmp_path / "a.png").write_bytes(encoded("png", np.array([[[10, 20, 30]]], np.uint8)))
    assert read_grey(tmp_path / "a.png").tolist() == [
        [(4899 * 30 + 9617 * 20 + 1868 * 10 + 8192) >> 14]
    ]


def test_an_image_larger_than_a_stripe_is_the_same(tmp_path, monkeypatch):
    data = encoded("png", picture(200, 300))
    whole = decode(data, tmp_path)
    monkeypatch.setattr("protocols.imaging.grey.STRIPE", 1000)
    np.testing.assert_array_equal(decode(data, tmp_path), whole)


# ---- 16 bits


def test_16_bit_images_over_their_range_are_read(tmp_path):
    eight = picture()
    (tmp_path / "a.png").write_bytes(encoded("png", eight.astype(np.uint16) * 257))
    np.testing.assert_array_equal(
        read_grey(tmp_path / "a.png"), decode(encoded("png", eight), tmp_path)
    )


@pytest.mark.parametrize("ending", ["png", "tif", "pgm"])
@pytest.mark.parametrize(("bits", "factor"), [(10, 64), (12, 16), (14, 4)])
def test_few_bits_in_16_are_refused_with_their_values(tmp_path, ending, bits, factor):
    values = np.linspace(0, 2**bits - 1, 48 * 64).astype(np.uint16).reshape(48, 64)
    file = tmp_path / f"a.{ending}"
    file.write_bytes(encoded(ending, values))
    told = (
        rf"has 16-bit values, and they are 0 to {2**bits - 1}.*multiply them by {factor}, or save"
    )
    for read in (read_grey, check):
        with pytest.raises(ValueError, match=told):
            read(file)
    file.write_bytes(encoded(ending, values * factor))
    assert read_grey(file).max() == 255


def test_pnm_files_that_say_another_white_are_refused(tmp_path):
    (tmp_path / "a.pgm").write_bytes(b"P5\n2 1\n15\n\x00\x0f")
    with pytest.raises(ValueError, match=r"a\.pgm has grey values from 0 to 15"):
        read_grey(tmp_path / "a.pgm")


# ---- size


def test_an_image_above_the_limit_is_not_decoded(tmp_path, large, monkeypatch):
    assert len(large) < 400_000
    (tmp_path / "a.png").write_bytes(large)
    monkeypatch.setattr("protocols.imaging.grey._pixels", None)
    with pytest.raises(ValueError, match=rf"30000 x 6000 pixels, more than 160000000.*set {LIMIT}"):
        read_grey(tmp_path / "a.png")


def test_the_limit_can_be_set(tmp_path, monkeypatch):
    (tmp_path / "a.png").write_bytes(encode(np.zeros((40, 50), np.uint8), compress=True))
    monkeypatch.setenv(LIMIT, "1999")
    with pytest.raises(ValueError, match="50 x 40 pixels, more than 1999"):
        read_grey(tmp_path / "a.png")
    monkeypatch.setenv(LIMIT, "2000")
    assert read_grey(tmp_path / "a.png").shape == (40, 50)
    monkeypatch.setenv(LIMIT, "many")
    with pytest.raises(ValueError, match=f"{LIMIT} is 'many': a number of pixels is wanted"):
        read_grey(tmp_path / "a.png")


def test_an_image_too_large_for_opencv_is_said_to_be(tmp_path):
    (tmp_path / "a.png").write_bytes(bomb(3, 1_000_001))
    with pytest.raises(ValueError, match=r"may be sound, but it is too large for OpenCV"):
        read_grey(tmp_path / "a.png")


def test_a_bomb_is_left_out_of_a_build_and_told(tmp_path, large):
    (tmp_path / "images").mkdir()
    (tmp_path / "images/a.png").write_bytes(encoded("png", picture(300, 400)))
    (tmp_path / "images/bomb.png").write_bytes(large)
    deep = (picture(300, 400).astype(np.uint16)) * 16
    (tmp_path / "images/deep.png").write_bytes(encoded("png", deep))
    report = build(tmp_path / "images", tmp_path / "set", points=5, views=2, versions=2)
    assert report.images == 1
    assert list(report.left_out) == ["bomb.png", "deep.png"]
    assert "30000 x 6000 pixels" in report.left_out["bomb.png"]
    assert "16-bit values" in report.left_out["deep.png"]
    assert "2 images left out: bomb.png" in str(report)


# ---- length


@pytest.mark.parametrize("ending", ENDINGS)
def test_an_image_cut_off_is_refused(tmp_path, ending):
    data = encoded(ending, picture())
    for cut in (1, 2, 10, len(data) // 2, len(data) - 3, len(data)):
        (tmp_path / "a").write_bytes(data[:-cut])
        with pytest.raises(ValueError, match="a can't be decoded"):
            read_grey(tmp_path / "a")


@pytest.mark.parametrize("ending", ["bmp", "ppm", "pgm"])
@pytest.mark.parametrize("more", [b"\1", bytes(4), b"more"])
def test_an_image_that_goes_on_after_its_end_is_refused(tmp_path, ending, more):
    image = picture()[..., 0] if ending == "pgm" else picture()
    (tmp_path / "a").write_bytes(encoded(ending, image) + more)
    with pytest.raises(ValueError, match="a can't be decoded, it goes on after its end"):
        read_grey(tmp_path / "a")


def test_a_bitmap_may_be_filled_up_to_a_whole_word(tmp_path):
    (tmp_path / "a.bmp").write_bytes(encoded("bmp", picture()) + b"\0\0")  # as Photoshop does
    assert read_grey(tmp_path / "a.bmp").shape == (48, 64)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(ENDINGS), st.data())
def test_a_spoilt_image_is_decoded_at_its_declared_size_or_refused(tmp_path_factory, ending, data):
    file = tmp_path_factory.getbasetemp() / f"spoilt.{ending}"
    whole = bytearray(encoded(ending, picture()))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, min(len(whole), 300) - 1))
        whole[at] = data.draw(st.integers(0, 255))
    file.write_bytes(whole)
    try:
        known = header(bytes(whole))
        grey = read_grey(file)
    except DamagedError:
        with pytest.raises(ValueError, match=file.name):
            read_grey(file)
    except ValueError as error:
        assert file.name in str(error)
    else:
        assert grey.shape == (known.height, known.width)
