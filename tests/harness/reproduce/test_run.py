"""Items are trained and measured once, go on after a kill, and tell what is missing."""

import os
import signal
import subprocess
import sys
import time

import pytest
from toy_papers import ITEM, toy_papers

from harness.reproduce import bench, outcomes, pages, run

pytestmark = pytest.mark.filterwarnings("ignore:.*list m50.*")


def opened(out, **cluster):
    return bench.bench_of("toy", out, None, "cpu", **cluster)


def contents(folder):
    """The outcome, what shows it and the records, by path."""
    files = [*folder.glob("toy/toy/*"), *folder.glob("records/**/*.json")]
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(files)}


def reproduced(out, name="toy/table1", **cluster):
    place = opened(out, **cluster)
    outcome = run.reproduce(name, "toy", place)
    pages.write(outcome, place.budget, out, out)
    return outcome


@pytest.fixture
def papers(tmp_path):
    with toy_papers(tmp_path / "package"):
        yield tmp_path / "package"


@pytest.fixture(autouse=True)
def package_folder(tmp_path):
    (tmp_path / "package").mkdir()


def test_every_cell_is_measured_once_and_kept(papers, tmp_path):
    out = tmp_path / "out"
    outcome = reproduced(out)
    assert len(outcome.cells) == 6 and not any(one.missing for one in outcome.cells)
    folders = list((out / "trainings").iterdir())
    assert len(folders) == 4  # two recipes on two scenes; the model without training has none
    written = {file: file.stat().st_mtime_ns for file in (out / "trainings").rglob("*")}
    before = contents(out)
    assert reproduced(out) == outcome
    assert contents(out) == before
    assert {file: file.stat().st_mtime_ns for file in (out / "trainings").rglob("*")} == written


def test_items_share_trainings(tmp_path):
    other = ITEM.replace("A small table", "Another table")
    with toy_papers(tmp_path / "package", table1=ITEM, table2=other):
        out = tmp_path / "out"
        reproduced(out)
        count = len(list((out / "trainings").iterdir()))
        reproduced(out, "toy/table2")
        assert len(list((out / "trainings").iterdir())) == count


def test_the_seed_the_settings_and_the_data_make_another_training(papers, tmp_path):
    plans = run.plan("toy/table1", "toy", opened(tmp_path))
    assert len({one.key for one in plans}) == len(plans) == 4


def test_a_cell_that_fails_is_missing_and_never_averaged_over(tmp_path):
    broken = ITEM.replace("optimiser.lr=0.1", "optimiser.lr=1e30")
    with toy_papers(tmp_path / "package", table1=broken):
        out = tmp_path / "out"
        outcome = reproduced(out)
        failed = [one for one in outcome.cells if one.missing]
        assert {one.at["method"] for one in failed} == {"Fast"} and len(failed) == 2
        assert all(" failed: " in one.missing and one.value is None for one in failed)
        page = (out / "toy" / "toy" / "table1.md").read_text()
        (line,) = [one for one in page.splitlines() if one.startswith("| Fast")]
        assert line == "| Fast | here | — | — | — |"
        assert page.count("- Fast, ") == 2


def test_data_that_are_missing_make_cells_missing(tmp_path):
    with toy_papers(tmp_path / "package", table1=ITEM.replace('["notredame"]', '["nowhere"]')):
        outcome = reproduced(tmp_path / "out")
    missing = [one for one in outcome.cells if one.missing]
    assert {one.at["method"] for one in missing} == {"Small", "Fast"}
    assert all("there are no data nowhere" in one.missing for one in missing)


def test_workers_give_the_bytes_of_one_process(tmp_path):
    broken = ITEM.replace("optimiser.lr=0.1", "optimiser.lr=1e30")
    with toy_papers(tmp_path / "package", table1=broken):
        outcome = reproduced(tmp_path / "one")
        assert reproduced(tmp_path / "many", workers=2) == outcome
    assert len([one for one in outcome.cells if one.missing]) == 2
    assert contents(tmp_path / "many") == contents(tmp_path / "one")


@pytest.mark.skipif(os.name == "nt", reason="no SIGKILL on Windows")
def test_a_run_that_was_killed_goes_on_and_gives_the_same_bytes(papers, tmp_path):
    reproduced(tmp_path / "whole")
    out = tmp_path / "broken"
    code = (
        "import sys; sys.path[:0] = sys.argv[1:3]\n"
        "from pathlib import Path\n"
        "from harness.reproduce import bench, run\n"
        "run.reproduce('toy/table1', 'toy', bench.bench_of('toy', Path(sys.argv[3]), None, 'cpu'))"
    )
    support = next(path for path in sys.path if path.endswith("tests/support"))
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(papers), support, str(out)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 300
    while not list(out.glob("trainings/*/card.json")) and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not outcomes.file_of(out, "toy/table1", "toy").exists()
    reproduced(out)
    assert contents(out) == contents(tmp_path / "whole")
