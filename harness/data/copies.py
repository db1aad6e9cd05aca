"""A published file: where it is, and how to know it by its size, hash and first bytes."""

import hashlib
import re
import urllib.parse
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from harness.errors import InputError

PIECE = 1 << 18  # bytes read at a time
HEAD = 512  # bytes that tell a web page or a Git LFS pointer from data
PAGE = "it is a web page, not the file"
MARKUP = rb"(\xef\xbb\xbf)?\s*(<!--.*?-->\s*)?<(!doctype|html|head|\?xml)"


@dataclass(frozen=True)
class Copy:
    """A file at one address, and how to know it. Mirrors that packed anew have other bytes."""

    url: str
    hash: str | None = None  # "sha256:...", "md5:...", "git:..." (of a blob); None: none published
    size: int | None = None  # bytes, where known

    @property
    def file(self) -> str:
        """Its name on the server."""
        return PurePosixPath(urllib.parse.unquote(urllib.parse.urlsplit(self.url).path)).name


class Refused(InputError):
    """What came is not the file that was asked for; it is not kept."""


def check(file: Path, copy: Copy) -> None:
    """See whether a file is a copy, as far as its size, hash and first bytes tell.

    Raises:
        Refused: if it is not; says what it is instead.
    """
    size = file.stat().st_size
    with file.open("rb") as stream:
        head = stream.read(HEAD)
    if wrong := impostor(head):
        raise Refused(wrong)
    if copy.size is not None and size != copy.size:
        came = "was cut off" if size < copy.size else "is too long"
        raise Refused(f"it {came}, or is another file: {size} bytes, {copy.size} are wanted")
    if not size:
        raise Refused("it is empty")
    if copy.hash:
        kind, _, wanted = copy.hash.partition(":")
        found = digest(file, kind)
        if found != wanted:
            raise Refused(f"its {kind} is {found}, {wanted} is wanted: it is another file")


def digest(file: Path, kind: str = "sha256") -> str:
    """The hash of a file: "sha256", "md5", or "git" for the name that git gives its contents."""
    with file.open("rb") as stream:
        if kind != "git":
            return hashlib.file_digest(stream, kind).hexdigest()
        blob = hashlib.sha1(b"blob %d\0" % file.stat().st_size, usedforsecurity=False)
        while piece := stream.read(PIECE):
            blob.update(piece)
    return blob.hexdigest()


def impostor(head: bytes) -> str | None:
    """What is often given in place of a file, told by its first bytes."""
    if head.startswith(b"version https://git-lfs.github.com/spec/"):
        return "it is a Git LFS pointer, not the file that it stands for"
    if re.match(MARKUP, head, re.IGNORECASE | re.DOTALL):
        return PAGE
    return None
