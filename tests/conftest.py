"""Fixtures that every test may use."""

import os
import signal
import sys
from pathlib import Path

import pytest
from disks import no_locks, read_only, small_disk

from harness import plugins
from harness.commands.main import main

__all__ = ["no_locks", "read_only", "small_disk"]

# In the background, a shell ignores SIGINT for tests, and their child processes inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data; tests that need it are skipped if it is missing."""
    root = os.environ.get("HARNESS_SHARED")
    folder = Path(root) if root else Path(__file__).parents[2] / "shared"
    data = folder / "data" if (folder / "data").is_dir() else folder
    if not (data / "hpatches").is_dir():
        pytest.skip(f"no real data in {data}: set HARNESS_SHARED to the folder that holds them")
    return data


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests that are marked `gpu` where no GPU computes."""
    marked = [item for item in items if item.get_closest_marker("gpu")]
    failure = plugins.cuda_failure() if marked else None
    for item in marked:
        if failure:
            item.add_marker(pytest.mark.skip(reason=failure))


@pytest.fixture(scope="session")
def cache_of_tests(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A temporary cache of this process; graphs of networks are shared with other processes.

    pytest-xdist runs tests in several processes; each would spend minutes on the same graphs.
    """
    own = tmp_path_factory.getbasetemp()
    cache = own / "cache"
    cache.mkdir()
    if "PYTEST_XDIST_WORKER" in os.environ:
        graphs = own.parent / "graphs"
        graphs.mkdir(exist_ok=True)
        (cache / "onnx").symlink_to(graphs, target_is_directory=True)
    return cache


@pytest.fixture(autouse=True)
def own_cache(cache_of_tests: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give all tests of a session one cache in a temporary folder, instead of the user's."""
    monkeypatch.setenv("HARNESS_CACHE", str(cache_of_tests))
    for name in ("HARNESS_DATA", "HARNESS_WEIGHTS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def run(monkeypatch, capsys, caplog):
    """Run a command line; returns its exit status, stdout, and stderr with the log."""

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
