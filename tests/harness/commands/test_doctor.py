"""The doctor tells of what is broken, and goes on."""

import subprocess
import sys

import pytest
from packages import installed

from harness.commands import doctor
from harness.data import datasets, weights
from zoo import tfeat


def sick():
    return [line for line in doctor.report() if line.startswith("!")]


def test_where_nothing_is_wrong_nothing_needs_action():
    assert sick() == []


def test_what_is_here_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_WEIGHTS", str(tmp_path))
    (tmp_path / "tfeat-liberty.params").touch()
    assert weights.is_here(tfeat.WEIGHTS["liberty"])
    monkeypatch.setenv("HARNESS_DATA_HOME", str(tmp_path / "sets"))
    name = sorted(datasets.known())[0]
    tmp_path.joinpath("sets", *name.split("/"), "images", "x").mkdir(parents=True)
    lines = list(doctor.report())
    assert "weights tfeat.liberty are here" in lines
    assert f"  {name} in {tmp_path / 'sets' / name}" in lines
    assert any(line.startswith("4 builders: homography, hpatches") for line in lines)


@pytest.mark.parametrize(
    ("module", "section"),
    [
        ("cv2", "OpenCV"),
        ("torch", "torch"),
        ("onnx", "ONNX Runtime"),
        ("onnxruntime", "ONNX Runtime"),
    ],
)
def test_a_library_that_can_not_be_imported_is_told_of(monkeypatch, module, section):
    monkeypatch.setitem(sys.modules, module, None)
    lines = list(doctor.report())
    assert any(line.startswith(f"! {section}: ModuleNotFoundError") for line in lines)
    assert any("descriptors: adasample" in line for line in lines)


@pytest.mark.parametrize("module", ["onnxruntime", "onnx"])
def test_without_onnx_runtime_all_else_is_told_of_and_works(module):
    """In a new process, where nothing has imported it before."""
    code = (
        f"import sys; sys.modules[{module!r}] = None\n"
        "from harness import plugins\nfrom harness.commands import doctor\n"
        "print(*doctor.report(), sep='\\n')\n"
        "print(plugins.model('rootsift').name, 'is made')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    sick = [line for line in done.stdout.splitlines() if line.startswith("!")]
    assert sick[0].startswith("! ONNX Runtime: ModuleNotFoundError")
    assert all("can't be imported" in line and module in line for line in sick[1:])
    assert "torch computes on" in done.stdout
    assert done.stdout.endswith("rootsift is made\n")


@pytest.mark.parametrize("kind", ["descriptors", "protocols", "builders"])
def test_a_plug_in_that_exits_is_told_of(tmp_path, kind):
    with installed(tmp_path, "rude-zoo", "raise SystemExit(0)", **{kind: {"rude": "rude"}}):
        (line,) = sick()
    assert "'rude' of rude-zoo 1.0" in line


@pytest.mark.parametrize(
    ("name", "told"),
    [("HARNESS_DATA", "not a folder"), ("HARNESS_CACHE", "nothing can be kept in")],
)
def test_a_place_that_is_no_folder_is_told_of(tmp_path, monkeypatch, name, told):
    (tmp_path / "file").touch()
    monkeypatch.setenv(name, str(tmp_path / "file"))
    assert any(told in line for line in sick())
