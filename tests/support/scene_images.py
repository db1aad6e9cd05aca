"""Small photographs of one place, and a detector on a grid, for tests of pipelines."""

from pathlib import Path

import cv2
import numpy as np

from protocols.imaging.png import encode
from protocols.samples import photograph

GRID = '''
"""Keypoints on a grid; the call of number STOP, counted in the file CALLS, kills the process."""
import os, signal
from pathlib import Path
import numpy as np

CALLS, STOP = Path({calls!r}), {stop}

def grid(grey):
    with CALLS.open("a") as stream:
        stream.write("x")
    if len(CALLS.read_text()) == STOP:
        os.kill(os.getpid(), signal.SIGKILL)
    y, x = np.mgrid[20:grey.shape[0] - 20:25, 20:grey.shape[1] - 20:25]
    return np.stack([x.ravel(), y.ravel(), np.full(x.size, 2.5)], axis=1)
'''


def grid_detector(folder: Path, stop: int = 0) -> str:
    """A detector on a grid of 25 pixels, as `--detector` takes it; the file counts its calls."""
    file = folder / f"grid{stop}.py"
    file.write_text(GRID.format(calls=str(folder / f"calls{stop}"), stop=stop))
    return f"{file}:grid"


def calls(folder: Path, stop: int = 0) -> int:
    """How often the detector was called."""
    return len((folder / f"calls{stop}").read_text())


def texture(height: int = 240, width: int = 320) -> np.ndarray:
    """A grey photograph with many keypoints."""
    return np.ascontiguousarray(photograph("coffee.png", "a test")[:height, :width])


def write_png(file: Path, grey: np.ndarray) -> None:
    """Write a grey image."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(encode(np.ascontiguousarray(grey), compress=True))


def views(folder: Path, names: list[str]) -> Path:
    """Images of one plane, each moved and turned a little; names may have folders."""
    grey = photograph("coffee.png", "a test")
    for k, name in enumerate(names):
        turn = cv2.getRotationMatrix2D((200, 150), 4.0 * k, 1 + 0.03 * k)
        write_png(folder / name, cv2.warpAffine(grey, turn, (320, 240)))
    return folder
