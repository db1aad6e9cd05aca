"""GeoDesc: graphs written byte by byte with random weights, and the network written out."""

from dataclasses import replace

import cv2
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from slow_layers import matlab_correlation
from tensorflow_files import constant, flag, graph, node, number, real, text, whole_numbers

from harness import plugins
from harness.contracts import check_descriptor
from harness.data.copies import digest
from harness.errors import InputError
from harness.onnx.export import contents_of
from zoo.published.describing import describe
from zoo.published.files import geodesc as reader
from zoo.published.files import tensorflow
from zoo.published.geodesc import GeoDesc
from zoo.published.git_rows import GEODESC


def parameters():
    """Random filters with TensorFlow's axes, and moments of batch normalisation."""
    rng = np.random.default_rng(0)
    return [
        {
            "filters": single(rng.normal(size=(side, side, inputs, outputs)) / side / inputs**0.5),
            "mean": single(rng.normal(size=outputs)),
            "variance": single(rng.uniform(0.5, 2, outputs)),
        }
        for inputs, outputs, side, _, _ in reader.CONVOLUTIONS
    ]


def single(array):
    return array.astype(np.float32)


def nodes(layers, op="FusedBatchNorm"):
    """The operations that TensorFlow 1 makes of the authors' training code, frozen."""
    made = {"input": node("input", "Placeholder", dtype=number(6, 1))}
    at = "input"

    def add(name, *arguments, **attributes):
        made[name] = node(name, *arguments, **attributes)

    for i, (layer, (_, outputs, _, stride, padding)) in enumerate(
        zip(layers, reader.CONVOLUTIONS, strict=True)
    ):
        name = f"conv{i}"
        made[f"{name}/kernel"] = constant(f"{name}/kernel", layer["filters"])
        add(f"{name}/kernel/read", "Identity", f"{name}/kernel")
        strides = whole_numbers(1, stride, stride, 1)
        attributes = {"padding": text(padding), "data_format": text("NHWC"), "strides": strides}
        add(f"{name}/Conv2D", "Conv2D", at, f"{name}/kernel/read", **attributes)
        at = f"{name}/Conv2D"
        if i < 6:
            one = np.ones(outputs, np.float32)
            made[f"{name}/one"] = constant(f"{name}/one", one, repeated=True)
            made[f"{name}/zero"] = constant(f"{name}/zero", 0 * one, repeated=True)
            for moment in ("mean", "variance"):
                made[f"{name}/{moment}"] = constant(f"{name}/{moment}", layer[moment])
            sources = [at, *(f"{name}/{part}" for part in ("one", "zero", "mean", "variance"))]
            attributes = {"epsilon": real(1e-5), "is_training": flag(False)}
            add(f"{name}/bn", op, *sources, **attributes)
            add(f"{name}/relu", "Relu", f"{name}/bn:0")
            at = f"{name}/relu"
    made["axis"] = constant("axis", np.array([-1], np.int32))
    made["tiny"] = constant("tiny", np.array(1e-12, np.float32))
    add("l2norm/Square", "Square", at)
    add("l2norm/Sum", "Sum", "l2norm/Square", "axis", keep_dims=flag(True))
    add("l2norm/Maximum", "Maximum", "l2norm/Sum", "tiny")
    add("l2norm/Rsqrt", "Rsqrt", "l2norm/Maximum")
    add("l2norm", "Mul", at, "l2norm/Rsqrt")
    add("squeeze_1", "Squeeze", "l2norm", squeeze_dims=whole_numbers(1, 2))
    return made


@pytest.fixture(scope="module")
def layers():
    return parameters()


@pytest.fixture(params=["FusedBatchNorm", "FusedBatchNormV3"])
def file(request, layers, tmp_path):
    (tmp_path / "a.pb").write_bytes(graph(*nodes(layers, request.param).values()))
    return tmp_path / "a.pb"


def loaded(file):
    network = GeoDesc()
    network.load_state_dict(reader.tensors(file), strict=True)
    return network.eval()


def slow_vector(patch, layers):
    """The graph written out, with TensorFlow's axes and padding; patches as the authors' code."""
    x = cv2.resize(patch.astype(np.float32), (32, 32)).astype(float)
    x = ((x - x.mean()) / (x.std() + 1e-8))[:, :, None]
    for layer, (_, _, side, stride, padding) in zip(layers, reader.CONVOLUTIONS, strict=True):
        if padding == "SAME":
            rows = -(-x.shape[0] // stride)  # of the output
            total = max((rows - 1) * stride + side - x.shape[0], 0)
            pad = (total // 2, total - total // 2)
            x = np.pad(x, (pad, pad, (0, 0)))
        x = matlab_correlation(x, layer["filters"], np.zeros(1), stride=stride)
        if padding == "SAME":
            x = np.maximum((x - layer["mean"]) / np.sqrt(layer["variance"] + 1e-5), 0)
    return x[0, 0] / np.linalg.norm(x)


def patches(n, side):
    return np.random.default_rng(n).integers(0, 256, (n, side, side), np.uint8)


@pytest.mark.parametrize("side", [32, 65])
def test_the_network_is_the_graph_written_out(file, layers, side):
    some = patches(2, side)
    wanted = [slow_vector(patch, layers) for patch in some]
    assert np.allclose(describe(loaded(file), some, "cpu"), wanted, atol=1e-5)


def test_a_bias_is_part_of_the_layer(layers, tmp_path):
    made = nodes(layers)
    made["bias"] = constant("bias", np.arange(128, dtype=np.float32))
    made["biased"] = node("biased", "BiasAdd", "conv6/Conv2D", "bias")
    made["l2norm"] = node("l2norm", "Mul", "biased", "l2norm/Rsqrt")
    made["l2norm/Square"] = node("l2norm/Square", "Square", "biased")
    (tmp_path / "a.pb").write_bytes(graph(*made.values()))
    found = reader.tensors(tmp_path / "a.pb")
    assert np.array_equal(found["convolutions.6.bias"], np.arange(128))


@pytest.mark.parametrize(
    ("name", "changed", "problem"),
    [
        ("squeeze_1", None, "has no operation 'squeeze_1'"),
        ("conv2/kernel", None, "has no operation 'conv2/kernel'"),
        (
            "conv1/relu",
            node("conv1/relu", "Tanh", "conv1/bn"),
            "'conv1/relu', Tanh, should be Relu",
        ),
        ("conv1/relu", node("conv1/relu", "Relu"), "'conv1/relu', Relu, has no input 0"),
        ("conv0/mean", constant("conv0/mean", np.ones(5, np.float32)), r"shape \(5,\)"),
        ("input", node("other", "Placeholder"), "has no operation 'input'"),
        ("tiny", node("input", "Placeholder"), "two operations named 'input'"),
        ("l2norm/Square", node("l2norm/Square", "Square", "input"), "is not of the vector"),
        ("conv5/bn", node("conv5/bn", "Identity", "conv5/bn"), "has no operation 'conv5/bn'"),
        (
            "conv3/Conv2D",
            node("conv3/Conv2D", "Conv2D", "conv2/relu", "conv3/kernel", padding=text("VALID")),
            "has strides None",
        ),
        (
            "conv4/bn",
            node("conv4/bn", "FusedBatchNorm", "conv4/Conv2D", is_training=flag(True)),
            "has is_training True, and should have False",
        ),
    ],
)
def test_another_graph_is_refused(layers, tmp_path, name, changed, problem):
    made = nodes(layers)
    if changed is None:
        del made[name]
    else:
        made[name] = changed
    (tmp_path / "a.pb").write_bytes(graph(*made.values()))
    with pytest.raises(InputError, match=problem) as refused:
        reader.tensors(tmp_path / "a.pb")
    assert "a.pb" in str(refused.value)


@pytest.mark.parametrize("data", [b"", b"no graph", b"\xff" * 99])
def test_a_file_of_something_else_is_refused(tmp_path, data):
    (tmp_path / "a.pb").write_bytes(data)
    with pytest.raises(InputError, match=r"a\.pb .*not a graph of TensorFlow"):
        reader.tensors(tmp_path / "a.pb")


def test_a_file_that_is_cut_off_is_refused(file):
    whole = file.read_bytes()
    for share in (0.001, 0.1, 0.5, 0.9, 0.9999):
        file.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(InputError, match=r"a\.pb"):
            reader.tensors(file)


def test_a_huge_constant_in_few_bytes_is_refused(tmp_path):
    huge = np.broadcast_to(np.float32(1), (1 << 20, 1 << 20))
    (tmp_path / "a.pb").write_bytes(graph(constant("huge", huge, repeated=True)))
    with pytest.raises(InputError, match=r"the constant 'huge' .* has 1 numbers"):
        tensorflow.read(tmp_path / "a.pb")


SMALL = graph(
    constant("a", np.arange(6, dtype=np.float32).reshape(2, 3)),
    node("b", "Conv2D", "a", "a", strides=whole_numbers(1, 2, 2, 1), padding=text("SAME")),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(changes=st.lists(st.tuples(st.integers(0, len(SMALL) - 1), st.integers(0, 255)), max_size=4))
def test_a_damaged_graph_is_read_or_refused(tmp_path, changes):
    data = bytearray(SMALL)
    for place, byte in changes:
        data[place] = byte
    (tmp_path / "a.pb").write_bytes(data)
    try:
        tensorflow.read(tmp_path / "a.pb")
    except InputError as error:
        assert "a.pb" in str(error)


def test_the_model_keeps_the_laws_and_is_exported_with_the_same_vectors(
    layers, monkeypatch, tmp_path
):
    file = tmp_path / "geodesc.pb"
    file.write_bytes(graph(*nodes(layers).values()))
    monkeypatch.setitem(
        GEODESC, "geodesc", replace(GEODESC["geodesc"], git_blob=digest(file, "git"))
    )
    monkeypatch.setenv("HARNESS_WEIGHTS", str(tmp_path))
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    made = plugins.model("geodesc")
    assert not [law for law in check_descriptor(made) if not law.passed]
    contents, _ = contents_of(made)
    assert len(contents) > 5_000_000
