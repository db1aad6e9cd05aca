"""The documentation site: every page is staged, and questions are answered within two clicks."""

import re
from urllib.parse import unquote

import pytest
import yaml
from checkout import ROOT

from harness import registry
from studies import site

LINK = re.compile(r"\]\(([^)#]+)")


@pytest.fixture(scope="module")
def staged(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    site.stage(folder)
    return folder


def nav(entries):
    for entry in entries:
        if isinstance(entry, str):
            yield entry
        else:
            for value in entry.values():
                yield from nav([value] if isinstance(value, str) else value)


def test_every_page_by_hand_is_in_the_navigation(staged):
    listed = {*nav(yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))["nav"])}
    assert all((staged / page).is_file() for page in listed)
    written = {page.relative_to(ROOT).as_posix() for page in (ROOT / "docs").rglob("*.md")}
    assert written <= listed


def test_every_link_of_a_staged_page_leads_to_a_staged_file(staged):
    for page in staged.rglob("*.md"):
        text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text("utf-8"), flags=re.S)
        for link in LINK.findall(text):
            if not link.startswith(("http:", "https:")):
                assert (page.parent / unquote(link)).exists(), f"{page}: {link}"


def test_every_model_has_a_page_with_its_card_and_scores(staged):
    for name in registry.names("descriptors"):
        assert (staged / "docs" / "models" / f"{name}.md").is_file()
    page = (staged / "docs" / "models" / "rootsift.md").read_text("utf-8")
    assert "| licence | Apache-2.0 |" in page
    assert re.search(r"\| oxford \| \[oxford, 3000\]\(.*\) \| map \| 55\.12 \[", page)


def test_the_list_of_models_says_which_may_be_used_in_products(staged):
    listed = (staged / "docs" / "models" / "index.md").read_text("utf-8")
    assert "| [rootsift](rootsift.md) | yes | Apache-2.0 | nothing |" in listed
    assert re.search(r"\| \[hardtfeat\]\(hardtfeat\.md\) \| no \| MIT \| phototour", listed)
    page = (staged / "docs" / "models" / "hardtfeat.md").read_text("utf-8")
    assert "| in products | no: " in page


def test_the_page_of_a_folder_links_to_its_pages(staged):
    tutorial = (staged / "docs" / "tutorial" / "index.md").read_text("utf-8")
    assert "- [Evaluate descriptors](evaluate.md)" in tutorial
    tables = (staged / "results" / "tables" / "index.md").read_text("utf-8")
    assert "](hpatches/hpatches-mini/mini/leaderboard.md)" in tables


def test_the_report_of_the_results_is_on_the_site(staged):
    assert (staged / "results" / "report.html").is_file()


def test_every_protocol_has_a_page_with_its_options(staged):
    for name in registry.names("protocols"):
        page = staged / "docs" / "protocols" / f"{name.partition('/')[0]}.md"
        maker = registry.load("protocols", name)
        assert f"::: {maker.__module__}.{maker.__qualname__}\n" in page.read_text("utf-8")


def test_ten_questions_are_answered_one_click_behind_their_page():
    questions = (ROOT / "docs" / "questions.md").read_text("utf-8")
    asked = re.findall(r"\*\*(.+?\?)\*\*(.+?)(?=\n\n|\Z)", questions, re.S)
    assert len(asked) >= 10
    assert all(LINK.search(answer) for _, answer in asked)
    assert "docs/questions.md" in (ROOT / "README.md").read_text("utf-8")
