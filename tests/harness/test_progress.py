"""Steps of a task are shown below it, and only if it is shown."""

import threading

from harness import progress


class Lines:
    """Log lines, and an event that each line sets."""

    def __init__(self, monkeypatch):
        self.lines, self.told = [], threading.Event()
        monkeypatch.setattr(progress, "FIRST", 0.01)
        monkeypatch.setattr(progress, "EVERY", 0.01)
        monkeypatch.setattr(progress.log, "info", self.add)

    def add(self, form, line):
        self.lines.append(line)
        self.told.set()

    def next(self):
        """A line that was begun after this call."""
        for _ in range(2):
            self.told.clear()
            assert self.told.wait(10)
        return self.lines[-1]


def test_lines_tell_the_step_that_runs_and_not_the_task_that_is_done(monkeypatch):
    lines = Lines(monkeypatch)
    with progress.shown("described", 8) as advance:
        advance(8)
        with progress.step("pairs", 40) as also:
            threading.Thread(target=also, args=(10,)).start()
            while "pairs 10 of 40 (25 %)" not in (line := lines.next()):
                assert line.startswith("pairs")
        assert lines.next().startswith("described 8 of 8")


def test_a_step_of_nothing_that_is_shown_shows_nothing(monkeypatch):
    lines = Lines(monkeypatch)
    with progress.step("pairs", 40) as advance:
        advance(10)
    with progress.shown("described", 8, silent=True), progress.step("pairs", 40) as advance:
        advance(10)
    assert not lines.lines
