"""Lists pairs of images: all, neighbours in the order of names, or those of a file."""

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

from harness.errors import InputError
from harness.files import texts
from harness.files.folders import same_form

EXHAUSTIVE, SEQUENTIAL, RETRIEVAL = "exhaustive", "sequential", "retrieval"
WAYS = (EXHAUSTIVE, SEQUENTIAL, RETRIEVAL)

ImagePairs = list[tuple[int, int]]


def exhaustive(count: int) -> ImagePairs:
    """All pairs of so many images."""
    return list(combinations(range(count), 2))


def sequential(count: int, neighbours: int) -> ImagePairs:
    """Each image with the next ones, in the order of names."""
    return [(a, b) for a in range(count) for b in range(a + 1, min(count, a + 1 + neighbours))]


def listed(file: Path, names: Sequence[str]) -> tuple[ImagePairs, int]:
    """The pairs of a file, one a line, and the number of lines that name an image not among these.

    The names of a line are separated by a tab, a comma or a blank; names may have blanks, too.
    Empty lines and lines that begin with "#" are ignored.

    Raises:
        InputError: if the file is missing or not text, or a line does not hold two names.
    """
    if not file.is_file():
        known = ", ".join(WAYS)
        raise InputError(f"{file} is no file: pairs are {known}, or a file of two names a line")
    rows = {same_form(name): row for row, name in enumerate(names)}
    found: dict[tuple[int, int], None] = {}
    unknown = 0
    for number, line in enumerate(texts.read(file).split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        candidates = _split(same_form(line.strip()))
        both = [pair for pair in candidates if pair[0] in rows and pair[1] in rows]
        if not candidates:
            raise InputError(f"{file}, line {number}: {line!r:.80} holds no two names")
        if len(both) > 1:
            raise InputError(
                f"{file}, line {number}: {line!r:.80} can be read as several pairs: separate the"
                " names by a tab"
            )
        if not both:
            unknown += 1
            continue
        a, b = (rows[name] for name in both[0])
        if a != b:
            found[min(a, b), max(a, b)] = None
    return sorted(found), unknown


def _split(line: str) -> list[tuple[str, str]]:
    """All readings of a line as two names; a tab decides alone."""
    if "\t" in line:
        parts = [part.strip() for part in line.split("\t") if part.strip()]
        return [(parts[0], parts[1])] if len(parts) == 2 else []
    found = []
    for at, letter in enumerate(line):
        if letter in " ,":
            first, second = line[:at].strip(" ,"), line[at:].strip(" ,")
            if first and second and (first, second) not in found:
                found.append((first, second))
    return found
