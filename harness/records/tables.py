"""Writes all tables of a folder of results: leaderboards, and tables that protocols contribute.

A package contributes a kind of table for a family of protocols by an entry point in
`harness.tables`: its name is the family's, its value is a `Kind`.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from harness import registry
from harness.errors import FileMissingError, InputError
from harness.files import atomic, folders
from harness.records import latex_leaderboard, leaderboard, published, seeds
from harness.records import record as results
from harness.records.leaderboard import Board, Texts

TABLES = "tables"  # below the results

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Kind:
    """A kind of table: CSV, Markdown and perhaps LaTeX for each board that has such a table."""

    name: str  # name of the files, without ".csv", ".md" or ".tex"
    head: str  # beginning of the first line of the CSV file
    texts_of: Callable[[Board], Texts]  # contents of the files; none if the board has no table
    # Lines of Markdown that an evaluation shows on the terminal, below its scores.
    lines_of: Callable[[Board], Iterable[str]] = lambda board: ()


KINDS = [
    Kind("leaderboard", ",".join(leaderboard.FACTS[:4]), leaderboard.texts_of),
    Kind("leaderboard", ",".join(leaderboard.FACTS[:4]), latex_leaderboard.texts_of),
    Kind("seeds", ",".join(seeds.HEAD), seeds.texts_of),
]  # of every family


def kinds_of(family: str) -> list[Kind]:
    """The kinds of tables of a family of protocols: those of every family, and its own if any.

    A package that can't be imported is reported and left out.
    """
    if family not in registry.names("tables"):
        return KINDS
    try:
        contributed: Kind = registry.load("tables", family)
    except (ImportError, LookupError) as error:
        log.warning("%s", error)
        return KINDS
    return [*KINDS, contributed]


def write(root: Path) -> list[Path]:
    """Write all tables of a folder of results again; returns their files.

    The same records give the same bytes. The folder of a table is `tables/<family>/<data>/<split>`.
    A table whose records are gone is removed. Files that the harness did not write are neither
    removed nor replaced.

    Args:
        root: the folder of results.

    Raises:
        FileMissingError: if there is no record; then no file is changed.
        InputError: if a published number can't be read; then no file is changed. Also if records
            of one table can't be compared, or the harness did not write a file in the place of a
            table; then the other tables are written.
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
    faults: dict[str, None] = {}  # an ordered set: all tables of a board report the same fault
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
            faults[f"{file} was not written by the harness, so it is kept: move it away"] = None
            continue
        atomic.write_text(file, text)
        written.append(file)
    if faults:
        raise InputError("; ".join(faults))
    return written


def _names(folder: Path) -> list[str]:
    return [inner.name for inner in folders.folders(folder)] if folder.is_dir() else []


def _tables(root: Path, kinds: Mapping[str, Sequence[Kind]]) -> Iterator[Path]:
    """Yields the tables that the harness wrote; their places and first lines identify them.

    A file that is reached through a link is left out, because it belongs to another folder.
    """
    for family, data, split in (place.relative_to(root).parts for place in root.glob("*/*/*")):
        empty = Board(family, data, split, ())
        title, comment = f"# {leaderboard.heading(empty)}", latex_leaderboard.title(empty)
        for kind in kinds.get(family, ()):
            for end, begins in ((".csv", kind.head), (".md", title), (".tex", comment)):
                file = root / family / data / split / f"{kind.name}{end}"
                linked = any(path.is_symlink() for path in (file, *file.parents[:3]))
                if not linked and file.is_file() and _begins(file, begins):
                    yield file


def _begins(file: Path, text: str) -> bool:
    wanted = text.encode()
    with file.open("rb") as stream:
        return stream.read(len(wanted)) == wanted
