"""DOAP's networks: what the spatial transformer shows, its start, its rate, its ONNX."""

import jaxtyping
import onnxruntime
import pytest
import torch
from torch.nn import functional

from harness.distances import HAMMING, L2
from harness.onnx import export as onnx_export
from zoo import card as cards
from zoo import shipped, trained
from zoo.backbones import Deployed, resize
from zoo.doap_networks import DOAPL2Net, SpatialTransformer
from zoo.training.recipe import make, read

HALF = [[-0.5, 0.0, 0.25], [0.0, -0.5, 0.0]]  # half as large a part, from right of the middle


def patches(n, side=42, seed=0):
    grey = torch.rand(n, 1, 6, 6, generator=torch.Generator().manual_seed(seed)) * 255
    return functional.interpolate(grey, size=(side, side), mode="bicubic").clamp(0, 255)


@pytest.fixture
def transformer():
    torch.manual_seed(0)
    return SpatialTransformer(dropout=0.1).eval()


def predicting(transformer, change):
    """The transformer with this change of the identity for every patch."""
    with torch.no_grad():
        transformer.predict.bias.copy_(torch.tensor(change).flatten())
    return transformer


def test_it_starts_by_showing_the_whole_patch(transformer):
    x = patches(5)
    plain = functional.interpolate(x, size=(32, 32), mode="bilinear", align_corners=False)
    torch.testing.assert_close(transformer.aligned(x), plain, atol=1e-3, rtol=0)


def test_a_patch_is_standardised_once_before_it_is_sampled(transformer):
    x = patches(3)
    seen = predicting(transformer, HALF).aligned(x)
    mean, deviation = x.mean(dim=(1, 2, 3)), x.std(dim=(1, 2, 3), correction=0)
    once = (seen - mean[:, None, None, None]) / deviation[:, None, None, None]
    plain = DOAPL2Net().eval()
    plain.load_state_dict(transformer.describe.state_dict())
    plain.normalised = lambda same: same
    torch.testing.assert_close(transformer(x), plain(once), atol=1e-4, rtol=0)


@pytest.mark.parametrize("again", [False, True])
def test_what_is_not_sampled_counts_only_where_nothing_is_standardised_again(again):
    torch.manual_seed(0)
    network = predicting(SpatialTransformer(standardise_sampled=again).eval(), HALF)
    x = patches(3)
    changed = x.clone()
    changed[..., :8, :] = 255 - changed[..., :8, :]  # HALF shows rows 10.5 to 31.5
    torch.testing.assert_close(network.aligned(changed), network.aligned(x))
    moved = (network(changed) - network(x)).abs().max()
    assert moved < 1e-5 if again else moved > 1e-3


@pytest.mark.parametrize(
    ("name", "settings"),
    [("doap-st", ()), ("doap-hpatches", ()), ("doap-binary", ("network.name=doap-st",))],
)
def test_recipes_standardise_once(name, settings):
    assert read(name, settings).network.options["standardise_sampled"] is False
    assert make("network", read(name, settings).network).standardise_sampled is False


def test_the_shipped_weights_keep_the_vectors_that_they_were_trained_for():
    card = cards.read(shipped.FOLDER / "doap-st.json")
    assert card.recipe["network"] == card.network.model_dump()
    network = trained.load(shipped.FOLDER / "doap-st.safetensors", card)
    found = network(patches(2, seed=3))[:, :4]  # told by the code before there was an option
    truth = [[-0.12759, -0.03748, 0.00719, 0.00310], [0.00110, -0.14398, -0.01486, 0.09395]]
    torch.testing.assert_close(found, torch.tensor(truth), atol=1e-4, rtol=0)


@pytest.mark.parametrize(("padding", "mode"), [("replicate", "border"), ("zero", "zeros")])
def test_maps_are_those_of_affine_grid(padding, mode):
    x = patches(4)
    change = torch.tensor([[0.1, -0.3, 0.2], [0.25, -0.2, -0.1]])
    theta = (torch.eye(2, 3) + change).expand(4, 2, 3)
    grid = functional.affine_grid(theta, [4, 1, 32, 32], align_corners=False)
    truth = functional.grid_sample(x, grid, padding_mode=mode, align_corners=False)
    network = SpatialTransformer(padding=padding).eval()
    seen = predicting(network, change.tolist()).aligned(x)
    torch.testing.assert_close(seen, truth, atol=1e-2, rtol=0)


def test_outside_of_the_patch_is_its_border_or_zero():
    x = patches(2) * 0 + 100
    shrunk = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]  # with the identity: half of the size
    for options, around in (({}, 100.0), ({"padding": "zero"}, 0.0)):
        seen = predicting(SpatialTransformer(**options).eval(), shrunk).aligned(x)
        torch.testing.assert_close(seen[:, 0, 12:20, 12:20], torch.full((2, 8, 8), 100.0))
        assert (seen[:, 0, :7].round() == around).all()


def test_padding_is_an_option_of_recipes_and_older_recipes_have_replicate():
    found = read("doap-hpatches", ["network.padding=zero"])
    assert make("network", found.network).outside == "zeros"
    assert read("doap-hpatches").network.options["padding"] == "replicate"
    with pytest.raises(ValueError, match=r"doap-st: padding is 'mirror'"):
        read("doap-hpatches", ["network.padding=mirror"])


def test_the_gradient_by_the_map_is_that_of_finite_differences(transformer):
    x = patches(4)
    weight = patches(4, 32, seed=1) / 128 - 1
    bias = predicting(transformer, [[0.1, -0.2, 0.05], [0.15, 0.1, -0.05]]).predict.bias

    def value():
        return (transformer.aligned(x) * weight).double().mean()

    (found,) = torch.autograd.grad(value(), bias)
    step = 1e-3
    for number in range(6):
        ends = []
        for sign in (1, -1):
            with torch.no_grad():
                bias[number] += sign * step
                ends.append(value())
                bias[number] -= sign * step
        slope = float(ends[0] - ends[1]) / (2 * step)
        assert float(found[number]) == pytest.approx(slope, abs=0.15)  # of up to 11


def test_a_map_shows_what_it_says(transformer):
    x = patches(3)
    seen = predicting(transformer, HALF).aligned(x)
    middle = (torch.arange(32) + 0.5) / 32 - 0.5
    down = linear(x, 21 + 21 * middle - 0.5, dim=2)
    torch.testing.assert_close(seen, linear(down, 1.25 * 21 + 21 * middle - 0.5, dim=3))


def linear(x, place, dim):
    """Values between pixels, of which the first is at 0."""
    low = place.floor().long()
    share = (place - low).view(-1, *[1] * (3 - dim))
    return x.index_select(dim, low) * (1 - share) + x.index_select(dim, low + 1) * share


def test_beyond_the_border_the_border_goes_on(transformer):
    x = patches(3)
    out = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]  # twice as large a part
    seen = predicting(transformer, out).aligned(x)
    wide = functional.pad(x, (21, 21, 21, 21), mode="replicate")
    plain = functional.interpolate(wide, size=(32, 32), mode="bilinear", align_corners=False)
    torch.testing.assert_close(seen, plain, atol=1e-2, rtol=0)
    flat = torch.full((1, 1, 42, 42), 200.0)
    torch.testing.assert_close(transformer.aligned(flat), torch.full((1, 1, 32, 32), 200.0))


def test_the_map_learns_though_it_starts_at_nothing(transformer):
    transformer.train()
    for _ in range(2):  # the first step moves the prediction alone
        transformer(patches(8)).square()[:, 0].sum().backward()
        with torch.no_grad():
            for p in transformer.parameters():
                p -= 0.1 * p.grad
    assert transformer.localise[0].weight.grad.abs().max() > 0
    assert transformer.predict.weight.abs().max() > 0


def test_the_prediction_alone_is_learned_at_a_hundredth(transformer):
    slow = [
        name
        for name, _ in transformer.named_parameters()
        if any(name.startswith(part) for part in transformer.lr_factors)
    ]
    assert slow == ["predict.weight", "predict.bias"]
    assert list(transformer.lr_factors.values()) == [0.01]


@pytest.mark.parametrize("make", [DOAPL2Net, SpatialTransformer])
@pytest.mark.parametrize("binary", [False, True])
def test_vectors_are_of_unit_length_or_activations(make, binary):
    network = make(dropout=0.0, binary=binary).eval()
    found = network(patches(4, network.side))
    assert network(patches(4, network.side)[:0]).shape == (0, found.shape[1])
    assert network.distance is (HAMMING if binary else L2)
    assert found.shape == (4, 256 if binary else 128) and found.shape[1] == network.dim
    assert ((found.norm(dim=1) - 1).abs() < 1e-5).all() != binary


@pytest.mark.parametrize("make", [DOAPL2Net, SpatialTransformer])
@pytest.mark.parametrize("grey", [0.0, 128.0, 255.0])
def test_flat_patches_and_autocast_are_finite(make, grey):
    network = make(dropout=0.1)
    flat = torch.full((2, 1, network.side, network.side), grey)
    x = torch.cat([flat, patches(3, network.side)])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = network(x)
    assert found.dtype == torch.float32
    found[:, 0].sum().backward()
    assert torch.isfinite(found).all()
    assert all(torch.isfinite(p.grad).all() for p in network.parameters())


def test_weights_start_as_he_et_al_have_them():
    torch.manual_seed(0)
    network = DOAPL2Net(dropout=0.1, binary=True)
    weight = network.last[0].weight
    assert weight.shape == (256, 128, 8, 8)
    assert float(weight.detach().std()) == pytest.approx((2 / (128 * 64)) ** 0.5, rel=0.01)


def test_the_sign_of_zero_is_a_1_and_bits_are_packed_from_the_left():
    network = DOAPL2Net(dropout=0.0, binary=True).eval()
    row = torch.tensor([0.0, -1, 1, -1, -1, -1, -1, -0.5] + [-1.0] * 248)
    network.forward = lambda x: row.repeat(len(x), 1)
    packed = Deployed(network)(torch.zeros(2, 32, 32, dtype=torch.uint8))
    assert packed.dtype == torch.uint8 and packed.shape == (2, 32)
    assert packed[0].tolist() == [0b10100000] + [0] * 31


@pytest.fixture
def unchecked():
    """Shapes that are symbols, as an exporter sees them, are no numbers for the shape check."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.mark.parametrize("padding", ["replicate", "zero"])
def test_onnx_gives_the_same_vectors(padding, unchecked):
    torch.manual_seed(1)
    network = SpatialTransformer(dropout=0.1, padding=padding)
    torch.nn.init.normal_(network.predict.weight, std=0.003)  # other maps than the identity
    with torch.no_grad():
        for _ in range(3):
            network.train()(patches(16, seed=2))
    deployed = Deployed(network)
    x = patches(6, 42)
    assert (network.aligned(x) - resize(x, 32)).abs().max() > 5
    model = onnx_export.graph(deployed, "doap").SerializeToString()
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    some = torch.cat([patches(6, 65), torch.full((1, 1, 65, 65), 128.0)])[:, 0].to(torch.uint8)
    for n in (0, 1, 7):
        (found,) = session.run(None, {"patches": some[:n].numpy()})
        truth = deployed(some[:n]).detach().numpy()
        assert found.shape == (n, 128)
        assert (1 - (found * truth).sum(axis=1) < 1e-5).all()
