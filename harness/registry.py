"""Finds descriptors, protocols and other plug-ins among installed entry points."""

import sys
from collections.abc import Iterable
from difflib import get_close_matches
from functools import lru_cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import extras
from harness.errors import FAILURES, ImportFailedError, UnknownNameError, text_of

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint
else:  # Dask imports `importlib_metadata` on Python 3.11: its entries have a class of their own
    EntryPoint = object

KINDS = (
    "descriptors",
    "protocols",
    "pictures",
    "tables",
    "figures",
    "builders",
    "pipelines",
    "weights",
    "datasets",
    "data_names",
    "training",
    "trainers",
    "papers",
    "measures",
    "samples",
    "catalogues",
    "model_folders",
    "methods",
    "networks",
    "wrappers",
)


def names(kind: str) -> list[str]:
    """All installed names of a kind, one of KINDS; imports no plug-in."""
    return sorted({entry.name for entry in _installed(kind)})


def source(kind: str, name: str) -> str:
    """The distribution that declares a name, e.g. "descriptor-harness 0.1.0"."""
    distribution = _entry(kind, name).dist
    return f"{distribution.name} {distribution.version}" if distribution else "unknown"


def load(kind: str, name: str) -> Any:
    """The object that an entry point names; imports only its module.

    Raises:
        UnknownNameError: if no such name is installed; gives the nearest name.
        ImportFailedError: if its module can't be imported; names the package. Also if it needs a
            package that is not installed; names that package and the extra that installs it.
    """
    entry = _entry(kind, name)
    try:
        with extras.needed(f"{_singular(kind)} {name!r}"):
            return entry.load()
    except extras.ExtraMissingError:
        raise
    except FAILURES as error:  # one broken package must not stop the others
        raise ImportFailedError(
            f"{_singular(kind)} {name!r} of {source(kind, name)} ({entry.value}) can't be"
            f" imported: {text_of(error)}"
        ) from error


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """The message for an unknown name: it suggests the nearest known name, or lists all."""
    known = sorted(known)
    close = get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known) or 'none'}"
    return f"no {_singular(kind)} named {name!r}; {hint}"


def _installed(kind: str) -> tuple[EntryPoint, ...]:
    return _entries(kind, tuple((place, _changed(place)) for place in sys.path))


@lru_cache(maxsize=64)  # a search takes 10 ms or more, and a list of models asks for each name
def _entries(kind: str, places: tuple[tuple[str, int], ...]) -> tuple[EntryPoint, ...]:
    """The entry points of a kind; a package that is installed changes its place."""
    return tuple(entry_points(group=f"harness.{kind}"))


def _changed(place: str) -> int:
    """When a folder or file was last changed, in nanoseconds; 0 if it does not exist."""
    try:
        return Path(place or ".").stat().st_mtime_ns
    except OSError:
        return 0


def _entry(kind: str, name: str) -> EntryPoint:
    by_value = {e.value: e for e in _installed(kind) if e.name == name}
    if not by_value:
        raise UnknownNameError(
            f"{unknown(kind, name, names(kind))}"
            " (just added to pyproject.toml? entry points are read on installation)"
        )
    if len(by_value) > 1:
        raise UnknownNameError(
            f"{_singular(kind)} {name!r} is claimed by {' and '.join(sorted(by_value))}:"
            " uninstall one of the packages"
        )
    return next(iter(by_value.values()))


def _singular(kind: str) -> str:
    return kind.removesuffix("s") if kind != "weights" else kind
