"""Runs a command in a process of its own, and measures its time and memory."""

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.errors import ComputeError

LAST = 2000  # characters of a failed command's messages that are shown


@dataclass(frozen=True)
class Cost:
    """What a command took."""

    wall_s: float
    cpu_s: float  # of all its threads and processes, user and system
    peak_mib: float  # largest resident memory of a process; file pages that it maps included
    printed: str


def run(command: Sequence[str], environment: Mapping[str, str]) -> Cost:
    """The cost of a command; `environment` is added to this process's.

    Raises:
        ComputeError: if the command fails; shows the end of its messages.
    """
    begun = time.perf_counter()
    with subprocess.Popen(
        command,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as child:
        assert child.stdout is not None
        printed = child.stdout.read()
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - begun
    if child.returncode:
        raise ComputeError(f"{' '.join(command)} exits with {child.returncode}: {printed[-LAST:]}")
    return Cost(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, printed)
