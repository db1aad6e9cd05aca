"""Scores on the official patches, where they are: those that the official code gives."""

import pytest
from checkout import ROOT

import harness
from harness.data import datasets
from harness.records import published

OPENCV = "pull request 34 of hpatches-benchmark"  # of OpenCV's SIFT, on split a


@pytest.mark.data
def test_opencvs_sift_has_the_scores_of_the_official_code():
    folder = datasets.path("hpatches")
    if folder is None:
        pytest.skip("the official patches are not here: harness data fetch hpatches")
    wanted = {
        number.score: number
        for number in published.read(ROOT / "results/published")
        if number.where == OPENCV
    }
    assert len(wanted) == 4
    (record,) = harness.evaluate("sift", "hpatches/matching", data=folder, split="a")
    for score, number in wanted.items():
        last_digit = 10.0 ** -len(number.value.partition(".")[2])
        assert record.scores[score] == pytest.approx(number.number, abs=last_digit)
