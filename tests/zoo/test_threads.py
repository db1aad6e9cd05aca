"""The number of threads changes no vector of the descriptors that need no weights."""

import cv2
import numpy as np
import pytest
from described_patches import smooth_patches as patches
from threadpoolctl import threadpool_limits

from harness import Descriptor, parallel, plugins, registry
from zoo import catalogue

WITH_WEIGHTS = {row.name for row in catalogue.models()}
NAMES = [name for name in registry.names("descriptors") if name not in WITH_WEIGHTS]


def described(name: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    monkeypatch.setattr(parallel, "CORES", threads)
    before = cv2.getNumThreads()
    cv2.setNumThreads(threads)
    try:
        with threadpool_limits(threads):
            made = plugins.model(name)
            assert isinstance(made, Descriptor)
            return made.describe(patches(130))  # three parts of at most 64
    finally:
        cv2.setNumThreads(before)


@pytest.mark.parametrize("name", NAMES)
def test_vectors_are_the_same_of_one_thread_and_of_three(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, three = (described(name, threads, monkeypatch) for threads in (1, 3))
    assert np.array_equal(one, three)
