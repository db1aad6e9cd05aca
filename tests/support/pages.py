"""Code blocks of the documentation: read, run, and compared with the output that the pages show.

    python tests/support/pages.py PAGE...

runs the blocks of each page in an empty folder, and writes what the commands print into the page,
in place of the output that stood there. Where the page shows a line "...", edit it in again.

A block in `console` holds commands behind "$ ", and what they print; "..." stands for any text.
Blocks in `python` run in the same folder; a block with the title "Prints" behind one holds what it
prints. A block whose title begins with "Needs" is not run.
"""

import contextlib
import doctest
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import typer
from checkout import ROOT
from markdown_it import MarkdownIt

from harness.commands.main import app

LANGUAGES = {"console", "sh", "python", "toml", "diff", "text", "cpp", "javascript", "json"}
PRINTS = "Prints"
COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", re.M)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

Run = Callable[[list[str]], str]  # of the words of a command; returns what it prints


@dataclass(frozen=True)
class Code:
    """A block of code of a page."""

    language: str
    title: str
    text: str
    line: int  # of its first line of text, from 0

    @property
    def needs(self) -> str:
        """What the block needs to run; "" if it runs anywhere."""
        return self.title if self.title.startswith("Needs") else ""

    def commands(self) -> list[tuple[str, str]]:
        """The commands of a block in `console`, each with the output that the page shows.

        A block in `sh` has a command on each line, to copy, and no output.
        """
        if self.language == "sh":
            return [(line, "") for line in self.text.splitlines()]
        return [(found[1], found[2]) for found in COMMAND.finditer(self.text)]


def pages() -> list[Path]:
    """The pages that are written by hand and shown to users."""
    forms = ("docs/**/*.md", "examples/**/*.md", "results/README.md", "results/*/README.md")
    found = [page for form in (*forms, "results/studies/*.md") for page in sorted(ROOT.glob(form))]
    return [*(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY")), *found]


def blocks(page: Path) -> list[Code]:
    """The blocks of code of a page, in order; `language` is "" for an indented block."""
    return [*_blocks(page.read_text("utf-8"))]


def _blocks(text: str) -> Iterator[Code]:
    for token in MarkdownIt().parse(text):
        if token.type in ("fence", "code_block") and token.map:
            language, _, rest = token.info.partition(" ")
            title = re.fullmatch(r'title="(.*)"', rest.strip())
            first = token.map[0] + (token.type == "fence")
            yield Code(language, title[1] if title else "", token.content, first)


def words_of(command: str) -> list[str]:
    """The words of a command, as a shell splits them."""
    return shlex.split(command.replace("\\\n", " "), comments=True)


def must_be_command(line: str) -> None:
    """Parse a command line of the harness without running it.

    Raises:
        typer.BadParameter, and other errors of usage: if a command or an option does not exist.
    """
    words = words_of(line)[1:]
    command = typer.main.get_command(app)
    context = command.make_context("harness", [*words])
    while hasattr(command, "resolve_command"):
        name, command, words = command.resolve_command(context, words)
        context = command.make_context(name, [*words], parent=context)


def commands_in_text(page: Path) -> list[str]:
    """Commands of the harness that stand in sentences and tables, between single backquotes."""
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text("utf-8"), flags=re.M | re.S)
    return [" ".join(found.split()) for found in re.findall(r"`(harness [a-z][^`]*)`", text)]


def must_be_options(line: str) -> None:
    """Check that a command has these options; values and arguments may be missing.

    Raises:
        AssertionError: if a command or an option does not exist.
    """
    words = words_of(line)[1:]
    command = typer.main.get_command(app)
    context = command.make_context("harness", [], resilient_parsing=True)
    while hasattr(command, "get_command") and words and words[0].islower():
        found = command.get_command(context, words[0])
        assert found is not None, f"no such command: {line}"
        command, words = found, words[1:]
    known = {option for one in command.params for option in (*one.opts, *one.secondary_opts)}
    for word in words:
        assert not word.startswith("--") or word.partition("=")[0] in known, f"{word}: {line}"


def run_page(page: Path, harness: Run) -> Iterator[tuple[str, str, str]]:
    """Run the blocks of a page in the working folder.

    Yields:
        each command, what the page shows, and what it printed; a block in `python` is a command.
    """
    names: dict[str, object] = {"__name__": "__main__"}
    known = blocks(page)
    for block, behind in zip(known, [*known[1:], None], strict=True):
        if block.needs:
            continue
        if block.language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(compile(block.text, f"{page.name}:{block.line}", "exec"), names)
            if behind and behind.title == PRINTS:
                yield block.text, behind.text, printed.getvalue()
        elif block.language == "console":
            for command, shown in block.commands():
                words = words_of(command)
                yield command, shown, harness(words[1:]) if words[0] == "harness" else _run(words)


def as_shown(shown: str, printed: str) -> bool:
    """Whether a command printed what the page shows; a page may leave out all of it."""
    return not shown.strip() or doctest.OutputChecker().check_output(shown, printed, FLAGS)


def _run(words: list[str]) -> str:
    """What another program than the harness prints."""
    program = [sys.executable] if words[0] == "python" else [words[0]]
    done = subprocess.run([*program, *words[1:]], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{shlex.join(words)}: {done.stderr}"
    return done.stdout


def _trimmed(printed: str) -> str:
    """The text without blanks at the ends of lines and empty lines at its end."""
    return "\n".join(map(str.rstrip, printed.splitlines())).rstrip()


def _update(page: Path) -> None:
    text = page.read_text("utf-8")
    done = [*run_page(page, lambda words: _run(["python", "-P", "-m", "harness", *words]))]
    for command, shown, printed in done:
        if shown.strip() and as_shown(shown, printed):
            continue
        of_python = command.endswith("\n")
        begin = f'{command}```\n\n```text title="{PRINTS}"\n' if of_python else f"$ {command}\n"
        assert text.count(begin + shown) == 1, f"{page.name}: {command} stands there twice"
        text = text.replace(begin + shown, f"{begin}{_trimmed(printed)}\n")
    page.write_text(text, "utf-8")


if __name__ == "__main__":
    for given in map(Path.absolute, map(Path, sys.argv[1:])):
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            _update(given)
            os.chdir("/")
