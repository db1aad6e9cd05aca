"""Renders views of an image as a plane: random camera pose, blur, light, noise and JPEG."""

import math
from dataclasses import dataclass

import cv2
import numpy as np
from jaxtyping import Float32, UInt8

from protocols.builders.homography.draws import normal
from protocols.builders.homography.strengths import check
from protocols.imaging.frames import uniform
from protocols.imaging.sampling import read, rounded, smooth
from protocols.imaging.sequences import Homography
from protocols.oxford.ellipses import linearised

FINER = 2  # samples along a pixel's side; their mean is the pixel
FOCAL = 1.5  # focal length in longer sides of the image
DRAWN = (
    "turn", "scale", "slant", "towards", "blur_share", "blur", "gamma", "contrast", "brightness",
    "noise", "jpeg_share", "jpeg",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ViewStrengths:
    """How much views differ from the image; 0 turns a difference off. All draws are independent.

    "Uniform" and "normal" name the distribution of the draws.
    """

    turn: float = 180.0  # most degrees about the optical axis, uniform in both directions
    closer: float = 0.3  # most octaves larger
    farther: float = 1.2  # most octaves smaller; uniform between the two
    slant: float = 55.0  # most degrees off the plane's normal; its square is uniform
    blur_share: float = 0.35  # share of views
    blur: float = 3.0  # largest standard deviation in pixels; uniform from 0
    gamma: float = 0.35  # octaves of the exponent, normal
    contrast: float = 0.5  # octaves of the factor, normal
    brightness: float = 20.0  # grey values, normal
    noise: float = 6.0  # largest standard deviation in grey values; uniform from 0
    jpeg_share: float = 0.35  # share of views
    jpeg: float = 95.0  # 100 - lowest quality; uniform from a third of this value

    def __post_init__(self) -> None:
        """Refuse strengths below 0 or above MOST."""
        check(vars(self), MOST)


MOST = {
    "turn": 180.0,
    "farther": 3.0,
    "slant": 75.0,
    "blur": 10.0,
    "brightness": 100.0,
    "noise": 60.0,
    "jpeg": 99.0,
}
"""The largest value of each strength, unless it is 1."""

DEFAULT = ViewStrengths()


def view(
    grey: UInt8[np.ndarray, "height width"], cameras: ViewStrengths, seed: tuple[int, ...]
) -> tuple[UInt8[np.ndarray, "rows columns"], Homography]:
    """One view, and the map from the image's pixels to the view's. The view shows all of the image.

    Outside the image the view repeats the border: a region found there is not one of the image.

    Args:
        grey: the image.
        cameras: how much views differ.
        seed: of all random numbers.
    """
    drawn = dict(zip(DRAWN, uniform(seed, len(DRAWN)).tolist(), strict=True))
    from_image, (rows, columns) = _pose(grey.shape, cameras, drawn)
    fine = np.diag([FINER, FINER, 1.0])
    fine[:2, 2] = (FINER - 1) / 2  # centres of pixels lie at integers
    back = np.linalg.inv(fine @ from_image)
    step = _step(back, FINER * columns / 2, FINER * rows / 2)
    image = grey.astype(np.float32)
    if step > 1:
        image = smooth(image, 0.5 * math.sqrt(step * step - 1))
    x, y = (np.arange(FINER * n) * 1.0 for n in (columns, rows))
    seen = read(image, back[None], x, y)[0]
    seen = seen.reshape(rows, FINER, columns, FINER).mean(axis=(1, 3))
    return _taken(seen, cameras, drawn, seed), from_image


def _pose(
    shape: tuple[int, ...], cameras: ViewStrengths, drawn: dict[str, float]
) -> tuple[Homography, tuple[int, int]]:
    """The map from the image to the view, and the view's height and width, to show all of it."""
    height, width = shape
    focal = FOCAL * max(shape)
    turn = math.radians(cameras.turn * (2 * drawn["turn"] - 1))
    slant = math.radians(cameras.slant * drawn["slant"] ** 0.5)
    towards = 2 * math.pi * drawn["towards"]
    zoom = 2 ** (cameras.closer - (cameras.closer + cameras.farther) * drawn["scale"])
    axis = np.array([math.cos(towards), math.sin(towards), 0.0])
    rotation = cv2.Rodrigues(slant * axis)[0]
    about = np.array([[1, 0, -(width - 1) / 2], [0, 1, -(height - 1) / 2], [0, 0, 0]])
    plane = rotation @ about  # the plane's distance is the focal length
    plane[2, 2] += focal
    onto = np.diag([focal * zoom, focal * zoom, 1.0]) @ plane
    roll = np.eye(3)
    roll[:2, :2] = [[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]]
    onto = roll @ onto
    corners = np.array([[0, width - 1, width - 1, 0], [0, 0, height - 1, height - 1], [1, 1, 1, 1]])
    u, v, w = onto @ corners
    u, v = u / w, v / w
    moved = np.eye(3)
    moved[:2, 2] = -u.min(), -v.min()
    onto = moved @ onto
    return onto / onto[2, 2], (math.ceil(np.ptp(v)) + 1, math.ceil(np.ptp(u)) + 1)


def _step(back: Homography, x: float, y: float) -> float:
    """Image pixels between samples in the view's middle, in the direction with closer samples."""
    _, jacobian = linearised(back, np.array([[x, y]]))
    return float(np.linalg.svd(jacobian[0], compute_uv=False)[1])


def _taken(
    seen: Float32[np.ndarray, "rows columns"],
    cameras: ViewStrengths,
    drawn: dict[str, float],
    seed: tuple[int, ...],
) -> UInt8[np.ndarray, "rows columns"]:
    """The view after blur, change of light, noise and JPEG compression."""
    c = cameras
    sigma = c.blur * drawn["blur"]
    if drawn["blur_share"] < c.blur_share and sigma > 0:
        seen = cv2.GaussianBlur(seen, (0, 0), sigma, borderType=cv2.BORDER_REPLICATE)
    three = np.array([drawn[name] for name in ("gamma", "contrast", "brightness")])
    gamma, contrast, brightness = normal(three).tolist()
    seen = 255 * (seen / 255) ** np.float32(2 ** (c.gamma * gamma))
    mean = float(seen.mean())
    factor = np.float32(2 ** (c.contrast * contrast))
    seen = (seen - mean) * factor + np.float32(mean + c.brightness * brightness)
    noise = normal(uniform((*seed, 1), *seen.shape)).astype(np.float32)
    taken = rounded(seen + np.float32(c.noise * drawn["noise"]) * noise)
    if drawn["jpeg_share"] >= c.jpeg_share:
        return taken
    quality = round(100 - c.jpeg * (1 + 2 * drawn["jpeg"]) / 3)
    _, code = cv2.imencode(".jpg", taken, [cv2.IMWRITE_JPEG_QUALITY, quality])
    return np.asarray(cv2.imdecode(code, cv2.IMREAD_GRAYSCALE))
