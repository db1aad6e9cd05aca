"""Results of long computations on disk, found by a hash of their inputs; entries have checksums.

The checksum is a CRC-32 of the entry's key and contents. It guards against accidents, not against
forgers: it sees every flipped bit and every burst of up to 32, and misses one in 2^32 of all other
damage. zlib's reads 3.5 GB a second here, SHA-256 of OpenSSL 1.2, blake2b 0.8; vectors are read
from the disk in every run.
"""

import hashlib
import io
import json
import logging
import zlib
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, TypeVar

import numpy as np

from harness.files import atomic, folders, home, locks

Origin = Mapping[str, object]  # as JSON holds it
T = TypeVar("T")

MARK = b"harness1"  # after the contents of an entry, before 4 bytes of the checksum
END = len(MARK) + 4
PIECE = 1 << 20
SUMS = ".sha256"  # in a folder: the hash of each other file

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Cache:
    """A folder of entries named by the hash of their origin; safe to delete at any time."""

    root: Path
    spare: Path | None = None  # for files, where nothing can be kept in `root`

    def read(self, origin: Origin) -> bytes | None:
        """The contents of an entry; None where there is none, or it is damaged, which is logged."""
        contents = self._contents(origin)
        return None if contents is None else bytes(contents)

    def write(self, origin: Origin, contents: bytes) -> None:
        """Keep contents; where that is impossible, it is logged once and done without."""
        if self.spare is not None:
            return  # logged already, when that was found out
        try:
            _write(self._file(self.root, origin), lambda stream: stream.write(contents))
        except OSError as error:
            _warn_once(self.root, error.strerror or str(error))

    def read_array(self, origin: Origin) -> np.ndarray | None:
        """The array of an entry, as `read`."""
        contents = self._contents(origin)
        return None if contents is None else np.load(io.BytesIO(contents), allow_pickle=False)

    def write_array(self, origin: Origin, array: np.ndarray) -> None:
        """Keep an array, as `write`."""
        stream = io.BytesIO()
        np.save(stream, array, allow_pickle=False)
        self.write(origin, stream.getvalue())

    def get(self, origin: Origin, make: Callable[[], bytes]) -> bytes:
        """The contents of an entry, made and kept where there is none.

        Of several processes that want it at once, one makes it and the others wait.
        """

        def made() -> bytes:
            contents = make()
            self.write(origin, contents)
            return contents

        return _once(self._file(self.root, origin), lambda: self.read(origin), made)

    def file(self, origin: Origin, write: Callable[[io.RawIOBase], object]) -> Path:
        """The file of an entry, to be mapped into memory; written where there is none, as `get`.

        The checksum, which is compared here, follows its contents.

        Raises:
            OSError: if it can't be written.
        """
        target = self._file(self.spare or self.root, origin)
        here = self._file(self.root, origin)

        def whole() -> Path | None:
            return next((file for file in (here, target) if _is_whole(file)), None)

        def made() -> Path:
            _write(target, write)
            return target

        return _once(target, whole, made)

    def _contents(self, origin: Origin) -> memoryview | None:
        file = self._file(self.root, origin)
        try:
            whole = memoryview(file.read_bytes())
        except OSError:
            return None
        contents = whole[:-END]
        if whole[-END:] != _end(zlib.crc32(contents, _seed(file))):
            _drop(file)
            return None
        return contents

    @staticmethod
    def _file(root: Path, origin: Origin) -> Path:
        key = hashlib.sha256(json.dumps(origin, sort_keys=True).encode()).hexdigest()
        return root / key[:2] / f"{key}.entry"


def kept(kind: str) -> Cache:
    """The cache of one kind of things, below the cache folder of the harness."""
    return Cache(home.cache(kind), None if home.writable() else home.place(kind))


def folder(*place: str, make: Callable[[Path], object], is_whole: Callable[[Path], bool]) -> Path:
    """A folder below the cache folder of the harness; made where it is not there, or not whole.

    Where it is not as it was made, it goes only when the other is whole.

    Args:
        place: its path there.
        make: fills a folder.
        is_whole: whether a folder, which may be missing or damaged, is as it was made.

    Raises:
        OSError: if it can't be written.
    """

    def found() -> Path | None:
        return next((one for one in home.places(*place) if is_whole(one)), None)

    def made() -> Path:
        if target.is_dir():
            log.warning("%s is damaged or was edited: it is replaced", target)
        with atomic.placing(target, anew=True) as unfinished:
            make(unfinished)
        return target

    target = home.place(*place)
    return _once(target, found, made)


def fingerprint(folder: Path) -> str:
    """SHA-256 over the names and contents of all files below a folder, which may be missing."""
    return hashlib.sha256(_sums(folder).encode()).hexdigest()


def sum_up(folder: Path) -> None:
    """Write the hash of each file into a folder, for `is_as_summed`."""
    atomic.write_text(folder / SUMS, _sums(folder))


def is_as_summed(folder: Path) -> bool:
    """Whether all files of a folder are as they were when they were summed up."""
    try:
        return (folder / SUMS).read_text("utf-8") == _sums(folder)
    except (OSError, ValueError):
        return False


def _sums(folder: Path) -> str:
    files = {f.relative_to(folder).as_posix(): f for f in folders.files(folder)}
    files.pop(SUMS, None)
    own = {name: hashlib.sha256(files[name].read_bytes()).hexdigest() for name in sorted(files)}
    return "".join(f"{name} {sha256}\n" for name, sha256 in own.items())


class _Summed(io.RawIOBase):
    """A stream that sums up what is written to it."""

    def __init__(self, stream: IO[bytes], crc: int) -> None:
        super().__init__()
        self.stream, self.crc = stream, crc

    def write(self, piece: bytes) -> int:  # type: ignore[override]  # bytes are all that comes
        self.crc = zlib.crc32(piece, self.crc)
        return self.stream.write(piece)


def _write(file: Path, write: Callable[[io.RawIOBase], object]) -> None:
    # Not synced: what a power cut damages is seen by its checksum and made again.
    with atomic.writing(file, sync=False) as stream:
        summed = _Summed(stream, _seed(file))
        write(summed)
        stream.write(_end(summed.crc))


def _is_whole(file: Path) -> bool:
    """Whether a file ends with the checksum of its contents; a damaged one is dropped."""
    crc = _seed(file)
    try:
        left = file.stat().st_size - END
        with file.open("rb") as stream:
            while left > 0 and (piece := stream.read(min(PIECE, left))):
                crc = zlib.crc32(piece, crc)
                left -= len(piece)
            end = stream.read()
    except OSError:
        return False
    if end != _end(crc):
        _drop(file)
        return False
    return True


def _seed(file: Path) -> int:
    """First value of a checksum: from the name, so that a renamed entry counts as damaged."""
    return zlib.crc32(file.stem.encode())


def _end(crc: int) -> bytes:
    return MARK + crc.to_bytes(4, "little")


def _drop(file: Path) -> None:
    log.warning("%s is damaged, its checksum is not that of its contents: it is made again", file)
    with suppress(OSError):
        file.unlink()


def _once(target: Path, read: Callable[[], T | None], make: Callable[[], T]) -> T:
    """The value that `read` finds, or else the one that `make` makes, in one process at a time."""
    found = read()
    if found is not None:
        return found
    with ExitStack() as stack:
        with suppress(OSError):  # where nothing can be kept, there is nothing to wait for
            target.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(locks.alone(target.with_name(f"{target.name}.lock")))
        found = read()  # another process may have made it meanwhile
        return make() if found is None else found


@cache
def _warn_once(root: Path, reason: str) -> None:
    log.warning(
        "nothing can be kept in %s (%s): a later run computes the same again; %s",
        root,
        reason,
        home.REMEDY,
    )
