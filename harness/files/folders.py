"""The files and folders below a folder, as every reader of data sees them.

Links are followed, to files and to folders. Files that systems and programs leave behind are passed
over: hidden ones (`.DS_Store`, the `._name` of macOS, unfinished files), `__MACOSX`, `Thumbs.db`
and others of LEFT_BEHIND. Names are compared in Unicode's form NFC, since macOS writes accents in
another form than other systems do.
"""

import unicodedata
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from harness.errors import FileMissingError, InputError

LEFT_BEHIND = frozenset(
    {
        "__macosx",  # in archives that macOS packed
        "thumbs.db", "ehthumbs.db", "desktop.ini", "$recycle.bin", "system volume information",
        "@eadir",  # thumbnails of a Synology store
        "lost+found",
    }
)  # fmt: skip
"""Names, in small letters, that no data set has on purpose."""


def is_left_behind(name: str) -> bool:
    """Whether a system or a program left a file or folder of this name behind."""
    return name.startswith(".") or name.lower() in LEFT_BEHIND


def same_form(name: str) -> str:
    """A name in the form NFC, in which names are compared."""
    return unicodedata.normalize("NFC", name)


def entries(folder: Path, *, dead_links: bool = False) -> list[Path]:
    """The files and folders directly in a folder, in the order of their names.

    Args:
        folder: which is there.
        dead_links: whether links that lead nowhere are listed; else they are an error.

    Raises:
        FileMissingError: if a link in it leads nowhere; names the link.
        InputError: if two names differ only in their Unicode form.
    """
    found: dict[str, Path] = {}
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if is_left_behind(entry.name):
            continue
        if not dead_links and _is_dead(entry):
            raise FileMissingError(
                f"{entry} is a link to {entry.readlink()}, which is not there: mend the link or"
                " remove it"
            )
        other = found.setdefault(same_form(entry.name), entry)
        if other is not entry:
            raise InputError(
                f"{folder} has {entry.name!a} and {other.name!a}, one name in two Unicode forms:"
                " remove one"
            )
    return list(found.values())


def folders(folder: Path) -> list[Path]:
    """The folders directly in a folder, in the order of their names; raises as `entries` does."""
    return [entry for entry in entries(folder) if entry.is_dir()]


def files(folder: Path, *, dead_links: bool = False) -> list[Path]:
    """Every file below a folder, in the order of the parts of their paths; none if it isn't there.

    A link back to a folder that contains it is not followed: all its files are seen without it.

    Args:
        folder: which may be missing.
        dead_links: as for `entries`.

    Raises:
        FileMissingError: if a link leads nowhere; names the link.
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
            own = _identity(path)
            if own not in above:
                inner = entries(path, dead_links=dead_links)
                left += [(entry, above | {own}) for entry in reversed(inner)]
        elif path.is_file() or _is_dead(
            path
        ):  # no pipe, no socket: reading one could wait for ever
            yield path


def _identity(folder: Path) -> tuple[int, int]:
    """Which folder it is, by whatever path."""
    known = folder.stat()
    return known.st_dev, known.st_ino


def at(folder: Path, name: str) -> Path:
    """The path of a name below a folder; in the Unicode form that the disk has, if it has any.

    Args:
        folder: which the name is relative to.
        name: parts of it are divided by "/".
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
