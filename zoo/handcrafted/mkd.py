"""MKD: kernels of the place and direction of gradients, in two coordinate systems.

A. Mukundan, G. Tolias, O. Chum, Multiple-kernel local-patch descriptor, BMVC 2017.
A. Mukundan, G. Tolias, A. Bursuc, H. Jegou, O. Chum, Understanding and improving kernel local
descriptors, IJCV 2019. Whitenings: MIT, https://github.com/manyids2/mkd_pytorch.

The patch is resized to 64x64, for which the whitenings were learned, with grey values in [0, 1],
and smoothed by 5x5 weights of a Gaussian of 1.4 pixels. Each pixel has a vector of its gradient's
direction, the first harmonics of a von Mises kernel, weighted by the root of its size. It is
multiplied by such a vector of the pixel's place, and summed over the patch: once with polar
coordinates and directions relative to the angle of the pixel, once with Cartesian ones. Both parts,
and both together, get unit length.
Kornia's MKD is the same, but for pixels without gradient: the authors' code gives them a size of
1e-4, Kornia none.

`mkd` are these 238 numbers. `mkd-pcawt.SCENE` and `mkd-lw.SCENE` whiten them, keep 128 numbers, and
make unit length again. pcawt is principal components with attenuated scale, learned without labels;
the authors take it by default, as it generalises better. lw is learned from matching pairs, and
better on PhotoTour.
"""

from functools import cache
from math import pi, sqrt

import cv2
import numpy as np
from jaxtyping import Complex64, Float, Float32, UInt8

from harness import registry
from harness.data import weights
from harness.data.weights import Weights
from harness.distances import L2
from harness.types import Conventions, Descriptor, Patches
from zoo.describing import LIBRARIES, in_threads, resized
from zoo.published import conventions

SIDE = 64
SMOOTHING = 1.4  # pixels
EPSILON = np.float32(1e-8)  # added to squares and sizes, so that a flat patch has a vector, too
ROUNDING = np.float32(1e-6)  # no gradient is smaller; rounding leaves some 1e-8
DIM = 238  # 7 of directions times 25 of polar places, and times 9 of Cartesian ones
WHITENED = 128
ATTENUATION = 0.7  # of pcawt: each component is divided by its deviation to this power
# Fourier coefficients of von Mises kernels, with the digits that the authors give.
DIRECTION = (0.14343168, 0.268285, 0.21979234, 0.15838885)  # kappa 8, 3 harmonics
POLAR = (0.14343168, 0.268285, 0.21979234)  # kappa 8, 2 harmonics
CARTESIAN = (0.38214156, 0.48090413)  # kappa 1, 1 harmonic


def _describe(patches: Patches) -> Float32[np.ndarray, "n 238"]:
    return in_threads(_part, patches, DIM, np.float32)


def _part(patches: Patches) -> Float32[np.ndarray, "n 238"]:
    absolute = _directions(np.array([_smoothed(patch) for patch in patches]))
    away, polar, cartesian = _places()
    parts = _unit(_summed(absolute * away, polar)), _unit(_summed(absolute, cartesian))
    return _unit(np.concatenate(parts, axis=1))


def _smoothed(patch: UInt8[np.ndarray, "height width"]) -> Float32[np.ndarray, "64 64"]:
    grey = resized(patch, SIDE) / np.float32(255)
    return cv2.GaussianBlur(grey, (5, 5), SMOOTHING, borderType=cv2.BORDER_REPLICATE)


def _directions(grey: Float32[np.ndarray, "n 64 64"]) -> Complex64[np.ndarray, "n 4 pixels"]:
    """Powers 0 to 3 of each gradient's direction, weighted by its size and the kernel."""
    wide = np.pad(grey, ((0, 0), (1, 1), (1, 1)), "edge")
    fall = np.empty(grey.shape, np.complex64)  # the gradient, downhill
    fall.real = wide[:, 1:-1, :-2] - wide[:, 1:-1, 2:]
    fall.imag = wide[:, :-2, 1:-1] - wide[:, 2:, 1:-1]
    squared = fall.real**2 + fall.imag**2
    flat = squared < ROUNDING**2
    # A pixel without gradient has direction 0, as in the authors' code.
    unit = np.where(flat, np.complex64(1), fall / np.sqrt(np.where(flat, 1, squared)))
    weight = np.sqrt(np.sqrt(squared + EPSILON) + EPSILON)
    powers = [weight * unit**k * np.float32(sqrt(c)) for k, c in enumerate(DIRECTION)]
    return np.stack(powers, axis=1).reshape(len(grey), len(DIRECTION), SIDE * SIDE)


def _summed(
    directions: Complex64[np.ndarray, "n 4 pixels"], places: Float32[np.ndarray, "pixels p"]
) -> Float32[np.ndarray, "n 7*p"]:
    """Sums over the patch of each number of a direction times each number of a place."""
    numbers = np.concatenate([directions.real, directions.imag[:, 1:]], axis=1)  # (n, 7, pixels)
    return (numbers @ places).reshape(len(numbers), -1)


@cache
def _places() -> tuple[
    Complex64[np.ndarray, "4 pixels"],
    Float32[np.ndarray, "pixels 25"],
    Float32[np.ndarray, "pixels 9"],
]:
    """Powers that turn a direction back by a pixel's angle; polar and Cartesian places."""
    at = np.linspace(-1, 1, SIDE)
    x, y = (grid.ravel() for grid in np.meshgrid(at, at))
    radius, angle = np.sqrt(x**2 + y**2 + EPSILON), np.arctan2(y, x)
    window = np.exp(-((radius / radius.max()) ** 2))
    away = np.exp(-1j * angle * np.arange(len(DIRECTION))[:, None])
    polar = _products(_harmonics(angle, POLAR), _harmonics(radius * pi / sqrt(2), POLAR))
    cartesian = _products(_harmonics(x * pi / 2, CARTESIAN), _harmonics(y * pi / 2, CARTESIAN))
    polar, cartesian = (
        (places * window[:, None]).astype(np.float32) for places in (polar, cartesian)
    )
    return away.astype(np.complex64), polar, cartesian


def _harmonics(
    angle: Float[np.ndarray, " pixels"], coefficients: tuple[float, ...]
) -> Float[np.ndarray, "pixels h"]:
    """Constant, cosines and sines of the multiples of an angle, weighted by a kernel."""
    weighted = [sqrt(c) * np.exp(1j * k * angle) for k, c in enumerate(coefficients)]
    return np.stack([*(w.real for w in weighted), *(w.imag for w in weighted[1:])], axis=1)


def _products(
    a: Float[np.ndarray, "pixels m"], b: Float[np.ndarray, "pixels n"]
) -> Float[np.ndarray, "pixels m*n"]:
    return (a[:, :, None] * b[:, None, :]).reshape(len(a), -1)


def _unit(vectors: Float32[np.ndarray, "n dim"]) -> Float32[np.ndarray, "n dim"]:
    return vectors / np.sqrt(np.einsum("nd,nd->n", vectors, vectors))[:, None]


def mkd() -> Descriptor:
    """Both parts of MKD, not whitened."""
    return Descriptor(
        "mkd",
        _describe,
        L2,
        dim=DIM,
        libraries=LIBRARIES,
        licence="MIT",
        conventions=Conventions(
            keypoint="the whole patch",
            side=SIDE,
            normalisation="grey values over 255, a Gaussian of 1.4 pixels; both parts and the"
            " vector to unit length",
            source="Mukundan et al., BMVC 2017 and IJCV 2019; manyids2/mkd_pytorch@fb97c42",
        ),
    )


def _whitened(kind: str, scene: str) -> Descriptor:
    row: Weights = registry.load("weights", "mkd")[f"mkd-{kind}.{scene}"]
    learned = {name: tensor.numpy() for name, tensor in weights.load(row).items()}
    of = f"{scene}.{'lw' if kind == 'lw' else 'pca'}"
    mean, axes = learned[f"{of}.mean"], learned[f"{of}.eigvecs"][:, :WHITENED]
    if kind == "pcawt":
        axes = axes * learned[f"{of}.eigvals"][:WHITENED] ** np.float32(-ATTENUATION / 2)

    def describe(patches: Patches) -> Float32[np.ndarray, "n 128"]:
        # One product a row, so that no row depends on the others.
        return _unit(((_describe(patches) - mean)[:, None] @ axes)[:, 0])

    return Descriptor(
        row.name,
        describe,
        L2,
        dim=WHITENED,
        trained_on=row.trained_on,
        licence=row.licence,
        weights=row.sha256,
        libraries=LIBRARIES,
        conventions=conventions.MKD_LW if kind == "lw" else conventions.MKD_PCAWT,
    )


def pcawt_liberty() -> Descriptor:
    """MKD whitened by attenuated principal components of Liberty."""
    return _whitened("pcawt", "liberty")


def pcawt_notredame() -> Descriptor:
    """MKD whitened by attenuated principal components of Notre Dame."""
    return _whitened("pcawt", "notredame")


def pcawt_yosemite() -> Descriptor:
    """MKD whitened by attenuated principal components of Yosemite."""
    return _whitened("pcawt", "yosemite")


def lw_liberty() -> Descriptor:
    """MKD whitened by matching pairs of Liberty."""
    return _whitened("lw", "liberty")


def lw_notredame() -> Descriptor:
    """MKD whitened by matching pairs of Notre Dame."""
    return _whitened("lw", "notredame")


def lw_yosemite() -> Descriptor:
    """MKD whitened by matching pairs of Yosemite."""
    return _whitened("lw", "yosemite")
