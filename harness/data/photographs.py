"""Photographs whose author and licence are known, by the hash of their files.

A published data set lists its own (`PublishedSet.photographs`). A training set keeps the hashes of
the photographs that its patches were cut from, so a model's card can name each of them.
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Photograph:
    """One image file, with the terms of its use."""

    file: str  # path in its source, such as a package
    author: str
    licence: str  # SPDX name, or LicenseRef-public-domain
    stated: str  # where the licence is stated
    sha256: str  # of the file


def licences(shown: Iterable[Photograph]) -> str:
    """The licences of some photographs as an SPDX expression: all of them have to be kept.

    >>> bee, fly = (Photograph(f, "A", "CC-BY-4.0", "here", "") for f in ("bee.jpg", "fly.jpg"))
    >>> licences([bee, fly, Photograph("ant.jpg", "B", "CC0-1.0", "here", "")])
    'CC-BY-4.0 AND CC0-1.0'
    """
    return " AND ".join(sorted({one.licence for one in shown}))


def all_of(parts: Iterable[Iterable[Photograph] | None]) -> tuple[Photograph, ...] | None:
    """The photographs of several parts, each once, by file; None if those of one are unknown.

    >>> bee, fly = (Photograph(f, "A", "CC-BY-4.0", "here", "") for f in ("bee.jpg", "fly.jpg"))
    >>> all_of([[fly], [], [fly, bee]]) == (bee, fly)
    True
    >>> all_of([[fly], None]) is None
    True
    """
    found: set[Photograph] = set()
    for part in parts:
        if part is None:
            return None
        found.update(part)
    return tuple(sorted(found, key=lambda one: (one.file, one.sha256)))
