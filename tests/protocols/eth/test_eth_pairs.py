"""Which pairs are matched: all, those of images that look alike, or those of a list."""

from datetime import timedelta
from pathlib import Path

import cv2
import numpy as np
import pycolmap
import pytest

from harness import parallel
from harness.errors import InputError
from protocols.eth import pairs, vocabulary
from protocols.eth.scenes import ImageScene
from protocols.imaging.affine import from_similarity
from protocols.imaging.photographs import find, sha256

FRAMES = from_similarity(*np.ones((4, 1000)))


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
    monkeypatch.setattr(pairs, "LARGE", 6)
    monkeypatch.setattr(pairs, "NEIGHBOURS", 2)
    monkeypatch.setattr(vocabulary, "WORDS", 32)


def scene_of(folder):
    names = find(folder)
    return ImageScene(
        name="noise",
        images=folder,
        names=tuple(names),
        sha256=tuple(sha256(folder / name) for name in names),
        frames=tuple(FRAMES for _ in names),
        points=None,
        cameras=None,
        database=None,
        evidence="",
    )


def found(folder, way=None, neighbours=None):
    scene = scene_of(folder)
    listed = pairs.listed(scene, pairs.chosen(way, neighbours, [len(scene)]))
    return [(scene.names[a], scene.names[b]) for a, b in listed]


def test_all_pairs_of_a_small_scene_are_matched(folder):
    names = find(folder)
    assert found(folder) == [(a, b) for a in names for b in names if a < b]


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


def test_the_vocabulary_tree_can_be_chosen_for_a_small_scene(folder, large, monkeypatch):
    of_large = found(folder)
    monkeypatch.setattr(pairs, "LARGE", 2000)
    assert found(folder, "vocabulary-tree", 2) == of_large
    assert len(found(folder)) == len(found(folder, "exhaustive")) == 15


def test_a_list_gives_the_pairs_of_its_lines(folder, tmp_path, caplog):
    file = tmp_path / "list.txt"
    file.write_text("b1.png a0.png\na2.png,b2.png\nb1.png none.png\n")
    assert found(folder, file) == [("a0.png", "b1.png"), ("a2.png", "b2.png")]
    assert "1 lines name an image that noise does not have" in caplog.text
    file.write_text("x.png y.png\n")
    with pytest.raises(InputError, match=r"no line names two images of noise; .* such as a0\.png"):
        found(folder, file)


def options(way, neighbours, sizes):
    return pairs.chosen(way, neighbours, sizes).options(sizes)


def test_options_are_told_if_they_can_change_the_pairs(tmp_path):
    assert options(None, None, [11, 3000]) == options("exhaustive", None, [11, 1999]) == {}
    assert options("vocabulary-tree", None, [2000]) == {}
    assert options("exhaustive", None, [11, 3000]) == {"pairs": "exhaustive"}
    assert options("retrieval", 100, [3000]) == {"pairs": "retrieval"}
    assert options(None, 30, [11, 3000]) == {"neighbours": "30"}
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_text("a b\n")
    other.write_text("a b\n")
    told = options(one, None, [11])
    assert told == options(other, None, [11]) and told["pairs"].startswith("list-")
    other.write_text("a c\n")
    assert options(other, None, [11]) != told


@pytest.mark.parametrize(
    ("way", "neighbours", "sizes", "message"),
    [
        ("retreival", None, [11], "no such file; pairs are exhaustive, vocabulary-tree, retrieval"),
        (None, 0, [3000], "at least 1"),
        (None, 20, [11], "no image is matched with its neighbours only"),
        ("exhaustive", 20, [3000], "no image is matched with its neighbours only"),
        (Path(__file__), None, [11, 12], "a list is of one scene, and 2 scenes are tested"),
    ],
)
def test_a_choice_without_a_meaning_is_refused(way, neighbours, sizes, message):
    with pytest.raises(InputError, match=message):
        pairs.chosen(way, neighbours, sizes)


def test_the_cost_of_all_pairs_of_many_images_is_told_with_other_choices(
    folder, caplog, monkeypatch
):
    caplog.set_level("INFO")
    found(folder)
    assert not caplog.text
    monkeypatch.setattr(pairs, "MANY", 6)
    monkeypatch.setattr(pairs, "SECONDS", 3e-3)
    monkeypatch.setattr(parallel, "CORES", 2)
    found(folder)
    seconds = 15 * 1000 * 1000 * 3e-3 / 2
    assert (
        f"all 15 pairs of its 6 images will be matched, in about {timedelta(seconds=seconds)}"
        in (caplog.text)
    )
    assert "pairs=vocabulary-tree" in caplog.text and "pairs=FILE" in caplog.text
