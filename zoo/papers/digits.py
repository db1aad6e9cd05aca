"""Mixed context's figure 1: digits in two dimensions by Siamese, mixed and triplet loss.

Section 5.1: BN-Net, 1,000 steps of 128 random triplets, L_sub with alpha 0.1, a rate that falls
from 0.1 to 0.001. The layers of BN-Net, theta and the pairs of FPR95 are not in the paper.
"""

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float32, Float64, Int, UInt8
from scipy.ndimage import gaussian_filter

from harness import cache
from harness.distances import L2
from harness.errors import FileMissingError, InputError
from harness.files import atomic
from harness.metrics import fpr_at_95, precision_recall_curve, rank
from zoo.mixed_context import BNNet, mixed_context
from zoo.training.distances import euclidean_paired

TRIPLETS, FIRST_LR, LAST_LR = 128, 0.1, 0.001
TESTED = 3000  # digits whose pairs are compared
SHOWN = 100  # points of a digit, and of a curve
SIDE = 28
CHI_SQUARE = 5.991  # that 95 % of sums of two squared normal numbers are below
CORNERS = 49  # points on an ellipse

Digits = UInt8[np.ndarray, "n 28 28"]
Classes = UInt8[np.ndarray, " n"]


def digits(
    trained: Path | None,
    data: Sequence[Path],
    *,
    gamma: float,
    theta: float,
    iterations: int,
    tested: int = TESTED,
) -> dict[str, Any]:
    """FPR95 of the test digits, their vectors, and precision over recall.

    Args:
        trained: not used: the training is a matter of seconds.
        data: the folder of MNIST's gzipped files.
        gamma: weight of the triplet's own threshold.
        theta: the global threshold.
        iterations: steps.
        tested: number of the first test digits, of which all pairs are compared.
    """
    shown, classes = read(data[0], "train")
    network = trained_on(shown, classes, gamma=gamma, theta=theta, iterations=iterations)
    tests, of = read(data[0], "t10k")
    tests, of = tests[:tested], of[:tested]
    with torch.inference_mode():
        parts = [network(_padded(part)) for part in np.array_split(tests, -(-len(tests) // 500))]
    vectors = torch.cat(parts).numpy()
    one, other = np.triu_indices(len(vectors), 1)
    match = of[one] == of[other]
    return {
        "value": float(fpr_at_95(rank(match, L2.paired(vectors, one, other)))),
        "lower_is_better": True,
        "points": {str(c): vectors[of == c][:SHOWN].tolist() for c in range(10)},
        "outlines": {str(c): ellipse(vectors[of == c]) for c in range(10)},
        "curves": {"precision over recall": _curve(match, L2.paired(vectors, one, other))},
    }


def ellipse(vectors: Float32[np.ndarray, "n 2"]) -> list[list[float]]:
    """Points on the ellipse that holds 95 % of the normal distribution of vectors."""
    variance, across = np.linalg.eigh(np.cov(vectors.T))
    angle = np.linspace(0, 2 * np.pi, CORNERS)
    circle = np.stack([np.cos(angle), np.sin(angle)])
    axes = across * np.sqrt(CHI_SQUARE * np.maximum(variance, 0))
    return ((axes @ circle).T + vectors.mean(axis=0)).tolist()


def read(folder: Path, part: str) -> tuple[Digits, Classes]:
    """Images and classes of a part, "train" or "t10k"; of "train", the first 10,000 if there are
    no others.

    Raises:
        FileMissingError: if a file is missing; names it.
        InputError: if images and classes don't agree in number.
    """
    known = [name for name in (part, f"{part}10k") if _file(folder, name, "images").is_file()]
    if not known:
        raise FileMissingError(
            f"there is no {_file(folder, part, 'images')}: MNIST's four gzipped files are wanted"
        )
    raw = gzip.decompress(_file(folder, known[0], "images").read_bytes())
    labels = gzip.decompress(_file(folder, known[0], "labels").read_bytes())
    images = np.frombuffer(raw, np.uint8, offset=16).reshape(-1, SIDE, SIDE)
    classes = np.frombuffer(labels, np.uint8, offset=8)
    if len(images) != len(classes):
        raise InputError(f"{folder}: {len(images)} images of {known[0]}, {len(classes)} classes")
    return images, classes


def _file(folder: Path, part: str, kind: str) -> Path:
    return folder / f"{part}-{kind}-idx{3 if kind == 'images' else 1}-ubyte.gz"


def trained_on(
    shown: Digits, classes: Classes, *, gamma: float, theta: float, iterations: int
) -> BNNet:
    """A BN-Net after so many steps of steepest descent."""
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    network = BNNet().train()
    optimiser = torch.optim.SGD(network.parameters(), lr=FIRST_LR)
    falls = (LAST_LR / FIRST_LR) ** (1 / iterations)
    fall = torch.optim.lr_scheduler.ExponentialLR(optimiser, falls)
    for _ in range(iterations):
        rows = random_triplets(classes, rng)
        anchor, positive, negative = network(_padded(shown[rows])).chunk(3)
        loss = mixed_context(
            euclidean_paired(anchor, positive),
            euclidean_paired(anchor, negative),
            theta,
            gamma=gamma,
            alpha=0.1,
            delta=torch.inf,
            loss="log",
        ).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        fall.step()
    return network.eval()


def random_triplets(classes: Classes, rng: np.random.Generator) -> Int[np.ndarray, " rows"]:
    """Rows of anchors, of others of their class, and of digits of other classes."""
    rows = [np.flatnonzero(classes == c) for c in range(10)]
    drawn = [rng.permutation(10)[:2] for _ in range(TRIPLETS)]
    pairs = np.array([rng.choice(rows[own], 2, replace=False) for own, _ in drawn])
    return np.concatenate([*pairs.T, [rng.choice(rows[other]) for _, other in drawn]])


def _padded(shown: Digits) -> torch.Tensor:
    """Black digits on white paper, 32x32; the files say 0 where paper is white."""
    white = 255 - np.pad(shown, [(0, 0), (2, 2), (2, 2)])
    return torch.from_numpy(white)[:, None].float()


def _curve(match: Bool[np.ndarray, " m"], distance: Float64[np.ndarray, " m"]) -> list[list[float]]:
    recall, precision = precision_recall_curve(rank(match, distance))
    some = np.unique(np.linspace(0, len(recall) - 1, SHOWN).astype(int))
    return np.stack([recall[some], precision[some]], axis=1).tolist()


def sample() -> Path:
    """A cached folder of made-up digits in MNIST's files, for trials only."""
    return cache.folder("datasets", "digits-sample", make=make, is_whole=Path.is_dir)


def make(folder: Path, each: int = 30) -> None:
    """Write ten noisy shapes, so many times each, as training and as test digits."""
    rng = np.random.default_rng(0)
    shapes: Float32[np.ndarray, "10 28 28"] = gaussian_filter(
        rng.normal(size=(10, SIDE, SIDE)), (0, 4, 4)
    ).astype(np.float32)
    for part in ("train", "t10k"):
        classes = np.tile(np.arange(10, dtype=np.uint8), each)
        noisy = shapes[classes] * 2000 + rng.normal(0, 60, (len(classes), SIDE, SIDE))
        images = np.clip(noisy, 0, 255).astype(np.uint8)
        for kind, head, array in (("images", 16, images), ("labels", 8, classes)):
            packed = gzip.compress(bytes(head) + array.tobytes(), mtime=0)
            with atomic.writing(_file(folder, part, kind)) as stream:
                stream.write(packed)
