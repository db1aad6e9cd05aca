"""Patches of affine regions: where they lie, what they show, what happens at borders."""

import cv2
import numpy as np
import pytest

from protocols.eth.protocol import SMOOTHING
from protocols.imaging.affine import AffineFrames, affine_patches, from_similarity
from protocols.imaging.grey import read_grey
from protocols.imaging.sampling import smooth

TURN = np.array([[0.0, -1.0], [1.0, 0.0]])  # by 90 degrees, from x towards y


def frames(x, y, matrix):
    matrix = np.asarray(matrix, float).reshape(-1, 2, 2)
    x, y = (np.broadcast_to(np.asarray(value, float), len(matrix)) for value in (x, y))
    return AffineFrames(x.copy(), y.copy(), matrix, np.zeros(len(matrix)))


def ramp(height=50, width=60):
    """Rises by 2 to the right and by 1 downwards: linear, so any symmetric blur leaves it alone."""
    y, x = np.mgrid[:height, :width]
    return (2 * x + y).astype(np.float32)


def noise(seed=0, height=240, width=300, blur=1.0):
    rng = np.random.default_rng(seed)
    image = cv2.GaussianBlur(rng.standard_normal((height, width)), (0, 0), blur)
    return np.clip(128 + 40 * image / image.std(), 0, 255).astype(np.float32)


def correlation(a, b):
    a, b = (np.asarray(p, float).reshape(len(p), -1) for p in (a, b))
    a, b = (p - p.mean(axis=1, keepdims=True) for p in (a, b))
    return (a * b).sum(axis=1) / np.sqrt((a * a).sum(axis=1) * (b * b).sum(axis=1))


# ---- conventions


def test_a_pixel_of_an_upright_region_is_a_pixel_of_the_image():
    image = noise()
    (patch,) = affine_patches(image, frames(30, 40, 5 * np.eye(2)), extent=1.1, side=11)
    assert np.array_equal(patch, np.floor(image[35:46, 25:36] + 0.5))


def test_a_pattern_turned_in_the_image_comes_out_upright():
    image = noise()[:201, :201]
    # What lay to the right of the middle now lies below it: the map that TURN is.
    turned = np.ascontiguousarray(np.rot90(image, -1))
    upright = affine_patches(image, frames(100, 100, 20 * np.eye(2)), extent=2, side=33)
    again = affine_patches(turned, frames(100, 100, 20 * TURN), extent=2, side=33)
    assert np.array_equal(again, upright)


def test_a_pattern_that_was_mapped_affinely_comes_out_as_it_was():
    image, map_ = noise(blur=2), np.array([[0.9, 0.5, 20.0], [-0.4, 1.1, 60.0]])
    mapped = cv2.warpAffine(image, map_, (320, 260), flags=cv2.INTER_CUBIC)
    there = map_[:, :2] @ [120.3, 90.7] + map_[:, 2]
    before = affine_patches(image, frames(120.3, 90.7, 9 * np.eye(2)), extent=3, side=41)
    after = affine_patches(mapped, frames(*there, 9 * map_[:, :2]), extent=3, side=41)
    assert correlation(before, after) > 0.995


def test_a_ramp_is_read_exactly_at_centres_between_pixels():
    x, y = np.array([20.25, 31.5]), np.array([17.75, 24.125])
    patch = affine_patches(ramp(), frames(x, y, np.stack([4 * np.eye(2)] * 2)), extent=1, side=5)
    assert np.array_equal(patch[:, 2, 2], np.floor(2 * x + y + 0.5))
    assert np.array_equal(patch[:, 0, 0], np.floor(2 * (x - 3.2) + (y - 3.2) + 0.5))


def test_a_similarity_turns_from_x_to_y():
    x, y = np.array([30.0]), np.array([25.0])
    found = from_similarity(x, y, scale=np.array([4.0]), angle=np.array([np.pi / 2]))
    assert np.allclose(found.matrix[0], 4 * TURN)
    (patch,) = affine_patches(ramp(), found, extent=1, side=5)
    assert patch[2, 4] > patch[2, 2] and patch[2, 4] - patch[2, 2] < patch[0, 2] - patch[2, 2]
    assert found.score.tolist() == [0.0]
    assert from_similarity(x, y, x, y, score=np.array([7.0])).score.tolist() == [7.0]


def test_a_mirrored_region_gives_a_mirrored_patch():
    regions = frames(50, 60, [10 * np.eye(2), np.diag([-10.0, 10.0])])
    plain, mirrored = affine_patches(noise(), regions, extent=2, side=32)
    assert np.array_equal(mirrored, plain[:, ::-1])


# ---- every region gives a patch


def test_no_region_gives_no_patch():
    none = frames(0, 0, np.empty((0, 2, 2)))
    assert affine_patches(noise(), none, extent=3, side=65).shape == (0, 65, 65)


def test_outside_the_image_its_border_is_repeated():
    image = noise(height=40, width=40)
    regions = frames([2.0, 37, 20, 500, -500], [1.0, 38, -3, 20, -500], [5 * np.eye(2)] * 5)
    padded = np.pad(image, 600, mode="edge")
    inside = AffineFrames(regions.x + 600, regions.y + 600, regions.matrix, regions.score)
    found = affine_patches(image, regions, extent=3, side=33)
    assert np.array_equal(found, affine_patches(padded, inside, extent=3, side=33))
    assert len(np.unique(found[4])) == 1


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (2, 2)])
def test_an_image_may_be_smaller_than_any_region(shape):
    image = np.full(shape, 77, np.float32)
    image[-1, -1] = 99
    middles = frames([0.0, shape[1] - 1], [0.0, shape[0] - 1], [3 * np.eye(2)] * 2)
    patches = affine_patches(image, middles, extent=4, side=25)
    assert patches[1, -1, -1] == 99 and patches[0, 0, 0] == image[0, 0]


def test_a_region_does_not_depend_on_those_beside_it():
    rng = np.random.default_rng(0)
    matrix = rng.normal(0, 6, (40, 2, 2))
    many = frames(rng.uniform(0, 300, 40), rng.uniform(0, 240, 40), matrix)
    image = noise()
    together = affine_patches(image, many, extent=6, side=16)
    for i in range(40):
        (alone,) = affine_patches(image, many.take(np.array([i])), extent=6, side=16)
        assert np.array_equal(alone, together[i]), i


def test_a_region_that_is_not_finite_is_refused():
    broken = frames([1.0, np.nan], 1, [np.eye(2)] * 2)
    with pytest.raises(ValueError, match="region 1 of 2"):
        affine_patches(noise(), broken, extent=3, side=9)


# ---- smoothing


def averaged(image, matrix, x, y, extent, side):
    """Slow twin: each pixel as the mean of a dense Gaussian of samples, read one by one."""
    step = matrix * extent / (side / 2)
    across, lengths, _ = np.linalg.svd(step)
    sigma = 0.5 * np.sqrt(np.maximum(lengths**2 - 1, 0))
    at = np.linspace(-3, 3, 31)
    first, second = np.meshgrid(at, at)
    weight = np.exp(-0.5 * (first**2 + second**2))
    offset = across @ np.stack([first.ravel() * sigma[0], second.ravel() * sigma[1]])
    out = np.empty((side, side))
    for row, column in np.ndindex(side, side):
        px, py = [x, y] + step @ [column - (side - 1) / 2, row - (side - 1) / 2]
        maps = [(px + offset[0])[None].astype(np.float32), (py + offset[1])[None]]
        seen = cv2.remap(
            image, maps[0], maps[1].astype(np.float32), cv2.INTER_LINEAR,
            borderMode=cv2.BORDER_REPLICATE,
        )  # fmt: skip
        out[row, column] = (seen[0] * weight.ravel()).sum() / weight.sum()
    return out


@pytest.mark.parametrize(("step", "stretch"), [(1.5, 1), (1.5, 3), (3, 1.5), (3, 5), (0.7, 6)])
def test_a_patch_shows_what_a_camera_with_its_pixels_would_have(step, stretch):
    """Reading one isotropic level, as squares are read, gives down to 0.93 in the last cases."""
    side, rng, image = 12, np.random.default_rng(1), noise(blur=0.6)
    turn = [np.linalg.qr(rng.normal(size=(2, 2)))[0] for _ in range(2)]
    matrix = turn[0] @ np.diag([step * stretch**0.5, step / stretch**0.5]) @ turn[1]
    regions = frames(150, 120, matrix * side / 2)
    patch = affine_patches(image, regions, extent=1, side=side)
    wanted = averaged(image, matrix * side / 2, 150, 120, 1, side)
    assert correlation(patch, wanted[None]) > 0.985


def test_stripes_finer_than_the_pixels_of_a_patch_turn_grey():
    stripes = np.tile(np.float32([0, 255]), (100, 60))
    regions = frames(60, 50, [np.diag([40.0, 2.0]), np.diag([2.0, 40.0]), 40 * np.eye(2)])
    wide, tall, large = affine_patches(stripes, regions, extent=1, side=20)
    assert np.ptp(wide) < 25 and np.ptp(large) < 25  # 4 pixels a pixel across the stripes
    assert np.ptp(tall) > 200  # along them: nothing is lost


def test_smoothing_grows_with_the_region():
    image = noise(blur=0.6)
    small, large = frames(150, 120, 4 * np.eye(2)), frames(150, 120, 16 * np.eye(2))
    assert np.array_equal(
        affine_patches(image, small, extent=2, side=65, smoothing=1),
        affine_patches(smooth_to(image, 4.0), small, extent=2, side=65),
    )
    sharp, soft = (
        affine_patches(image, large, extent=2, side=65, smoothing=s)[0].std() for s in (0, 1)
    )
    assert soft < 0.3 * sharp


def smooth_to(image, sigma):
    """By the steps in which levels are made: 0.5, 0.71, 1, ... pixels up to the one wanted."""
    blur = 0.5
    while blur < sigma / 2**0.25:
        image, blur = smooth(image, round(blur, 9)), blur * 2**0.5
    return image


# ---- VLFeat


@pytest.mark.data
def test_patches_are_those_of_vlfeat(shared):
    """Of 479, each correlates by over 0.99 with VLFeat's, but for 51 without contrast.

    VLFeat's are not rounded: to whole grey values, 48 of them correlate by less with themselves.
    VLFeat reads the last level of its scale space that is no coarser than the smaller radius: 1.6
    or 2.016 pixels times a power of 2. One smoothing for all comes near, if it is the right one.
    """
    described = np.load(shared / "oxford_affine/vlfeat_frames/graf_img1_described.npz")
    x, y, a11, a21, a12, a22 = described["frames"].astype(float).T
    regions = frames(x - 1, y - 1, np.stack([a11, a12, a21, a22], axis=1))
    image = read_grey(shared / "oxford_affine/graf/img1.png").astype(np.float32)
    scales = np.sort(np.outer([1.6, 1.6 * 2 ** (1 / 3)], 2.0 ** np.arange(-1, 6)).ravel())
    radius = np.linalg.svd(regions.matrix, compute_uv=False)[:, 1]
    level = np.searchsorted(scales, radius, side="right") - 1
    theirs, grid = described["patches"], {"extent": 3 * 41 / 40, "side": 41}
    patches = np.empty(theirs.shape, np.uint8)
    for current in np.unique(level):
        rows = np.flatnonzero(level == current)
        blurred = smooth(image, float(np.sqrt(scales[current] ** 2 - 0.5**2)))
        patches[rows] = affine_patches(blurred, regions.take(rows), **grid)
    by_rounding = correlation(np.round(theirs), theirs)
    agreement = correlation(patches, theirs)
    assert (agreement > np.minimum(0.99, by_rounding - 0.005)).all()
    assert np.median(agreement) > 0.9995
    assert np.count_nonzero(agreement > 0.99) == 428
    nearness = {
        smoothing: np.median(
            correlation(affine_patches(image, regions, **grid, smoothing=smoothing), theirs)
        )
        for smoothing in (0.6, SMOOTHING, 1.0)
    }
    assert max(nearness, key=nearness.__getitem__) == SMOOTHING
    assert nearness[SMOOTHING] > 0.998
