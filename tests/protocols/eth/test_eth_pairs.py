"""Which pairs are matched; in large scenes, those that COLMAP's vocabulary tree finds."""

import cv2
import numpy as np
import pycolmap
import pytest

from protocols.eth import pairs as module
from protocols.eth.pairs import pairs
from protocols.imaging.photographs import find, sha256


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three pictures of noise, each twice: the second time moved a little."""
    folder = tmp_path_factory.mktemp("images")
    rng = np.random.default_rng(0)
    for k in range(3):
        picture = rng.integers(0, 256, (56, 56), np.uint8)
        picture = cv2.resize(picture, (280, 280), interpolation=cv2.INTER_CUBIC)
        cv2.imwrite(str(folder / f"a{k}.png"), picture[:250, :250])
        cv2.imwrite(str(folder / f"b{k}.png"), picture[10:260, 14:264])
    return folder


@pytest.fixture
def large(monkeypatch, tmp_path_factory):
    """So that six images are many; what one test finds serves the next."""
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path_factory.getbasetemp() / "large"))
    for name, value in {"EXHAUSTIVE": 6, "NEIGHBOURS": 2, "WORDS": 32}.items():
        monkeypatch.setattr(module, name, value)


def found(folder):
    names = find(folder)
    listed = pairs(folder, names, [sha256(folder / name) for name in names])
    return [(names[a], names[b]) for a, b in listed]


def test_all_pairs_of_a_small_scene_are_matched(folder):
    listed = pairs(folder, [f"{i}.png" for i in range(5)], [""] * 5)
    assert listed == [(i, j) for i in range(5) for j in range(i + 1, 5)]


def test_a_large_scene_is_matched_where_images_look_alike(folder, large):
    listed = found(folder)
    assert set(listed) >= {(f"a{k}.png", f"b{k}.png") for k in range(3)}
    assert len(listed) < 15  # of all pairs


def test_no_pair_is_listed_twice_or_of_one_image(folder, large):
    listed = found(folder)
    assert len(set(listed)) == len(listed)
    assert all(a < b for a, b in listed)
    assert listed == sorted(listed)


def test_what_was_found_is_kept(folder, large, monkeypatch):
    before = found(folder)
    monkeypatch.setattr(pycolmap, "extract_features", None)
    assert found(folder) == before


def test_the_same_images_give_the_same_pairs(folder, large, monkeypatch, tmp_path):
    before = found(folder)
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "other"))
    assert found(folder) == before
