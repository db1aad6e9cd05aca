"""Options that several commands share, and the reading of lists of names."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import typer

from harness import expression
from harness.commands.command import LIST
from harness.errors import InputError

MODEL = (
    "name from `harness models`, FILE.py:NAME, FILE.onnx, the folder of a training, or a folder of"
    ' vectors; wrappers may follow, as in "NAME|root"'
)
ModelNames = Annotated[
    str,
    typer.Option(
        "--model",
        metavar=f"MODEL{LIST}",
        help=f"A {MODEL}; several separated by commas, without spaces.",
    ),
]
ModelName = Annotated[str, typer.Option("--model", help=f"One model: a {MODEL}.")]
ProtocolName = Annotated[
    str,
    typer.Option("--protocol", help="A name from `harness protocols`, or a family of them."),
]
DataFolder = Annotated[
    Path | None,
    typer.Option(
        "--data",
        help="Folder of the data set; default: HARNESS_DATA if it is set, or a small sample.",
    ),
]
Split = Annotated[str | None, typer.Option("--split", help="A split of the data set.")]
ResultsFolder = Annotated[Path, typer.Option("--results", help="Folder of records.")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu or cuda.")]
BatchSize = Annotated[
    int | None, typer.Option("--batch-size", min=1, help="Patches described at a time.")
]
AllowPartial = Annotated[
    bool,
    typer.Option("--allow-partial", help="Allow missing data; the record enters no leaderboard."),
]
Settings = Annotated[
    list[str] | None, typer.Option("--set", help="An option of the protocol, as KEY=VALUE.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]


def names(option: str, text: str) -> list[str]:
    """The names in a list that is separated by commas; commas in parentheses don't separate.

    Raises:
        InputError: if a name is empty, or a parenthesis is not closed.
    """
    found = expression.split(text, ",") if "," in text else [text.strip()]
    if not all(found):
        raise InputError(f"{option} is {text!r}: a name is missing")
    return found


def one_model(rule: str, names: Sequence[str]) -> str:
    """The only model that the names stand for; a family stands for several.

    Args:
        rule: beginning of the message if there are several models.
        names: names of models.

    Raises:
        InputError: if there are several models; it gives the rule, then their names.
    """
    from harness import loading

    members = [member for name in names for member in loading.model_names(name)]
    if len(members) != 1:
        raise InputError(f"{rule} {', '.join(members)}")
    return members[0]


def must_hold_lists_together(arguments: Sequence[str]) -> None:
    """Refuse a list like "a, b", which the shell splits into two arguments.

    Raises:
        InputError: if there is such a list; the message says how to write it.
    """
    for first, second in pairwise(arguments):
        is_option = first.startswith("-") and "=" not in first
        is_list = first.endswith(",") or (second.startswith(",") and not is_option)
        if is_list and not second.startswith("-"):
            raise InputError(
                f"{first!r} and {second!r} are two arguments: write a list without spaces, as in"
                f" {first.removesuffix(',')},{second.removeprefix(',') or 'NAME'}"
            )
