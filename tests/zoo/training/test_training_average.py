"""Averaged weights: which they are, whose statistics they have, and where they go."""

import io

import numpy as np
import pytest
import torch
from small_training import TABLE, Small, dataset
from torch import nn

from harness.distances import HAMMING
from zoo.training import average, held_out, loop, recipe, state

DECAY = 0.75


def enlarged(patches, side):
    times = side // patches.shape[1]
    return patches.repeat(times, axis=1).repeat(times, axis=2)


def run_of(**changes):
    data, patches = dataset()
    made = recipe.checked(TABLE | changes, "test")
    return loop.prepare(
        made,
        data,
        lambda side: enlarged(patches, side),
        device=torch.device("cpu"),
        precision=torch.float32,
    )


def averaged(**changes):
    return run_of(average={"decay": DECAY}, **changes)


def parameters(network):
    return {name: value.detach().clone() for name, value in network.named_parameters()}


def test_the_average_is_that_of_the_weights_of_all_steps(tmp_path):
    run = averaged()
    found = parameters(run.network)
    for seen in loop.train(run, tmp_path):
        if seen.step:
            keep = min(DECAY, seen.step / (9 + seen.step))  # seen.step counts from 1
            present = parameters(run.network)
            found = {name: keep * x + (1 - keep) * present[name] for name, x in found.items()}
    for name, value in run.result.named_parameters():
        torch.testing.assert_close(value, found[name])
        assert not torch.equal(value, run.network.get_parameter(name))


@pytest.mark.parametrize(("step", "share"), [(0, 0.1), (1, 2 / 11), (90, 0.91), (9000, 0.999)])
def test_the_first_steps_are_forgotten_sooner(step, share):
    assert average.kept_share(0.999, step) == pytest.approx(share, abs=1e-3)


def test_averaging_changes_nothing_in_the_training_itself(tmp_path):
    runs = run_of(), averaged()
    losses = [
        [seen.loss for seen in loop.train(run, tmp_path / str(i))] for i, run in enumerate(runs)
    ]
    assert losses[0] == losses[1]
    one, other = (run.network.state_dict() for run in runs)
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_the_averaged_network_of_binary_codes_gives_packed_bits(tmp_path):
    run = averaged(
        method={"name": "doap-binary", "patches": 32},
        network={"name": "doap", "binary": True},
        epochs=1,
    )
    seen = [each.fpr95 for each in loop.train(run, tmp_path) if each.fpr95 is not None]
    assert seen and all(0 <= error <= 1 for error in seen)
    assert run.result.distance is HAMMING


def statistics(network, batches):
    """Means over the batches of the mean and the variance of each normalised layer's inputs."""
    seen = {}
    for name, module in network.named_modules():
        if isinstance(module, nn.BatchNorm2d):
            seen[name] = []
            module.register_forward_pre_hook(
                lambda _, given, to=seen[name]: to.append(torch.var_mean(given[0], (0, 2, 3)))
            )
    with torch.no_grad():
        for patches in batches:
            network.train()(patches)
    return {
        name: tuple(torch.stack(one).mean(0) for one in zip(*each, strict=True))
        for name, each in seen.items()
    }


def test_the_averaged_network_has_the_statistics_of_its_own_weights(tmp_path):
    run = averaged(network={"name": "small_training:Small", "dropout": 0.0})
    batches = []
    taken = loop.shown

    def noted(*given):
        batches.append(taken(*given))
        return batches[-1]

    for seen in loop.train(run, tmp_path):
        last = seen.step == run.recipe.steps
    assert last
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "shown", noted)
        loop.settle(run, run.recipe.steps)
    assert len(batches) == run.recipe.steps < average.BATCHES
    twin = Small()
    twin.load_state_dict(run.result.state_dict())
    for name, (variance, mean) in statistics(twin, batches).items():
        layer = run.result.get_submodule(name)
        torch.testing.assert_close(layer.running_mean, mean, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(layer.running_var, variance, rtol=1e-4, atol=1e-5)
        assert layer.momentum == 0.1 and layer.num_batches_tracked == run.recipe.steps


def test_the_statistics_do_not_depend_on_how_often_they_were_measured(tmp_path):
    found = []
    for every in (None, 1):
        run = averaged(checkpoints={"every": every})
        list(loop.train(run, tmp_path / str(every)))
        found.append(run.result.state_dict())
    assert all(torch.equal(found[0][name], found[1][name]) for name in found[0])


class HalfFrozen(nn.Module):
    def __init__(self):
        super().__init__()
        self.frozen, self.other = nn.BatchNorm2d(3), nn.BatchNorm2d(3)

    def train(self, mode=True):
        super().train(mode)
        self.frozen.eval()
        return self

    def forward(self, x):
        return self.other(self.frozen(x))


def test_a_layer_in_evaluation_mode_keeps_the_statistics_of_the_network():
    network, copy = HalfFrozen(), HalfFrozen()
    network.frozen.running_mean.fill_(5.0)
    average.settle(copy, network, copy, [torch.randn(40, 3, 2, 2) + 7])
    assert torch.equal(copy.frozen.running_mean, torch.full((3,), 5.0))
    torch.testing.assert_close(copy.other.running_mean, torch.full((3,), 2.0), rtol=0, atol=0.5)


def test_the_averaged_network_is_validated(tmp_path):
    run = averaged()
    *_, last = loop.train(run, tmp_path)
    rows = np.concatenate([run.split.a, run.split.b])
    errors = [
        held_out.fpr95(held_out.vectors(one, run.patches[rows], run.device), one.distance)
        for one in (run.network, run.result)
    ]
    assert last.fpr95 == errors[1] != errors[0]


def contents(folder):
    return torch.load(
        io.BytesIO(state._parts((folder / state.FILE).read_bytes())[2]), weights_only=True
    )


def test_without_an_average_states_and_identities_are_those_of_before(tmp_path):
    run = run_of()
    list(loop.train(run, tmp_path))
    assert run.result is run.network
    assert [*contents(tmp_path)] == [
        "network", "method", "optimiser", "step", "seconds", "origin",
    ]  # fmt: skip
    assert "average" not in recipe.identity(run.recipe)
    assert recipe.identity(averaged().recipe)["average"] == {"decay": DECAY}


def test_a_state_without_the_average_is_not_resumed_with_one(tmp_path):
    list(loop.train(run_of(), tmp_path, stop=lambda: True))
    with pytest.raises(ValueError, match="another recipe"):
        list(loop.train(averaged(), tmp_path, resume=True))
