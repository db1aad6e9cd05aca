"""Finds descriptors, protocols and all other kinds of things among installed entry points."""

from collections.abc import Iterable
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from harness.errors import FAILURES, ImportFailedError, UnknownNameError

KINDS = (
    "descriptors",
    "protocols",
    "pictures",
    "builders",
    "weights",
    "datasets",
    "data_names",
    "training",
    "trainers",
    "methods",
    "networks",
)


def names(kind: str) -> list[str]:
    """Every installed name of a kind, one of KINDS; imports nothing of what it lists."""
    return sorted({entry.name for entry in _installed(kind)})


def source(kind: str, name: str) -> str:
    """The distribution that brings a name, e.g. "descriptor-harness 0.1.0"."""
    distribution = _entry(kind, name).dist
    return f"{distribution.name} {distribution.version}" if distribution else "unknown"


def load(kind: str, name: str) -> Any:
    """Import what one name stands for; nothing else is imported.

    Raises:
        UnknownNameError: if nothing of this name is installed; says the nearest name.
        ImportFailedError: if its package is broken; says which package.
    """
    entry = _entry(kind, name)
    try:
        return entry.load()
    except FAILURES as error:  # the others must go on working
        raise ImportFailedError(
            f"{_singular(kind)} {name!r} of {source(kind, name)} ({entry.value}) can't be"
            f" imported: {type(error).__name__}: {error}"
        ) from error


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """The message for a name that nobody knows: the nearest known one, or all of them."""
    known = sorted(known)
    close = get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known) or 'none'}"
    return f"no {_singular(kind)} named {name!r}; {hint}"


def _installed(kind: str) -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=f"harness.{kind}"))


def _entry(kind: str, name: str) -> EntryPoint:
    found = {e.value: e for e in _installed(kind) if e.name == name}
    if not found:
        raise UnknownNameError(
            f"{unknown(kind, name, names(kind))}"
            " (just added to pyproject.toml? entry points are read on installation)"
        )
    if len(found) > 1:
        raise UnknownNameError(
            f"{_singular(kind)} {name!r} is claimed by {' and '.join(sorted(found))}:"
            " uninstall one of the packages"
        )
    return next(iter(found.values()))


def _singular(kind: str) -> str:
    return kind.removesuffix("s") if kind != "weights" else kind
