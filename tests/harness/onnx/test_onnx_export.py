"""Networks as ONNX files: what they give, what they say of themselves, what is refused."""

import json
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from checkout import ROOT
from packages import installed
from torch import nn
from toy import toy_protocol

import harness
from harness import Descriptor, plugins
from harness.contracts import check_descriptor
from harness.data.photographs import Photograph
from harness.distances import ANGLE, HAMMING, L2
from harness.files import home
from harness.onnx import check as onnx_check
from harness.onnx import export as onnx_export
from harness.onnx import file as onnx_file
from harness.onnx import precision as onnx_precision
from harness.onnx import runtime as onnx_runtime
from harness.onnx.check import apart_by, verify
from harness.onnx.export import export, through_onnx
from harness.onnx.samples import some_patches
from harness.trainings import recipe_and_seed
from zoo import l2net as l2net_paper
from zoo import mixed_context, triplet_swap
from zoo.backbones import Deployed, L2Net, resize, standardise, unit
from zoo.doap_networks import SpatialTransformer
from zoo.hynet import HyNet
from zoo.published.hardtfeat import HardTFeat
from zoo.published.tfeat import TFeat

LEVELS = ["DISABLE_ALL", "ENABLE_BASIC", "ENABLE_EXTENDED", "ENABLE_LAYOUT", "ENABLE_ALL"]

without_cuda = pytest.mark.skipif(onnx_file.has_nvidia_driver(), reason="CUDA may work here")


def texture(n: int, side: int = 65) -> np.ndarray:
    """Smooth random patches of full contrast."""
    coarse = torch.from_numpy(np.random.default_rng(side).random((n, 1, 6, 6)))
    fine = nn.functional.interpolate(coarse, (side, side), mode="bicubic", align_corners=False)
    return (255 * fine[:, 0].clamp(0, 1)).to(torch.uint8).numpy()


def hard(side: int) -> np.ndarray:
    """33 patches: each second one is of a kind that a normalisation may stumble over."""
    patches = texture(33, side)
    patches[1:20:2] = np.reshape([0, 1, 77, 128, 200, 254, 255, 128, 0, 255], (10, 1, 1))
    patches[15, side // 2, side // 2] = 129
    patches[17, 0, 0] = 255
    patches[19, -1, side // 2] = 254
    return patches


class Tiny(nn.Module):
    """Two layers on 8 x 8 pixels."""

    recipe = '{"seed": 1, "data": ["a"], "name": "tiny"}'

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.first, self.second = nn.Conv2d(1, 4, 3), nn.Conv2d(4, 16, 6)

    def forward(self, patches):
        x = standardise(resize(patches[:, None].float(), 8))
        return unit(self.second(self.first(x).relu()).flatten(1))


class Bits(nn.Module):
    """16 pixels above grey, packed."""

    def __init__(self, turned: int = 0) -> None:
        super().__init__()
        self.turned = torch.arange(16) < turned

    def forward(self, patches):
        bits = (resize(patches[:, None].float(), 4) > 127).flatten(1) ^ self.turned
        weight = torch.tensor([128, 64, 32, 16, 8, 4, 2, 1])
        return (bits.unflatten(1, (2, 8)) * weight).sum(dim=2).to(torch.uint8)


def by_torch(network, patches):
    with torch.inference_mode():
        return network(torch.from_numpy(patches)).numpy()


def descriptor(network=None, distance=L2, dim=16, **facts):
    network = network or Tiny()
    return Descriptor(
        facts.pop("name", "tiny"),
        lambda patches: by_torch(network, patches),
        distance,
        dim,
        network=lambda: network,
        **facts,
    )


FACTS = {
    "trained_on": frozenset({"phototour/liberty", "a, b"}),
    "licence": "MIT",
    "weights": "0" * 64,
    "code": "1" * 64,
}


def lived_in_l2net() -> Deployed:
    """Random weights, but batch normalisation by the textures above."""
    torch.manual_seed(0)
    network = L2Net()
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = None
    with torch.no_grad():
        network(resize(torch.from_numpy(texture(64))[:, None].float(), 32))
    return Deployed(network)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("onnx")


@pytest.fixture(scope="module")
def l2net(folder):
    network = lived_in_l2net()
    done = export(descriptor(network, dim=128, name="l2net", **FACTS), folder / "l2net.onnx")
    return network, done


@pytest.fixture(scope="module")
def tiny(folder):
    return export(descriptor(**FACTS), folder / "tiny.onnx").file


@pytest.fixture(scope="module")
def bits(folder):
    return export(descriptor(Bits(), HAMMING), folder / "bits.onnx").file


def opened(file: Path, level: str = "ENABLE_ALL", threads: int = 1):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, f"ORT_{level}")
    graph = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    return lambda patches: graph.run(["vectors"], {"patches": patches})[0]


# ---- the graph gives what torch gives


@pytest.mark.parametrize("level", LEVELS)
def test_the_graph_gives_the_vectors_of_torch(l2net, level):
    network, done = l2net
    run = opened(done.file, level)
    for side in (17, 32, 33, 64, 65, 97):
        patches = hard(side)
        wanted = by_torch(network, patches).astype(float)
        for n in (0, 1, 2, 7, 33) if side == 65 else (33,):
            came = run(patches[:n])
            assert came.shape == (n, 128) and came.dtype == np.float32
            assert np.isfinite(came).all()
            assert (1 - (came * wanted[:n]).sum(axis=1) < 1e-5).all(), (side, n)


def test_patches_need_not_be_square(tiny):
    patches = hard(40)[:, :31]
    assert apart_by(opened(tiny)(patches), by_torch(Tiny(), patches), L2).max() < 1e-5


@pytest.mark.parametrize("network", [TFeat, HardTFeat])
def test_the_networks_of_the_zoo_can_be_exported(network, tmp_path):
    torch.manual_seed(0)
    own = network().eval()
    done = export(descriptor(own, dim=128), tmp_path / "x.onnx")
    flat = np.empty((256, 40, 40), np.uint8)
    flat[:] = np.arange(256).reshape(-1, 1, 1)
    for patches in (hard(20), hard(64), hard(65), flat):
        assert apart_by(opened(done.file)(patches), by_torch(own, patches), L2).max() < 1e-5


NETWORKS = {  # every network of the zoo that is no part of another, as users have it
    "TFeat": TFeat,
    "HardTFeat": HardTFeat,
    "L2-Net": lambda: Deployed(L2Net()),
    "central-surround": lambda: Deployed(l2net_paper.CentralSurround()),
    "HyNet": lambda: Deployed(HyNet()),
    "TFeat to be trained": lambda: Deployed(triplet_swap.TFeat()),
    "L2-Net of the mixed context": lambda: Deployed(mixed_context.MeanDeviationL2Net()),
    "BNNet": lambda: Deployed(mixed_context.BNNet()),
    "spatial transformer": lambda: Deployed(SpatialTransformer()),
}


@pytest.mark.parametrize("make", NETWORKS.values(), ids=NETWORKS)
def test_without_biases_flat_patches_of_every_grey_have_the_finite_vectors_of_torch(make):
    """Then a flat patch ends in zeros: a small number that an exporter drops would be missed."""
    torch.manual_seed(0)
    network = make().eval()
    for name, parameter in network.named_parameters():
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
    flat = np.empty((256, 34, 34), np.uint8)
    flat[:] = np.arange(256).reshape(-1, 1, 1)
    wanted = by_torch(network, flat)
    assert np.isfinite(wanted).all()
    contents = onnx_export.graph(network, "x").SerializeToString()
    for level in ("DISABLE_ALL", "ENABLE_ALL"):
        came = onnx_runtime.session(contents, level=level).run(None, {"patches": flat})[0]
        np.testing.assert_allclose(came, wanted, atol=1e-5)


def test_bits_are_packed_as_numpy_packs_them(bits):
    patches = hard(4)
    assert (opened(bits)(patches) == np.packbits(patches.reshape(33, 16) > 127, axis=1)).all()
    assert opened(bits)(patches[:0]).shape == (0, 2)
    assert onnx_file.open_model(bits, device="cpu").distance is HAMMING


@pytest.mark.parametrize("threads", [1, 2])
def test_no_bit_of_a_row_depends_on_its_batch(l2net, threads):
    run = opened(l2net[1].file, threads=threads)
    patches = texture(131)
    together = run(patches)
    for n in (1, 2, 3, 5, 8, 16, 31, 64, 65, 127):
        assert np.array_equal(run(patches[:n]), together[:n])
    assert np.array_equal(run(patches[::-1])[::-1], together)


# ---- what the file is, and what it says of itself


def test_axes_are_named_and_free(l2net):
    graph = onnx.load(l2net[1].file).graph
    (patches,), (vectors,) = graph.input, graph.output
    assert patches.name == "patches" and vectors.name == "vectors"
    of = patches.type.tensor_type
    assert of.elem_type == onnx.TensorProto.UINT8
    assert [axis.dim_param for axis in of.shape.dim] == ["n", "height", "width"]
    first, second = vectors.type.tensor_type.shape.dim
    assert (first.dim_param, second.dim_value) == ("n", 128)


def test_the_file_says_what_it_is(tiny):
    said = {one.key: one.value for one in onnx.load(tiny).metadata_props}
    assert said["weights_sha256"] == FACTS["weights"]
    assert said["recipe"] == Tiny.recipe
    assert said["torch_version"] == torch.__version__
    assert said["precision"] == "fp32"
    found = onnx_file.open_model(tiny, device="cpu")
    assert (found.name, found.distance, found.dim) == ("onnx:tiny", L2, 16)
    assert (found.trained_on, found.licence) == (FACTS["trained_on"], "MIT")
    assert (found.recipe, found.seed) == recipe_and_seed(json.loads(Tiny.recipe))
    assert found.seed == 1


@pytest.mark.parametrize("text", ["", "HardNet's", "[1]", '{"seed": 1}', 5000 * "["])
def test_a_recipe_that_names_no_data_and_seed_is_no_recipe(tiny, tmp_path, text):
    model = onnx.load(tiny)
    next(one for one in model.metadata_props if one.key == "recipe").value = text
    onnx.save(model, tmp_path / "x.onnx")
    found = onnx_file.open_model(tmp_path / "x.onnx", device="cpu")
    assert found.recipe is None and found.seed is None


@pytest.mark.parametrize("trained_on", [None, frozenset()])
def test_unknown_training_data_stay_unknown_and_none_stay_none(
    trained_on, tiny, tmp_path, monkeypatch
):
    monkeypatch.setattr(onnx_export, "graph", lambda network, name: onnx.load(tiny))
    done = export(descriptor(trained_on=trained_on), tmp_path / "x.onnx")
    assert onnx_file.open_model(done.file, device="cpu").trained_on == trained_on


def test_the_photographs_of_the_training_are_in_the_file(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(onnx_export, "graph", lambda network, name: onnx.load(tiny))
    shown = (
        Photograph("a.jpg", "Ana Pérez", "CC-BY-4.0", "its README", "2" * 64),
        Photograph("b.jpg", "B", "CC0-1.0", "its README", "3" * 64),
    )
    done = export(descriptor(photographs=shown), tmp_path / "x.onnx")
    assert onnx_file.open_model(done.file, device="cpu").photographs == shown
    assert onnx_file.open_model(tiny, device="cpu").photographs == ()


def test_no_word_of_this_machine_is_in_the_file(tiny):
    contents = tiny.read_bytes()
    for word in (str(ROOT), "site-packages", ".py", "Tiny"):
        assert word.encode() not in contents


def test_the_report_tells_size_and_largest_distance(l2net):
    _, done = l2net
    assert done.size == done.file.stat().st_size
    assert 0 < done.apart.distance < 1e-6
    assert "patches of" in done.apart.where


# ---- what is refused


def altered(file: Path, *nodes: onnx.NodeProto, kind: int = onnx.TensorProto.FLOAT) -> bytes:
    """A graph whose former vectors, "v", go through nodes with constants "c" and "axis"."""
    model = onnx.load(file)
    for node in model.graph.node:
        for names in (node.input, node.output):
            names[:] = ["v" if name == "vectors" else name for name in names]
    model.graph.initializer.extend(
        [
            onnx.numpy_helper.from_array(np.array([0.01], np.float32), "c"),
            onnx.numpy_helper.from_array(np.array([8]), "width"),
            onnx.numpy_helper.from_array(np.array([0]), "start"),
            onnx.numpy_helper.from_array(np.array([1]), "axis"),
        ]
    )
    model.graph.node.extend(nodes)
    model.graph.output[0].type.tensor_type.elem_type = kind
    del model.graph.output[0].type.tensor_type.shape.dim[:]
    return model.SerializeToString()


def node(operator: str, *inputs: str, output: str = "vectors", **attributes) -> onnx.NodeProto:
    return onnx.helper.make_node(operator, inputs, [output], **attributes)


DOUBLE = onnx.TensorProto.DOUBLE
WRONG = {
    "moved": (
        [node("Add", "v", "c")],
        r"apart \(patch \d+ of \d+ patches of \d+ x \d+, \w+\); 1e-05 is",
    ),
    "longer": ([node("Div", "v", "c")], "apart"),
    "not numbers": (
        [node("Sub", "v", "v", output="zero"), node("Div", "zero", "zero")],
        "NaN or infinity",
    ),
    "too short": (
        [node("Slice", "v", "start", "width", "axis")],
        r"gives float32 \[0, 8\].* want float32 \[0, 16\]",
    ),
    "not a graph": ([node("NoSuchOperator", "v")], "ONNX Runtime refuses the graph"),
    "of another type": ([node("Cast", "v", to=DOUBLE)], "gives float64"),
}


@pytest.mark.parametrize(("nodes", "message"), WRONG.values(), ids=WRONG)
def test_a_graph_that_gives_other_vectors_is_refused(nodes, message, tiny):
    kind = DOUBLE if nodes[0].op_type == "Cast" else onnx.TensorProto.FLOAT
    contents = altered(tiny, *nodes, kind=kind)
    with pytest.raises(ValueError, match=message):
        verify(contents, Tiny(), descriptor(), allowed=1e-5)


def test_what_is_refused_is_not_written(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(onnx_export, "graph", lambda network, name: onnx.load(tiny))
    file = tmp_path / "wrong.onnx"
    file.write_text("as before")
    with pytest.raises(ValueError, match=r"tiny: graph and network are .* apart"):
        export(descriptor(Tiny(seed=1)), file)
    assert file.read_text() == "as before"
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("turned", [0, 1, 2])
def test_one_bit_may_turn(turned, bits):
    made = descriptor(Bits(), HAMMING)
    allowed = onnx_check.rounding(made)
    if turned < 2:
        found = verify(bits.read_bytes(), Bits(turned), made, allowed=allowed)
        assert found.distance == turned / 16
    else:
        with pytest.raises(ValueError, match=r"0\.12 apart"):
            verify(bits.read_bytes(), Bits(turned), made, allowed=allowed)


def test_a_number_of_patches_in_the_graph_is_found_and_explained(tmp_path):
    class Counts(Tiny):
        def forward(self, patches):
            return super().forward(patches).reshape(len(patches), -1)

    with pytest.raises(ValueError, match=r"fails .* len\(x\) .* x\.shape\[0\]"):
        export(descriptor(Counts()), tmp_path / "x.onnx")


def test_a_network_of_one_size_only_is_refused(tiny):
    class Fixed(Tiny):
        def forward(self, patches):
            return patches.float().reshape(-1, 1600)[:, :16]

    with pytest.raises(ValueError, match=r"tiny: its network fails on uint8 .*\[33, 6\d, 6\d\]"):
        verify(tiny.read_bytes(), Fixed(), descriptor(), allowed=1)


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({"network": None}, {}, "has no network"),
        ({}, {"precision": "fp8"}, "no precision 'fp8'; known: fp32, fp16, int8"),
        ({}, {"precision": "int8"}, "give some for calibration"),
    ],
)
def test_what_can_not_be_exported_says_why(change, options, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        export(replace(descriptor(), **change), tmp_path / "x.onnx", **options)


# ---- fewer bits


def test_float16_halves_the_file_and_keeps_vectors_and_lengths(l2net, folder):
    network, whole = l2net
    file = folder / "half.onnx"
    onnx.save(onnx_precision.to_float16(onnx.load(whole.file)), file)
    assert file.stat().st_size < 0.51 * whole.size
    for level in LEVELS:
        vectors = opened(file, level)(hard(65))
        assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
        assert 1e-9 < apart_by(vectors, by_torch(network, hard(65)), L2).max() < 1e-4
    graph = onnx.load(file).graph
    halves = {one.name for one in graph.initializer if one.data_type == onnx.TensorProto.FLOAT16}
    for one in graph.node:
        assert (one.op_type == "Conv") == any(name in halves for name in one.input)
    assert sum(one.name.endswith("/cast") for one in graph.node) == 2  # into half, and out of it


def test_int8_quarters_the_file_and_leaves_the_first_layer_whole(l2net, folder):
    network, whole = l2net
    file = folder / "int8.onnx"
    onnx.save(onnx_precision.to_int8(onnx.load(whole.file), texture(64)), file)
    assert file.stat().st_size < 0.3 * whole.size
    apart = apart_by(opened(file)(texture(40)), by_torch(network, texture(40)), L2)
    assert 1e-6 < apart.mean() < 0.03
    graph = onnx.load(file).graph
    weights = {one.name for one in graph.initializer}
    layers = [one.input[1] for one in graph.node if one.op_type == "Conv"]
    assert [name in weights for name in layers] == [True] + [False] * 6  # others are dequantised


def test_int8_of_one_layer_is_refused(tiny):
    model = onnx.load(tiny)
    for one in model.graph.node:
        if one.name and "second" in "".join(one.input):
            one.op_type = "Identity"
    with pytest.raises(ValueError, match="all layers but the first, and the graph has 1"):
        onnx_precision.to_int8(model, texture(2))


# ---- the distance of vectors


def test_apart_is_the_cosine_distance_and_sees_lengths():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 50, 8)).astype(np.float32)
    a /= np.linalg.norm(a, axis=1, keepdims=True)
    b /= np.linalg.norm(b, axis=1, keepdims=True)
    cosine = [float(x @ y) for x, y in zip(a.astype(float), b.astype(float), strict=True)]
    assert np.allclose(apart_by(a, b, ANGLE), 1 - np.array(cosine), atol=1e-6)
    assert np.allclose(apart_by(a, 2 * a, L2), 0.25)
    zero = np.zeros((1, 8), np.float32)
    assert apart_by(zero, zero, L2) == 0
    assert apart_by(zero, a[:1], L2) > 1


def test_apart_of_bits_is_the_share_that_differs():
    a, b = np.array([[255, 0]], np.uint8), np.array([[254, 1]], np.uint8)
    assert apart_by(a, b, HAMMING) == 2 / 16


# ---- described through ONNX Runtime


def test_a_descriptor_computes_through_onnx_what_torch_computes(tiny):
    made = descriptor(**FACTS)
    through = through_onnx(made)
    assert through.provider == "CPUExecutionProvider"
    assert (through.name, through.weights, through.licence) == ("tiny", "0" * 64, "MIT")
    assert {"torch", "onnx", "numpy"} < set(through.libraries)
    assert apart_by(through.describe(hard(65)), made.describe(hard(65)), L2).max() < 1e-5
    assert not [law for law in check_descriptor(through) if not law.passed]
    kept = [file.read_bytes() for file in home.cache("onnx").rglob("*.entry")]
    assert any(tiny.read_bytes() in one for one in kept)  # the same network gives the same bytes


@pytest.fixture
def exports(tiny, monkeypatch):
    """Descriptors that are exported; each time, it is another's graph that is written."""
    seen = []

    def copy(descriptor):
        seen.append(descriptor)
        time.sleep(0.1)  # time for another to come
        return tiny.read_bytes(), None

    monkeypatch.setattr(onnx_export, "contents_of", copy)
    return seen


def test_a_graph_is_made_once_and_again_for_other_weights_code_or_facts(exports):
    def of(**change):
        return descriptor(**FACTS | {"name": "once"} | change)

    first, again = through_onnx(of()), through_onnx(of())
    assert len(exports) == 1
    assert np.array_equal(first.describe(hard(32)), again.describe(hard(32)))
    through_onnx(of(weights="2" * 64))
    through_onnx(of(code="2" * 64))
    through_onnx(of(licence="BSD"))
    assert len(exports) == 4


def test_two_that_want_a_graph_at_once_make_it_once(exports):
    wanted = descriptor(**FACTS | {"name": "two"})
    threads = [threading.Thread(target=through_onnx, args=(wanted,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(exports) == 1


@without_cuda
def test_cuda_is_cuda_or_an_error():
    with pytest.raises(RuntimeError, match="can't compute on cuda"):
        through_onnx(descriptor(**FACTS), device="cuda")


@pytest.mark.parametrize("missing", [{"weights": None}, {"code": ""}])
def test_a_graph_that_could_be_taken_for_another_is_not_kept(missing):
    with pytest.raises(ValueError, match="has no weights or no code"):
        through_onnx(descriptor(**FACTS | missing))


# ---- harness export


@pytest.fixture
def plugin(tmp_path):
    """A user's file with a descriptor that has a network."""
    file = tmp_path / "mine.py"
    file.write_text(
        "import torch\n"
        "from harness import Descriptor\n"
        "from harness.distances import L2\n"
        "class Net(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        torch.manual_seed(0)\n"
        "        self.a, self.b = torch.nn.Conv2d(1, 4, 3), torch.nn.Conv2d(4, 8, 3)\n"
        "    def forward(self, patches):\n"
        "        x = self.b(self.a(patches[:, None].float() / 255).relu()).mean((2, 3))\n"
        "        return x / x.square().sum(1, keepdim=True).clamp(min=1e-12).sqrt()\n"
        "def net():\n"
        "    def describe(patches):\n"
        "        with torch.inference_mode():\n"
        "            return Net()(torch.from_numpy(patches)).numpy()\n"
        "    return Descriptor('net', describe, L2, 8, network=Net)\n"
    )
    return f"{file}:net"


def test_the_command_tells_size_distance_and_speed(plugin, tmp_path, run):
    _, out, _ = run("export", "--model", plugin, "--out", tmp_path / "a.onnx")
    size, apart, speed = out.splitlines()
    assert size.endswith("MiB  fp32")
    assert apart.startswith("differs from torch by at most")
    assert "patches a second by torch" in speed and speed.endswith("by CPUExecutionProvider")
    assert onnx_file.open_model(tmp_path / "a.onnx", device="cpu").name == "onnx:mine:net"


TOY = """
from toy import toy_protocol

def made(*, data=None):
    return toy_protocol()
"""


@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8"])
def test_the_change_of_the_score_of_a_protocol_is_told(precision, tiny, tmp_path, monkeypatch, run):
    monkeypatch.setattr(plugins, "model", lambda spec, device: descriptor())
    monkeypatch.setattr(onnx_export, "graph", lambda network, name: onnx.load(tiny))
    with installed(tmp_path, "toy-bench", TOY, protocols={"toy": "made"}):
        _, out, _ = run(
            "export", "--model", "tiny", "--out", tmp_path / "a.onnx", "--precision", precision,
            "--protocol", "toy",
        )  # fmt: skip
    *_, values, score = out.splitlines()
    assert values.startswith("on 60 patches of toy-data: they differ by")
    name, headline, before, _, after, change = score.split()
    assert (name, headline) == ("toy/verification", "verification/ap")
    assert float(change.strip("()")) == pytest.approx(float(after) - float(before), abs=1.1e-5)


def test_calibration_patches_come_from_all_over_a_data_set():
    dataset = toy_protocol().dataset
    patches = some_patches(dataset, 10)
    blocks = [block.read() for block in dataset.blocks]
    assert len(patches) == 10
    for block in blocks:
        assert any((patches == block[0]).all(axis=(1, 2)))
        assert any((patches == block[-1]).all(axis=(1, 2)))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--model", "tfeat"], "one model is exported at a time, not tfeat.liberty, tfeat"),
        (["--model", "rootsift"], "rootsift can't be exported: it has no network"),
        (["--model", "pixels", "--precision", "int8"], "int8 gets its scales from patches: give"),
        (["--model", "pixels", "--data", "x"], "data are given, but no --protocol"),
    ],
)
def test_what_can_not_be_exported_is_refused(run, tmp_path, given, told):
    status, _, err = run("export", "--out", tmp_path / "a.onnx", *given)
    assert status == 2
    assert told in err


def test_a_folder_of_vectors_can_not_be_exported(tmp_path):
    (tmp_path / "v_a").mkdir()
    (tmp_path / "v_a/ref.csv").write_text("1,2\n")
    with pytest.raises(TypeError, match="it has no network to export"):
        harness.export_onnx(tmp_path, tmp_path / "a.onnx")


def test_scales_may_come_from_a_data_set(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(onnx_export, "graph", lambda network, name: onnx.load(tiny))
    dataset = toy_protocol().dataset
    done = harness.export_onnx(
        descriptor(), tmp_path / "a.onnx", precision="int8", calibration=dataset
    )
    assert done.file.stat().st_size == done.size


def test_the_check_on_export_sees_every_level_and_number():
    assert set(onnx_check.LEVELS) == set(LEVELS)
    assert {n for n, _ in onnx_check.CHECKED} == {0, 1, 2, 7, 33}
    patches = onnx_check.hard_patches(65)
    assert len(patches) == 33
    flat = {int(one[0, 0]) for one in patches[:7] if one.min() == one.max()}
    assert flat == {0, 128, 255}
    assert sum(one.max() - one.min() == 1 for one in patches) == 2  # nearly constant
