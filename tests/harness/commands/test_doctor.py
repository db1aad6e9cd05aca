"""The doctor tells of what is broken, and goes on."""

import subprocess
import sys

import pytest
from packages import installed

from harness.commands import doctor
from harness.data import datasets, weights
from zoo.published.rows import TFEAT


def sick():
    return [line for line in doctor.report() if line.startswith("!")]


def test_where_nothing_is_wrong_nothing_needs_action():
    assert sick() == []


def test_what_is_here_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))  # without weights
    monkeypatch.setenv("HARNESS_WEIGHTS", str(tmp_path))
    (tmp_path / "tfeat-liberty.params").touch()
    assert weights.is_here(TFEAT["liberty"])
    monkeypatch.setenv("HARNESS_DATA_HOME", str(tmp_path / "sets"))
    name = sorted(datasets.known())[0]
    tmp_path.joinpath("sets", *name.split("/"), "images", "x").mkdir(parents=True)
    lines = list(doctor.report())
    assert any(line.startswith("1 of ") and line.endswith("weights are here") for line in lines)
    assert "  tfeat.liberty" in lines
    assert f"  {name} in {tmp_path / 'sets' / name}" in lines
    assert any(line.startswith("4 builders: homography, hpatches") for line in lines)


@pytest.mark.parametrize(
    ("module", "section"),
    [
        ("torch", "torch"),
        ("onnx", "ONNX Runtime"),
        ("onnxruntime", "ONNX Runtime"),
    ],
)
def test_an_extra_that_is_not_installed_is_told_of_and_is_no_trouble(monkeypatch, module, section):
    monkeypatch.setitem(sys.modules, module, None)
    lines = list(doctor.report())
    assert any(line.startswith(f"{section}: {module} is not installed; pip") for line in lines)
    assert any("descriptors: adasample" in line for line in lines)
    assert sick() == []


def test_a_library_that_can_not_be_imported_is_told_of(monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", None)
    assert any(line.startswith("! OpenCV: ModuleNotFoundError") for line in sick())


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
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.startswith("!")] == []
    assert f"ONNX Runtime: {module} is not installed" in done.stdout
    assert any(line.startswith("torch ") and "computes a convolution on" in line for line in lines)
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


@pytest.mark.parametrize(
    ("version", "major"), [("13.0", 13), ("12.6", 12), ("12", 12), ("", None), (None, None)]
)
def test_the_major_of_cuda_is_its_first_number(version, major):
    assert doctor.cuda_major(version) == major


def test_libraries_for_different_cuda_are_told_what_to_do():
    assert all(doctor.other_cuda(*fit) is None for fit in ((12, 12), (None, 12), (13, None)))
    told = doctor.other_cuda(13, 12)
    assert "onnxruntime-gpu is built for CUDA 13 and torch for CUDA 12" in told
    assert "install torch for CUDA 13, or a version of onnxruntime-gpu for CUDA 12" in told


def test_libraries_that_differ_in_cuda_need_action(monkeypatch):
    monkeypatch.setattr("onnxruntime.cuda_version", "13.0")
    monkeypatch.setattr("torch.version.cuda", "12.8")
    lines = sick()
    assert len(lines) == 1 and lines[0].startswith("! onnxruntime-gpu is built for CUDA 13")
    monkeypatch.setattr("torch.version.cuda", "13.0")
    assert sick() == []
