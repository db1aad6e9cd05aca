"""Files and folders that are whole or absent, whatever ends the process that writes them."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from disks import filled as fill_disk

from harness.files import atomic, locks


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
        with pytest.raises(FileExistsError, match=f"{name} is there already, and is not an empty"):
            atomic.must_be_free(tmp_path / name)
        with pytest.raises(OSError):
            filled(tmp_path / name)
    assert sorted(file.name for file in tmp_path.rglob("*")) == ["file", "mine", "x"]
    assert (tmp_path / "mine/x").read_text() == (tmp_path / "file").read_text() == "mine"


def test_where_nothing_can_be_made_is_told_before_any_work(tmp_path, read_only):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OSError, match=r"out can't be made: .*file is no folder"):
        atomic.must_be_free(tmp_path / "file/out")
    with pytest.raises(OSError, match=r"new can't be made: .*read-only can't be written to \("):
        atomic.must_be_free(read_only / "new")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["file", "read-only"]


def test_a_mounted_disk_is_not_replaced(tmp_path, monkeypatch):
    (tmp_path / "disk").mkdir()
    monkeypatch.setattr(os.path, "ismount", lambda path: path.name == "disk")
    with pytest.raises(OSError, match="where a disk is mounted: give a new folder in it"):
        atomic.must_be_free(tmp_path / "disk")


# ---- what a killed process leaves


def killed_while(code, *arguments):
    """Run code that says when to kill it, and kill it then."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "now\n"
        process.send_signal(signal.SIGKILL)
        process.wait()


WRITING = """
import sys, time
from pathlib import Path
from harness.files import atomic
with atomic.writing(Path(sys.argv[1])) as stream:
    stream.write(b"half" * 9999)
    stream.flush()
    print("now", flush=True)
    time.sleep(60)
"""

PLACING = """
import sys, time
from pathlib import Path
from harness.files import atomic
with atomic.placing(Path(sys.argv[1])) as unfinished:
    (unfinished / "half").write_text("half")
    print("now", flush=True)
    time.sleep(60)
"""


def test_the_next_writer_of_a_file_takes_over_what_a_killed_one_left(tmp_path):
    file = tmp_path / "note.txt"
    killed_while(WRITING, file)
    assert [one.name for one in tmp_path.iterdir()] == [".note.txt.unfinished"]
    atomic.write_text(file, "whole")
    assert [one.name for one in tmp_path.iterdir()] == ["note.txt"]
    assert file.read_text() == "whole"


def test_the_next_maker_of_a_folder_removes_what_a_killed_one_left(tmp_path):
    killed_while(PLACING, tmp_path / "out")
    assert sorted(one.name for one in tmp_path.iterdir()) == [".out.lock", ".out.unfinished"]
    assert [one.name for one in filled(tmp_path / "out").parent.iterdir()] == ["x.txt"]
    assert [one.name for one in tmp_path.iterdir()] == ["out"]


def test_a_second_maker_of_a_folder_is_refused_at_once_and_harms_nothing(tmp_path):
    command = [sys.executable, "-c", PLACING, str(tmp_path / "out")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "now\n"
        begun = time.monotonic()
        with pytest.raises(BlockingIOError, match=r"another process is making .*out: wait for it"):
            filled(tmp_path / "out")
        assert time.monotonic() - begun < 5
        assert (tmp_path / ".out.unfinished/half").read_text() == "half"
        process.kill()


def test_folders_made_above_a_refused_one_are_not_left(tmp_path):
    with pytest.raises(ZeroDivisionError), atomic.placing(tmp_path / "a/b/c"):
        raise ZeroDivisionError
    assert not list(tmp_path.iterdir())


def test_writers_of_one_file_wait_for_each_other(tmp_path):
    file = tmp_path / "note.txt"

    def write(text):
        with atomic.writing(file) as stream:
            for letter in text * 100:
                stream.write(letter.encode())
                stream.flush()

    threads = [threading.Thread(target=write, args=(letter,)) for letter in "abcdefgh"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert file.read_text() in {letter * 100 for letter in "abcdefgh"}
    assert [one.name for one in tmp_path.iterdir()] == ["note.txt"]


def test_one_of_many_holds_a_lock_at_a_time_and_its_file_goes(tmp_path):
    inside, most = [], []

    def hold():
        with locks.alone(tmp_path / "lock"):
            inside.append(1)
            most.append(len(inside))
            time.sleep(0.01)
            inside.pop()

    threads = [threading.Thread(target=hold) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 12
    assert not list(tmp_path.iterdir())


# ---- disks


def test_without_locks_the_work_is_done_and_it_is_told(tmp_path, no_locks, caplog):
    locks._warn_once.cache_clear()
    assert filled(tmp_path / "out").is_file()
    atomic.write_text(tmp_path / "note.txt", "whole")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["note.txt", "out"]
    assert f"the file system of {tmp_path} has no locks (No locks available)" in caplog.text


def test_a_full_disk_is_told_with_the_file_and_leaves_the_older_one(small_disk):
    file = small_disk / "note.txt"
    atomic.write_text(file, "older")
    fill_disk(small_disk, 4096)
    with pytest.raises(OSError, match=r"No space left on device.*note.txt"):
        atomic.write_text(file, "newer" * 9999)
    assert file.read_text() == "older"
    assert sorted(one.name for one in small_disk.iterdir()) == ["filler", "note.txt"]


def test_a_disk_that_is_full_at_the_very_last_byte_leaves_no_file(small_disk):
    fill_disk(small_disk, 8192)
    with pytest.raises(OSError, match=r"No space left on device.*new.bin"):
        with atomic.writing(small_disk / "new.bin") as stream:
            stream.write(bytes(8193))  # the last byte is written when the buffer is flushed
    assert [one.name for one in small_disk.iterdir()] == ["filler"]


def test_a_full_disk_leaves_no_part_of_a_folder(small_disk):
    fill_disk(small_disk, 16384)
    with pytest.raises(OSError, match="No space left"), atomic.placing(small_disk / "out") as made:
        for k in range(9):
            with atomic.writing(made / f"{k}") as stream:
                stream.write(bytes(4096))
    assert [one.name for one in small_disk.iterdir()] == ["filler"]


def test_a_full_disk_is_found_before_any_work(small_disk):
    fill_disk(small_disk, 0)
    with pytest.raises(OSError, match=r"can't be made: .*No space left on device"):
        atomic.must_be_free(small_disk / "out")
