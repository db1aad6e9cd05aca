"""Where a stand-in is made: room on the disk is checked first, and a stopped run resumes."""

import argparse
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from harness.errors import InputError, SystemRefusedError
from harness.files import atomic, folders
from protocols.resuming import resuming

SPARE = 1 << 30  # bytes of the disk that are left to others


def place(
    out: Path, request: Mapping[str, object], bytes_needed: int, fill: Callable[[Path], object]
) -> None:
    """Make the folder `out` by `fill`; it appears when it is complete.

    Until then its files are in the folder `.NAME.making` beside it. A later run of the same request
    gives `fill` the same folder, which may keep what a stopped run had finished.

    Raises:
        SystemRefusedError: if the disk has no room for `bytes_needed`; nothing is written.
        FileInTheWayError: if `out` is not empty.
        BlockingIOError: if another process makes it.
    """
    atomic.must_be_free(out)
    work = out.resolve().with_name(f".{out.resolve().name}.making")
    above = next(parent for parent in work.parents if parent.exists())
    free = shutil.disk_usage(above).free + used(work)
    if free - SPARE < bytes_needed:
        raise SystemRefusedError(
            f"{out} needs {gigabytes(bytes_needed)}, and {above} has {gigabytes(free)} free, of"
            f" which {gigabytes(SPARE)} are left to others: give a smaller share, or another disk"
        )
    with resuming(work, request):
        target = work / "set"
        target.mkdir(exist_ok=True)
        fill(target)
        if out.is_dir():
            out.rmdir()  # it is empty
        target.rename(out)
        shutil.rmtree(work)


def used(folder: Path) -> int:
    """Bytes of all files below a folder; 0 if there is no folder."""
    return sum(file.stat().st_size for file in folders.files(folder)) if folder.is_dir() else 0


def gigabytes(count: float) -> str:
    """Bytes as a person reads them.

    >>> gigabytes(1_750_000_000), gigabytes(3_000_000)
    ('1.8 GB', '3 MB')
    """
    return f"{count / 1e9:.1f} GB" if count >= 1e8 else f"{count / 1e6:.0f} MB"


def share_of(text: str) -> float:
    """A share of the full size, written as "1/16" or "0.25".

    >>> share_of("1/16"), share_of("1")
    (0.0625, 1.0)
    """
    above, _, below = text.partition("/")
    try:
        share = float(above) / float(below or 1)
    except (ValueError, ZeroDivisionError):
        share = 0.0
    if not 0 < share <= 1:
        raise InputError(f"{text!r} is no share: give a fraction above 0 and at most 1, as 1/16")
    return share


def run(
    about: str | None,
    holds: Callable[[float], str],
    bytes_needed: Callable[[float], int],
    make: Callable[..., Any],
) -> None:
    """The command line of a stand-in: say what a share of it holds and takes, and make it.

    Args:
        about: the help.
        holds: says what the stand-in of a share holds.
        bytes_needed: most bytes of a share.
        make: makes a share in a new folder.
    """
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--share", type=share_of, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    room = gigabytes(bytes_needed(given.share))
    print(f"{holds(given.share)}: at most {room} in {given.out}", flush=True)
    make(given.out, share=given.share, seed=given.seed)
