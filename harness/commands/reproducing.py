"""`harness reproduce`: the papers' tables and figures, trained, measured and drawn again."""

import logging
from pathlib import Path
from typing import Annotated

import typer

from harness.commands.options import Device, ResultsFolder, Scheduler, Workers
from harness.errors import InputError
from harness.escape import say

log = logging.getLogger(__name__)

CLAIMS = "claims"
REPRODUCED = "reproduced"  # below the results


def reproduce(
    item: Annotated[
        str | None,
        typer.Argument(help='An item from --list, such as adasample/table2, or "claims".'),
    ] = None,
    budget: Annotated[
        str, typer.Option(help="smoke, small or full: how much is trained, and on which data.")
    ] = "small",
    data: Annotated[
        Path | None,
        typer.Option("--data", help="Folder of the data, with a folder for each name of data."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", help="Folder of trainings, records and pages; default: RESULTS/reproduced."
        ),
    ] = None,
    results: ResultsFolder = Path("results"),
    device: Device = "auto",
    workers: Workers = None,
    scheduler: Scheduler = None,
    listed: Annotated[bool, typer.Option("--list", help="List the items and their cost.")] = False,
) -> None:
    """Train and measure a table or figure of a paper again, beside the published numbers."""
    from harness.cluster import fan_out
    from harness.reproduce import bench as benches
    from harness.reproduce import claims, cost, pages
    from harness.reproduce import run as runs

    place = out or results / REPRODUCED
    if listed:
        for line in cost.listing(item, results, data, place):
            say(line)
        return
    if item is None:
        raise InputError("give an item, such as adasample/table2; harness reproduce --list has all")
    if item == CLAIMS:
        from harness.files import atomic

        studies = results / "studies"
        text = claims.page(place, studies if studies.is_dir() else None)
        atomic.write_text(place / "claims.md", text)
        say(place / "claims.md")
        return
    bench = benches.bench_of(budget, place, data, device, workers=workers, scheduler=scheduler)
    if bench.has_cluster:
        fan_out.must_be_one(workers, scheduler)
    for line in cost.foretold(item, budget, bench, results):
        log.info("%s", line)
    outcome = runs.reproduce(item, budget, bench)
    for file in pages.write(outcome, bench.budget, place, results):
        say(file)
    missing = sum(bool(cell.missing) for cell in outcome.cells)
    if missing:
        log.warning("%d of %d cells are missing; the page says why", missing, len(outcome.cells))
