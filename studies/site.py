"""Build the documentation site from the pages of the repository, the cards and the records.

    python -m studies.site --out build/site

Pages keep their folders, so that a link works in the repository and on the site. The site also has
a page for each model, for the Python API, and for each source file and folder that a page links to.
MkDocs ends the build at a warning. Nothing is measured.
"""

import argparse
import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from urllib.parse import quote

import harness
from harness import catalogue, model_card, registry
from harness.catalogue import ModelRow
from harness.escape import markdown
from harness.files import folders
from harness.records import leaderboard, markdown_table
from harness.records import record as results
from harness.records.record import Record

ROOT = Path(__file__).parents[1]
STAGED = ROOT / "build" / "pages"  # `docs_dir` of mkdocs.yml
BY_HAND = ("*.md", "docs/**/*.md", "results/**/*.md", "examples/**/*.md", "benchmarks/**/*.md")
AS_THEY_ARE = {".svg", ".png", ".html"}
LANGUAGES = {".py": "python", ".toml": "toml", ".cpp": "cpp", ".js": "javascript"}
NOT_SHOWN = {"name", "weights_at", "scores"}  # on the page of a model
LINK = re.compile(r"(\]\()((?!https?:|mailto:|#)[^)#\s]+)")


def stage(folder: Path) -> None:
    """Write the pages of the site as Markdown into a folder, which is emptied first."""
    shutil.rmtree(folder, ignore_errors=True)
    pages = {page: page.read_text("utf-8") for form in BY_HAND for page in ROOT.glob(form)}
    linked = {target for page, text in pages.items() for target in _targets(page, text)}
    for page, text in pages.items():
        _write(folder, page, LINK.sub(partial(_to_page, page), text))
    for target in linked - set(pages):
        if target.suffix in AS_THEY_ARE:
            copy = folder / target.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(target, copy)
        else:
            _write(folder, _page_of(target), _listing(target) if target.is_dir() else _file(target))
    models = {one.name: one.row for one in catalogue.models()}
    for name, text in model_pages(models, results.load(ROOT / "results")):
        _write(folder, ROOT / "docs" / "models" / f"{name}.md", text)
    _write(folder, ROOT / "docs" / "models" / "index.md", _list_of(models))
    for page in pages:
        if page.parent == ROOT / "docs" / "protocols":
            with (folder / page.relative_to(ROOT)).open("a", encoding="utf-8") as staged:
                staged.write(_options_of(page.stem))
    _write(folder, ROOT / "docs" / "reference.md", reference())


def model_pages(
    models: Mapping[str, ModelRow | None], records: Sequence[Record]
) -> Iterator[tuple[str, str]]:
    """Name and page of each model: its card, and its score in each record."""
    for name, row in models.items():
        known = [one for one in records if one.model.name == name and one.data.complete]
        yield name, "\n".join([*_model_page(name, row, known), ""])


def _list_of(models: Mapping[str, ModelRow | None]) -> str:
    """A page that links to the pages of all models, and says which may be used in products."""
    heads = ["model", "in products", "licence", "trained on"]
    rows = [[f"[{markdown(name)}]({name}.md)", *_terms(row)] for name, row in models.items()]
    meanings = [f"- {word}: {meaning}." for word, meaning in catalogue.PRODUCTS.items()]
    table = markdown_table.lines(heads, rows, "l")
    return "\n".join(["# All models", "", "In products:", "", *meanings, "", *table, ""])


def _terms(row: ModelRow | None) -> list[str]:
    """Use in products, licence and training data of a model, as Markdown."""
    if row is None:  # it can't be asked
        return ["unknown"] * 3
    data = "unknown" if row.trained_on is None else ", ".join(sorted(row.trained_on)) or "nothing"
    return [catalogue.in_products(row), markdown(row.licence), markdown(data)]


def _options_of(family: str) -> str:
    """Scores and options of the protocols of a family: `mkdocstrings` shows their docstrings."""
    names = [one for one in registry.names("protocols") if one.partition("/")[0] == family]
    makers = (registry.load("protocols", one) for one in names)
    shown = (f"::: {maker.__module__}.{maker.__qualname__}" for maker in makers)
    return "\n\n".join(["\n## Reference", *shown, ""])


def reference() -> str:
    """The page of the public API, of whose objects `mkdocstrings` shows the docstrings."""
    return "\n\n".join(["# Python API", *(f"::: harness.{name}" for name in harness.__all__), ""])


def _model_page(name: str, row: ModelRow | None, records: Sequence[Record]) -> Iterator[str]:
    (facts,) = model_card.cards(name)
    shown = {fact: value for fact, value in facts.items() if fact not in NOT_SHOWN}
    if row:
        word = catalogue.in_products(row)
        shown |= {"in_products": f"{word}: {catalogue.PRODUCTS[word]}"}
    yield from (f"# {markdown(name)}", "")
    yield from markdown_table.lines(["fact", "value"], _told(shown), "ll")
    yield from ("", "## Scores", "")
    if not records:
        yield "Not measured yet."
        return
    yield "The headline of each committed record; in brackets the 95 % interval."
    yield ""
    rows = [
        [
            markdown(one.protocol.title),
            f"[{markdown(f'{one.data.name}, {one.data.split}')}]({_board(one)})",
            markdown(one.protocol.headline),
            leaderboard.cell((one,), one.protocol.headline),
        ]
        for one in sorted(records, key=lambda one: (one.protocol.title, one.data.name))
    ]
    yield from markdown_table.lines(["protocol", "data", "headline", "score"], rows, "lllr")


def _told(facts: Mapping[str, object]) -> Iterator[list[str]]:
    """Name and text of each fact of a card that is known, as Markdown."""
    for fact, value in facts.items():
        if fact == "trained_on" and not value:
            value = "nothing" if value == [] else "unknown"
        if value not in (None, [], {}):
            text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            yield [fact.replace("_", " "), markdown(text)]


def _board(record: Record) -> str:
    """The table that shows a record, as a link from the page of a model."""
    family = record.protocol.name.partition("/")[0]
    parts = (family, record.data.name, record.data.split)
    return f"../../results/tables/{'/'.join(map(quote, parts))}/leaderboard.md"


def _targets(page: Path, text: str) -> Iterator[Path]:
    """The files and folders that a page links to."""
    for link in LINK.finditer(text):
        yield Path(os.path.normpath(page.parent / link[2]))


def _to_page(page: Path, link: re.Match[str]) -> str:
    """The link, leading to a page where its target is shown as a page."""
    target = Path(os.path.normpath(page.parent / link[2]))
    if target.suffix in AS_THEY_ARE:
        return link[0]
    return link[1] + Path(os.path.relpath(_page_of(target), page.parent)).as_posix()


def _page_of(target: Path) -> Path:
    """The page that shows a file or a folder."""
    if target.is_dir():
        own = target / "README.md"
        return own if own.is_file() else target / "index.md"
    return target if target.suffix == ".md" else target.with_name(f"{target.name}.md")


def _listing(folder: Path) -> str:
    """A page that links to the pages in a folder, and lists its other files.

    Of a folder in it, all pages below are linked; of a module, the first line of its docstring
    stands there.
    """
    lines = [f"# {markdown(folder.relative_to(ROOT).as_posix())}/", ""]
    for file in folders.entries(folder):
        if file.name.startswith("_"):
            continue
        below = folders.files(file) if file.is_dir() else [file]
        pages = [page for page in below if page.suffix == ".md"]
        about = f": {markdown(_about(file))}" if file.suffix == ".py" else ""
        if not pages:
            lines.append(f"- `{file.name}{'/' * file.is_dir()}`{about}")
        lines += [
            f"- [{_title(page)}]({quote(page.relative_to(folder).as_posix())})" for page in pages
        ]
    return "\n".join([*lines, ""])


def _title(page: Path) -> str:
    """The heading of a page, as Markdown."""
    return page.read_text("utf-8").partition("\n")[0].removeprefix("# ")


def _about(module: Path) -> str:
    """The first line of a module's docstring."""
    return (ast.get_docstring(ast.parse(module.read_text("utf-8"))) or "").partition("\n")[0]


def _file(file: Path) -> str:
    """A page that shows a text file."""
    name = file.relative_to(ROOT).as_posix()
    language = LANGUAGES.get(file.suffix, "text")
    return f"# {markdown(name)}\n\n````{language}\n{file.read_text('utf-8')}\n````\n"


def _write(folder: Path, page: Path, text: str) -> None:
    file = folder / page.relative_to(ROOT)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the pages, and let MkDocs build the site."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "site")
    out = parser.parse_args(arguments).out
    stage(STAGED)
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir"]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    subprocess.run([*build, out.absolute()], cwd=ROOT, env=quiet, check=True)
    print(f"open {out / 'index.html'}")


if __name__ == "__main__":
    main()
