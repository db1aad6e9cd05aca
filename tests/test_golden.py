"""Vectors and scores move only together with a revision or a version."""

import json

import golden_values as golden
import numpy as np
import pytest

from harness.distances import HAMMING

RUN = "run python tests/support/golden_values.py"
TOLERANCE = 1e-4  # of the largest number of a vector; processors round differently far below it
# This whitening divides weak directions by small numbers, which makes rounding larger: between
# processors with and without AVX-512, numbers move by up to 1.6e-4 of the largest.
OF_WHITENING = {"mkd-lw.liberty": 5e-4, "mkd-lw.notredame": 5e-4, "mkd-lw.yosemite": 5e-4}
FLIPPED = 0.002  # share of bits: a number near 0 may have another sign on another processor


def test_the_golden_patches_are_32_with_flat_ones_among_them():
    patches = golden.patches()
    assert patches.shape == (32, 65, 65)
    assert sorted(set(patches[patches.std(axis=(1, 2)) == 0].ravel())) == [0, 1, 128, 255]


@pytest.mark.parametrize("name", golden.models())
def test_vectors_move_only_with_the_revision(name):
    made = golden.model(name)
    if made is None:
        pytest.skip(f"the published weights of {name} are not here")
    file = golden.vectors_file(made)
    assert file.is_file(), f"no {file}: {RUN} and commit what it writes"
    wanted, found = np.load(file), golden.vectors(made)
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    told = f"vectors of {name} moved: raise its revision, and {RUN}"
    if made.distance is HAMMING:
        assert np.unpackbits(found ^ wanted).mean() <= FLIPPED, told
    else:
        allowed = OF_WHITENING.get(name, TOLERANCE)
        assert np.abs(found - wanted).max() <= allowed * np.abs(wanted).max(), told


@pytest.mark.parametrize(("name", "options"), golden.protocols())
def test_scores_move_only_with_the_version(name, options):
    protocol = golden.sample_protocol(name, options)
    file = golden.scores_file(protocol)
    assert file.is_file(), f"no {file}: {RUN} and commit what it writes"
    told = f"scores of {name} moved: raise its version, and {RUN}"
    wanted, found = json.loads(file.read_text()), golden.scores(protocol)
    assert found == pytest.approx(wanted, rel=1e-6), told


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("hardtfeat", "hardtfeat"),
        ("mkd-lw.liberty", "mkd"),
        ("mkd-lw.notredame", "mkd"),
        ("mkd-lw.yosemite", "mkd"),
        ("mkd-pcawt.liberty", "mkd"),
        ("mkd-pcawt.notredame", "mkd"),
        ("mkd-pcawt.yosemite", "mkd"),
        ("tfeat.liberty", "tfeat"),
        ("tfeat.notredame", "tfeat"),
        ("tfeat.yosemite", "tfeat"),
    ],
)
def test_vectors_of_published_weights_move_only_with_the_revision(
    name, folder, shared, monkeypatch
):
    monkeypatch.setenv("HARNESS_WEIGHTS", str(shared / "checkpoints" / folder))
    test_vectors_move_only_with_the_revision(name)
