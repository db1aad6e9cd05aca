"""Pictures of vectors: the right patches are found and shown, for any protocol."""

import cv2
import numpy as np
import pytest
from toy import POINTS, toy_dataset, toy_patches

from harness import Block, Descriptions, registry
from harness.distances import HAMMING, L2
from harness.errors import InputError
from harness.pictures import canvas, mistakes, neighbours, patches, plane

N = 2 * POINTS


def described(vectors, **change):
    distance = change.pop("distance", L2)
    return Descriptions(toy_dataset(**change), np.asarray(vectors), distance)


def on_a_line(*places):
    """Vectors of one number each."""
    return np.array(places, np.float32)[:, None]


def points(wrong=0):
    """Vectors by point; the first `wrong` of the second image are nearly at the next point."""
    vectors = np.tile(np.arange(POINTS, dtype=np.float32) * 10, 2)
    vectors[POINTS : POINTS + wrong] += 9
    vectors[N // 2 :] += 0.5
    return vectors[:, None]


def slow_mistakes(described):
    """Query, nearest match, farthest match, nearest wrong patch of another image."""
    data, found = described.dataset, []
    for q in range(len(data)):
        to = np.linalg.norm(described.vectors - described.vectors[q], axis=1)
        matches = [i for i in range(len(data)) if data.point[i] == data.point[q] and i != q]
        wrong = [
            i
            for i in range(len(data))
            if data.point[i] != data.point[q] and data.image[i] != data.image[q]
        ]
        ordered = sorted(matches, key=lambda i: to[i])
        found.append((q, ordered[0], ordered[-1], min(wrong, key=lambda i: to[i])))
    return found


def test_mistakes_are_those_of_a_slow_search():
    vectors = np.random.default_rng(1).normal(size=(N, 4)).astype(np.float32)
    one = described(vectors)
    found = mistakes.find(one)
    rows = zip(found.query, found.nearest, found.farthest, found.wrong, strict=True)
    assert [tuple(map(int, row)) for row in rows] == slow_mistakes(one)
    nearest = np.linalg.norm(vectors[found.query] - vectors[found.wrong], axis=1)
    np.testing.assert_allclose(found.to_wrong, nearest, rtol=1e-5)


def test_a_perfect_model_makes_no_mistake_and_a_faulty_one_is_shown():
    title, (false, missed) = mistakes.strips("m", described(points()))
    assert "wrong for 0.0 % of 60 patches" in title
    assert false.told == "False matches: none" and len(false.drawn) == 0
    assert missed.told == "Missed matches: none"
    title, (false, _) = mistakes.strips("m", described(points(wrong=3)))
    assert "wrong for 0.0 %" not in title and len(false.drawn) == 3 * (canvas.SIDE + 8) + 8


def test_a_constant_model_is_always_wrong():
    title, _ = mistakes.strips("constant", described(np.zeros((N, 1), np.float32)))
    assert "wrong for 100.0 %" in title


def test_a_pair_of_points_is_shown_once():
    vectors = points(wrong=3)
    _, (false, _) = mistakes.strips("m", described(vectors))
    pairs = mistakes.find(described(vectors))
    data = toy_dataset()
    wrong = {
        frozenset(data.point[[a, b]].tolist())
        for a, b in zip(pairs.query[pairs.is_false], pairs.wrong[pairs.is_false], strict=True)
    }
    green = (false.drawn[canvas.SIDE + 12] == canvas.RIGHT).all(axis=1)
    assert len(wrong) <= green.sum() // 4


def test_data_without_known_matches_are_refused():
    one = described(points(), point=np.arange(N))
    with pytest.raises(InputError, match="does not say which of its patches match"):
        mistakes.find(one)


def test_many_patches_are_chosen_by_whole_points():
    rows = patches.some_rows(toy_dataset(), 0, most=11)
    assert len(rows) == 10
    point, size = np.unique(toy_dataset().point[rows], return_counts=True)
    assert len(point) == 5 and set(size) == {2}
    assert (rows == patches.some_rows(toy_dataset(), 0, most=11)).all()


def test_only_the_blocks_of_the_wanted_patches_are_read():
    def never():
        raise AssertionError("this block is not needed")

    clean = toy_patches()["clean"]
    blocks = (Block("clean", POINTS, "0", lambda: clean), Block("noisy", POINTS, "1", never))
    found = patches.read(toy_dataset(blocks=blocks), [3, 3, 5])
    assert sorted(found) == [3, 5] and found[3].shape == (canvas.SIDE, canvas.SIDE)
    resized = cv2.resize(clean[3], (canvas.SIDE,) * 2, interpolation=cv2.INTER_AREA)
    assert (found[3] == resized).all()


def test_neighbours_are_framed_by_whether_they_match():
    vectors = points()
    row = neighbours._row(described(vectors), 0, 0)
    step = canvas.SIDE + canvas.GAP
    frames = [tuple(row[0, place * step].tolist()) for place in range(3)]
    assert frames == [canvas.PLAIN, canvas.RIGHT, canvas.WRONG]


def test_components_are_those_of_the_covariance():
    rng = np.random.default_rng(0)
    vectors = (rng.normal(size=(50, 3)) * [3, 2, 0.1]).astype(np.float32)
    found, shares = plane.components(vectors)
    values = np.linalg.eigvalsh(np.cov(vectors.T.astype(float)))[::-1]
    np.testing.assert_allclose(found.var(axis=0, ddof=1), values[:2], rtol=1e-6)
    np.testing.assert_allclose(shares, values[:2] / values.sum(), rtol=1e-6)


@pytest.mark.parametrize("n", [1, 2])
def test_equal_and_few_vectors_have_a_place_on_the_map(n):
    found, shares = plane.components(np.ones((n, 1), np.float32))
    assert found.shape == (n, 2) and not found.any() and not shares.any()


def test_a_map_of_bits_is_drawn():
    bits = np.random.default_rng(0).integers(0, 256, (N, 4), dtype=np.uint8)
    drawn = plane._drawn("m", described(bits, distance=HAMMING), 0)
    image = cv2.imdecode(np.frombuffer(drawn, np.uint8), 1)
    assert image.shape == (plane.HEIGHT + 2 * canvas.TEXT, canvas.WIDTH, 3)


FAMILIES = sorted({name.partition("/")[0] for name in registry.names("protocols")})
PICTURES = [("mistakes",), ("neighbours", "7"), ("point", "3"), ("map",)]


@pytest.mark.parametrize("of", PICTURES, ids=lambda of: of[0])
@pytest.mark.parametrize("protocol", FAMILIES)
def test_the_command_draws_every_protocol(tmp_path, monkeypatch, run, protocol, of):
    monkeypatch.chdir(tmp_path)
    status, out, err = run("show", of[0], protocol, *of[1:], "--model", "pixels")
    assert status == 0, err
    image = cv2.imread(str(tmp_path / out.strip()))
    assert image.shape[1] == canvas.WIDTH and image.std() > 10


def test_models_are_compared_on_one_patch(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    one = run("show", "neighbours", "romepatches", "7", "--model", "pixels", "--out", "1.png")
    two = run("show", "neighbours", "romepatches", "7", "--model", "pixels,brief")
    assert one[0] == two[0] == 0 and two[1] == "neighbours-romepatches-7-pixels-brief.png\n"
    heights = [cv2.imread(file).shape[0] for file in ("1.png", two[1].strip())]
    assert heights[0] < heights[1]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("map", "romepatches", "--model", "pixels,random"), "one model, not of pixels, random"),
        (("neighbours", "romepatches", "9999999", "--model", "pixels"), "none of 0 to"),
        (("neighbours", "romepatches", "--model", "pixels"), "needs PROTOCOL PATCH"),
    ],
)
def test_a_picture_that_can_not_be_drawn_is_refused(run, arguments, complaint):
    status, _, err = run("show", *arguments)
    assert status == 2 and complaint in err
