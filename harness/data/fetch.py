"""Fetches a published data set: from a mirror, or from files that the user has.

The set is unpacked in another folder and moved to its place when it is complete.
"""

import json
import logging
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from harness.data import archive, download
from harness.data.copies import Copy, CopyRefused, check, digest
from harness.data.datasets import HERE, INCOMPLETE, LIST, PublishedSet, SetPart, root, single
from harness.data.download import Progress
from harness.errors import FileInTheWayError, FileMissingError, InputError
from harness.files import atomic, folders, locks, matlab

WORK = ".fetching"  # in the folder of all sets: unfinished downloads, and locks

log = logging.getLogger(__name__)


def fetch(
    name: str, files: Sequence[Path] = (), *, progress: Progress = lambda done, total: None
) -> Path:
    """The folder of a set; fetched if it is not here, from the user's files or by download.

    If another process is fetching the same set, this one waits. After an error the set is never
    there in part; only interrupted downloads stay, and are resumed the next time.

    Args:
        name: of one set.
        files: the set's parts, under their published names; or one folder that contains them; or,
            if the set has one part, that file under any name.
        progress: called with the bytes of each part.

    Raises:
        UnknownNameError: if there is no set of this name.
        InputError, FileMissingError: if the user's files are not those of the set, by their hash
            or by the published sizes of their contents.
        FileMissingError: if its folder exists but lacks needed files; names them, and says what to
            do.
        FileInTheWayError: if the set is here and the user gives files, which would be ignored.
        SystemRefusedError: if no mirror gives a part; says why for each mirror, and how to get the
            part by hand.
    """
    row = single(name)
    if _is_here(row, files):
        _sweep(row.name)
        return row.place
    given = _given(row, files)
    with _alone(row.name) as work:
        if not _is_here(row, files):  # or another process has fetched it in the meantime
            unpacked = work / "unpacked"
            shutil.rmtree(unpacked, ignore_errors=True)  # left by a killed process
            try:
                _put_together(row, given, work, unpacked, progress)
            finally:
                shutil.rmtree(unpacked, ignore_errors=True)
            shutil.rmtree(work, ignore_errors=True)
    return row.place


def _is_here(row: PublishedSet, files: Sequence[Path]) -> bool:
    """Whether a set is here and need not be fetched; an error if its folder is in the way."""
    if row.state == INCOMPLETE:
        raise FileMissingError(
            f"{row.place} is there but lacks {', '.join(row.lacks)}: put that there, or move the"
            f" folder away and run harness data fetch {row.name} again"
        )
    if row.state == HERE:
        for difference in row.differences(row.place).values():
            log.warning("%s is not the published %s: %s", row.place, row.name, difference)
    if row.state == HERE and files:
        raise FileInTheWayError(
            f"{row.name} is here already, in {row.place}, and {', '.join(map(str, files))} was not"
            " looked at: move that folder away first to put the set together anew"
        )
    return row.state == HERE


def _work(name: str) -> tuple[Path, Path]:
    """The work folder of a set, and the file that locks it."""
    work = root() / WORK / name.replace("/", "_")
    return work, work.with_name(f"{work.name}.lock")


def _sweep(name: str) -> None:
    """Remove the work folder that a process left which was killed after it fetched the set."""
    work, lock = _work(name)
    if work.exists() or lock.exists():
        with suppress(OSError), locks.alone(lock, busy="another process has it"):
            shutil.rmtree(work, ignore_errors=True)


@contextmanager
def _alone(name: str) -> Iterator[Path]:
    """A work folder that one process uses at a time."""
    work, lock = _work(name)
    remedy = "set HARNESS_DATA_HOME to a folder of yours"
    atomic.must_be_writable(root(), f"data sets can't be kept in {root()}", remedy)
    with ExitStack() as stack:
        work.parent.mkdir(parents=True, exist_ok=True)
        try:
            stack.enter_context(locks.alone(lock, busy="another process has it"))
        except BlockingIOError:
            log.info("another process is fetching %s: waiting for it", name)
            stack.enter_context(locks.alone(lock))
        work.mkdir(exist_ok=True)
        try:
            yield work
        finally:
            with suppress(OSError):  # interrupted downloads stay
                work.rmdir()


def _put_together(
    row: PublishedSet, given: Mapping[SetPart, Path], work: Path, unpacked: Path, progress: Progress
) -> None:
    """Get all parts of a set, and move it to its place if it has the files that protocols need."""
    origins: list[dict[str, str]] = []
    contents: dict[str, str] = {}
    for part in row.parts:
        origin, hashes = _get(row, part, given.get(part), work, unpacked, progress)
        origins.append(origin)
        contents |= hashes
    top = _top(row, unpacked)
    if top is None:
        shutil.rmtree(work)  # so that the wrong files are not used again
        needed = "; ".join(
            f"{protocol} needs {', '.join(patterns)}" for protocol, patterns in row.needs.items()
        )
        sources = ", ".join(origin["url"] or origin["file"] for origin in origins)
        raise InputError(f"{row.name}: what {sources} gave is another set ({needed})")
    below = "".join(f"{part}/" for part in top.relative_to(unpacked).parts)
    files = {
        name.removeprefix(below): sha256
        for name, sha256 in sorted(contents.items())
        if name.startswith(below)
    }
    record = {"form": 1, "name": row.name, "parts": origins, "files": files}
    atomic.write_text(top / LIST, json.dumps(record, indent=1) + "\n")
    row.place.parent.mkdir(parents=True, exist_ok=True)
    top.rename(row.place)


def _get(
    row: PublishedSet,
    part: SetPart,
    given: Path | None,
    work: Path,
    unpacked: Path,
    progress: Progress,
) -> tuple[dict[str, str], dict[str, str]]:
    """Put one part into the folder; returns its origin and the sha256 of each of its files."""
    into = unpacked / part.into

    def accept(file: Path) -> dict[str, str]:
        if part.packed:
            contents = archive.unpack(file, into, keep=part.keep)
            try:
                _check_sizes(row, unpacked)
            except ValueError:  # so that the next mirror's archive can be unpacked there
                shutil.rmtree(into)
                raise
            return contents
        if part.copies[0].file.endswith(".mat"):
            matlab.check(file)
        into.mkdir(parents=True, exist_ok=True)
        kept = shutil.copyfile(file, into / part.copies[0].file)
        return {kept.name: digest(kept)}

    if given:
        copy, file, url = _known(part, given), given, ""
        try:
            hashes = accept(file)
        except ValueError as error:
            raise InputError(f"{given} can't be taken for {row.name}: {error}") from error
    else:
        hashes, file, copy = download.fetch(
            part.copies, work, accept, title=row.name, by_hand=_by_hand(row), progress=progress
        )
        url = copy.url
    prefix = f"{part.into}/" if part.into else ""
    origin = {
        "file": copy.file,
        "url": url,  # "" if the user gave the file
        "sha256": digest(file),
        "known_by": copy.hash or "",  # "" if no hash is published
    }
    return origin, {prefix + name: sha256 for name, sha256 in hashes.items()}


def _check_sizes(row: PublishedSet, unpacked: Path) -> None:
    """Compare numbers and sizes of files with the published ones.

    Raises:
        InputError: if files that protocols read differ; differences of other files are logged.
    """
    wrong = row.differences(_top(row, unpacked) or unpacked)
    needed = [difference for pattern, difference in wrong.items() if row.reads(pattern)]
    if needed:
        raise InputError(f"it is not the published set: {'; '.join(needed)}")
    for difference in wrong.values():
        log.warning("%s: %s; no protocol reads it", row.name, difference)


def _given(row: PublishedSet, files: Sequence[Path]) -> dict[SetPart, Path]:
    """The user's files, by the parts that they are."""
    for file in files:
        if not file.exists():
            raise FileMissingError(f"no file {file}: --from-file takes files downloaded by hand")
    in_folder = len(files) == 1 and files[0].is_dir()
    offered = {file.name: file for file in (folders.entries(files[0]) if in_folder else files)}
    assigned = {
        part: offered.pop(copy.file)
        for part in row.parts
        for copy in part.copies
        if copy.file in offered
    }
    if not assigned and len(row.parts) == 1 and len(offered) == 1 and not in_folder:
        assigned[row.parts[0]] = offered.popitem()[1]
    if files and (not assigned or (offered and not in_folder)):
        published = dict.fromkeys(copy.file for part in row.parts for copy in part.copies)
        raise InputError(
            f"{row.name}: {', '.join(map(str, files))} is not, or has not, what is wanted:"
            f" {', '.join(published)}"
        )
    return assigned


def _known(part: SetPart, file: Path) -> Copy:
    """The copy of the part that equals the user's file; an error if none does."""
    reasons: dict[str, None] = {}
    for copy in sorted(part.copies, key=lambda copy: copy.hash is None):
        try:
            check(file, copy)
        except CopyRefused as error:
            reasons[str(error)] = None
            continue
        if not copy.hash:
            log.warning(
                "%s is accepted as %s, for which no hash is published: its sha256 is %s",
                file, copy.url, digest(file),
            )  # fmt: skip
        return copy
    raise InputError(f"{file} is refused: {'; '.join(reasons)}")


def _top(row: PublishedSet, unpacked: Path) -> Path | None:
    """The folder that contains the needed files: the top, or the only folder below; or None."""
    patterns = [pattern for needed in row.needs.values() for pattern in needed]
    top = unpacked
    while not all(any(top.glob(pattern)) for pattern in patterns):
        inner = folders.entries(top)
        if len(inner) != 1 or not inner[0].is_dir():
            return None
        top = inner[0]
    return top


def _by_hand(row: PublishedSet) -> str:
    command = f"harness data fetch {row.name} --from-file"
    hint = f"; {row.by_hand}" if row.by_hand else ""
    if len(row.parts) == 1:
        copies = row.parts[0].copies
        places = " or ".join(copy.url for copy in copies)
        return f"download {places} elsewhere and run: {command} {copies[0].file}{hint}"
    files = ", ".join(part.copies[0].file for part in row.parts[:4])
    more = f" and {len(row.parts) - 4} more" if len(row.parts) > 4 else ""
    return (
        f"download {files}{more} (addresses: harness data list {row.name}) elsewhere into one"
        f" folder and run: {command} FOLDER{hint}"
    )
