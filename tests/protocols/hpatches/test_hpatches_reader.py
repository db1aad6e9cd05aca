import hashlib
import json
import logging
import os
import shutil
import struct
import zlib

import cv2
import numpy as np
import pytest
from hpatches_files import LENGTHS, SPLITS, write_set

from protocols.hpatches import splits, strips
from protocols.hpatches.matching import matching
from protocols.hpatches.reader import OFFICIAL, STRIPS, UNCHECKED, open_set, open_training


@pytest.fixture
def root(tmp_path):
    return write_set(tmp_path / "own", LENGTHS, splits=SPLITS)


def test_a_block_is_a_strip_in_the_order_of_the_split(root):
    opened = open_set(root, "a")
    names = [block.name for block in opened.dataset.blocks]
    assert names == [f"{s}/{strip}" for s in ("v_one", "i_one") for strip in STRIPS]


def test_patches_are_those_of_the_file(root):
    block = open_set(root, "a").dataset.blocks[3]
    image = cv2.imread(str(root / "patches" / f"{block.name}.png"), cv2.IMREAD_GRAYSCALE)
    np.testing.assert_array_equal(block.read().reshape(image.shape), image)


def test_the_hash_is_that_of_the_file(root):
    block = open_set(root, "a").dataset.blocks[0]
    content = (root / "patches" / f"{block.name}.png").read_bytes()
    assert block.sha256 == hashlib.sha256(content).hexdigest()


def test_patches_of_one_place_show_one_point(root):
    dataset = open_set(root, "a").dataset
    strips = dataset.point[: 7 * 16].reshape(16, 7)
    assert (strips == strips[0]).all()
    assert len(np.unique(dataset.point)) == 7 + 9


def test_rows_are_found_by_sequence_kind_and_index(root):
    opened = open_set(root, "a")
    one = [np.array([value]) for value in (1, 2, 4)]
    row = opened.rows(*one, "hard")[0]
    start = 7 * 16 + 9 * STRIPS.index("h2")
    assert row == start + 4


def test_a_folder_of_sequences_alone_is_one_full_split(tmp_path):
    opened = open_set(write_set(tmp_path, LENGTHS) / "patches", None)
    assert opened.test == tuple(sorted(LENGTHS))
    assert opened.dataset.split == "full"


def test_made_up_sequences_are_never_called_hpatches(root):
    assert open_set(root, "a").dataset.name == "hpatches-own"


def test_official_names_alone_do_not_make_hpatches(tmp_path):
    root = write_set(tmp_path / "mine", {"v_wall": 5, "i_fog": 5})
    assert open_set(root, None).dataset.name == "hpatches-mine"


@pytest.mark.parametrize(("size", "name"), [(65, "hpatches"), (64, "hpatches-mine")])
def test_hpatches_are_the_official_sequences_in_patches_of_65_pixels(
    tmp_path, monkeypatch, size, name
):
    root = write_set(tmp_path / "mine", {"v_wall": 5, "i_fog": 5}, size=size)
    listed = hashlib.sha256(b"i_fog\nv_wall").hexdigest()
    monkeypatch.setitem(OFFICIAL, "split_test_sha256", {"full": listed})
    monkeypatch.setitem(OFFICIAL, "lengths", {"v_wall": (5, 5), "i_fog": (5, 6)})
    assert open_set(root, None).dataset.name == name


@pytest.fixture
def official(tmp_path, monkeypatch):
    """A set that has all known facts of the official one, which are made to fit it."""
    splits = {"a": {"test": ["v_wall", "i_fog"], "train": ["v_graffiti"]}}
    lengths = {"v_wall": 5, "i_fog": 5, "v_graffiti": 4}
    root = write_set(tmp_path / "mine", lengths, size=65, splits=splits)
    listed = {part: hashlib.sha256("\n".join(sorted(names)).encode()).hexdigest()
              for part, names in splits["a"].items()}  # fmt: skip
    monkeypatch.setitem(OFFICIAL, "split_test_sha256", {"a": listed["test"]})
    monkeypatch.setitem(OFFICIAL, "split_train_sha256", {"a": listed["train"]})
    monkeypatch.setitem(OFFICIAL, "lengths", {s: (n, n) for s, n in lengths.items()})
    pixels = strips.read(strips.check(root / "patches/v_graffiti/ref.png"))
    known = {"v_graffiti/ref": hashlib.sha256(pixels.tobytes()).hexdigest()}
    monkeypatch.setitem(OFFICIAL, "pixels_sha256", known)
    return root


def test_a_set_with_all_known_facts_is_hpatches_and_says_what_is_not_known(official):
    for training in (False, True):
        dataset = open_set(official, "a", training=training).dataset
        assert dataset.name == "hpatches"
        assert dataset.unchecked == (UNCHECKED,)
    assert open_training(official).unchecked == (UNCHECKED,)


def test_other_pixels_of_the_known_strip_make_another_set(official, caplog):
    file = official / "patches/v_graffiti/ref.png"
    image = cv2.imread(str(file), cv2.IMREAD_GRAYSCALE)
    image[70, 3] ^= 1
    cv2.imwrite(str(file), image)
    dataset = open_set(official, "a").dataset  # the strip is not in the split
    assert (dataset.name, dataset.unchecked) == ("hpatches-mine", ())
    assert f"is not the published hpatches; its scores are kept under the name {dataset.name}" in (
        caplog.text
    )
    assert f"{file} has other pixels" in caplog.text


def test_another_number_of_patches_makes_another_set(official, monkeypatch, caplog):
    monkeypatch.setitem(OFFICIAL["lengths"], "i_fog", (6, 7))
    assert open_set(official, "a").dataset.name == "hpatches-mine"
    assert "i_fog has 5 patches, not 6 to 7" in caplog.text


def test_whitening_on_other_sequences_than_the_official_ones_is_another_set(official, caplog):
    splits = {"a": {"test": ["v_wall", "i_fog"], "train": ["v_more"]}}
    shutil.copytree(official / "patches/v_graffiti", official / "patches/v_more")
    OFFICIAL["lengths"]["v_more"] = (4, 4)
    (official / "tasks/splits.json").write_text(json.dumps(splits))
    assert open_set(official, "a").dataset.name == "hpatches"
    assert open_set(official, "a", training=True).dataset.name == "hpatches-mine"
    assert "its split a has other sequences to train" in caplog.text


@pytest.mark.data
def test_the_known_strip_is_the_official_one(shared):
    found = strips.check(shared / "hpatches/patches/v_graffiti/ref.png")
    pixels = hashlib.sha256(strips.read(found).tobytes()).hexdigest()
    assert OFFICIAL["pixels_sha256"] == {"v_graffiti/ref": pixels}
    assert OFFICIAL["lengths"]["v_graffiti"] == [found.patches, found.patches]


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("mini", "hpatches-mini"),
        ("My set (2)", "hpatches-my_set__2_"),
        ("sample", "hpatches-sample-folder"),
        ("built-Streets", "hpatches-built-streets-folder"),
    ],
)
def test_a_set_without_a_name_is_called_after_its_folder(tmp_path, folder, name):
    assert open_set(write_set(tmp_path / folder, LENGTHS), None).dataset.name == name


@pytest.mark.parametrize("name", ["hpatches-sample", "hpatches-mini", "hpatches-built-a.b+c_d-1"])
def test_a_set_may_bring_its_name(root, name):
    (root / "dataset.json").write_text(json.dumps({"name": name}))
    assert open_set(root, "a").dataset.name == name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '{"name": "hpatches"}',
            "names the set 'hpatches'; the name must have .*hpatches-built-NAME",
        ),
        ('{"name": "hpatches-built-a/b"}', "names the set 'hpatches-built-a/b'"),
        ('{"name": "hpatches-mine"}', "names the set 'hpatches-mine'"),
        ('{"title": "mine"}', "does not name its data set"),
    ],
)
def test_a_malformed_name_is_refused_by_the_name_of_the_file(root, text, message):
    (root / "dataset.json").write_text(text)
    with pytest.raises(ValueError, match=rf"dataset\.json {message}"):
        open_set(root, "a")


@pytest.mark.parametrize("made", [3, None, ["v_one"], {"v_one": "v_wall"}])
def test_malformed_facts_of_sequences_are_refused(root, made):
    (root / "dataset.json").write_text(json.dumps({"name": "hpatches-mini", "sequences": made}))
    with pytest.raises(ValueError, match=r"dataset\.json: its sequences are .* correct the file"):
        open_set(root, "a")


def test_sources_are_the_sequences_of_this_set_and_the_official_ones_among_them(tmp_path):
    root = write_set(tmp_path / "mine", {"v_wall": 5, "i_own": 5})
    assert open_set(root, None).dataset.sources == {
        "hpatches-mine/v_wall", "hpatches-mine/i_own", "hpatches/v_wall",
    }  # fmt: skip


def test_the_tasks_of_a_command_share_blocks_that_are_checked_once(root, monkeypatch, caplog):
    checked = []
    check = strips.check
    monkeypatch.setattr(strips, "check", lambda file: checked.append(file) or check(file))
    with caplog.at_level(logging.INFO):
        first, second = (open_set(root, "a") for _ in range(2))
    assert first.dataset.blocks is second.dataset.blocks
    assert len(checked) == 2 * 16
    assert caplog.text.count("checking 32 strips of") == 1


def test_a_strip_that_was_written_since_is_checked_again(root):
    before = open_set(root, "a").dataset
    file = root / "patches/v_one/e1.png"
    assert cv2.imwrite(str(file), 255 - cv2.imread(str(file), cv2.IMREAD_GRAYSCALE))
    os.utime(file, ns=(0, 0))  # a clock may be too coarse to tell
    assert open_set(root, "a").dataset.sha256 != before.sha256


def test_a_name_or_a_split_that_was_written_since_is_read_again(root):
    open_set(root, "a")
    (root / "dataset.json").write_text('{"name": "hpatches-mini"}')
    (root / "tasks/splits.json").write_text('{"a": {"test": ["v_two"]}}')
    opened = open_set(root, "a")
    assert (opened.dataset.name, opened.test) == ("hpatches-mini", ("v_two",))


def test_a_strip_that_changed_since_it_was_checked_is_not_read(root):
    block = open_set(root, "a").dataset.blocks[1]
    file = root / "patches/v_one/e1.png"
    assert cv2.imwrite(str(file), 255 - cv2.imread(str(file), cv2.IMREAD_GRAYSCALE))
    with pytest.raises(ValueError, match=r"e1\.png changed since it was checked"):
        block.read()


def test_the_training_part_is_read_where_it_is_asked_for(root):
    opened = open_set(root, "a", training=True)
    names = [block.name for block in opened.dataset.blocks]
    assert names[-2:] == ["i_two/ref", "v_two/ref"]
    assert len(opened.train_rows()) == 8 + 9


def test_tasks_are_also_found_beside_the_folder_of_sequences(root):
    assert open_set(root / "patches", None).test == ("v_one", "i_one")


def test_a_folder_of_many_data_sets_is_searched(root, tmp_path):
    moved = tmp_path / "many" / "hpatches"
    moved.parent.mkdir()
    root.rename(moved)
    assert open_set(moved.parent, None).test == open_set(moved, None).test == ("v_one", "i_one")


def test_a_split_without_training_part_cannot_be_whitened(tmp_path):
    with pytest.raises(ValueError, match="no training part"):
        open_set(write_set(tmp_path, LENGTHS), None, training=True)


def test_the_whitening_of_a_built_set_is_fitted_on_its_other_half(tmp_path):
    with pytest.raises(ValueError, match="of a built set half"):
        open_set(write_set(tmp_path, LENGTHS), None, training=True)


@pytest.mark.parametrize(
    ("names", "chosen"), [("ba", "a"), ("b", "b"), (["half", "full"], "full"), ("bc", None)]
)
def test_where_no_split_is_asked_for_it_is_a_or_the_only_one_or_full(root, names, chosen):
    known = {name: {"test": ["v_one"]} for name in names}
    (root / "tasks/splits.json").write_text(json.dumps(known))
    if chosen is None:
        with pytest.raises(LookupError, match=r"splits\.json has b, c: choose one with --split"):
            open_set(root, None)
    else:
        assert open_set(root, None).dataset.split == chosen


def test_a_split_that_no_file_can_define_is_answered_with_the_missing_file(tmp_path):
    root = write_set(tmp_path / "own", LENGTHS)
    with pytest.raises(LookupError, match=r"no split named 'a': .*splits\.json in .*own/tasks"):
        open_set(root, "a")
    (root / "patches" / "tasks").mkdir()
    with pytest.raises(LookupError, match=r"there is no splits\.json in .*own/patches/tasks, so"):
        open_set(root / "patches", "a")


@pytest.mark.parametrize(
    ("name", "split", "message"),
    [
        ("a", {"test": []}, "split 'a': the test list is empty"),
        ("a", {"test": "v_one"}, "is not a table of splits .*'v_one' is not a list of names"),
        ("a", {"test": ["v_one"], "train": "i_one"}, "is not a table of splits .*'i_one' is no"),
        ("a", {"test": ["v_one", 1]}, "is not a table of splits"),
        ("a", {"test": ["v_one", "v_one"]}, "split 'a': v_one is listed 2 times"),
        ("a", {"test": ["v_one"], "train": ["i_one", "v_one"]}, "split 'a': v_one is listed 2"),
        ("a", {"test": ["../v_one"]}, "split 'a': '../v_one' can't be part of a path"),
        ("a/b", {"test": ["v_one"]}, "split 'a/b': 'a/b' can't be part of a path"),
        ("..", {"test": ["v_one"]}, "split '..': '..' can't be part of a path"),
        (".", {"test": ["v_one"]}, "split '.': '.' can't be part of a path"),
        ("", {"test": ["v_one"]}, "split '': '' can't be part of a path"),
    ],
)
def test_a_malformed_split_is_refused_by_the_name_of_the_file(root, name, split, message):
    (root / "tasks/splits.json").write_text(json.dumps({**SPLITS, name: split}))
    with pytest.raises(ValueError, match=rf"splits\.json,? {message}"):
        open_set(root, "a")


def test_a_table_without_splits_is_refused(root):
    (root / "tasks/splits.json").write_text("{}")
    with pytest.raises(ValueError, match=r"splits\.json holds no split"):
        open_set(root, None)


@pytest.mark.data
def test_the_official_splits_are_read(shared, tmp_path):
    folder = shared / "hpatches/official_tasks"
    for name, listed in OFFICIAL["split_test_sha256"].items():
        _, split = splits.choose(name, tmp_path, [folder])
        assert hashlib.sha256("\n".join(sorted(split.test)).encode()).hexdigest() == listed


def test_an_unknown_split_is_answered_with_a_known_one(root):
    with pytest.raises(LookupError, match="no split named 'aa'; did you mean 'a'"):
        open_set(root, "aa")


def test_a_missing_strip_is_named(root):
    (root / "patches/v_one/t5.png").unlink()
    with pytest.raises(FileNotFoundError, match=r"v_one/t5\.png is missing"):
        open_set(root, "a")


def test_a_missing_sequence_is_an_error(tmp_path):
    root = write_set(tmp_path, {"v_one": 7}, splits=SPLITS)
    with pytest.raises(FileNotFoundError, match=r"lacks 1 of 2 .*\(i_one\).*--allow-partial"):
        open_set(root, "a")


def test_what_is_there_can_be_scored_where_the_user_allows_it(tmp_path):
    root = write_set(tmp_path, {"v_one": 7}, splits=SPLITS)
    opened = open_set(root, "a", allow_partial=True)
    assert opened.test == ("v_one",)
    assert not opened.dataset.complete


def test_partial_data_are_another_split_of_the_same_sources(tmp_path):
    root = write_set(tmp_path / "own", {"v_one": 7}, splits=SPLITS)
    dataset = matching(data=root, split="a", allow_partial=True).dataset
    assert (dataset.name, dataset.split) == ("hpatches-own", "a@partial")
    assert dataset.sources == {"hpatches-own/v_one"}


def test_complete_data_are_the_whole_split_where_less_is_allowed(root):
    assert matching(data=root, split="a", allow_partial=True).dataset.split == "a"


@pytest.mark.parametrize(
    ("lengths", "kind"), [({"v_one": 7, "i_one": 8}, "train"), ({"v_two": 7}, "test")]
)
def test_whole_parts_may_not_be_missing(tmp_path, lengths, kind):
    root = write_set(tmp_path, lengths, splits=SPLITS)
    with pytest.raises(FileNotFoundError, match=f"no {kind} sequence is left"):
        open_set(root, "a", allow_partial=True, training=True)


def test_unequal_counts_are_named(root):
    file = root / "patches/v_one/h2.png"
    image = cv2.imread(str(file), cv2.IMREAD_GRAYSCALE)
    cv2.imwrite(str(file), image[:-8])
    with pytest.raises(ValueError, match=r"h2\.png has 6 patches, .*ref\.png has 7"):
        open_set(root, "a")


def test_a_strip_that_is_no_column_of_squares_is_named(root):
    cv2.imwrite(str(root / "patches/v_one/e1.png"), np.zeros((57, 8), np.uint8))
    with pytest.raises(ValueError, match=r"e1\.png is 8 x 57 pixels"):
        open_set(root, "a")


def test_mixed_widths_are_named(root):
    for strip in STRIPS:
        cv2.imwrite(str(root / f"patches/v_one/{strip}.png"), np.zeros((70, 10), np.uint8))
    with pytest.raises(ValueError, match="mixes patch widths"):
        open_set(root, "a")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda data: data[:-20], "cut off|damaged"),
        (lambda data: data[:60] + bytes([data[60] ^ 1]) + data[61:], "damaged at byte"),
        (lambda data: b"<html>not found</html>", "is not a PNG file"),
        (lambda data: b"", "is not a PNG file"),
    ],
)
def test_a_spoilt_file_is_named_before_any_work(root, spoil, message):
    file = root / "patches/i_one/e4.png"
    file.write_bytes(spoil(file.read_bytes()))
    with pytest.raises(ValueError, match=rf"e4\.png.*({message})|({message})"):
        open_set(root, "a")


def test_sixteen_bits_are_refused(root):
    cv2.imwrite(str(root / "patches/i_one/e4.png"), np.zeros((72, 8), np.uint16))
    with pytest.raises(ValueError, match="16 bits a sample"):
        open_set(root, "a")


def test_colours_are_refused_and_not_turned_grey(root):
    cv2.imwrite(str(root / "patches/i_one/e4.png"), np.zeros((72, 8, 3), np.uint8))
    with pytest.raises(ValueError, match=r"e4\.png has 8 bits a sample, colour type 2"):
        open_set(root, "a")


def with_header(data, header):
    """A PNG file with another first chunk, its checksum right."""
    chunk = b"IHDR" + header
    first = struct.pack(">I", len(header)) + chunk + struct.pack(">I", zlib.crc32(chunk))
    return data[:8] + first + data[33:]


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (struct.pack(">IIBBBBB", 8, 72, 8, 0, 0, 0, 1), "interlace 1: strips must have"),
        (struct.pack(">IIBBBBB", 8, 72, 4, 0, 0, 0, 0), "has 4 bits a sample"),
        (struct.pack(">IIBBBBB", 8, 72, 8, 3, 0, 0, 0), "colour type 3"),
        (struct.pack(">IIB", 8, 72, 8), "b'IHDR' of 9 bytes, .*get it again"),
        (b"", "b'IHDR' of 0 bytes"),
        (struct.pack(">IIBBBBB", 8, 1_000_008, 8, 0, 0, 0, 0), "1000008 pixels high, .* 125000 pa"),
    ],
)
def test_an_unusual_header_is_refused_before_any_work(root, header, message):
    file = root / "patches/i_one/e4.png"
    file.write_bytes(with_header(file.read_bytes(), header))
    with pytest.raises(ValueError, match=rf"e4\.png .*{message}"):
        open_set(root, "a")


def test_a_file_that_begins_with_another_chunk_is_refused(root):
    file = root / "patches/i_one/e4.png"
    data = file.read_bytes()
    file.write_bytes(data[:8] + data[33:])
    with pytest.raises(ValueError, match=r"e4\.png begins with b'IDAT'"):
        open_set(root, "a")


def test_the_highest_strip_is_read(tmp_path):
    root = write_set(tmp_path, {"v_one": 2}, size=8)
    tall = np.arange(1_000_000, dtype=np.uint32).astype(np.uint8)[:, None].repeat(8, axis=1)
    for strip in STRIPS:
        assert cv2.imwrite(str(root / f"patches/v_one/{strip}.png"), tall)
    block = open_set(root, None).dataset.blocks[3]
    np.testing.assert_array_equal(block.read().reshape(tall.shape), tall)


def test_folders_without_strips_are_an_error(tmp_path):
    (tmp_path / "v_one").mkdir()
    with pytest.raises(FileNotFoundError, match=r"no folder in .* has a strip"):
        open_set(tmp_path, None)


def test_a_folder_without_sequences_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="has no sequence"):
        open_set(tmp_path, None)


def test_a_missing_folder_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="is not a folder"):
        open_set(tmp_path / "none", None)


def test_a_damaged_table_of_splits_is_named(root):
    (root / "tasks/splits.json").write_text('{"a": {"train": []}}')
    with pytest.raises(ValueError, match=r"splits\.json is not a table of splits"):
        open_set(root, "a")


@pytest.mark.data
def test_the_one_official_strip_found_is_read(shared, tmp_path):
    folder = tmp_path / "patches" / "v_graffiti"
    folder.mkdir(parents=True)
    for strip in STRIPS:
        (folder / f"{strip}.png").symlink_to(shared / "hpatches/patches/v_graffiti/ref.png")
    opened = open_set(tmp_path, None)
    assert opened.lengths == {"v_graffiti": 1123}
    assert opened.dataset.blocks[0].read().shape == (1123, 65, 65)
