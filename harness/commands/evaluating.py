"""`harness eval` and `leaderboard`: score models, keep records, make tables from the records."""

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.commands.options import (
    AllowPartial,
    AsJson,
    BatchSize,
    DataFolder,
    Device,
    ModelNames,
    ProtocolName,
    ResultsFolder,
    Scheduler,
    Settings,
    Split,
    Workers,
    names,
)
from harness.escape import say

if TYPE_CHECKING:
    from harness import Record

log = logging.getLogger(__name__)


def evaluate(
    model: ModelNames,
    protocol: ProtocolName,
    data: DataFolder = None,
    split: Split = None,
    results: ResultsFolder = Path("results"),
    device: Device = "auto",
    batch_size: BatchSize = None,
    allow_partial: AllowPartial = False,
    setting: Settings = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    as_json: AsJson = False,
) -> None:
    """Score models on a protocol and keep one record for each."""
    import harness
    from harness.records import published
    from harness.running import NotKeptError
    from harness.settings import options

    given = options(
        settings=setting,
        data=data,
        split=split,
        results=results,
        device=device,
        batch_size=batch_size,
        allow_partial=allow_partial or None,
        cache=True,
        progress=True,
        workers=workers,
        scheduler=scheduler,
    )
    numbers = published.read(results / published.FOLDER)

    def show(records: Sequence["Record"]) -> None:
        if as_json:
            _print_json(records)
            return
        _print_tables(records)
        for verdict in (one for record in records for one in published.verdicts(record, numbers)):
            say(verdict)

    try:
        show(harness.evaluate(names("--model", model), protocol, **given))
    except NotKeptError as error:
        show(error.records)
        raise
    log.info("records are in %s; `harness leaderboard` makes tables from them", results)


def leaderboard(results: ResultsFolder = Path("results")) -> None:
    """Make the CSV and Markdown tables again from the records."""
    from harness.records import tables

    written = tables.write(results)
    for file in written:
        say(file)
    if not written:
        log.warning("no table was made: every record in %s is of partial data", results)


def _print_json(records: Sequence["Record"]) -> None:
    """Print one record as an object, several records as a list."""
    found = [record.model_dump(mode="json") for record in records]
    print(json.dumps(found[0] if len(found) == 1 else found, indent=1, sort_keys=True))


def _print_tables(records: Sequence["Record"]) -> None:
    from rich.console import Console
    from rich.markdown import Markdown

    from harness.records import leaderboard as boards
    from harness.records import tables

    console = Console()
    for board in boards.boards(records):
        percent = "" if board.quantities else ", percent"
        title = f"### {boards.heading(board)}{percent}\n\n"
        lines = boards.headline_table(board)
        for kind in tables.kinds_of(board.family):
            lines += kind.lines_of(board)
        console.print(Markdown(title + "\n".join(lines)))
    for record in records:
        if not record.data.complete:
            headline = record.protocol.headline
            score = record.scores.get(headline, float("nan"))  # no headline if cells were refused
            say(f"{record.model.name}  {headline} {score:.4f}  PARTIAL DATA")
            for warning in record.warnings:
                say(warning)
