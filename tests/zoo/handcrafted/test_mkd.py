"""MKD: equality with Kornia, and the published whitenings."""

from pathlib import Path

import numpy as np
import pytest
import torch
from described_patches import smooth_patches
from kornia.feature import mkd as kornia

from harness import plugins
from harness.data import weights
from harness.errors import InputError
from zoo.handcrafted import mkd, mkd_file
from zoo.published.rows import MKD

SCENES = ("liberty", "notredame", "yosemite")


def noise(n: int) -> np.ndarray:
    """Patches whose pixels all have a gradient: without one, Kornia differs from the authors."""
    return np.random.default_rng(0).integers(0, 256, (n, 64, 64), np.uint8)


def kornias(patches: np.ndarray) -> torch.Tensor:
    grey = torch.from_numpy(patches.copy()).float()[:, None] / 255
    with torch.inference_mode():
        found: torch.Tensor = kornia.MKDDescriptor(64, "concat", None)(grey)
    return found


def test_mkd_is_that_of_kornia() -> None:
    for patches in (noise(20), smooth_patches(20, 64)):
        assert np.allclose(mkd.mkd().describe(patches), kornias(patches), atol=2e-5)


def test_mkd_has_unit_length_even_for_a_flat_patch() -> None:
    flat = np.full((2, 65, 65), 128, np.uint8)
    vectors = mkd.mkd().describe(np.concatenate([smooth_patches(9), flat]))
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_brightness_and_contrast_hardly_matter() -> None:
    dark = smooth_patches(9, 64) // 4
    found = mkd.mkd().describe(dark), mkd.mkd().describe(2 * dark + 30)
    assert np.einsum("nd,nd->n", *found).min() > 0.999


@pytest.mark.data
@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("kind", ["pcawt", "lw"])
def test_whitened_mkd_is_that_of_kornia(
    shared: Path, monkeypatch: pytest.MonkeyPatch, kind: str, scene: str
) -> None:
    folder = shared / "checkpoints" / "mkd"
    monkeypatch.setenv("HARNESS_WEIGHTS", str(folder))
    published = torch.load(folder / "mkd-concat-64.pth", weights_only=True)[scene]
    whitening = kornia.Whitening(kind, published, in_dims=238)
    with torch.inference_mode():
        expected = whitening(kornias(noise(20)))
    made = plugins.model(f"mkd-{kind}.{scene}")
    assert made.trained_on == {f"phototour/{scene}"}
    # "lw" divides weak directions by small numbers, and both sides compute in float32.
    assert np.allclose(made.describe(noise(20)), expected, atol=3e-4 if kind == "lw" else 1e-4)


@pytest.mark.data
def test_one_file_serves_all_rows(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_WEIGHTS", str(shared / "checkpoints" / "mkd"))
    assert len({weights.path(row) for row in MKD.values()}) == 1


@pytest.mark.parametrize("content", [{"liberty": 3}, {"liberty": {"lw": [1]}}, [1, 2]])
def test_a_file_of_something_else_is_refused(tmp_path: Path, content: object) -> None:
    file = tmp_path / "mkd-concat-64.pth"
    torch.save(content, file)
    with pytest.raises(InputError, match=r"mkd-concat-64\.pth is no file of MKD's whitenings"):
        mkd_file.whitenings(file)
