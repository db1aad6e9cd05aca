"""Cache of long computations on disk, keyed by a hash of their inputs; entries have checksums.

The checksum is a CRC-32 of the entry's key and contents. It protects against accidents, not against
forgery: it detects every flipped bit and every burst of up to 32 bits, and misses one in 2^32 of
all other damage. It is fast, since every run reads vectors from the disk: zlib's CRC-32 takes
3.5 GB/s here, OpenSSL's SHA-256 1.2 GB/s, blake2b 0.8 GB/s.
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

Origin = Mapping[str, object]  # the inputs of a computation, as JSON values; the key hashes them
T = TypeVar("T")

MARK = b"harness1"  # after the contents of an entry, before the 4 bytes of the checksum
END = len(MARK) + 4
PIECE = 1 << 20  # bytes read at a time
SUMS = ".sha256"  # file in a folder with the hashes of its other files

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Cache:
    """A folder of entries, named by the hash of their origin. It is safe to delete at any time."""

    root: Path
    spare: Path | None = None  # used by `file` if `root` is not writable

    def read(self, origin: Origin) -> bytes | None:
        """The contents of an entry; None if it is missing, or damaged, which is logged."""
        contents = self._contents(origin)
        return None if contents is None else bytes(contents)

    def write(self, origin: Origin, contents: bytes) -> None:
        """Store the contents of an entry; a failure is logged once and otherwise ignored."""
        if self.spare is not None:
            return  # `home.writable` has logged it already
        file = self._file(self.root, origin)
        try:
            try:
                _write(file, lambda stream: stream.write(contents))
            except FileNotFoundError:  # `remove` of another process has just removed the folder
                _write(file, lambda stream: stream.write(contents))
        except OSError as error:
            _warn_once(self.root, error.strerror or str(error))

    def read_array(self, origin: Origin) -> np.ndarray | None:
        """The array of an entry; None as for `read`."""
        contents = self._contents(origin)
        return None if contents is None else np.load(io.BytesIO(contents), allow_pickle=False)

    def write_array(self, origin: Origin, array: np.ndarray) -> None:
        """Store the array of an entry, like `write`."""
        stream = io.BytesIO()
        np.save(stream, array, allow_pickle=False)
        self.write(origin, stream.getvalue())

    def remove(self, origin: Origin) -> None:
        """Delete an entry, and its folder if that is empty; the entry may be missing."""
        file = self._file(self.root, origin)
        with suppress(OSError):
            file.unlink()
            file.parent.rmdir()

    def get(self, origin: Origin, make: Callable[[], bytes]) -> bytes:
        """The contents of an entry, computed by `make` and stored if it is missing.

        If several processes need it at once, one computes it and the others wait.
        """

        def made() -> bytes:
            contents = make()
            self.write(origin, contents)
            return contents

        return _once(self._file(self.root, origin), lambda: self.read(origin), made)

    def file(self, origin: Origin, write: Callable[[io.RawIOBase], object]) -> Path:
        """The file of an entry, for a memory map; written by `write` if it is missing.

        Its contents are checked against the checksum that follows them. Processes wait as in `get`.

        Raises:
            OSError: if the file can't be written.
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
    """The cache for one kind of results, a folder in the harness's cache folder."""
    return Cache(home.cache(kind), None if home.writable() else home.place(kind))


def folder(*place: str, make: Callable[[Path], object], is_whole: Callable[[Path], bool]) -> Path:
    """A folder in the harness's cache folder, made by `make` if it is missing or damaged.

    A damaged folder is removed only when its replacement is complete.

    Args:
        place: its path in the cache folder.
        make: fills an empty folder.
        is_whole: whether a folder is unchanged since it was made; it may be missing or damaged.

    Raises:
        OSError: if the folder can't be written.
    """

    def existing() -> Path | None:
        return next((candidate for candidate in home.places(*place) if is_whole(candidate)), None)

    def made() -> Path:
        if target.is_dir():
            log.warning("%s is damaged or was edited: it is replaced", target)
        with atomic.placing(target, anew=True) as unfinished:
            make(unfinished)
        return target

    target = home.place(*place)
    return _once(target, existing, made)


def fingerprint(folder: Path) -> str:
    """SHA-256 of the names and contents of all files below a folder; it may be missing."""
    return hashlib.sha256(_sums(folder).encode()).hexdigest()


def sum_up(folder: Path) -> None:
    """Write a file with the hashes of all files in a folder, for `is_as_summed`."""
    atomic.write_text(folder / SUMS, _sums(folder))


def is_as_summed(folder: Path) -> bool:
    """Whether all files of a folder are unchanged since `sum_up`."""
    try:
        return (folder / SUMS).read_text("utf-8") == _sums(folder)
    except (OSError, ValueError):
        return False


def _sums(folder: Path) -> str:
    files = {f.relative_to(folder).as_posix(): f for f in folders.files(folder)}
    files.pop(SUMS, None)
    hashes = {name: hashlib.sha256(files[name].read_bytes()).hexdigest() for name in sorted(files)}
    return "".join(f"{name} {sha256}\n" for name, sha256 in hashes.items())


class _Summed(io.RawIOBase):
    """A stream that updates a CRC-32 with all bytes written to it."""

    def __init__(self, stream: IO[bytes], crc: int) -> None:
        super().__init__()
        self.stream, self.crc = stream, crc

    def write(self, piece: bytes) -> int:  # type: ignore[override]  # callers write only bytes
        self.crc = zlib.crc32(piece, self.crc)
        return self.stream.write(piece)


def _write(file: Path, write: Callable[[io.RawIOBase], object]) -> None:
    # No sync: if a power cut damages the file, its checksum shows it and it is computed again.
    with atomic.writing(file, sync=False) as stream:
        summed = _Summed(stream, _seed(file))
        write(summed)
        stream.write(_end(summed.crc))


def _is_whole(file: Path) -> bool:
    """Whether a file ends with the checksum of its contents; a damaged file is deleted."""
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
    """Start value of the checksum, from the file name: a renamed entry counts as damaged."""
    return zlib.crc32(file.stem.encode())


def _end(crc: int) -> bytes:
    return MARK + crc.to_bytes(4, "little")


def _drop(file: Path) -> None:
    log.warning("%s is damaged: its checksum does not match; it is made again", file)
    with suppress(OSError):
        file.unlink()


def _once(target: Path, read: Callable[[], T | None], make: Callable[[], T]) -> T:
    """The value of `read`, or if that is None, of `make`, called by one process at a time."""
    value = read()
    if value is not None:
        return value
    with ExitStack() as stack:
        with suppress(OSError):  # without a writable folder no other process can store a value
            target.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(locks.alone(target.with_name(f"{target.name}.lock")))
        value = read()  # another process may have stored it in the meantime
        return make() if value is None else value


@cache
def _warn_once(root: Path, reason: str) -> None:
    log.warning(
        "nothing can be kept in %s (%s): later runs compute the same again; %s",
        root,
        reason,
        home.REMEDY,
    )
