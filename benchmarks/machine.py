"""Names the machine that a measurement was made on."""

import os
from pathlib import Path


def machine() -> str:
    """Product name of the processor, as Linux tells it, and the number of usable cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{processor()}, {cores} cores"


def processor() -> str:
    """Product name of the processor, as Linux tells it."""
    file = Path("/proc/cpuinfo")
    for line in file.read_text().splitlines() if file.is_file() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "unknown"
