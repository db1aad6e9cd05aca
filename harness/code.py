"""A hash of what Python modules mean: part of the key of everything that they computed before.

Comments, blank lines and docstrings have no part in it. It is no identity of a model: that is its
name, weights and revision (`harness.types.Descriptor`).
"""

import ast
import hashlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Lock

from harness.errors import FAILURES, ImportFailedError

KERNEL = "harness"
PARSING = Lock()  # Python 3.11 fails where two threads parse at once (python/cpython#106905)


def code_sha256(*modules: str) -> str:
    """SHA-256 over the syntax of modules and of all that they import from their own packages.

    Modules of the harness count only where they are named here: what a vector hangs on in the
    harness is little, and the fingerprint of a model sees it.

    Raises:
        ImportFailedError: if a module has no file.
    """
    own = {module.partition(".")[0] for module in modules} - {KERNEL}
    found: dict[str, bytes] = {}
    waiting = [*modules]
    while waiting:
        name = waiting.pop()
        if name in found or (name not in modules and name.partition(".")[0] not in own):
            continue
        file = _file(name)
        if file is None:  # a name in a module, or a package without code of its own
            continue
        contents = file.read_bytes()
        if file.suffix == ".py":
            with PARSING:
                tree = ast.parse(contents)
            waiting += _imported(tree, name)
            contents = _meaning(tree)
        found[name] = contents
    for module in modules:
        if module not in found:
            raise ImportFailedError(
                f"{module} has no file whose contents could tell its versions apart"
            )
    digest = hashlib.sha256()
    for name in sorted(found):
        digest.update(name.encode() + b"\0" + found[name] + b"\0")
    return digest.hexdigest()


def source_sha256(source: bytes) -> str:
    """SHA-256 over the meaning of one source text alone.

    Raises:
        SyntaxError: if it is no Python.
    """
    with PARSING:
        tree = ast.parse(source)
    return hashlib.sha256(_meaning(tree)).hexdigest()


def _meaning(tree: ast.Module) -> bytes:
    """The syntax of a module, without docstrings and without line numbers; changes the tree."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                if isinstance(first.value.value, str):
                    del node.body[0]
    return ast.dump(tree).encode()


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


def _imported(tree: ast.Module, module: str) -> Iterator[str]:
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
