"""TFeat: the network as the authors' code has it, and the three published sets of weights."""

from pathlib import Path

import cv2
import numpy as np
import pytest
import torch

from harness import Descriptor
from zoo import baselines
from zoo.published import describing, tfeat
from zoo.published.tfeat import TFeat


def patches(n: int, side: int = 65) -> np.ndarray:
    found = np.random.default_rng(n).integers(0, 256, (n, side, side), np.uint8)
    found.flags.writeable = False
    return found


@pytest.fixture(scope="module")
def network() -> TFeat:
    torch.manual_seed(0)
    return TFeat().eval()


def describe(network: TFeat, some: np.ndarray) -> np.ndarray:
    return describing.describe(network, some, "cpu")


def test_the_network_has_the_parameters_of_the_paper(network: TFeat) -> None:
    assert {name: tuple(p.shape) for name, p in network.state_dict().items()} == {
        "features.1.weight": (32, 1, 7, 7),
        "features.1.bias": (32,),
        "features.4.weight": (64, 32, 6, 6),
        "features.4.bias": (64,),
        "descr.0.weight": (128, 4096),
        "descr.0.bias": (128,),
    }


@pytest.mark.parametrize("n", [0, 1, 5])
@pytest.mark.parametrize("side", [32, 64, 65])
def test_every_patch_gets_one_row(network: TFeat, n: int, side: int) -> None:
    vectors = describe(network, patches(n, side))
    assert vectors.shape == (n, 128) and vectors.dtype == np.float32


@pytest.mark.parametrize("grey", [0, 77, 255])
def test_a_flat_patch_is_described(network: TFeat, grey: int) -> None:
    assert np.isfinite(describe(network, np.full((2, 65, 65), grey, np.uint8))).all()


def test_the_vector_hardly_sees_brightness_and_contrast(network: TFeat) -> None:
    dark = patches(4) // 2
    assert np.allclose(describe(network, dark), describe(network, 2 * dark + 1), atol=0.05)


def test_a_patch_is_resized_bilinearly_without_antialiasing(network: TFeat) -> None:
    some = patches(3)
    small = np.array([cv2.resize(p, (32, 32), interpolation=cv2.INTER_LINEAR) for p in some])
    assert np.array_equal(describe(network, some), describe(network, small))


def test_the_network_is_that_of_the_paper_written_out(network: TFeat) -> None:
    some = patches(3, 32)
    p = {name: value.double() for name, value in network.state_dict().items()}
    x = torch.from_numpy(some.astype(np.float64))[:, None]
    x = (x - x.mean((2, 3), True)) / torch.sqrt(x.var((2, 3), correction=0, keepdim=True) + 1e-5)
    x = torch.tanh(torch.conv2d(x, p["features.1.weight"], p["features.1.bias"]))
    x = torch.max_pool2d(x, 2)
    x = torch.tanh(torch.conv2d(x, p["features.4.weight"], p["features.4.bias"]))
    x = torch.tanh(x.flatten(1) @ p["descr.0.weight"].T + p["descr.0.bias"])
    assert np.allclose(describe(network, some), x.numpy(), atol=1e-5)


@pytest.fixture(params=["liberty", "notredame", "yosemite"])
def published(
    request: pytest.FixtureRequest, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> Descriptor:
    monkeypatch.setenv("HARNESS_WEIGHTS", str(shared / "checkpoints" / "tfeat"))
    return getattr(tfeat, request.param)()


@pytest.mark.data
def test_published_weights_fit_the_network(published: Descriptor) -> None:
    vectors = published.describe(patches(5))
    assert vectors.shape == (5, 128) and abs(vectors).max() <= 1


@pytest.mark.data
def test_published_weights_match_far_better_than_pixels(
    published: Descriptor, shared: Path
) -> None:
    trained = matched(published, shared)
    assert trained > matched(baselines.pixels(), shared) + 0.15
    assert trained > 0.8


def matched(descriptor: Descriptor, shared: Path) -> float:
    """Share of reference patches whose nearest of a hard strip is their own."""
    folder = shared / "hpatches" / "mini" / "patches"
    shares = []
    for scene in ("v_churchill", "v_graffiti", "i_leuven"):
        vectors = []
        for strip in ("ref", "h3"):
            image = cv2.imread(str(folder / scene / f"{strip}.png"), cv2.IMREAD_GRAYSCALE)
            assert image is not None
            vectors.append(descriptor.describe(image.reshape(-1, 65, 65)))
        nearest = descriptor.distance.cross(*vectors).argmin(axis=1)
        shares.append(np.mean(nearest == np.arange(len(nearest))))
    return float(np.mean(shares))
