"""Measure how fingerprints of photographs differ, to choose the limit of the guard for test images.

    python -m studies.same_photographs --different DIR --sequences DIR,DIR --out FILE

The images of `--different` show different things. Each folder below `--sequences` shows one scene.
The table has the differing bits of 255 (`protocols.imaging.same_photograph`) between different
photographs, between changed copies of one photograph, and between the images of each scene.
"""

import argparse
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path

import cv2
import numpy as np

from harness.files import atomic
from harness.records import markdown_table
from protocols.imaging import photographs
from protocols.imaging.grey import Grey, read_grey
from protocols.imaging.same_photograph import SAME, cut, differences, fingerprints

SIZE = 512  # pixels of the longer side of the images that are changed
COPIES = 150  # images that are changed
CLOSEST = 10  # pairs of different photographs that are shown
COLUMNS = ("", "pairs", "least", "median", "99 %", "most", f"found, at most {SAME} bits")


def copied(most: float) -> Callable[[Grey, np.random.Generator], Grey]:
    """Cut up to a share off each side, reduce to 30 to 100 %, compress as JPEG, change gamma."""

    def changed(image: Grey, rng: np.random.Generator) -> Grey:
        part = cut(image, *rng.uniform(0, most, 4))
        by = rng.uniform(0.3, 1)
        small = cv2.resize(part, None, fx=by, fy=by, interpolation=cv2.INTER_AREA)
        encoded = cv2.imencode(".jpg", small, [cv2.IMWRITE_JPEG_QUALITY, 30])[1]
        read = np.asarray(cv2.imdecode(encoded, cv2.IMREAD_GRAYSCALE))
        return (255 * (read / 255.0) ** rng.uniform(0.7, 1.4)).astype(np.uint8)

    return changed


def turned(degrees: float) -> Callable[[Grey, np.random.Generator], Grey]:
    """Turn around the middle, and enlarge so that no corner is empty to the eye."""

    def changed(image: Grey, rng: np.random.Generator) -> Grey:
        height, width = image.shape
        turn = cv2.getRotationMatrix2D((width / 2, height / 2), degrees, 1 + 0.03 * degrees)
        return cv2.warpAffine(image, turn, (width, height))

    return changed


CHANGES = {
    **{f"cut by up to {100 * most:g} %": copied(most) for most in (0, 0.02, 0.05, 0.1, 0.15, 0.2)},
    **{f"turned by {degrees} degrees": turned(degrees) for degrees in (1, 3, 5)},
}


def read(folder: Path) -> Iterator[tuple[str, Grey]]:
    """Yields the images of a folder by name, reduced to SIZE."""
    for name in photographs.find(folder):
        grey = read_grey(folder / name)
        by = min(1.0, SIZE / max(grey.shape))
        yield name, cv2.resize(grey, None, fx=by, fy=by, interpolation=cv2.INTER_AREA)


def row(name: str, bits: np.ndarray) -> list[str]:
    """Cells of a row of the table."""
    shown = (bits.min(), np.median(bits), np.percentile(bits, 99), bits.max())
    return [name, str(len(bits)), *(f"{v:.0f}" for v in shown), f"{np.mean(bits <= SAME):.1%}"]


def main() -> None:
    """Measure, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--different", required=True, type=Path)
    parser.add_argument("--sequences", required=True)
    parser.add_argument("--out", required=True, type=Path)
    given = parser.parse_args()
    images, scene = [], []
    for folder in (given.different, *map(Path, given.sequences.split(","))):
        for name, grey in read(folder):
            images.append((f"{folder.name}/{name}", grey))
            is_alone = folder == given.different
            scene.append(images[-1][0] if is_alone else images[-1][0].rpartition("/")[0])
    prints = np.stack([fingerprints(grey) for _, grey in images])
    apart = np.stack([differences(own, prints) for own in prints])
    kinds: dict[str, list[tuple[int, int]]] = {}  # pairs by scene; "" if they show two scenes
    for a, b in combinations(range(len(images)), 2):
        kinds.setdefault(scene[a] if scene[a] == scene[b] else "", []).append((a, b))
    bits = {kind: apart[tuple(np.transpose(pairs))] for kind, pairs in kinds.items()}
    rng = np.random.default_rng(0)
    chosen = rng.choice(len(images), min(COPIES, len(images)), replace=False)
    rows = [row("different", bits[""])]
    for name, change in CHANGES.items():
        copies = [fingerprints(change(images[k][1], rng)) for k in chosen]
        found = [differences(a, prints[k : k + 1]) for a, k in zip(copies, chosen, strict=True)]
        rows.append(row(name, np.concatenate(found)))
    rows += [row(kind, of) for kind, of in sorted(bits.items()) if kind]
    lines = [*markdown_table.lines(COLUMNS, rows)]
    lines += ["", f"The {CLOSEST} closest pairs of different folders or photographs:", ""]
    for k in np.argsort(bits[""], kind="stable")[:CLOSEST]:
        a, b = kinds[""][k]
        lines.append(f"- {bits[''][k]}: {images[a][0]}, {images[b][0]}")
    atomic.write_text(given.out, "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
