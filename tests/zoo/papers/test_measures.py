"""What the papers' figures measure, on inputs whose answer is known."""

import numpy as np
import pytest
import torch

from harness.errors import InputError
from zoo.papers import activity, alignment, bits, digits


@pytest.mark.parametrize(("loss", "slope"), [("log", 0.5), ("sse", 0.25)])
@pytest.mark.parametrize("delta", [1.0, 2.0, 5.0])
def test_at_rho_0_the_activity_does_not_depend_on_delta(loss, slope, delta):
    assert activity.activity(None, [], loss=loss, delta=delta)["value"] == pytest.approx(slope)


def test_a_log_loss_of_infinite_delta_is_the_hinge():
    (curve,) = activity.activity(None, [], loss="log", delta=np.inf)["curves"].values()
    assert {round(acting, 9) for rho, acting in curve if rho < 0} == {1.0}
    assert {round(acting, 9) for rho, acting in curve if rho > 1e-9} == {0.0}
    with pytest.raises(InputError, match="no limit of the loss 'sse'"):
        activity.activity(None, [], loss="sse", delta=np.inf)


def test_normal_values_have_no_excess_kurtosis_and_fair_bits():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(20_000, 8)).astype(np.float32)
    assert bits.values(vectors)["value"] == pytest.approx(0, abs=0.05)
    assert bits.means(vectors)["value"] < 0.03
    uneven = np.where(np.arange(8) == 3, np.abs(vectors), vectors)
    assert bits.means(uneven)["value"] == 1
    curve = bits.means(uneven)["curves"]["mean"]
    assert curve[3] == (3.0, 1.0) and len(curve) == 8


def test_equal_patches_do_not_differ_and_noise_differs_by_its_deviation():
    random = torch.Generator().manual_seed(0)
    one = torch.rand((4, 1, 1, 32, 32), generator=random) * 255
    assert alignment.difference(one.expand(4, 16, 1, 32, 32)) == pytest.approx(0, abs=1e-6)
    noise = torch.rand((4, 64, 1, 32, 32), generator=random) * 255
    assert alignment.difference(noise) == pytest.approx(1, abs=0.02)


def test_an_ellipse_holds_95_percent_of_a_normal_distribution():
    rng = np.random.default_rng(0)
    spread = np.array([[2.0, 0.0], [1.0, 0.5]])
    vectors = (rng.normal(size=(20_000, 2)) @ spread + [3, -1]).astype(np.float32)
    corners = np.array(digits.ellipse(vectors))
    inverse = np.linalg.inv(np.cov(vectors.T))
    middle = vectors.mean(axis=0)
    around = np.einsum("ni,ij,nj->n", corners - middle, inverse, corners - middle)
    of_all = np.einsum("ni,ij,nj->n", vectors - middle, inverse, vectors - middle)
    assert around == pytest.approx(around[0], rel=1e-3)
    assert np.mean(of_all < around[0]) == pytest.approx(0.95, abs=0.01)


def test_made_up_digits_are_read_and_told_apart(tmp_path):
    digits.make(tmp_path)
    images, classes = digits.read(tmp_path, "train")
    assert images.shape == (300, 28, 28) and np.bincount(classes).tolist() == [30] * 10
    found = digits.digits(None, [tmp_path], gamma=0.5, theta=1.15, iterations=5, tested=100)
    assert 0 <= found["value"] < 0.5  # chance is 0.95
    assert [len(own) for own in found["points"].values()] == [10] * 10
    (tmp_path / "train-labels-idx1-ubyte.gz").write_bytes(
        (tmp_path / "t10k-images-idx3-ubyte.gz").read_bytes()
    )
    with pytest.raises(InputError, match="300 images of train"):
        digits.read(tmp_path, "train")
    (tmp_path / "train-images-idx3-ubyte.gz").unlink()
    with pytest.raises(FileNotFoundError, match="train-images"):
        digits.read(tmp_path, "train")
