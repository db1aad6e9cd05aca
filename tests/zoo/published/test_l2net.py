"""L2-Net: files written in the published form with random weights, and the networks written out."""

import copy
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from matconvnet_files import write_matlab5, write_matlab73
from PIL import Image
from slow_layers import matlab_correlation

from harness import plugins, registry
from harness.contracts import check_descriptor
from harness.data.copies import digest
from harness.data.weights import NotHere
from harness.errors import InputError
from harness.onnx.export import contents_of
from zoo.published import l2net
from zoo.published.describing import describe
from zoo.published.files import l2net as reader
from zoo.published.git_rows import L2NET
from zoo.published.l2net import CentralSurround, L2Net


def random_network(rng):
    layers = []
    for inputs, outputs, side, stride, pad in reader.CONVOLUTIONS:
        filters = rng.normal(size=(side, side, inputs, outputs)) / side / np.sqrt(inputs)
        moments = np.stack([rng.normal(size=outputs), rng.uniform(0.5, 2, outputs)], axis=1)
        layers += [
            {
                "type": "conv",
                "weights": [filters.astype(np.float32), single(rng.normal(size=(1, outputs)))],
                "stride": float(stride),
                "pad": np.full((1, 4), float(pad)),
            },
            {
                "type": "bnormPair",
                "weights": [
                    single(rng.uniform(0.5, 2, (outputs, 1))),
                    single(rng.normal(size=(outputs, 1))),
                    single(moments),
                ],
            },
            {"type": "relu"},
        ]
    layers[-1] = {"type": "normalize", "param": np.array([[256.0, 0.0, 1.0, 0.5]])}
    return {"layers": layers}


def single(array):
    return array.astype(np.float32)


@pytest.fixture(scope="module")
def form():
    """Random parameters of both networks, in the form of the published files."""
    rng = np.random.default_rng(0)
    means = (single(100 + rng.normal(size=(32, 32))) for _ in range(2))
    return {
        "net": random_network(rng),
        "netCen": random_network(rng),
        **dict(zip(("pixMean", "pixMeanCen"), means, strict=True)),
    }


@pytest.fixture(scope="module")
def file(form, tmp_path_factory):
    file = tmp_path_factory.mktemp("l2net") / "a.mat"
    write_matlab5(file, form)
    return file


@pytest.fixture(scope="module")
def networks(file):
    """L2-Net, and L2-Net CS."""
    tensors = reader.tensors(file)
    whole = {name: value for name, value in tensors.items() if name.startswith("whole.")}
    made = L2Net(), CentralSurround()
    for network, some in zip(made, (whole, tensors), strict=True):
        network.load_state_dict(some, strict=True)
    return tuple(network.eval() for network in made)


def slow_vector(patch, network, mean):
    """The authors' cal_L2Net_des.m on one 32x32 patch, with MATLAB's axes."""
    x = patch - mean.astype(float)
    x = ((x - x.mean()) / (x.std(ddof=1) + 1e-12))[:, :, None]
    for layer in network["layers"]:
        if layer["type"] == "conv":
            stride, pad = int(layer["stride"]), int(layer["pad"][0, 0])
            x = matlab_correlation(x, *layer["weights"], stride=stride, pad=pad)
        if layer["type"] == "bnormPair":
            factor, shift, moments = layer["weights"]
            x = factor.ravel() * (x - moments[:, 0]) / moments[:, 1] + shift.ravel()
        if layer["type"] == "relu":
            x = np.maximum(x, 0)
        if layer["type"] == "normalize":
            _, constant, factor, power = layer["param"][0]
            x = x / (constant + factor * (x**2).sum(axis=2, keepdims=True)) ** power
    return x[0, 0]


def patches(n, side):
    return np.random.default_rng(n).integers(0, 256, (n, side, side), np.uint8)


def imresize(patch):
    """MATLAB's imresize(patch, 0.5), by Pillow, which has the same spline but other borders."""
    wide = np.pad(patch.astype(np.float32), 8, mode="symmetric")
    small = Image.fromarray(wide).resize((wide.shape[1] // 2,) * 2, Image.Resampling.BICUBIC)
    return np.asarray(small)[4:-4, 4:-4]


def test_the_network_is_the_authors_code_written_out(networks, form):
    some = patches(2, 32)
    wanted = [slow_vector(patch, form["net"], form["pixMean"]) for patch in some]
    assert np.allclose(describe(networks[0], some, "cpu"), wanted, atol=1e-5)


def test_the_central_surround_network_is_the_authors_code_written_out(networks, form):
    some = patches(2, 64)
    wanted = [
        np.concatenate(
            [
                slow_vector(imresize(patch), form["net"], form["pixMean"]),
                slow_vector(patch[16:48, 16:48], form["netCen"], form["pixMeanCen"]),
            ]
        )
        for patch in some
    ]
    assert np.allclose(describe(networks[1], some, "cpu", 256), wanted, atol=1e-5)


def test_halving_is_that_of_matlab():
    half = l2net.halving(64).numpy()
    patch = patches(1, 64)[0]
    assert np.allclose(half @ patch @ half.T, imresize(patch), atol=1e-3)
    assert np.allclose(half.sum(axis=1), 1)


def test_the_constant_of_the_normalisation_is_that_of_the_file(form, tmp_path):
    other = copy.deepcopy(form)
    for name in ("net", "netCen"):
        other[name]["layers"][-1]["param"] = np.array([[256.0, 0.5, 1.0, 0.5]])
    write_matlab5(tmp_path / "a.mat", other)
    network = CentralSurround()
    network.load_state_dict(reader.tensors(tmp_path / "a.mat"), strict=True)
    patch = patches(1, 64)
    wanted = slow_vector(imresize(patch[0]), other["net"], other["pixMean"])
    assert np.allclose(describe(network.eval(), patch, "cpu", 256)[0, :128], wanted, atol=1e-5)


def test_a_file_of_matlab_73_gives_the_same_parameters(file, form, tmp_path):
    write_matlab73(tmp_path / "a.mat", form)
    old, new = reader.tensors(file), reader.tensors(tmp_path / "a.mat")
    assert old.keys() == new.keys()
    assert all(torch.equal(old[name], new[name]) for name in old)


@pytest.mark.parametrize("grey", [0, 255])
def test_a_flat_patch_is_described(networks, grey):
    for network, dim in zip(networks, (128, 256), strict=True):
        assert np.isfinite(
            describe(network, np.full((1, 64, 64), grey, np.uint8), "cpu", dim)
        ).all()


@pytest.mark.parametrize(
    ("place", "change", "problem"),
    [
        (6, {"stride": 1.0}, r"net\.layers\.6\.stride is .*1.*, and should be 2"),
        (18, {"pad": 1.0}, r"net\.layers\.18\.pad is .*1.*, and should be 0"),
        (1, {"type": "bnorm"}, "is 'bnorm', and should be 'bnormPair'"),
        (1, {"weights": [np.ones((32, 1))]}, r"net\.layers\.1\.weights has no part 1"),
        (20, {"param": np.array([[5.0, 0.0, 1.0, 0.5]])}, "a window of 5, too few for 128"),
    ],
)
def test_another_network_is_refused(form, tmp_path, place, change, problem):
    layers = list(form["net"]["layers"])
    layers[place] = layers[place] | change
    write_matlab5(tmp_path / "a.mat", form | {"net": {"layers": layers}})
    with pytest.raises(InputError, match=problem) as refused:
        reader.tensors(tmp_path / "a.mat")
    assert "a.mat is not the published network" in str(refused.value)


def test_each_model_names_its_weights():
    names = [name for name in registry.names("descriptors") if name.startswith("l2net")]
    published = [name for name in names if "official" in name]
    assert len(published) == 16
    for name in published:
        needed = re.escape(f"{name.replace('-cs', '')} needs L2Net-")
        with pytest.raises(NotHere, match=needed):
            registry.load("descriptors", name)()


def test_a_model_takes_its_network_from_the_file(form, monkeypatch, tmp_path):
    write_matlab5(tmp_path / "L2Net-LIB.mat", form)
    blob = digest(tmp_path / "L2Net-LIB.mat", "git")
    row = replace(L2NET["liberty"], git_blob=blob)
    monkeypatch.setitem(L2NET, "liberty", row)
    monkeypatch.setenv("HARNESS_WEIGHTS", str(tmp_path))
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    whole, both = (
        plugins.model("l2net-official.liberty"),
        plugins.model("l2net-cs-official.liberty"),
    )
    assert whole.weights == both.weights == digest(tmp_path / "L2Net-LIB.mat")
    patch = patches(1, 32)
    wanted = slow_vector(patch[0], form["net"], form["pixMean"])
    assert np.allclose(whole.describe(patch), wanted, atol=1e-5)
    assert not [law for law in check_descriptor(both) if not law.passed]
    contents, _ = contents_of(both)  # compares the vectors of the exported network
    assert len(contents) > 10_000_000
