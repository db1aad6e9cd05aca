"""HOG: equality with a slow twin of Dalal and Triggs' definition."""

import cv2
import numpy as np
from described_patches import smooth_patches as patches

from zoo.handcrafted import hog


def block(size: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """The 36 numbers of 16x16 pixels: by cell column, cell row, orientation.

    Args:
        size: of each gradient.
        turn: its orientation in ninths of half a turn.
    """
    cells = np.zeros((2, 2, 9))
    for y in range(16):
        for x in range(16):
            window = np.exp(-((y - 8) ** 2 + (x - 8) ** 2) / (2 * 4**2))  # OpenCV: not 7.5
            for row in range(2):
                for column in range(2):
                    # Half a cell from the border of the block lie the middles of its cells.
                    near = (1 - abs(y - 3.5 - 8 * row) / 8) * (1 - abs(x - 3.5 - 8 * column) / 8)
                    near *= abs(y - 3.5 - 8 * row) < 8 and abs(x - 3.5 - 8 * column) < 8
                    for orientation in range(9):
                        off = abs((turn[y, x] - orientation - 0.5 + 4.5) % 9 - 4.5)
                        cells[column, row, orientation] += (
                            window * near * max(1 - off, 0) * size[y, x]
                        )
    vector = cells.ravel()
    vector = vector / (np.linalg.norm(vector) + 3.6)  # OpenCV adds 0.1 for each number
    vector = np.minimum(vector, 0.2)
    return vector / (np.linalg.norm(vector) + 1e-3)


def twin(patch: np.ndarray) -> np.ndarray:
    root = np.pad(np.sqrt(patch.astype(np.float64)), 1, "reflect")
    dy, dx = root[2:, 1:-1] - root[:-2, 1:-1], root[1:-1, 2:] - root[1:-1, :-2]
    size, turn = np.hypot(dx, dy), np.arctan2(dy, dx) % np.pi * 9 / np.pi
    at = [(slice(y, y + 16), slice(x, x + 16)) for x in range(0, 56, 8) for y in range(0, 56, 8)]
    return np.concatenate([block(size[part], turn[part]) for part in at])


def test_hog_is_that_of_dalal_and_triggs() -> None:
    (patch,) = patches(1, 64)
    found = hog.hog().describe(patch[None])[0]
    assert np.allclose(found, twin(patch), atol=5e-4)  # OpenCV approximates the arc tangent


def test_hog_sees_the_whole_patch() -> None:
    (patch,) = patches(1, 64)
    before = hog.hog().describe(patch[None])
    for y, x in ((0, 30), (63, 30), (30, 0), (30, 63)):
        changed = patch.copy()
        changed[y, x] ^= 128
        assert not np.array_equal(hog.hog().describe(changed[None]), before), (y, x)


def test_hog_hardly_changes_with_the_resolution_of_the_patch() -> None:
    large = np.array([cv2.GaussianBlur(patch, (0, 0), 4) for patch in patches(5, 128)])
    small = np.array([cv2.resize(p, (64, 64), interpolation=cv2.INTER_AREA) for p in large])
    assert np.array_equal(hog.hog().describe(large), hog.hog().describe(small))
