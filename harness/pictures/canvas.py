"""Parts of pictures as arrays of colours: lines of text, rows of framed patches, PNG files."""

from collections.abc import Iterable, Sequence

import cv2
import numpy as np
from jaxtyping import UInt8

from harness.escape import visible

Colours = UInt8[np.ndarray, "_height _width 3"]
Colour = tuple[int, int, int]

WIDTH = 1400  # pixels of a picture
SIDE = 65  # pixels of a patch in a picture
GAP = 8  # pixels around patches
TEXT = 26  # height of a line of text, pixels
SMALL = 16  # height of the text below a patch, pixels
PAPER, INK = (255, 255, 255), (0, 0, 0)
RIGHT, WRONG = (0, 158, 115), (213, 94, 0)  # also distinct for the colour-blind (Okabe & Ito)
PLAIN = (170, 170, 170)
EACH = WIDTH // (SIDE + GAP)  # patches in a row


def line(text: str, width: int = WIDTH) -> Colours:
    """A line of text, black on white; characters that the font lacks become question marks."""
    found = paper(TEXT, width)
    _write(found, text, (GAP, TEXT - GAP), 0.5)
    return found


def columns(
    stacks: Sequence[Sequence[tuple[UInt8[np.ndarray, "_side _side"], Colour]]],
    texts: Sequence[str] = (),
    width: int = WIDTH,
) -> Colours:
    """Stacks of framed patches side by side, each of as many patches; they wrap at the width.

    Args:
        stacks: of patches of SIDE pixels, each with the colour of its frame.
        texts: short text below each stack; none where empty.
        width: pixels.
    """
    if not stacks:
        return paper(0, width)
    each = width // (SIDE + GAP)
    high, step = len(stacks[0]) * (SIDE + GAP), SIDE + GAP
    rows = []
    for start in range(0, len(stacks), each):
        row = paper(high + (SMALL if texts else 0) + GAP, width)
        for place, stack in enumerate(stacks[start : start + each]):
            left = place * step
            for level, (patch, colour) in enumerate(stack):
                top = level * step
                row[top : top + step, left : left + step] = colour
                inner = slice(top + GAP // 2, top + GAP // 2 + SIDE)
                row[inner, left + GAP // 2 :][:, :SIDE] = patch[..., None]
            if texts:
                _write(row, texts[start + place], (left + 2, high + SMALL - 4), 0.38)
        rows.append(row)
    return np.concatenate(rows)


def png(parts: Iterable[Colours]) -> bytes:
    """Parts of one width below each other, as a PNG file."""
    colours = np.concatenate([*parts])
    return cv2.imencode(".png", np.ascontiguousarray(colours[..., ::-1]))[1].tobytes()


def paper(height: int, width: int = WIDTH) -> Colours:
    """A white part of a picture."""
    return np.full((height, width, 3), PAPER, np.uint8)


def _write(on: Colours, text: str, place: tuple[int, int], size: float) -> None:
    font = cv2.FONT_HERSHEY_SIMPLEX
    cv2.putText(on, visible(text), place, font, size, INK, 1, cv2.LINE_AA)
