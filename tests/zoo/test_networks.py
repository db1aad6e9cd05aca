"""Networks that belong to one method."""

import numpy as np
import pytest
import torch
from cards import card_of
from safetensors.torch import load_file

from harness.distances import HAMMING
from zoo import card as cards
from zoo.backbones import BatchNorm, Deployed, L2Net, Network, Whole, standardise
from zoo.doap_networks import DOAPL2Net
from zoo.hynet import HyNet, Responses, steepest
from zoo.l2net import CentralSurround, MeanImageL2Net
from zoo.trained import pack
from zoo.triplet_swap import TFeat


@pytest.fixture(scope="module")
def patches():
    return np.random.default_rng(0).integers(0, 256, (40, 64, 64), np.uint8)


def grey(patches):
    return torch.from_numpy(patches)[:, None].float()


def test_l2net_sees_patches_less_the_mean_image_and_standardised(patches):
    small, rows = patches[:, :32, :32], np.arange(10, 40)
    network = MeanImageL2Net()
    network.study(small, rows)
    mean = small[rows].mean(axis=0)
    expected = standardise(grey(small) - torch.from_numpy(mean).float())
    torch.testing.assert_close(network.normalised(grey(small)), expected)


def test_the_mean_image_is_kept_with_the_weights():
    assert "mean_image" in MeanImageL2Net().state_dict()


def outputs_after_normalisation(network, x):
    """What each batch normalisation of a network gives, in order."""
    seen = []
    hooks = [
        module.register_forward_hook(lambda _module, _x, y: seen.append(y.detach().clone()))
        for module in network.modules()
        if isinstance(module, BatchNorm)
    ]
    network(x)
    for hook in hooks:
        hook.remove()
    return seen


def test_the_maps_of_every_layer_are_those_after_batch_normalisation(patches):
    x = grey(patches[:6, :32, :32])
    for network in (L2Net().train(), DOAPL2Net().train(), MeanImageL2Net(learned_bn=True).train()):
        truth = outputs_after_normalisation(network, x)
        *maps, vectors = network.maps(x, every=True)
        assert len(maps) == len(truth) == 7
        for found, right in zip(maps, truth, strict=True):
            assert torch.equal(found, right.view(found.shape))
        first, last, alone = network.maps(x)
        assert torch.equal(first, maps[0]) and torch.equal(last, maps[-1])
        assert torch.equal(alone, vectors)


def test_learned_normalisation_has_a_scale_and_a_shift_in_the_five_layers_between(patches):
    networks = []
    for learned in (False, True):
        torch.manual_seed(0)
        networks.append(MeanImageL2Net(learned_bn=learned).train())
    plain, learned = networks
    new = learned.state_dict().keys() - plain.state_dict().keys()
    assert sorted(new) == sorted(
        f"features.{at}.{name}" for at in (2, 5, 8, 11, 14) for name in ("weight", "bias")
    )
    x = grey(patches[:6, :32, :32])
    torch.testing.assert_close(learned(x), plain(x), rtol=0, atol=1e-6)  # they start at 1 and 0
    for module in learned.features:
        if isinstance(module, BatchNorm):
            torch.nn.init.constant_(module.weight, 2.0)
            torch.nn.init.constant_(module.bias, -0.5)
    changed = outputs_after_normalisation(learned, x)
    assert [round(float(y.mean()), 4) for y in changed[:-1]] == [0.0, *5 * [-0.5]]
    assert [round(float(y.std(correction=0)), 2) for y in changed] == [1, 2, 2, 2, 2, 2, 1]


class Signs(Network):
    """Gives the vectors that it is made with."""

    side = 8
    dim = 8
    distance = HAMMING

    def __init__(self, vectors):
        super().__init__()
        self.vectors = vectors

    def forward(self, patches):
        return self.vectors


def test_the_sign_of_zero_is_plus_one():
    vectors = torch.tensor([[0.0, -0.0, 1e-9, -1e-9, 3.0, -3.0, 0.0, -1.0]])
    bits = Deployed(Signs(vectors))(torch.zeros(1, 8, 8, dtype=torch.uint8))
    assert bits.tolist() == [[0b11101010]]


def test_binary_l2net_is_the_sign_of_the_float_one(patches):
    torch.manual_seed(0)
    float_net = MeanImageL2Net()
    binary = MeanImageL2Net(binary=True)
    binary.load_state_dict(float_net.state_dict())
    few = torch.from_numpy(patches[:5])
    with torch.inference_mode():
        signs = Deployed(float_net)(few).numpy() >= 0
        bits = np.unpackbits(Deployed(binary)(few).numpy(), axis=1)
    np.testing.assert_array_equal(bits, signs)
    assert binary.distance is HAMMING
    assert float_net.distance is not HAMMING


@pytest.fixture(scope="module")
def central(patches, tmp_path_factory):
    torch.manual_seed(0)
    trained = MeanImageL2Net()
    trained.study(patches[:, :32, :32], np.arange(40))
    file = tmp_path_factory.mktemp("l2net") / "weights.safetensors"
    file.write_bytes(pack(trained))
    trained.load_state_dict(load_file(file))  # as they are kept, in float16
    card = card_of(
        file.read_bytes(), network={"name": "l2net-mean-image"}, trained_on=("phototour/liberty",)
    )
    cards.write(file.with_name("card.json"), card)
    network = CentralSurround(start=str(file))
    network.study(patches, np.arange(40))
    return network, trained


def test_what_the_first_towers_were_trained_on_is_told(central):
    assert central[0].inherited == {"phototour/liberty"}


def test_weights_to_start_from_need_their_card(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no model card .*card\.json"):
        CentralSurround(start=str(tmp_path / "weights.safetensors")).study(
            np.zeros((2, 64, 64), np.uint8), np.arange(2)
        )


def test_an_l2net_with_learned_normalisation_is_no_start(tmp_path):
    file = tmp_path / "weights.safetensors"
    file.write_bytes(pack(MeanImageL2Net(learned_bn=True)))
    network = {"name": "l2net-mean-image", "learned_bn": True}
    cards.write(tmp_path / "card.json", card_of(file.read_bytes(), network=network))
    with pytest.raises(ValueError, match=r"learned batch normalisation, .* without network.learne"):
        CentralSurround(start=str(file)).study(np.zeros((2, 64, 64), np.uint8), np.arange(2))


def test_both_towers_start_from_the_trained_l2net(central):
    network, trained = central
    for name, value in trained.state_dict().items():
        assert torch.equal(network.surround.state_dict()[name], value)
        if name != "mean_image":
            assert torch.equal(network.central.state_dict()[name], value)


def test_the_second_tower_has_the_mean_image_of_central_halves(central, patches):
    mean = patches[:, 16:48, 16:48].mean(axis=0)
    np.testing.assert_allclose(central[0].central.mean_image[0, 0], mean, rtol=1e-5)


def test_two_towers_give_one_unit_vector(central, patches):
    vectors = central[0].eval()(grey(patches[:4]))
    assert vectors.shape == (4, 256)
    torch.testing.assert_close(vectors.norm(dim=1), torch.ones(4))


def test_the_second_tower_sees_the_central_half_only(central, patches):
    network = central[0].eval()
    changed = patches.copy()
    changed[:, :16], changed[:, 48:], changed[:, :, :16], changed[:, :, 48:] = 0, 255, 9, 99
    one, other = network(grey(patches[:4])), network(grey(changed[:4]))
    torch.testing.assert_close(one[:, 128:], other[:, 128:])
    assert (one[:, :128] - other[:, :128]).abs().max() > 0.01


def test_the_first_tower_is_not_trained(central, patches):
    network = central[0]
    before = {name: value.clone() for name, value in network.state_dict().items()}
    network.train()
    network(grey(patches)).sum().backward()
    for name, parameter in network.named_parameters():
        assert (parameter.grad is None) == name.startswith("surround"), name
    after = network.state_dict()
    same = {name for name, value in before.items() if torch.equal(after[name], value)}
    assert {name for name in before if name.startswith("surround")} <= same
    assert any("running_mean" in name for name in before.keys() - same)


def test_central_surround_without_a_trained_l2net_is_refused(patches):
    with pytest.raises(ValueError, match="--set network"):
        CentralSurround().study(patches, np.arange(40))


@pytest.mark.parametrize("alpha", [0.0, 0.5, 2.0, 10.0])
def test_the_slope_of_the_hybrid_similarity_is_one_where_it_is_steepest(alpha):
    angle = np.linspace(0, np.pi, 100_001)
    slope = alpha * np.sin(angle) + np.cos(angle / 2)
    assert steepest(alpha) == pytest.approx(slope.max(), rel=1e-8)


def test_responses_are_of_one_size_in_each_channel():
    x = torch.randn(3, 4, 5, 5) * torch.tensor([1e-2, 1.0, 10.0, 1e4])[:, None, None]
    found = Responses(4)(x)
    scaled = x / x.square().mean(dim=(2, 3), keepdim=True).sqrt()
    torch.testing.assert_close(found, scaled.clamp(min=-1), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("value", [0, 1, 128, 255])
def test_hynet_describes_flat_patches(value):
    vectors = HyNet().eval()(torch.full((2, 1, 32, 32), float(value)))
    assert vectors.isfinite().all()


def test_hynet_has_a_vector_of_each_patch_alone(patches):
    network = HyNet(dropout=0.3).eval()
    x = grey(patches[:6, :32, :32])
    torch.testing.assert_close(network(x)[2:3], network(x[2:3]), rtol=1e-4, atol=1e-5)


def test_tfeat_to_be_trained_is_the_published_network():
    from zoo.published import tfeat

    assert TFeat().state_dict().keys() == tfeat.TFeat().state_dict().keys()


def test_tfeat_to_be_trained_sees_nothing_in_flat_patches():
    flat = torch.arange(256.0)[:, None, None, None].expand(256, 1, 32, 32)
    torch.manual_seed(0)
    found = TFeat().eval()(flat)
    torch.testing.assert_close(found, found[:1].expand_as(found), rtol=0, atol=1e-6)


def test_the_last_layer_computes_the_same_in_training():
    torch.manual_seed(0)
    layer = Whole(6, 5, 3, bias=False)
    x = torch.randn(7, 6, 3, 3).to(memory_format=torch.channels_last)
    torch.testing.assert_close(layer.train()(x), layer.eval()(x))


def test_the_surround_is_resized_with_all_bits_of_float32():
    """bfloat16 keeps 8 bits: sums of grey values would be rounded to whole numbers or worse."""
    grey = np.random.default_rng(0).integers(0, 256, (4, 1, 64, 64))
    patches = torch.from_numpy(grey.astype(np.float32))
    network, seen = CentralSurround().eval(), []
    network.surround.first.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    with torch.no_grad():
        network(patches)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            network(patches)
    plain, reduced = seen
    assert reduced.dtype == torch.float32 and torch.equal(plain, reduced)
