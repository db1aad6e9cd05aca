"""Leaves Ctrl-C to the command that started the workers of this machine.

A terminal sends it to all of them. The command ends its workers, which finish their steps before.
"""

import signal

from distributed import Worker, WorkerPlugin


class LeftInterrupts(WorkerPlugin):
    """At the start of a worker, let its process ignore Ctrl-C."""

    name = "left-interrupts"

    def setup(self, worker: Worker) -> None:
        """Ignore the signal."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
