"""Sets kept in the cache: made once, the same everywhere, made again where they were changed."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from importlib import resources

import cv2
import numpy as np
import pytest

from harness.cache import fingerprint
from harness.files import home
from protocols.hpatches import sample as hpatches
from protocols.hpatches_sequences import sample as hpatches_sequences
from protocols.oxford import sample as oxford
from protocols.phototour import sample as phototour
from protocols.romepatches import sample as romepatches
from protocols.samples import kept, photograph

SAMPLES = {
    "hpatches-sample": hpatches,
    "hpatches-sequences-sample": hpatches_sequences,
    "oxford-sample": oxford,
    "phototour-sample": phototour,
    "romepatches-sample": romepatches,
}


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A sample of one file, in a cache of its own; another way to make it may be given."""
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    made = tmp_path / "made"
    made.mkdir()
    (made / "file").write_text("1")

    def copied(folder):
        shutil.copytree(made, folder, dirs_exist_ok=True)

    return lambda make=copied, **other: kept("small", 1, make, fingerprint(made), **other)


def odd(folder):
    (folder / "odd").touch()


# ---- the laws, on every sample


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_is_made_once(name):
    sample = SAMPLES[name].sample
    before = (sample() / "dataset.json").stat().st_mtime_ns
    assert (sample() / "dataset.json").stat().st_mtime_ns == before


@pytest.mark.parametrize("name", SAMPLES)
def test_a_lock_is_all_that_is_left_beside_a_sample(name):
    folder = SAMPLES[name].sample()
    assert folder == home.cache("datasets", f"{name}-v{SAMPLES[name].VERSION}")
    left = {file.name for file in folder.parent.glob(f"*{folder.name}*")}
    assert left - {f"{folder.name}.lock"} == {folder.name}


@pytest.mark.parametrize("name", SAMPLES)
def test_another_set_than_that_of_the_version_is_refused_and_not_kept(name, tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path))
    monkeypatch.setattr(SAMPLES[name], "make", odd)
    wanted = SAMPLES[name].SHA256
    with pytest.raises(RuntimeError, match=rf"of version 1 is {wanted}.*Report .*numpy \d"):
        SAMPLES[name].sample()
    assert not [p for p in home.cache("datasets").iterdir() if p.is_dir()]


# ---- the laws, on a small one


def test_processes_that_want_a_sample_at_once_get_one(small):
    with ThreadPoolExecutor(8) as pool:
        folders = set(pool.map(lambda _: small(), range(8)))
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
    spoil(small())
    assert not caplog.text
    folder = small()
    assert {f.name: f.read_text() for f in folder.iterdir()} == {"file": "1"}
    assert f"{folder} is damaged or was edited" in caplog.text


def test_a_changed_sample_stays_where_no_other_can_be_made(small):
    folder = small()
    (folder / "more").touch()
    with pytest.raises(RuntimeError, match="of version 1"):
        small(odd)
    assert {f.name for f in folder.iterdir()} == {"file", "more"}


def test_a_sample_may_have_a_hash_of_its_own(small):
    wanted = fingerprint(small())
    (small() / "more").touch()
    assert small(odd, contents=lambda folder: wanted) == home.cache("datasets", "small-v1")
    with pytest.raises(RuntimeError, match="has sha256 another, that of version 1 is"):
        small(contents=lambda folder: "another")


# ---- the parts


def test_the_fingerprint_sees_names_and_contents(tmp_path):
    (tmp_path / "a").write_text("1")
    first = fingerprint(tmp_path)
    (tmp_path / "a").write_text("2")
    second = fingerprint(tmp_path)
    (tmp_path / "a").rename(tmp_path / "b")
    missing = fingerprint(tmp_path / "nowhere")
    assert len({first, second, fingerprint(tmp_path), missing}) == 4


def test_a_photograph_is_read_in_grey():
    file = resources.files("skimage") / "data" / "camera.png"
    np.testing.assert_array_equal(
        photograph("camera.png", "my-sample"), cv2.imread(str(file), cv2.IMREAD_GRAYSCALE)
    )


def test_a_photograph_that_is_not_installed_is_named():
    with pytest.raises(RuntimeError, match=r"without no\.png, which my-sample is made .*install"):
        photograph("no.png", "my-sample")
