"""One rule for text files of data sets."""

import json
import unicodedata

import numpy as np
import pytest

from harness.files import texts
from protocols import naming
from protocols.eth import truth
from protocols.hpatches import splits
from protocols.imaging import sequences
from zoo.training import recipe

BOM = b"\xef\xbb\xbf"
FORMS = {
    "plain": lambda text: text,
    "byte order mark": lambda text: BOM + text,
    "windows": lambda text: BOM + text.replace(b"\n", b"\r\n"),
    "old mac": lambda text: text.replace(b"\n", b"\r"),
}


def given(folder, name, text):
    (folder / name).write_bytes(text)
    return folder / name


@pytest.fixture(params=FORMS)
def form(request):
    return FORMS[request.param]


def test_every_form_of_a_text_is_one_text(tmp_path, form):
    assert (
        texts.read(given(tmp_path, "a", form(b"a \xc3\xa9\n\nb\n")))
        == "a \N{LATIN SMALL LETTER E WITH ACUTE}\n\nb\n"
    )


@pytest.mark.parametrize("data", ["a\n".encode("utf-16"), b"caf\xe9\n"])
def test_other_encodings_are_refused_by_name(tmp_path, data):
    with pytest.raises(ValueError, match=r"a\.txt is not UTF-8 text .*save it as UTF-8"):
        texts.read(given(tmp_path, "a.txt", data))


@pytest.mark.parametrize("text", [b"1 2\n3 4", b"1 2\n3 4 \t", b"1"])
def test_a_table_without_its_last_line_end_may_be_cut_off(tmp_path, text):
    with pytest.raises(ValueError, match=r"a\.txt: it doesn't end with a line end, so its last"):
        texts.read_table(given(tmp_path, "a.txt", text))


@pytest.mark.parametrize("text", [b"", b" ", b"1 2\n", b"1 2\n \n\t", b"1 2\r"])
def test_a_whole_table_is_read(tmp_path, text):
    assert texts.read_table(given(tmp_path, "a.txt", text)).split() == text.decode().split()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "nested too deeply"),
        ("1" * 5000, "is not JSON"),
        ("{", "is not JSON"),
        ("", "is not JSON"),
    ],
)
def test_what_is_no_json_of_ours_is_refused_by_name(tmp_path, text, message):
    file = given(tmp_path, "a.json", text.encode())
    with pytest.raises(ValueError, match=rf"a\.json.*{message}"):
        texts.read_json(file)
    with pytest.raises(ValueError, match=r"a\.json"):
        naming.granted(file, "x")


@pytest.mark.parametrize("word", ["1_0", "\N{ARABIC-INDIC DIGIT ONE}", "x", "", "0x1"])
def test_a_number_is_written_in_plain_digits(word):
    with pytest.raises(ValueError, match="is not a number"):
        texts.number(word)


# ---- the readers


def test_homographies_are_read_in_every_form(tmp_path, form):
    file = given(tmp_path, "H_1_2", form(b"1 0 5\n0 1 -3\n0 0 1\n"))
    np.testing.assert_array_equal(
        sequences._homography(file, 10, 10), [[1, 0, 5], [0, 1, -3], [0, 0, 1]]
    )


def test_a_homography_cut_in_its_last_number_is_refused(tmp_path):
    file = given(tmp_path, "H_1_2", b"1 0 5\n0 1 -3\n0 0 1.2")
    with pytest.raises(ValueError, match="H_1_2: it doesn't end with a line end"):
        sequences._homography(file, 10, 10)


def test_cameras_are_read_in_every_form(tmp_path, form):
    text = b"9 0 3\n0 9 2\n0 0 1\n0 0 0\n1 0 0\n0 1 0\n0 0 1\n5 6 7\n640 480\n"
    given(tmp_path, "a.png.camera", form(text))
    known = truth.read(tmp_path, ["a.png"])
    assert known.centre.tolist() == [[5, 6, 7]]
    assert known.size.tolist() == [[640, 480]]


def test_recipes_are_read_in_every_form(tmp_path, form):
    text = (recipe.RECIPES / "hardnet.toml").read_bytes()
    assert recipe.read(str(given(tmp_path, "hardnet.toml", form(text)))) == recipe.read("hardnet")


def test_splits_are_read_in_every_form_and_names_in_either_unicode_form(tmp_path, form):
    name = unicodedata.normalize("NFD", "v_café")
    (tmp_path / "patches" / name).mkdir(parents=True)
    composed = unicodedata.normalize("NFC", name)
    text = json.dumps({"a": {"test": [name]}}, ensure_ascii=False, indent=1).encode()
    given(tmp_path, "splits.json", form(text))
    chosen = splits.choose(None, tmp_path / "patches", [tmp_path])
    assert chosen == ("a", splits.Split((composed,), ()))
