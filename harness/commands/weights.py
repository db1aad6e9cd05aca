"""`harness weights`: published weights."""

from pathlib import Path
from typing import Annotated

import typer

from harness import registry
from harness.errors import UnknownNameError
from harness.escape import say


def add(
    files: Annotated[list[Path], typer.Argument(help="Files of published weights.")],
) -> None:
    """Check files of published weights and keep them, as safetensors, where models find them."""
    from harness.data import published_weights, weights

    known = published_weights.known().values()
    for file in files:
        say(f"{weights.add(file, known).name} is here now")


def fetch(
    names: Annotated[list[str], typer.Argument(help="As `weights list` has them.")],
) -> None:
    """Download published weights from their mirrors, checked by their hash."""
    from harness.data import download, published_weights

    known = published_weights.known()
    for name in names:
        if name not in known:
            raise UnknownNameError(registry.unknown("weights", name, known))
        with download.bar(name) as progress:
            published_weights.fetch(known[name], progress=progress)
        say(f"{name} is here now")


def listing() -> None:
    """List the published weights that models know, and which of them are here."""
    from harness.data import published_weights, weights

    known = published_weights.known()
    width = max(map(len, known), default=0)
    for name, row in sorted(known.items()):
        here = "here" if weights.is_here(row) else "not here"
        say(f"{name:{width}}  {here:8}  {row.file}  {row.licence}")
