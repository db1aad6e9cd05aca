"""Hashes the code of Python modules, as part of the cache key of everything that they compute.

Comments, blank lines and docstrings don't change the hash. It does not identify a model: name,
weights and revision do (`harness.types.Descriptor`).
"""

import ast
import hashlib
import importlib.util
import sys
from collections.abc import Iterator
from functools import lru_cache
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from threading import Lock

from harness.errors import FAILURES, ImportFailedError

KERNEL = "harness"
PARSING = Lock()  # Python 3.11 fails if two threads parse at once (python/cpython#106905)


def code_sha256(*modules: str) -> str:
    """SHA-256 of the syntax of modules and of all modules they import from their own packages.

    Imported modules of the harness don't count, unless they are arguments: vectors depend on little
    of the harness, and the fingerprint of a model shows any change.

    Raises:
        ImportFailedError: if a module has no file.
    """
    packages = {module.partition(".")[0] for module in modules} - {KERNEL}
    hashed: dict[str, bytes] = {}
    waiting = [*modules]
    while waiting:
        name = waiting.pop()
        if name in hashed or (name not in modules and name.partition(".")[0] not in packages):
            continue
        file = _file(name)
        if file is None:  # an object in a module, or a package without a file
            continue
        contents = file.read_bytes()
        if file.suffix == ".py":
            contents, imported = _parsed(contents, _package(name))
            waiting += imported
        hashed[name] = contents
    for module in modules:
        if module not in hashed:
            raise ImportFailedError(
                f"{module} has no file that could be hashed to tell its versions apart"
            )
    digest = hashlib.sha256()
    for name in sorted(hashed):
        digest.update(name.encode() + b"\0" + hashed[name] + b"\0")
    return digest.hexdigest()


def source_sha256(source: bytes) -> str:
    """SHA-256 of the syntax of one source text, without its imports.

    Raises:
        SyntaxError: if it is not Python.
    """
    with PARSING:
        tree = ast.parse(source)
    return hashlib.sha256(_syntax(tree)).hexdigest()


@lru_cache(maxsize=1024)  # many models share modules
def _parsed(source: bytes, package: str) -> tuple[bytes, tuple[str, ...]]:
    """The syntax of a module's source text, and the names that it imports."""
    with PARSING:
        tree = ast.parse(source)
    imported = tuple(_imported(tree, package))
    return _syntax(tree), imported


def _syntax(tree: ast.Module) -> bytes:
    """The syntax of a module without docstrings and line numbers; changes the tree."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                if isinstance(first.value.value, str):
                    del node.body[0]
    return ast.dump(tree).encode()


def _file(module: str) -> Path | None:
    """The file of a module; imports nothing. None if it has none, or if it is not a module."""
    loaded = sys.modules.get(module)
    if loaded is not None:
        file = getattr(loaded, "__file__", None)
    else:
        spec = _spec(module)
        file = spec.origin if spec else None
    return Path(file) if file and Path(file).is_file() else None


def _spec(module: str) -> ModuleSpec | None:
    """As `importlib.util.find_spec`, which would import the packages that hold the module."""
    above, _, _ = module.rpartition(".")
    if not above:
        try:
            return importlib.util.find_spec(module)
        except FAILURES:  # a finder of another package fails
            return None
    loaded = sys.modules.get(above)
    if loaded is not None:
        places = getattr(loaded, "__path__", None)
    else:
        package = _spec(above)
        places = package.submodule_search_locations if package else None
    return None if places is None else PathFinder.find_spec(module, places)


def _imported(tree: ast.Module, package: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = importlib.util.resolve_name("." * node.level + base, package).rstrip(".")
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _package(module: str) -> str:
    loaded = sys.modules.get(module)
    return getattr(loaded, "__package__", None) or module.rpartition(".")[0]
