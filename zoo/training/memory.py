"""Makes glibc reuse freed memory between training steps."""

import ctypes
import sys

TRIM_THRESHOLD, MMAP_MAX = -1, -4  # numbers of options in <malloc.h>


def keep_freed() -> bool:
    """Make the C library keep the memory of freed tensors; returns whether that worked.

    By default, glibc returns each freed activation of more than 32 MiB to the system at once. Then
    the next step spends up to half of its time on a processor with clearing new pages.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is None:
        return False
    return bool(mallopt(MMAP_MAX, 0) and mallopt(TRIM_THRESHOLD, -1))
