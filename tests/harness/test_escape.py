"""Names of others are shown as text, in tables, files and terminals."""

import csv
import doctest
import io
import logging
import sys

import pytest
from hostile_names import HIDDEN, HOSTILE
from rich.console import Console
from rich.markdown import Markdown
from toy import toy_dataset, toy_descriptor, toy_protocol

import harness.escape
from harness import progress
from harness.commands import main as cli
from harness.data import download
from harness.escape import csv_cell, markdown, visible
from harness.evaluation import evaluate
from harness.records import leaderboard
from harness.records import record as results


def shown(source):
    """What a terminal shows of Markdown, without its styles."""
    console = Console(file=io.StringIO(), width=400, force_terminal=True, color_system="truecolor")
    console.print(Markdown(source))
    return console.file.getvalue()


@pytest.mark.parametrize("name", [*HOSTILE, *HIDDEN])
def test_a_name_in_a_markdown_table_is_one_cell_and_plain_text(name):
    table = shown(f"| model | score |\n|---|---:|\n| {markdown(name)} | 12.34 |\n")
    row = next(line for line in table.splitlines() if "12.34" in line)
    cells = row.replace("\x1b[36m", "").replace("\x1b[0m", "").rsplit("12.34", 1)[0]
    assert cells.strip() == visible(name)
    assert "\x1b]8" not in table  # no link


@pytest.mark.parametrize(
    "name",
    ["adasample+sos", "tfeat.liberty", "csv:mine", "onnx:a-b_c.2", "ties=official",
     "phototour-sfm-test", "fountain+herzjesu@m50_100000_100000_0+m50_92796_92796_0", "doap (st)",
     "Fountain-P11+Herzjesu-P8@sift", "liberty → yosemite", "retrieval/easy/map@100", "naïve 描述"],
)  # fmt: skip
def test_usual_names_stay_as_they_are(name):
    assert markdown(name) == csv_cell(name) == visible(name) == name


@pytest.mark.parametrize(("name", "spelt"), HIDDEN.items())
def test_what_is_hidden_is_spelt_out(name, spelt):
    assert visible(name) == spelt


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1", " =1", "\uff1d1+1"])
def test_a_name_is_no_formula_in_a_csv_file(name):
    assert csv_cell(name) == f"'{visible(name)}" or csv_cell(name).startswith("\\")


def board_of(called, **data):
    dataset = toy_dataset(**data)
    model = toy_descriptor(called)
    records = [*evaluate(model, [toy_protocol(dataset=dataset)])]
    (board,) = leaderboard.boards(records)
    return board


@pytest.mark.parametrize("name", [*HOSTILE, *(name for name in HIDDEN if name != "\udcff")])
def test_a_leaderboard_keeps_its_columns_whatever_a_model_is_called(name):
    board = board_of(name)
    _, _, row = leaderboard.headline_table(board)
    assert row.startswith(f"| {markdown(name)} | 8 | ")
    (found,) = csv.DictReader(io.StringIO(leaderboard.to_csv(board)))
    assert found["model"] == csv_cell(name)
    assert "\n" not in found["model"]
    assert float(found["verification/ap"]) == board.rows[0][0].scores["verification/ap"]


def test_numbers_below_0_stay_numbers_in_a_csv_file():
    board = board_of("m")
    (record,) = board.rows[0]
    odd = record.model_copy(update={"scores": {"verification/ap": -0.5}})  # as of a correlation
    (board,) = leaderboard.boards([odd])
    assert next(csv.DictReader(io.StringIO(leaderboard.to_csv(board))))["verification/ap"] == "-0.5"


def test_names_of_data_and_splits_are_text_in_headings():
    board = board_of("m", name="*data*", split="<b>")
    assert leaderboard.to_markdown(board).startswith(r"# toy on \*data\*, split \<b\>" + "\n")


@pytest.mark.parametrize("name", ["[/16]", "[bold]x[/bold]", "\x1b[2J", "a\nb"])
def test_a_bar_shows_a_name_as_it_is(name, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    with progress.shown(name, 2) as advance:
        advance(1)
    with download.bar(name) as advance:
        advance(1, 2)
    assert capsys.readouterr().err.count(visible(name)) >= 2


def test_messages_of_the_command_line_hide_nothing(run, tmp_path):
    status, out, err = run("eval", "--model", "a\x1b[2J\nb", "--protocol", "hpatches")
    assert (status, out) == (2, "")
    assert "\x1b" not in err
    assert err.count("\n") == 1


def test_what_is_logged_hides_nothing():
    record = logging.LogRecord("x", logging.INFO, "", 0, "%s is \x1b[2J\nhere", ("a\u202e",), None)
    assert cli._OneLine("harness: %(message)s").format(record) == (
        r"harness: a\u202e is \x1b[2J\nhere"
    )


def test_names_stay_raw_in_a_record(tmp_path):
    (record,) = board_of("=1|*x*").rows[0]
    assert results.read(results.save(tmp_path, record)).model.name == "=1|*x*"


def test_the_examples_are_right():
    assert doctest.testmod(harness.escape).failed == 0
