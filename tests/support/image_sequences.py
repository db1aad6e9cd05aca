"""Writes image sequences with homographies: a texture, and views of it."""

import cv2
import numpy as np

HEIGHT, WIDTH = 120, 150


def turned(degrees, scale, x, y, tilt=0.0):
    """A camera's move: about the middle, then by x and y."""
    cos, sin = scale * np.cos(np.radians(degrees)), scale * np.sin(np.radians(degrees))
    middle = np.array([[1, 0, WIDTH / 2], [0, 1, HEIGHT / 2], [0, 0, 1]])
    move = np.array([[cos, -sin, x], [sin, cos, y], [tilt, -tilt / 2, 1]])
    return middle @ move @ np.linalg.inv(middle)


VIEWS = (turned(6, 0.97, 7, 5), turned(-9, 1.03, -8, 6, 2e-4))
STILL = (np.eye(3), np.eye(3))


def texture(seed=0, height=HEIGHT, width=WIDTH):
    """Blobs of several sizes."""
    rng = np.random.default_rng(seed)
    image = np.zeros((height, width))
    for sigma in (1.5, 3, 6):
        layer = cv2.GaussianBlur(rng.standard_normal((height, width)), (0, 0), sigma)
        image += layer / layer.std()
    return np.clip(128 + 35 * image, 0, 255).astype(np.uint8)


def write_sequence(
    folder, maps=VIEWS, *, seed=0, image="{}.png", homography="H_1_{}", noise=2.0, written=None
):
    """Image 1 and one image for each map; `written` are the maps of the files, if others.

    `image` is a name, or one for each image.
    """
    folder.mkdir(parents=True)
    rng = np.random.default_rng(seed + 1)
    names = [image] * (len(maps) + 1) if isinstance(image, str) else image
    for k, (h, name) in enumerate(zip([np.eye(3), *maps], names, strict=True), 1):
        moved = cv2.warpPerspective(texture(seed), h, (WIDTH, HEIGHT)).astype(float)
        noisy = np.clip(moved + rng.normal(0, noise, moved.shape), 0, 255).astype(np.uint8)
        colours = cv2.cvtColor(noisy, cv2.COLOR_GRAY2BGR) if name.endswith(".ppm") else noisy
        assert cv2.imwrite(str(folder / name.format(k)), colours)
    for k, h in enumerate(maps if written is None else written, 2):
        np.savetxt(folder / homography.format(k), h)
    return folder
