"""Every recipe of pairs, from the sampler to the gradient, on a handful of made patches."""

import numpy as np
import pytest
import torch

from zoo.backbones import L2Net
from zoo.l2net import intermediate
from zoo.training import recipe
from zoo.training.describe import Described
from zoo.training.groups import Groups
from zoo.training.loop import must_fit
from zoo.training.method import Batch

POINTS, EACH = 24, 3
RECIPES = {
    "hardnet-gor": {"pairs": 8},
    "hynet": {"pairs": 8},
    "l2net": {"in_order": 4, "at_random": 4},
    "mixed-context": {"pairs": 8},
    "sosnet": {"pairs": 8},
    "tfeat": {"pairs": 8},
}
every = pytest.mark.parametrize("name", RECIPES)


@pytest.fixture(scope="module")
def patches():
    """Blurred noise, a point's patches each with noise of their own."""
    rng = np.random.default_rng(0)
    coarse = rng.uniform(0, 255, (POINTS, 1, 8, 8)) + rng.normal(0, 80, (POINTS, EACH, 8, 8))
    fine = np.kron(coarse, np.ones((4, 4))).reshape(-1, 32, 32)
    return np.clip(fine, 0, 255).astype(np.uint8)


@pytest.fixture(scope="module")
def groups():
    return Groups.of(np.repeat(np.arange(POINTS), EACH), np.tile(np.arange(EACH), POINTS))


def made(name, patches, small=None, **more):
    options = {**(small or RECIPES[name]), **more}
    settings = [f"method.{key}={value}" for key, value in options.items()]
    read = recipe.read(name, settings)
    torch.manual_seed(0)
    network, method = recipe.make("network", read.network), recipe.make("method", read.method)
    network.study(patches, np.arange(len(patches)))
    return network.train(), method


def loss_of(network, method, groups, patches):
    return method(batch_of(Described(network, torch.float32), method, groups, patches))


def batch_of(describe, method, groups, patches):
    selected = method.sampler(groups, 0)(0)
    x = torch.from_numpy(patches[selected.rows])[:, None].float()
    random = torch.Generator().manual_seed(0)
    return Batch(describe, x, torch.from_numpy(selected.point), random)


@every
def test_its_loss_is_finite_and_reaches_every_weight(name, groups, patches):
    network, method = made(name, patches)
    loss = loss_of(network, method, groups, patches)
    loss.backward()
    assert loss.shape == () and loss.dtype == torch.float32 and loss.isfinite()
    for of, parameter in network.named_parameters():
        assert parameter.grad is not None, of
        assert parameter.grad.isfinite().all(), of


@every
def test_flat_patches_give_a_finite_loss_and_gradient(name, groups, patches):
    flat = np.zeros_like(patches)
    network, method = made(name, patches)
    loss = loss_of(network, method, groups, flat)
    loss.backward()
    assert loss.isfinite()
    assert all(parameter.grad.isfinite().all() for parameter in network.parameters())


@every
def test_it_learns_a_batch(name, groups, patches):
    # Of 8 pairs, 128 dimensions can't be uncorrelated.
    network, method = made(name, patches, **({"e2": 0.0} if name == "l2net" else {}))
    optimiser = torch.optim.SGD(network.parameters(), lr=1e-3, momentum=0.9)
    losses = []
    for _ in range(4):
        torch.manual_seed(0)  # of dropout
        loss = loss_of(network, method, groups, patches)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


@every
def test_the_loss_is_the_same_for_the_same_random_numbers(name, groups, patches):
    network, method = made(name, patches)
    torch.manual_seed(0)
    first = loss_of(network, method, groups, patches)
    torch.manual_seed(0)
    assert torch.equal(loss_of(network, method, groups, patches), first)


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("hardnet", "pairs", 1),
        ("hardnet", "pairs", 2.5),
        ("hardnet", "margin", -1),
        ("hardnet", "gor", -0.1),
        ("hardnet", "images", 0),
        ("hardnet", "share", 1.5),
        ("sosnet", "neighbours", 0),
        ("hynet", "alpha", -1),
        ("l2net", "at_random", 0),
        ("l2net", "e3_layers", "all"),
        ("doap", "images", 0),
        ("doap-binary", "share", 1.5),
        ("mixed-context", "images", 0),
        ("mixed-context", "gamma", 1.1),
        ("mixed-context", "delta", 0),
        ("mixed-context", "loss", "linear"),
        ("mixed-context", "context", "guessed"),
        ("tfeat", "margin", 0),
    ],
)
def test_options_that_make_no_sense_are_refused_by_name(name, key, value):
    with pytest.raises(ValueError, match=key):
        recipe.read(name, [f"method.{key}={value}"])


class Halves:
    """Describes anchors and positives one after the other."""

    def __init__(self, network):
        self.whole = Described(network, torch.float32)

    def __call__(self, patches):
        return torch.cat([self.whole(half) for half in patches.chunk(2)])

    def maps(self, patches, *, every=False):
        both = [self.whole.maps(half, every=every) for half in patches.chunk(2)]
        return tuple(torch.cat(one) for one in zip(*both, strict=True))

    def still(self, patches):
        return self.whole.still(patches)


PAIRS = {
    "hardnet": {"pairs": 8},
    "hardnet-gor": {"pairs": 8},
    "sosnet": {"pairs": 8},
    "hynet": {"pairs": 8},
    "l2net": {"in_order": 4, "at_random": 4},
    "adasample": {"pairs": 8, "class_size": 4},
    "mixed-context": {"pairs": 8},
}


@pytest.mark.parametrize("name", PAIRS)
def test_anchors_and_positives_are_normalised_separately_on_demand(name, groups, patches):
    values = {}
    for separate in (True, False):
        for describe in (lambda net: Described(net, torch.float32), Halves):
            network, method = made(name, patches, PAIRS[name], separate=str(separate).lower())
            torch.manual_seed(0)
            if hasattr(network, "dropout"):
                network.dropout.p = 0.0  # whose numbers depend on how many patches pass together
            if name == "hynet":
                network.last[0].p = 0.0
            batch = batch_of(describe(network), method, groups, patches)
            values[separate, describe is Halves] = method(batch)
    torch.testing.assert_close(values[True, False], values[False, True], rtol=1e-5, atol=1e-5)
    assert not torch.allclose(values[True, False], values[False, False], rtol=1e-5, atol=1e-5)


def test_what_passes_separately_does_not_depend_on_the_other_half(patches):
    torch.manual_seed(0)
    network = L2Net().train()
    x = torch.from_numpy(patches[:16])[:, None].float()
    other = torch.cat([x[:8], 255 - x[8:]])
    describe, point = Described(network, torch.float32), torch.arange(8).repeat(2)
    batches = [Batch(describe, y, point, torch.Generator()) for y in (x, other)]
    for separate, same in ((True, True), (False, False)):
        one, two = (batch.pair_vectors(separate=separate)[0] for batch in batches)
        assert torch.equal(one, two) is same
        maps = [batch.pair_maps(separate=separate) for batch in batches]
        assert all(torch.equal(a, b) is same for (a, _), (b, _) in zip(*maps, strict=True))


def test_regularisation_adds_its_weight(groups, patches):
    without, plain = made("hardnet-gor", patches, gor=0.0)
    _, one = made("hardnet-gor", patches, gor=1.0)
    _, two = made("hardnet-gor", patches, gor=2.0)
    without.eval()  # no dropout
    a, b, c = (loss_of(without, method, groups, patches) for method in (plain, one, two))
    torch.testing.assert_close(c - b, b - a)
    assert b > a


def test_terms_of_l2net_can_be_left_out(groups, patches):
    network, whole = made("l2net", patches)
    _, no_e2 = made("l2net", patches, e2=0.0)
    _, no_e3 = made("l2net", patches, e3=0.0)
    _, neither = made("l2net", patches, e2=0.0, e3=0.0)
    full, without_e2, without_e3, e1 = (
        loss_of(network, method, groups, patches) for method in (whole, no_e2, no_e3, neither)
    )
    torch.testing.assert_close(full - without_e2, without_e3 - e1, rtol=1e-3, atol=1e-3)
    assert e1 < without_e3 <= full


def test_e3_of_every_layer_adds_the_five_layers_between(groups, patches):
    network, ends = made("l2net", patches)
    _, every_layer = made("l2net", patches, e3_layers="every")
    network.train()
    batch = batch_of(Described(network, torch.float32), ends, groups, patches)
    maps = batch.pair_maps(separate=True, every=True)[1:6]
    between = sum(intermediate(*each) for each in maps) / len(batch.pair_point)
    torch.testing.assert_close(every_layer(batch) - ends(batch), between, rtol=1e-4, atol=1e-3)
    every_layer(batch).backward()
    assert all(p.grad.isfinite().all() for p in network.parameters())


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (("network.name=tfeat",), "outputs of the first and the last layer, and TFeat"),
        (("network.name=hynet", "method.e3_layers=every"), "outputs of every layer, and HyNet"),
    ],
)
def test_l2net_refuses_a_network_without_the_maps_that_it_takes(settings, told):
    found = recipe.read("l2net", ["network={name='l2net'}", *settings])
    network, method = recipe.make("network", found.network), recipe.make("method", found.method)
    with pytest.raises(ValueError, match=told):
        must_fit(found, network, method)
    for name in ("l2net", "l2net+", "l2net-cs"):
        found = recipe.read(name, ["method.e3_layers=every"])
        parts = recipe.make("network", found.network), recipe.make("method", found.method)
        must_fit(found, *parts)


def test_e3_of_every_layer_with_weight_0_is_refused():
    found = recipe.read("l2net", ["method.e3=0.0", "method.e3_layers=every"])
    with pytest.raises(ValueError, match=r'e3_layers is "every" but e3 is 0'):
        recipe.make("method", found.method)
