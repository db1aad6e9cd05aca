"""`harness audit`: do the numbers of a record hold?"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.commands.options import (
    AsJson,
    BatchSize,
    Device,
    Settings,
    Split,
    names,
    one_model,
)
from harness.escape import markdown, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.auditing.verdict import Audit, Checked, Number

MOST = 5  # wrong numbers of a scene that are shown


def audit(
    record: Annotated[Path, typer.Argument(help="The file of a record, ours or a stranger's.")],
    scenes: Annotated[
        int, typer.Option(min=1, help="Scenes to run again; the record's hash chooses them.")
    ] = 3,
    salt: Annotated[str, typer.Option(help="A text that takes part in the choice of scenes.")] = "",
    model: Annotated[
        str | None, typer.Option(help="The record's model, as for eval; default: by its name.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the record's data; default: HARNESS_DATA, or the sample or fetched set"
            " of that name."
        ),
    ] = None,
    split: Split = None,
    device: Device = "auto",
    batch_size: BatchSize = None,
    setting: Settings = None,
    as_json: AsJson = False,
) -> None:
    """Run scenes of a record again, and say whether its numbers hold.

    Exit status: 0 if they hold, 1 if a number or a fact is wrong, 2 if it can't be told.
    """
    import harness
    from harness.auditing.verdict import Verdict
    from harness.settings import options

    given = options(
        settings=setting,
        data=data,
        split=split,
        device=device,
        batch_size=batch_size,
        scenes=scenes,
        salt=salt,
        model=model and one_model("audit takes one model, not", names("--model", model)),
        progress=True,
    )
    found = harness.audit(record, **given)
    if as_json:
        print(json.dumps(_as_json(found), indent=1))
    else:
        _print(found)
    if found.verdict is Verdict.WRONG:
        raise typer.Exit(1)


def _print(found: "Audit") -> None:
    from rich.console import Console
    from rich.markdown import Markdown

    from harness.auditing.verdict import EQUAL, OTHER_MACHINES
    from harness.records.markdown_table import lines

    kept = found.record
    again, every = len(found.scenes), len(found.scenes) + len(found.not_run)
    scenes = f"all {every} scenes" if again == every else f"{again} of {every} scenes"
    say(
        f"{kept.model.name} on {kept.protocol.title}, {kept.data.name}, split {kept.data.split}:"
        f" {scenes} run again"
    )
    if found.whole:
        say(f"{kept.protocol.name} was run as a whole: its scores are of all scenes together")
    rows = [_row(checked) for checked in (*found.scenes, found.totals) if checked.numbers]
    columns = ["", "numbers", "largest difference", "verdict"]
    Console().print(Markdown("\n".join(lines(columns, rows, "lrrl"))))
    for checked in (*found.scenes, found.totals):
        for told, numbers in (
            ("wrong", checked.wrong),
            ("decided by a random search", checked.unsteady),
        ):
            for number in numbers[:MOST]:
                say(f"{told}: {checked.name}: {number}")
            if len(numbers) > MOST:
                say(f"{told}: {checked.name}: {len(numbers) - MOST} more numbers")
    for fact in found.facts:
        say(f"wrong: {fact}")
    for name in found.unchecked:
        say(f"not checked: the interval of {name}, which needs the runs of all scenes")
    machine = "; ".join(found.machine) or "nothing that the record tells differs from it"
    say(f"this machine: {machine}")
    say(
        {
            "EQUAL": f"The record holds: its numbers are equal to {EQUAL:g}.",
            "CLOSE": f"The record holds: its numbers are equal to {OTHER_MACHINES:g}, the tolerance"
            " of other machines.",
            "UNSTEADY": "The record holds as far as can be told: numbers that a random search"
            " (RANSAC) decides differ by no more than between two machines. All others are equal"
            f" to {OTHER_MACHINES:g}.",
            "WRONG": "The record is wrong.",
        }[found.verdict.name]
    )


def _row(checked: "Checked") -> list[str]:
    from harness.auditing.verdict import EQUAL, Verdict

    said = {
        Verdict.EQUAL: f"equal to {EQUAL:g}",
        Verdict.CLOSE: f"equal to {checked.within:g}",
        Verdict.UNSTEADY: f"{len(checked.unsteady)} differ as between machines",
        Verdict.WRONG: f"{len(checked.wrong)} wrong",
    }
    difference = f"{checked.difference:.2g}"
    return [markdown(checked.name), str(len(checked.numbers)), difference, said[checked.verdict]]


def _as_json(found: "Audit") -> dict[str, Any]:
    """All results; a number that is missing on one side is null there."""
    kept = found.record
    return {
        "model": kept.model.name,
        "protocol": kept.protocol.title,
        "data": kept.data.name,
        "split": kept.data.split,
        "verdict": found.verdict.name.lower(),
        "whole": found.whole,
        "scenes": {checked.name: _checked(checked) for checked in found.scenes},
        "not_run": list(found.not_run),
        "totals": _checked(found.totals),
        "facts": list(found.facts),
        "unchecked_intervals": list(found.unchecked),
        "machine": list(found.machine),
    }


def _checked(checked: "Checked") -> dict[str, Any]:
    difference = checked.difference
    return {
        "verdict": checked.verdict.name.lower(),
        "numbers": len(checked.numbers),
        "largest_difference": difference if difference < float("inf") else None,
        "tolerance": checked.within,
        "wrong": _numbers(checked.wrong),
        "unsteady": _numbers(checked.unsteady),
    }


def _numbers(some: "Sequence[Number]") -> list[dict[str, Any]]:
    return [{"name": one.name, "record": one.kept, "found": one.found} for one in some]
