"""Fixtures for disks that are small, read-only or without locks; mounted if the user may mount."""

import errno
import fcntl
import os
import subprocess
from pathlib import Path

import pytest


def mounted(folder: Path, options: str) -> None:
    """Mount a disk in memory, or skip the test if this is not allowed."""
    folder.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("this system has no mount")
    if done.returncode:
        pytest.skip(f"disks can't be mounted here: {done.stderr.strip()}")


@pytest.fixture
def small_disk(tmp_path):
    """A folder on a disk of 1 MiB."""
    folder = tmp_path / "small"
    mounted(folder, "size=1m")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def read_only(tmp_path):
    """A folder that nobody can write to, not even root."""
    folder = tmp_path / "read-only"
    if os.geteuid():
        folder.mkdir()
        folder.chmod(0o555)
        yield folder
        folder.chmod(0o755)
        return
    mounted(folder, "size=1m,ro")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def no_locks(monkeypatch):
    """Locks fail, as on NFS without its lock server."""

    def refused(descriptor, operation):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refused)


def filled(disk: Path, left: int) -> None:
    """Fill a disk until `left` bytes are free."""
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    (disk / "filler").write_bytes(bytes(free - left))
