"""Names of data sets: what a dataset.json may grant, and what a folder is called."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.records.record import folder_of
from protocols.naming import after_folder, granted

FORMS = ("field-sample", "field-built-NAME")


def written(folder, body):
    file = folder / "dataset.json"
    file.write_text(body if isinstance(body, str) else json.dumps(body), encoding="utf-8")
    return file


@pytest.mark.parametrize("name", ["field-sample", "field-built-a.b+c_d-1"])
def test_a_name_of_one_of_the_forms_is_granted_with_all_that_the_file_says(tmp_path, name):
    about = {"name": name, "version": 1}
    assert granted(written(tmp_path, about), *FORMS) == (name, about)


@pytest.mark.parametrize(
    "name",
    [
        *("field", "field-other", "field-samples", "fieldXsample", "field-built-", "field-built-ä"),
        *("field-built-a/b", "../field-built-a", "field-built-a\n", ["field-sample"], 7, None),
    ],
)
def test_another_name_is_refused_and_the_forms_are_named(tmp_path, name):
    file = written(tmp_path, {"name": name})
    with pytest.raises(
        ValueError, match="must have the form field-sample or field-built-NAME"
    ) as refusal:
        granted(file, *FORMS)
    assert str(refusal.value).startswith(f"{file} names the set {name!r}; ")


@pytest.mark.parametrize(
    "body", ["", "{", "[]", "{}", '"name"', "7", "field-sample", "[" * 100_000]
)
def test_a_file_without_a_name_is_refused(tmp_path, body):
    file = written(tmp_path, body)
    with pytest.raises(
        ValueError, match=r"does not name its data set .*move the file away"
    ) as refusal:
        granted(file, *FORMS)
    assert str(refusal.value).startswith(str(file))


def test_bytes_that_are_no_text_are_refused(tmp_path):
    file = tmp_path / "dataset.json"
    file.write_bytes(b"\xff\xfe\x00{")
    with pytest.raises(ValueError, match="does not name its data set"):
        granted(file, *FORMS)


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("mine", "field-mine"),
        ("My set (2) é", "field-my_set__2___"),
        ("sample", "field-sample-folder"),
        ("built-Streets", "field-built-streets-folder"),
    ],
)
def test_a_set_is_called_after_its_folder_but_never_as_one_made_here(tmp_path, folder, name):
    assert after_folder("field", tmp_path / folder, "field-sample", "field-built-") == name


def test_a_link_is_called_after_where_it_leads(tmp_path):
    (tmp_path / "set").mkdir()
    (tmp_path / "link").symlink_to("set")
    assert after_folder("field", tmp_path / "link") == "field-set"


@given(st.text(min_size=1).filter(lambda name: "/" not in name and "\0" not in name))
def test_every_folder_has_a_name_that_can_stand_in_a_path(name):
    try:
        folder = Path("/sets") / name
        found = after_folder("field", folder)
    except UnicodeEncodeError:  # no file system takes it
        return
    assert folder_of(Path("/results"), found).name == found
