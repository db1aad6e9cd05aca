import gzip
import runpy
import sys

import numpy as np
import pytest
import torch
from checkout import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st

from zoo.mixed_context import (
    BNNet,
    MeanDeviationL2Net,
    MixedContext,
    average_patch,
    best_threshold,
    log_loss,
    mixed_context,
    sse_loss,
)
from zoo.training.describe import Described
from zoo.training.groups import Groups
from zoo.training.method import Batch

EXAMPLE = ROOT / "examples" / "mnist_mixed_context.py"

rng = torch.Generator().manual_seed(0)
MATCH = 2 * torch.rand(50, generator=rng, dtype=torch.float64)
NEGATIVE = 2 * torch.rand(50, generator=rng, dtype=torch.float64)
RHO = torch.linspace(-2, 2, 81, dtype=torch.float64)

both = pytest.mark.parametrize("loss", ["log", "sse"])
LOSSES = {"log": log_loss, "sse": sse_loss}


def slope(loss, rho, **settings):
    rho = rho.clone().requires_grad_()
    loss(rho, **settings).sum().backward()
    return rho.grad


@both
@pytest.mark.parametrize("theta", [0.5, 1.15])
def test_of_gamma_one_it_is_the_triplet_loss(loss, theta):
    settings = {"alpha": 0.1, "delta": 5.0}
    found = mixed_context(MATCH, NEGATIVE, theta, gamma=1, loss=loss, **settings)
    torch.testing.assert_close(found, LOSSES[loss](NEGATIVE - MATCH, **settings))


@both
def test_of_gamma_zero_matches_and_negatives_know_nothing_of_each_other(loss):
    settings = {"gamma": 0, "alpha": 0.1, "delta": 5.0, "loss": loss}
    crossed = mixed_context(MATCH, NEGATIVE.flip(0), 1.15, **settings).sum()
    torch.testing.assert_close(mixed_context(MATCH, NEGATIVE, 1.15, **settings).sum(), crossed)
    match = 1 / 2 * LOSSES[loss](2 * (1.15 - MATCH), alpha=0.1, delta=5.0)
    negative = 1 / 2 * LOSSES[loss](2 * (NEGATIVE - 1.15), alpha=0.1, delta=5.0)
    torch.testing.assert_close(mixed_context(MATCH, NEGATIVE, 1.15, **settings), match + negative)


def test_it_is_equation_25():
    theta = 0.5 * (MATCH + NEGATIVE) / 2 + 0.5 * 1.15

    def log_smax(x):
        return (x.exp() / (x.exp() + 1)).log()

    expected = -1 / 10 * log_smax(10 * (theta - MATCH)) - 1 / 10 * log_smax(10 * (NEGATIVE - theta))
    found = mixed_context(MATCH, NEGATIVE, 1.15, gamma=0.5, alpha=0, delta=5, loss="log")
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(
    ("loss", "gamma"), [("log", 0.0), ("log", 0.5), ("log", 1.0), ("sse", 0.0), ("sse", 1.0)]
)
def test_it_falls_as_matches_come_nearer_and_negatives_go_farther(loss, gamma):
    settings = {"gamma": gamma, "alpha": 0, "delta": 5, "loss": loss}
    match, negative = MATCH.clone().requires_grad_(), NEGATIVE.clone().requires_grad_()
    mixed_context(match, negative, 1.15, **settings).sum().backward()
    assert (match.grad > 0).all()
    assert (negative.grad < 0).all()


@both
def test_triplet_losses_are_antisymmetric(loss):  # equation 19
    match, negative = MATCH.clone().requires_grad_(), NEGATIVE.clone().requires_grad_()
    settings = {"gamma": 1, "alpha": 0.1, "delta": 5, "loss": loss}
    mixed_context(match, negative, 1.15, **settings).sum().backward()
    torch.testing.assert_close(match.grad, -negative.grad)


def test_infinite_delta_is_the_hinge():  # equation 18
    hinge = (0.1 - RHO).relu()
    torch.testing.assert_close(log_loss(RHO, alpha=0.1, delta=torch.inf), hinge)
    torch.testing.assert_close(log_loss(RHO, alpha=0.1, delta=1e6), hinge, rtol=0, atol=1e-6)


def test_a_delta_of_nothing_acts_alike_on_all():  # equation 17
    found = slope(log_loss, RHO, alpha=0.1, delta=1e-6)
    torch.testing.assert_close(found, torch.full_like(RHO, -0.5), rtol=0, atol=1e-5)


@pytest.mark.parametrize("delta", [1.0, 2.0, 5.0])
def test_activities_are_those_of_figure_4(delta):
    sigmoid = 1 / (1 + (delta * RHO).exp())
    log = slope(log_loss, RHO, alpha=0, delta=delta)
    sse = slope(sse_loss, RHO, alpha=0, delta=delta)
    torch.testing.assert_close(-log, sigmoid)
    torch.testing.assert_close(-sse, 2 * sigmoid**2 * (1 - sigmoid))


def test_an_sse_loss_of_infinite_delta_is_refused():
    with pytest.raises(ValueError, match="SSE"):
        made(delta=torch.inf, loss="sse")


# --- the global threshold


def brute_threshold(match, other):
    cuts = np.unique(np.concatenate([match, other]))
    middles = (cuts[1:] + cuts[:-1]) / 2
    return min((np.sum(match > t) + np.sum(other < t)) for t in middles)


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 12), min_size=1, max_size=9),
    st.lists(st.integers(0, 12), min_size=1, max_size=9),
)
def test_the_best_threshold_errs_as_little_as_any(match, other):
    if len(set(match + other)) < 2:
        return
    match, other = np.array(match, np.float32), np.array(other, np.float32)
    found = best_threshold(torch.from_numpy(match), torch.from_numpy(other)).item()
    assert not set(match) & {found} and not set(other) & {found}
    assert np.sum(match > found) + np.sum(other < found) == brute_threshold(match, other)


def test_the_best_threshold_is_in_the_middle():
    found = best_threshold(torch.tensor([0.1, 0.2]), torch.tensor([0.8, 0.4]))
    assert found.item() == pytest.approx(0.3)


def test_of_distances_that_are_all_equal_the_threshold_is_theirs():
    assert best_threshold(torch.ones(3), torch.ones(3)).item() == 1


def made(**more):
    options = {
        "pairs": 4,
        "gamma": 0.5,
        "theta": 1.15,
        "alpha": 0.0,
        "delta": 5.0,
        "loss": "log",
        "negatives": "hardest",
        "context": "fixed",
    }
    return MixedContext(**(options | more))


class Given(torch.nn.Module):
    """Stands for a network: the patches are the vectors."""

    def forward(self, patches):
        return patches.flatten(1)


def run(method, vectors, seed=0):
    patches = vectors.view(-1, 1, 4, 4)
    point = torch.arange(len(vectors) // 2).repeat(2)
    random = torch.Generator().manual_seed(seed)
    return method(Batch(Described(Given(), torch.float32), patches, point, random))


VECTORS = torch.nn.functional.normalize(torch.randn(8, 16, generator=rng), dim=1)


def test_a_fixed_threshold_stays():
    method = made()
    run(method, VECTORS)
    assert method.theta.item() == pytest.approx(1.15)
    assert not list(method.parameters())


def test_a_learned_threshold_has_a_gradient():
    method = made(context="learned")
    run(method, VECTORS).backward()
    assert method.theta.grad.abs() > 0


def test_an_estimated_threshold_goes_to_where_it_errs_least():
    method = made(context="estimated")
    vectors = VECTORS.clone()
    vectors[4:] = vectors[:4]  # matches at 0
    distances = torch.cdist(vectors[:4], vectors[:4])[~torch.eye(4, dtype=torch.bool)]
    for seed in range(100):
        run(method, vectors, seed)
    assert distances.min() / 2 * 0.9 < method.theta < distances.max() / 2 * 1.1
    assert not list(method.parameters())


def test_an_estimated_threshold_is_kept_with_the_training():
    method = made(context="estimated")
    run(method, VECTORS)
    assert "theta" in method.state_dict()
    assert method.theta != torch.tensor(1.15)


def test_every_point_has_its_turn_or_anchors_are_of_few_images():
    point, image = np.repeat(np.arange(60), 3), np.repeat(np.arange(60) // 10, 3)
    groups = Groups.of(point, image)
    epoch = [made().sampler(groups, 0)(step).point[:4] for step in range(15)]
    assert sorted(np.concatenate(epoch)) == list(range(60))
    near = made(images=1, share=1.0).sampler(groups, 0)
    for step in range(15):
        assert len(set(near(step).point[:4] // 10)) == 1


def test_random_negatives_are_easier_than_the_hardest():
    hard = run(made(), VECTORS)
    for seed in range(5):
        assert run(made(negatives="random"), VECTORS, seed) <= hard


# --- networks


def test_patches_are_normalised_by_two_numbers_of_the_training_set():
    patches = np.random.default_rng(0).integers(0, 256, (60, 32, 32), np.uint8)
    patches[::2] //= 4
    rows = np.arange(20, 60)
    network = MeanDeviationL2Net()
    network.study(patches, rows)
    means, deviations = zip(*[(patches[i].mean(), patches[i].std()) for i in rows], strict=True)
    mean, deviation = np.mean(means), np.mean(deviations)
    assert average_patch(patches, rows) == pytest.approx((mean, deviation))
    x = torch.from_numpy(patches[:3])[:, None].float()
    torch.testing.assert_close(network.normalised(x), (x - mean) / deviation, check_dtype=False)


def test_bn_net_gives_two_numbers_of_mean_0_and_variance_1():
    digits = torch.randint(0, 256, (64, 1, 32, 32), generator=rng).float()
    vectors = BNNet().train()(digits)
    assert vectors.shape == (64, 2)
    torch.testing.assert_close(vectors.mean(0), torch.zeros(2), rtol=0, atol=1e-4)
    torch.testing.assert_close(vectors.var(0, correction=0), torch.ones(2), rtol=0, atol=1e-2)


def digits(folder, part, each):
    """Files in MNIST's form, of digits that are bars of their own row, somewhat noisy."""
    rng = np.random.default_rng(len(part))
    classes = np.repeat(np.arange(10, dtype=np.uint8), each)
    images = rng.integers(0, 60, (len(classes), 28, 28)).astype(np.uint8)
    for image, c in zip(images, classes, strict=True):
        image[2 * c + 4 : 2 * c + 7, 6:22] = 255
    for kind, magic, values in (("images-idx3", 2051, images), ("labels-idx1", 2049, classes)):
        header = np.array([magic, *values.shape], ">i4").tobytes()
        contents = gzip.compress(header + values.tobytes())
        (folder / f"{part}-{kind}-ubyte.gz").write_bytes(contents)


def test_the_example_trains_bn_net_on_digits_and_draws_the_figure(tmp_path, monkeypatch, capsys):
    for part, each in (("train", 8), ("t10k", 6)):
        digits(tmp_path, part, each)
    drawn = tmp_path / "figure.png"
    monkeypatch.setenv("MPLBACKEND", "Agg")
    given = ["mnist", str(tmp_path), "--out", str(drawn), "--iterations", "5"]
    monkeypatch.setattr(sys, "argv", given)
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    told = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in told] == [
        "gamma 0 (Siamese)", "gamma 0.5 (mixed context)", "gamma 1 (triplet)",
    ]  # fmt: skip
    errors = [float(line.split()[-2]) for line in told]
    assert all(0 <= error < 60 for error in errors)  # chance is 95 %
    assert drawn.read_bytes().startswith(b"\x89PNG")
