"""What light and camera do to a patch, one strength at a time."""

from dataclasses import replace

import cv2
import numpy as np
import pytest
from homography_images import OFF, picture
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import gaussian_filter, shift

from protocols.builders.homography import light
from protocols.builders.homography.draws import LIGHT
from protocols.builders.homography.light import AROUND, CANVAS, FLATTEST, photograph
from protocols.builders.homography.strengths import DEFAULT

MIDDLE = (slice(AROUND, AROUND + 64),) * 2
HALF = dict.fromkeys(LIGHT, 0.5)  # draws: the middle of each normal distribution
SEED = (0, 1, 2, 3)


def canvas(seed=0):
    return picture(seed, CANVAS, CANVAS).astype(np.float32)


def taken(image, strengths, **draws):
    return photograph(image, {**HALF, **draws}, strengths, SEED).astype(float)


def rounded(image):
    return np.floor(np.clip(image, 0, 255) + 0.5)


def test_at_strength_0_a_patch_is_the_middle_whatever_was_drawn():
    for value in (0.0, 0.3, 0.999):
        drawn = photograph(canvas(), dict.fromkeys(LIGHT, value), OFF, SEED)
        np.testing.assert_array_equal(drawn, canvas()[MIDDLE])


@pytest.mark.parametrize("kind", ["blur", "motion", "jpeg", "faint"])
def test_a_share_of_0_turns_a_kind_off_and_a_share_of_1_is_all(kind):
    strong = replace(OFF, **{kind: getattr(DEFAULT, kind)})
    for drawn in (0.0, 0.5, 0.999):
        draws = {f"{kind}_share": drawn}
        never = taken(canvas(), replace(strong, **{f"{kind}_share": 0}), **draws)
        always = taken(canvas(), replace(strong, **{f"{kind}_share": 1}), **draws)
        np.testing.assert_array_equal(never, canvas()[MIDDLE])
        assert (always != never).mean() > 0.3
    half = replace(strong, **{f"{kind}_share": 0.5})
    assert (taken(canvas(), half, **{f"{kind}_share": 0.49}) != canvas()[MIDDLE]).any()
    assert (taken(canvas(), half, **{f"{kind}_share": 0.5}) == canvas()[MIDDLE]).all()


@pytest.mark.parametrize("drawn", [0.2, 0.999])
def test_blur_is_a_gaussian_in_pixels_of_a_patch_of_32(drawn):
    found = taken(canvas(), replace(OFF, blur=2.6, blur_share=1), blur=drawn)
    twin = gaussian_filter(canvas().astype(float), 2 * 2.6 * drawn, mode="reflect")[MIDDLE]
    assert np.abs(found - twin).max() < 1.2


@pytest.mark.parametrize("heading", [0.0, 0.2, 0.5, 0.9])
def test_motion_is_the_mean_of_the_picture_along_a_straight_way(heading):
    found = taken(canvas(), replace(OFF, motion=6, motion_share=1), motion=0.75, heading=heading)
    angle, steps = np.pi * heading, np.linspace(-0.5, 0.5, 61)
    way = 2 * 6 * 0.75
    moved = [
        shift(canvas().astype(float), (s * way * np.sin(angle), s * way * np.cos(angle)), order=1)
        for s in steps
    ]
    assert np.abs(found - np.mean(moved, axis=0)[MIDDLE]).max() < 2.5


@pytest.mark.parametrize("length", [0.01, 1.0, 2.0, 7.3, 20.0])
@pytest.mark.parametrize("angle", [0.0, 0.7, np.pi / 2, 3.0])
def test_a_way_keeps_the_brightness_and_the_place(length, angle):
    weights = light._line(length, angle)
    y, x = np.mgrid[: len(weights), : len(weights)] - len(weights) // 2
    assert weights.min() >= 0
    np.testing.assert_allclose(weights.sum(), 1, atol=1e-5)
    np.testing.assert_allclose([(weights * x).sum(), (weights * y).sum()], 0, atol=1e-4)


@pytest.mark.parametrize("drawn", [0.1, 0.5, 0.9])
def test_gamma_is_a_power_of_the_greys(drawn):
    found = taken(canvas(), replace(OFF, gamma=0.35), gamma=drawn)
    exponent = 2 ** (0.35 * light.normal(np.array([drawn]))[0])
    twin = 255 * (canvas()[MIDDLE].astype(float) / 255) ** exponent
    np.testing.assert_allclose(found, twin, atol=0.51)


@pytest.mark.parametrize("drawn", [0.1, 0.9])
def test_contrast_is_a_factor_around_the_mean(drawn):
    plain = canvas()[MIDDLE].astype(float)
    found = taken(canvas(), replace(OFF, contrast=0.35), contrast=drawn)
    factor = 2 ** (0.35 * light.normal(np.array([drawn]))[0])
    twin = rounded((plain - plain.mean()) * factor + plain.mean())
    assert np.abs(found - twin).max() <= 1


@pytest.mark.parametrize("drawn", [0.1, 0.9])
def test_brightness_is_added(drawn):
    image = canvas() / 4 + 96
    found = taken(image, replace(OFF, brightness=20), brightness=drawn)
    added = 20 * light.normal(np.array([drawn]))[0]
    assert np.abs(found - rounded(image[MIDDLE].astype(float) + added)).max() <= 1


def test_a_faint_patch_has_lost_so_many_octaves_of_contrast():
    found = taken(canvas(), replace(OFF, faint=2, faint_share=1), faint=0.5)
    np.testing.assert_allclose(found.std(), canvas()[MIDDLE].std() / 2, rtol=0.01)


@pytest.mark.parametrize(("before", "after"), [(40, FLATTEST), (3, 3)])
def test_a_patch_loses_contrast_down_to_the_flattest_only(before, after):
    image = canvas() - canvas()[MIDDLE].mean()
    image *= before / image[MIDDLE].std()
    found = taken(image + 128, replace(OFF, faint=4, faint_share=1), faint=0.999)
    np.testing.assert_allclose(found.std(), after, rtol=0.03)


@given(
    mean=st.floats(0, 255),
    deviation=st.floats(0.5, 60),
    drawn=st.lists(st.floats(0, 1, exclude_max=True), min_size=len(LIGHT), max_size=len(LIGHT)),
)
@settings(max_examples=60, deadline=None)
def test_light_never_leaves_a_patch_flat_that_was_not(mean, deviation, drawn):
    pattern = canvas() - canvas()[MIDDLE].mean()
    pattern *= deviation / pattern[MIDDLE].std()
    image = np.clip(pattern + mean, 0, 255).astype(np.float32)
    before = image[MIDDLE].std()
    found = photograph(
        image,
        dict(zip(LIGHT, drawn, strict=True)),
        replace(DEFAULT, blur=0, motion=0, gamma=0, faint_share=1, jpeg_share=1),
        SEED,
    )
    # JPEG may take a half of it, and so may whatever is darker than black or lighter than white.
    assert found.std() >= 0.3 * min(before, FLATTEST) - 0.5


def test_noise_is_normal_and_as_strong_as_drawn():
    found = taken(canvas(), replace(OFF, noise=8), noise=0.75)
    noise = found - canvas()[MIDDLE]
    inside = (canvas()[MIDDLE] > 30) & (canvas()[MIDDLE] < 225)
    noise = noise[inside]
    np.testing.assert_allclose(noise.std(), 6, rtol=0.05)
    assert abs(noise.mean()) < 0.4
    np.testing.assert_allclose(np.mean(np.abs(noise) < 6), 0.683, atol=0.06)


def test_noise_has_no_grain_unless_coarse():
    grain = []
    for coarse in (0, 1.6):
        found = taken(canvas(), replace(OFF, noise=8, coarse=coarse), noise=0.75, coarse=0.999)
        noise = found - canvas()[MIDDLE]
        grain.append(np.corrcoef(noise[:, 1:].ravel(), noise[:, :-1].ravel())[0, 1])
    assert abs(grain[0]) < 0.05
    assert grain[1] > 0.5


def test_every_patch_has_its_own_noise():
    noisy = replace(OFF, noise=8)
    one, same, other = (
        photograph(canvas(), HALF, noisy, seed).astype(float) - canvas()[MIDDLE]
        for seed in (SEED, SEED, (*SEED[:3], 4))
    )
    np.testing.assert_array_equal(one, same)
    assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 0.05


def test_noise_never_drowns_a_patch():
    image = (canvas() - 128) / 20 + 128
    found = taken(image, replace(OFF, noise=60), noise=0.999)
    np.testing.assert_allclose((found - image[MIDDLE]).std(), image[MIDDLE].std() / 2, rtol=0.1)


@pytest.mark.parametrize("quality", [12, 40, 67])
def test_jpeg_is_what_opencv_makes_of_the_patch_and_its_surroundings(quality):
    drawn = (3 * (100 - quality) / 90 - 1) / 2
    found = taken(
        canvas(), replace(OFF, jpeg=90, jpeg_share=1), jpeg=drawn, phase_right=0, phase_down=0
    )
    code = cv2.imencode(".jpg", canvas().astype(np.uint8), [cv2.IMWRITE_JPEG_QUALITY, quality])[1]
    twin = cv2.imdecode(code, cv2.IMREAD_GRAYSCALE)[MIDDLE]
    np.testing.assert_array_equal(found, twin)
    assert (found != canvas()[MIDDLE]).mean() > 0.5


def test_blocks_of_jpeg_begin_anywhere():
    """Steps between neighbouring columns are largest where blocks meet."""
    seen = set()
    for phase in range(8):
        found = taken(
            canvas(), replace(OFF, jpeg=95, jpeg_share=1), jpeg=0.999, phase_right=(phase + 0.5) / 8
        )
        change = found - canvas()[MIDDLE]
        step = np.abs(np.diff(change, axis=1)).mean(0)
        seen.add(int(np.argmax([step[i::8].mean() for i in range(8)])))
    assert len(seen) == 8


def test_coarse_jpeg_has_larger_blocks():
    lost = []
    for coarse in (0, 1.6):
        found = taken(
            canvas(), replace(OFF, jpeg=90, jpeg_share=1, coarse=coarse), coarse=0.999, jpeg=0.999
        )
        lost.append(np.abs(found - canvas()[MIDDLE]).mean())
    assert lost[1] > 1.3 * lost[0]


def test_quality_is_raised_where_jpeg_would_leave_nothing():
    image = (canvas() - 128) / 12 + 128
    worst = replace(OFF, jpeg=99, jpeg_share=1)
    code = cv2.imencode(".jpg", np.round(image).astype(np.uint8), [1, 1])[1]
    assert cv2.imdecode(code, cv2.IMREAD_GRAYSCALE)[MIDDLE].std() < image[MIDDLE].std() / 2
    assert taken(image, worst, jpeg=0.999).std() >= 0.45 * image[MIDDLE].std()


def test_a_change_of_one_strength_leaves_what_the_others_do():
    """Blur comes before light: with another blur it does the same."""
    image, draws = canvas(), {"contrast": 0.2, "brightness": 0.8, "gamma": 0.3}
    strengths = replace(DEFAULT, noise=0, jpeg=0, faint=0, motion=0)
    without = taken(image, replace(strengths, blur=0), **draws)
    blurred = cv2.GaussianBlur(image, (0, 0), 2.6, borderType=cv2.BORDER_REFLECT)
    assert (
        np.abs(
            taken(image, replace(strengths, blur_share=1), **draws)
            - taken(blurred, replace(strengths, blur=0), **draws)
        ).max()
        < 1.1
    )
    assert np.abs(without - image[MIDDLE]).mean() > 5


@pytest.mark.parametrize("value", [0.0, 255.0])
def test_a_flat_patch_stays_one_without_a_warning(value):
    image = np.full((CANVAS, CANVAS), value, np.float32)
    for drawn in (0.0, 0.5, 0.999):
        draws = dict.fromkeys(LIGHT, drawn)
        found = photograph(image, draws, replace(DEFAULT, jpeg_share=1, faint_share=1), SEED)
        assert found.std() == 0
