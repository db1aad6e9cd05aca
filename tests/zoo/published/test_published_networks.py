"""Published networks, from files in their authors' layout: kornia's vectors, laws, ONNX."""

from pathlib import Path

import numpy as np
import published_weight_files
import pytest
import torch
from kornia import feature
from torch.nn import functional

from harness import plugins, registry
from harness.contracts import check_descriptor
from harness.data import published_weights
from harness.data.weights import TENSORS, Weights
from harness.onnx.export import contents_of
from zoo import catalogue
from zoo.published import git_rows
from zoo.published.tfeat import TFeat

ROWS = {row.name: row for row in catalogue.models()}
OF_KINDS = (  # one model of each layout and network
    "hardnet-official.liberty",
    "hardnet-ps",
    "hardnet8",
    "sosnet-official.liberty",
    "hynet-official.liberty",
    "dsm.liberty",
    "dsm-binary.liberty",
)


@pytest.fixture(autouse=True)
def empty_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))


def patches(n: int, side: int = 32) -> np.ndarray:
    """Noise of different contrast and brightness."""
    rng = np.random.default_rng(n)
    deviation, mean = rng.uniform(5, 60, (n, 1, 1)), rng.uniform(80, 170, (n, 1, 1))
    noise = mean + deviation * rng.standard_normal((n, side, side))
    return noise.clip(0, 255).astype(np.uint8)


def of_kornia(
    network: torch.nn.Module, tensors: dict[str, torch.Tensor], some: np.ndarray, scale: float
) -> np.ndarray:
    network.load_state_dict(tensors, strict=True)
    with torch.inference_mode():
        return network.eval()(torch.from_numpy(some)[:, None].float() * scale).numpy()


@pytest.mark.parametrize("name", sorted(published_weight_files.LAYOUTS))
def test_a_file_in_the_layout_of_its_authors_becomes_a_descriptor(name, tmp_path, monkeypatch):
    published_weight_files.bring(name, tmp_path, monkeypatch)
    made, row = plugins.model(name, device="cpu"), ROWS[name]
    assert (made.name, made.dim, made.distance.name) == (name, row.dim, row.distance)
    assert (made.trained_on, made.licence) == (row.trained_on, row.licence)
    assert made.conventions is not None
    assert made.describe(patches(3, 65)).shape == (3, made.width)


def test_the_layouts_are_those_of_all_rows_that_pytorch_reads():
    tables = [table for table in vars(git_rows).values() if isinstance(table, dict)]
    known = [row for table in tables for row in table.values() if isinstance(row, Weights)]
    rows = [row.name for row in known if row.read == TENSORS]
    assert sorted(rows) == sorted(published_weight_files.LAYOUTS)
    assert {*rows} <= published_weights.known().keys()


@pytest.mark.parametrize("name", OF_KINDS)
def test_a_published_network_keeps_the_laws_of_descriptors(name, tmp_path, monkeypatch):
    published_weight_files.bring(name, tmp_path, monkeypatch)
    laws = check_descriptor(plugins.model(name, device="cpu"))
    assert not [f"{law.name}: {law.detail}" for law in laws if not law.passed]


@pytest.mark.parametrize("name", OF_KINDS)
def test_a_published_network_is_exported_with_the_same_vectors(name, tmp_path, monkeypatch):
    published_weight_files.bring(name, tmp_path, monkeypatch)
    contents, _ = contents_of(plugins.model(name, device="cpu"))
    assert len(contents) > 5_000_000


def test_a_file_with_a_tensor_too_many_is_refused(tmp_path, monkeypatch):
    layout = published_weight_files.LAYOUTS["sosnet-official.liberty"] | {
        "layers.21.weight": (128,)
    }
    monkeypatch.setitem(published_weight_files.LAYOUTS, "sosnet-official.liberty", layout)
    published_weight_files.bring("sosnet-official.liberty", tmp_path, monkeypatch)
    with pytest.raises(RuntimeError, match=r"Unexpected key.*layers\.21\.weight"):
        plugins.model("sosnet-official.liberty", device="cpu")


# ---- other implementations


@pytest.mark.parametrize(
    ("name", "network"),
    [
        ("hardnet-official.liberty", feature.HardNet),
        ("hardnet++", feature.HardNet),
        ("hardnet8", feature.HardNet8),
        ("sosnet-official.liberty", feature.SOSNet),
        ("hynet-official.liberty", feature.HyNet),
        ("dsm.liberty", feature.HardNet),  # the same layers
    ],
)
def test_vectors_are_those_of_kornia(name, network, tmp_path, monkeypatch):
    tensors = published_weight_files.bring(name, tmp_path, monkeypatch)
    some = patches(40)
    ours = plugins.model(name, device="cpu").describe(some)
    theirs = of_kornia(network(pretrained=False), tensors, some, 1)
    np.testing.assert_allclose(ours, theirs, atol=3e-6)
    # kornia's users feed grey values in [0, 1]. Each network divides a patch by its deviation or
    # its root mean square, so the scale cancels, but for the 1e-5 that SOSNet adds to a variance:
    # 0.00084 in [0, 1] is the variance of the patch with the least contrast here.
    theirs = of_kornia(network(pretrained=False), tensors, some, 1 / 255)
    apart = 2e-3 if network is feature.SOSNet else 2e-5
    np.testing.assert_allclose(ours, theirs, atol=apart)


def test_tfeats_vectors_are_those_of_kornia():
    tensors = published_weight_files.random_weights(
        published_weight_files.shapes_of(feature.TFeat(pretrained=False))
    )
    network = TFeat().eval()
    network.load_state_dict(tensors, strict=True)
    some = patches(40)
    with torch.inference_mode():
        ours = network(torch.from_numpy(some)).numpy()
    theirs = of_kornia(feature.TFeat(pretrained=False), tensors, some, 1)
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


def written_out(p: dict[str, torch.Tensor], some: np.ndarray) -> torch.Tensor:
    """L2-Net's last layer in float64, from names of HardNet's code."""
    x = torch.from_numpy(some)[:, None].double()
    x = (x - x.mean((1, 2, 3), keepdim=True)) / x.std((1, 2, 3), keepdim=True)
    p = {name.removeprefix("features."): value.double() for name, value in p.items()}

    def norm(x: torch.Tensor, at: int) -> torch.Tensor:
        x = x - p[f"{at}.running_mean"][:, None, None]
        x = x / (p[f"{at}.running_var"] + 1e-5).sqrt()[:, None, None]
        if f"{at}.weight" in p:
            x = x * p[f"{at}.weight"][:, None, None] + p[f"{at}.bias"][:, None, None]
        return x

    for at, stride in zip(range(0, 18, 3), (1, 1, 2, 1, 2, 1), strict=True):
        x = functional.conv2d(x, p[f"{at}.weight"], p.get(f"{at}.bias"), stride, 1)
        x = norm(x, at + 1).relu()
    (last,) = (at for at in (18, 19) if f"{at}.weight" in p)
    x = functional.conv2d(x, p[f"{last}.weight"], p.get(f"{last}.bias"))
    return (norm(x, 20) if "20.running_var" in p else x).flatten(1)


@pytest.mark.parametrize("name", ["hardnet-ps", "hardnet-official.yosemite", "dsm.yosemite"])
def test_vectors_are_those_of_the_network_written_out(name, tmp_path, monkeypatch):
    tensors = published_weight_files.bring(name, tmp_path, monkeypatch)
    some = patches(10)
    wanted = functional.normalize(written_out(tensors, some))
    ours = plugins.model(name, device="cpu").describe(some)
    np.testing.assert_allclose(ours, wanted.numpy(), atol=1e-6)


def test_bits_are_the_signs_of_the_network_written_out(tmp_path, monkeypatch):
    tensors = published_weight_files.bring("dsm-binary.liberty", tmp_path, monkeypatch)
    some = patches(10)
    wanted = written_out(tensors, some).numpy()
    bits = np.unpackbits(plugins.model("dsm-binary.liberty", device="cpu").describe(some), axis=1)
    sure = abs(wanted) > 1e-4
    assert sure.mean() > 0.99
    assert np.array_equal(bits[sure], wanted[sure] > 0)


def test_the_members_of_a_table_are_named_by_their_models():
    for table in ("hardnet", "sosnet", "hynet", "dsm", "dsm-binary"):
        for member, row in registry.load("weights", table).items():
            assert row.name == member or row.name.endswith(f".{member}")
