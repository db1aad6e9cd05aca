"""`harness reproduce`: its list, its page of claims, its errors, and an item as a user runs it."""

import pytest
from toy_papers import toy_papers


def test_the_list_tells_cells_published_numbers_trainings_and_cost(run):
    status, out, _ = run("reproduce", "--list", "adasample/table2")
    assert status == 0
    assert "adasample/table2" in out and "doap" not in out.partition("Speed:")[0]
    assert "36 cells, 36 with a published number; trainings: full 12, small 12, smoke 4" in out
    assert "hours on one GPU" in out and "L2-Net, section 4.5" in out


def test_without_an_outcome_no_claim_is_answered(run, tmp_path):
    status, out, _ = run("reproduce", "claims", "--out", tmp_path)
    assert (status, out.strip()) == (0, str(tmp_path / "claims.md"))
    rows = [line for line in (tmp_path / "claims.md").read_text().splitlines() if "**" in line]
    assert len(rows) >= 18 and all("**not run**" in row for row in rows)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "give an item"),
        (("adasample/table9",), "did you mean 'adasample/table"),
        (("adasample/table2", "--budget", "smal"), "did you mean 'small'"),
        (("adasample/table2", "--workers", "1", "--scheduler", "tcp://127.0.0.1:1"), "not both"),
    ],
)
def test_errors_say_what_to_do(run, arguments, said, tmp_path):
    status, _, err = run("reproduce", *arguments, "--out", tmp_path)
    assert status == 2 and said in err


ITEM = """
title = "A small table"
sources = ["Toy paper, Table 1"]
rows = ["method"]

[cell]
protocol = "phototour"
score = "mean/fpr95"
test = ["yosemite"]

[axes.method]
"Mean" = {{ model = "meanstd" }}
"Pixels" = {{ model = "resize" }}
"""


def test_a_user_gets_the_files_of_an_item(run, tmp_path):
    (tmp_path / "package").mkdir()
    with toy_papers(tmp_path / "package", table1=ITEM):
        status, out, _ = run(
            "reproduce", "toy/table1", "--budget", "toy", "--out", tmp_path / "out"
        )
        assert status == 0
        shown = (tmp_path / "out" / "toy" / "toy" / "table1.md").read_text()
    assert out.split() == [
        str(tmp_path / "out" / "toy" / "toy" / f"table1{suffix}")
        for suffix in (".json", ".md", ".csv")
    ]
    assert shown.count("| here |") == 2
