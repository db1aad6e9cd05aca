"""The photographs of `photographs.toml` as published data sets."""

import tomllib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

from harness.data.copies import Copy
from harness.data.datasets import PublishedSet, SetPart
from harness.data.photographs import Photograph, licences

PAGE = "https://packages.debian.org"  # most of the photographs are in Debian's packages


def photograph_sets() -> Iterator[PublishedSet]:
    """Yields each set of the list, with the author and the licence of each photograph."""
    listed = tomllib.loads((files(__package__) / "photographs.toml").read_text("utf-8"))
    for name, about in listed["sets"].items():
        sources = [source for source in listed["sources"] if source["set"] == name]
        shown = tuple(one for source in sources for one in _photographs(source))
        yield PublishedSet(
            name=name,
            title=f"{len(shown)} {about['title']}",
            page=PAGE,
            parts=tuple(part for source in sources for part in _parts(source)),
            licence=licences(shown),
            citation="name the author of each image; they are listed below",
            needs={},
            photographs=shown,
        )


def _photographs(source: Mapping[str, Any]) -> Iterator[Photograph]:
    for one in source["photographs"]:
        yield Photograph(
            file=f"{source['into']}/{one['file']}",
            author=one["author"],
            licence=one["licence"],
            stated=one.get("stated", source["stated"]),
            sha256=one["sha256"],
        )


def _parts(source: Mapping[str, Any]) -> Iterator[SetPart]:
    """The archive of a source, or each of its files."""
    addresses, shown = source["addresses"], source["photographs"]
    if "sha256" in source:
        hash = f"sha256:{source['sha256']}"
        copies = tuple(Copy(address, hash, source["size"]) for address in addresses)
        yield SetPart(copies, source["into"], keep=tuple(one["file"] for one in shown))
        return
    for one in shown:
        hash = f"sha256:{one['sha256']}"
        copies = tuple(Copy(address + one["file"], hash) for address in addresses)
        yield SetPart(copies, source["into"])
