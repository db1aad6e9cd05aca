"""A file that was checked before is not read again, and no change of it stays unseen."""

import os
import time

import pytest

from harness import verified
from harness.files import home

TICK = 0.02  # seconds: longer than a step of the clock of files


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    made = [tmp_path / folder / name for folder in "ab" for name in ("one", "two")]
    for number, file in enumerate(made):
        file.parent.mkdir(exist_ok=True)
        file.write_text(str(number))
    return made


@pytest.fixture
def old(files, monkeypatch):
    """The files, which count as written long ago."""
    monkeypatch.setattr(verified, "FRESH", -(10**9))
    return files


class Check:
    """Reads files, and keeps which it read."""

    def __init__(self):
        self.read = []

    def __call__(self, file):
        self.read.append(file)
        return [int(file.read_text()), file.name]


def test_facts_are_those_of_the_check_in_the_order_of_the_files(files):
    for _ in range(2):
        found = verified.facts("k", files[::-1], Check())
        assert found == [[3, "two"], [2, "one"], [1, "two"], [0, "one"]]
    assert verified.facts("k", [], Check()) == []


def test_old_files_are_not_read_again(old):
    verified.facts("k", old, Check())
    again = Check()
    assert verified.facts("k", old, again) == [Check()(file) for file in old]
    assert again.read == []


def test_files_that_were_just_written_are_read_again(files):
    verified.facts("k", files, Check())
    again = Check()
    verified.facts("k", files, again)
    assert sorted(again.read) == sorted(files)


def rewrite(file):
    file.write_text("7")


def rewrite_at_the_same_time(file):
    before = file.stat()
    file.write_text("7")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def replace_by_another_of_the_same_time(file):
    before = file.stat()
    other = file.with_name("other")
    other.write_text("7")
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(file)


def write_more(file):
    file.write_text("07")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no time of change")
@pytest.mark.parametrize(
    "change",
    [rewrite, rewrite_at_the_same_time, replace_by_another_of_the_same_time, write_more],
)
def test_a_changed_file_is_read_again_and_the_others_are_not(change, old):
    verified.facts("k", old, Check())
    time.sleep(TICK)
    change(old[1])
    again = Check()
    assert verified.facts("k", old, again)[1] == [7, "two"]
    assert again.read == [old[1]]


def test_a_file_that_changes_while_it_is_read_is_read_again(old):
    def busy(file):
        time.sleep(TICK)
        file.write_text(file.read_text() + "0")
        return Check()(file)

    verified.facts("k", old[:1], busy)
    again = Check()
    verified.facts("k", old[:1], again)
    assert again.read == old[:1]


def test_another_check_takes_no_facts_of_this_one(old):
    verified.facts("k", old, Check())
    other = Check()
    verified.facts("k 2", old, other)
    assert sorted(other.read) == sorted(old)


def test_checks_of_a_few_files_keep_the_facts_of_the_others(old):
    verified.facts("k", old, Check())
    verified.facts("k", old[:1], Check())
    again = Check()
    verified.facts("k", old, again)
    assert again.read == []


def test_a_damaged_entry_is_no_entry(old, caplog):
    verified.facts("k", old, Check())
    for entry in home.cache("verified").rglob("*.entry"):
        entry.write_bytes(entry.read_bytes().replace(b"one", b"two"))
    again = Check()
    verified.facts("k", old, again)
    assert sorted(again.read) == sorted(old)
    assert "is damaged" in caplog.text


def test_files_of_the_cache_are_always_read(old, monkeypatch):
    monkeypatch.setenv("HARNESS_CACHE", str(old[0].parents[1]))
    verified.facts("k", old, Check())
    again = Check()
    verified.facts("k", old, again)
    assert sorted(again.read) == sorted(old)
    assert not home.cache("verified").exists()


def test_the_first_wrong_file_is_told_and_nothing_is_kept(old):
    old[1].write_text("no number")
    old[3].unlink()
    with pytest.raises(ValueError, match="no number"):
        verified.facts("k", old, Check())
    old[1].write_text("1")
    with pytest.raises(FileNotFoundError):
        verified.facts("k", old, Check())
    again = Check()
    verified.facts("k", old[:3], again)
    assert sorted(again.read) == old[:3]
