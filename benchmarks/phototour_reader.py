"""Time and memory of reading a PhotoTour scene, beside the algorithm of torchvision's reader.

    python -m benchmarks.phototour_reader [--tiles N] [--slow FRACTION]

A scene of N tiles (256 patches each; liberty has 1,759) is written to a temporary folder. Ours
reads the text, checks and hashes every tile and reads every patch, a block of 16 tiles at a time.
The other, written down from torchvision's documented behaviour, cuts each tile with PIL, turns
every patch into an array pixel by pixel through `getdata`, and holds the whole scene; a share of
the tiles is timed and scaled up. Both give the same patches.
"""

import argparse
import os
import resource
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.comparison import Comparison
from harness.records import markdown_table
from protocols.phototour.reader import blocks, read_pairs, read_scene
from protocols.phototour.writer import SIDE, TILE, write_scene


def made_scene(folder: Path, tiles: int) -> None:
    """Write a scene of random patches."""
    rng = np.random.default_rng(0)
    n = tiles * TILE - 100
    batches = (
        rng.integers(0, 256, (min(TILE, n - i), SIDE, SIDE), np.uint8) for i in range(0, n, TILE)
    )
    pairs = rng.integers(0, n, (100_000, 2))
    pairs[::2, 1] = pairs[::2, 0] ^ 1
    pairs = pairs[(pairs < n).all(axis=1)]
    interest = rng.random((n, 5)).round(3) * [0, 1, 1, 1, 1]
    write_scene(folder, batches, np.arange(n) // 2, interest, {"m50_100000_100000_0.txt": pairs})


def ours(folder: Path) -> int:
    """Read a scene as the harness does; the number of its patches."""
    scene = read_scene(folder)
    read_pairs(scene)
    for block in blocks(scene):
        block.read()
    return len(scene)


def text_line_by_line(folder: Path) -> None:
    """Read the text files of a scene line by line."""
    with (folder / "info.txt").open() as stream:
        np.array([int(line.split()[0]) for line in stream])
    with (folder / "m50_100000_100000_0.txt").open() as stream:
        rows = [line.split() for line in stream]
        np.array([[int(row[0]), int(row[3]), int(row[1] == row[4])] for row in rows])


def pixel_by_pixel(files: list[Path]) -> np.ndarray:
    """Patches of some tiles, each cut by PIL and turned into an array through `getdata`."""
    patches = []
    for file in files:
        image = Image.open(file)
        for y in range(0, image.height, SIDE):
            for x in range(0, image.width, SIDE):
                patch = image.crop((x, y, x + SIDE, y + SIDE))
                patches.append(np.array(patch.getdata(), dtype=np.uint8).reshape(SIDE, SIDE))
    return np.array(patches)


def seconds(run: Callable[[], object]) -> float:
    """How long a call takes."""
    begun = time.perf_counter()
    run()
    return time.perf_counter() - begun


def compared(tiles: int, share: float, tell: Callable[[str], object]) -> tuple[Comparison, int]:
    """A scene read by both algorithms, the slow one on a share of the tiles; and its patches."""
    warnings.simplefilter("ignore", DeprecationWarning)  # Pillow 12 gives getdata another name
    with tempfile.TemporaryDirectory() as root:
        os.environ["HARNESS_CACHE"] = root  # tiles in the cache are hashed each time
        folder = Path(root) / "liberty"
        writing = seconds(lambda: made_scene(folder, tiles))
        tell(f"{tiles} tiles written in {writing:.1f} s")
        patches = ours(folder)  # files are in memory for both
        fast = seconds(lambda: ours(folder))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        tell(f"peak memory of ours {peak:.0f} MiB, the patches have {patches / TILE:.0f}")
        files = sorted(folder.glob("*.bmp"))
        some = files[: max(1, round(len(files) * share))]
        slow = seconds(lambda: pixel_by_pixel(some)) * len(files) / len(some)
        slow += seconds(lambda: text_line_by_line(folder))
        same = np.array_equal(
            pixel_by_pixel(files[:1]), blocks(read_scene(folder))[0].read()[:TILE]
        )
    task = f"PhotoTour, reading {patches:,} patches"
    results = "same patches" if same else "other patches"
    return Comparison(task, fast, "pixel by pixel, as torchvision", slow, results), patches


def comparisons(quick: bool) -> Iterator[Comparison]:
    """Yields the rows of `python -m benchmarks`."""
    row, _ = compared(*((4, 0.25) if quick else (200, 0.1)), lambda text: None)
    yield row


def main() -> None:
    """Write a scene, read it by both, print times and memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiles", type=int, default=200)
    parser.add_argument("--slow", type=float, default=0.1, help="share of tiles taken by pixels")
    given = parser.parse_args()
    row, patches = compared(given.tiles, given.slow, print)
    rows = (
        (name, f"{taken:.2f}", f"{patches / taken:,.0f}")
        for name, taken in (("ours, checks included", row.ours_s), (row.reference, row.reference_s))
    )
    print("\n".join(markdown_table.lines(["reader", "s", "patches a second"], rows)))
    print(f"\nratio {row.ratio:.0f}; {row.results}")


if __name__ == "__main__":
    main()
