"""Makes glibc reuse freed memory between training steps."""

import ctypes
import sys

TRIM_THRESHOLD, MMAP_MAX = -1, -4  # numbers of options in <malloc.h>


def keep_freed() -> bool:
    """Let the C library keep the memory of freed tensors; returns whether it can.

    By itself, glibc gives each activation of more than 32 MiB back at once, and the next step pays
    for clearing new pages: up to half of its time on a processor.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is None:
        return False
    return bool(mallopt(MMAP_MAX, 0) and mallopt(TRIM_THRESHOLD, -1))
