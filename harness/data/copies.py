"""Published files: their addresses, and checks of their size, hash and first bytes."""

import hashlib
import re
import urllib.parse
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from harness.errors import InputError

PIECE = 1 << 18  # bytes read at a time
HEAD = 512  # first bytes, enough to recognise a web page or a Git LFS pointer
PAGE = "it is a web page, not the file"
MARKUP = rb"(\xef\xbb\xbf)?\s*(<!--.*?-->\s*)?<(!doctype|html|head|\?xml)"


@dataclass(frozen=True)
class Copy:
    """A file at one address, with its hash and size. An archive packed again has other bytes."""

    url: str
    hash: str | None = None  # "sha256:...", "md5:...", "git:..." (of a blob); None if not published
    size: int | None = None  # bytes; None if not published

    @property
    def file(self) -> str:
        """Its file name on the server."""
        return PurePosixPath(urllib.parse.unquote(urllib.parse.urlsplit(self.url).path)).name


class CopyRefused(InputError):
    """A file is not the published one, or its address is not safe; the file is not kept."""


def check(file: Path, copy: Copy) -> None:
    """Refuse a file whose size, hash or first bytes are not those of the copy.

    Raises:
        CopyRefused: if they are not; says how the file differs.
    """
    size = file.stat().st_size
    with file.open("rb") as stream:
        head = stream.read(HEAD)
    if wrong := impostor(head):
        raise CopyRefused(wrong)
    if copy.size is not None and size != copy.size:
        came = "was cut off" if size < copy.size else "is too long"
        raise CopyRefused(f"it {came}, or is another file: {size} bytes, {copy.size} are wanted")
    if not size:
        raise CopyRefused("it is empty")
    if copy.hash:
        kind, _, wanted = copy.hash.partition(":")
        actual = digest(file, kind)
        if actual != wanted:
            name = "git blob hash" if kind == "git" else kind
            raise CopyRefused(f"its {name} is {actual}, {wanted} is wanted: it is another file")


def digest(file: Path, kind: str = "sha256") -> str:
    """The hash of a file in hexadecimal: "sha256", "md5", or "git" for git's blob name."""
    with file.open("rb") as stream:
        if kind != "git":
            return hashlib.file_digest(stream, kind).hexdigest()
        blob = hashlib.sha1(b"blob %d\0" % file.stat().st_size, usedforsecurity=False)
        while piece := stream.read(PIECE):
            blob.update(piece)
    return blob.hexdigest()


def impostor(head: bytes) -> str | None:
    """A message if the first bytes are those of a web page or a Git LFS pointer; else None."""
    if head.startswith(b"version https://git-lfs.github.com/spec/"):
        return "it is a Git LFS pointer, not the file that it stands for"
    if re.match(MARKUP, head, re.IGNORECASE | re.DOTALL):
        return PAGE
    return None
