"""Work on many cores gives what it gives on one."""

import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness import parallel


@pytest.fixture(params=[1, 3])
def cores(request, monkeypatch):
    monkeypatch.setattr(parallel, "CORES", request.param)
    return request.param


@pytest.mark.parametrize("each", [parallel.each, parallel.each_apart])
@pytest.mark.parametrize("n", [0, 1, 7])
def test_values_come_in_the_order_of_the_items(each, n, cores):
    items = list(range(n, 0, -1))
    assert each(math.sqrt, items) == [math.sqrt(item) for item in items]


def process(item):
    time.sleep(0.01)
    return os.getpid()


def test_processes_are_apart(monkeypatch):
    monkeypatch.setattr(parallel, "CORES", 2)
    found = set(parallel.each_apart(process, range(8)))
    assert os.getpid() not in found and 1 <= len(found) <= 2


def test_one_core_needs_no_other_process(monkeypatch):
    monkeypatch.setattr(parallel, "CORES", 1)
    assert set(parallel.each_apart(process, range(3))) == {os.getpid()}


def test_progress_is_told_after_each(cores):
    told = []
    parallel.each_apart(math.sqrt, range(4), lambda *numbers: told.append(numbers))
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]


@pytest.mark.parametrize("each", [parallel.each, parallel.each_apart])
def test_an_error_comes_through(each, cores):
    with pytest.raises(ValueError, match="domain"):
        each(math.sqrt, [4, -1, 9])


def late(item):
    time.sleep(0.02)
    return item


def test_an_interrupt_gives_up_what_was_not_begun(cores):
    def stop(done, total):
        raise KeyboardInterrupt

    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        parallel.each_apart(late, range(10_000), stop)
    assert time.monotonic() - start < 50  # all would take 200 s, or 67


def test_values_are_asked_for_bit_by_bit(monkeypatch):
    monkeypatch.setattr(parallel, "ASKED", 3)
    asked = []

    def numbers():
        for i in range(8):
            asked.append(i)
            yield i

    assert parallel.each(lambda i: len(asked), numbers()) == [3, 3, 3, 6, 6, 6, 8, 8]


def waiting(folder):
    Path(folder, str(os.getpid())).touch()
    time.sleep(60)


WAITING = """
import sys
from harness import parallel
from test_parallel import waiting
if __name__ == "__main__":
    parallel.CORES = 2
    parallel.each_apart(waiting, [sys.argv[1]] * 2)
"""


def test_processes_end_with_one_that_was_killed(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(WAITING)
    (tmp_path / "numbers").mkdir()
    paths = os.pathsep.join(sys.path)
    command = [sys.executable, str(script), str(tmp_path / "numbers")]
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": paths}) as process:
        while len(found := [int(one.name) for one in (tmp_path / "numbers").iterdir()]) < 2:
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 30
    while any(Path(f"/proc/{number}").exists() for number in found):
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("most", [0, 1, 7, 1000])
@pytest.mark.parametrize("n", [0, 1, 7])
def test_what_is_read_ahead_comes_in_order(n, most, cores):
    items = list(range(n, 0, -1))
    found = parallel.ahead(late, items, lambda item: item, most)
    assert list(found) == items


def test_no_more_waits_than_is_allowed_and_something_does(monkeypatch):
    monkeypatch.setattr(parallel, "CORES", 8)
    begun = []
    most, waited = 7, []
    for place, _ in enumerate(parallel.ahead(begun.append, range(20), lambda item: 3, most)):
        waited.append(3 * (len(begun) - place - 1))
        assert waited[-1] <= most
    for place, _ in enumerate(parallel.ahead(begun.append, range(20), lambda item: 0, most)):
        assert len(begun) - 20 - place - 1 <= 8
    time.sleep(0.01)
    assert len(begun) == 40


def test_an_error_ahead_comes_after_the_values_before_it(cores):
    found = parallel.ahead(math.sqrt, [4, 1, -1, 9], lambda item: 1, 10)
    assert [next(found), next(found)] == [2, 1]
    with pytest.raises(ValueError, match="domain"):
        next(found)


def test_nothing_more_is_read_once_the_reader_stops(monkeypatch):
    monkeypatch.setattr(parallel, "CORES", 2)
    begun = []
    found = parallel.ahead(begun.append, range(1000), lambda item: 1, 4)
    next(found)
    found.close()
    count = len(begun)
    time.sleep(0.02)
    assert len(begun) == count < 10
