"""Runs OpenCV so that its results have the same bits on every processor of one architecture."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import cv2

_lock = Lock()
_inside = 0  # blocks that run now, in all threads
_before = True, 1  # OpenCV's switches outside of all blocks, which are those of the process


@contextmanager
def portable() -> Iterator[None]:
    """In the block, OpenCV runs only the code that every processor can run, in one thread.

    Otherwise it chooses code by the processor's instructions and maker (its own, and Intel's IPP),
    whose sums differ in their last bits: SIFT's keypoints move by 1e-5 pixels, and RANSAC finds
    other homographies from them.

    The switch is one of the process. So no block may run while another thread describes patches:
    OpenCV's descriptors would have other last bits, by chance.
    """
    global _inside, _before
    ipp = cv2.ipp.useIPP()  # a switch of each thread, which OpenCV's own threads leave on
    with _lock:
        if not _inside:
            _before = cv2.useOptimized(), cv2.getNumThreads()
            cv2.setNumThreads(1)
        _inside += 1
        cv2.setUseOptimized(False)  # turns IPP off, too, in this thread
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                optimised, threads = _before
                cv2.setUseOptimized(optimised)
                cv2.setNumThreads(threads)
            cv2.ipp.setUseIPP(ipp)
