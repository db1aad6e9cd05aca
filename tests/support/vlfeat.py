"""VLFeat's SIFT and LIOP, an oracle for ours: of golden patches, and of frames of a photograph.

    apt-get install libvlfeat1
    python tests/support/vlfeat.py

writes SIFT and LIOP of the golden patches below `tests/support/golden/vlfeat`. The files there are
those of VLFeat 0.9.21 (Debian bookworm).
"""

import ctypes
from collections.abc import Iterator
from ctypes import c_double, c_float, c_int, c_size_t, c_void_p
from pathlib import Path

import cv2
import golden_values
import numpy as np

FOLDER = golden_values.FOLDER / "vlfeat"


def sift_patches() -> np.ndarray:
    """The golden patches, 65x65, as VLFeat takes them."""
    return golden_values.patches().astype(np.float32)


def liop_patches() -> np.ndarray:
    """The middle 41x41 pixels of the golden patches, made so that no two pixels are equal."""
    middle = golden_values.patches()[:, 12:53, 12:53].astype(np.float32)
    order = np.random.default_rng(0).permutation(41 * 41).reshape(41, 41)
    return (middle * 4096 + order).astype(np.float32)  # below 2^24: exact


def sift(library: ctypes.CDLL, patch: np.ndarray) -> np.ndarray:
    """The SIFT of vl_covdet: cells of (n - 1)/5 pixels, three times sigma."""
    side = len(patch)
    middle = (side - 1) / 2
    library.vl_sift_new.restype = c_void_p
    library.vl_imgradient_polar_f.argtypes = [
        *[c_void_p] * 2, c_size_t, c_size_t, c_void_p, *[c_size_t] * 3,
    ]  # fmt: skip
    library.vl_sift_calc_raw_descriptor.argtypes = [
        *[c_void_p] * 3, c_int, c_int, *[c_double] * 4,
    ]  # fmt: skip
    polar, vector = np.zeros((side, side, 2), np.float32), np.zeros(128, np.float32)
    address = polar.ctypes.data
    library.vl_imgradient_polar_f(
        address, address + 4, 2, 2 * side, patch.ctypes.data, side, side, side
    )
    filter_ = library.vl_sift_new(16, 16, 1, 3, 0)
    library.vl_sift_calc_raw_descriptor(
        filter_, address, vector.ctypes.data, side, side, middle, middle, middle / 7.5, 0
    )
    return vector


def liop(library: ctypes.CDLL, patch: np.ndarray) -> np.ndarray:
    """The LIOP of 4 neighbours at radius 6 and 6 bins, which are VLFeat's defaults."""
    library.vl_liopdesc_new.restype = c_void_p
    library.vl_liopdesc_new.argtypes = [c_int, c_int, c_float, c_size_t]
    library.vl_liopdesc_process.argtypes = [c_void_p] * 3
    vector = np.zeros(144, np.float32)
    liop = library.vl_liopdesc_new(4, 6, 6, len(patch))
    library.vl_liopdesc_process(liop, vector.ctypes.data, patch.ctypes.data)
    return vector


def cut_frames(shared: Path, side: int, extent: float, smoothing: float) -> Iterator[np.ndarray]:
    """Patches of every fourth of the 479 frames of graf 1, nearly as vl_covdet cuts them.

    vl_covdet cuts from a scale space, where it reaches about half of its nominal smoothing.

    Args:
        shared: folder of real data.
        side: pixels of a patch.
        extent: half the side of a patch, in units of its frame.
        smoothing: standard deviation of the Gaussian, in units of the frame.
    """
    colours = cv2.imread(str(shared / "oxford_affine/graf/img1.png")).astype(np.float64)
    grey = np.round(colours @ [0.114, 0.587, 0.299]).astype(np.float32)
    fine = 4  # samples for each pixel of a patch, in each direction
    step = 2 * extent / (side - 1) / fine
    border = int(np.ceil(4 * smoothing / step))
    size = (side - 1) * fine + 1 + 2 * border
    with np.load(shared / "oxford_affine/vlfeat_frames/graf_img1_described.npz") as file:
        frames = file["frames"][::4].astype(np.float64)
    for x, y, a11, a21, a12, a22 in frames:
        turned = np.array([[a11, a12], [a21, a22]]) * step
        corner = [x - 1, y - 1] - turned @ [size / 2 - 0.5, size / 2 - 0.5]
        warp = np.column_stack([turned, corner])
        how = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
        wide = cv2.warpAffine(grey, warp, (size, size), flags=how, borderMode=cv2.BORDER_REPLICATE)
        wide = cv2.GaussianBlur(wide, (0, 0), smoothing / step)
        yield wide[border:-border:fine, border:-border:fine]


def of_frames(shared: Path, name: str) -> np.ndarray:
    """VLFeat's "sift" or "liop" of every fourth frame, from patches of vl_covdet's defaults."""
    with np.load(shared / "oxford_affine/vlfeat_frames/graf_img1_described.npz") as file:
        return file[name][::4]


def write(library: ctypes.CDLL, folder: Path = FOLDER) -> None:
    """Write SIFT and LIOP of the golden patches."""
    folder.mkdir(exist_ok=True)
    np.save(folder / "sift.npy", np.array([sift(library, patch) for patch in sift_patches()]))
    np.save(folder / "liop.npy", np.array([liop(library, patch) for patch in liop_patches()]))


if __name__ == "__main__":
    write(ctypes.CDLL("libvl.so.1"))
