"""The arrows of the house: zoo -> harness <- protocols, and what may be imported to list things."""

import ast
import re
import subprocess
import sys
from importlib.util import resolve_name
from pathlib import Path

import pytest
from checkout import ROOT

import harness
import protocols
import zoo
from harness import registry
from zoo.training import recipe

MAY_IMPORT = {
    "harness": {"harness"},
    "zoo": {"harness", "zoo"},
    "protocols": {"harness", "protocols"},
}
HEAVY = {"numpy", "torch", "cv2", "pandas", "onnxruntime", "pycolmap", "skimage", "scipy"}


def imported(file):
    package = ".".join(file.relative_to(ROOT).parts[:-1])
    yield from imported_by(file.read_text(), package)


def imported_by(text, package):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            name = "." * node.level + (node.module or "")
            base = resolve_name(name, package).rstrip(".")
            yield node.lineno, base
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)


def test_relative_imports_are_followed():
    text = "from . import tfeat\nfrom .sub import a\nfrom ..other import b\nfrom .. import c"
    assert [name for _, name in imported_by(text, "zoo.nets")] == [
        "zoo.nets", "zoo.nets.tfeat", "zoo.nets.sub", "zoo.nets.sub.a", "zoo.other", "zoo.other.b",
        "zoo", "zoo.c",
    ]  # fmt: skip


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_imports_follow_the_arrows(package):
    for file in (ROOT / package).rglob("*.py"):
        for line, module in imported(file):
            top = module.partition(".")[0]
            assert top not in MAY_IMPORT or top in MAY_IMPORT[package], f"{file}:{line}: {module}"


SHARED = (
    "zoo.backbones", "zoo.card", "zoo.describing", "zoo.exact", "zoo.published.conventions",
    "zoo.published.describing", "zoo.published.files", "zoo.published.git_rows",
    "zoo.published.layers", "zoo.published.maker", "zoo.published.rows", "zoo.trained",
    "zoo.training", "zoo.wrappers.compose", "zoo.wrappers.module",
)  # fmt: skip
DEFINED_BY = {  # methods that are said to be others with something more
    "zoo.adasample": ("zoo.sosnet",),
    "zoo.distillation": ("zoo.adasample", "zoo.doap"),
    "zoo.handcrafted.dsp_sift": ("zoo.handcrafted.vlfeat_sift",),
    "zoo.triplet_swap": ("zoo.published.tfeat",),
    "zoo.wrappers.crops": ("zoo.wrappers.norms",),
}


# "from zoo.published import rows" imports a room, too.
ROOMS = {f"zoo.{folder.name}" for folder in (ROOT / "zoo").iterdir() if folder.is_dir()}


def test_a_file_of_the_zoo_needs_no_other_family():
    for file in (ROOT / "zoo").rglob("*.py"):
        if file.parent.name in ("training", "papers"):  # papers compare families
            continue
        module = ".".join(file.relative_to(ROOT).with_suffix("").parts)
        family = module.partition("_")[0]
        own = {name for _, name in imported(file) if name.startswith("zoo.")}
        known = (*SHARED, family, *DEFINED_BY.get(module, ()))
        others = {name for name in own - ROOMS if not name.startswith(known)}
        assert not others, f"{file} imports {others}"


def test_no_foreign_package_shadows_ours():
    homes = {Path(package.__file__).parents[1] for package in (harness, zoo, protocols)}
    assert len(homes) == 1, f"another package of the same name is installed: {homes}"


SLOW = HEAVY - {"numpy", "cv2", "scipy"}  # seconds to import, and may be missing


@pytest.mark.parametrize(
    ("command", "heavy"),
    [
        ("--help", HEAVY),
        ("eval --help", HEAVY),
        ("data list", HEAVY),
        ("data list hpatches", HEAVY),
        ("data path phototour", HEAVY),
        ("models", SLOW),
        ("protocols", SLOW),
        ("weights list", SLOW),
    ],
)
def test_nothing_heavy_is_imported_to_list_things(command, heavy):
    code = (
        "import sys; sys.argv = ['harness', *sys.argv[1:]]\n"
        "import contextlib, io\n"
        "from harness.commands.main import main\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit): main()\n"
        "print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *command.split()], capture_output=True, text=True, check=True
    )
    assert not heavy & set(done.stdout.split())


def test_nothing_imports_the_command_line():
    main = ROOT / "harness" / "commands" / "main.py"
    for file in (ROOT / "harness").rglob("*.py"):
        if file not in (main, main.parents[1] / "__main__.py"):
            assert "harness.commands.main" not in {module for _, module in imported(file)}, file


WORDS = {"brief", "constant", "pixels", "random", "resize"}  # names that are words of any message


def names_in(text, names):
    """Names that occur in the strings of a program, but for its docstrings."""
    tree = ast.parse(text)
    expressions = [node for node in ast.walk(tree) if isinstance(node, ast.Expr)]
    docstrings = {id(node.value) for node in expressions}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) not in docstrings:
                found = set(re.findall(r"[\w.+-]+", node.value.lower())) & names
                yield from ((node.lineno, name) for name in found)


def test_names_are_found_in_strings_and_not_in_docstrings():
    text = '"""As hpatches."""\ndef f():\n    "Of eth."\n    return f"no {f} HPatches/x"\n'
    assert [*names_in(text, {"hpatches", "eth"})] == [(4, "hpatches")]


def test_the_kernel_names_no_protocol_and_no_model():
    known = [*registry.names("protocols"), *registry.names("descriptors")]
    known += recipe.names()  # a model that is trained gets the name of its recipe
    families = {re.split("[/.]", name)[0] for name in known}
    names = {*known, *families} - WORDS
    for file in (ROOT / "harness").rglob("*.py"):
        # The help of the commands gives names as examples.
        if file.parent != ROOT / "harness" / "commands":
            assert not [*names_in(file.read_text(), names)], file
