import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import cv2
import numpy as np
import pytest

from harness import home
from protocols.hpatches import sample as sample_module
from protocols.hpatches.reader import STRIPS, open_set
from protocols.hpatches.sample import PATCHES, SEQUENCES, SHA256, fingerprint, sample, verify


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A sample of one file, in a cache of its own."""
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "file").write_text("1")
    make = partial(shutil.copytree, tmp_path / "made", dirs_exist_ok=True)
    monkeypatch.setattr(sample_module, "make", make)
    monkeypatch.setattr(sample_module, "SHA256", fingerprint(tmp_path / "made"))


def test_the_sample_has_the_same_bytes_on_every_machine():
    assert fingerprint(sample()) == SHA256


def test_the_sample_is_made_once():
    before = (sample() / "dataset.json").stat().st_mtime_ns
    assert (sample() / "dataset.json").stat().st_mtime_ns == before


def test_a_lock_is_all_that_is_left_beside_the_sample():
    name = sample().name
    left = {file.name for file in sample().parent.glob(f"*{name}*")}
    assert left - {f"{name}.lock"} == {name}


def test_processes_that_want_the_sample_at_once_get_one(small):
    with ThreadPoolExecutor(8) as pool:
        folders = set(pool.map(lambda _: sample(), range(8)))
    assert [[f.name for f in folder.iterdir()] for folder in folders] == [["file"]]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda folder: (folder / "file").write_text("2"),
        lambda folder: (folder / "file").unlink(),
        lambda folder: (folder / "more").touch(),
    ],
)
def test_a_sample_that_was_changed_is_made_again(small, caplog, spoil):
    spoil(sample())
    assert not caplog.text
    verify(sample())
    assert f"{sample()} is damaged or was edited" in caplog.text


def test_a_changed_sample_stays_where_no_other_can_be_made(small, monkeypatch):
    (sample() / "more").touch()
    monkeypatch.setattr(sample_module, "make", lambda folder: (folder / "odd").touch())
    with pytest.raises(RuntimeError, match="of version 1"):
        sample()
    assert {f.name for f in home.cache("datasets", "hpatches-sample-v1").iterdir()} == {
        "file",
        "more",
    }


def test_another_set_than_that_of_the_version_is_refused_and_not_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path))
    monkeypatch.setattr(sample_module, "make", lambda folder: (folder / "odd").touch())
    with pytest.raises(RuntimeError, match=rf"of version 1 is {SHA256}.*Report .*numpy \d"):
        sample()
    assert not [p for p in home.cache("datasets").iterdir() if p.is_dir()]


def test_the_fingerprint_sees_names_and_contents(tmp_path):
    (tmp_path / "a").write_text("1")
    first = fingerprint(tmp_path)
    (tmp_path / "a").write_text("2")
    second = fingerprint(tmp_path)
    (tmp_path / "a").rename(tmp_path / "b")
    assert len({first, second, fingerprint(tmp_path)}) == 3


def test_verify_takes_the_sample():
    verify(sample())


def test_the_sample_is_read_as_one_in_the_official_format():
    opened = open_set(sample(), None)
    assert opened.dataset.name == "hpatches-sample"
    assert opened.dataset.sources == {f"hpatches-sample/{sequence}" for sequence in opened.test}
    assert len(opened.test) == 6
    assert set(opened.lengths.values()) == {PATCHES}


def test_both_kinds_of_sequence_are_in_both_parts():
    split = json.loads((sample() / "tasks" / "splits.json").read_text())["sample"]
    assert sorted(split["test"] + split["train"]) == sorted(SEQUENCES)
    for part, of_each in (("test", 3), ("train", 1)):
        assert [sum(s.startswith(kind) for s in split[part]) for kind in "iv"] == [of_each] * 2


@pytest.mark.parametrize("sequence", sorted(SEQUENCES))
def test_corresponding_patches_are_more_alike_than_others(sequence):
    rows = {}
    for name in STRIPS:
        image = cv2.imread(str(sample() / "patches" / sequence / f"{name}.png"), 0)
        patches = image.reshape(PATCHES, -1).astype(float)
        patches -= patches.mean(axis=1, keepdims=True)
        rows[name] = patches / (patches.std(axis=1, keepdims=True) + 1e-9)
    for name in ("e1", "e5", "h3"):
        alike = np.median((rows["ref"] * rows[name]).mean(axis=1))
        others = np.median((rows["ref"] * np.roll(rows[name], 50, axis=0)).mean(axis=1))
        assert alike > others + 0.05
