"""LaTeX tables: the best in bold by the paired test, and names as plain text."""

import doctest
import shutil
import subprocess

import pytest
from checkout import ROOT
from hostile_names import HIDDEN, HOSTILE
from toy import measured, scored

from harness.escape import latex
from harness.records import latex_leaderboard, latex_table, leaderboard

NEEDS_LATEX = pytest.mark.skipif(
    shutil.which("pdflatex") is None, reason="pdflatex is not installed"
)
KEY = ("toy", "toy-data", "all")
LIGATURES = ["a--b", "---", "``x''", ",,x", "~x^2", "'x'", '"x"', "é ß 猫 ﬁ", "\\", "{}", "%", "&"]


def of(*records):
    return latex_leaderboard.to_latex(leaderboard.board(KEY, records))


def test_the_example_is_right():
    assert doctest.testmod(latex_table).failed == 0


def test_bold_is_decided_by_the_paired_test_and_not_by_the_digit():
    text = of(
        scored("a", 0.80, 0.82, 0.81),
        scored("b", 0.81, 0.80, 0.81),
        scored("c", 0.60, 0.61, 0.62),
    )
    assert r"\textbf{81.00}" in text and r"\textbf{80.67}" in text
    assert r"\textbf{61.00}" not in text and "61.00" in text


def test_without_a_test_nothing_is_bold():
    assert r"\textbf" not in of(*measured("a"), *measured("b", score=0.1))


def test_a_score_whose_scenes_scatter_too_much_for_an_interval_is_not_bold():
    a, b = scored("a", 0.80, 0.82, 0.81), scored("b", 0.60, 0.61, 0.62)
    a, b = (one.model_copy(update={"intervals": {"verification/ap": (0.5, 0.9)}}) for one in (a, b))
    text = of(a, b, scored("scattered", 0.01, 0.7, 0.3))
    assert text.count(r"\textbf") == 1 and r"\textbf{81.00}" in text


def test_a_model_that_saw_the_data_is_marked_and_neither_bold_nor_compared():
    seen = scored("seen", 0.95, 0.96, 0.97, trained_on=frozenset({"toy/scene"}))
    text = of(scored("a", 0.80, 0.82, 0.81), scored("b", 0.60, 0.61, 0.62), seen)
    assert seen.data.seen_in_training
    assert r"seen\textsuperscript{\textdagger{}}" in text and r"\textbf{96.00}" not in text
    assert r"\textbf{81.00}" in text and "trained on data that this table tests" in text


def test_rows_with_options_stand_behind_a_rule():
    text = of(*measured("a"), *measured("a", options={"ties": "official"}))
    assert text.count(r"\midrule") == 2 and "ties=official" in text


def test_latex_of_a_name_is_ascii_without_ligatures():
    for name in (*HOSTILE, *HIDDEN, *LIGATURES):
        assert latex(name).isascii()
    assert latex("a--b") == "a-{}-b" and latex("*") == "{*}" and latex("é") == r"\'{e}"


def set_by_latex(folder, *texts):
    """Let pdflatex make `paper.pdf` of some tables."""
    tables = "\\clearpage\n".join(texts)
    paper = (
        "\\documentclass{article}\\usepackage[T1]{fontenc}\\usepackage{booktabs}\n"
        "\\usepackage[paperwidth=20in,paperheight=60in]{geometry}\n\\begin{document}\n"
        f"{tables}\n\\end{{document}}\n"
    )
    (folder / "paper.tex").write_text(paper)
    command = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "paper.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace")
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull" not in done.stdout


@NEEDS_LATEX
def test_latex_sets_all_tables_of_the_results(tmp_path):
    files = sorted((ROOT / "results").rglob("*.tex"))
    assert len(files) > 10
    set_by_latex(tmp_path, *(file.read_text("utf-8") for file in files))


@NEEDS_LATEX
def test_latex_sets_every_name_as_it_is(tmp_path):
    names = [name for name in (*HOSTILE, *HIDDEN, *LIGATURES) if name.strip()]
    records = [one for name in names for one in measured(name.encode("utf-8", "replace").decode())]
    set_by_latex(tmp_path, of(*records))
    if shutil.which("pdftotext"):
        subprocess.run(["pdftotext", "-layout", "paper.pdf"], cwd=tmp_path, check=True)
        shown = (tmp_path / "paper.txt").read_text()
        for name in ("a|b", "*x*", "$x$", "m50_100_0", "l2net+", "=1+1", "a--b", "~x^2"):
            assert name in shown, name
