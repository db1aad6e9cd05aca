"""Downloads files completely: tries mirrors in turn, resumes after interruptions, checks hashes.

It uses urllib. The usual library, pooch, has no resume and no mirrors, and deletes a file when its
download is interrupted.
"""

import hashlib
import json
import logging
import re
import shutil
import time
import urllib.error
import urllib.parse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import TypeVar

from rich import progress as rich

from harness.data import web
from harness.data.copies import HEAD, PAGE, PIECE, Copy, CopyRefused, check, digest, impostor
from harness.data.web import Answer, Interrupted, Unreachable
from harness.errors import SystemRefusedError
from harness.escape import visible
from harness.files import atomic
from harness.progress import Bar

TRIES = 3  # connections in a row without a new byte before the next mirror is tried
PAUSE = 1.0  # seconds before the second try
MOST = 1 << 38  # bytes (256 GiB) accepted from a server that does not say the size

Progress = Callable[[int, int | None], None]  # bytes here, bytes in all or None
T = TypeVar("T")

log = logging.getLogger(__name__)

# Errors of a mirror or its file, after which the next mirror is tried.
_NEXT = (ValueError, RecursionError, Interrupted, Unreachable, urllib.error.HTTPError)


def fetch(
    copies: Sequence[Copy],
    folder: Path,
    accept: Callable[[Path], T],
    *,
    title: str,
    by_hand: str,
    progress: Progress = lambda done, total: None,
) -> tuple[T, Path, Copy]:
    """Download the first of several copies that is complete and accepted.

    Args:
        copies: tried in turn.
        folder: for the file. An interrupted download in it is resumed. A finished file stays, and
            the caller moves or deletes it.
        accept: called with the file. If it raises ValueError, the file is wrong and the next copy
            is tried. After any other error except OSError, which comes from the disk, the file is
            deleted too, since it would cause the same error again.
        title: the name for messages.
        by_hand: what the user can do without a network, as the end of a message.
        progress: called for every piece that arrives.

    Returns:
        The value of `accept`, the file, and its copy.

    Raises:
        SystemRefusedError: if no copy can be downloaded; gives the reason for each, or says that
            there is no network.
    """
    troubles: list[tuple[Copy, Exception]] = []
    folder.mkdir(parents=True, exist_ok=True)
    for copy in copies:
        part = folder / f"{copy.file}.{_key(copy)}.part"
        try:
            _obtain(copy, part, progress)
            try:
                return accept(part), part, copy
            except OSError:
                raise
            except Exception:
                _discard(part)
                raise
        except _NEXT as error:
            troubles.append((copy, error))
            if isinstance(error, urllib.error.HTTPError):
                error.close()
            if copy is not copies[-1]:
                log.info("passed over: %s: %s", copy.url, web.fault(error))
    if troubles and all(isinstance(error, Unreachable) for _, error in troubles):
        hosts = dict.fromkeys(urllib.parse.urlsplit(copy.url).netloc for copy, _ in troubles)
        raise SystemRefusedError(
            f"{title}: there seems to be no network, since {' and '.join(hosts)} can't be reached"
            f" ({troubles[0][1]}); {by_hand}"
        )
    reasons = "; ".join(f"{copy.url}: {web.fault(error)}" for copy, error in troubles)
    raise SystemRefusedError(f"{title}: no mirror gave it: {reasons or 'none is known'}; {by_hand}")


@contextmanager
def bar(title: str) -> Iterator[Progress]:
    """A progress bar for bytes on stderr, or lines in the log if stderr is not a terminal."""
    columns = (
        rich.TextColumn("{task.description}", markup=False),
        rich.BarColumn(),
        rich.DownloadColumn(),
        rich.TransferSpeedColumn(),
        rich.TimeRemainingColumn(),
    )
    with Bar(*columns, line=_line) as shown:
        task = shown.add_task(visible(title), total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)


def _line(task: rich.Task) -> str:
    total = f" of {_mib(task.total)}" if task.total else ""
    return f"{task.description}: {_mib(task.completed)}{total}"


def _key(copy: Copy) -> str:
    """Key for the name of the unfinished file; copies of the same hash share that file."""
    return hashlib.sha256((copy.hash or copy.url).encode()).hexdigest()[:8]


def _obtain(copy: Copy, part: Path, progress: Progress) -> None:
    """Complete a file and check it; if a resumed file is wrong, download it once more from zero."""
    older = part.exists()
    _complete(copy, part, progress)
    try:
        check(part, copy)
    except CopyRefused:
        _discard(part)
        if not older:
            raise
        _obtain(copy, part, progress)


def _complete(copy: Copy, part: Path, progress: Progress) -> None:
    """Download the rest; resume after interruptions, as long as connections bring bytes."""
    have = _size(part)
    if have and (have == copy.size or (copy.hash and not copy.size and _is(part, copy.hash))):
        return
    idle = 0
    while True:
        before = _size(part)
        try:
            return _continue(copy, part, progress)
        except Interrupted:
            idle = 0 if _size(part) > before else idle + 1
            if idle == TRIES:
                raise
            time.sleep(PAUSE * idle)


def _continue(copy: Copy, part: Path, progress: Progress, *, anew: bool = False) -> None:
    """Use one connection to add bytes to the end of `part`, if the server supports that.

    An answer that is refused before its first byte does not change `part`: if the server sends a
    log-in page instead of the file, yesterday's download must not be lost.
    """
    have = 0 if anew else _size(part)
    with web.ask(copy, _range(copy, part, have)) as answer:
        begin, total = _span(answer, have)
        if begin is not None:
            if not begin or begin != total:
                total = _expected(answer, copy, part, begin, total)
                _write(answer, copy, part, begin, total, progress)
            return
    if anew:
        raise CopyRefused("it gives only a part of the file")
    _continue(copy, part, progress, anew=True)


def _expected(answer: Answer, copy: Copy, part: Path, begin: int, total: int | None) -> int | None:
    """Size of the whole file, if known; refuses a wrong answer before anything is written."""
    if copy.size is not None and total not in (None, copy.size):
        raise CopyRefused(f"it has {total} bytes, {copy.size} are wanted: it is another file")
    if answer.headers.get_content_type() == "text/html":
        raise CopyRefused(f"{PAGE} ({answer.url})")
    total = total if copy.size is None else copy.size
    free = shutil.disk_usage(part.parent).free
    if total is not None and total - begin > free:
        raise SystemRefusedError(
            f"{copy.file} needs {_mib(total - begin)} more and {part.parent} has {_mib(free)}"
            " free: make room, or set HARNESS_DATA_HOME to another disk"
        )
    return total


def _range(copy: Copy, part: Path, have: int) -> dict[str, str]:
    """Headers that ask for the rest of a file, if a hash or validator identifies it."""
    if not have:
        return {}
    validator = _validator(copy, part)
    if validator:
        return {"Range": f"bytes={have}-", "If-Range": validator}
    return {"Range": f"bytes={have}-"} if copy.hash else {}


def _span(answer: Answer, have: int) -> tuple[int | None, int | None]:
    """Offset of the bytes in the answer, None if they don't fit; size of the whole file."""
    if answer.status in (206, 416):
        form = r"bytes (\d+)-\d+/(\d+|\*)" if answer.status == 206 else r"bytes (\*)/(\d+)"
        match = re.fullmatch(form, answer.headers.get("Content-Range", "").strip())
        begin, total = match.groups() if match else ("", "")
        whole = None if total == "*" else int(total or -1)
        if begin == str(have) or (begin == "*" and whole == have):
            return have, whole
        return None, None
    length = answer.headers.get("Content-Length", "")
    return 0, int(length) if length.isdigit() else None


def _write(
    answer: Answer,
    copy: Copy,
    part: Path,
    begin: int,
    total: int | None,
    progress: Progress,
) -> None:
    """Write an answer to the end of `part`, or to a new file if the answer begins at 0."""
    end = None if answer.length is None else begin + answer.length  # None: unknown
    piece = _piece(answer, begin, total)
    if not begin:
        if wrong := impostor(piece[:HEAD]):
            raise CopyRefused(wrong)
        _remember(answer, copy, part)
    if total is None and not copy.hash and not getattr(answer, "chunked", False):
        log.warning(
            "%s: the server does not say the size, and no hash is published: only its"
            " contents can show whether it is complete",
            copy.url,
        )
    done = begin
    with atomic.naming(part), part.open("ab" if begin else "wb") as stream:
        while piece:
            done += len(piece)
            if done > (MOST if total is None else total):
                _discard(part)
                raise CopyRefused(f"it gave more than {MOST if total is None else total} bytes")
            stream.write(piece)
            progress(done, total)
            piece = _piece(answer, done, total) if done != end else b""
    if total is not None and done < total:
        raise Interrupted(_broke(done, total, "the connection was closed"))


def _piece(answer: Answer, done: int, total: int | None) -> bytes:
    """The bytes of the next piece that are here; on a slow line, a kill loses few of them."""
    try:
        piece: bytes = answer.read1(PIECE)
        return piece
    except (OSError, HTTPException) as error:
        raise Interrupted(_broke(done, total, web.fault(error))) from error


def _broke(done: int, total: int | None, reason: str) -> str:
    return f"it broke off after {done} of {total or 'unknown'} bytes ({reason})"


def _remember(answer: Answer, copy: Copy, part: Path) -> None:
    """Store the server's validator, which shows later whether it still has the same file."""
    etag = answer.headers.get("ETag", "")
    validator = etag if etag.startswith('"') else answer.headers.get("Last-Modified", "")
    note = json.dumps({"url": copy.url, "validator": validator})
    atomic.write_text(_note(part), note)


def _validator(copy: Copy, part: Path) -> str | None:
    try:
        note = json.loads(_note(part).read_text())
        return str(note["validator"]) or None if note["url"] == copy.url else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _note(part: Path) -> Path:
    return part.with_name(f"{part.name}.json")


def _discard(part: Path) -> None:
    part.unlink(missing_ok=True)
    _note(part).unlink(missing_ok=True)


def _is(file: Path, hash: str) -> bool:
    kind, _, wanted = hash.partition(":")
    return digest(file, kind) == wanted


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def _mib(size: float) -> str:
    return f"{size / 2**20:.1f} MiB"
