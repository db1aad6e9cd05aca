"""What documents show: the picture is drawn from the records, links lead to files."""

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from checkout import ROOT
from pages import pages

from harness.records import record as results
from harness.report import document, failures
from harness.report.contents import contents, read
from studies import picture

PAGES = [*pages(), ROOT / "CHANGELOG.md"]
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)")


@pytest.fixture(scope="module")
def records():
    return results.load(ROOT / "results")


def test_the_picture_is_that_of_the_records(records):
    told = "run python -m studies.picture --results results --out docs/oxford.svg"
    assert (ROOT / "docs" / "oxford.svg").read_text("utf-8") == picture.draw(records), told


REPORT = ROOT / "results" / "report.html"
COMMAND = "harness report --results results --protocol hpatches --out results/report.html"


@pytest.fixture(scope="module")
def pictures():
    """The pictures of mistakes in the committed report; no record holds them."""
    text = re.search(r'id="contents">(.*?)</script>', REPORT.read_text("utf-8"), re.S)[1]
    return json.loads(text)["pictures"]


def test_the_report_is_that_of_the_results(pictures):
    told = contents(read(ROOT / "results"))
    places = [model["name"] for model in told["models"]]
    told["pictures"] = [
        one | {"model": places.index(one["title"].partition(" on ")[0])} for one in pictures
    ]
    assert REPORT.read_text("utf-8") == document.to_html(told), f"run {COMMAND}"
    assert len(REPORT.read_bytes()) < 2_000_000
    shown = {one["title"].partition(" on ")[0] for one in pictures}
    assert shown == set(failures.measured(told, "hpatches"))
    assert COMMAND in (ROOT / "CONTRIBUTING.md").read_text("utf-8")


@pytest.mark.data
def test_the_report_shows_the_mistakes_that_a_model_makes(pictures):
    told = contents(read(ROOT / "results"))
    made = failures.pictures(told, ["brief"], "hpatches", None)
    assert [one for one in pictures if one["title"].startswith("brief on")] == made


def test_a_bar_is_as_long_as_its_score_and_the_best_stands_first(records):
    drawn = ET.fromstring(picture.draw(records))
    bars = [one for one in drawn.iter() if one.get("height") == str(picture.BAR) and one.get("y")]
    bars = [one for one in bars if one.get("x") == str(picture.LEFT) and one.get("y") != "34"]
    lengths = [float(one.get("width", "")) / picture.WIDTH for one in bars]
    scores = picture.board(records, *picture.BOARD)
    shown = [scores[name].scores["map"] for name in picture.models(scores)]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths == pytest.approx(shown, abs=1e-3)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_files_and_headings(page):
    for place, heading in LINK.findall(page.read_text("utf-8")):
        target = page.parent / place if place else page
        assert target.exists(), f"{page.name} links to {place}"
        if heading:
            titles = re.findall(r"^#+ (.*)$", target.read_text("utf-8"), re.M)
            anchors = {re.sub(r"[^\w -]", "", one).lower().replace(" ", "-") for one in titles}
            assert heading in anchors, f"{page.name} links to {place}#{heading}"


def test_pages_name_no_module_that_is_not_there():
    for page in PAGES:
        text = page.read_text("utf-8")
        for package, module in re.findall(r"python -m (studies|benchmarks)\.([a-z_]+)", text):
            places = Path(ROOT, package, f"{module}.py"), Path(ROOT, package, module, "__main__.py")
            assert any(place.is_file() for place in places), f"{page.name}: {module}"
