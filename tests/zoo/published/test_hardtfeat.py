import cv2
import numpy as np
import pytest
import torch

from harness import plugins
from harness.contracts import check_descriptor
from harness.data import weights
from zoo.published import hardtfeat
from zoo.published.hardtfeat import UNUSED, HardTFeat, describe
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


def test_no_bit_of_a_row_depends_on_its_batch():
    patches = np.random.default_rng(0).integers(0, 256, (100, 65, 65), dtype=np.uint8)
    network = HardTFeat().eval()
    sizes = set()
    network.register_forward_pre_hook(lambda _, inputs: sizes.add(len(inputs[0])))
    alone = [describe(network, patches[i : i + 1], "cpu") for i in range(0, 100, 20)]
    assert np.array_equal(describe(network, patches, "cpu")[::20], np.concatenate(alone))
    assert sizes == {64}  # some sizes happen to round alike, on some machines


def test_no_number_is_rounded_to_tf32():
    seen, cudnn = [], torch.backends.cudnn
    network = HardTFeat().eval()
    network.register_forward_pre_hook(lambda *_: seen.append((cudnn.enabled, cudnn.allow_tf32)))
    describe(network, np.zeros((1, 32, 32), np.uint8), "cpu")
    assert seen == [(True, False)]


def test_resizing_is_that_of_opencv_bit_for_bit():
    rng = np.random.default_rng(0)
    for side in (*range(1, 100), 128, 200):
        some = rng.integers(0, 256, (4, side, side + 1), dtype=np.uint8)
        some[0] = some[0] // 128 * 255
        wanted = [cv2.resize(patch, (32, 32)) for patch in some]
        assert np.array_equal(hardtfeat.resize(torch.from_numpy(some)).numpy(), wanted), side


@pytest.mark.data
def test_the_published_weights_fit_and_keep_the_laws(shared, monkeypatch, tmp_path):
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path))
    monkeypatch.setenv("HARNESS_WEIGHTS", str(shared / "checkpoints/hardtfeat"))
    assert set(weights.load(HARDTFEAT["hardtfeat"])) - set(HardTFeat().state_dict()) == set(UNUSED)
    laws = check_descriptor(plugins.model("hardtfeat"))
    assert not [law for law in laws if not law.passed]
