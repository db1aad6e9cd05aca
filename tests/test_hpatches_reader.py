import hashlib

import cv2
import numpy as np
import pytest
from hpatches_files import LENGTHS, SPLITS, write_set

from protocols.hpatches.reader import STRIPS, open_set


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


def test_the_training_part_is_read_where_it_is_asked_for(root):
    opened = open_set(root, "a", training=True)
    names = [block.name for block in opened.dataset.blocks]
    assert names[-2:] == ["i_two/ref", "v_two/ref"]
    assert len(opened.train_rows()) == 8 + 9


def test_tasks_are_also_found_beside_the_folder_of_sequences(root):
    assert open_set(root / "patches", None).test == ("v_one", "i_one")


def test_a_split_without_training_part_cannot_be_whitened(tmp_path):
    with pytest.raises(ValueError, match="no training part"):
        open_set(write_set(tmp_path, LENGTHS), None, training=True)


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
