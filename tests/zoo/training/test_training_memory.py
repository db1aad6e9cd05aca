"""What is freed is kept: the next step takes it without new pages."""

import subprocess
import sys

import pytest

from zoo.training import memory

FAULTS = """
import resource
from zoo.training.memory import keep_freed
kept = keep_freed() if {keep} else True
def touched():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    block = bytearray(128 << 20)
    block[::4096] = bytes(len(block) // 4096)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
touched()
print(int(kept), touched())
"""


def new_pages(keep):
    """Whether the C library keeps what is freed, and page faults of taking it a second time."""
    code = FAULTS.format(keep=keep)
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return map(int, found.stdout.split())


@pytest.mark.skipif(sys.platform != "linux", reason="the C library of Linux alone is told to keep")
def test_memory_that_was_freed_is_taken_again_without_new_pages():
    kept, again = new_pages(True)
    if not kept:
        pytest.skip("this C library has no mallopt")
    _, usual = new_pages(False)
    assert again < usual / 4  # usual: 64 pages of 2 MiB or 32,768 of 4 KiB


def test_another_system_is_left_alone(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert memory.keep_freed() is False
