import io
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from phototour_files import TEST, made_pairs, made_patches, made_scene
from PIL import Image

from protocols.phototour import writer
from protocols.phototour.reader import blocks, read_pairs, read_reference_images, read_scene
from protocols.phototour.writer import HEADER, write_scene


def read_all(folder, rows=None):
    return np.concatenate([block.read() for block in blocks(read_scene(folder), rows)])


def pixel_by_pixel(folder, n):
    """The obvious way: decode every tile, cut it up, stop after n patches."""
    patches = []
    for file in sorted(folder.glob("*.bmp")):
        with Image.open(file) as image:
            grey = np.array(image)
        for y in range(0, 1024, 64):
            for x in range(0, 1024, 64):
                patches.append(grey[y : y + 64, x : x + 64])
    return np.array(patches[:n])


# ---- what is written is read


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 600), st.lists(st.integers(0, 300), max_size=3), st.data())
def test_what_is_written_is_read(tmp_path_factory, n, cuts, data):
    folder = tmp_path_factory.mktemp("made") / "scene"
    patches = made_patches(n)
    point = np.arange(n) // 3
    batches = np.split(patches, sorted(min(cut, n) for cut in cuts))
    interest = np.arange(5.0 * n).reshape(n, 5)
    write_scene(folder, batches, point, interest, {})
    rows = np.array(sorted(data.draw(st.sets(st.integers(0, n - 1), min_size=1, max_size=9))))
    scene = read_scene(folder)
    np.testing.assert_array_equal(scene.point, point)
    np.testing.assert_array_equal(read_reference_images(scene), 5 * np.arange(n))
    np.testing.assert_array_equal(read_all(folder), patches)
    np.testing.assert_array_equal(read_all(folder, rows), patches[rows])


def test_equals_its_slow_twin(tmp_path):
    made_scene(tmp_path / "scene", 300)
    np.testing.assert_array_equal(
        read_all(tmp_path / "scene"), pixel_by_pixel(tmp_path / "scene", 300)
    )


def test_tiles_are_read_sixteen_at_a_time(tmp_path):
    n = 17 * 256 - 5
    patches, _ = made_scene(tmp_path / "scene", n)
    found = blocks(read_scene(tmp_path / "scene"))
    assert [(b.name, b.size) for b in found] == [
        ("scene/0000-0015", 16 * 256),
        ("scene/0016-0016", 251),
    ]
    np.testing.assert_array_equal(found[1].read(), patches[16 * 256 :])
    few = blocks(read_scene(tmp_path / "scene"), np.array([n - 1]))
    assert [(b.name, b.size) for b in few] == [("scene/0016-0016", 1)]


def test_the_same_arguments_write_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        made_scene(tmp_path / name)
    for file in (tmp_path / "a").iterdir():
        assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes()


def test_pairs_are_read(tmp_path):
    _, point = made_scene(tmp_path / "scene")
    scene = read_scene(tmp_path / "scene")
    pairs = read_pairs(scene)
    expected = made_pairs(point, 60)
    np.testing.assert_array_equal(np.stack([pairs.a, pairs.b], axis=1), expected)
    np.testing.assert_array_equal(pairs.match, point[expected[:, 0]] == point[expected[:, 1]])


def test_the_largest_list_stands_in_for_that_of_the_papers(tmp_path):
    point = np.arange(40) // 2
    lengths = {"m50_9_9_0.txt": 9, "m50_10_10_0.txt": 10, "m50_99_99_1.txt": 99}
    made_scene(tmp_path / "scene", pairs={k: made_pairs(point, n) for k, n in lengths.items()})
    scene = read_scene(tmp_path / "scene")
    assert read_pairs(scene).file.name == "m50_10_10_0.txt"
    assert read_pairs(scene, "m50_9_9_0.txt").file.name == "m50_9_9_0.txt"


def test_spare_columns_and_line_ends_do_not_matter(tmp_path):
    made_scene(tmp_path / "scene")
    before = read_pairs(read_scene(tmp_path / "scene"))
    for name in (TEST, "info.txt"):
        file = tmp_path / "scene" / name
        file.write_bytes(file.read_bytes().replace(b"\n", b" 0\r\n"))
    after = read_pairs(read_scene(tmp_path / "scene"))
    assert before.sha256 == after.sha256


# ---- hashes


def test_a_hash_is_that_of_the_contents_and_of_the_choice(tmp_path):
    made_scene(tmp_path / "scene", 300)
    made_scene(tmp_path / "moved" / "scene", 300)
    first, moved = (blocks(read_scene(tmp_path / f)) for f in ("scene", "moved/scene"))
    assert first[0].sha256 == moved[0].sha256
    some = blocks(read_scene(tmp_path / "scene"), np.arange(299))
    assert some[0].sha256 != first[0].sha256
    file = tmp_path / "scene" / "patches0001.bmp"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    assert blocks(read_scene(tmp_path / "scene"))[0].sha256 != first[0].sha256


# ---- other bitmaps


def replaced(folder, grey, header):
    (folder / "patches0000.bmp").write_bytes(header + grey.tobytes())


def tile_of(folder):
    with Image.open(folder / "patches0000.bmp") as image:
        return np.array(image)


def header(width=1024, height=1024, bits=8, packing=0, colours=256, palette=None, gap=b""):
    palette = np.arange(256) if palette is None else palette
    table = np.zeros((len(palette), 4), np.uint8)
    table[:, :3] = np.reshape(palette, (len(palette), -1))
    offset = 54 + table.size + len(gap)
    return (
        struct.pack("<2sIHHI", b"BM", 0, 0, 0, offset)
        + struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, packing, 0, 0, 0, colours, 0)
        + table.tobytes()
        + gap
    )


@pytest.mark.parametrize(
    ("start", "upright"),
    [
        (header(), False),
        (header(height=-1024), True),
        (header(colours=0), False),
        (header(gap=b"another colour table"), False),
        (header(palette=np.arange(200), colours=200), False),
        (
            struct.pack("<2sIHHI", b"BM", 0, 0, 0, 26 + 768)
            + struct.pack("<IHHHH", 12, 1024, 1024, 1, 8)
            + np.repeat(np.arange(256, dtype=np.uint8), 3).tobytes(),
            False,
        ),
    ],
    ids=["lowest-first", "highest-first", "palette-of-0", "gap", "short-palette", "old-header"],
)
def test_every_form_of_bitmap_gives_the_same_patches(tmp_path, start, upright):
    folder = tmp_path / "scene"
    patches, _ = made_scene(folder)
    grey = tile_of(folder)
    replaced(folder, grey if upright else grey[::-1], start)
    np.testing.assert_array_equal(read_all(folder), patches)


def test_a_bitmap_of_another_program_is_read(tmp_path):
    folder = tmp_path / "scene"
    patches, _ = made_scene(folder)
    Image.fromarray(tile_of(folder)).save(folder / "patches0000.bmp")
    np.testing.assert_array_equal(read_all(folder), patches)


def coloured():
    out = io.BytesIO()
    Image.new("RGB", (1024, 1024)).save(out, "bmp")
    return out.getvalue()


INVERTED = header(palette=np.arange(255, -1, -1)) + bytes(1024 * 1024)
RED = header(palette=np.stack([np.zeros(256), np.zeros(256), np.arange(256)], 1))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "no bitmap"),
        (b"<!DOCTYPE html>" * 9, "no bitmap"),
        (b"BM" + bytes(9), "no bitmap"),
        (header()[:40], "cut off after 40 bytes"),
        (
            header() + bytes(1024 * 1024 - 1),
            f"cut off after {HEADER + 1048575} of {HEADER + 1048576}",
        ),
        (coloured(), "of 24 bits"),
        (header(width=512) + bytes(512 * 1024), "512 x 1024 pixels"),
        (header(packing=1) + bytes(1024 * 1024), "8 bits, compressed"),
        (
            writer._bitmap(np.zeros((1024, 1024), np.uint8)) + b"\0",
            "has 1049655 bytes, more than its 1049654 bytes",
        ),
        (INVERTED, "palette of other colours"),
        (RED + bytes(1024 * 1024), "palette of other colours"),
        (b"BM" + struct.pack("<IHHII", 0, 0, 0, 1 << 31, 40) + bytes(9), "header is damaged"),
        (b"BM" + struct.pack("<IHHII", 0, 0, 0, 54, 200) + bytes(99), "header is damaged"),
    ],
)
def test_a_bad_bitmap_is_refused(tmp_path, data, message):
    made_scene(tmp_path / "scene")
    (tmp_path / "scene" / "patches0000.bmp").write_bytes(data)
    with pytest.raises(ValueError, match=rf"patches0000.bmp.*{message}"):
        read_scene(tmp_path / "scene")


# ---- files that don't fit each other


@pytest.mark.parametrize("tile", ["patches0001.bmp", "patches0002.bmp"], ids=["inner", "last"])
def test_a_missing_tile_is_named(tmp_path, tile):
    made_scene(tmp_path / "scene", 600)
    (tmp_path / "scene" / tile).unlink()
    told = rf"lacks 1 of 3 tiles of 256 patches \({tile}\), and .*info.txt has 600 lines"
    with pytest.raises(FileNotFoundError, match=told):
        read_scene(tmp_path / "scene")


def test_more_tiles_than_lines_gives_both_counts(tmp_path):
    made_scene(tmp_path / "scene", 600)
    file = tmp_path / "scene" / "info.txt"
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:512]))
    with pytest.raises(ValueError, match=r"3 tiles, and .*info.txt has 512 lines, which 2 tiles"):
        read_scene(tmp_path / "scene")


def test_no_tile_at_all_is_an_error(tmp_path):
    made_scene(tmp_path / "scene")
    (tmp_path / "scene" / "patches0000.bmp").unlink()
    with pytest.raises(
        FileNotFoundError, match=r"lacks 1 of 1 tiles of 256 patches \(patches0000.bmp\)"
    ):
        read_scene(tmp_path / "scene")


def test_two_tiles_of_one_number_are_an_error(tmp_path):
    made_scene(tmp_path / "scene")
    (tmp_path / "scene" / "patches0.bmp").write_bytes(b"")
    with pytest.raises(ValueError, match="have one number"):
        read_scene(tmp_path / "scene")


def test_tiles_are_sorted_by_number(tmp_path):
    patches, _ = made_scene(tmp_path / "scene", 600)
    for number in (0, 1, 2):
        (tmp_path / "scene" / f"patches{number:04}.bmp").rename(
            tmp_path / "scene" / f"patches{'0' * (9 * (number == 2))}{number}.bmp"
        )
    np.testing.assert_array_equal(read_all(tmp_path / "scene"), patches)


def last(text, line):
    """The text with another last line."""
    return text[: text.rindex("\n", 0, -1) + 1] + line + "\n"


def edited(folder, name, change):
    file = folder / name
    file.write_text(change(file.read_text()))


@pytest.mark.parametrize(
    ("name", "change", "error", "message"),
    [
        ("info.txt", lambda t: t[:-3], ValueError, r"line 40 of 40: '19' are not 2 numbers"),
        ("info.txt", lambda t: t.replace("7 0\n", "7 0 0\n", 1), ValueError, "line 15 of 40"),
        ("info.txt", lambda t: t.replace("7 0\n", "x 0\n", 1), ValueError, "line 15 of 40: 'x 0'"),
        ("info.txt", lambda t: t.replace("7 0\n", "7.5 0\n", 1), ValueError, "line 15: 7.5"),
        ("info.txt", lambda t: t.replace("7 0\n", "nan 0\n", 1), ValueError, "line 15 of 40"),
        ("info.txt", lambda t: t.replace("7 0\n", "9e30 0\n", 1), ValueError, "line 15: 9e"),
        ("info.txt", lambda t: "", ValueError, "is empty"),
        ("info.txt", lambda t: " \n\n", ValueError, "is empty"),
        ("info.txt", lambda t: "<html>\n", ValueError, "line 1 of 1"),
        ("info.txt", lambda t: "\N{SNOWMAN} 0\n" + t, ValueError, "line 1 of 41"),
        (TEST, lambda t: t[:-5], ValueError, r"line 60 of 60: .* are not 6 numbers"),
        (TEST, lambda t: "1 0\n" * 60, ValueError, r"line 1 of 60: '1 0' are not 5 numbers"),
        (TEST, lambda t: last(t, "40 2 0 1 0 0"), ValueError, r"line 60: patches \[40, 1\]"),
        (TEST, lambda t: last(t, "-1 19 0 1 0 0"), ValueError, r"line 60: patches \[-1, 1\]"),
        (TEST, lambda t: last(t, "3 1 0 1 7 0"), ValueError, r"points \[1, 7\], in .* \[1, 0\]"),
        (TEST, lambda t: "0 0 0 1 0 0\n" * 60, ValueError, "60 matches among 60 pairs"),
        (TEST, lambda t: "0 0 0 2 1 0\n" * 60, ValueError, "0 matches among 60 pairs"),
        (TEST, lambda t: t[: t.rindex("\n", 0, -1) + 1], ValueError, "59 lines, .* says 60"),
        (TEST, lambda t: t + t[: t.index("\n") + 1], ValueError, "61 lines, .* says 60"),
        (TEST, lambda t: "\n\n" + last(t, "40 20 0 1 0 0"), ValueError, "line 62: patches"),
        (TEST, lambda t: "\n \n" + last(t, "3 1 0 1 7 0"), ValueError, "line 62: patches"),
        (TEST, lambda t: "\n" + last(t, "0.5 0 0 1 0 0"), ValueError, "line 61: 0.5"),
        ("info.txt", lambda t: "1_" + t, ValueError, "line 1 of 40: '1_0 0' are not 2 numbers"),
        ("info.txt", lambda t: t[:-1], ValueError, "doesn't end with a line end"),
        (TEST, lambda t: t[:-1], ValueError, "doesn't end with a line end"),
        ("interest.txt", lambda t: t[:-1], ValueError, "doesn't end with a line end"),
        ("info.txt", lambda t: "\n" + t[:-3], ValueError, "line 41 of 41: '19' are not 2"),
        ("interest.txt", lambda t: t[: t.rindex("\n", 0, -1) + 1], ValueError, "39 lines"),
        ("interest.txt", lambda t: t[:-10], ValueError, "its last number may be cut off"),
        ("interest.txt", lambda t: "0.5" + t[1:], ValueError, "line 1: 0.5"),
    ],
)  # fmt: skip
def test_bad_text_is_refused(tmp_path, name, change, error, message):
    made_scene(tmp_path / "scene")
    edited(tmp_path / "scene", name, change)
    with pytest.raises(error, match=rf"{name}.*{message}"):
        scene = read_scene(tmp_path / "scene")
        read_pairs(scene)
        read_reference_images(scene)


@pytest.mark.parametrize("name", ["info.txt", "interest.txt", "no list of pairs"])
def test_a_missing_file_is_named(tmp_path, name):
    made_scene(tmp_path / "scene")
    (tmp_path / "scene" / (name if name.endswith("txt") else TEST)).unlink()
    with pytest.raises(FileNotFoundError, match=name):
        scene = read_scene(tmp_path / "scene")
        read_pairs(scene)
        read_reference_images(scene)


def test_a_list_of_pairs_that_is_not_there_is_answered_with_those_that_are(tmp_path):
    made_scene(tmp_path / "scene")
    with pytest.raises(FileNotFoundError, match=f"m50_1_1_0.txt is missing; .* has {TEST}"):
        read_pairs(read_scene(tmp_path / "scene"), "m50_1_1_0.txt")


@pytest.mark.parametrize("name", ["", "..", "../other/m50_1_1_0.txt", "below/" + TEST, "a\\b"])
def test_a_list_of_pairs_is_a_plain_file_name(tmp_path, name):
    made_scene(tmp_path / "scene")
    (tmp_path / "scene" / "below").mkdir()
    with pytest.raises(ValueError, match="give the plain name"):
        read_pairs(read_scene(tmp_path / "scene"), name)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_file_cut_anywhere_is_refused(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("cut") / "scene"
    made_scene(folder)
    name = data.draw(st.sampled_from(["info.txt", TEST, "patches0000.bmp"]))
    contents = (folder / name).read_bytes()
    cut = contents[: data.draw(st.integers(0, len(contents) - 1))]
    (folder / name).write_bytes(cut)
    with pytest.raises((ValueError, FileNotFoundError), match=name):
        read_pairs(read_scene(folder))


# ---- writing


@pytest.mark.parametrize(
    ("patches", "pairs", "message"),
    [
        ([made_patches(3)], {}, "3 patches came for 4 points"),
        ([made_patches(3), made_patches(2)], {}, "5 and more patches came for 4"),
        ([made_patches(4).astype(float)], {}, "float64"),
        ([made_patches(4)[:, :32]], {}, r"\[4, 32, 64\]"),
        ([made_patches(4)], {"info.txt": np.zeros((1, 2), int)}, "can't name a list of pairs"),
        ([made_patches(4)], {"m50_1_1_0.txt": np.array([[0, 4]])}, "outside of 0 .. 3"),
    ],
)
def test_what_does_not_fit_is_not_written(tmp_path, patches, pairs, message):
    with pytest.raises(ValueError, match=message):
        write_scene(tmp_path / "scene", iter(patches), np.arange(4), np.zeros((4, 5)), pairs)
    assert not list(tmp_path.iterdir())


def test_the_second_column_of_info_is_written(tmp_path):
    rest = [made_patches(4)], np.arange(4), np.zeros((4, 5)), {}
    write_scene(tmp_path / "scene", *rest, second=np.array([3, 1, 2, 0]))
    assert (tmp_path / "scene" / "info.txt").read_text() == "0 3\n1 1\n2 2\n3 0\n"


def test_nothing_is_written_over(tmp_path):
    made_scene(tmp_path / "scene")
    with pytest.raises(FileExistsError, match="is not an empty folder"):
        made_scene(tmp_path / "scene")
