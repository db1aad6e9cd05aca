"""Imitates an installed package of a third party, with entry points."""

import sys
from contextlib import contextmanager


@contextmanager
def installed(folder, name, source, **groups):
    """Put a distribution on sys.path: one module, with entry points {name: value} for each kind."""
    module = name.replace("-", "_")
    (folder / f"{module}.py").write_text(source)
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = []
    for kind, entries in groups.items():
        lines += [f"[harness.{kind}]", *(f"{key} = {module}:{v}" for key, v in entries.items())]
    (info / "entry_points.txt").write_text("\n".join(lines))
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop(module, None)
