"""Ellipses, their overlap, and the regions of two images that are the same."""

import math
from dataclasses import replace

import numpy as np
import pytest

from protocols.imaging.affine import AffineFrames
from protocols.oxford import ellipses
from protocols.oxford.ellipses import (
    Ellipses,
    ellipses_of,
    exact_overlap,
    overlapping,
    warped,
)
from protocols.oxford.matching import Matches
from protocols.oxford.raster import raster_overlap
from protocols.oxford.truth import correspondences, repeatability

H = np.array([[0.9, 0.2, 12.0], [-0.1, 1.1, 5.0], [3e-4, -2e-4, 1.0]])


def some_frames(seed, n, size=200, radius=(2, 8), stretch=2.5):
    rng = np.random.default_rng(seed)
    turn, back = rng.uniform(0, 2 * np.pi, (2, n))
    mean, ratio = rng.uniform(*radius, n), rng.uniform(1, stretch, n)
    lengths = np.stack([mean * np.sqrt(ratio), mean / np.sqrt(ratio)], axis=1)
    matrix = turned(turn) * lengths[:, None] @ turned(back)
    x, y = rng.uniform(0, size, (2, n))
    return AffineFrames(x, y, matrix, np.zeros(n))


def turned(angle):
    cos, sin = np.cos(angle), np.sin(angle)
    return np.stack([np.stack([cos, -sin], 1), np.stack([sin, cos], 1)], 1)


def moved(frames, seed, by=1.0):
    """Almost the same regions, in another order."""
    rng = np.random.default_rng(seed)
    n = len(frames)
    jitter = np.eye(2) + rng.normal(0, 0.08 * by, (n, 2, 2))
    x, y = frames.x + rng.normal(0, by, n), frames.y + rng.normal(0, by, n)
    return AffineFrames(x, y, frames.matrix @ jitter, frames.score).take(rng.permutation(n))


def circles(x, y, radius):
    x, y, radius = np.broadcast_arrays(*(np.asarray(v, float) for v in (x, y, radius)))
    return Ellipses(np.stack([x, y], axis=-1), np.square(radius)[:, None, None] * np.eye(2))


def every_pair(a, b):
    row, column = (index.ravel() for index in np.indices((len(a), len(b))))
    return row, column, a.take(row), b.take(column)


# ---- overlap


def test_the_overlap_of_circles_is_that_of_geometry():
    d = np.array([0.0, 0.3, 1.0, 1.9, 2.5])
    lens = [2 * math.acos(min(x / 2, 1)) - x / 2 * math.sqrt(max(4 - x * x, 0)) for x in d]
    wanted = [area / (2 * math.pi - area) for area in lens]
    a, b = circles(np.zeros(5), 0, 1), circles(d, 0, 1)
    assert exact_overlap(a, b) == pytest.approx(wanted, abs=1e-5)
    assert exact_overlap(circles([5.0], 5, 3), circles([5.0], 5, 6)) == pytest.approx([0.25])


def test_the_overlap_is_good_to_what_it_says(monkeypatch):
    frames, rng = some_frames(0, 300, stretch=12), np.random.default_rng(0)
    jitter = np.eye(2) + rng.normal(0, 0.1, (300, 2, 2))
    a = ellipses_of(frames)
    b = ellipses_of(replace(frames, x=frames.x + 0.4, matrix=frames.matrix @ jitter))
    found = {}
    for directions in (ellipses.COARSE, ellipses.FINE, 20_000):
        monkeypatch.setattr(ellipses, "FINE", directions)
        found[directions] = exact_overlap(a, b)
    half = found[20_000] > 0.5
    off = [np.abs(one - found[20_000])[half].max() for one in found.values()]
    assert 1e-4 < off[0] < 1e-3 and off[1] < 1e-5
    assert half.sum() > 100


def test_the_overlap_stays_under_affine_maps():
    a, b = ellipses_of(some_frames(0, 200)), ellipses_of(moved(some_frames(0, 200), 1, by=0))
    b = Ellipses(a.centre + 2, b.shape)
    stretch = np.array([[3.0, 1.0, 7.0], [0.5, 0.7, -2.0], [0.0, 0.0, 1.0]])
    before, after = exact_overlap(a, b), exact_overlap(warped(a, stretch), warped(b, stretch))
    assert after == pytest.approx(before, abs=5e-4)
    assert np.ptp(before) > 0.4


def test_overlap_is_mutual():
    _, _, a, b = every_pair(ellipses_of(some_frames(0, 40)), ellipses_of(some_frames(1, 40)))
    assert exact_overlap(a, b) == pytest.approx(exact_overlap(b, a), abs=1e-4)


def test_a_raster_errs_by_a_hundredth():
    frames = some_frames(0, 400, radius=(6, 30), stretch=4)
    a, b = ellipses_of(frames), ellipses_of(moved(frames, 1, by=2))
    b = Ellipses(a.centre + np.random.default_rng(0).normal(0, 3, (400, 2)), b.shape)
    assert np.abs(raster_overlap(a, b) - exact_overlap(a, b)).max() < 0.012


def slow_raster(a, b):
    """Point by point, in double precision."""
    d = b.centre[0] - a.centre[0]
    forms = [np.linalg.inv(e.shape[0]) for e in (a, b)]
    low = np.floor(np.minimum(-a.box[0], d - b.box[0]))
    high = np.ceil(np.maximum(a.box[0], d + b.box[0]))
    step = (high - low).min() / 50
    both = either = 0
    for x in np.arange(low[0], high[0] + 1e-9, step):
        for y in np.arange(low[1], high[1] + 1e-9, step):
            inside = [
                p @ form @ p < 1
                for p, form in zip((np.array([x, y]), np.array([x, y]) - d), forms, strict=True)
            ]
            both, either = both + all(inside), either + any(inside)
    return both / either


def test_a_raster_counts_points_of_its_grid():
    frames = some_frames(3, 6, radius=(5, 20))
    a = ellipses_of(frames)
    b = Ellipses(a.centre + 1.7, ellipses_of(some_frames(4, 6, radius=(5, 20))).shape)
    found = raster_overlap(a, b)
    for i in range(6):
        one = np.array([i])
        assert found[i] == pytest.approx(slow_raster(a.take(one), b.take(one)), abs=2e-3)


def test_a_raster_does_not_depend_on_those_beside_it():
    _, _, a, b = every_pair(ellipses_of(some_frames(0, 12)), ellipses_of(some_frames(1, 12)))
    together = raster_overlap(a, b)
    alone = [raster_overlap(a.take(np.array([i])), b.take(np.array([i])))[0] for i in range(144)]
    assert together.tolist() == alone


# ---- maps


def test_ellipses_are_mapped_by_the_differential_of_the_homography():
    ellipses = ellipses_of(some_frames(0, 20))
    found = warped(ellipses, H)

    def mapped(points):
        u, v, w = H @ np.stack([*points.T, np.ones(len(points))])
        return np.stack([u / w, v / w], axis=1)

    step = 1e-4
    columns = [
        (mapped(ellipses.centre + offset) - mapped(ellipses.centre - offset)) / (2 * step)
        for offset in (np.array([step, 0]), np.array([0, step]))
    ]
    jacobian = np.stack(columns, axis=2)
    assert found.centre == pytest.approx(mapped(ellipses.centre))
    assert found.shape == pytest.approx(
        jacobian @ ellipses.shape @ jacobian.swapaxes(1, 2), rel=1e-5
    )
    assert warped(found, np.linalg.inv(H)).shape == pytest.approx(ellipses.shape, rel=1e-9)


# ---- pairs


@pytest.mark.parametrize("measure", [exact_overlap, raster_overlap])
@pytest.mark.parametrize("radius", [None, 30.0])
def test_no_pair_that_overlaps_is_missed(measure, radius):
    for seed in range(2):
        frames = some_frames(seed, 50, size=45, radius=(1.5, 9), stretch=5)
        a, b = ellipses_of(frames), ellipses_of(moved(frames, seed))
        row, column, left, right = every_pair(a, b)
        if radius:
            left, right = left.scaled(radius / left.radius), right.scaled(radius / a.radius[row])
        overlap = measure(left, right)
        apart = np.linalg.norm(left.centre - right.centre, axis=1)
        wanted = (overlap > 0.55) & (apart < 4 * a.radius[row])
        found = overlapping(a, b, 0.55, measure, radius)
        assert np.array_equal(found.a, row[wanted]) and np.array_equal(found.b, column[wanted])
        assert found.overlap == pytest.approx(overlap[wanted])
        assert wanted.sum() > 15


def test_shapes_that_share_over_half_of_their_union_hold_each_others_centres():
    """What makes it possible to measure few pairs."""
    frames = some_frames(0, 60, size=25, stretch=6)
    _, _, a, b = every_pair(ellipses_of(frames), ellipses_of(moved(frames, 1)))
    half = exact_overlap(a, b) > 0.5
    offset = (b.centre - a.centre)[half, :, None]
    for shape in (a.shape[half], b.shape[half]):
        assert ((offset.swapaxes(1, 2) @ np.linalg.inv(shape) @ offset) < 1).all()
    assert half.sum() > 40


# ---- truth


def test_a_region_and_its_image_correspond():
    a = some_frames(0, 60)
    seen = warped(ellipses_of(a), H)
    there = np.random.default_rng(0).permutation(60)
    b = AffineFrames(*seen.centre.T.copy(), np.linalg.cholesky(seen.shape), a.score).take(there)
    truth = correspondences(a, b, H, exact_overlap)
    own = Matches(there, np.arange(60), np.zeros(60))
    assert truth.holds(own).all()
    assigned = set(zip(truth.a[truth.assigned], truth.b[truth.assigned], strict=True))
    assert assigned == set(zip(there, np.arange(60), strict=True))


def test_regions_are_compared_at_the_magnification_of_patches():
    """Circles of radius 1 a radius apart overlap by 0.24; 3 times larger, by 0.65."""
    a, b = (
        AffineFrames(np.array([x]), np.zeros(1), np.eye(2)[None], np.zeros(1)) for x in (0.0, 1.0)
    )
    assert len(correspondences(a, b, np.eye(3), exact_overlap).a) == 1
    apart = AffineFrames(np.array([2.0]), np.zeros(1), np.eye(2)[None], np.zeros(1))
    assert len(correspondences(a, apart, np.eye(3), exact_overlap).a) == 0


def test_a_match_is_right_if_its_regions_correspond():
    a = some_frames(0, 50, size=60)
    truth = correspondences(a, moved(a, 1), np.eye(3), exact_overlap)
    row, column = (index.ravel() for index in np.indices((50, 50)))
    known = set(zip(truth.a.tolist(), truth.b.tolist(), strict=True))
    wanted = [pair in known for pair in zip(row.tolist(), column.tolist(), strict=True)]
    assert truth.holds(Matches(row, column, np.zeros(2500))).tolist() == wanted
    assert len(truth.assigned) < len(truth.a)


def test_without_correspondences_no_match_is_right():
    a = some_frames(0, 5)
    far = AffineFrames(a.x + 1e4, a.y, a.matrix, a.score)
    truth = correspondences(a, far, np.eye(3), exact_overlap)
    rows = np.arange(5)
    assert not truth.holds(Matches(rows, rows, np.zeros(5))).any()


def test_the_largest_overlap_is_assigned_first():
    a = AffineFrames(np.array([0.0, 1.0]), np.zeros(2), np.stack([2 * np.eye(2)] * 2), np.zeros(2))
    b = AffineFrames(np.array([0.9, 2.0]), np.zeros(2), np.stack([2 * np.eye(2)] * 2), np.zeros(2))
    truth = correspondences(a, b, np.eye(3), exact_overlap)
    assert list(zip(truth.a, truth.b, strict=True)) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert truth.assigned.tolist() == [1, 2]  # 1 and 0.9 first, then what is left


def test_the_same_regions_are_repeated_all():
    a = some_frames(0, 200, size=300, radius=(2, 4))
    share, number = repeatability(a, moved(a, 1, by=0), np.eye(3), ((300, 300),) * 2, exact_overlap)
    assert share == 1 and 150 < number < 200  # those whose outlines lie in the image


def test_repeatability_counts_what_both_images_show():
    a = some_frames(0, 200, size=300, radius=(2, 4))
    shift = np.array([[1.0, 0, -150], [0, 1, 0], [0, 0, 1]])
    b = AffineFrames(a.x - 150, a.y, a.matrix, a.score)
    share, number = repeatability(a, b, shift, ((300, 300), (300, 150)), exact_overlap)
    assert share == 1 and 60 < number < 110
    with pytest.raises(ValueError, match="undefined"):
        repeatability(a, b, shift, ((300, 300), (300, 1)), exact_overlap)
