"""TNet: the axes of MATLAB, the network written out as MatConvNet runs it, and the weights."""

import copy

import cv2
import h5py
import numpy as np
import pytest
import torch
from matconvnet_files import write_matlab5, write_matlab73
from slow_layers import matlab_correlation

from harness import plugins
from harness.contracts import check_descriptor
from harness.errors import InputError
from harness.onnx.export import contents_of
from zoo.published.describing import describe
from zoo.published.files import tnet as reader
from zoo.published.tnet import TNet

FILE = "model_global_triplet_liberty.mat"
SCENES = ("v_churchill", "v_graffiti", "i_leuven")


def published_form():
    """Random parameters in the form of the published files."""
    rng = np.random.default_rng(0)
    layers = []
    for place, kind in enumerate(reader.KINDS):
        layer = {"type": kind}
        if kind == "conv":
            outputs, inputs, side, stride = reader.CONVOLUTIONS[place]
            filters = rng.normal(size=(side, side, inputs, outputs)) / side**2
            bias = rng.normal(size=(1, outputs))
            layer["weights"] = [filters.astype(np.float32), bias.astype(np.float32)]
            layer |= {"stride": float(stride), "pad": 0.0}
        if kind == "pool":
            layer |= {"method": "max", "pool": np.array([[2.0, 2.0]]), "stride": 2.0, "pad": 0.0}
        if kind == "normalize":
            layer["param"] = np.array([[512.0, 0.0, 1.0, 0.5]])
        layers.append(layer)
    return {"net": {"layers": layers}, "averageImage": 100 + rng.normal(size=(64, 64))}


@pytest.fixture(params=[write_matlab5, write_matlab73], ids=["MATLAB 5", "MATLAB 7.3"])
def file(request, tmp_path):
    request.param(tmp_path / "a.mat", published_form())
    return tmp_path / "a.mat"


def loaded(file):
    network = TNet()
    network.load_state_dict(reader.tensors(file), strict=True)
    return network.eval()


def slow_vector(patch, form):
    """The network as MatConvNet runs it, on one 64x64 patch, with MATLAB's axes."""
    x = (patch - np.asarray(form["averageImage"]))[:, :, None]
    for layer in form["net"]["layers"]:
        if layer["type"] == "conv":
            x = matlab_correlation(x, *layer["weights"], stride=int(np.ravel(layer["stride"])[0]))
        if layer["type"] == "relu":
            x = np.maximum(x, 0)
        if layer["type"] == "pool":
            half = x.shape[0] // 2
            x = np.array(
                [[x[2 * i : 2 * i + 2, 2 * j : 2 * j + 2].max((0, 1)) for j in range(half)]
                 for i in range(half)]
            )  # fmt: skip
    vector = x[0, 0]
    return vector / np.sqrt((vector**2).sum())


def patches(n, side=64):
    return np.random.default_rng(n).integers(0, 256, (n, side, side), np.uint8)


def test_the_network_is_that_of_matconvnet_written_out(file):
    some, form = patches(2), published_form()
    wanted = [slow_vector(patch, form) for patch in some]
    assert np.allclose(describe(loaded(file), some, "cpu", 256), wanted, atol=1e-5)


def test_both_forms_of_a_file_give_the_same_parameters(tmp_path):
    write_matlab5(tmp_path / "5.mat", published_form())
    write_matlab73(tmp_path / "73.mat", published_form())
    old, new = reader.tensors(tmp_path / "5.mat"), reader.tensors(tmp_path / "73.mat")
    assert old.keys() == new.keys()
    assert all(torch.equal(old[name], new[name]) for name in old)


def test_vectors_have_unit_length(file):
    vectors = describe(loaded(file), patches(3, 65), "cpu", 256)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_a_patch_that_no_filter_answers_is_described(file):
    network = loaded(file)
    with torch.inference_mode():
        network.layers[-1].weight.zero_()
        network.layers[-1].bias.zero_()
    assert not describe(network, patches(1), "cpu", 256).any()


def _layer(place, **changes):
    def change(form):
        form["net"]["layers"][place] |= changes

    return change


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (_layer(0, stride=2.0), r"net\.layers\.0\.stride is .*2.*, and should be 3"),
        (_layer(3, pad=1.0), r"net\.layers\.3\.pad is .*1.*, and should be 0"),
        (_layer(1, type="sigmoid"), "is 'sigmoid', and should be 'relu'"),
        (_layer(2, method="avg"), "is 'avg', and should be 'max'"),
        (_layer(8, weights=[]), r"net\.layers\.8\.weights has no part 0"),
        (_layer(8, weights=[np.zeros((1, 1, 256, 9)), np.zeros(256)]), r"\(1, 1, 256, 9\)"),
        (_layer(11, param=np.array([[512, 1, 1, 0.5]])), "does not give vectors of unit length"),
        (_layer(11, param=np.array([[5, 0, 1, 0.5]])), "a window of 5, too few for 256"),
        (lambda form: form.pop("averageImage"), "has no part 'averageImage'"),
        (lambda form: form["net"]["layers"].pop(), "has 11 parts, and should have 12"),
    ],
)
def test_another_network_is_refused(tmp_path, change, problem):
    form = copy.deepcopy(published_form())
    change(form)
    write_matlab5(tmp_path / "a.mat", form)
    with pytest.raises(InputError, match=problem) as refused:
        reader.tensors(tmp_path / "a.mat")
    assert "a.mat is not the published network" in str(refused.value)


@pytest.fixture
def published(shared, monkeypatch):
    monkeypatch.setenv("HARNESS_WEIGHTS", str(shared / "checkpoints/tnet_tgloss"))
    return plugins.model("tnet.liberty")


@pytest.mark.data
def test_the_published_weights_fit_and_keep_the_laws(published):
    laws = check_descriptor(published)
    assert not [law for law in laws if not law.passed]


@pytest.mark.data
def test_the_published_network_is_exported_with_the_same_vectors(published):
    contents, _ = contents_of(published)
    assert len(contents) > 1_000_000


@pytest.mark.data
def test_the_published_network_is_that_of_matconvnet_written_out(published, shared):
    some = strip(shared, "v_graffiti", "ref")[:2]
    small = [cv2.resize(patch, (64, 64)) for patch in some]
    with h5py.File(shared / "checkpoints/tnet_tgloss" / FILE) as opened:
        form = {"averageImage": opened["averageImage"][()].T, "net": {"layers": []}}
        for place in opened["net/layers"][()].ravel():
            layer = opened[place]
            found = {"type": "".join(map(chr, layer["type"][()].ravel()))}
            if found["type"] == "conv":
                arrays = [opened[array][()].T for array in layer["weights"][()].ravel()]
                found |= {"weights": arrays, "stride": layer["stride"][()]}
            form["net"]["layers"].append(found)
    wanted = [slow_vector(patch, form) for patch in small]
    assert np.allclose(published.describe(some), wanted, atol=1e-5)


def strip(shared, scene, name):
    file = shared / "hpatches/mini/patches" / scene / f"{name}.png"
    return cv2.imread(str(file), cv2.IMREAD_GRAYSCALE).reshape(-1, 65, 65)


@pytest.mark.data
def test_filters_with_rows_and_columns_exchanged_match_clearly_worse(published, shared):
    """Exchanged in all layers, the patch is mirrored, which the network hardly sees; so in two."""
    network = published.network()
    right = matched(network, shared)
    with torch.inference_mode():
        for place in (3, 6):
            weight = network.layers[place].weight
            weight.copy_(weight.transpose(2, 3).clone())
    assert right > 0.85
    assert matched(network, shared) < right - 0.05


def matched(network, shared):
    """Share of reference patches whose nearest of another strip is their own."""
    shares = []
    for scene in SCENES:
        some = [
            describe(network, strip(shared, scene, name), "cpu", 256)
            for name in ("ref", "h1", "t3")
        ]
        for other in some[1:]:
            nearest = (some[0] @ other.T).argmax(axis=1)
            shares.append(np.mean(nearest == np.arange(len(nearest))))
    return float(np.mean(shares))
