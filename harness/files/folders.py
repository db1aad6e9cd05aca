"""Lists the files and folders below a folder, by the same rules for all readers of data.

Links to files and folders are followed. Files that systems and programs leave behind are ignored:
hidden files (`.DS_Store`, the `._name` of macOS, unfinished files) and the names in LEFT_BEHIND.
Names are compared in Unicode's form NFC, since macOS writes accents in another form than other
systems.
"""

import unicodedata
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from harness.errors import FileMissingError, InputError

LEFT_BEHIND = frozenset(
    {
        "__macosx",  # in archives that macOS packed
        "thumbs.db", "ehthumbs.db", "desktop.ini", "$recycle.bin", "system volume information",
        "@eadir",  # thumbnails on Synology disks
        "lost+found",
    }
)  # fmt: skip
"""Names, in lower case, that are never part of a data set."""


def is_left_behind(name: str) -> bool:
    """Whether files or folders of this name are left by systems or programs, and ignored."""
    return name.startswith(".") or name.lower() in LEFT_BEHIND


def same_form(name: str) -> str:
    """The name in Unicode's form NFC, for comparison."""
    return unicodedata.normalize("NFC", name)


def entries(folder: Path, *, dead_links: bool = False) -> list[Path]:
    """The files and folders directly in a folder, sorted by name.

    Args:
        folder: the folder; it exists.
        dead_links: whether links without a target are listed; if not, they are an error.

    Raises:
        FileMissingError: if a link in it has no target; names the link.
        InputError: if two names differ only in their Unicode form.
    """
    by_name: dict[str, Path] = {}
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if is_left_behind(entry.name):
            continue
        if not dead_links and _is_dead(entry):
            raise FileMissingError(
                f"{entry} is a link to {entry.readlink()}, which does not exist: repair the link or"
                " remove it"
            )
        other = by_name.setdefault(same_form(entry.name), entry)
        if other is not entry:
            raise InputError(
                f"{folder} has {entry.name!a} and {other.name!a}, one name in two Unicode forms:"
                " remove one"
            )
    return list(by_name.values())


def folders(folder: Path) -> list[Path]:
    """The folders directly in a folder, sorted by name; raises as `entries` does."""
    return [entry for entry in entries(folder) if entry.is_dir()]


def files(folder: Path, *, dead_links: bool = False) -> list[Path]:
    """All files below a folder, sorted by the parts of their paths; none if it does not exist.

    A link to a folder that contains the link is not followed, since its files are listed anyway.

    Args:
        folder: the folder; it may be missing.
        dead_links: as for `entries`.

    Raises:
        FileMissingError: if a link has no target; names the link.
        InputError: if two names in one folder differ only in their Unicode form.
    """
    return list(_below(folder, dead_links))


def _is_dead(entry: Path) -> bool:
    return entry.is_symlink() and not entry.exists()


def _below(folder: Path, dead_links: bool) -> Iterator[Path]:
    left: list[tuple[Path, frozenset[tuple[int, int]]]] = [(folder, frozenset())]
    while left and folder.is_dir():
        path, above = left.pop()
        if path.is_dir():
            identity = _identity(path)
            if identity not in above:
                inner = entries(path, dead_links=dead_links)
                left += [(entry, above | {identity}) for entry in reversed(inner)]
        elif path.is_file() or _is_dead(path):  # not pipes or sockets, which could block a reader
            yield path


def _identity(folder: Path) -> tuple[int, int]:
    """Device and inode number of a folder, the same for all its paths."""
    known = folder.stat()
    return known.st_dev, known.st_ino


def at(folder: Path, name: str) -> Path:
    """The path of a name below a folder; in the Unicode form that is on the disk, if it exists.

    Args:
        folder: the folder.
        name: a relative path, its parts separated by "/".
    """
    place = folder / name
    if name.isascii() or place.exists():
        return place
    place = folder
    for part in PurePosixPath(name).parts:
        there = place.iterdir() if place.is_dir() else iter(())
        same = (entry for entry in there if same_form(entry.name) == same_form(part))
        place = next(same, place / part)
    return place
