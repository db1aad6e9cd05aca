"""Compare the repeatability of Harris-Affine detectors on Oxford, with equal numbers of regions.

    python -m studies.oxford_detectors --data DIR --frames DIR

Each detector gives its strongest regions of an image. Their number is the number of different
outlines that the folder of regions has for the image; a region with several directions counts once.
Repeatability is the share of the regions visible in both images that match one to one with an
overlap error below 40 %, scaled to a radius of 30 pixels (Mikolajczyk et al., IJCV 2005); the table
has the mean of pairs 1-2 to 1-6. kornia's detector is left out if kornia is not installed.
"""

import argparse
import importlib.util
import time
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
from threadpoolctl import threadpool_limits

from harness.records import markdown_table
from protocols.imaging import harris_affine
from protocols.imaging.affine import AffineFrames
from protocols.imaging.grey import read_grey
from protocols.imaging.sequences import find
from protocols.oxford import regions
from protocols.oxford.ellipses import exact_overlap
from protocols.oxford.reader import SIX
from protocols.oxford.truth import repeatability

Detect = Callable[[np.ndarray, int], AffineFrames]


def outlines(frames: AffineFrames, most: int | None = None) -> AffineFrames:
    """The regions without those that differ from an earlier region only in direction."""
    shape = (frames.matrix @ frames.matrix.swapaxes(1, 2)).reshape(-1, 4)
    key = np.round(np.concatenate([frames.x[:, None], frames.y[:, None], shape], axis=1), 2)
    first = np.unique(key, axis=0, return_index=True)[1]
    return frames.take(np.sort(first)[:most])


def ours(grey: np.ndarray, most: int) -> AffineFrames:
    """Regions of the harness's own Harris-Affine detector."""
    return outlines(harris_affine.harris_affine(grey, 2 * most), most)


def opencv(grey: np.ndarray, most: int) -> AffineFrames:
    """OpenCV's Harris-Laplace points with our shapes; Python has no access to OpenCV's shapes."""
    detector = cv2.xfeatures2d.HarrisLaplaceFeatureDetector.create(6, 0.001, 0.001, 20000, 4)
    points = sorted(detector.detect(grey), key=lambda point: -point.response)[: 2 * most]
    x, y, size, score = np.array([(*p.pt, p.size, p.response) for p in points]).T.copy()
    circles = AffineFrames(x, y, size[:, None, None] / 2 * np.eye(2), score)
    return outlines(harris_affine._adapted(harris_affine._levels(grey), circles), most)


def kornia(grey: np.ndarray, most: int) -> AffineFrames:
    """Regions of kornia's scale-space Harris detector with its affine shapes."""
    import torch
    from kornia.feature import CornerHarris, LAFAffineShapeEstimator, ScaleSpaceDetector
    from kornia.geometry import ScalePyramid

    detector = ScaleSpaceDetector(
        most,
        mr_size=3.0,
        resp_module=CornerHarris(0.05),
        scale_pyr_module=ScalePyramid(3, 1.6, 15),
        aff_module=LAFAffineShapeEstimator(32),
    )
    with torch.no_grad():
        lafs, scores = detector(torch.from_numpy(grey.astype(np.float32) / 255)[None, None])
    table, score = lafs[0].double().numpy(), scores[0].double().numpy()
    sound = np.isfinite(table).all(axis=(1, 2)) & (np.abs(np.linalg.det(table[:, :, :2])) > 1e-3)
    x, y = table[sound, :, 2].T.copy()
    return AffineFrames(x, y, table[sound, :, :2] / 3.0, score[sound])


def cells(detect: Detect | None, options: argparse.Namespace) -> list[str]:
    """Repeatability and number of regions of each sequence, the mean, and seconds per image."""
    texts, shares, seconds, images = [], [], 0.0, 0
    for folder in SIX:
        (sequence,), _ = find(options.data / folder)
        frames = []
        images += len(sequence.files)
        for k, file in enumerate(sequence.files):
            given = outlines(regions.read(options.frames, folder, k + 1, file))
            grey, start = read_grey(file), time.process_time()
            frames.append(detect(grey, len(given)) if detect else given)
            seconds += time.process_time() - start
        pairs = [
            repeatability(
                frames[0],
                frames[k],
                sequence.from_first[k],
                (sequence.shapes[0], sequence.shapes[k]),
                exact_overlap,
            )
            for k in range(1, len(sequence.files))
        ]
        share, number = np.mean(pairs, axis=0)
        shares.append(share)
        texts.append(f"{100 * share:.1f} ({number:.0f})")
    timing = f"{seconds / images:.1f}" if detect else ""
    return [*texts, f"{100 * np.mean(shares):.1f}", timing]


def main() -> None:
    """Measure the detectors, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--frames", type=Path, required=True)
    options = parser.parse_args()
    detectors: dict[str, Detect | None] = {"given": None, "ours": ours, "OpenCV + ours": opencv}
    if importlib.util.find_spec("kornia"):
        detectors["kornia"] = kornia
    rows = ([name, *cells(detect, options)] for name, detect in detectors.items())
    for line in markdown_table.lines(["detector", *SIX, "mean", "s an image"], rows):
        print(line, flush=True)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
