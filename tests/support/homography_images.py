"""Random images with structure at all scales, in which detectors find points."""

import cv2
import numpy as np

from protocols.builders.homography.strengths import Strengths

OFF = Strengths(
    turn=0,
    scale=0,
    stretch=0,
    shift=0,
    perspective=0,
    blur=0,
    motion=0,
    gamma=0,
    contrast=0,
    faint=0,
    brightness=0,
    noise=0,
    jpeg=0,
    coarse=0,
)


def picture(seed=0, height=96, width=128):
    rng = np.random.default_rng(seed)
    image = np.zeros((height, width))
    for size in (3, 6, 12, 24):
        small = rng.normal(size=(height // size + 2, width // size + 2))
        large = cv2.resize(small, None, fx=size, fy=size, interpolation=cv2.INTER_CUBIC)
        image += large[:height, :width] / large.std()
    return np.clip(128 + 30 * image, 0, 255).astype(np.uint8)


def write(file, image):
    file.parent.mkdir(parents=True, exist_ok=True)
    assert cv2.imwrite(str(file), image)
    return file
