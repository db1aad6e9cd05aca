"""DeepDesc: each layer against its definition in Torch7, the reader of its files, the weights."""

import copy

import cv2
import numpy as np
import pytest
import torch
from slow_layers import correlation
from torch7_files import Module, written

from harness import plugins, registry
from harness.contracts import check_descriptor
from harness.data import weights
from harness.errors import InputError
from harness.onnx.export import contents_of
from zoo.published import deepdesc
from zoo.published.deepdesc import DeepDesc
from zoo.published.describing import describe
from zoo.published.files import deepdesc as reader

FILE = "CNN3_p8_n8_split4_073000.t7"


def published_form():
    """Random parameters in the form of the published files."""
    rng = np.random.default_rng(0)

    def numbers(*shape):
        return rng.normal(size=shape).astype(np.float32)

    modules = {}
    for layer, (inputs, outputs, side, pooled) in enumerate(reader.LAYERS, 1):
        place = 4 * (layer - 1)
        modules[place + 1] = Module(
            "nn.SpatialConvolution",
            weight=numbers(outputs, inputs, side, side) / side**2,
            bias=numbers(outputs),
            **{"dH": 1, "dW": 1, "padH": 0, "padW": 0},
        )
        modules[place + 2] = Module("nn.Tanh")
        steps = {1: Module("nn.Square")}
        sides = {"kH": pooled, "kW": pooled, "dH": pooled, "dW": pooled}
        modules[place + 3] = Module("nn.SpatialLPPooling", modules=steps, **sides)
        average = Module(
            "nn.SpatialConvolution", weight=abs(numbers(1, outputs, 5, 5)), bias=numbers(1) * 0
        )
        pads = {name: 2 for name in ("pad_l", "pad_r", "pad_t", "pad_b")}
        steps = {1: Module("nn.SpatialZeroPadding", **pads), 2: average}
        modules[place + 4] = Module(
            "nn.SpatialSubtractiveNormalization",
            meanestimator=Module("nn.Sequential", modules=steps),
        )
    modules[12] = Module("nn.Reshape")
    mean, deviation = numbers(1, 64, 64), 50 + abs(numbers(1, 64, 64))
    return {"desc": Module("nn.Sequential", modules=modules), "mean": mean, "std": deviation}


@pytest.fixture
def file(tmp_path):
    (tmp_path / "a.t7").write_bytes(written(published_form()))
    return tmp_path / "a.t7"


def loaded(file):
    network = DeepDesc()
    network.load_state_dict(reader.tensors(file), strict=True)
    return network.eval()


def slow_local_mean(x, weight):
    """The mean of each neighbourhood, pixel by pixel, over the weights that are in the image."""
    n, _, rows, columns = x.shape
    y = np.empty((n, 1, rows, columns))
    for i in range(rows):
        for j in range(columns):
            total, inside = np.zeros(n), 0.0
            for a in range(-2, 3):
                for b in range(-2, 3):
                    if 0 <= i + a < rows and 0 <= j + b < columns:
                        total += x[:, :, i + a, j + b] @ weight[0, :, a + 2, b + 2]
                        inside += weight[0, :, a + 2, b + 2].sum()
            y[:, 0, i, j] = total / inside
    return y


def slow_norm(x, side):
    n, c, rows, columns = x.shape
    y = np.empty((n, c, rows // side, columns // side))
    for i in range(rows // side):
        for j in range(columns // side):
            square = x[:, :, i * side : (i + 1) * side, j * side : (j + 1) * side]
            y[:, :, i, j] = np.linalg.norm(square.reshape(n, c, -1), axis=2)
    return y


def slow_vectors(patches, p):
    """The network written out: normalisation, then layer by layer."""
    p = {name: value.double().numpy() for name, value in p.items()}
    x = (patches - p["mean"]) / p["deviation"]
    x = x[:, None]
    for layer, (_, _, _, pooled) in enumerate(reader.LAYERS, 1):
        x = np.tanh(correlation(x, p[f"conv{layer}.weight"], p[f"conv{layer}.bias"]))
        x = slow_norm(x, pooled)
        if layer < 3:
            x = x - slow_local_mean(x, p[f"mean{layer}.weight"])
    return x[:, :, 0, 0]


def patches(n, side=64):
    return np.random.default_rng(n).integers(0, 256, (n, side, side), np.uint8)


def test_pooling_is_the_norm_of_each_square():
    x = torch.randn(2, 3, 9, 12, dtype=torch.float64)
    for side in (2, 3, 4):
        assert np.allclose(deepdesc.pooled(x, side), slow_norm(x.numpy(), side))


def test_the_local_mean_is_over_the_weights_inside_the_image():
    x = torch.randn(2, 3, 7, 8, dtype=torch.float64)
    average = torch.nn.Conv2d(3, 1, 5, padding=2, bias=False).double()
    with torch.inference_mode():
        average.weight.abs_()
        found = deepdesc.local_mean(x, average)
        of_ones = deepdesc.local_mean(torch.ones_like(x), average)
    assert np.allclose(of_ones, 1)
    assert np.allclose(found, slow_local_mean(x.numpy(), average.weight.detach().numpy()))


def test_the_network_is_that_of_the_file_written_out(file):
    network, some = loaded(file), patches(2)
    wanted = slow_vectors(some, network.state_dict())
    assert np.allclose(describe(network, some, "cpu"), wanted, atol=1e-4)


def test_the_reader_takes_each_parameter_from_its_place(file):
    form, found = published_form(), reader.tensors(file)
    modules = form["desc"]["modules"]
    assert np.array_equal(found["mean"], form["mean"][0])
    assert np.array_equal(found["deviation"], form["std"][0])
    for layer in (1, 2, 3):
        convolution = modules[4 * layer - 3]
        assert np.array_equal(found[f"conv{layer}.weight"], convolution["weight"])
        assert np.array_equal(found[f"conv{layer}.bias"], convolution["bias"])
    for layer in (1, 2):
        average = modules[4 * layer]["meanestimator"]["modules"][2]
        assert np.array_equal(found[f"mean{layer}.weight"], average["weight"])


def _without(form):
    del form["std"]


def _stride(form):
    form["desc"]["modules"][5]["dW"] = 2


def _relu(form):
    form["desc"]["modules"][2].kind = "nn.ReLU"


def _norm_of_another_power(form):
    form["desc"]["modules"][3]["modules"][1].kind = "nn.Power"


def _one_more(form):
    form["desc"]["modules"][13] = Module("nn.Tanh")


def _nan(form):
    form["desc"]["modules"][9]["bias"][3] = np.nan


def _shape(form):
    form["desc"]["modules"][9]["weight"] = np.zeros((128, 64, 3, 3), np.float32)


def _text(form):
    form["mean"] = "112"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (_without, "the file has no part 'std'"),
        (_stride, r"desc\.fields\.modules\.5\.fields\.dW is 2, and should be 1"),
        (_relu, r"modules\.2\.kind is 'nn\.ReLU', and should be 'nn\.Tanh'"),
        (_norm_of_another_power, "should be 'nn.Square'"),
        (_one_more, "has 13 parts, and should have 12"),
        (_nan, r"modules\.9\.fields\.bias has numbers that are not finite"),
        (_shape, r"has the shape \(128, 64, 3, 3\), and should have \(128, 64, 5, 5\)"),
        (_text, "mean is '112', and should be an array of numbers"),
    ],
)
def test_another_network_is_refused(tmp_path, change, problem):
    form = copy.deepcopy(published_form())
    change(form)
    (tmp_path / "a.t7").write_bytes(written(form))
    with pytest.raises(InputError, match=problem) as refused:
        reader.tensors(tmp_path / "a.t7")
    assert "a.t7 is not the published network" in str(refused.value)


@pytest.mark.parametrize("value", [None, 3, "text", {}])
def test_a_file_of_something_else_is_refused(tmp_path, value):
    (tmp_path / "a.t7").write_bytes(written(value))
    with pytest.raises(InputError, match="the file has no part 'desc'"):
        reader.tensors(tmp_path / "a.t7")


@pytest.fixture
def published(shared, monkeypatch):
    monkeypatch.setenv("HARNESS_WEIGHTS", str(shared / "checkpoints/deepdesc"))
    return plugins.model("deepdesc.split4")


@pytest.mark.data
def test_the_published_weights_fit_and_keep_the_laws(published):
    laws = check_descriptor(published)
    assert not [law for law in laws if not law.passed]


@pytest.mark.data
def test_the_published_network_is_exported_with_the_same_vectors(published):
    contents, _ = contents_of(published)
    assert len(contents) > 1_000_000


@pytest.mark.data
def test_the_published_network_is_that_written_out(published, shared):
    file = shared / "hpatches/mini/patches/v_graffiti/ref.png"
    some = cv2.imread(str(file), cv2.IMREAD_GRAYSCALE).reshape(-1, 65, 65)[:2]
    small = np.array([cv2.resize(patch, (64, 64)) for patch in some])
    parameters = weights.load(registry.load("weights", "deepdesc")["split4"])
    assert np.allclose(published.describe(some), slow_vectors(small, parameters), atol=1e-4)
