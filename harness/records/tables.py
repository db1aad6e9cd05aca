"""All tables of a folder of results: leaderboards, and the tables that protocols contribute.

A package contributes tables of a family of protocols by an entry point in `harness.tables`, whose
name is the family's and whose value is a `Kind`.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from harness import registry
from harness.errors import FileMissingError, InputError
from harness.files import atomic, folders
from harness.records import leaderboard, published, seeds
from harness.records import record as results
from harness.records.leaderboard import Board, Texts

TABLES = "tables"  # below the results

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Kind:
    """A kind of table: a CSV file and a Markdown page for each board that has such a table."""

    name: str  # of the files, without their ends
    head: str  # how the first line of the CSV file begins
    texts_of: Callable[[Board], Texts]  # contents of the files; none if the board has no table
    # Lines of Markdown that a terminal shows below the scores of an evaluation.
    lines_of: Callable[[Board], Iterable[str]] = lambda board: ()


KINDS = [
    Kind("leaderboard", ",".join(leaderboard.FACTS[:4]), leaderboard.texts_of),
    Kind("seeds", ",".join(seeds.HEAD), seeds.texts_of),
]  # of every family


def kinds_of(family: str) -> list[Kind]:
    """The kinds of tables of a family of protocols: those of every family, and its own if any.

    A package that can't be imported is reported and left out.
    """
    if family not in registry.names("tables"):
        return KINDS
    try:
        own: Kind = registry.load("tables", family)
    except (ImportError, LookupError) as error:
        log.warning("%s", error)
        return KINDS
    return [*KINDS, own]


def write(root: Path) -> list[Path]:
    """Make every table of a folder of results again; the same files, the same bytes.

    They are written to `tables/<family>/<data>/<split>`. A table that has no records any more is
    removed. A file that is no such table is neither removed nor replaced.

    Args:
        root: the folder of results.

    Raises:
        FileMissingError: if there is no record; then nothing is touched.
        InputError: if a published number can't be read; then nothing is touched. If records of one
            table can't be compared, or a file of someone else is in the place of a table; the other
            tables are written.
    """
    records = results.load(root)
    if not records:
        raise FileMissingError(f"there is no record in {root}; `harness eval` writes them")
    numbers = published.read(root / published.FOLDER)
    boards = leaderboard.groups(records)
    families = {*(family for family, _, _ in boards), *_names(root / TABLES)}
    kinds = {family: kinds_of(family) for family in sorted(families)}
    texts: dict[Path, str] = {}
    kept: set[Path] = set()
    faults: dict[str, None] = {}  # in order; a faulty board is one fault of all its tables
    for key, group in boards.items():
        folder = results.folder_of(root / TABLES, *key)
        board = cache(partial(leaderboard.board, key, group, numbers))
        for kind in kinds[key[0]]:
            try:
                made = kind.texts_of(board())
            except ValueError as error:
                faults[f"{folder}: {error}"] = None
                kept |= set(folder.glob(f"{kind.name}.*"))
                continue
            texts |= {folder / f"{kind.name}{end}": text for end, text in made.items()}
    ours = {*_tables(root / TABLES, kinds)}
    for file in ours - texts.keys() - kept:
        file.unlink()
    written = []
    for file, text in texts.items():
        if file.exists() and file not in ours:
            faults[f"{file} is no table that the harness wrote, and stays: move it away"] = None
            continue
        atomic.write_text(file, text)
        written.append(file)
    if faults:
        raise InputError("; ".join(faults))
    return written


def _names(folder: Path) -> list[str]:
    return [one.name for one in folders.folders(folder)] if folder.is_dir() else []


def _tables(root: Path, kinds: Mapping[str, Sequence[Kind]]) -> Iterator[Path]:
    """Tables that were written here, known by their places and their first lines.

    A file behind a link is left out: it belongs to another place.
    """
    for family, data, split in (place.relative_to(root).parts for place in root.glob("*/*/*")):
        title = f"# {leaderboard.heading(Board(family, data, split, ()))}"
        for kind in kinds.get(family, ()):
            for end, begins in ((".csv", kind.head), (".md", title)):
                file = root / family / data / split / f"{kind.name}{end}"
                linked = any(one.is_symlink() for one in (file, *file.parents[:3]))
                if not linked and file.is_file() and _begins(file, begins):
                    yield file


def _begins(file: Path, text: str) -> bool:
    wanted = text.encode()
    with file.open("rb") as stream:
        return stream.read(len(wanted)) == wanted
