"""Fixtures that every test may use."""

import os
import signal
import sys
from pathlib import Path

import pytest
from disks import no_locks, read_only, small_disk

from harness.commands.main import main

__all__ = ["no_locks", "read_only", "small_disk"]

# Where tests run in the background, SIGINT is ignored, and processes that they start inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data; tests that need it are skipped where it is absent."""
    root = os.environ.get("HARNESS_SHARED")
    folder = Path(root) if root else Path(__file__).parents[2] / "shared"
    data = folder / "data" if (folder / "data").is_dir() else folder
    if not (data / "hpatches").is_dir():
        pytest.skip(f"no real data in {data}: set HARNESS_SHARED to the folder that holds them")
    return data


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the user's cache; one session shares one."""
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
    for name in ("HARNESS_DATA", "HARNESS_WEIGHTS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def run(monkeypatch, capsys, caplog):
    """Run a command line; gives its exit status, stdout, and stderr with what was logged."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["harness", *map(str, arguments)])
        try:
            main()
            status = 0
        except SystemExit as stop:
            status = stop.code or 0
        done = capsys.readouterr()
        return status, done.out, done.err + caplog.text

    return run
