"""Evaluation by workers: the same records as from one process, also if workers are killed."""

import os
import shutil
import signal
from contextlib import contextmanager

import pytest
from clusters import processes, scheduler
from hpatches_files import LENGTHS, SPLITS, write_set
from phototour_files import made_scene

import harness
from harness import loading, registry, unfinished
from harness.cluster import fan_out, units
from harness.errors import HarnessError, InputError, SystemRefusedError
from harness.evaluation import export_vectors
from harness.files import home
from harness.parts import worth_apart
from harness.records import record as results
from harness.settings import accepted, options
from protocols.eth import tiles
from protocols.eth.sample import SCENE, sample

SLOW = """
import os, time
from pathlib import Path
import numpy as np
from harness import Descriptor
from harness.distances import L2

def describe(patches):
    if patches.shape[1] not in (32, 64, 65):  # not the made-up patches
        with open(os.environ["TOLD"], "a") as told:
            told.write(f"{os.getpid()}\\n")
        time.sleep(0.2)
    return np.stack([patches.mean((1, 2)), patches.std((1, 2))], axis=1).astype(np.float32)

def slow():
    return Descriptor("slow", describe, L2, dim=2, licence="MIT")
"""


@pytest.fixture
def small(tmp_path):
    return write_set(tmp_path / "small", LENGTHS, splits=SPLITS)


@pytest.fixture
def slow(tmp_path, monkeypatch):
    (tmp_path / "slow.py").write_text(f"HERE = {str(tmp_path)!r}\n{SLOW}")  # own cached vectors
    monkeypatch.setenv("TOLD", str(tmp_path / "told"))
    return f"{tmp_path / 'slow.py'}:slow"


def files(folder):
    return {
        file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*.json")
    }


def test_workers_of_this_machine_write_the_bytes_of_one_process(small, tmp_path):
    models = ["rootsift", "brief", "constant|unit"]
    harness.evaluate(models, "hpatches", data=small, results=tmp_path / "one", cache=False)
    before = dict(os.environ)
    harness.evaluate(models, "hpatches", data=small, results=tmp_path / "many", workers=2)
    assert files(tmp_path / "one") == files(tmp_path / "many")
    assert len(files(tmp_path / "many")) == 9
    assert dict(os.environ) == before  # Dask sets OMP_NUM_THREADS here, too, for its workers


def test_workers_of_this_machine_take_the_units_of_a_gpu():
    with fan_out.connected(1, None, "cuda") as client:
        assert client.submit(int, "3", resources=fan_out.resources("cuda")).result(60) == 3


def test_a_killed_worker_of_another_address_loses_nothing(small, tmp_path, slow, monkeypatch):
    with scheduler(tmp_path, workers=2) as (address, workers):
        victim = workers[0]

        def killing(client, *given):
            for number, outcome in enumerate(outcomes(client, *given)):
                if number == 0:
                    victim.send_signal(signal.SIGKILL)
                yield outcome

        outcomes = fan_out.outcomes
        monkeypatch.setattr(fan_out, "outcomes", killing)
        harness.evaluate(
            ["rootsift", slow], "hpatches", data=small, results=tmp_path / "many",
            scheduler=address,
        )  # fmt: skip
    assert victim.wait() == -signal.SIGKILL
    harness.evaluate(
        ["rootsift", slow], "hpatches", data=small, results=tmp_path / "one", cache=False
    )
    assert files(tmp_path / "one") == files(tmp_path / "many")


def test_without_its_scheduler_an_evaluation_ends_with_one_error_and_continues_later(
    small, tmp_path, slow, monkeypatch, capfd
):
    (tmp_path / "a").mkdir()
    with processes(tmp_path / "a", workers=1) as (address, (lost, _)):

        def killing(client, *given):
            for outcome in outcomes(client, *given):
                yield outcome
                lost.kill()

        outcomes = fan_out.outcomes
        with (
            monkeypatch.context() as patched,
            pytest.raises(SystemRefusedError, match="is lost: start it and its workers again"),
        ):
            patched.setattr(fan_out, "outcomes", killing)
            harness.evaluate(
                ["rootsift", slow], "hpatches", data=small, results=tmp_path / "many",
                scheduler=address,
            )  # fmt: skip
    assert "Traceback" not in capfd.readouterr().err
    (tmp_path / "b").mkdir()
    with scheduler(tmp_path / "b", workers=1) as (address, _):
        harness.evaluate(
            ["rootsift", slow], "hpatches", data=small, results=tmp_path / "many",
            scheduler=address,
        )  # fmt: skip
    harness.evaluate(
        ["rootsift", slow], "hpatches", data=small, results=tmp_path / "one", cache=False
    )
    assert files(tmp_path / "one") == files(tmp_path / "many")


def test_a_worker_with_another_cache_is_refused(small, tmp_path):
    other = str(tmp_path / "another cache")
    with (
        scheduler(tmp_path, 1, HARNESS_CACHE=other) as (address, _),
        pytest.raises(InputError, match=r"another cache .*HARNESS_CACHE"),
    ):
        harness.evaluate("rootsift", "hpatches/matching", data=small, scheduler=address)


@contextmanager
def asked(small, protocol="hpatches/matching"):
    given = loading.of_data({}, small, None)
    with fan_out.shared_work(protocol, given, "cpu", 512) as work:
        yield work, loading.load_protocols(protocol, given)


def test_a_unit_runs_twice_and_its_block_is_described_once(small, tmp_path, slow):
    with asked(small) as (work, (protocol,)):
        blocks = range(len(protocol.dataset.blocks))
        for _ in range(2):
            sizes = [units.describe(work, slow, 0, block) for block in blocks]
        assert sizes == [block.size for block in protocol.dataset.blocks]
        described = (tmp_path / "told").read_text().splitlines()
        assert len(described) == len({block.sha256 for block in protocol.dataset.blocks})
        text, _, pieces = units.finish(work, slow, 0, ())
        assert not pieces
        assert (tmp_path / "told").read_text().splitlines() == described
    (expected,) = harness.evaluate(slow, "hpatches/matching", data=small, cache=False)
    assert text == results.to_json(expected)


class OneByOne:
    """A client whose units run in this process, when their results are wanted."""

    def submit(self, function, *given, **_):
        return Waiting(function, given)

    def cancel(self, _):
        pass


class Waiting:
    def __init__(self, function, given):
        self.function, self.given, self.found = function, given, None

    def result(self):
        if self.found is None:
            self.found = [self.function(*map(value, self.given))]
        return self.found[0]


def value(given):
    if isinstance(given, list):
        return [value(one) for one in given]
    return given.result() if isinstance(given, Waiting) else given


def test_workers_in_another_folder_find_the_paths_of_all_options(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pairs.txt").touch()
    typed = options(settings=["data=scene", "files=new", "pairs=pairs.txt", "ratio=0.9"])
    with fan_out.shared_work("eth", typed, "cpu", 512) as work:
        monkeypatch.chdir("/")
        found = accepted(registry.load("protocols", "eth"), dict(work.options), "eth")
    paths = {name: tmp_path / name for name in ("scene", "new", "pairs.txt")}
    assert found == {
        "data": paths["scene"], "files": paths["new"], "pairs": paths["pairs.txt"], "ratio": 0.9
    }  # fmt: skip


def test_a_worker_with_other_data_is_refused(small, tmp_path):
    other = write_set(
        tmp_path / "other", {name: length + 1 for name, length in LENGTHS.items()}, splits=SPLITS
    )

    with asked(small) as (work, _):
        protocols = loading.load_protocols("hpatches/matching", {"data": other})
        with pytest.raises(InputError, match="give data that all machines share"):
            list(fan_out.outcomes(OneByOne(), work, ["rootsift"], protocols))


def test_what_workers_cannot_do_is_said_before_the_work(small):
    model = harness.load_model("rootsift")
    for given, message in [
        ({"workers": 1, "scheduler": "tcp://127.0.0.1:1"}, "not both"),
        ({"scheduler": "tcp://127.0.0.1:1"}, "no Dask scheduler answers at tcp://127.0.0.1:1"),
        ({"workers": 1, "cache": False}, "the cache"),
    ]:
        with pytest.raises(HarnessError, match=message):
            harness.evaluate("rootsift", "hpatches/matching", data=small, **given)
    with pytest.raises(HarnessError, match="names or paths"):
        harness.evaluate(model, "hpatches/matching", data=small, workers=1)


TOLD = """
import os, time
from harness.plugins import model
from protocols.eth import tiles

tiles.SIDE = 1  # a unit for each pair of the five images
if not hasattr(tiles, "plain"):
    tiles.plain = tiles.match

def match(*given):
    with open(os.environ["TOLD"], "a") as told:
        told.write(f"{os.getpid()}\\n")
    time.sleep(0.3)
    return tiles.plain(*given)

tiles.match = match

def told():
    return model("brief")
"""


@pytest.fixture
def matching(tmp_path, monkeypatch):
    """A model whose file makes matching tell who does it, in units of one pair."""
    for name in ("SIDE", "match"):
        monkeypatch.setattr(tiles, name, getattr(tiles, name))  # so that they are put back
    (tmp_path / "told.py").write_text(TOLD)
    monkeypatch.setenv("TOLD", str(tmp_path / "who"))
    return f"{tmp_path / 'told.py'}:told"


@pytest.fixture
def two_rooms(tmp_path):
    """Two scenes of five images each; one has the images of the other, in another order."""
    folder = shutil.copytree(sample(), tmp_path / "rooms")
    (folder / "dataset.json").unlink()
    other = shutil.copytree(folder / SCENE, folder / "attic")
    for part in ("images", "keypoints", "points", "gt_dense_cameras"):
        for file in sorted((other / part).iterdir()):
            file.rename(file.with_name(f"{9 - int(file.name[:4]):04}{file.name[4:]}"))
    return folder


def left(kind):
    return [*home.cache(kind).rglob("*.entry")]


@pytest.mark.parametrize(
    "options",
    [
        {},  # each scene is scored alone
        {"pairs": "retrieval", "neighbours": 2, "repeats": 2},  # which scenes can't be
    ],
)
def test_pairs_of_images_fan_out_and_a_killed_worker_loses_nothing(
    two_rooms, tmp_path, matching, monkeypatch, options
):
    who, killed = tmp_path / "who", []
    with scheduler(tmp_path, workers=2) as (address, workers):

        def killing(client, work, models, protocols, done, scored):
            def count(units):
                scored(units)
                if not killed and who.exists():  # in the middle: pairs are being matched
                    first = int(who.read_text().split()[0])
                    killed.extend(process for process in workers if process.pid == first)
                    killed[0].send_signal(signal.SIGKILL)

            yield from outcomes(client, work, models, protocols, done, count)

        outcomes = fan_out.outcomes
        monkeypatch.setattr(fan_out, "outcomes", killing)
        harness.evaluate(
            matching, "eth", data=two_rooms, results=tmp_path / "many", scheduler=address, **options
        )
    assert killed[0].wait() == -signal.SIGKILL
    assert len(set(who.read_text().split())) == 2
    assert not left("matches") and not left("scores")
    harness.evaluate(matching, "eth", data=two_rooms, results=tmp_path / "one", **options)
    assert files(tmp_path / "one") == files(tmp_path / "many")
    assert not left("matches")


def test_parts_that_were_scored_are_not_scored_again(small, monkeypatch):
    with asked(small) as (work, (protocol,)):
        names = protocol.parts.names
        for name in names:
            units.score_part(work, "rootsift", 0, name)
        with monkeypatch.context() as patched:
            patched.setattr(units.evaluation, "describe", None)
            text, _, pieces = units.finish(work, "rootsift", 0, names)
        assert len(left("scores")) == len(pieces) == len(names)
        unfinished.remove(pieces)
        assert not left("scores")
    (expected,) = harness.evaluate("rootsift", "hpatches/matching", data=small)
    assert text == results.to_json(expected)


TRAINED = """
from dataclasses import replace
from harness.plugins import model

def on_one():
    return replace(model("brief"), name="on-one", trained_on=frozenset({"phototour/liberty"}))
"""


def test_models_that_cannot_be_scored_in_parts_are_scored_as_a_whole(small, tmp_path):
    scenes = tmp_path / "scenes"
    for seed, name in enumerate(("liberty", "notredame", "yosemite")):
        made_scene(scenes / name, 60, seed=seed)
    (tmp_path / "trained.py").write_text(TRAINED)
    described = tmp_path / "vectors"
    (protocol,) = loading.load_protocols("hpatches/matching", {"data": small})
    export_vectors(harness.load_model("rootsift"), protocol.dataset, described)
    for model, name, data, refused in (
        (f"{tmp_path / 'trained.py'}:on_one", "phototour", scenes, ["liberty"]),
        (str(described), "hpatches/matching", small, []),
    ):
        (expected,) = harness.evaluate(model, name, data=data, cache=False)
        assert list(expected.data.refused) == refused
        with asked(data, name) as (work, protocols):
            assert worth_apart(protocols[0])
            (outcome,) = fan_out.outcomes(OneByOne(), work, [model], protocols)
        record, _ = outcome.result()
        assert results.to_json(record) == results.to_json(expected)
        assert not outcome.pieces
