"""The report in a real browser: sorting, filters, links, keyboard, themes and a phone's width.

These tests need Chromium, which `.ci/run` installs; they are skipped where there is none.
"""

import csv
import io
import shutil
import xml.etree.ElementTree as ET

import cv2
import pytest
from hostile_names import HOSTILE
from reports import EVIL, write_results
from toy import measured

from harness.escape import csv_cell, latex, markdown
from harness.records import leaderboard
from harness.report import document
from harness.report.contents import Folder, contents, read

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
if CHROMIUM is None:
    pytest.skip("Chromium is not installed", allow_module_level=True)
sync_api = pytest.importorskip("playwright.sync_api")

BOARD = "#board/toy/toy-data/all"
PHONE = {"width": 390, "height": 800}


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    root = tmp_path_factory.mktemp("report")
    page = document.to_html(contents(read(write_results(root / "results"))))
    (root / "report.html").write_text(page, "utf-8")
    return (root / "report.html").as_uri()


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def show(browser, address):
    """A function that opens a place of the report; fails if the page logs or asks for anything."""
    faults, pages = [], []

    def opened(place="", **options):
        page = browser.new_page(**options)
        pages.append(page)
        page.on("console", lambda message: faults.append(message.text))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("dialog", lambda dialog: faults.append(dialog.message))
        page.on("request", lambda one: one.url.startswith("file:") or faults.append(one.url))
        page.goto(address + place)
        return page

    yield opened
    for page in pages:
        page.close()
    assert faults == []


def titled(page, text):
    """Wait until the page shows this title: a browser follows a link a moment after the press."""
    sync_api.expect(page.locator("h1:visible").first).to_have_text(text)


def names(page):
    return page.locator("main table tbody tr > th a").all_inner_texts()


def test_every_page_can_be_reached_by_links(show):
    page = show()
    page.click("nav a:has-text('toy-data')")
    titled(page, "toy on toy-data, split all")
    page.click("main tbody a:has-text('gamma')")
    titled(page, "gamma")
    page.click("main tbody a:has-text('toy on toy-data')")
    titled(page, "toy on toy-data, split all")
    assert names(page)[:3] == ["alpha", "beta", "gamma"]
    for text, title in (
        ("Models", "Models"),
        ("Published numbers", "Published numbers"),
        ("How to read this", "How to read this"),
        ("Leaderboards", "Leaderboards"),
    ):
        page.click(f"nav a:has-text('{text}')")
        titled(page, title)
    page.go_back()
    titled(page, "How to read this")


def test_a_press_on_a_head_sorts(show):
    page = show(BOARD)
    head = page.locator("thead th", has_text="verification/ap")
    assert head.get_attribute("aria-sort") == "none"
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    best = names(page)
    assert set(best[:3]) == {"alpha", "beta"} and best[-1] == "delta"
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending" and names(page)[0] == "delta"


def test_filters_keep_rows_of_table_and_figures(show):
    page = show(BOARD)
    assert len(names(page)) == 6
    page.select_option("label:has-text('Options') select", "=ties=official")
    assert names(page) == ["alpha"]
    page.select_option("label:has-text('Options') select", "")
    page.select_option("label:has-text('In products') select", "no")
    assert sorted(names(page)) == sorted([EVIL, "delta"])
    page.select_option("label:has-text('In products') select", "")
    page.select_option("label:has-text('Trained on') select", "unknown")
    assert names(page) == ["delta"]
    assert page.locator("#figure-headlines rect.bar").count() == 1
    page.select_option("label:has-text('Trained on') select", "")
    page.fill("input[type=search]", "GAM")
    assert names(page) == ["gamma"] and "1 of 6 rows" in page.inner_text("main .count")
    page.fill("input[type=search]", "nothing has this name")
    assert names(page) == []


def test_rows_that_can_not_be_told_apart_are_marked(show):
    page = show(BOARD)
    page.click("tr:has-text('beta') button.rank")
    assert page.locator("tr.alike").count() == 1
    assert page.locator("tr.alike a").inner_text() == "alpha"
    assert "1 of 5 other rows can't be told from beta" in page.inner_text(".told")


def test_all_works_by_keyboard(show):
    page = show(BOARD)
    page.keyboard.press("/")
    page.keyboard.type("alp")
    assert names(page) == ["alpha", "alpha"]
    page.locator("thead button", has_text="model").focus()
    page.keyboard.press("Enter")
    assert page.locator("thead th").first.get_attribute("aria-sort") == "ascending"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.innerText").startswith("rank")
    page.locator("tbody a").first.focus()
    page.keyboard.press("Enter")
    titled(page, "alpha")


def saved(page, button, folder):
    """The file that a button saves."""
    with page.expect_download() as download:
        button.click()
    file = folder / download.value.suggested_filename
    download.value.save_as(file)
    return file


def test_a_drawing_is_saved_as_svg_and_png_of_a_column_s_width(show, tmp_path):
    page = show(BOARD, color_scheme="dark")
    panel = page.locator("#figure-headlines .panel").first
    drawn = ET.parse(saved(page, panel.get_by_text("SVG", exact=True), tmp_path)).getroot()
    assert drawn.get("width") == "3.3in"
    texts = [text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert {"alpha", "verification/ap", "handcrafted"} <= {*texts}
    assert not any("class" in one.attrib for one in drawn.iter())
    image = cv2.imread(str(saved(page, panel.get_by_text("PNG", exact=True), tmp_path)))
    assert image.shape[1] == 990 and image[-1, -1].tolist() == [255, 255, 255]


def test_a_table_is_saved_as_it_is_shown(show, tmp_path):
    page = show(BOARD)
    page.fill("input[type=search]", "alp")
    page.select_option("label:has-text('Options') select", "=")
    files = {
        form: saved(page, page.get_by_label(f"split all as {form}"), tmp_path).read_text("utf-8")
        for form in ("CSV", "Markdown", "LaTeX")
    }
    head, row = csv.reader(files["CSV"].splitlines())
    assert row[0] == "alpha" and float(row[head.index("verification/ap")]) == 0.81
    assert "| alpha | 1\u20132 | **81.00** |" in files["Markdown"]
    assert r"alpha & 1--2 & \textbf{81.00} &" in files["LaTeX"]


def test_saved_names_are_escaped_as_those_of_tables_in_files(browser, tmp_path):
    names = [*HOSTILE, "a--b", "---", "~x^2", "'x'", '"x"', "é ß 猫 ﬁ", "\\", "{}", "%", "&", ",,x"]
    records = [one for name in names for one in measured(name)]
    board = leaderboard.board(("toy", "toy-data", "all"), records)
    (tmp_path / "page.html").write_text(
        document.to_html(contents(Folder([board], [], {}))), "utf-8"
    )
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri() + BOARD)
    texts = {
        form: saved(page, page.get_by_label(f"split all as {form}"), tmp_path).read_text("utf-8")
        for form in ("CSV", "Markdown", "LaTeX")
    }
    page.close()
    cells = {row[0] for row in csv.reader(io.StringIO(texts["CSV"]))}
    for name in names:
        assert csv_cell(name) in cells
        assert f"| {markdown(name)} |" in texts["Markdown"]
        assert f"\n{latex(name)} &" in texts["LaTeX"]


def test_hostile_names_are_text(show):
    page = show(BOARD)
    link = page.locator("main tbody a", has_text="onerror")
    assert link.inner_text() == EVIL
    link.click()
    titled(page, EVIL)
    assert page.locator("img").count() == 0


def test_a_page_that_is_not_there_is_told(show):
    titled(show("#model/no-such"), "Not in this report")


@pytest.mark.parametrize("place", ["", BOARD, "#model/alpha", "#models", "#published", "#reading"])
def test_nothing_is_wider_than_a_phone(show, place):
    page = show(place, viewport=PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert page.locator("nav #menu").get_attribute("open") is None


def test_the_theme_follows_the_system_until_one_is_chosen(show):
    def paper(page):
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    light, dark = show(), show(color_scheme="dark")
    assert paper(light) != paper(dark)
    before = paper(dark)
    dark.click("#theme")  # light
    assert paper(dark) == paper(light)
    dark.click("#theme")  # dark
    assert paper(dark) == before
