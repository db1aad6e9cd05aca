"""The programs of docs/onnx.md, as printed there, give the vectors of the harness."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from checkout import ROOT
from described_patches import smooth_patches

import harness
from harness import plugins

PAGE = (ROOT / "docs/onnx.md").read_text("utf-8")
NUMBER = 5  # patches


def programs(language: str) -> list[str]:
    """The programs of a language on the page, without their indentation."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^\1```", PAGE, re.DOTALL | re.MULTILINE)
    return [re.sub(f"^{indent}", "", text, flags=re.MULTILINE) for indent, text in found]


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A folder with the file that the programs open; and the patches that they read."""
    folder = tmp_path_factory.mktemp("programs")
    model = plugins.model("adasample")
    harness.export_onnx(model, folder / "adasample.onnx")
    patches = smooth_patches(NUMBER)
    (folder / "patches.bin").write_bytes(patches.tobytes())
    return folder, model.describe(patches)


def must_describe(exported, *command: object, **environment: str) -> str:
    """Run a program and compare what it writes; returns what it prints."""
    folder, wanted = exported
    (folder / "vectors.bin").unlink(missing_ok=True)
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder, env=os.environ | environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = np.fromfile(folder / "vectors.bin", np.float32).reshape(NUMBER, -1)
    assert found == pytest.approx(wanted, abs=1e-5)
    return done.stdout


def test_the_python_program_describes_patches(exported):
    program, _ = programs("python")
    assert must_describe(exported, sys.executable, "-c", program) == "(5, 128)\n"


def test_the_javascript_program_describes_patches(exported):
    (program,) = programs("javascript")
    node = shutil.which("node")
    if node is None or subprocess.run([node, "-e", 'require("onnxruntime-node")']).returncode:
        pytest.skip("node has no onnxruntime-node: npm install it, and set NODE_PATH")
    assert must_describe(exported, node, "-e", program).split() == ["[", "5,", "128", "]"]


def test_the_cpp_program_describes_patches(exported):
    (program,) = programs("cpp")
    folder, _ = exported
    compiler = shutil.which("g++")
    header = "#include <onnxruntime_cxx_api.h>"
    if compiler is None or subprocess.run(
        [compiler, "-E", "-x", "c++", "-", "-o", os.devnull], input=header.encode(),
        stderr=subprocess.DEVNULL,
    ).returncode:  # fmt: skip
        pytest.skip("g++ finds no onnxruntime_cxx_api.h: set CPLUS_INCLUDE_PATH to its folder")
    # The wheel has the library under the name of its version.
    capi = Path(onnxruntime.__file__).parent / "capi"
    libraries = sorted(capi.glob("libonnxruntime.so.*"))
    wheel = [libraries[0], f"-Wl,-rpath,{folder}"] if libraries else []
    for library in libraries:  # its own name, by which the program looks for it
        (folder / "libonnxruntime.so.1").symlink_to(library)
    (folder / "describe.cpp").write_text(program)
    command = [compiler, "-std=c++17", folder / "describe.cpp", "-o", folder / "describe"]
    command += wheel or ["-lonnxruntime"]
    subprocess.run([str(part) for part in command], check=True, timeout=300)
    must_describe(exported, folder / "describe")


def test_a_file_with_float_input_as_for_tensorrt_gives_the_same_vectors(exported):
    folder, wanted = exported
    _, program = programs("python")
    subprocess.run([sys.executable, "-c", program], cwd=folder, check=True, timeout=300)
    session = onnxruntime.InferenceSession(
        folder / "adasample-float.onnx", providers=["CPUExecutionProvider"]
    )
    patches = smooth_patches(NUMBER).astype(np.float32)
    (found,) = session.run(None, {"patches": patches})
    assert np.abs(found - wanted).max() < 1e-6
