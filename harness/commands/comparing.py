"""`harness compare`: is one model better than another?"""

from pathlib import Path
from typing import Annotated

import typer

from harness.commands.options import ProtocolName, ResultsFolder
from harness.escape import say


def compare(
    a: Annotated[str, typer.Argument(help="A model by its name in the records.")],
    b: Annotated[str, typer.Argument(help="Another model.")],
    protocol: ProtocolName,
    data: Annotated[
        str | None,
        typer.Option("--data", help="Name of a data set; else all that both have records of."),
    ] = None,
    results: ResultsFolder = Path("results"),
) -> None:
    """Say whether model A is better than model B, over the scenes of their records."""
    from rich.console import Console
    from rich.markdown import Markdown

    from harness.records import comparison, record

    console = Console()
    for found in comparison.comparisons(record.load(results), a, b, protocol, data):
        say(comparison.sentence(found))
        console.print(Markdown("\n".join(comparison.table(found))))
    console.print(Markdown(comparison.NOTE))
