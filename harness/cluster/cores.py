"""Keeps each worker that this machine starts to cores of its own.

Nothing of the harness is imported here: the number of cores that it uses is read at its import.
"""

import os
from pathlib import Path

from distributed import Worker, WorkerPlugin


class OwnCores(WorkerPlugin):
    """At the start of worker number i of n, give all of its threads core i, i + n, i + 2 n, ..."""

    name = "own-cores"

    def __init__(self, workers: int) -> None:
        """Keep the number of workers."""
        self.workers = workers

    def setup(self, worker: Worker) -> None:
        """Set the cores; nothing happens on systems that can't do that."""
        if not hasattr(os, "sched_setaffinity"):
            return
        usable = sorted(os.sched_getaffinity(0))
        share = usable[int(worker.name) % self.workers :: self.workers]
        own = set(share) or {usable[int(worker.name) % len(usable)]}
        for thread in Path("/proc/self/task").iterdir():
            os.sched_setaffinity(int(thread.name), own)
