import sys

import pytest
from packages import installed
from toy import toy_protocol

from harness import code
from harness.cache import Cache
from harness.code import code_sha256, source_sha256
from harness.evaluation import evaluate
from harness.plugins import model as load_model

SOURCE = '''"""What it does."""

LEVEL = 2  # chosen by hand


def shift(x):
    """Return x, shifted."""
    return x + LEVEL


class Shift:
    """Holds the shift."""

    level = LEVEL
'''


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package `their` with these modules; it writes them anew each time."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(**modules):
        (tmp_path / "their").mkdir(exist_ok=True)
        for name, text in {"__init__": "", **modules}.items():
            (tmp_path / f"their/{name}.py").write_text(text)

    yield write
    for name in [name for name in sys.modules if name.partition(".")[0] == "their"]:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""What it does."""', '"""What it returns."""'),
        ('    """Return x, shifted."""\n', ""),
        ('    """Holds the shift."""\n\n', ""),
        ("  # chosen by hand", ""),
        ("\n\n\nclass", "\n\nclass"),
        ("x + LEVEL", "(x + LEVEL)"),
    ],
)
def test_docstrings_comments_and_layout_change_no_hash(old, new):
    assert old in SOURCE
    assert source_sha256(SOURCE.replace(old, new).encode()) == source_sha256(SOURCE.encode())


@pytest.mark.parametrize(("old", "new"), [("= 2", "= 3"), ("x +", "x -"), ("shift(", "shifted(")])
def test_what_changes_a_number_changes_the_hash(old, new):
    assert old in SOURCE
    assert source_sha256(SOURCE.replace(old, new).encode()) != source_sha256(SOURCE.encode())


def test_a_text_that_is_no_docstring_counts():
    text = 'def name():\n    return "{}"\n'
    assert source_sha256(text.format("a").encode()) != source_sha256(text.format("b").encode())


MAKER = '''"""A descriptor in a package."""

import numpy as np

from harness import Descriptor
from harness.distances import L2


def describe(patches):
    """Eight pixels of each patch."""
    return patches[:, :8, 8].astype(np.float32)  # any patch has them


def made():
    """The descriptor."""
    return Descriptor("theirs", describe, L2, 8)
'''


@pytest.mark.parametrize(
    ("old", "new", "is_same"),
    [
        ("Eight pixels of each patch.", "The first eight pixels of one column.", True),
        ("  # any patch has them", "", True),
        ("8, 8]", "8, 9]", False),
    ],
)
def test_a_docstring_edit_changes_neither_a_record_nor_the_key_of_cached_vectors(
    tmp_path, old, new, is_same
):
    assert old in MAKER
    records, entries = [], []
    for name, source in {"before": MAKER, "after": MAKER.replace(old, new)}.items():
        (tmp_path / name).mkdir()
        with installed(tmp_path / name, "theirs", source, descriptors={"theirs": "made"}):
            model = load_model("theirs")
            records += evaluate(model, [toy_protocol()], cache=Cache(tmp_path / "cache"))
        entries.append({file.name for file in (tmp_path / "cache").rglob("*.entry")})
    assert entries[0]
    assert (entries[0] == entries[1]) is is_same
    assert (records[0] == records[1]) is is_same


def test_modules_of_the_same_package_count_and_others_do_not(package):
    package(maker="from their import part\nimport json\nfrom harness import types", part="x = 1")
    before = code_sha256("their.maker")
    package(part="x = 2")
    assert code_sha256("their.maker") != before
    package(part="x = 1  # again")
    assert code_sha256("their.maker") == before


def test_modules_of_the_harness_count_only_where_they_are_named(monkeypatch):
    """Otherwise a line about mirrors would empty the cache of vectors."""
    read = []
    file_of = code._file
    monkeypatch.setattr(code, "_file", lambda name: read.append(name) or file_of(name))
    code_sha256("zoo.published.tfeat", "harness.onnx.file")
    assert {name for name in read if name.startswith("harness.")} == {"harness.onnx.file"}


def test_an_optional_library_that_is_broken_is_passed_over(package, tmp_path):
    (tmp_path / "their/native").mkdir(parents=True)
    (tmp_path / "their/native/__init__.py").write_text("raise OSError('libnothere.so')")
    maker = "try:\n    from their.native import fast\nexcept OSError:\n    fast = None\n"
    package(maker=maker)
    assert len(code_sha256("their.maker")) == 64


def test_a_module_without_a_file_is_an_error():
    with pytest.raises(ImportError, match="sys has no file"):
        code_sha256("sys")
