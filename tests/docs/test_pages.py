"""The commands of all pages run, and print what the pages show."""

import shlex
import shutil

import pytest
from checkout import ROOT
from pages import (
    LANGUAGES,
    as_shown,
    blocks,
    commands_in_text,
    must_be_command,
    must_be_options,
    pages,
    run_page,
)

PAGES = {page.relative_to(ROOT).as_posix(): page for page in pages()}
TESTED_ELSEWHERE = {
    "CONTRIBUTING.md",
    "docs/onnx.md",
}  # by test_contributing and test_onnx_programs
RUN = [
    name
    for name, page in PAGES.items()
    if name not in TESTED_ELSEWHERE
    and any(one.language in ("console", "python") and not one.needs for one in blocks(page))
]


@pytest.mark.parametrize("name", PAGES)
def test_code_is_in_fences_of_a_known_language(name):
    for block in blocks(PAGES[name]):
        assert block.language in LANGUAGES, f"{name}:{block.line}: {block.text}"


@pytest.mark.parametrize("name", PAGES)
def test_commands_of_the_harness_exist_with_their_options(name):
    for block in blocks(PAGES[name]):
        if block.language in ("console", "sh"):
            parts = [part.strip() for line, _ in block.commands() for part in line.split("&&")]
            for part in parts:
                if part.startswith("harness "):
                    must_be_command(part)


@pytest.mark.parametrize("name", PAGES)
def test_commands_in_sentences_exist_with_their_options(name):
    for line in commands_in_text(PAGES[name]):
        must_be_options(line)


@pytest.mark.parametrize("name", PAGES)
def test_commands_to_copy_say_what_they_need(name):
    assert all(block.needs for block in blocks(PAGES[name]) if block.language == "sh")


def test_a_command_or_an_option_that_does_not_exist_is_found():
    for line in ("harness evaluate --model x", "harness eval --modle x --protocol y"):
        with pytest.raises(Exception, match=r"[Nn]o such"):
            must_be_command(line)
    for line in ("harness evaluate", "harness eval --modle x", "harness data fetchh"):
        with pytest.raises(AssertionError):
            must_be_options(line)


@pytest.mark.parametrize("name", RUN)
def test_commands_print_what_the_page_shows(name, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "examples", "examples")

    def harness(words):
        status, out, err = run(*words)
        assert status == 0, f"{shlex.join(words)}: {err}"
        return out

    for command, shown, printed in run_page(PAGES[name], harness):
        assert as_shown(shown, printed), f"{name}: {command} printed\n{printed}"
