"""The loop itself, on a small network, a small set and a small method."""

import io
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from hpatches_files import write_set
from small_training import EACH, POINTS, TABLE, dataset

from harness import Block, Dataset
from harness.data import training_sets
from protocols.romepatches import sample as romepatches
from zoo import doap_mining
from zoo.training import held_out, loop, recipe, state
from zoo.training.patches import stored

ON_CPU = {"device": torch.device("cpu"), "precision": torch.float32}


@pytest.fixture
def small():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # nothing here is worth sharing
    yield
    torch.set_num_threads(threads)


def run_of(table=TABLE, **changes):
    data, patches = dataset()
    made = recipe.checked(table | changes, "test")
    return loop.prepare(
        made, data, lambda side: patches, device=torch.device("cpu"), precision=torch.float32
    )


def weights(run):
    return {name: value.clone() for name, value in run.network.state_dict().items()}


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def test_training_lowers_the_loss_and_the_held_out_error(small, tmp_path):
    run = run_of(epochs=20)
    seen = list(loop.train(run, tmp_path))
    losses = [one.loss for one in seen if one.loss is not None]
    assert np.mean(losses[-5:]) < np.mean(losses[:5])
    errors = [one.fpr95 for one in seen if one.fpr95 is not None]
    assert errors[-1] < errors[0]


def test_the_same_recipe_gives_the_same_weights_and_another_seed_others(small, tmp_path):
    found = []
    for i, seed in enumerate((0, 0, 1)):
        run = run_of(seed=seed)
        list(loop.train(run, tmp_path / str(i)))
        found.append(weights(run))
    assert same(found[0], found[1])
    assert not same(found[0], found[2])


AVERAGED = {"average": {"decay": 0.9}}
plain_and_averaged = pytest.mark.parametrize("changes", [{}, AVERAGED], ids=["last", "averaged"])


@plain_and_averaged
@pytest.mark.parametrize("after", [1, 5, 11])
def test_a_stopped_training_resumes_to_the_same_weights(small, tmp_path, after, changes):
    whole = run_of(**changes)
    list(loop.train(whole, tmp_path / "whole"))
    broken = run_of(**changes)
    steps = iter(range(1, 99))
    list(loop.train(broken, tmp_path / "broken", stop=lambda: next(steps) == after))
    resumed = run_of(**changes)
    seen = list(loop.train(resumed, tmp_path / "broken", resume=True))
    assert [one.step for one in seen] == list(range(after + 1, 13))
    assert same(weights(whole), weights(resumed))
    assert same(whole.result.state_dict(), resumed.result.state_dict())
    assert same(dict(whole.method.state_dict()), dict(resumed.method.state_dict()))


def one_of_two(rank, folder):
    store = dist.FileStore(f"{folder}/store", 2)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=2)
    run = run_of()
    asked_to_stop = rank == 1
    seen = list(loop.train(run, Path(folder), stop=lambda: asked_to_stop))
    Path(folder, f"{rank}.txt").write_text(str(seen[-1].step))
    dist.destroy_process_group()


def test_of_two_processes_both_stop_where_one_is_asked_to(tmp_path):
    mp.spawn(one_of_two, (str(tmp_path),), nprocs=2)
    assert [(tmp_path / f"{rank}.txt").read_text() for rank in range(2)] == ["1", "1"]
    assert (tmp_path / state.FILE).is_file()


@plain_and_averaged
def test_a_killed_training_resumes_from_the_last_kept_state(small, tmp_path, changes):
    whole = run_of(**changes)
    list(loop.train(whole, tmp_path / "whole"))
    killed = loop.train(run_of(**changes), tmp_path / "killed", keep_every=0)
    for _ in range(7):  # before the first step, and after six, of which the last is not kept
        next(killed)
    del killed  # nothing is done on the way out
    resumed = run_of(**changes)
    seen = list(loop.train(resumed, tmp_path / "killed", resume=True))
    assert seen[0].step == 6
    assert same(weights(whole), weights(resumed))
    assert same(whole.result.state_dict(), resumed.result.state_dict())


def test_a_finished_averaged_training_resumes_to_its_weights(small, tmp_path):
    whole, again = run_of(**AVERAGED), run_of(**AVERAGED)
    *_, last = loop.train(whole, tmp_path)
    (seen,) = loop.train(again, tmp_path, resume=True)
    assert (seen.step, seen.fpr95) == (last.step, last.fpr95)
    assert same(whole.result.state_dict(), again.result.state_dict())


def test_a_state_of_another_recipe_or_of_nothing_is_refused(small, tmp_path):
    with pytest.raises(FileNotFoundError, match="leave out --resume"):
        list(loop.train(run_of(), tmp_path, resume=True))
    list(loop.train(run_of(), tmp_path))
    with pytest.raises(ValueError, match="another recipe"):
        list(loop.train(run_of(seed=1), tmp_path, resume=True))
    (tmp_path / state.FILE).write_bytes(b"broken")
    with pytest.raises(ValueError, match=r"checkpoint\.pt is damaged .* train again"):
        list(loop.train(run_of(), tmp_path, resume=True))


def test_a_loss_that_is_not_finite_stops_and_keeps_the_state(small, tmp_path):
    run = run_of(epochs=2)
    training = loop.train(run, tmp_path, keep_every=0)
    while next(training).step < 2:
        pass
    with torch.no_grad():
        run.method.margin.fill_(float("nan"))
    with pytest.raises(RuntimeError, match="step 2: the loss is nan: train again with a smaller"):
        list(training)
    _, _, contents = state._parts((tmp_path / state.FILE).read_bytes())
    assert torch.load(io.BytesIO(contents), weights_only=True)["step"] == 2


def test_no_state_with_a_flipped_bit_is_resumed_from(small, tmp_path):
    run = run_of(epochs=1)
    list(loop.train(run, tmp_path))
    file = tmp_path / state.FILE
    whole = file.read_bytes()
    of = state.Trained(run.network, run.method, loop.optimiser_of(run))
    drawn = np.random.default_rng(0).choice(8 * len(whole), 200, replace=False)
    for bit in [*drawn, *range(8 * len(state.MARK))]:
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        file.write_bytes(changed)
        with pytest.raises(ValueError, match=r"checkpoint\.pt is damaged"):
            state.load(tmp_path, of, origin="any")


def test_a_step_is_told_before_its_state_is_kept(small, tmp_path):
    training = loop.train(run_of(), tmp_path, keep_every=0)
    assert next(training).step == 0 and next(training).step == 1
    assert not (tmp_path / state.FILE).exists()  # a kill here costs the step, not its line
    next(training)
    assert (tmp_path / state.FILE).is_file()


def test_points_with_one_patch_are_left_out_and_counted(small, tmp_path, caplog):
    data, patches = dataset()
    whole = run_of().split.train
    alone = np.unique(data.point[whole])[[3, 8]]
    first = np.diff(data.point, prepend=-1) > 0
    rows = np.flatnonzero(~np.isin(data.point, alone) | first)
    patches = patches[rows]
    block = Block("all", len(rows), "toy", lambda: patches)
    data = Dataset("toy", "", (block,), data.point[rows], data.image[rows])
    settings = ["epochs=4", "steps_per_epoch=3", "held_out=0.5", "method.pairs=16"]
    made = recipe.read("hardnet", [*settings, "network.name=small_training:Small"], ["toy"])
    run = loop.prepare(made, data, lambda side: patches, **ON_CPU)
    assert "2 of 60 points have one patch and give no matching pair: they are left out" in (
        caplog.text
    )
    drawn = {p for step in range(50) for p in data.point[run.sampler(step).rows].tolist()}
    assert len(drawn) == 58 and not drawn & set(alone.tolist())
    assert [one.patches for one in loop.train(run, tmp_path)][1:] == [32] * 12


def test_no_held_out_point_is_trained_on(small, tmp_path):
    run = run_of()
    held = {*run.dataset.point[run.split.a], *run.dataset.point[run.split.b]}
    drawn = {p for step in range(50) for p in run.dataset.point[run.sampler(step).rows]}
    assert drawn and not held & drawn
    assert not np.isin(run.dataset.image[run.split.train], run.dataset.image[run.split.a]).any()


def test_with_nothing_held_out_all_is_trained_on_and_no_error_is_told(small, tmp_path, caplog):
    caplog.set_level("INFO", "zoo.training.loop")
    run = run_of(held_out=0)
    assert "training uses all points, so no held-out error is shown" in caplog.text
    assert len(run.split.train) == POINTS * EACH
    seen = list(loop.train(run, tmp_path))
    assert [one.step for one in seen] == list(range(13))
    assert all(one.fpr95 is None for one in seen)
    drawn = {p for step in range(200) for p in run.dataset.point[run.sampler(step).rows]}
    assert drawn == set(range(POINTS))


def kept_weights(run, into):
    def keep(seen):
        into[seen.step] = weights(run)

    return keep


@pytest.mark.parametrize(("every", "steps"), [(1, [3, 6, 9, 12]), (2, [6, 12]), (3, [9])])
def test_weights_are_kept_after_every_so_many_epochs(small, tmp_path, every, steps):
    found = {}
    run = run_of(checkpoints={"every": every}, schedule={"name": "constant"})
    list(loop.train(run, tmp_path / "whole", keep_weights=kept_weights(run, found)))
    assert list(found) == steps
    for step, own in found.items():
        short = run_of(epochs=step // 3, schedule={"name": "constant"})
        list(loop.train(short, tmp_path / str(step)))
        assert same(own, weights(short))


def test_no_weights_are_kept_unless_asked_for(small, tmp_path):
    list(loop.train(run_of(), tmp_path, keep_weights=pytest.fail))


@pytest.mark.parametrize("before", [2, 3, 4, 5, 8])
def test_a_killed_training_keeps_the_weights_of_every_epoch(small, tmp_path, before):
    whole, found = {}, {}
    run = run_of(checkpoints={"every": 1})
    list(loop.train(run, tmp_path / "whole", keep_weights=kept_weights(run, whole)))
    run = run_of(checkpoints={"every": 1})
    killed = loop.train(
        run, tmp_path / "killed", keep_every=0, keep_weights=kept_weights(run, found)
    )
    for _ in range(1 + before):
        next(killed)
    del killed
    again = run_of(checkpoints={"every": 1})
    keep = kept_weights(again, found)
    list(loop.train(again, tmp_path / "killed", resume=True, keep_weights=keep))
    assert list(found) == list(whole) == [3, 6, 9, 12]
    assert all(same(whole[step], found[step]) for step in whole)


# --- recipes of DOAP on data of their own kinds


@pytest.fixture
def sequences(tmp_path, monkeypatch):
    """HPatches' form: four sequences to train on; few patches, so few clusters."""
    monkeypatch.setattr(doap_mining, "CLUSTERS", 4)
    lengths = {"i_one": 8, "i_two": 8, "v_one": 8, "v_two": 8, "v_test": 2}
    splits = {"a": {"name": "a", "test": ["v_test"], "train": list(lengths)[:4]}}
    return write_set(tmp_path, lengths, size=16, splits=splits)


@pytest.mark.parametrize(("name", "patches"), [("doap-hpatches", 96), ("doap-rome", 30)])
def test_recipes_of_doap_train_on_their_data(
    small, sequences, tmp_path, monkeypatch, name, patches
):
    monkeypatch.setattr(held_out, "FEWEST", 5)
    folder = str(sequences if name == "doap-hpatches" else romepatches.sample())
    settings = ["epochs=1", "steps_per_epoch=3", 'schedule={name="constant"}', "held_out=0.25"]
    settings += [f"method.patches={patches}", "network.name=small_training:Small"]
    data = training_sets.open_set(folder)
    run = loop.prepare(
        recipe.read(name, settings, [folder]), data, lambda side: stored(data, side), **ON_CPU
    )
    seen = list(loop.train(run, tmp_path))
    assert [one.patches for one in seen] == [0, patches, patches, patches]
    assert all(0 < one.loss < 1 for one in seen[1:])


# --- methods and networks that don't fit each other


def test_every_recipe_has_a_network_that_fits_its_method():
    for name in recipe.names():
        made = recipe.read(name)
        loop.must_fit(
            made, recipe.make("network", made.network), recipe.make("method", made.method)
        )


@pytest.mark.parametrize(
    ("name", "setting", "told"),
    [
        ("doap-binary", "network.binary=false", "network.binary=true"),
        ("doap-binary", 'network={name="l2net-mean-image", binary=true}', "'l2net-mean-image'"),
        ("doap-binary", 'network={name="l2net"}', "'doap-binary'.*'l2net'"),
        ("doap", "network.binary=true", "network.binary=false"),
        ("doap-st", "network.binary=true", "'doap'.*'doap-st'"),
        ("hardnet", 'network={name="doap", dropout=0.1, binary=true}', "'hardnet'.*'doap'"),
    ],
)
def test_codes_and_vectors_are_not_trained_for_each_other(name, setting, told):
    data, _ = dataset()
    unread = []
    with pytest.raises(ValueError, match=told):
        loop.prepare(recipe.read(name, [setting]), data, unread.append, **ON_CPU)
    assert not unread
