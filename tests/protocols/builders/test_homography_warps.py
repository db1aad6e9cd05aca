"""Which points an image has, and which regions their patches show."""

from dataclasses import replace

import cv2
import numpy as np
import pytest
from homography_images import OFF, picture

from protocols.builders.homography.cut import cut
from protocols.builders.homography.draws import CUT, GEOMETRY, LIGHT, draw, normal
from protocols.builders.homography.points import OVERLAP, Points, candidates, choose, octave
from protocols.builders.homography.strengths import DEFAULT, MOST, Strengths
from protocols.builders.homography.warps import squares, warps
from protocols.builders.phototour.observations import MAGNIFICATION
from protocols.builders.phototour.patches import extract
from protocols.imaging import frames
from protocols.imaging.corners import corners
from protocols.imaging.detect import SMALLEST
from protocols.imaging.frames import Frames, image_from_patch, inside

IMAGE = 2**63 + 12345


def flat(draws):
    return {name: values.ravel() for name, values in draws.items()}


@pytest.fixture(scope="module")
def many():
    """Draws of 400 points with 10 versions each."""
    return flat(draw(0, IMAGE, range(400), 10))


def chosen(grey, strengths=DEFAULT, *, most=12, versions=4, seed=0, image=IMAGE):
    return choose(
        grey,
        most=most,
        versions=versions,
        magnification=MAGNIFICATION,
        strengths=strengths,
        seed=seed,
        image=image,
    )


def axes(maps):
    """The longest and the shortest radius of what becomes of the unit circle."""
    return np.linalg.svd(maps[:, :2, :2], compute_uv=False).T


# Draws


def test_draws_are_even_and_do_not_go_together(many):
    table = np.stack([many[name] for name in GEOMETRY + LIGHT])
    assert table.min() >= 0 and table.max() < 1
    np.testing.assert_allclose(table.mean(1), 0.5, atol=0.025)
    np.testing.assert_allclose(table.std(1), 12**-0.5, atol=0.02)
    assert np.abs(np.corrcoef(table) - np.eye(len(table))).max() < 0.07


def test_more_versions_and_other_points_change_no_draw():
    few, more = draw(3, IMAGE, [5, 9], 2), draw(3, IMAGE, [1, 9, 5], 6)
    for name, values in few.items():
        np.testing.assert_array_equal(values, more[name][[2, 1], :2])


@pytest.mark.parametrize("other", [(4, IMAGE, [5]), (3, IMAGE + 1, [5]), (3, IMAGE, [6])])
def test_another_seed_image_or_point_has_other_draws(other):
    one, two = draw(3, IMAGE, [5], 4), draw(*other, 4)
    assert all((one[name] != two[name]).all() for name in one)


def test_normal_numbers_are_normal_and_end_at_the_cut():
    even = (np.arange(100_000) + 0.5) / 100_000
    numbers = normal(even)
    assert abs(numbers.mean()) < 1e-6
    assert abs(numbers.std() - 0.9866) < 1e-3  # of what is left within three deviations
    np.testing.assert_allclose(normal(np.array([0.0, 1.0])), [-CUT, CUT])


# Warps


def test_at_strength_0_a_warp_leaves_all_in_place(many):
    np.testing.assert_array_equal(warps(many, OFF), np.tile(np.eye(3), (4000, 1, 1)))


def test_turn_turns_by_so_many_degrees_and_does_nothing_else(many):
    maps = warps(many, replace(OFF, turn=14))
    angle = np.degrees(np.arctan2(maps[:, 1, 0], maps[:, 0, 0]))
    assert abs(angle.std() - 14) < 0.5 and abs(angle.mean()) < 0.7
    np.testing.assert_allclose(axes(maps), 1)
    assert not maps[:, :2, 2].any() and not maps[:, 2, :2].any()


def test_any_turn_turns_anywhere(many):
    maps = warps(many, replace(OFF, any_turn=True))
    angle = np.arctan2(maps[:, 1, 0], maps[:, 0, 0])
    share = np.histogram(angle, 8, (-np.pi, np.pi))[0] / len(angle)
    np.testing.assert_allclose(share, 1 / 8, atol=0.02)
    np.testing.assert_allclose(axes(maps), 1)


def test_scale_scales_by_so_many_octaves(many):
    long, short = axes(warps(many, replace(OFF, scale=0.22)))
    np.testing.assert_allclose(long, short)
    assert abs(np.log2(long).std() - 0.22) < 0.01


def test_stretch_keeps_the_area_and_has_any_direction(many):
    maps = warps(many, replace(OFF, stretch=0.3))
    long, short = axes(maps)
    np.testing.assert_allclose(long * short, 1)
    # Of a normal number the size, not the sign, which only turns the axis by a right angle.
    assert abs(np.sqrt(np.mean(np.log2(long / short) ** 2)) - 0.3) < 0.01
    np.testing.assert_allclose(maps[:, 0, 1], maps[:, 1, 0])  # no turn
    two = 2 * np.arctan2(2 * maps[:, 0, 1], maps[:, 0, 0] - maps[:, 1, 1]) / 2
    assert np.abs(np.mean(np.exp(1j * two))) < 0.05


def test_shift_is_the_root_mean_square_of_the_distance(many):
    maps = warps(many, replace(OFF, shift=0.12))
    assert abs(np.sqrt(np.mean((maps[:, :2, 2] ** 2).sum(1))) - 0.12) < 0.005
    np.testing.assert_array_equal(maps[:, :2, :2], np.tile(np.eye(2), (4000, 1, 1)))


def test_perspective_tilts_around_the_middle(many):
    maps = warps(many, replace(OFF, perspective=0.03))
    np.testing.assert_allclose(maps[:, 2, :2].std(0), 0.03, atol=0.002)
    np.testing.assert_array_equal(maps[:, :2], np.tile(np.eye(3)[:2], (4000, 1, 1)))
    np.testing.assert_array_equal(maps[:, 2, 2], 1)


@pytest.mark.parametrize("kind", ["turn", "scale", "stretch", "shift", "perspective"])
def test_a_change_of_one_strength_leaves_what_the_others_do(many, kind):
    """Of two linear parts that differ in one factor, the other factors are the same."""
    with_it, without = warps(many, DEFAULT), warps(many, replace(DEFAULT, **{kind: 0}))
    same = {
        "turn": lambda m: np.concatenate([axes(linear(m)), m[:, :2, 2].T]),
        "scale": lambda m: np.concatenate([[np.divide(*axes(linear(m)))], m[:, :2, 2].T]),
        "stretch": lambda m: np.concatenate([[np.linalg.det(linear(m))], m[:, :2, 2].T]),
        "shift": linear,
        "perspective": lambda m: np.concatenate([linear(m).reshape(-1, 4).T, m[:, :2, 2].T]),
    }[kind]
    np.testing.assert_allclose(same(with_it), same(without), atol=1e-12)
    assert not np.allclose(with_it, without)


def linear(maps):
    return maps[:, :2, :2] - maps[:, :2, 2:] * maps[:, 2:, :2]


def test_the_nearest_square_of_a_region_is_that_of_its_middle(many):
    rows = slice(0, 200)
    own = Frames(
        *(np.linspace(low, high, 200) for low, high in ((50, 90), (40, 60), (9, 30))),
        np.full(200, 0.6), np.full(200, 0.8), np.zeros(200),
    )  # fmt: skip
    maps = frames.compose(image_from_patch(own), warps(many, DEFAULT)[rows])
    found = squares(maps)
    step = 1e-5
    ends = np.array([[0, 0], [step, 0], [0, step]])
    for i in range(0, 200, 17):
        middle, right, down = cv2.perspectiveTransform(ends[None], maps[i])[0]
        jacobian = np.stack([right - middle, down - middle], axis=1) / step
        np.testing.assert_allclose((found.x[i], found.y[i]), middle)
        np.testing.assert_allclose(found.half[i], np.sqrt(np.linalg.det(jacobian)), rtol=1e-4)
        u, _, v = np.linalg.svd(jacobian)
        nearest = u @ v  # the rotation
        np.testing.assert_allclose(nearest[:, 0], (found.cos[i], found.sin[i]), atol=1e-4)


@pytest.mark.parametrize("field", [name for name in vars(DEFAULT) if name != "any_turn"])
@pytest.mark.parametrize("value", [-0.1, float("nan"), 1000.0])
def test_a_strength_out_of_range_is_refused(field, value):
    with pytest.raises(ValueError, match=f"{field} is .*: give a number from 0"):
        Strengths(**{field: value})


def test_the_largest_perspective_has_no_horizon_in_a_patch_and_its_surroundings():
    corner = 88 / 64
    assert 2 * CUT * MOST["perspective"] * corner < 1


# Points


def test_half_a_side_is_six_detected_scales():
    for times in (3, 6):
        assert candidates(picture(), 400, times).half.min() == pytest.approx(times * SMALLEST)
    assert MAGNIFICATION == 6


def test_all_patches_of_a_point_lie_on_the_image():
    grey = picture()
    found = chosen(grey, most=100)
    assert 20 < len(found.frames) < 100
    assert inside(found.maps.reshape(-1, 3, 3), *grey.shape).all()


def test_more_points_are_the_same_and_others():
    grey = picture()
    few, more = chosen(grey, most=5), chosen(grey, most=30)
    assert len(few.frames) == 5 and len(more.frames) > 20
    np.testing.assert_array_equal(few.maps, more.maps[:5])
    for name, values in few.draws.items():
        np.testing.assert_array_equal(values, more.draws[name][:5])


def test_no_two_points_share_much():
    found = chosen(picture(), most=100).frames
    for i in range(len(found)):
        x, y, half = found.x, found.y, found.half
        wide, tall = (
            np.minimum(c + half, c[i] + half[i]) - np.maximum(c - half, c[i] - half[i])
            for c in (x, y)
        )
        both = np.maximum(wide, 0) * np.maximum(tall, 0)
        overlap = both / (4 * half**2 + 4 * half[i] ** 2 - both)
        assert np.delete(overlap, i).max() <= OVERLAP + 1e-12


def test_points_are_spread_over_the_image_though_one_part_is_the_strongest():
    grey = picture(1, 240, 320)
    grey[:, 160:] = grey[:, 160:] // 3 + 85
    x = chosen(grey, most=60, versions=2).frames.x
    assert len(x) == 60
    assert 0.3 < np.mean(x > 160) < 0.7


def test_large_points_are_fewer_than_small_ones_and_there():
    scale = octave(chosen(picture(1, 320, 480), most=100, versions=2).frames.half / MAGNIFICATION)
    number = np.bincount(scale, minlength=3)
    assert number[0] > number[1] > number[2] > 0


def test_half_of_the_points_are_corners_while_there_are_enough():
    grey = picture(1, 240, 320)
    found = candidates(grey, 60, MAGNIFICATION)
    corner = corners(grey)
    places = set(zip(corner.x, corner.y, corner.half * 1.2, strict=True))
    own = [p in places for p in zip(found.x, found.y, found.half, strict=True)]
    assert 0.3 < np.mean(own) < 0.7


@pytest.mark.parametrize(
    "grey",
    [
        np.full((120, 160), 90, np.uint8),
        np.zeros((1, 1), np.uint8),
        np.zeros((1, 500), np.uint8),
        picture()[:15, :15],
        np.tile(np.linspace(0, 255, 160).astype(np.uint8), (120, 1)),
        np.where(np.arange(160) > 80, 255, 0).astype(np.uint8)[None].repeat(120, 0),
    ],
    ids=["flat", "one pixel", "one row", "tiny", "ramp", "straight edge"],
)
def test_an_image_with_nothing_in_it_has_no_point(grey):
    found = chosen(grey)
    assert len(found.frames) == 0 and found.maps.shape == (0, 4, 3, 3)


# Corners


def boxes(step):
    """Light squares on dark ground: their corners, in pixels."""
    image = np.full((40 * step, 40 * step), 60, np.uint8)
    image[12 * step : 28 * step, 12 * step : 28 * step] = 180
    return image, [(x * step - 0.5, y * step - 0.5) for x in (12, 28) for y in (12, 28)]


@pytest.mark.parametrize("step", [2, 4, 8])
def test_corners_are_where_corners_are_and_not_on_edges(step):
    image, places = boxes(step)
    found = corners(image)
    scale = found.half / frames.MAGNIFICATION
    distance = np.array([np.hypot(found.x - x, found.y - y) for x, y in places])
    fine = scale < 3
    assert distance[:, fine].min(axis=1).max() < 2.5  # each is found, a little inside
    small = scale < 2 * step  # than the square
    assert (distance.min(axis=0)[small] < 1.8 * scale[small]).all()


def test_corners_have_the_size_that_they_are_looked_for_at():
    small, large = (corners(cv2.resize(picture(), None, fx=f, fy=f)) for f in (1, 2))
    for found in (small, large):
        octaves = 2 * np.log2(found.half / frames.MAGNIFICATION / SMALLEST)
        np.testing.assert_allclose(octaves, np.round(octaves), atol=1e-6)
    assert large.half.max() == 2 * small.half.max()


def test_response_and_direction_are_those_of_opencv():
    grey = picture()
    found = corners(grey)
    fine = np.flatnonzero(found.half == found.half.min())
    blurred = cv2.GaussianBlur(
        grey.astype(np.float32), (0, 0), np.sqrt((0.7 * 1.6) ** 2 - 0.25),
        borderType=cv2.BORDER_REPLICATE,
    )  # fmt: skip
    around = cv2.GaussianBlur(grey.astype(float), (0, 0), np.sqrt((1.5 * 1.6) ** 2 - 0.25))
    right, down = np.gradient(blurred)[::-1]
    window = [
        cv2.GaussianBlur(part * (0.7 * 1.6) ** 2, (0, 0), 1.6, borderType=cv2.BORDER_REPLICATE)
        for part in (right * right, right * down, down * down)
    ]
    for i in fine[:: len(fine) // 20]:
        x, y = int(found.x[i]), int(found.y[i])
        xx, xy, yy = (part[y, x] for part in window)
        least = np.linalg.eigvalsh([[xx, xy], [xy, yy]])[0]
        np.testing.assert_allclose(found.response[i], np.sqrt(least), rtol=0.05)
        across, along = (part[y, x] for part in np.gradient(around))
        np.testing.assert_allclose(
            (found.cos[i], found.sin[i]),
            np.array([along, across]) / np.hypot(along, across),
            atol=0.1,
        )


def test_a_corner_points_to_where_it_gets_brighter():
    image, _ = boxes(4)
    found = corners(image)
    left_top = np.flatnonzero((np.abs(found.x - 48) < 3) & (np.abs(found.y - 48) < 3))
    assert len(left_top)
    np.testing.assert_allclose(found.cos[left_top], np.sqrt(0.5), atol=0.05)
    np.testing.assert_allclose(found.sin[left_top], np.sqrt(0.5), atol=0.05)


# Cutting


def test_at_strength_0_all_patches_of_a_point_are_its_square():
    grey = picture()
    found = chosen(grey, OFF, most=30)
    patches = cut(grey, found, strengths=OFF, seed=0, image=IMAGE)
    expected = np.empty((len(found.frames), 64, 64), np.uint8)
    for rows, some in extract(grey, found.frames):
        expected[rows] = some
    np.testing.assert_array_equal(patches, expected[:, None].repeat(4, 1))


def test_a_fine_pattern_in_a_large_region_becomes_grey():
    grey = np.where(np.indices((300, 300)).sum(0) % 2, 250, 0).astype(np.uint8)
    one = np.ones(1)
    own = Frames(150 * one, 150 * one, 130 * one, one, 0 * one, one)
    draws = draw(0, IMAGE, [0], 1)
    point = Points(own, np.zeros(1, int), image_from_patch(own)[:, None], draws)
    patch = cut(grey, point, strengths=OFF, seed=0, image=IMAGE)
    assert np.ptp(patch) < 15


def waves(x, y):
    return 128 + 50 * np.sin(x / 5 + 0.3) + 50 * np.cos(y / 4 - x / 11)


def test_a_patch_shows_what_its_map_says():
    y, x = np.mgrid[:200, :300]
    grey = np.round(waves(x, y)).astype(np.uint8)
    still = {n: 0 for n in ("blur", "motion", "gamma", "contrast", "faint", "brightness", "noise")}
    warped = replace(DEFAULT, jpeg=0, coarse=0, any_turn=True, **still)
    found = chosen(grey, warped, most=40)
    patches = cut(grey, found, strengths=warped, seed=0, image=IMAGE)
    small = np.flatnonzero(squares(found.maps.reshape(-1, 3, 3)).half < 32)
    assert len(small) > 20
    line = (np.arange(64) - 31.5) / 32
    grid = np.stack(np.meshgrid(line, line), -1).reshape(1, -1, 2)
    for i in small[::7]:
        u, v = cv2.perspectiveTransform(grid, found.maps.reshape(-1, 3, 3)[i])[0].T
        expected = waves(u, v).reshape(64, 64)
        # Rounded twice, and straight between pixels.
        assert np.abs(patches.reshape(-1, 64, 64)[i] - expected).max() < 4


def test_what_lies_beyond_the_border_is_in_no_patch():
    """Blur brings in the surroundings, which are repeated there: never black."""
    grey = np.maximum(picture(2), 60)
    strengths = replace(OFF, blur=2.6, blur_share=1, turn=14, shift=0.12)
    found = chosen(grey, strengths, most=60)
    assert cut(grey, found, strengths=strengths, seed=0, image=IMAGE).min() >= 59


def test_every_version_has_its_own_noise():
    noisy = replace(OFF, noise=8)
    grey = picture()
    found = chosen(grey, noisy, most=3)
    patches = cut(grey, found, strengths=noisy, seed=0, image=IMAGE).reshape(-1, 64 * 64)
    plain = cut(grey, found, strengths=OFF, seed=0, image=IMAGE).reshape(-1, 64 * 64)
    noise = patches.astype(float) - plain
    assert noise.std(1).min() > 0.1
    assert np.abs(np.corrcoef(noise) - np.eye(len(noise))).max() < 0.1
