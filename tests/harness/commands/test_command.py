"""Options that take one value are given once."""

from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from harness.commands.command import Command
from harness.commands.main import app, data_app, weights_app


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ["eval", "--model", "sift", "--model", "brief", "--protocol", "oxford"],
            "--model is given twice: several are one list with commas, as in --model A,B",
        ),
        (
            ["check", "--model=sift", "--model=brief"],
            "--model is given twice: several are one list with commas",
        ),
        (
            ["train", "--recipe", "hardnet", "--data", "a", "--data", "b"],
            "--data is given twice: several are one list with commas",
        ),
        (
            ["describe", "--model", "a", "--model", "b", "--protocol", "x", "--out", "y"],
            "--model is given twice: it takes one value",
        ),
        (
            ["eval", "--model", "a", "--protocol", "x", "--batch-size", "1", "--batch-size=1"],
            "--batch-size is given twice: it takes one value",
        ),
        (["leaderboard", "--results", "a", "--results", "b"], "--results is given twice"),
        (["models", "--licence", "a", "--licence", "b"], "--licence is given twice"),
        (
            ["data", "build", "x", "--images", "a", "--out", "b", "--images", "c"],
            "--images is given twice",
        ),
        (["fit", "--out", "a", "--out", "b", "--model", "x|y", "--data", "z"], "--out is given"),
    ],
)
def test_a_second_value_is_refused(run, arguments, told):
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert told in err and "Traceback" not in err


def test_every_command_refuses_a_second_value():
    for group in (app, data_app, weights_app):
        for command in group.registered_commands:
            assert command.cls is Command, command.callback


def test_flags_and_lists_of_options_may_be_given_again():
    own = typer.Typer()
    came = []

    @own.command(cls=Command)
    def command(setting: Annotated[list[str], typer.Option()], flag: bool = False, one: str = ""):
        came.append((setting, flag, one))

    done = CliRunner().invoke(
        own, ["--setting", "a", "--setting", "b", "--flag", "--flag", "--one", "--one"]
    )
    assert done.exit_code == 0, done.output
    assert came == [(["a", "b"], True, "--one")]
