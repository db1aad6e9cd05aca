import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest
from hpatches_files import LENGTHS, SPLITS, write_set
from packages import installed
from published_files import number, write_numbers

from harness.records import record as results
from protocols.hpatches.reader import STRIPS


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


def test_a_published_number_stands_beside_the_measured_one(run, small, tmp_path):
    printed = number(
        model="pixels", protocol="hpatches/matching", data="hpatches-small", split="a",
        score="matching/map", value="0.0",
    )  # fmt: skip
    write_numbers(tmp_path / "results/published/toy.csv", printed)
    _, out, _ = evaluate(run, small, tmp_path)
    (record,) = [r for r in results.load(tmp_path / "results") if "matching/map" in r.scores]
    score = f"{100 * record.scores['matching/map']:.2f}"
    assert out.count("published") == 1
    assert out.endswith(
        f"pixels, matching/map: {score}, {score} points above the published 0.0 (Toy paper,"
        " Table 1)\n"
    )
    _, out, _ = evaluate(run, small, tmp_path, "--json", protocol="hpatches/matching")
    assert "published" not in out
    run("leaderboard", "--results", tmp_path / "results")
    (page,) = (tmp_path / "results/tables").rglob("a/leaderboard.md")
    assert f"| Mean | 8 | — | 0.0 (+{score}) | pixels |" in page.read_text()


def test_published_numbers_that_can_not_be_read_are_told_before_any_work(run, small, tmp_path):
    write_numbers(tmp_path / "results/published/toy.csv", number(value="many"))
    status, out, err = evaluate(run, small, tmp_path)
    assert (status, out) == (2, "")
    assert re.search(r"toy\.csv, line 2: value: 'many' is not a number", err)
    assert not results.load(tmp_path / "results")


def test_official_ties_are_an_option_of_the_record(run, small, tmp_path):
    evaluate(run, small, tmp_path, "--set", "ties=official", protocol="hpatches/matching")
    (record,) = results.load(tmp_path / "results")
    assert (record.protocol.name, record.protocol.options) == (
        "hpatches/matching", {"ties": "official"},
    )  # fmt: skip


def test_whitening_is_an_option_of_the_record(run, small, tmp_path):
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
        "whitening=pcapl",
        model=f"{mean}:rows",
        protocol="hpatches/matching",
    )
    (record,) = results.load(tmp_path / "results")
    assert record.protocol.options == {"whitening": "pcapl"}
    assert record.model.name == "plug:rows"


def test_partial_data_make_a_record_but_no_table(run, tmp_path):
    small = write_set(tmp_path / "small", {"v_one": 7}, splits=SPLITS)
    status, out, _ = evaluate(run, small, tmp_path, "--allow-partial", protocol="hpatches/matching")
    assert status == 0
    assert "PARTIAL" in out
    assert not results.load(tmp_path / "results")[0].data.complete
    status, out, err = run("leaderboard", "--results", tmp_path / "results")
    assert (status, out) == (0, "")
    assert "every record" in err


def test_a_leaderboard_of_no_records_is_an_error(run, tmp_path):
    status, out, err = run("leaderboard", "--results", tmp_path / "typo")
    assert (status, out) == (2, "")
    assert "no record in" in err


def test_leaderboards_are_made_from_records(run, small, tmp_path):
    evaluate(run, small, tmp_path)
    status, out, _ = run("leaderboard", "--results", tmp_path / "results")
    assert status == 0
    # Verification and retrieval stand in a table of their own: their task files were made up.
    tables = tmp_path / "results/tables/hpatches/hpatches-small"
    assert str(tables / "a@generated-tasks/leaderboard.md") in out
    folder = tables / "a"
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
            ["--model", "pixels", "--protocol", "hpatches", "--set", "whitning=pcapl"],
            "no option named 'whitning'; did you mean 'whitening'?",
        ),
        (
            ["--model", "pixels", "--protocol", "hpatches", "--set", "ties=luck"],
            "ties is 'luck'; it should be 'mean' or 'official'",
        ),
        (["--model", "pixels", "--protocol", "hpatches", "--set", "whitening"], "is not KEY=VALUE"),
        (["--model", "pixels", "--protocol", "hpatches", "--split", "b"], "no split named 'b'"),
        (
            ["--model", "pixels", "--protocol", "hpatches", "--set", "whitening=1"],
            "protocol hpatches/matching: whitening is '1'; it should be",
        ),
        (["--model", "pixels", "--protocol", "hpatches", "--set", "split=a"], "use --split"),
        (["--model", "pixels", "--protocol", "hpatches", "--set", "device=cpu"], "use --device"),
        (
            ["--model", "pixels,sift,pixels", "--protocol", "hpatches"],
            "two models are called pixels: pixels and pixels",
        ),
        (["--model", "tfeat.liberty", "--protocol", "hpatches"], "harness weights add"),
        (
            ["--model", "sift", "--protocol", "hpatches", "--device", "cuda"],
            "can't compute on cuda",
        ),
    ],
)
def test_what_is_unknown_is_answered_with_what_is_known(run, small, arguments, hint):
    status, out, err = run("eval", *arguments, "--data", small)
    assert status == 2
    assert hint in err
    assert not out


def test_two_files_of_one_name_are_two_models_of_one_name(run, small, tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.py").write_text(SLOW)
    specs = [f"{tmp_path / folder}/mine.py:slow" for folder in ("a", "b")]
    status, _, err = evaluate(run, small, tmp_path, model=",".join(specs))
    assert status == 2
    assert f"two models are called mine:slow: {specs[0]} and {specs[1]}" in err


def test_an_error_of_a_library_names_what_failed(run, small, tmp_path):
    source = "import struct\ndef odd(*, data): struct.unpack('i', b'')\n"
    with installed(tmp_path, "odd-bench", source, protocols={"odd": "odd"}):
        status, _, err = evaluate(run, small, tmp_path, protocol="odd")
    assert status == 2
    assert "protocol odd fails: struct.error: unpack requires" in err


def test_a_traceback_is_shown_to_who_asks_for_it(run, small, monkeypatch):
    monkeypatch.setenv("HARNESS_DEBUG", "1")
    with pytest.raises(LookupError, match="no descriptor named"):
        run("eval", "--model", "rootsitf", "--protocol", "hpatches", "--data", small)


@pytest.mark.parametrize("place", ["file", "file/results"])
def test_results_that_can_not_be_kept_are_refused_before_any_work(run, small, tmp_path, place):
    (tmp_path / "file").touch()
    (small / "patches/v_one/e3.png").unlink()  # what would be found first
    status, _, err = run(
        "eval", "--model", "pixels", "--protocol", "hpatches", "--data", small,
        "--results", tmp_path / place,
    )  # fmt: skip
    assert status == 2
    assert f"records can't be kept in {tmp_path / place}" in err


def test_a_wrong_option_prints_the_usage(run):
    status, _, err = run("eval", "--modle", "pixels")
    assert status == 2
    assert "Usage: " in err
    assert "--modle" in err


SLOW = """
import hashlib, os, pathlib, time
import numpy as np

def slow(patches):
    rows = patches.reshape(len(patches), -1)[:, :8].astype(np.float32)
    log = os.environ.get("SLOW_LOG")
    if log and patches.shape[1] == 8:  # not what the harness made up
        time.sleep(float(os.environ["SLOW_SECONDS"]))
        with pathlib.Path(log).open("a") as stream:
            stream.write(hashlib.sha256(patches.tobytes()).hexdigest() + "\\n")
    return rows
"""


@pytest.mark.parametrize(
    ("sign", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_after_a_signal_what_was_described_is_not_described_again(small, tmp_path, sign, status):
    file, log = tmp_path / "mine.py", tmp_path / "log"
    file.write_text(SLOW)
    command = [
        sys.executable, "-m", "harness", "eval", "--model", f"{file}:slow", "--data", small,
        "--protocol", "hpatches/matching", "--results", tmp_path / "results",
    ]  # fmt: skip
    own = os.environ | {"HARNESS_CACHE": str(tmp_path / "cache"), "SLOW_LOG": str(log)}

    with subprocess.Popen(
        command, stderr=subprocess.PIPE, env=own | {"SLOW_SECONDS": "0.1"}
    ) as first:
        while first.poll() is None and (not log.exists() or len(log.read_text().split()) < 10):
            time.sleep(0.02)
        first.send_signal(sign)
        _, said = first.communicate()
    assert first.returncode == status
    assert b"harness: stopped; run the command again to continue" in said
    assert b"Traceback" not in said
    assert not [*tmp_path.rglob("*.unfinished"), *tmp_path.rglob("*.lock")]

    begun = log.read_text().split()
    subprocess.run(command, check=True, env=own | {"SLOW_SECONDS": "0"}, capture_output=True)
    again = log.read_text().split()[len(begun) :]
    assert not set(begun[:-1]) & set(again)  # the last may have been cut off before it was kept
    assert len({*begun, *again}) == 2 * len(STRIPS)


def test_an_interrupt_before_the_command_begins_is_no_traceback(run, monkeypatch):
    def interrupt(app):
        raise KeyboardInterrupt

    monkeypatch.setattr("typer.main.get_command", interrupt)
    status, _, err = run("models")
    assert status == 130
    assert err.startswith("harness: stopped; run the command again to continue")


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


def test_without_data_the_sample_is_announced_once_and_has_its_own_name(run, tmp_path):
    status, _, err = run(
        "eval", "--model", "pixels,constant", "--protocol", "hpatches", "--results", tmp_path
    )
    assert status == 0
    assert err.count("NO DATA SET GIVEN") == 1  # of three tasks
    assert {r.data.name for r in results.load(tmp_path)} == {"hpatches-sample"}


def describe(run, small, out, *more, model="pixels"):
    return run(
        "describe", "--model", model, "--protocol", "hpatches", "--data", small, "--out", out, *more
    )


BUILDER = """
from pathlib import Path

def build(images: Path, out: Path, *, model: Path | None = None, seed: int = 0):
    return f"made with {model!r} and {seed}"
"""


def built(run, tmp_path, *more, form="own"):
    with installed(tmp_path, "own-builder", BUILDER, builders={"own": "build"}):
        return run("data", "build", form, "--images", tmp_path, "--out", tmp_path / "out", *more)


def test_a_model_of_the_images_goes_to_the_builder(run, tmp_path):
    status, out, _ = built(run, tmp_path, "--model", "sparse", "--set", "seed=3")
    assert status == 0
    assert "made with PosixPath('sparse') and 3" in out


def test_a_builder_may_do_without_a_model(run, tmp_path):
    assert "made with None and 0" in built(run, tmp_path)[1]
    assert "Folder of images, or of image sequences." in run("data", "build", "--help")[1]


def test_a_builder_without_a_model_says_so(run, tmp_path):
    status, _, err = built(run, tmp_path, "--model", "sparse", form="hpatches")
    assert status == 2
    assert "builder hpatches: no option named 'model'" in err


def test_vectors_written_as_csv_score_the_same(run, small, tmp_path):
    folder = tmp_path / "vectors"
    assert describe(run, small, folder)[0] == 0
    evaluate(run, small, tmp_path, model=f"pixels,{folder}", protocol="hpatches/verification")
    found = {record.model.name: record for record in results.load(tmp_path / "results")}
    assert set(found) == {"pixels", "csv:pixels"}
    assert found["pixels"].scores == found["csv:pixels"].scores
    assert found["csv:pixels"].environment.provider == "csv"


def test_a_record_in_the_way_is_told_of_before_any_work(run, small, tmp_path, monkeypatch):
    given = {"protocol": "hpatches/verification"}
    assert evaluate(run, small, tmp_path, **given)[0] == 0
    (record,) = results.load(tmp_path / "results")
    other = record.data.model_copy(update={"sha256": "1" * 64})
    file = results.place(tmp_path / "results", record)
    file.write_text(results.to_json(record.model_copy(update={"data": other})))
    monkeypatch.setattr("harness.running.evaluate", pytest.fail)
    status, _, err = evaluate(run, small, tmp_path, **given)
    assert status == 2
    assert "is a record of other data" in err


def test_vectors_are_not_written_among_other_files(run, small, tmp_path):
    folder = tmp_path / "vectors"
    folder.mkdir()
    assert describe(run, small, folder)[0] == 0  # empty, so nothing is lost
    status, _, err = describe(run, small, folder, model="sift")
    assert status == 2
    assert "is there already, and is not an empty folder: remove it" in err
    assert json.loads((folder / "descriptor.json").read_text())["name"] == "pixels"


def test_an_interrupted_description_leaves_no_folder(run, small, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "import numpy as np\n"
        "calls = []\n"
        "def bad(patches):\n"
        "    calls.append(1)\n"
        "    if len(calls) == 6: raise OSError('disk')\n"
        "    return np.ones((len(patches), 2), np.float32)\n"
    )
    status, _, err = describe(run, small, tmp_path / "out", model=f"{file}:bad")
    assert status == 2
    assert "mine:bad fails on" in err
    assert [place.name for place in tmp_path.iterdir() if "out" in place.name] == []


@pytest.mark.parametrize("model", ["pixels,sift", "tfeat"])
def test_vectors_are_written_of_one_model_at_a_time(run, small, tmp_path, model):
    status, _, err = describe(run, small, tmp_path / "out", model=model)
    assert status == 2
    assert "vectors of one model are written at a time" in err


@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        (["eval", "--model", "pixels,", "sift", "--protocol", "hpatches"], "pixels,sift"),
        (["eval", "--model", "pixels", ",sift", "--protocol", "hpatches"], "pixels,sift"),
        (["eval", "--model", "pixels", ",", "sift"], "pixels,NAME"),
        (["eval", "--model=pixels,", "sift", "--protocol", "hpatches"], "--model=pixels,sift"),
        (["eval", "--model", "sift", "--protocol", "hpatches,", "eth"], "hpatches,eth"),
        (["check", "--model", "pixels,", "sift"], "pixels,sift"),
        (["train", "--recipe", "hardnet", "--data", "one,", "two"], "one,two"),
    ],
)
def test_a_list_with_blanks_is_told_how_to_be_written(run, arguments, written):
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert f"write a list without spaces, as in {written}\n" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["eval", "--model", "pixels,", "--protocol", "hpatches"], "--model is 'pixels,': a name"),
        (["eval", "--model", "", "--protocol", "hpatches"], "--model is '': a name is missing"),
        (["check", "--model", ",pixels"], "--model is ',pixels': a name is missing"),
        (["describe", "--model", "a,,b", "--protocol", "eth", "--out", "x"], "a name is missing"),
        (["train", "--recipe", "hardnet", "--data", "a,"], "--data is 'a,': a name is missing"),
        (["eval", "--model", "sift", "--protocol", "hpatches,eth"], "takes one name, not"),
    ],
)
def test_a_list_that_lacks_a_name_or_may_be_none_is_refused(run, arguments, message):
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert message in err


@pytest.mark.parametrize(
    ("command", "several"),
    [("eval", True), ("describe", False), ("show", True), ("export", False), ("train", True)],
)
def test_help_says_several_only_where_several_are_taken(run, command, several):
    _, out, _ = run(command, "--help")
    said = " ".join(out.split())
    assert ("several separated by commas" in said) is several


def test_partial_data_can_be_described(run, tmp_path):
    small = write_set(tmp_path / "small", {"v_one": 7}, splits=SPLITS)
    assert describe(run, small, tmp_path / "out")[0] == 2
    assert describe(run, small, tmp_path / "out", "--allow-partial")[0] == 0


def test_checking_says_which_laws_are_kept(run):
    status, out, _ = run("check", "--model", "pixels,constant")
    assert status == 0
    lines = out.splitlines()
    for name in ("pixels", "constant"):
        below = lines[lines.index(name) + 1 :]
        assert "  kept    a row does not depend on its batch" in below


def test_checking_expands_families(run, small):
    _, out, _ = run("check", "--protocol", "hpatches", "--data", small)
    subjects = [line.split(" on ")[0] for line in out.splitlines() if not line.startswith(" ")]
    assert subjects == ["hpatches/matching", "hpatches/retrieval", "hpatches/verification"]


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


@pytest.mark.parametrize("source", ["raise SystemExit(0)", "import no_such_package"])
def test_a_broken_plug_in_is_told_of_and_ends_nothing_silently(run, small, tmp_path, source):
    with installed(tmp_path, "rude-zoo", source, descriptors={"rude": "rude"}):
        status, _, err = evaluate(run, small, tmp_path, model="rude")
        assert status == 2
        assert "'rude' of rude-zoo 1.0" in err
        status, out, _ = run("doctor")
        assert status == 0
        assert "! descriptor 'rude' of rude-zoo 1.0" in out


def test_a_name_that_two_packages_claim_does_not_end_the_list(run, tmp_path):
    with installed(tmp_path, "their-zoo", "", descriptors={"sift": "sift"}):
        status, out, _ = run("models")
    assert status == 0
    lines = {line.split()[0]: line for line in out.splitlines()}
    assert "claimed by their_zoo:sift and zoo.handcrafted.sift:sift" in lines["sift"]
    assert "phototour/liberty" in lines["tfeat.liberty"]


def test_the_doctor_says_what_is_here(run):
    status, out, _ = run("doctor")
    assert status == 0
    assert "OpenCV" in out
    assert "CPUExecutionProvider" in out
    assert not [line for line in out.splitlines() if line.startswith("!")]


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


# ---- out of memory


GREEDY = """
import numpy as np

def greedy(patches):
    if len(patches) > 9:
        np.empty(1 << 58)
    return np.ones((len(patches), 4), np.float32)
"""


def test_running_out_of_memory_says_at_what_how_much_and_what_to_do(run, tmp_path):
    data = write_set(tmp_path / "small", {"v_one": 12})
    (tmp_path / "model.py").write_text(GREEDY)
    model = f"{tmp_path}/model.py:greedy"
    task = "hpatches/matching"
    status, _, err = evaluate(run, data, tmp_path, model=model, protocol=task)
    assert status == 2
    (line,) = (line for line in err.splitlines() if "memory" in line)
    assert "model:greedy on 12 patches of v_one/ref needs more memory than there is" in line
    assert re.search(r"this process held up to \d+\.\d GB", line)
    assert "Unable to allocate 2.00 EiB" in line
    assert "a smaller --batch-size" in line
    few = ("--batch-size", 9)
    status, _, err = evaluate(run, data, tmp_path, *few, model=model, protocol=task)
    assert status == 0, err


# ---- faults of the harness


def test_a_fault_of_the_harness_shows_its_traceback_and_where_to_report_it(run, monkeypatch):
    def fault():
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("harness.catalogue.protocols", fault)
    status, out, err = run("protocols")
    assert (status, out) == (1, "")
    assert "Traceback (most recent call last)" in err
    assert "ZeroDivisionError: division by zero" in err
    assert err.splitlines()[-1].startswith("harness: this is a fault of the harness, not yours")
    assert "issue tracker" in err.splitlines()[-1]


def test_the_user_is_not_asked_to_report_an_error_of_his_own(run):
    _, _, err = run("eval", "--model", "rootsitf", "--protocol", "hpatches")
    assert "fault of the harness" not in err
