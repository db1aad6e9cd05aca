"""What is kept on disk: found by its origin, checked when read, made again where it is damaged."""

import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from disks import filled
from toy import toy_dataset, toy_descriptor, toy_protocol

from harness import cache as caches
from harness.cache import Cache
from harness.evaluation import describe, evaluate
from harness.files import home

ORIGIN = {"model": "toy", "block": "1"}
RNG = np.random.default_rng(0)
VECTORS = RNG.standard_normal((20, 8), dtype=np.float32)


def entry(root):
    (found,) = root.rglob("*.entry")
    return found


def flipped(contents, bit):
    changed = bytearray(contents)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def test_what_is_kept_is_read_and_nothing_else_is(tmp_path):
    cache = Cache(tmp_path)
    cache.write_array(ORIGIN, VECTORS)
    np.testing.assert_array_equal(cache.read_array(ORIGIN), VECTORS)
    assert cache.read_array(ORIGIN | {"block": "2"}) is None
    cache.write(ORIGIN | {"block": "2"}, b"")
    assert cache.read(ORIGIN | {"block": "2"}) == b""


def test_every_flipped_bit_is_seen(tmp_path):
    cache = Cache(tmp_path)
    cache.write_array(ORIGIN, VECTORS)
    whole = entry(tmp_path).read_bytes()
    drawn = RNG.choice(8 * len(whole), 200, replace=False)
    ends = [*range(8), *range(8 * len(whole) - 8 * caches.END, 8 * len(whole))]
    for bit in [*drawn, *ends]:
        file = cache._file(tmp_path, ORIGIN)
        file.write_bytes(flipped(whole, bit))
        assert cache.read_array(ORIGIN) is None
        assert not file.exists()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda whole: whole[: len(whole) // 2] + bytes(len(whole) - len(whole) // 2),
        lambda whole: whole[:-1],
        lambda whole: whole[:5],
        lambda whole: b"",
        lambda whole: whole + b"x",
        lambda whole: whole.replace(b"<f4", b"<f8"),  # of the header
    ],
)
def test_a_damaged_entry_is_dropped_told_once_and_made_again(tmp_path, caplog, spoil):
    cache, model = Cache(tmp_path), toy_descriptor()
    (before,) = evaluate(model, [toy_protocol()], cache=cache)
    for file in tmp_path.rglob("*.entry"):
        file.write_bytes(spoil(file.read_bytes()))
        spoilt = file
    (after,) = evaluate(model, [toy_protocol()], cache=cache)
    assert after == before
    assert f"{spoilt} is damaged" in caplog.text
    told = len(caplog.records)
    (again,) = evaluate(model, [toy_protocol()], cache=cache)
    assert again == before and len(caplog.records) == told


def test_an_entry_under_the_name_of_another_is_not_taken_for_it(tmp_path):
    cache, other = Cache(tmp_path), ORIGIN | {"block": "2"}
    cache.write(ORIGIN, b"one")
    cache.write(other, b"two")
    cache._file(tmp_path, ORIGIN).write_bytes(cache._file(tmp_path, other).read_bytes())
    assert cache.read(ORIGIN) is None
    assert cache.read(other) == b"two"


def test_a_file_to_be_mapped_is_checked_and_made_again(tmp_path, caplog):
    made = []

    def write(stream):
        made.append(1)
        stream.write(b"first")
        stream.write(b"second")

    cache = Cache(tmp_path)
    file = cache.file(ORIGIN, write)
    assert cache.file(ORIGIN, write) == file and len(made) == 1
    whole = file.read_bytes()
    assert whole.startswith(b"firstsecond")
    for bit in range(8 * len(whole)):
        file.write_bytes(flipped(whole, bit))
        cache.file(ORIGIN, write)
        assert file.read_bytes() == whole
    assert len(made) == 1 + 8 * len(whole) == 1 + len(caplog.records)


def test_of_several_that_want_an_entry_one_makes_it(tmp_path):
    made, found = [], []

    def make():
        made.append(1)
        time.sleep(0.1)  # time for the others to come
        return b"contents"

    cache = Cache(tmp_path)
    threads = [
        threading.Thread(target=lambda: found.append(cache.get(ORIGIN, make))) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [b"contents"] * 6 and len(made) == 1
    assert [file.suffix for file in tmp_path.rglob("*") if file.is_file()] == [".entry"]


def test_a_folder_is_made_again_where_a_file_of_it_is_not_as_it_was(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path))

    def make(folder):
        (folder / "a.csv").write_text("1,2")
        caches.sum_up(folder)

    def kept():
        return caches.folder("tasks", "one", make=make, is_whole=caches.is_as_summed)

    folder = kept()
    for spoil in (
        lambda: (folder / "a.csv").write_text("1,3"),
        lambda: (folder / "a.csv").unlink(),
        lambda: (folder / "more.csv").touch(),
        lambda: (folder / caches.SUMS).write_bytes(b"\xff"),
    ):
        spoil()
        assert {file.name for file in kept().iterdir()} == {"a.csv", caches.SUMS}
        assert (folder / "a.csv").read_text() == "1,2"
    assert caplog.text.count(f"{folder} is damaged or was edited: it is replaced") == 4


def test_without_a_cache_that_can_be_written_to_all_is_computed(read_only, monkeypatch, caplog):
    monkeypatch.setenv("HARNESS_CACHE", str(read_only / "cache"))
    vectors = caches.kept("vectors")
    assert len(describe(toy_descriptor(), toy_dataset(), cache=vectors).vectors)
    assert caches.kept("onnx").get(ORIGIN, lambda: b"graph") == b"graph"
    file = caches.kept("training").file(ORIGIN, lambda stream: stream.write(b"patches"))
    assert file.read_bytes().startswith(b"patches")
    folder = caches.folder("tasks", "one", make=caches.sum_up, is_whole=caches.is_as_summed)
    assert folder.is_dir() and home.cache() not in folder.parents
    assert len(caplog.records) == 1
    assert f"{read_only} can't be written to (" in caplog.text
    assert "set HARNESS_CACHE to a folder of yours" in caplog.text


def test_what_stands_in_for_a_cache_goes_with_the_process(read_only, tmp_path):
    code = "from harness.files import home; place = home.place('x'); place.mkdir(); print(place)"
    environment = {"HARNESS_CACHE": str(read_only), "TMPDIR": str(tmp_path)}
    command = ["env", *(f"{k}={v}" for k, v in environment.items()), sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(str(tmp_path))
    assert [file.name for file in tmp_path.iterdir()] == [read_only.name]


def test_a_cache_on_a_full_disk_is_told_once_and_done_without(small_disk, caplog):
    cache = Cache(small_disk)
    filled(small_disk, 0)
    for block in "12":
        cache.write_array(ORIGIN | {"block": block}, VECTORS)
    assert len(caplog.records) == 1
    assert f"nothing can be kept in {small_disk} (No space left on device)" in caplog.text
    assert not list(small_disk.rglob("*.unfinished"))
