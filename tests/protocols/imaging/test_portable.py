"""OpenCV's results are the same bits with the code of any processor."""

import os
import subprocess
import sys
from threading import Barrier, Thread

import cv2
import pytest

from protocols.imaging.portable import portable

# An old processor: no AVX, no fused multiplication, and none of the code that Intel's IPP has.
OLD = {
    "OPENCV_CPU_DISABLE": "AVX,AVX2,FMA3",
    "OPENCV_IPP": "disabled",
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX,-AVX2,-FMA",
    "NPY_DISABLE_CPU_FEATURES": "X86_V3",
}
SCORED = """
import hashlib
import cv2
import numpy as np
from harness import parallel
from protocols.hpatches_sequences.homography import Ransac, estimate
from protocols.imaging.keypoint_patches import USUAL
from protocols.imaging.sift import sift
from protocols.oxford.regions import table
from protocols.samples import photograph

cv2.setNumThreads(4)

def arrays(name):
    grey = photograph(name, "a test")
    frames = sift(grey, 500)
    places = np.stack([frames.x, frames.y], axis=1)
    moved = places + np.random.default_rng(0).normal(scale=2, size=places.shape)
    yield table(frames)
    yield USUAL.patches(grey.astype(np.float32), frames)
    yield estimate(places, moved, Ransac(3.0, 1), 0)
    for how, size in [(cv2.INTER_AREA, (123, 100)), (cv2.INTER_LINEAR, (801, 777))]:
        yield cv2.resize(grey, size, interpolation=how)  # needs no block

for found in parallel.each(lambda name: list(arrays(name)), ["coffee.png", "astronaut.png"]):
    for array in found:
        print(array.shape, hashlib.sha256(array.tobytes()).hexdigest())
"""


def printed(**environment):
    command = [sys.executable, "-c", SCORED]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's switches are of Linux")
def test_keypoints_patches_and_homographies_are_the_same_bits_on_an_old_processor():
    assert printed(**OLD) == printed()


def test_opencvs_switches_are_as_before_after_blocks_of_several_threads():
    together, seen = Barrier(2), []

    def switches():
        return cv2.useOptimized(), cv2.ipp.useIPP(), cv2.getNumThreads()

    def work():
        with portable():
            together.wait()
            seen.append(switches())
            together.wait()

    before = switches()
    assert before[0]
    with portable():
        threads = [Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seen.append(switches())  # this block goes on
        assert seen == [(False, False, 1)] * 3
    assert switches() == before
    with pytest.raises(ValueError, match="no image"), portable():
        raise ValueError("no image")
    assert switches() == before
