"""The script for GPUs: every part runs on the CPU, small; on a GPU, its numbers are wanted."""

import pytest
import torch

from benchmarks import gpu
from benchmarks.gpu_found import Found, Setting, close
from zoo.exact import exact


@pytest.mark.parametrize("part", gpu.PARTS)
def test_every_part_runs_on_the_cpu(part, capsys):
    assert gpu.main(["--device", "cpu", "--quick", "--only", part]) == 0
    told = capsys.readouterr().out
    assert f"| {part} | seconds |" in told and "FAILED" not in told
    assert told.count(f"| {part} |") >= 2 and told.endswith("all is as wanted\n")


def test_a_part_that_fails_is_named_and_the_next_one_runs(monkeypatch, capsys):
    def broken(setting):
        yield Found("before", "it")
        raise RuntimeError("no kernel image\nis available")

    def far(setting):
        yield close("a loss", 1.1, 1.0, 0.01)

    monkeypatch.setattr(gpu, "PARTS", {"broken": broken, "far": far, "good": lambda setting: ()})
    assert gpu.main(["--device", "cpu", "--only", "broken,far,good"]) == 1
    told = capsys.readouterr().out
    assert "| broken | before | it |" in told
    assert "| RuntimeError: no kernel image is available | no error | FAILED |" in told
    assert "| far | a loss | 1.1, apart by 1.0e-01 | 1 within 0.01 | FAILED |" in told
    assert "| good | seconds |" in told
    assert told.endswith("not as wanted: broken, far\n")


def test_an_unknown_part_is_answered_with_the_known_ones(capsys):
    with pytest.raises(SystemExit):
        gpu.main(["--only", "versions,stpes"])
    assert "no part stpes; known: versions, shipped, steps" in capsys.readouterr().err


def test_parts_stand_in_the_order_in_which_faults_would_show():
    assert list(gpu.PARTS) == [
        "versions", "shipped", "steps", "bfloat16", "resume", "learning", "profile", "speed",
        "describing", "two",
    ]  # fmt: skip


@pytest.mark.gpu
@pytest.mark.parametrize(
    "part", ["versions", "shipped", "steps", "bfloat16", "resume", "learning", "profile", "two"]
)
def test_a_gpu_gives_the_numbers_that_are_wanted(part, tmp_path):
    setting = Setting(torch.device("cuda"), False, tmp_path)
    with exact():
        wrong = [found for found in gpu.PARTS[part](setting) if found.good is False]
    assert wrong == []
