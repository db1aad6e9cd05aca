"""Describes published data sets, finds the local ones and verifies their files.

`harness.data.fetch` puts a set into its folder, with a list of its files for `verify`.
"""

import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from harness import registry
from harness.data import archive
from harness.data.copies import Copy, digest
from harness.data.photographs import Photograph
from harness.errors import FileMissingError, InputError, UnknownNameError
from harness.files import folders, home, texts

LIST = ".harness.json"  # file in the folder of a set: its origin and its files
HERE, INCOMPLETE, ABSENT = "here", "incomplete", "not here"

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SetPart:
    """One file of a published set: an archive to unpack, or a file to keep as it is."""

    copies: tuple[Copy, ...]  # mirrors, tried in turn
    into: str = ""  # folder in the set; an archive has its folder for itself
    keep: tuple[str, ...] = ()  # paths of the files of an archive that are unpacked; (): all

    @property
    def packed(self) -> bool:
        """Whether the part is an archive."""
        return self.copies[0].file.endswith(archive.SUFFIXES)

    @property
    def kept(self) -> tuple[str, ...]:
        """Paths, in its folder, of the files that it is known to leave there."""
        return self.keep if self.packed else tuple(copy.file for copy in self.copies[:1])


@dataclass(frozen=True)
class PublishedSet:
    """A published data set: its mirrors, hashes and licence, and the files that protocols read."""

    name: str  # "phototour/liberty"; also the name of its folder
    title: str
    page: str  # its web page
    parts: tuple[SetPart, ...]
    licence: str
    citation: str
    needs: Mapping[str, tuple[str, ...]]  # protocol -> patterns of files that it reads
    roughly: str = ""  # size of the download, if the exact size is unknown
    # Published facts about its unpacked files: pattern -> number of files, bytes of each.
    sizes: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    by_hand: str = ""  # hint if no mirror answers: other places, and the contents to expect
    photographs: tuple[Photograph, ...] = ()  # of its files, with author and licence

    @property
    def place(self) -> Path:
        """Its folder; it may not exist."""
        return root().joinpath(*self.name.split("/"))

    @property
    def lacks(self) -> list[str]:
        """Patterns of needed files that match no file in its folder."""
        patterns = [pattern for needed in self.needs.values() for pattern in needed]
        if not patterns:  # no protocol needs files: require the unpacked parts, or any file
            patterns = [
                "/".join(filter(None, (part.into, file)))
                for part in self.parts
                for file in part.kept
            ]
        wanted = dict.fromkeys(patterns or ["*"])
        return [pattern for pattern in wanted if not any(self.place.glob(pattern))]

    def differences(self, folder: Path) -> dict[str, str]:
        """Differences of a folder from the published sizes: a sentence for each such pattern."""
        sentences = {}
        for pattern, (number, size) in self.sizes.items():
            sizes = {file.name: file.stat().st_size for file in sorted(folder.glob(pattern))}
            odd = next((name for name, actual in sizes.items() if actual != size), None)
            if len(sizes) != number:
                sentences[pattern] = f"files {pattern}: {len(sizes)}, {number} are published"
            elif odd is not None:
                sentences[pattern] = f"{odd} has {sizes[odd]} bytes, {size} are published"
        return sentences

    def reads(self, pattern: str) -> bool:
        """Whether a protocol needs the files of this pattern."""
        return any(pattern in needed for needed in self.needs.values())

    @property
    def state(self) -> str:
        """HERE, INCOMPLETE or ABSENT."""
        if not self.place.is_dir():
            return ABSENT
        return INCOMPLETE if self.lacks else HERE


@dataclass(frozen=True)
class Differences:
    """Differences of a folder from the fetched files, as paths in it."""

    missing: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    unlike: tuple[str, ...] = ()  # sentences on sizes and numbers of files that differ
    files: int = field(default=0, compare=False)  # number of files checked

    def __bool__(self) -> bool:
        """Whether there are differences."""
        return bool(self.missing or self.changed or self.extra or self.unlike)


def known() -> dict[str, PublishedSet]:
    """All sets that installed packages declare, by name."""
    rows: dict[str, PublishedSet] = {}
    for table in registry.names("datasets"):
        try:
            listed: Iterable[PublishedSet] = registry.load("datasets", table)
        except ImportError as error:  # one broken package must not hide the others' sets
            log.warning("%s", error)
            continue
        for row in listed:
            if rows.setdefault(row.name, row) != row:
                raise UnknownNameError(
                    f"the data set {row.name!r} is listed twice, with different rows; the second"
                    f" is of {registry.source('datasets', table)}: uninstall one package"
                )
    return rows


def named(name: str) -> list[PublishedSet]:
    """The set of this name, or all sets below it: "phototour" stands for its six scenes."""
    rows = known()
    sets = [row for key, row in sorted(rows.items()) if key == name or key.startswith(f"{name}/")]
    if not sets:
        families = {key.rpartition("/")[0] for key in rows} - {""}
        raise UnknownNameError(registry.unknown("datasets", name, {*rows, *families}))
    return sets


def single(name: str) -> PublishedSet:
    """The set of this name; an error if the name stands for several sets."""
    rows = named(name)
    if len(rows) > 1:
        raise UnknownNameError(
            f"{name} is several data sets, name one: {', '.join(row.name for row in rows)}"
        )
    return rows[0]


def root() -> Path:
    """The folder of all sets: HARNESS_DATA_HOME, or a folder in the user's cache."""
    given = os.environ.get("HARNESS_DATA_HOME")
    return Path(given) if given else home.cache("datasets")


def path(name: str) -> Path | None:
    """The folder of a set, or of the sets below a name; None if none of them is complete here.

    Raises:
        UnknownNameError: if there is no set of this name; gives the nearest name.
    """
    here = any(row.state == HERE for row in named(name))
    return root().joinpath(*name.split("/")) if here else None


def verify(name: str) -> Differences:
    """Differences of a set's files from the list of hashes that was made when it was fetched.

    Sizes and numbers of files are also compared with published ones, if known.

    Raises:
        FileMissingError: if the set is not here, or has no list since it was put there by hand;
            says whether its files have the published sizes.
        InputError: if the list is damaged.
    """
    row = single(name)
    place = row.place
    if not place.is_dir():
        raise FileMissingError(f"{name} is not here: harness data fetch {name}")
    unlike = tuple(row.differences(place).values())
    try:
        wanted = _listed(place)
    except FileNotFoundError as error:
        sizes = "; ".join(unlike) or "numbers and sizes of files are the published ones"
        raise FileMissingError(f"{error}; {sizes}" if row.sizes else str(error)) from error
    present = {
        file.relative_to(place).as_posix(): file for file in folders.files(place, dead_links=True)
    }
    both = sorted(wanted.keys() & present.keys())
    with ThreadPoolExecutor() as pool:  # hashing releases the GIL
        same = list(pool.map(lambda path: _hash(present[path]) == wanted[path], both))
    return Differences(
        missing=tuple(sorted(wanted.keys() - present.keys())),
        changed=tuple(path for path, is_same in zip(both, same, strict=True) if not is_same),
        extra=tuple(sorted(present.keys() - wanted.keys())),
        unlike=unlike,
        files=len(present),
    )


def listing() -> Iterator[str]:
    """One line for each set: name, whether it is here, size of the download, title."""
    for name, row in sorted(known().items()):
        yield f"{name:28} {row.state:10} {_size(row):>9}  {row.title}"


def about(name: str) -> Iterator[str]:
    """Lines with all facts about the sets of a name."""
    for row in named(name):
        yield f"{row.name}: {row.title}"
        yield f"  folder    {row.place}{'' if row.state == HERE else f' ({row.state})'}"
        if row.state == INCOMPLETE:
            yield f"  lacks     {', '.join(row.lacks)}"
        yield f"  page      {row.page}"
        yield f"  licence   {row.licence}"
        yield f"  cite      {row.citation}"
        for protocol, patterns in row.needs.items():
            yield f"  needs     {protocol}: {', '.join(patterns)}"
        if row.by_hand:
            yield f"  by hand   {row.by_hand}"
        for part in row.parts:
            for copy in part.copies:
                size = f"{copy.size} bytes" if copy.size else "size unknown"
                yield f"  file      {copy.url}  ({size}, {copy.hash or 'no hash published'})"
        for one in row.photographs:
            yield f"  image     {one.file}: by {one.author}, {one.licence} ({one.stated})"


def _listed(place: Path) -> dict[str, str]:
    """The sha256 of each file of a set, from the list in its folder."""
    try:
        files = texts.read_json(place / LIST)["files"]
        return {
            str(name): str(sha256)
            for name, sha256 in files.items()
            if not any(map(folders.is_left_behind, str(name).split("/")))
        }
    except FileNotFoundError as error:
        raise FileMissingError(
            f"{place} has no list of its files ({LIST}), so it was not put there by"
            " `harness data fetch`: move it away and fetch it to have it checked"
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{place / LIST} is damaged ({error}): move the folder away and fetch the set again"
        ) from error


def _hash(file: Path) -> str:
    try:
        return digest(file)
    except OSError:  # not readable, or a link without target: not the fetched file
        return ""


def _size(row: PublishedSet) -> str:
    sizes = [part.copies[0].size for part in row.parts]
    if any(size is None for size in sizes):
        return row.roughly or "?"
    total = sum(size or 0 for size in sizes)
    return f"{total / 1e9:.1f} GB" if total >= 1e9 else f"{total / 1e6:.1f} MB"
