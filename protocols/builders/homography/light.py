"""Simulates light and camera on a patch: blur, tone, noise, and JPEG artefacts.

A patch is processed with its surroundings, so that blur and JPEG take in real neighbouring pixels.
"""

import math
from collections.abc import Mapping

import cv2
import numpy as np
from jaxtyping import Float32, UInt8

from protocols.builders.homography.draws import normal
from protocols.builders.homography.strengths import Strengths
from protocols.imaging.frames import uniform
from protocols.imaging.sampling import rounded
from protocols.phototour.writer import SIDE

AROUND = 12  # pixels of the surroundings on each side of the patch
CANVAS = SIDE + 2 * AROUND
LENGTH = SIDE / 32  # side of a pixel of a 32 x 32 patch, the unit of strengths

# A detector finds nothing in a patch without content: these limits keep the patch recognisable.
FLATTEST = 5.0  # grey values: loss of contrast stops at this standard deviation of the patch
LOUDEST = 0.5  # largest standard deviation of the noise / that of the patch
LEFT = 0.5  # if JPEG leaves less of the patch's standard deviation, its quality is raised
BETTER = 20  # the step of the quality

Canvas = Float32[np.ndarray, "88 88"]


def photograph(
    canvas: Canvas, draws: Mapping[str, float], strengths: Strengths, seed: tuple[int, ...]
) -> UInt8[np.ndarray, "64 64"]:
    """The patch in the middle of a canvas, after all changes of light and camera.

    Args:
        canvas: grey values of the patch and its surroundings.
        draws: the patch's random numbers.
        strengths: of all changes.
        seed: of the noise.
    """
    canvas = _toned(_blurred(canvas, draws, strengths), draws, strengths)
    # Camera pixels across the canvas: a distant camera has coarser noise and JPEG artefacts.
    pixels = round(CANVAS * 2 ** -(strengths.coarse * draws["coarse"]))
    canvas = _noisy(canvas, draws, strengths, pixels, seed)
    return rounded(_middle(_compressed(canvas, draws, strengths, pixels)))


def _middle(canvas: Canvas) -> Float32[np.ndarray, "64 64"]:
    return canvas[AROUND : AROUND + SIDE, AROUND : AROUND + SIDE]


def _statistics(canvas: Canvas) -> tuple[float, float]:
    """Mean and standard deviation of the patch."""
    mean, deviation = cv2.meanStdDev(_middle(canvas))
    return float(mean[0, 0]), float(deviation[0, 0])


def _blurred(canvas: Canvas, draws: Mapping[str, float], s: Strengths) -> Canvas:
    """The canvas with defocus blur, motion blur, both or none."""
    sigma = LENGTH * s.blur * draws["blur"]
    if draws["blur_share"] < s.blur_share and sigma > 0:
        canvas = cv2.GaussianBlur(canvas, (0, 0), sigma, borderType=cv2.BORDER_REFLECT)
    way = LENGTH * s.motion * draws["motion"]
    if draws["motion_share"] < s.motion_share and way > 0:
        weights = _line(way, math.pi * draws["heading"])
        canvas = cv2.filter2D(canvas, cv2.CV_32F, weights, borderType=cv2.BORDER_REFLECT)
    return canvas


def _line(length: float, angle: float) -> Float32[np.ndarray, "n n"]:
    """The kernel of motion blur: weights of pixels along a straight line at constant speed."""
    radius = math.ceil(length / 2)
    weights = np.zeros((2 * radius + 1, 2 * radius + 1), np.float32)
    steps = 4 * radius + 1  # each step's weight is shared among the four pixels around its place
    along = ((np.arange(steps) + 0.5) / steps - 0.5) * length
    x, y = radius + along * math.cos(angle), radius + along * math.sin(angle)
    column, row = x.astype(int), y.astype(int)
    for dx in (0, 1):
        for dy in (0, 1):
            share = np.abs(1 - dx - (x - column)) * np.abs(1 - dy - (y - row))
            at = np.minimum(row + dy, 2 * radius), np.minimum(column + dx, 2 * radius)
            np.add.at(weights, at, share.astype(np.float32) / steps)
    return weights


def _toned(canvas: Canvas, draws: Mapping[str, float], s: Strengths) -> Canvas:
    """The canvas with another gamma, another contrast around the patch's mean, and brightness."""
    three = np.array([draws[name] for name in ("gamma", "contrast", "brightness")])
    gamma, contrast, brightness = normal(three).tolist()
    if s.gamma > 0:
        exponent = np.float32(2 ** (s.gamma * gamma))
        canvas = 255 * (np.maximum(canvas, 0) / 255) ** exponent  # blur may round below 0
    octaves = s.contrast * contrast
    if draws["faint_share"] < s.faint_share:
        octaves -= s.faint * draws["faint"]
    mean, deviation = _statistics(canvas)
    factor = max(2**octaves, min(1.0, FLATTEST / max(deviation, 1e-9)))
    # Two standard deviations around the mean stay within 0..255, or as much of them as before.
    reach = 2 * factor * deviation
    wanted = mean + s.brightness * brightness
    wanted = min(max(wanted, min(mean, reach)), max(mean, 255 - reach))
    return (canvas - mean) * np.float32(factor) + np.float32(wanted)


def _noisy(
    canvas: Canvas, draws: Mapping[str, float], s: Strengths, pixels: int, seed: tuple[int, ...]
) -> Canvas:
    """The canvas with normal noise in the camera's pixels."""
    sigma = min(s.noise * draws["noise"], LOUDEST * _statistics(canvas)[1])
    if sigma <= 0:
        return canvas
    noise = (sigma * normal(uniform(seed, pixels, pixels))).astype(np.float32)
    return canvas + _enlarged(noise)


def _compressed(canvas: Canvas, draws: Mapping[str, float], s: Strengths, pixels: int) -> Canvas:
    """The canvas with the JPEG artefacts of the camera's pixels; the block grid starts anywhere."""
    if draws["jpeg_share"] >= s.jpeg_share or s.jpeg <= 0:
        return canvas
    small = rounded(cv2.resize(canvas, (pixels, pixels), interpolation=cv2.INTER_AREA))
    right, down = int(8 * draws["phase_right"]), int(8 * draws["phase_down"])
    padded = cv2.copyMakeBorder(small, down, 0, right, 0, cv2.BORDER_REFLECT)
    quality = round(100 - s.jpeg * (1 + 2 * draws["jpeg"]) / 3)
    while True:
        _, code = cv2.imencode(".jpg", padded, [cv2.IMWRITE_JPEG_QUALITY, quality])
        decoded = np.asarray(cv2.imdecode(code, cv2.IMREAD_GRAYSCALE), np.float32)
        change = _enlarged(decoded[down:, right:] - small)
        changed = canvas + change
        if quality >= 100 or _statistics(changed)[1] >= LEFT * _statistics(canvas)[1]:
            return changed
        quality = min(quality + BETTER, 100)


def _enlarged(small: Float32[np.ndarray, "n n"]) -> Canvas:
    return cv2.resize(small, (CANVAS, CANVAS), interpolation=cv2.INTER_LINEAR)
