import json

import cv2
import numpy as np
import pytest

from protocols.hpatches.reader import STRIPS, open_set
from protocols.hpatches.sample import PATCHES, SEQUENCES, SHA256, sample
from protocols.samples import fingerprint


def test_the_sample_has_the_same_bytes_on_every_machine():
    assert fingerprint(sample()) == SHA256


def test_the_sample_is_read_as_one_in_the_official_format():
    opened = open_set(sample(), None)
    assert opened.dataset.name == "hpatches-sample"
    assert opened.dataset.sources == {f"hpatches-sample/{sequence}" for sequence in opened.test}
    assert len(opened.test) == 6
    assert set(opened.lengths.values()) == {PATCHES}


def test_both_kinds_of_sequence_are_in_both_parts():
    split = json.loads((sample() / "tasks" / "splits.json").read_text())["sample"]
    assert sorted(split["test"] + split["train"]) == sorted(SEQUENCES)
    for part, of_each in (("test", 3), ("train", 1)):
        assert [sum(s.startswith(kind) for s in split[part]) for kind in "iv"] == [of_each] * 2


@pytest.mark.parametrize("sequence", sorted(SEQUENCES))
def test_corresponding_patches_are_more_alike_than_others(sequence):
    rows = {}
    for name in STRIPS:
        image = cv2.imread(str(sample() / "patches" / sequence / f"{name}.png"), 0)
        patches = image.reshape(PATCHES, -1).astype(float)
        patches -= patches.mean(axis=1, keepdims=True)
        rows[name] = patches / (patches.std(axis=1, keepdims=True) + 1e-9)
    for name in ("e1", "e5", "h3"):
        alike = np.median((rows["ref"] * rows[name]).mean(axis=1))
        others = np.median((rows["ref"] * np.roll(rows[name], 50, axis=0)).mean(axis=1))
        assert alike > others + 0.05
