"""Unpacks untrusted archives: completely into a new folder, or not at all.

The libraries' own `extract` is not used. Names and sizes of all members are checked here, so that
only plain files and folders inside the new folder can be created. A Debian package is an `ar` file
whose member `data.tar.xz` has the files; it is read here too, since `dpkg-deb` is not on every
machine, and would also restore links, owners and modes.
"""

import errno
import gzip
import hashlib
import io
import lzma
import stat
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, cast
from unicodedata import category

from harness.errors import FileInTheWayError, InputError
from harness.files import atomic
from harness.files.folders import is_left_behind

PIECE = 1 << 18  # bytes read at a time
SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".deb")
LONGEST = 1000  # bytes of a member's path, at most
NOTE = 1 << 20  # bytes of a long name or extended header of a tar member, at most
DEB, AR_HEADER = b"!<arch>\ndebian-binary", 60  # first bytes; bytes of the header of an ar member
XZ_MEMORY = 1 << 27  # bytes for xz at most; its highest level needs half as many

Kind = Literal["zip", "tar", "tar.gz", "deb"]
Wanted = Callable[[str], bool]  # whether a member, by its name in the archive, is unpacked
Members = Iterator[tuple[str, int, IO[bytes] | None]]  # name, declared size, None for a folder


@dataclass(frozen=True)
class Limits:
    """Limits for an unpacked archive. Images hardly shrink when packed; text shrinks tenfold."""

    files: int = 200_000  # the largest set has about 8,000
    size: int = 1 << 38  # bytes, 256 GiB; the largest sets have some tens of GiB
    ratio: int = 100  # unpacked over packed, beyond the first `free` bytes; deflate reaches 1032
    free: int = 1 << 26


class BadArchive(InputError):
    """The archive is damaged, or has forbidden contents."""


def kind(file: Path) -> Kind | None:
    """The kind of archive that a file is, by its contents; None if it is not supported."""
    with file.open("rb") as stream:
        head = stream.read(tarfile.BLOCKSIZE)
    if head.startswith((b"PK\3\4", b"PK\5\6")):
        return "zip"
    if head.startswith(b"\x1f\x8b"):
        return "tar.gz"
    if head.startswith(DEB):
        return "deb"
    try:
        tarfile.TarInfo.frombuf(head, "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return None
    return "tar"


def unpack(
    file: Path, folder: Path, *, keep: Collection[str] = (), limits: Limits = Limits()
) -> dict[str, str]:
    """Unpack a zip, tar, tar.gz or deb file into a new folder, completely or not at all.

    Args:
        file: the archive.
        folder: the new folder.
        keep: paths of the files that are unpacked; all others are passed over. (): all files.
        limits: of the archive.

    Returns:
        The sha256 of every unpacked file, by its path in the folder.

    Raises:
        BadArchive: if the file is not such an archive, is damaged, cut off or encrypted, exceeds
            the limits, lacks a file of `keep`, or would unpack a link, a device, or a name that
            leads out of the folder.
        FileInTheWayError: if the folder exists.
    """
    if folder.exists():
        raise FileInTheWayError(f"{folder} is there already: {file.name} was not unpacked")
    form = kind(file)
    if form is None:
        raise BadArchive("it is neither a zip, a tar, a tar.gz nor a deb archive")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as temporary:
        inside = Path(temporary, "unpacked")
        inside.mkdir()
        try:
            wanted: Wanted = (lambda name: _plain(name) in keep) if keep else lambda name: True
            members = (
                _zip(file, limits, wanted) if form == "zip" else _tar(file, form, limits, wanted)
            )
            contents = _write(members, inside, file.stat().st_size, limits)
        except BadArchive:
            raise
        except _DAMAGE as error:
            raise BadArchive(f"it is damaged or cut off ({_reason(error)})") from error
        except OSError as error:
            if error.errno != errno.EINVAL:  # raised for an impossible offset in a damaged zip file
                raise
            raise BadArchive(f"it is damaged or cut off ({_reason(error)})") from error
        if missing := sorted(set(keep) - contents.keys()):
            raise BadArchive(f"it lacks {', '.join(missing)}")
        if not contents:
            raise BadArchive("it holds no file")
        inside.rename(folder)
    return contents


_DAMAGE = (
    zipfile.BadZipFile,
    tarfile.TarError,
    gzip.BadGzipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    NotImplementedError,  # a version that zipfile doesn't support
    OverflowError,
    RecursionError,  # tarfile calls itself for each extended header in a row
    ValueError,  # wrong numbers and encodings in headers
    LookupError,
)


def _write(members: Members, folder: Path, packed: int, limits: Limits) -> dict[str, str]:
    limit = _size_limit(packed, limits)
    left = limit
    contents: dict[str, str] = {}
    for count, (name, size, stream) in enumerate(members, 1):
        if count > limits.files:
            raise BadArchive(f"it holds more than {limits.files} files: it looks like a bomb")
        parts = _parts(name)
        if any(map(is_left_behind, parts)):  # such as `__MACOSX/._name`, which readers ignore
            continue
        target = folder.joinpath(*parts)
        if stream is None:
            _make(target, name)
            continue
        if not parts:
            raise BadArchive(f"it holds a file named {name!r}")
        _make(target.parent, name)
        if target.exists():
            raise BadArchive(f"it holds {name!r} twice, or names that this disk can't tell apart")
        digest = hashlib.sha256()
        done = 0
        with atomic.naming(target), target.open("xb") as out:
            while piece := stream.read(PIECE):
                done += len(piece)
                left -= len(piece)
                if left < 0 or done > size:
                    raise _bomb(packed, limit)
                digest.update(piece)
                out.write(piece)
        if done < size:
            raise BadArchive(f"it is cut off: {name!r} has {done} of {size} bytes")
        contents["/".join(parts)] = digest.hexdigest()
    return contents


def _size_limit(packed: int, limits: Limits) -> int:
    return min(limits.size, limits.free + limits.ratio * packed)


def _bomb(packed: int, limit: int) -> BadArchive:
    return BadArchive(
        f"it has {packed} bytes and would grow to more than {limit}, or than its headers say: it"
        " looks like a bomb"
    )


def _parts(name: str) -> list[str]:
    """The parts of a member's path; refuses a path that leads out of the folder."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if (
        name.startswith("/")
        or ".." in parts
        or "\\" in name
        or ":" in name  # on Windows, a drive or a stream of a file
        or any(category(letter) in ("Cc", "Cs") for letter in name)  # control, broken UTF-8
        or len(name.encode()) > LONGEST
        or any(len(part.encode()) > 255 for part in parts)
    ):
        raise BadArchive(
            f"it holds {name!r:.99}, which leads out of its folder or is no plain name"
        )
    return parts


def _plain(name: str) -> str:
    """The path of a member as `keep` writes it: "a/b" for "./a/b"."""
    return "/".join(part for part in name.split("/") if part not in ("", "."))


def _make(folder: Path, name: str) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise BadArchive(f"it holds {name!r} below a file") from error


def _zip(file: Path, limits: Limits, wanted: Wanted) -> Members:
    with zipfile.ZipFile(file) as archive:
        listed = archive.infolist()
        limit = _size_limit(file.stat().st_size, limits)
        if sum(info.file_size for info in listed) > limit:  # checked before anything is written
            raise _bomb(file.stat().st_size, limit)
        for info in listed:
            name = info.orig_filename  # `filename` ends at the first zero byte
            if not wanted(name):
                continue
            mode = stat.S_IFMT(info.external_attr >> 16)  # 0 if packed on a system without modes
            if mode not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise BadArchive(f"it holds {name!r}, which is a link or a device")
            if info.flag_bits & 1:
                raise BadArchive(f"{name!r} in it is encrypted")
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise BadArchive(
                    f"{name!r} in it is packed by method {info.compress_type}, not deflate"
                )
            if info.is_dir():
                yield name, 0, None
                continue
            with archive.open(info) as stream:
                yield name, info.file_size, stream


class _Header(tarfile.TarInfo):
    """A checked header of a tar file; tarfile treats a broken header as the archive's end."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> "_Header":
        if not buf:
            raise BadArchive("it is cut off: its end mark is missing")
        try:
            header = super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as error:
            if len(buf) == tarfile.BLOCKSIZE and not any(buf):
                raise  # a block of zeros is the end mark
            raise BadArchive(f"it is damaged or cut off ({error})") from error
        notes = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)
        names = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
        if header.type in notes + names and header.size > NOTE:  # tarfile would read it into memory
            raise BadArchive(f"a header in it says that it has {header.size} bytes")
        return header


def _tar(file: Path, form: Kind, limits: Limits, wanted: Wanted) -> Members:
    # Read as a stream, in one pass, so that the end is reached and checksums are compared.
    left = limit = _size_limit(file.stat().st_size, limits)
    with (
        _unpacked(file, form) as stream,
        tarfile.open(fileobj=stream, mode="r|", tarinfo=_Header) as archive,
    ):
        for member in archive:
            name = member.name
            if not wanted(name):
                left -= member.size
                if left < 0:
                    raise _bomb(file.stat().st_size, limit)
            elif member.isdir():
                yield name, 0, None
            elif member.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and not member.issparse():
                yield name, member.size, archive.extractfile(member)
            else:
                raise BadArchive(f"it holds {name!r}, which is a link, a device or full of holes")
        padding = 0
        while piece := stream.read(PIECE):
            padding += len(piece)
            if any(piece) or padding > Limits.free:
                raise BadArchive("more follows after its end mark")


@contextmanager
def _unpacked(file: Path, form: Kind) -> Iterator[IO[bytes]]:
    """The tar inside a file, as a stream."""
    with file.open("rb") as packed:
        if form == "deb":
            yield io.BufferedReader(_Xz(packed, _size_of_data(packed)), PIECE)
        elif form == "tar.gz":
            with gzip.open(packed) as stream:
                yield cast(IO[bytes], stream)
        else:
            yield packed


def _size_of_data(package: IO[bytes]) -> int:
    """The size of the member data.tar.xz of a Debian package, whose first byte is read next."""
    package.seek(len(b"!<arch>\n"))
    while header := package.read(AR_HEADER):
        name, size = header[:16].decode("ascii").rstrip(" /"), int(header[48:58])
        if header[58:] != b"`\n":
            raise BadArchive("it is damaged: a member of the package has no header")
        if name == "data.tar.xz":
            return size
        if name.startswith("data.tar"):
            raise BadArchive(f"its files are in {name}; only data.tar.xz can be read")
        package.seek(size + size % 2, io.SEEK_CUR)
    raise BadArchive("it is cut off, or a package without files")


class _Xz(io.RawIOBase):
    """The contents of an xz stream of a known size, unpacked in bounded memory."""

    def __init__(self, packed: IO[bytes], size: int) -> None:
        """Take the next bytes of a file, of which xz has packed the contents."""
        self.packed, self.left = packed, size
        self.unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY)

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the beginning of a buffer; returns the number of bytes, 0 at the end."""
        while not self.unpacker.eof:
            more = b""
            if self.unpacker.needs_input:
                more = self.packed.read(min(PIECE, self.left))
                self.left -= len(more)
                if not more:
                    raise BadArchive("it is cut off")
            if piece := self.unpacker.decompress(more, len(buffer)):
                buffer[: len(piece)] = piece
                return len(piece)
        if self.left or self.unpacker.unused_data:
            raise BadArchive("more follows after its end mark")
        return 0


def _reason(error: BaseException) -> str:
    return str(error) or type(error).__name__
