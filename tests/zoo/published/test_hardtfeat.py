import numpy as np
import pytest
import torch

from harness import plugins
from harness.contracts import check_descriptor
from harness.data import weights
from zoo.published.describing import describe
from zoo.published.hardtfeat import UNUSED, HardTFeat
from zoo.published.rows import HARDTFEAT


def test_vectors_have_unit_length():
    patches = np.random.default_rng(0).integers(0, 256, (5, 65, 65), dtype=np.uint8)
    vectors = describe(HardTFeat().eval(), patches, "cpu")
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_light_and_contrast_do_not_matter():
    patches = torch.randint(0, 70, (3, 32, 32), dtype=torch.uint8)
    network = HardTFeat().eval()
    with torch.inference_mode():
        brighter = network(3 * patches + 20)
        assert torch.allclose(network(patches), brighter, atol=1e-4)


def test_a_flat_patch_is_described():
    assert np.isfinite(describe(HardTFeat().eval(), np.full((1, 64, 64), 7, np.uint8), "cpu")).all()


@pytest.mark.data
def test_the_published_weights_fit_and_keep_the_laws(shared, monkeypatch, tmp_path):
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path))
    monkeypatch.setenv("HARNESS_WEIGHTS", str(shared / "checkpoints/hardtfeat"))
    assert set(weights.load(HARDTFEAT["hardtfeat"])) - set(HardTFeat().state_dict()) == set(UNUSED)
    laws = check_descriptor(plugins.model("hardtfeat"))
    assert not [law for law in laws if not law.passed]
