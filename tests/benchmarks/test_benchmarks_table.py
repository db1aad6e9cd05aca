"""One table of all benchmarks that have a reference algorithm."""

import re

import pytest
from checkout import ROOT

from benchmarks import __main__ as table_of
from benchmarks.comparison import Comparison, of_module
from harness.errors import UnknownNameError


def test_every_benchmark_with_a_reference_is_in_the_table():
    having = {
        file.stem
        for file in (ROOT / "benchmarks").glob("*.py")
        if re.search(r"^def comparisons\(", file.read_text("utf-8"), re.M)
    }
    assert having == set(table_of.NAMES)


def test_a_row_says_how_many_times_as_long_the_reference_takes():
    text = table_of.table([Comparison("a|b", 0.5, "slow one", 6.0, "same")])
    assert text.splitlines()[-1] == r"| a\|b | 0.5 | 6 | 12.0 | slow one | same |"


@pytest.mark.parametrize("name", ["oxford_matching", "doap_loss"])
def test_small_sizes_run(name):
    (row,) = of_module(name, True)
    assert row.ours_s > 0 and row.reference_s > 0
    assert row.results in ("same matches", "losses differ by 0e+00")


def test_an_unknown_benchmark_is_answered_with_known_ones(monkeypatch):
    monkeypatch.setattr("sys.argv", ["benchmarks", "--only", "oxford_machting"])
    with pytest.raises(UnknownNameError, match="oxford_matching"):
        table_of.main()
