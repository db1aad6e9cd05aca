"""Commands in a new home: what they leave on the disk, and whether they ask for a network."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass

import pytest

OWN = {  # a file of the user, by command
    "export": """
import torch
from harness import Descriptor
from harness.distances import L2

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.a, self.b = torch.nn.Conv2d(1, 4, 3), torch.nn.Conv2d(4, 8, 3)

    def forward(self, patches):
        return self.b(self.a(patches[:, None].float() / 255).relu()).mean((2, 3))

def net():
    def describe(patches):
        with torch.inference_mode():
            return Net()(torch.from_numpy(patches.copy())).numpy()

    return Descriptor("net", describe, L2, 8, network=Net)
""",
    "eval": """
import numpy as np
import onnxruntime

def means(patches):
    return patches.mean(axis=2).astype(np.float32)
""",
}
COMMANDS = {
    "models": (["models"], set()),
    "doctor": (["doctor"], set()),
    "eval": (
        ["eval", "--model", "adasample,own.py:means", "--protocol", "hpatches/matching"],
        {"results"},
    ),
    "check": (["check", "--model", "adasample"], set()),
    "export": (
        [
            "export",
            "--model",
            "own.py:net",
            "--out",
            "net.onnx",
            "--precision",
            "int8",
            "--protocol",
            "hpatches/matching",
        ],
        {"net.onnx"},
    ),
}


def strace():
    """The program that tells of system calls, where it is installed and may watch others."""
    found = shutil.which("strace")
    if found and not subprocess.run([found, "-o", os.devnull, "true"], check=False).returncode:
        return found
    return None


def sockets(trace):
    """Sockets of networks in a trace; AF_UNIX, by which the C library asks for users, is none."""
    return [line for line in trace.splitlines() if "socket(AF_INET" in line]


@dataclass
class Ran:
    home: set[str]
    temporary: set[str]
    here: set[str]
    trace: str | None


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Runs a command once: in a new home, working directory and temporary folder."""
    done = {}

    def run(name):
        if name not in done:
            root = tmp_path_factory.mktemp(name)
            for folder in ("home", "temporary", "here"):
                (root / folder).mkdir()
            if name in OWN:
                (root / "here/own.py").write_text(OWN[name])
            watch = [strace(), "-f", "-qq", "-e", "trace=socket", "-o", root / "trace"]
            command = [sys.executable, "-m", "harness", *COMMANDS[name][0]]
            kept = {k: v for k, v in os.environ.items() if not k.startswith(("ORT_", "TORCHIND"))}
            subprocess.run(
                [*watch, *command] if watch[0] else command,
                cwd=root / "here",
                env=kept | {"HOME": str(root / "home"), "TMPDIR": str(root / "temporary")},
                check=True,
                stdout=subprocess.DEVNULL,
            )
            left = [
                {file.name for file in (root / folder).iterdir()}
                for folder in ("home", "temporary", "here")
            ]
            trace = (root / "trace").read_text() if watch[0] else None
            done[name] = Ran(left[0], left[1], left[2] - {"own.py", "__pycache__"}, trace)
        return done[name]

    return run


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_is_left_outside_of_cache_and_results(ran, command):
    found = ran(command)
    assert (found.home, found.temporary) == (set(), set())
    assert found.here == COMMANDS[command][1]


@pytest.mark.skipif(not strace(), reason="strace, which sees sockets, is not here or not allowed")
@pytest.mark.parametrize("command", COMMANDS)
def test_no_socket_is_opened(ran, command):
    assert sockets(ran(command).trace) == []


@pytest.mark.skipif(not strace(), reason="strace, which sees sockets, is not here or not allowed")
def test_a_socket_would_be_seen(tmp_path):
    opens = "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()"
    command = ["-f", "-qq", "-e", "trace=socket", "-o", tmp_path / "x", sys.executable, "-c", opens]
    subprocess.run([strace(), *command], check=True)
    assert len(sockets((tmp_path / "x").read_text())) == 1


@pytest.mark.parametrize(("said", "kept"), [(None, "1"), ("", "1"), ("1", "1"), ("0", "0")])
def test_telemetry_is_off_unless_the_user_says_otherwise(said, kept):
    name = "ORT_DISABLE_TELEMETRY"
    environment = {k: v for k, v in os.environ.items() if k != name}
    command = [sys.executable, "-c", f"import harness, os; print(os.environ['{name}'])"]
    done = subprocess.run(
        command,
        env=environment | ({} if said is None else {name: said}),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == kept
