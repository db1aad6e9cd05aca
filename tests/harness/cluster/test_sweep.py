"""Trainings by workers: the same weights as from one process, also if workers are killed."""

import json
import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from threading import Thread

import pytest
import torch
from clusters import scheduler
from distributed import LocalCluster

from harness.cluster import sweep, token
from harness.cluster.token import UnfitWorkerError
from harness.files import locks
from harness.reproduce import trainings
from harness.reproduce.attempt import attempt
from harness.reproduce.trainings import CARD, WEIGHTS, Training
from protocols.phototour.sample import sample

RECIPE = """
epochs = 4
steps_per_epoch = 2
held_out = 0
[method]
name = "told_training:Told"
pairs = 16
[network]
name = "small_training:Small"
dropout = 0.2
[optimiser]
lr = 0.05
"""
STARTED = ("network.name=told_training:Started",)


@pytest.fixture
def told(tmp_path, monkeypatch):
    monkeypatch.setenv("TOLD", str(tmp_path / "told"))
    return tmp_path / "told"


@pytest.fixture
def training(tmp_path, told):
    (tmp_path / "small.toml").write_text(RECIPE)
    return Training(
        str(tmp_path / "small.toml"), ("checkpoints.every=1",), (sample() / "astronaut",), "float32"
    )


def weights(training, out):
    return (training.folder(out) / WEIGHTS).read_bytes()


@pytest.fixture
def alone(training, tmp_path):
    """The weights of one process."""
    trainings.train(training, tmp_path / "alone", "cpu")
    return weights(training, tmp_path / "alone")


@contextmanager
def asked(out, threads=None):
    with token.placed(out / sweep.TOKENS) as name:
        yield sweep.Work(out, "cpu", threads or torch.get_num_threads(), name)


def test_a_killed_worker_of_another_address_loses_nothing(training, alone, told, tmp_path):
    out, steps = tmp_path / "many", 8
    told.unlink()
    environment = {"SLOW": "0.2", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with scheduler(tmp_path, 2, **environment) as (address, workers):

        def kill():
            while not (training.folder(out) / "checkpoint.pt").is_file():
                time.sleep(0.02)
            (victim,) = (one for one in workers if one.pid == int(told.read_text().split()[0]))
            victim.send_signal(signal.SIGKILL)

        killer = Thread(target=kill)
        killer.start()
        errors = []
        sweep.train_all([training], out, "cpu", lambda *end: errors.append(end), scheduler=address)
        killer.join()
    assert errors == [(training, None)]
    _, second = dict.fromkeys(told.read_text().split())
    assert told.read_text().split().count(second) < steps  # it went on, and did not begin again
    assert weights(training, out) == alone
    assert not list((out / sweep.TOKENS).iterdir())


def test_errors_are_those_of_one_process_and_the_other_trainings_go_on(training, tmp_path):
    broken = replace(training, settings=("optimiser.lr=1e30",))
    wanted = [training, broken]
    wanted += [replace(one, settings=STARTED, start=one) for one in wanted]
    serial = [attempt(trainings.train, one, tmp_path / "one", "cpu") for one in wanted]
    assert [error is None for error in serial] == [True, False, True, False]
    found = {}
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
    ) as c:
        sweep.train_all(
            wanted, tmp_path / "many", "cpu",
            lambda one, error: found.update({one: error}), scheduler=c.scheduler_address,
        )  # fmt: skip
    assert found == dict(zip(wanted, serial, strict=True))
    for one in (wanted[0], wanted[2]):
        assert weights(one, tmp_path / "many") == weights(one, tmp_path / "one")


def test_a_worker_trains_with_the_threads_that_are_asked_for(training, tmp_path):
    before = torch.get_num_threads()
    with asked(tmp_path / "out", threads=before + 1) as work:
        assert sweep.train(work, training, training.key) is None
    card = json.loads((training.folder(tmp_path / "out") / CARD).read_text())
    assert f" {before + 1} threads" in card["machine"]
    assert torch.get_num_threads() == before


def test_a_training_stops_when_nobody_waits_for_it_and_goes_on_later(
    training, alone, told, tmp_path, monkeypatch
):
    told.unlink()
    out = tmp_path / "out"
    monkeypatch.setenv("TOKENS", str(out / sweep.TOKENS))
    monkeypatch.setenv("STOP", "3")
    with asked(out) as work:
        assert sweep.train(work, training, training.key) is None
    assert len(told.read_text().splitlines()) == 3 and not training.is_done(out)
    with asked(out) as work:
        assert sweep.train(work, training, training.key) is None
    assert len(told.read_text().splitlines()) == 8
    assert weights(training, out) == alone


def test_a_folder_in_which_another_process_trains_is_waited_for(
    training, alone, told, tmp_path, monkeypatch
):
    told.unlink()
    monkeypatch.setattr(sweep, "PAUSE", 0.01)
    out = tmp_path / "out"
    training.folder(out).mkdir(parents=True)
    with asked(out) as work, ThreadPoolExecutor(1) as pool:
        with locks.alone(training.folder(out) / ".lock"):
            unit = pool.submit(sweep.train, work, training, training.key)
            time.sleep(0.3)
            assert not unit.done() and not told.exists()
        assert unit.result() is None
    assert weights(training, out) == alone


def test_a_worker_without_the_folder_is_refused(training, tmp_path):
    with asked(tmp_path / "out") as work:
        for other, message in (
            (replace(work, out=tmp_path / "elsewhere"), "does not see the folder .*elsewhere"),
            (replace(work, version="0.0"), "of the harness, not 0.0: install the same"),
        ):
            with pytest.raises(UnfitWorkerError, match=message):
                sweep.train(other, training, training.key)


def test_a_worker_with_other_data_or_another_recipe_ends_the_command(training, tmp_path):
    with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
    ) as c:
        for wrong, message in (
            (replace(training, data=(tmp_path / "nowhere",)), "can't open the training data"),
            (replace(training, recipe=str(tmp_path / "other.toml")), "has other training data"),
        ):
            (tmp_path / "other.toml").write_text(RECIPE.replace("0.05", "0.06"))
            wrong.__dict__["key"] = training.key  # of the process that asks
            with pytest.raises(UnfitWorkerError, match=message):
                sweep.train_all(
                    [wrong], tmp_path / "out", "cpu", print, scheduler=c.scheduler_address
                )
    assert not list((tmp_path / "out").glob("trainings/*"))
