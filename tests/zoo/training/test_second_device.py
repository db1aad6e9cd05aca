"""Trainings on a second device: the CPU's losses, no tensor of two devices, and nothing waited for.

The device is `second_device`, in a process of its own for each test.
"""

import math
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
import second_device
import torch
from small_training import TABLE, dataset
from test_recipes_step import EVERY, l2net_weights, patches, settings
from test_recipes_step import dataset as toy_dataset

from zoo.training import loop, recipe, state

CPU = torch.device("cpu")
STEPS = 2


def alone(function, *arguments):
    """What a function returns in a process of its own."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def registered():
    torch.set_num_threads(1)
    return second_device.register()


# --- the device itself


def of_the_device():
    device = registered()
    x = torch.arange(6.0).view(2, 3).to(device)
    errors = []
    for mixed in (
        lambda: x + torch.ones(2, 3),
        lambda: x[torch.tensor([0])],
        lambda: torch.cat([x, torch.ones(1, 3)]),
        lambda: x.index_add_(0, torch.tensor([0]), torch.ones(1, 3)),
    ):
        try:
            mixed()
        except RuntimeError as error:
            errors.append(str(error))
    with second_device.counted() as waits:
        float(x.sum())
        x[x > 2]
        x.nonzero()
        x.unique()
        x.cpu()
        torch.ones(2).to(device)
        bool(x[0, 0] == 0)
        torch.ones(2).to(device, non_blocking=True)
        x[torch.zeros(1, dtype=torch.int64, device="cpu").to(device, non_blocking=True)]
        x.masked_fill_(x > 2, 0.0).clamp_(min=1).sum(dim=1)
    view = x.T[1:]
    view += 10
    strides = torch.empty(2, 3, 4, 5, device=device).to(memory_format=torch.channels_last).stride()
    kinds = Counter(name.rpartition(" ")[0] for name in waits.elements())
    return errors, dict(kinds), x.tolist(), strides


def test_the_device_refuses_tensors_of_two_devices_and_counts_waits():
    errors, kinds, x, strides = alone(of_the_device)
    assert len(errors) == 4 and all("device" in error for error in errors)
    assert kinds == {
        "_local_scalar_dense": 2,
        "nonzero": 3,  # once for itself, twice for the mask: for the size, and for the places
        "_unique2": 1,
        "to the CPU": 1,
        "to the device": 1,
    }
    assert x == [[1, 11, 12], [1, 11, 11]]
    assert strides == (60, 1, 15, 3)


# --- every recipe


def steps_of(name, more, device):
    """Losses, and waits after the first step, which may bring something to the device."""
    read = recipe.read(name, [*settings(name), *more], ["toy"])
    run = loop.prepare(read, toy_dataset(), patches, device=device, precision=torch.float32)
    run.network.train()
    run.method.train()
    optimiser = loop.optimiser_of(run)
    losses, waits = [], Counter()
    for step, (_, selected, shown) in zip(range(STEPS), loop.fed(run, 0), strict=False):
        with second_device.counted() as counted:
            losses.append(loop.update(run, optimiser, step, selected, shown)[0])
        if step:
            waits.update(counted)
    devices = {x.device.type for x in [*run.network.state_dict().values(), *losses]}
    return [float(loss) for loss in losses], dict(waits), devices


def on_both(names, more, folder):
    device = registered()
    start = [f"network.start={l2net_weights(folder)}"]
    found = {}
    for name in names:
        options = [*more, *(start if name == "l2net-cs" else [])]
        found[name] = steps_of(name, options, CPU), steps_of(name, options, device)
    return found


GROUPS = [
    *((EVERY[i::4], ()) for i in range(4)),
    (["mixed-context"], ("method.context=estimated",)),
    (["sosnet"], ("method.neighbourhood=paper", "network.dropout=0.3")),
]


@pytest.mark.parametrize(("names", "more"), GROUPS, ids=lambda one: "-".join(one) or "as-it-is")
def test_every_recipe_has_the_losses_of_the_cpu_and_waits_for_nothing(names, more, tmp_path):
    for name, (cpu, other) in alone(on_both, names, more, tmp_path).items():
        assert other[0] == pytest.approx(cpu[0], rel=1e-6, abs=1e-6), name
        assert len(set(cpu[0])) == STEPS, name
        assert other[1] == {}, name
        assert other[2] == {second_device.NAME}, name


# --- the loop


def run_of(device, **changes):
    data, shown = dataset()
    made = recipe.checked(TABLE | changes, "test")
    return loop.prepare(made, data, lambda side: shown, device=device, precision=torch.float32)


def told_of(run, folder, **options):
    return list(loop.train(run, Path(folder), **options))


def whole_and_resumed(folder):
    device = registered()
    cpu = told_of(run_of(CPU, epochs=8), folder / "cpu")
    whole = run_of(device, epochs=8)
    with second_device.counted() as waits:
        told = told_of(whole, folder / "whole")
    broken = run_of(device, epochs=8)
    stops = iter([False, True])
    before = told_of(broken, folder / "broken", stop=lambda: next(stops))
    resumed = run_of(device, epochs=8)
    after = told_of(resumed, folder / "broken", resume=True)
    same = all(
        torch.equal(x.cpu(), resumed.network.state_dict()[name].cpu())
        for name, x in whole.network.state_dict().items()
    )
    return cpu, told, dict(waits), before, after, same


def test_losses_are_read_some_steps_at_a_time_and_no_step_is_left_out(tmp_path):
    cpu, told, waits, before, after, same = alone(whole_and_resumed, tmp_path)
    assert [one.step for one in told] == list(range(25))
    assert [one.loss for one in told[1:]] == pytest.approx([one.loss for one in cpu[1:]], abs=1e-6)
    assert [one.fpr95 for one in told] == [one.fpr95 for one in cpu]
    assert np.all(np.diff([one.seconds for one in told]) > 0)
    moments = sum(one.fpr95 is not None for one in told[1:])
    assert waits["to the CPU zoo/training/loop.py:_read"] == moments == 8
    assert not [name for name in waits if "update" in name or "augment" in name]
    assert [one.step for one in before + after] == list(range(25))
    assert same


def late_nan(folder):
    device = registered()
    run = run_of(device, epochs=2, steps_per_epoch=30)
    seen = []
    try:
        for one in loop.train(run, folder, keep_every=0):
            seen.append(one.step)
            if one.step == 20:
                with torch.no_grad():
                    run.method.margin.fill_(math.nan)
    except RuntimeError as error:
        _, _, contents = state._parts((folder / state.FILE).read_bytes())
        (folder / "contents").write_bytes(contents)
        kept = torch.load(folder / "contents", weights_only=True)["step"]
        return str(error), seen, kept
    return None


def test_a_loss_that_is_not_finite_is_found_late_and_the_right_step_is_named(tmp_path):
    told, seen, kept = alone(late_nan, tmp_path)
    assert told.startswith("step 20: the loss is nan")
    assert seen == list(range(21)) and kept == 20


def without_room(folder):
    device = registered()
    held = run_of(device)
    torch.second.free = 2 * held.patches.nbytes - 1
    sent = run_of(device)
    same = [told_of(run, folder / str(i))[-1].loss for i, run in enumerate((held, sent))]
    return held.kept is not None, sent.kept is None, same


def test_patches_that_do_not_fit_are_sent_with_each_step(tmp_path):
    held, sent, (first, second) = alone(without_room, tmp_path)
    assert held and sent and first == second


def places_of_steps(folder):
    """Where Adam counts its steps: in a new optimiser and after a resume, fused and not."""
    device = registered()
    found = []
    for fused in (True, None):
        run = run_of(device, optimiser={"name": "adam", "lr": 0.01})
        parameters = list(run.network.parameters())
        made = [torch.optim.Adam(parameters, fused=fused) for _ in range(2)]
        for parameter in parameters:
            parameter.grad = torch.ones_like(parameter)
        made[0].step()
        of = [state.Trained(run.network, run.method, optimiser) for optimiser in made]
        state.save(folder, of[0], step=1, seconds=0.0, origin="x")
        state.load(folder, of[1], origin="x")
        states = [next(iter(one.state_dict()["state"].values())) for one in made]
        found.append([{key: x.device.type for key, x in one.items()} for one in states])
    return found


def test_adam_counts_its_steps_after_a_resume_where_it_did_before(tmp_path):
    (fused, fused_again), (plain, plain_again) = alone(places_of_steps, tmp_path)
    assert plain == plain_again and plain["step"] == "cpu"
    assert fused == fused_again and fused["step"] == second_device.NAME
    assert {plain["exp_avg"], fused["exp_avg"]} == {second_device.NAME}
