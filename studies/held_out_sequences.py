"""Make sequences in Oxford's layout from photographs; they serve to choose data and settings.

    python -m studies.held_out_sequences --images DIR --out DIR

Give photographs that none of the compared networks was trained on. Each sequence is one photograph
and five pictures of it as a plane, from easy to hard: from the side (two sequences), smaller and
turned, out of focus, in the dark, and as JPEG. `harness eval --protocol oxford --data OUT` scores
models on them.
"""

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path

import cv2
import numpy as np

from harness.files import folders
from protocols.imaging.grey import read_grey

WIDTH = 768  # pixels that photographs are scaled to
FINER = 2
FOCAL = 1.5  # in widths
Plane = np.ndarray  # a homography


def aside(size: tuple[int, int], degrees: float) -> Plane:
    """Homography of a view from the side, with a slightly rolled camera."""
    width, height = size
    focal, angle, roll = FOCAL * width, np.radians(degrees), np.radians(degrees / 4)
    middle = np.array([[1, 0, -width / 2], [0, 1, -height / 2], [0, 0, 1]])
    cos, sin = np.cos(angle), np.sin(angle)
    plane = np.array([[cos, 0, 0], [0, 1, 0], [-sin, 0, focal]])
    camera = np.diag([focal, focal, 1.0])
    turned = np.eye(3)
    turned[:2, :2] = [[np.cos(roll), -np.sin(roll)], [np.sin(roll), np.cos(roll)]]
    return np.linalg.inv(middle) @ turned @ camera @ plane @ middle


def smaller(size: tuple[int, int], factor: float, degrees: float) -> Plane:
    """Homography that scales and turns an image about its middle."""
    width, height = size
    return np.vstack([cv2.getRotationMatrix2D((width / 2, height / 2), degrees, factor), [0, 0, 1]])


def moved(image: np.ndarray, plane: Plane) -> np.ndarray:
    """The image under a homography, sampled finely and averaged."""
    size = image.shape[::-1]
    fine = np.diag([FINER, FINER, 1.0])
    fine[:2, 2] = (FINER - 1) / 2  # centres of pixels lie at integers
    large = cv2.warpPerspective(
        image, fine @ plane, tuple(FINER * n for n in size), borderValue=float(image.mean())
    )
    large = cv2.GaussianBlur(large, (0, 0), 0.4 * FINER)
    return cv2.resize(large, size, interpolation=cv2.INTER_AREA)


def dark(image: np.ndarray, factor: float) -> np.ndarray:
    """The image in less light, with darker shadows."""
    return 255 * (image / 255 * factor) ** 1.2


def compressed(image: np.ndarray, quality: int) -> np.ndarray:
    """The image after JPEG compression."""
    _, code = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, quality])
    return np.asarray(cv2.imdecode(code, cv2.IMREAD_GRAYSCALE))


def blurred(image: np.ndarray, sigma: float) -> np.ndarray:
    """The image out of focus."""
    return cv2.GaussianBlur(image, (0, 0), sigma)


def unchanged(image: np.ndarray) -> np.ndarray:
    """The image itself."""
    return image


Taken = tuple[Plane, Callable[[np.ndarray], np.ndarray]]


def pictures(size: tuple[int, int]) -> dict[str, list[Taken]]:
    """The homography and the change of each of the five pictures, by sequence."""
    nearly = [smaller(size, 1 - 0.01 * k, 0.7 * k) for k in range(1, 6)]
    turns = ((0.9, 12), (0.75, 40), (0.65, 95), (0.52, 150), (0.42, 200))
    return {
        "left": [(aside(size, -angle), unchanged) for angle in (18, 30, 40, 50, 58)],
        "right": [(aside(size, angle), unchanged) for angle in (18, 30, 40, 50, 58)],
        "smaller": [(smaller(size, *turn), unchanged) for turn in turns],
        "blurred": [
            (plane, partial(blurred, sigma=sigma))
            for plane, sigma in zip(nearly, (1.0, 1.6, 2.3, 3.1, 4.0), strict=True)
        ],
        "dark": [(np.eye(3), partial(dark, factor=f)) for f in (0.75, 0.55, 0.42, 0.32, 0.22)],
        "jpeg": [(np.eye(3), partial(compressed, quality=q)) for q in (40, 20, 10, 5, 2)],
    }


def main() -> None:
    """Write the sequences."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", required=True, type=Path)
    parser.add_argument("--out", required=True, type=Path)
    given = parser.parse_args()
    files = folders.entries(given.images)
    for number, name in enumerate(pictures((1, 1))):
        image = read_grey(files[number * len(files) // 6])
        height = round(WIDTH * image.shape[0] / image.shape[1])
        image = cv2.resize(image, (WIDTH, height), interpolation=cv2.INTER_AREA)
        folder = given.out / name
        folder.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(folder / "img1.png"), image)
        noise = np.random.default_rng(number)
        for k, (plane, change) in enumerate(pictures((WIDTH, height))[name], start=2):
            taken = change(moved(image, plane)) + noise.normal(0, 1.5, image.shape)
            cv2.imwrite(
                str(folder / f"img{k}.png"), np.clip(np.round(taken), 0, 255).astype(np.uint8)
            )
            np.savetxt(folder / f"H1to{k}p", plane / plane[2, 2])


if __name__ == "__main__":
    main()
