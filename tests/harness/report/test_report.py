"""The report: its contents, its page without a browser, and the figures for papers."""

import base64
import json
import re
import xml.etree.ElementTree as ET
from itertools import combinations

import cv2
import numpy as np
import pytest
from checkout import ROOT
from packages import installed
from reports import EVIL, write_results
from toy import scored

from harness.catalogue import Moment
from harness.errors import FileMissingError
from harness.records import leaderboard
from harness.records.speeds import Speed
from harness.report import document, failures, figures, paper
from harness.report.contents import contents, read
from harness.report.models import models

MOST = 2_000_000  # bytes of the page


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_results(tmp_path_factory.mktemp("results"))


@pytest.fixture(scope="module")
def measured_here():
    return read(ROOT / "results")


@pytest.fixture(scope="module")
def page(folder):
    return document.to_html(contents(read(folder)))


def embedded(page):
    return json.loads(re.search(r'id="contents">(.*?)</script>', page, re.S)[1])


def board_of(*records):
    return leaderboard.board(("toy", "toy-data", "all"), records)


MATRICES = {  # of colour-blindness, on linear RGB: Machado et al. 2009, table 1, severity 1
    "none": np.eye(3),
    "protanopia": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deuteranopia": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritanopia": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}
APART = 12  # the least difference of two colours, in CIE L*a*b*


def seen(colour, matrix, opacity=1.0, paper="#ffffff"):
    """A colour as CIE L*a*b*, as seen with a kind of colour-blindness."""
    values = [[int(each[i : i + 2], 16) for i in (1, 3, 5)] for each in (colour, paper)]
    drawn = opacity * np.array(values[0]) + (1 - opacity) * np.array(values[1])
    share = drawn / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    rgb = np.clip(np.array(matrix) @ linear, 0, 1).astype(np.float32)
    return cv2.cvtColor(rgb[None, None], cv2.COLOR_LRGB2Lab)[0, 0].astype(float)


def themes():
    """The colours of each theme of the page, by name."""
    style = (document.PAGE / "page.css").read_text("utf-8")
    for rules in re.findall(r"\{([^{}]*--paper:[^{}]*)\}", style):
        yield dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", rules))


@pytest.mark.parametrize("kind", MATRICES)
def test_colours_are_distinct_for_the_colour_blind(kind):
    sets = [(paper.COLOURS, 1, "#ffffff")]
    for theme in themes():
        lines = [theme[f"p{i}"] for i in range(8)]
        bars = [theme[f"k{i}"] for i in range(4)]
        sets += [(lines, 1, theme["paper"]), (bars, 0.55, theme["paper"])]
    assert len(sets) == 7
    for colours, opacity, background in sets:
        for a, b in combinations(colours, 2):
            a_seen, b_seen = (seen(one, MATRICES[kind], opacity, background) for one in (a, b))
            assert np.linalg.norm(a_seen - b_seen) > APART, (a, b)


def test_a_wrapped_model_has_the_card_of_the_model_inside(measured_here):
    found = {model["name"]: dict(model["facts"]) for model in contents(measured_here)["models"]}
    signs, inside = found["adasample|signs"], found["adasample"]
    assert signs["made from"] == "adasample" and "made from" not in inside
    assert signs["limits"] == inside["limits"] and signs["recipe"] == "adasample"
    assert signs["distance"] == "hamming" and inside["distance"] == "l2"


def test_the_same_results_give_the_same_bytes(folder, page):
    assert document.to_html(contents(read(folder))) == page


def test_the_page_refers_to_nothing_outside_of_it(page):
    assert not re.search(r'(?:src|href)="(?!#|data:)', page)
    assert "url(" not in page and "@import" not in page and "default-src 'none'" in page
    empty = document.to_html({"kinds": {}, "products": {}, "meanings": {}})
    addresses = set(re.findall(r"https?://[^\"'\s)]+", empty))
    assert addresses == {"http://www.w3.org/2000/svg"}  # a name of a namespace, never loaded


def test_a_name_ends_neither_its_text_nor_the_element_that_holds_it(page):
    assert page.count("</script>") == 2
    assert EVIL not in page and "<img" not in page
    found = embedded(page)
    assert EVIL in [model["name"] for model in found["models"]]


def test_invisible_characters_of_names_are_spelt_out(folder):
    found = contents(read(folder))
    found["models"][0]["name"] = "a\u202eb"
    assert embedded(document.to_html(found))["models"][0]["name"] == r"a\u202eb"


def test_the_contents_tell_what_can_not_be_told_apart(page):
    found = embedded(page)
    (board,) = found["boards"]
    names = [found["models"][row["model"]]["name"] for row in board["rows"]]
    assert names == ["alpha", "beta", "gamma", EVIL, "delta", "alpha"]
    assert board["ranks"][:3] == ["1-2", "1-2", "3"]
    assert board["alike"][:3] == [[1], [0], []]
    assert board["best"] == {"0": [0, 1]}
    assert [row["mark"] for row in board["rows"]] == ["", "", "", "†", "?", ""]


def test_no_fact_of_the_machine_is_in_the_page(page):
    assert "weights_at" not in page and str(ROOT) not in page and "/root" not in page


def test_a_folder_without_records_is_refused(tmp_path):
    with pytest.raises(FileMissingError, match="no record in"):
        read(tmp_path)


def test_the_report_of_the_results_is_small(measured_here):
    page = document.to_html(contents(measured_here))
    assert len(page.encode()) < MOST


def test_a_board_of_an_unknown_family_has_bars_of_its_headlines():
    board = board_of(scored("a", 0.8, 0.82, 0.81), scored("b", 0.6, 0.61, 0.62))
    (figure,) = figures.of_board(board)
    (panel,) = figure.panels
    assert [(bar.row, bar.value) for bar in panel.bars] == [
        (0, pytest.approx(0.81)), (1, pytest.approx(0.61)),
    ]  # fmt: skip


def test_the_front_joins_models_that_none_beats():
    board = board_of(*(scored(name, a, a, a) for name, a in (("a", 0.9), ("b", 0.8), ("c", 0.7))))
    speeds = {"a": Speed(8, {1: 5}, "x"), "b": Speed(4, {1: 9}, "x"), "c": Speed(8, {1: 7}, "x")}
    trade = figures.of_board(board, speeds)[-1]
    assert [[dot.on_front for dot in panel.dots] for panel in trade.panels] == [
        [True, True, False], [True, True, False],
    ]  # fmt: skip


OWN = """
from harness.report.figures import Figure, headlines

def figures(board):
    (one,) = headlines(board)
    yield Figure("own", "Own", "A note.", one.panels)
"""


def test_a_package_contributes_figures_of_a_family(tmp_path):
    board = board_of(scored("a", 0.8, 0.82, 0.81))
    with installed(tmp_path, "own-figures", OWN, figures={"toy": "figures"}):
        assert [figure.name for figure in figures.of_board(board)] == ["own"]


def test_a_broken_package_of_figures_does_not_stop_the_report(tmp_path, caplog):
    board = board_of(scored("a", 0.8, 0.82, 0.81))
    with installed(tmp_path, "own-figures", "import nothing_of_this_name", figures={"toy": "X"}):
        assert [figure.name for figure in figures.of_board(board)] == ["headlines"]
    assert "figure 'toy' of own-figures 1.0" in caplog.text


def test_figures_for_papers_have_a_column_s_width_and_the_same_bytes(folder, tmp_path):
    found = read(folder)
    (board,) = found.boards
    files = [*paper.write(board, tmp_path / "a", (), found.speeds)]
    again = [*paper.write(board, tmp_path / "b", (), found.speeds)]
    assert [file.read_bytes() for file in files] == [file.read_bytes() for file in again]
    assert {file.name for file in files} == {
        f"{name}.{form}"
        for name in ("headlines-verification-ap", "trade-off-size", "trade-off-speed")
        for form in ("svg", "png")
    }
    for file in (one for one in files if one.suffix == ".svg"):
        assert float(ET.parse(file).getroot().get("width").removesuffix("pt")) == pytest.approx(
            72 * paper.COLUMN, abs=1
        )
    text = files[0].read_text()
    assert "&lt;/script&gt;" in text and "<img" not in text


def test_chosen_models_alone_are_drawn(folder, tmp_path):
    (board,) = read(folder).boards
    svg = next(paper.write(board, tmp_path, ["gamma"])).read_text()
    assert ">gamma<" in svg and ">beta<" not in svg


@pytest.mark.parametrize("family", ["hpatches", "hpatches-sequences", "oxford", "phototour", "eth"])
def test_figures_of_the_results_hold_numbers_of_the_records(measured_here, family):
    boards = [board for board in measured_here.boards if board.family == family]
    for board in boards:
        numbers = {
            value for row in board.rows for record in row for value in record.scores.values()
        }
        numbers |= {
            value
            for row in board.rows
            for record in row
            for scene in record.scenes.values()
            for value in scene.values()
        }
        found = figures.of_board(board)
        assert found
        for panel in (panel for figure in found for panel in figure.panels):
            if panel.kind == "bars":
                assert {bar.value for bar in panel.bars} <= numbers
            if panel.kind == "lines" and not panel.x.percent:
                assert {y for line in panel.lines for _, y in line.points} <= numbers


def test_the_command_writes_page_or_figures(folder, tmp_path, run):
    page = tmp_path / "new" / "page.html"
    status, out, _ = run("report", "--results", folder, "--out", page)
    assert status == 0 and out == f"{page}\n" and page.read_text().startswith("<!doctype html>")
    made = tmp_path / "figures"
    options = ("--figures", made, "--model", "alpha,beta")
    status, out, _ = run("report", "--results", folder, *options)
    assert status == 0 and len(out.splitlines()) == len([*made.rglob("*.*g")]) == 10


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--figures", "F", "--out", "P"), "--figures writes no page"),
        (("--model", "alpha"), "give one of them"),
        (("--data", "D"), "are of --protocol, which is missing"),
        (("--figures", "F", "--model", "alpa"), "did you mean 'alpha'"),
    ],
)
def test_options_that_do_not_fit_are_refused(folder, run, options, complaint):
    status, _, err = run("report", "--results", folder, *options)
    assert status == 2 and complaint in err


def test_the_training_curves_are_figures_too(tmp_path):
    curves = {
        "b": [Moment(1, 0.5, 0.2), Moment(2, 0.4, 0.1)],
        "$a$": [Moment(1, 0.9, 0.3), Moment(2, 0.8, 0.05)],
        "self-made": [Moment(1, 0.7, None)],
        "handcrafted": [],
    }
    files = [*paper.write_trainings(curves, tmp_path)]
    assert {file.relative_to(tmp_path).as_posix() for file in files} == {
        f"training/training-{name}.{form}"
        for name in ("loss", "FPR95-of-held-out-points")
        for form in ("svg", "png")
    }
    loss, rate = (file.read_text() for file in files if file.suffix == ".svg")
    assert loss.index(">$a$<") < loss.index(">b<") < loss.index(">self-made<")
    assert ">b<" in rate and ">self-made<" not in rate and ">handcrafted<" not in loss
    svg = next(paper.write_trainings(curves, tmp_path / "b", ["b"])).read_text()
    assert ">b<" in svg and ">$a$<" not in svg
    assert not [*paper.write_trainings({"handcrafted": []}, tmp_path / "none")]


def test_training_curves_of_the_results_are_those_of_the_models(measured_here):
    curves = {one.name: one.curve for one in models(measured_here.records) if one.curve}
    assert len(curves) > 5
    loss, rate = figures.of_trainings([*curves.values()]).panels
    for panel, which in ((loss, "loss"), (rate, "fpr95")):
        for line in panel.lines:
            curve = [*curves.values()][line.row]
            assert [(one.step, getattr(one, which)) for one in curve
                    if getattr(one, which) is not None] == [*line.points]  # fmt: skip


def test_mistakes_are_those_of_all_models_with_a_record_that_are_installed(caplog):
    told = {
        "models": [{"name": name} for name in ("other.py:of", "pixels", "sift", "random")],
        "boards": [
            {"family": "hpatches", "rows": [{"model": 0}, {"model": 1}, {"model": 3}]},
            {"family": "oxford", "rows": [{"model": 2}]},
        ],
    }
    made = failures.pictures(told, [], "hpatches", None)
    assert [one["model"] for one in made] == [1, 1, 3, 3]
    assert "no mistakes of other.py:of are shown: no model of this name" in caplog.text


@pytest.mark.data
def test_pages_of_models_show_where_they_fail(measured_here, shared):
    told = contents(measured_here)
    made = failures.pictures(told, ["brief", "rootsift"], "hpatches", shared / "hpatches/mini")
    names = [told["models"][one["model"]]["name"] for one in made]
    assert names == ["brief", "brief", "rootsift", "rootsift"]
    assert "wrong for" in made[0]["title"] and "False matches" in made[0]["title"]
    for one in made:
        file = base64.b64decode(one["source"].removeprefix("data:image/webp;base64,"))
        picture = cv2.imdecode(np.frombuffer(file, np.uint8), 1)
        assert picture.shape[1] == failures.WIDTH and picture.std() > 20
    told["pictures"] = made
    assert len(document.to_html(told).encode()) < MOST
