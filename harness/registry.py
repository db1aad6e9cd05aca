"""Finds descriptors, protocols and all other kinds of things among installed entry points."""

import ast
import hashlib
import importlib.util
import sys
from collections.abc import Iterable
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from threading import Lock
from typing import Any

from harness.errors import FAILURES

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
)
PARSING = Lock()  # Python 3.11 fails where two threads parse at once (python/cpython#106905)


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
        LookupError: if nothing of this name is installed; says the nearest name.
        ImportError: if its package is broken; says which package.
    """
    entry = _entry(kind, name)
    try:
        return entry.load()
    except FAILURES as error:  # the others must go on working
        raise ImportError(
            f"{_singular(kind)} {name!r} of {source(kind, name)} ({entry.value}) can't be"
            f" imported: {type(error).__name__}: {error}"
        ) from error


def code_sha256(*modules: str) -> str:
    """Over the source of modules and of all that they import from their packages and the harness.

    It is part of the key of cached vectors: an edited descriptor is computed again.
    """
    own = {"harness", *(module.partition(".")[0] for module in modules)}
    found: dict[str, bytes] = {}
    waiting = [*modules]
    while waiting:
        name = waiting.pop()
        if name in found or name.partition(".")[0] not in own:
            continue
        file = _file(name)
        if file is None:  # a name in a module, or a package without code of its own
            continue
        found[name] = file.read_bytes()
        if file.suffix == ".py":
            waiting += _imported(found[name], name)
    for module in modules:
        if module not in found:
            raise ImportError(f"{module} has no file whose contents could tell its versions apart")
    digest = hashlib.sha256()
    for name in sorted(found):
        digest.update(name.encode() + b"\0" + found[name] + b"\0")
    return digest.hexdigest()


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
        raise LookupError(
            f"{unknown(kind, name, names(kind))}"
            " (just added to pyproject.toml? entry points are read on installation)"
        )
    if len(found) > 1:
        raise LookupError(
            f"{_singular(kind)} {name!r} is claimed by {' and '.join(sorted(found))}:"
            " uninstall one of the packages"
        )
    return next(iter(found.values()))


def _singular(kind: str) -> str:
    return kind.removesuffix("s") if kind != "weights" else kind


def _file(module: str) -> Path | None:
    loaded = sys.modules.get(module)
    if loaded is not None:
        file = getattr(loaded, "__file__", None)
    else:
        try:
            spec = importlib.util.find_spec(module)
        except FAILURES:  # "package.name": a name in it, or what can't be imported here
            return None
        file = spec.origin if spec else None
    return Path(file) if file and Path(file).is_file() else None


def _imported(text: bytes, module: str) -> Iterable[str]:
    with PARSING:
        tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = importlib.util.resolve_name("." * node.level + base, _package(module))
                base = package.rstrip(".")
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _package(module: str) -> str:
    loaded = sys.modules.get(module)
    return getattr(loaded, "__package__", None) or module.rpartition(".")[0]
