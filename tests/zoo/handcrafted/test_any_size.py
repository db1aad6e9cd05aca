"""Handcrafted descriptors of real numbers: patches of any size, and of any number."""

from collections.abc import Callable

import numpy as np
import pytest
from described_patches import smooth_patches as patches

from harness import Descriptor
from zoo.handcrafted import daisy, dsp_sift, hog, liop, mkd, vgg, vlfeat_sift

MAKERS = [
    daisy.daisy, dsp_sift.dsp_sift, hog.hog, liop.liop, mkd.mkd, vgg.vgg_48,
    vlfeat_sift.sift, vlfeat_sift.rootsift,
]  # fmt: skip


@pytest.fixture(params=MAKERS, ids=lambda maker: maker.__name__)
def descriptor(request: pytest.FixtureRequest) -> Descriptor:
    maker: Callable[[], Descriptor] = request.param
    return maker()


@pytest.mark.parametrize("n", [0, 1, 3])
@pytest.mark.parametrize("side", [16, 31, 64, 65, 100])
def test_every_patch_gets_one_row(descriptor: Descriptor, n: int, side: int) -> None:
    vectors = descriptor.describe(patches(n, side))
    assert vectors.shape == (n, descriptor.dim) and vectors.dtype == np.float32
    assert np.isfinite(vectors).all()


def test_a_row_is_exactly_the_same_alone_and_among_others(descriptor: Descriptor) -> None:
    some = patches(70)  # more than one thread takes
    alone = np.concatenate([descriptor.describe(some[i : i + 1]) for i in range(0, 70, 14)])
    assert np.array_equal(descriptor.describe(some)[::14], alone)
