"""Shows progress of long work: a bar on a terminal, else a line in the log now and then.

If stderr is a file or a pipe, the current task is logged every half minute, even without progress,
since a silent process looks as if it hangs.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from threading import Event, Thread

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)

from harness import errors
from harness.escape import visible

FIRST, EVERY = 10.0, 30.0  # seconds before the first line, and between two lines

log = logging.getLogger(__name__)


def plain(task: Task) -> str:
    """A task as text: its description, how much is done, time so far and time left."""
    done = f" {task.completed:,.0f}" if task.completed or task.total else ""
    of = f" of {task.total:,.0f} ({task.percentage:.0f} %)" if task.total else ""
    left = "" if not task.time_remaining else f", about {_duration(task.time_remaining)} left"
    return f"{task.description}{done}{of}, {_duration(task.elapsed or 0.0)} so far{left}"


class Bar(Progress):
    """A progress bar on stderr, or lines in the log if stderr is not a terminal."""

    def __init__(
        self,
        *columns: str | ProgressColumn,
        line: Callable[[Task], str] = plain,
        silent: bool = False,
    ) -> None:
        """Prepare the bar; `start` shows it.

        Args:
            columns: of the bar.
            line: the log line of a task, used without a terminal.
            silent: show and log nothing.
        """
        console = Console(stderr=True)
        disabled = silent or not console.is_terminal
        super().__init__(*columns, console=console, transient=True, disable=disabled)
        self._line = line
        self._teller = Thread(target=self._tell, daemon=True) if disabled and not silent else None
        self._ended = Event()

    def start(self) -> None:
        """Show the bar, or start logging."""
        super().start()
        if self._teller:
            self._teller.start()

    def stop(self) -> None:
        """Hide the bar, or stop logging."""
        self._ended.set()
        if self._teller and self._teller.is_alive():
            self._teller.join()
        super().stop()

    def _tell(self) -> None:
        pause = FIRST
        while not self._ended.wait(pause):
            running = [task for task in self.tasks if not task.finished]
            for task in running or self.tasks:
                log.info("%s", self._line(task))
            pause = EVERY


def bar(*, silent: bool = False) -> Bar:
    """A bar with a count and the time left."""
    text = TextColumn("{task.description}", markup=False)
    columns = (text, BarColumn(), MofNCompleteColumn())
    return Bar(*columns, TimeRemainingColumn(), silent=silent)


_shown: ContextVar[Bar | None] = ContextVar("shown", default=None)


@contextmanager
def shown(
    title: str, total: int | None = None, *, silent: bool = False
) -> Iterator[Callable[[int], None]]:
    """Show the progress of one task during the block; yields a function that adds steps."""
    with bar(silent=silent) as made:
        before = _shown.set(made)
        task = made.add_task(visible(title), total=total)
        try:
            yield lambda done: made.advance(task, done)
        finally:
            _shown.reset(before)


@contextmanager
def step(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a step of the task that `shown` shows, below it; yields a function that adds progress.

    Nothing is shown outside of `shown`. So code that is far from the command line needs not know
    whether the user wants to see progress. The function may be called from any thread.
    """
    made = _shown.get()
    if made is None:
        yield lambda done: None
        return
    task = made.add_task(visible(title), total=total)
    try:
        yield lambda done: made.advance(task, done)
    finally:
        made.remove_task(task)


@contextmanager
def describing(
    model: str, patches: int, data: str, *, silent: bool = False
) -> Iterator[Callable[[int], None]]:
    """Show how many patches a model has described; errors of libraries name model and data."""
    with (
        errors.naming(f"{model} on {data}"),
        shown(f"{model}: patches described", patches, silent=silent) as advance,
    ):
        yield advance


def _duration(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
