"""Without the packages of extras, all else works, and what needs them says so on one line."""

import subprocess
import sys
import tomllib

import pytest
from checkout import ROOT
from hpatches_files import LENGTHS, SPLITS, write_set

from harness import extras

MISSING = sorted(extras.EXTRAS)
OWN = """
import numpy as np

def rows(patches):
    return patches.reshape(len(patches), -1)[:, :8].astype(np.float32)
"""


def without_extras(*command, code="from harness.commands.main import main; main()"):
    """Run a command, or code, where no package of an extra can be imported."""
    blocked = f"import sys; sys.modules |= dict.fromkeys({MISSING})\n"
    return subprocess.run(
        [sys.executable, "-c", blocked + code, *map(str, command)], capture_output=True, text=True
    )


def listed(extra):
    with (ROOT / "pyproject.toml").open("rb") as stream:
        found = tomllib.load(stream)["project"]["optional-dependencies"][extra]
    return " ".join(found)


@pytest.mark.parametrize("package", MISSING)
def test_an_extra_lists_the_package_that_an_error_says_it_installs(package):
    assert package in listed(extras.EXTRAS[package])


def test_all_and_test_are_all_that_models_and_protocols_need():
    needed = {*extras.EXTRAS.values()} - {"tensorboard"}
    assert all(extra in listed("all") for extra in needed)
    assert "descriptor-harness[all]" in listed("test")


def test_a_numpy_function_is_scored_without_any_extra(tmp_path):
    small = write_set(tmp_path / "small", LENGTHS, splits=SPLITS)
    (tmp_path / "own.py").write_text(OWN)
    done = without_extras(
        "eval", "--model", f"{tmp_path}/own.py:rows,rootsift", "--protocol", "hpatches",
        "--data", small, "--results", tmp_path / "results",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len([*(tmp_path / "results").rglob("*.json")]) == 6


def test_the_public_names_are_there_without_any_extra():
    done = without_extras(
        code="import harness\nfor name in harness.__all__: getattr(harness, name)"
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_models_are_listed_with_their_facts_without_any_extra():
    done = without_extras("models")
    assert done.returncode == 0, done.stderr
    lines = {line.split()[0]: " ".join(line.split()) for line in done.stdout.splitlines()}
    remedy = "pip install 'descriptor-harness[torch]'"
    assert f"hardnet 128 512 l2 phototour (14 sets) {remedy}" in lines["hardnet"]
    assert f"{remedy} && harness weights fetch tfeat.liberty" in lines["tfeat.liberty"]
    assert " here " in lines["rootsift"]


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (
            ["eval", "--model", "hardnet", "--protocol", "oxford"],
            "descriptor 'hardnet' needs safetensors",
        ),
        (["eval", "--model", "{}/a.onnx", "--protocol", "oxford"], "{}/a.onnx needs onnx: pip"),
        (["eval", "--model", "{}/net.py:net", "--protocol", "oxford"], "{}/net.py can't be"),
        (["eval", "--model", "sift", "--protocol", "eth"], "protocol 'eth' needs pycolmap: pip"),
        (["export", "--model", "{}/net.py:later", "--out", "{}/b.onnx"], "the export to ONNX need"),
        (["train", "--recipe", "hardnet", "--data", "x"], "trainer 'recipes' needs torch: pip"),
        (["data", "build", "phototour", "--images", "{}", "--out", "{}/o"], "builder 'phototour' "),
        (["recipes"], "[method] "),
        (["extract", "{}", "--model", "sift", "--out", "{}/f.h5"], "pipeline 'extract' needs h5py"),
        (["colmap", "{}", "--model", "sift", "--database", "{}/d.db"], "needs pycolmap: pip"),
        (["match", "{}/a.png", "{}/b.png", "--model", "sift"], "detector sift needs pycolmap: pip"),
    ],
)
def test_the_first_need_of_an_extra_is_told_on_one_line(tmp_path, command, told):
    (tmp_path / "a.onnx").touch()
    (tmp_path / "net.py").write_text(
        "from harness import Descriptor\n"
        "from harness.distances import L2\n"
        "later = Descriptor('later', len, L2, 2, network=lambda: None)\n"
    )
    if "{}/net.py:net" in command:
        (tmp_path / "net.py").write_text("import torch\n")
    done = without_extras(*(word.format(tmp_path) for word in command))
    assert done.returncode == 2, done.stderr
    (line,) = (line for line in done.stderr.splitlines() if "NO DATA SET" not in line)
    assert line.startswith("harness: ")
    assert told.format(tmp_path) in line
    assert "pip install 'descriptor-harness[" in line


def test_data_and_weights_are_listed_without_any_extra():
    for command in (["data", "list"], ["weights", "list"], ["protocols"]):
        done = without_extras(*command)
        assert (done.returncode, done.stderr) == (0, "")


def test_the_doctor_finds_nothing_wrong_without_any_extra():
    done = without_extras("doctor")
    assert done.returncode == 0, done.stderr
    assert "torch: torch is not installed; pip install 'descriptor-harness[torch]'" in done.stdout
    assert "!" not in {line[0] for line in done.stdout.splitlines()}
