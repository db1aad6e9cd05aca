"""Published data sets as rows of data, and the folder where they are kept, whole and checked.

A set is fetched once: from a mirror or from files that the user has, unpacked beside its place and
moved there when nothing is missing. With it stays a list of its files, for `verify`.
"""

import json
import logging
import os
import shutil
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from filelock import FileLock, Timeout

from harness import archive, atomic, download, home, registry
from harness.download import Copy, Progress

LIST = ".harness.json"  # in the folder of a set: where it comes from, and its files
WORK = ".fetching"  # downloads that are not finished, and locks
HERE, INCOMPLETE, ABSENT = "here", "incomplete", "not here"

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Part:
    """One file of a published set: an archive to unpack, or a file to keep as it is."""

    copies: tuple[Copy, ...]  # mirrors, tried in turn
    into: str = ""  # folder in the set; an archive that shares it with nothing else

    @property
    def packed(self) -> bool:
        """Whether it is an archive."""
        return self.copies[0].file.endswith(archive.SUFFIXES)


@dataclass(frozen=True)
class Source:
    """A published data set: where it is, how to know it, its terms, and who needs what of it."""

    name: str  # "phototour/liberty"; its folder bears this name too
    title: str
    page: str  # where it is described
    parts: tuple[Part, ...]
    licence: str
    citation: str
    needs: Mapping[str, tuple[str, ...]]  # protocol -> patterns of files that it reads
    roughly: str = ""  # size of the download, where no exact one is known


@dataclass(frozen=True)
class Differences:
    """How a folder differs from what was fetched, by paths in it."""

    missing: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    files: int = field(default=0, compare=False)  # looked at

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.missing or self.changed or self.extra)


def known() -> dict[str, Source]:
    """Every set that an installed package lists, by name."""
    rows: dict[str, Source] = {}
    for table in registry.names("datasets"):
        try:
            listed: Iterable[Source] = registry.load("datasets", table)
        except ImportError as error:  # one broken package must not hide the others' sets
            log.warning("%s", error)
            continue
        for row in listed:
            if rows.setdefault(row.name, row) != row:
                raise LookupError(
                    f"the data set {row.name!r} is listed twice, with different rows; the second"
                    f" is of {registry.source('datasets', table)}: uninstall one package"
                )
    return rows


def named(name: str) -> list[Source]:
    """The set of this name, or all below it: "phototour" stands for its six scenes."""
    rows = known()
    found = [row for key, row in sorted(rows.items()) if key == name or key.startswith(f"{name}/")]
    if not found:
        families = {key.rpartition("/")[0] for key in rows} - {""}
        raise LookupError(registry.unknown("datasets", name, {*rows, *families}))
    return found


def root() -> Path:
    """The folder of all sets: HARNESS_DATA_HOME, or a place in the user's cache."""
    given = os.environ.get("HARNESS_DATA_HOME")
    return Path(given) if given else home.cache("datasets")


def path(name: str) -> Path | None:
    """The folder of a set, or of the sets below a name; None if none of them is here as needed.

    Raises:
        LookupError: if there is no set of this name; says the nearest.
    """
    here = any(_state(row) == HERE for row in named(name))
    return _place(name) if here else None


def fetch(
    name: str, files: Sequence[Path] = (), *, progress: Progress = lambda done, total: None
) -> Path:
    """Get one set, if it is not here: from the user's files where they are given, else by download.

    Another process that fetches the same set is waited for. Whatever goes wrong, the set is not
    there by half; only downloads that broke off are kept, to be gone on with.

    Args:
        name: of one set.
        files: its parts, under their published names; or one folder that has them; or, where the
            set has one part, that file under any name.
        progress: told of the bytes of each part.

    Raises:
        LookupError: if there is no set of this name.
        ValueError, FileNotFoundError: if the user's files are not those of the set.
        FileNotFoundError: if its folder is there and lacks what is needed; says what, and how to
            mend it.
        FileExistsError: if the set is here and the user gives files: they would not be looked at.
        OSError: if no mirror gives a part; says why of each, and how to bring it by hand.
    """
    row = _one(name)
    place = _place(row.name)
    if _is_here(row, files):
        return place
    given = _given(row, files)
    with _alone(row.name) as work:
        if not _is_here(row, files):  # or another process has fetched it meanwhile
            unpacked = work / "unpacked"
            shutil.rmtree(unpacked, ignore_errors=True)  # of a process that was killed
            try:
                _put_together(row, given, work, unpacked, progress)
            finally:
                shutil.rmtree(unpacked, ignore_errors=True)
            shutil.rmtree(work, ignore_errors=True)
    return place


def verify(name: str) -> Differences:
    """Hash every file of a set again and compare it with the list made when it was fetched.

    Raises:
        FileNotFoundError: if the set is not here, or there is no list because it was put there by
            hand.
        ValueError: if the list is damaged.
    """
    row = _one(name)
    place = _place(row.name)
    if not place.is_dir():
        raise FileNotFoundError(f"{name} is not here: harness data fetch {name}")
    wanted = _listed(place)
    found = {
        file.relative_to(place).as_posix(): file
        for file in place.rglob("*")
        if not file.is_dir() or file.is_symlink()
    }
    found.pop(LIST, None)
    both = sorted(wanted.keys() & found.keys())
    with ThreadPoolExecutor() as pool:  # hashing lets other threads run
        same = list(pool.map(lambda path: _hash(found[path]) == wanted[path], both))
    return Differences(
        missing=tuple(sorted(wanted.keys() - found.keys())),
        changed=tuple(path for path, is_same in zip(both, same, strict=True) if not is_same),
        extra=tuple(sorted(found.keys() - wanted.keys())),
        files=len(found),
    )


def listing() -> Iterator[str]:
    """One line a set: its name, whether it is here, the size of its download, its title."""
    for name, row in sorted(known().items()):
        yield f"{name:28} {_state(row):10} {_size(row):>9}  {row.title}"


def about(name: str) -> Iterator[str]:
    """All that is known of the sets of a name."""
    for row in named(name):
        place = _place(row.name)
        yield f"{row.name}: {row.title}"
        state = _state(row)
        yield f"  folder    {place}{'' if state == HERE else f' ({state})'}"
        if state == INCOMPLETE:
            yield f"  lacks     {', '.join(_lacking(row))}"
        yield f"  page      {row.page}"
        yield f"  licence   {row.licence}"
        yield f"  cite      {row.citation}"
        for protocol, patterns in row.needs.items():
            yield f"  needs     {protocol}: {', '.join(patterns)}"
        for part in row.parts:
            for copy in part.copies:
                size = f"{copy.size} bytes" if copy.size else "size unknown"
                yield f"  file      {copy.url}  ({size}, {copy.hash or 'no hash published'})"


def _one(name: str) -> Source:
    rows = named(name)
    if len(rows) > 1:
        raise LookupError(f"{name} is several data sets: {', '.join(row.name for row in rows)}")
    return rows[0]


def _place(name: str) -> Path:
    return root().joinpath(*name.split("/"))


def _lacking(row: Source) -> list[str]:
    """Patterns of what is needed of a set that nothing in its folder fits."""
    patterns = [pattern for needed in row.needs.values() for pattern in needed]
    if not patterns:  # no protocol says: the files that are not packed, or else anything
        patterns = [
            "/".join(filter(None, (part.into, part.copies[0].file)))
            for part in row.parts
            if part.copies and not part.packed
        ]
    place = _place(row.name)
    wanted = dict.fromkeys(patterns or ["*"])
    return [pattern for pattern in wanted if not any(place.glob(pattern))]


def _state(row: Source) -> str:
    if not _place(row.name).is_dir():
        return ABSENT
    return INCOMPLETE if _lacking(row) else HERE


def _is_here(row: Source, files: Sequence[Path]) -> bool:
    """Whether a set need not be fetched; an error where it can't be."""
    state, place = _state(row), _place(row.name)
    if state == INCOMPLETE:
        raise FileNotFoundError(
            f"{place} is there but lacks {', '.join(_lacking(row))}: put that there, or move the"
            f" folder away and run harness data fetch {row.name} again"
        )
    if state == HERE and files:
        raise FileExistsError(
            f"{row.name} is here already, in {place}, and {', '.join(map(str, files))} was not"
            " looked at: move that folder away first to put the set together anew"
        )
    return state == HERE


@contextmanager
def _alone(name: str) -> Iterator[Path]:
    """A folder to work in, for one process at a time."""
    work = root() / WORK / name.replace("/", "_")
    work.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(work.with_name(f"{work.name}.lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        log.info("another process is fetching %s: waiting for it", name)
        lock.acquire()
    try:
        work.mkdir(exist_ok=True)
        yield work
    finally:
        if work.is_dir() and not any(work.iterdir()):
            work.rmdir()
        lock.release()


def _put_together(
    row: Source, given: Mapping[Part, Path], work: Path, unpacked: Path, progress: Progress
) -> None:
    """Get all parts of a set, and move it to its place when it holds what protocols need."""
    origins: list[dict[str, str]] = []
    contents: dict[str, str] = {}
    for part in row.parts:
        origin, found = _get(row, part, given.get(part), work, unpacked, progress)
        origins.append(origin)
        contents |= found
    top = _top(row, unpacked)
    if top is None:
        shutil.rmtree(work)  # so that the same files are not taken again
        needed = "; ".join(f"{who} needs {', '.join(what)}" for who, what in row.needs.items())
        sources = ", ".join(origin["url"] or origin["file"] for origin in origins)
        raise ValueError(f"{row.name}: what {sources} gave is another set ({needed})")
    below = "".join(f"{part}/" for part in top.relative_to(unpacked).parts)
    files = {
        name.removeprefix(below): sha256
        for name, sha256 in sorted(contents.items())
        if name.startswith(below)
    }
    record = {"form": 1, "name": row.name, "parts": origins, "files": files}
    atomic.write_text(top / LIST, json.dumps(record, indent=1) + "\n")
    place = _place(row.name)
    place.parent.mkdir(parents=True, exist_ok=True)
    top.rename(place)


def _get(
    row: Source,
    part: Part,
    given: Path | None,
    work: Path,
    unpacked: Path,
    progress: Progress,
) -> tuple[dict[str, str], dict[str, str]]:
    """Put one part into the folder: where it comes from, and the sha256 of each of its files."""
    into = unpacked / part.into

    def accept(file: Path) -> dict[str, str]:
        if part.packed:
            return archive.unpack(file, into)
        if part.copies[0].file.endswith(".mat"):
            _check_mat(file)
        into.mkdir(parents=True, exist_ok=True)
        kept = shutil.copyfile(file, into / part.copies[0].file)
        return {kept.name: download.digest(kept)}

    if given:
        copy, file, url = _known(part, given), given, ""
        try:
            found = accept(file)
        except ValueError as error:
            raise ValueError(f"{given} can't be taken for {row.name}: {error}") from error
    else:
        found, file, copy = download.fetch(
            part.copies, work, accept, what=row.name, by_hand=_by_hand(row), progress=progress
        )
        url = copy.url
    prefix = f"{part.into}/" if part.into else ""
    origin = {
        "file": copy.file,
        "url": url,  # "" where the user brought it
        "sha256": download.digest(file),
        "known_by": copy.hash or "",  # "" where no hash is published
    }
    return origin, {prefix + name: sha256 for name, sha256 in found.items()}


def _check_mat(file: Path) -> None:
    """See whether a file of MATLAB 5 to 7.2 is whole, by the length that each variable begins with.

    SciPy's whosmat would pass over the missing end of the last one. A cut between two variables
    can't be seen. Other forms (4, and 7.3, which is HDF5) are only told apart from what is none.

    Raises:
        ValueError: if it is cut off, or no .mat file.
    """
    size = file.stat().st_size
    with file.open("rb") as stream:
        head = stream.read(128)
        order = {b"IM": "<", b"MI": ">"}.get(head[126:])
        if not head or 0 in head[:4]:  # the form of MATLAB 4, which has no mark of its own
            return
        if order is None:
            raise ValueError("it is no .mat file, or cut off")
        if struct.unpack(f"{order}H", head[124:126])[0] != 0x0100:
            return
        end = 128
        while end < size:
            stream.seek(end)
            tag = stream.read(8)
            end += 8 + (struct.unpack(f"{order}4xI", tag)[0] if len(tag) == 8 else 0)
    if end != size or size == 128:
        raise ValueError(f"it is cut off: it has {size} bytes, and its last variable ends at {end}")


def _given(row: Source, files: Sequence[Path]) -> dict[Part, Path]:
    """Which of the user's files is which part."""
    for file in files:
        if not file.exists():
            raise FileNotFoundError(
                f"no file {file}: --from-file takes what was downloaded by hand"
            )
    in_folder = len(files) == 1 and files[0].is_dir()
    offered = {file.name: file for file in (files[0].iterdir() if in_folder else files)}
    found = {
        part: offered.pop(copy.file)
        for part in row.parts
        for copy in part.copies
        if copy.file in offered
    }
    if not found and len(row.parts) == 1 and len(offered) == 1 and not in_folder:
        found[row.parts[0]] = offered.popitem()[1]
    if files and (not found or (offered and not in_folder)):
        published = dict.fromkeys(copy.file for part in row.parts for copy in part.copies)
        raise ValueError(
            f"{row.name}: {', '.join(map(str, files))} is not, or has not, what is wanted:"
            f" {', '.join(published)}"
        )
    return found


def _known(part: Part, file: Path) -> Copy:
    """The copy of a part that a file of the user is."""
    reasons: dict[str, None] = {}
    for copy in sorted(part.copies, key=lambda copy: copy.hash is None):
        try:
            download.check(file, copy)
        except download.Refused as error:
            reasons[str(error)] = None
            continue
        if not copy.hash:
            log.warning(
                "%s is taken for the copy of %s, of which no hash is published: its sha256 is %s",
                file, copy.url, download.digest(file),
            )  # fmt: skip
        return copy
    raise ValueError(f"{file} is refused: {'; '.join(reasons)}")


def _top(row: Source, unpacked: Path) -> Path | None:
    """The folder that holds what is needed: all, or the one that an archive wraps it in."""
    patterns = [pattern for needed in row.needs.values() for pattern in needed]
    top = unpacked
    while not all(any(top.glob(pattern)) for pattern in patterns):
        inner = [entry for entry in top.iterdir() if entry.name != "__MACOSX"]
        if len(inner) != 1 or not inner[0].is_dir():
            return None
        top = inner[0]
    return top


def _by_hand(row: Source) -> str:
    command = f"harness data fetch {row.name} --from-file"
    if len(row.parts) == 1:
        copies = row.parts[0].copies
        places = " or ".join(copy.url for copy in copies)
        return f"download {places} elsewhere and run: {command} {copies[0].file}"
    files = ", ".join(part.copies[0].file for part in row.parts[:4])
    more = f" and {len(row.parts) - 4} more" if len(row.parts) > 4 else ""
    return (
        f"download {files}{more} (addresses: harness data list {row.name}) elsewhere into one"
        f" folder and run: {command} FOLDER"
    )


def _listed(place: Path) -> dict[str, str]:
    """The sha256 of each file of a set, as the list in its folder has it."""
    try:
        files = json.loads((place / LIST).read_text())["files"]
        return {str(name): str(sha256) for name, sha256 in files.items()}
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"{place} has no list of its files ({LIST}), so it was not put there by"
            " `harness data fetch`: move it away and fetch it to have it checked"
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{place / LIST} is damaged ({error}): move the folder away and fetch the set again"
        ) from error


def _hash(file: Path) -> str:
    try:
        return download.digest(file)
    except OSError:  # not to be read, or a link to nowhere: certainly not what was fetched
        return ""


def _size(row: Source) -> str:
    sizes = [part.copies[0].size for part in row.parts]
    if any(size is None for size in sizes):
        return row.roughly or "?"
    total = sum(size or 0 for size in sizes)
    return f"{total / 1e9:.1f} GB" if total >= 1e9 else f"{total / 1e6:.1f} MB"
