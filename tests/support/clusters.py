"""A Dask scheduler with worker processes of their own addresses."""

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager


@contextmanager
def scheduler(tmp_path, workers, **environment):
    """The address of a scheduler with worker processes of their own, and these processes."""
    with processes(tmp_path, workers, **environment) as (address, started):
        yield address, started[1:]


@contextmanager
def processes(tmp_path, workers, **environment):
    """As `scheduler`; the first process is the scheduler's."""
    at = tmp_path / "scheduler.json"
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1",
             "--port", "0", "--no-dashboard", "--dashboard-address", "127.0.0.1:0",
             "--scheduler-file", str(at)],
            stderr=subprocess.DEVNULL,
        )
    ]  # fmt: skip
    started += [
        subprocess.Popen(
            [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(at),
             "--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(tmp_path)],
            stderr=subprocess.DEVNULL,
            env={**os.environ, **environment},
        )
        for _ in range(workers)
    ]  # fmt: skip
    try:
        while not at.is_file():
            time.sleep(0.1)
        yield json.loads(at.read_text())["address"], started
    finally:
        for process in started:
            process.kill()
            process.wait()
