"""A command that is killed at any moment: the next run is as if nothing had been."""

import random
import signal

from hpatches_files import LENGTHS, SPLITS, write_set

from studies import kills

SLOW = """
import time
import numpy as np
def slow(patches):
    time.sleep(0.02)
    return patches.reshape(len(patches), -1)[:, :8].astype(np.float32)
"""


def test_files_are_those_of_an_undisturbed_run_whatever_killed_it(tmp_path):
    write_set(tmp_path / "set", LENGTHS, splits=SPLITS)
    (tmp_path / "mine.py").write_text(SLOW)
    of = ["--model", f"{tmp_path}/mine.py:slow", "--protocol", "hpatches"]
    of += ["--data", str(tmp_path / "set")]
    describe = kills.Command("describe", ["describe", *of, "--out", "out"], makes="out")
    tally = kills.killed(describe, tmp_path, tmp_path / "work", 4, random.Random(0))
    assert tally.kills == 4 and not tally.faults


def test_the_comparison_sees_what_is_left_what_is_missing_and_what_is_other(tmp_path):
    (tmp_path / "a").write_text("1")
    (tmp_path / "b").write_text("1")
    before = kills.files(tmp_path)
    (tmp_path / "a").write_text("2")
    (tmp_path / "b").rename(tmp_path / ".b.unfinished")
    after = kills.files(tmp_path)
    assert before["a"] != after["a"]
    assert before.keys() ^ after.keys() == {"b", ".b.unfinished"}


def test_a_run_that_ends_otherwise_than_by_its_signal_is_a_fault(tmp_path):
    fault, _ = kills._kill(["eval", "--nonsense"], tmp_path, tmp_path, signal.SIGTERM, 60)
    assert "exits with 2 on SIGTERM" in fault
