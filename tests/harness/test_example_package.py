"""The examples of the documentation, installed and run as a reader would."""

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from checkout import ROOT

from harness import plugins
from harness.contracts import check_descriptor

EXAMPLES = ROOT / "examples"

CHECK = """
from harness import contracts, plugins, registry
print(registry.source("descriptors", "example.meanstd"))
for law in contracts.check_descriptor(plugins.model("example.meanstd")):
    assert law.passed, f"{law.name}: {law.detail}"
print(plugins.model("constant").name)
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """What a program prints that finds the example package installed."""
    root = tmp_path_factory.mktemp("example")
    source = shutil.copytree(EXAMPLES / "meanstd", root / "source")  # building leaves files there
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
    ]
    quiet = ["--quiet", "--disable-pip-version-check", "--root-user-action=ignore"]
    subprocess.run([*pip, *quiet, "--target", root / "site", source], check=True)
    path = os.pathsep.join([str(root / "site"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", CHECK],
        env=os.environ | {"PYTHONPATH": path.rstrip(os.pathsep)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_example_package_is_found_and_keeps_every_law(installed):
    assert installed[0] == "descriptor-harness-example 0.1.0"


def test_the_example_package_leaves_our_own_descriptors_in_place(installed):
    assert installed[1] == "constant"


@pytest.mark.parametrize("side", [4, 16, 33, 65])
def test_a_flat_patch_is_the_zero_vector_of_the_example_at_any_size(side):
    describe = plugins.model(f"{EXAMPLES / 'plugin_file.py'}:shrunk").describe
    assert not describe(np.full((1, side, side), 100, np.uint8)).any()


@pytest.mark.parametrize("name", ["shrunk", "brighter", "maker"])
def test_the_descriptors_of_the_example_file_keep_every_law(name):
    laws = check_descriptor(plugins.model(f"{EXAMPLES / 'plugin_file.py'}:{name}"))
    assert [law for law in laws if not law.passed] == []
