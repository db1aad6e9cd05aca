"""Commands where nothing can be kept: told before the work, or with the scores that were made."""

import json
import os
import re
import resource
import subprocess
import sys

import pytest
from disks import filled
from hpatches_files import LENGTHS, SPLITS, write_set

from harness import progress
from harness.records import record as results

PAGE = 4096  # bytes that a disk in memory gives at a time


@pytest.fixture
def small(tmp_path):
    return write_set(tmp_path / "set", LENGTHS, splits=SPLITS)


def evaluate(run, small, folder, *more, model="pixels"):
    return run(
        "eval", "--model", model, "--protocol", "hpatches", "--data", small,
        "--results", folder, *more,
    )  # fmt: skip


def test_results_on_a_read_only_disk_are_refused_before_any_work(run, small, read_only):
    (small / "patches/v_one/e3.png").unlink()  # what would be found first
    status, _, err = evaluate(run, small, read_only / "results")
    assert status == 2
    assert f"records can't be kept in {read_only / 'results'}: {read_only} can't be" in err
    assert "choose another --results" in err


def test_results_on_a_full_disk_are_refused_before_any_work(run, small, small_disk):
    filled(small_disk, 0)
    (small / "patches/v_one/e3.png").unlink()
    status, _, err = evaluate(run, small, small_disk)
    assert status == 2
    assert "(No space left on device): choose another --results" in err


def test_scores_that_can_not_be_kept_are_printed(run, small, small_disk, tmp_path):
    assert evaluate(run, small, tmp_path / "results")[0] == 0
    known = {one.protocol.name: one for one in results.load(tmp_path / "results")}
    sizes = [file.stat().st_size for file in sorted((tmp_path / "results").rglob("*.json"))]
    pages = sum(-(-size // PAGE) + 1 for size in sizes)  # with a page for facts of each run
    kept = []
    for room in (1, pages // 2, pages - 1):  # for no record, some, all but the last facts
        filled(small_disk, room * PAGE)
        status, out, err = evaluate(run, small, small_disk, "--json")
        assert status == 2
        assert {one["protocol"]["name"]: one["scores"] for one in json.loads(out)} == {
            name: dict(one.scores) for name, one in known.items()
        }
        assert re.search(
            r"\d of 3 records can't be kept, the first of them .*pixels.json \(No", err
        )
        assert not list(small_disk.rglob("*.unfinished"))
        kept.append(len(results.load(small_disk)))
        for file in small_disk.rglob("*"):
            if file.is_file():
                file.unlink()
    assert kept == sorted(kept) and 0 < kept[1] < 3


def test_the_default_model_works_without_a_cache(run, small, read_only, monkeypatch, tmp_path):
    monkeypatch.setenv("HARNESS_CACHE", str(read_only))
    status, _, err = evaluate(run, small, tmp_path / "results", model="adasample")
    assert status == 0
    assert err.count(f"nothing can be kept in the cache {read_only}") == 1
    assert "set HARNESS_CACHE to a folder of yours" in err
    assert len(results.load(tmp_path / "results")) == 3


def test_a_sample_is_made_without_a_cache(run, read_only, monkeypatch, tmp_path):
    monkeypatch.setenv("HARNESS_CACHE", str(read_only))
    status, _, _ = run(
        "eval", "--model", "pixels", "--protocol", "romepatches", "--results", tmp_path / "results"
    )
    assert status == 0


@pytest.mark.parametrize("command", ["describe", "build"])
def test_a_folder_that_can_not_be_made_is_told_before_any_work(run, read_only, tmp_path, command):
    out = read_only / "out"
    nowhere = tmp_path / "nowhere"  # what would be found first
    given = {
        "describe": ["describe", "--model", "pixels", "--protocol", "hpatches", "--data", nowhere],
        "build": ["data", "build", "homography", "--images", nowhere],
    }[command]
    status, _, err = run(*given, "--out", out)
    assert status == 2
    assert f"{out} can't be made: {read_only} can't be written to (" in err


def test_an_onnx_file_that_can_not_be_written_is_told_before_the_export(run, read_only):
    status, _, err = run("export", "--model", "adasample", "--out", read_only / "model.onnx")
    assert status == 2
    assert f"{read_only / 'model.onnx'} can't be written: {read_only} can't be written to (" in err


def test_a_file_that_may_not_grow_is_named(tmp_path, small):
    """As by a quota: the limit of the process ends a write in the middle."""
    code = (
        "import resource, signal\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))\n"
        "from harness.commands.main import main; main()"
    )
    command = [
        sys.executable, "-c", code, "describe", "--model", "pixels", "--protocol", "hpatches",
        "--data", str(small), "--out", str(tmp_path / "out"),
    ]  # fmt: skip
    own = os.environ | {"HARNESS_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(command, capture_output=True, text=True, env=own)
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 5000
    assert done.returncode == 2, done.stderr
    assert re.search(r"out\.unfinished/\S+\.csv: File too large", done.stderr)
    assert "Traceback" not in done.stderr
    assert [file.name for file in tmp_path.iterdir() if "out" in file.name] == []


def test_without_a_terminal_long_work_says_how_far_it_is(run, small, tmp_path, monkeypatch, caplog):
    caplog.set_level("INFO")
    monkeypatch.setattr(progress, "FIRST", 0.02)
    monkeypatch.setattr(progress, "EVERY", 0.2)
    slow = tmp_path / "mine.py"
    slow.write_text(
        "import time\n"
        "import numpy as np\n"
        "def slow(patches):\n"
        "    time.sleep(0.02)\n"
        "    return patches.reshape(len(patches), -1)[:, :8].astype(np.float32)\n"
    )
    assert evaluate(run, small, tmp_path / "results", model=f"{slow}:slow")[0] == 0
    told = re.findall(r"mine:slow: patches described (\d+) of (\d+) \(\d+ %\), ", caplog.text)
    assert len(told) > 1 and len({total for _, total in told}) == 1
    done = [int(done) for done, _ in told]
    assert done == sorted(done) and done[0] < done[-1] <= int(told[0][1])


def test_short_work_says_nothing(run, small, tmp_path):
    _, _, err = evaluate(run, small, tmp_path / "results")
    assert "patches described" not in err
