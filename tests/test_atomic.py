import os

import pytest

from harness import atomic


def filled(folder):
    with atomic.placing(folder) as unfinished:
        (unfinished / "x.txt").write_text("x")
    return folder / "x.txt"


def test_a_folder_appears_when_it_is_whole(tmp_path):
    with pytest.raises(RuntimeError), atomic.placing(tmp_path / "out") as unfinished:
        (unfinished / "x.txt").write_text("x")
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []
    assert filled(tmp_path / "a/b").read_text() == "x"


def test_an_empty_folder_and_a_link_to_one_are_filled(tmp_path):
    (tmp_path / "empty").mkdir()
    assert filled(tmp_path / "empty").is_file()
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there")
    assert filled(tmp_path / "link").is_file()
    assert (tmp_path / "link").is_symlink() and (tmp_path / "there/x.txt").is_file()


def test_nothing_that_is_there_is_replaced(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/x").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for name in ("mine", "file"):
        with pytest.raises(FileExistsError, match=f"{name} is there already, and no empty folder"):
            atomic.must_be_free(tmp_path / name)
        with pytest.raises(OSError):
            filled(tmp_path / name)
    assert sorted(file.name for file in tmp_path.rglob("*")) == ["file", "mine", "x"]
    assert (tmp_path / "mine/x").read_text() == (tmp_path / "file").read_text() == "mine"


def test_where_nothing_can_be_made_is_told_before_any_work(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OSError, match=r"out can't be made: .*file is no folder"):
        atomic.must_be_free(tmp_path / "file/out")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(OSError, match="is no folder that can be written to"):
        atomic.must_be_free(tmp_path / "new")


def test_a_mounted_disk_is_not_replaced(tmp_path, monkeypatch):
    (tmp_path / "disk").mkdir()
    monkeypatch.setattr(os.path, "ismount", lambda path: path.name == "disk")
    with pytest.raises(OSError, match="where a disk is mounted: give a new folder in it"):
        atomic.must_be_free(tmp_path / "disk")
