import json
import sys

import pytest
from hpatches_files import LENGTHS, SPLITS, write_set

from harness import results
from harness.cli import main


@pytest.fixture
def run(monkeypatch, capsys, caplog):
    """Run a command line; gives its exit status, stdout, and stderr with what was logged."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["harness", *map(str, arguments)])
        try:
            main()
            status = 0
        except SystemExit as stop:
            status = stop.code or 0
        done = capsys.readouterr()
        return status, done.out, done.err + caplog.text

    return run


@pytest.fixture
def small(tmp_path):
    return write_set(tmp_path / "small", LENGTHS, splits=SPLITS)


def evaluate(run, small, tmp_path, *more, model="pixels", protocol="hpatches"):
    return run(
        "eval", "--model", model, "--protocol", protocol, "--data", small,
        "--results", tmp_path / "results", *more,
    )  # fmt: skip


def test_a_family_of_protocols_makes_a_record_for_each(run, small, tmp_path):
    status, out, _ = evaluate(run, small, tmp_path, model="pixels,constant")
    assert status == 0
    assert "pixels" in out
    found = {(r.protocol.name, r.model.name) for r in results.load(tmp_path / "results")}
    tasks = ("verification", "matching", "retrieval")
    assert found == {(f"hpatches/{t}", m) for t in tasks for m in ("pixels", "constant")}


def test_the_same_command_writes_the_same_bytes(run, small, tmp_path):
    written = []
    for _ in range(2):
        evaluate(run, small, tmp_path)
        files = sorted((tmp_path / "results").rglob("pixels.json"))
        written.append([file.read_bytes() for file in files])
    assert written[0] == written[1]
    assert len(written[0]) == 3


def test_json_on_stdout_is_the_record(run, small, tmp_path):
    status, out, _ = evaluate(run, small, tmp_path, "--json", protocol="hpatches/matching")
    (record,) = results.load(tmp_path / "results")
    assert status == 0
    assert results.Record.model_validate(json.loads(out)) == record


def test_official_ties_are_a_protocol_of_their_own(run, small, tmp_path):
    evaluate(run, small, tmp_path, "--ties", "official", protocol="hpatches/matching")
    (record,) = results.load(tmp_path / "results")
    assert record.protocol.name == "hpatches+official-ties/matching"


def test_whitening_is_a_protocol_of_its_own(run, small, tmp_path):
    mean = tmp_path / "plug.py"
    mean.write_text(
        "import numpy as np\n"
        "def rows(patches):\n"
        "    return patches.reshape(len(patches), -1)[:, :8].astype(np.float32)\n"
    )
    evaluate(
        run,
        small,
        tmp_path,
        "--set",
        "pcapl=true",
        model=f"{mean}:rows",
        protocol="hpatches/matching",
    )
    (record,) = results.load(tmp_path / "results")
    assert record.protocol.name == "hpatches+pcapl/matching"
    assert record.model.name == "plug:rows"


def test_partial_data_make_a_record_but_no_table(run, tmp_path):
    small = write_set(tmp_path / "small", {"v_one": 7}, splits=SPLITS)
    status, out, _ = evaluate(run, small, tmp_path, "--allow-partial", protocol="hpatches/matching")
    assert status == 0
    assert "PARTIAL" in out
    assert not results.load(tmp_path / "results")[0].data.complete
    status, out, _ = run("leaderboard", "--results", tmp_path / "results")
    assert (status, out) == (0, "")


def test_leaderboards_are_made_from_records(run, small, tmp_path):
    evaluate(run, small, tmp_path)
    status, out, _ = run("leaderboard", "--results", tmp_path / "results")
    assert status == 0
    # Verification and retrieval stand in a table of their own: their task files were made up.
    assert "hpatches-small+generated-tasks" in out
    folder = tmp_path / "results/hpatches/hpatches-small/a"
    assert str(folder / "leaderboard.md") in out
    assert "| pixels | 256 |" in (folder / "leaderboard.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["--model", "rootsitf", "--protocol", "hpatches"], "did you mean 'rootsift'?"),
        (["--model", "pixels", "--protocol", "hpatchs"], "did you mean 'hpatches'?"),
        (
            ["--model", "pixels", "--protocol", "hpatches/matchin"],
            "did you mean 'hpatches/matching'?",
        ),
        (
            ["--model", "pixels", "--protocol", "hpatches", "--set", "pcpl=true"],
            "no option named 'pcpl'; did you mean 'pcapl'?",
        ),
        (["--model", "pixels", "--protocol", "hpatches", "--ties", "luck"], "ties may be mean or"),
        (["--model", "pixels", "--protocol", "hpatches", "--set", "pcapl"], "takes KEY=VALUE"),
        (["--model", "pixels", "--protocol", "hpatches", "--split", "b"], "no split named 'b'"),
    ],
)
def test_what_is_unknown_is_answered_with_what_is_known(run, small, arguments, hint):
    status, out, err = run("eval", *arguments, "--data", small)
    assert status == 2
    assert hint in err
    assert not out


def test_an_error_is_one_line_and_no_traceback(run, small):
    (small / "patches/v_one/e3.png").unlink()
    status, _, err = run("eval", "--model", "pixels", "--protocol", "hpatches", "--data", small)
    assert status == 2
    assert "e3.png is missing" in err
    assert "Traceback" not in err


def test_data_may_be_named_by_the_environment(run, small, tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_DATA", str(small))
    status, _, err = run(
        "eval", "--model", "pixels", "--protocol", "hpatches/matching",
        "--results", tmp_path / "results",
    )  # fmt: skip
    assert status == 0
    assert "NO DATA SET" not in err
    assert results.load(tmp_path / "results")[0].data.name == "hpatches-small"


def test_without_data_the_sample_is_announced_and_has_its_own_name(run, tmp_path):
    status, _, err = run(
        "eval", "--model", "pixels,constant", "--protocol", "hpatches", "--results", tmp_path
    )
    assert status == 0
    assert "NO DATA SET GIVEN" in err
    assert {r.data.name for r in results.load(tmp_path)} == {"hpatches-sample"}


def test_vectors_written_as_csv_score_the_same(run, small, tmp_path):
    folder = tmp_path / "vectors"
    status, _, _ = run(
        "describe", "--model", "pixels", "--protocol", "hpatches", "--data", small, "--out", folder
    )
    assert status == 0
    evaluate(run, small, tmp_path, model=f"pixels,{folder}", protocol="hpatches/verification")
    # The folder says that its vectors are those of "pixels", so it takes the place of the record.
    one = results.load(tmp_path / "results")[0]
    assert one.environment.provider == "csv"
    evaluate(run, small, tmp_path, model="pixels", protocol="hpatches/verification")
    two = results.load(tmp_path / "results")[0]
    assert two.environment.provider == "cpu"
    assert one.scores == two.scores


def test_checking_says_which_laws_are_kept(run):
    status, out, _ = run("check", "--model", "pixels")
    assert status == 0
    assert "a row does not depend on its batch" in out


def test_a_broken_law_makes_the_check_fail(run, tmp_path):
    file = tmp_path / "bad.py"
    file.write_text(
        "import numpy as np\n"
        "def bad(patches):\n"
        "    flat = patches.reshape(len(patches), -1).astype(np.float32)\n"
        "    return (flat - flat.mean(axis=0)) if len(flat) else flat\n"
    )
    status, out, _ = run("check", "--model", f"{file}:bad")
    assert status == 1
    assert "BROKEN" in out


def test_the_doctor_says_what_is_here(run):
    status, out, _ = run("doctor")
    assert status == 0
    assert "OpenCV" in out
    assert "CPUExecutionProvider" in out
    assert not [line for line in out.splitlines() if line.startswith("!")]


@pytest.mark.parametrize("kind", ["models", "protocols"])
def test_what_is_installed_is_listed(run, kind):
    status, out, _ = run(kind)
    assert status == 0
    assert {"models": "rootsift", "protocols": "hpatches/matching"}[kind] in out


def test_known_weights_are_listed(run):
    status, out, _ = run("weights", "list")
    assert status == 0
    assert "tfeat.liberty" in out
    assert "not here" in out


def test_an_unknown_file_of_weights_is_refused(run, tmp_path):
    file = tmp_path / "net.pth"
    file.write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 2\n")
    status, _, err = run("weights", "add", file)
    assert status == 2
    assert "LFS" in err


@pytest.mark.data
def test_published_tfeat_weights_can_be_added_and_evaluated(run, shared, tmp_path):
    status, _, _ = run("weights", "add", shared / "checkpoints/tfeat/tfeat-liberty.params")
    assert status == 0
    status, _, _ = evaluate(
        run, shared / "hpatches/mini", tmp_path, model="tfeat.liberty", protocol="hpatches/matching"
    )
    assert status == 0
    (record,) = results.load(tmp_path / "results")
    assert 0.85 < record.scores["matching/map"] < 0.95
    assert record.model.trained_on == ["phototour/liberty"]


@pytest.mark.data
def test_a_set_is_built_from_real_images_and_evaluated(run, shared, tmp_path):
    out = tmp_path / "built"
    status, report, _ = run(
        "data", "build", "hpatches", "--images", shared / "hpatches/images/v_churchill",
        "--out", out, "--set", "max_keypoints=200",
    )  # fmt: skip
    assert status == 0
    assert "v_churchill" in report
    status, _, _ = evaluate(run, out, tmp_path, model="rootsift", protocol="hpatches/matching")
    assert status == 0
    (record,) = results.load(tmp_path / "results")
    assert record.data.name.startswith("hpatches-built-")
    assert record.scores["matching/easy/all/map"] > record.scores["matching/tough/all/map"]
