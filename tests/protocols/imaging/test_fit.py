"""Homographies against their images: what is refused, and which mistake is named."""

import cv2
import numpy as np
import pytest

from protocols.builders.hpatches.build import build
from protocols.imaging.agreement import CHANCE, agreement
from protocols.imaging.fit import DOUBT, MARGIN, check, check_once, fit
from protocols.imaging.sequences import find

HEIGHT, WIDTH = 200, 260
SWAP = np.eye(3)[[1, 0, 2]]


def turned(degrees, scale, x, y, tilt=0.0):
    """A camera's move: about the middle, then by x and y."""
    cos, sin = scale * np.cos(np.radians(degrees)), scale * np.sin(np.radians(degrees))
    middle = np.array([[1, 0, WIDTH / 2], [0, 1, HEIGHT / 2], [0, 0, 1]])
    move = np.array([[cos, -sin, x], [sin, cos, y], [tilt, -tilt / 2, 1]])
    return middle @ move @ np.linalg.inv(middle)


MAPS = [
    turned(4, 0.95, 9, 14),
    turned(-8, 1.05, -16, 8, 2e-4),
    turned(12, 0.9, 13, -12, -2e-4),
    turned(-15, 1.0, 20, 10),
    turned(25, 0.85, -10, -18, 3e-4),
]


def texture(seed=0):
    rng = np.random.default_rng(seed)
    image = np.zeros((HEIGHT, WIDTH))
    for sigma in (1.5, 3, 6):
        layer = cv2.GaussianBlur(rng.standard_normal((HEIGHT, WIDTH)), (0, 0), sigma)
        image += layer / layer.std()
    return np.clip(128 + 35 * image, 0, 255).astype(np.uint8)


def write(folder, written=lambda h: h, *, maps=MAPS, noise=4.0):
    """Image 1, what the maps make of it, and files in which the maps are written in some way."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(1)
    for k, h in enumerate([np.eye(3), *maps], 1):
        moved = cv2.warpPerspective(texture(), h, (WIDTH, HEIGHT)).astype(float)
        noisy = np.clip(0.8 * moved + 20 + rng.normal(0, noise, moved.shape), 0, 255)
        cv2.imwrite(str(folder / f"{k}.png"), noisy.astype(np.uint8))
    for k, h in enumerate(maps, 2):
        np.savetxt(folder / f"H_1_{k}", written(h))
    return folder


def inside(frame):
    """What a map looks like in other coordinates."""
    return lambda h: frame @ h @ np.linalg.inv(frame)


MIDDLE = np.array([[1, 0, -(WIDTH - 1) / 2], [0, 1, -(HEIGHT - 1) / 2], [0, 0, 1]])
UPWARDS = np.array([[1, 0, 0], [0, -1, HEIGHT - 1], [0, 0, 1]])
UNIT = np.array([[2 / WIDTH, 0, -1], [0, 2 / HEIGHT, -1], [0, 0, 1]])


@pytest.mark.parametrize(
    ("written", "named"),
    [
        (np.linalg.inv, "inverted"),
        (np.transpose, "transposed"),
        (lambda h: np.linalg.inv(h).T, "inverted and transposed"),
        (inside(SWAP), "with y before x"),
        (inside(np.diag([0.5, 0.5, 1])), "in pixels of images of half the size"),
        (inside(np.diag([2, 2, 1])), "in pixels of images of twice the size"),
        (inside(MIDDLE), "with pixels counted from the middle"),
        (inside(UPWARDS), "with y counted upwards"),
        (inside(np.diag([1 / WIDTH, 1 / HEIGHT, 1])), "in fractions of width and height"),
        (inside(UNIT), "in coordinates from -1 to 1"),
        (
            lambda h: inside(np.diag([0.5, 0.5, 1]))(np.linalg.inv(h)),
            "inverted, in pixels of images of half the size",
        ),
    ],
)
def test_homographies_of_another_meaning_are_refused_by_its_name(tmp_path, written, named):
    sequences, _ = find(write(tmp_path / "wall", written))
    with pytest.raises(ValueError, match=rf"wall: .*fit when read {named}\.") as error:
        check(sequences)
    assert "H_1_2, H_1_3, H_1_4, H_1_5, H_1_6" in str(error.value)


def test_faults_of_many_sequences_are_told_in_one_line(tmp_path):
    for k in range(4):
        write(tmp_path / f"wall{k}", np.linalg.inv)
    with pytest.raises(ValueError, match=r"^.*wall0: .*; .*wall2: .*; and 1 more sequences$"):
        check(find(tmp_path)[0])


def test_right_homographies_agree_far_better_than_chance(tmp_path):
    (found,) = check(find(write(tmp_path / "wall"))[0])
    assert not found.doubt
    assert all(one.matching > 0.9 and one.ahead > 0.98 for one in found.measured)
    assert all(abs(one.others) < 0.2 for one in found.measured)


def test_files_of_two_images_that_were_mixed_up_are_told(tmp_path):
    folder = write(tmp_path / "wall")
    (folder / "H_1_3").rename(folder / "kept")
    (folder / "H_1_5").rename(folder / "H_1_3")
    (folder / "kept").rename(folder / "H_1_5")
    told = r"H_1_3 fits when read as H_1_5; H_1_5 fits when read as H_1_3"
    with pytest.raises(ValueError, match=told) as error:
        check(find(folder)[0])
    assert "H_1_2" not in str(error.value)


def test_maps_between_consecutive_images_are_told(tmp_path):
    folder = write(tmp_path / "wall")
    for k in range(3, 7):
        np.savetxt(folder / f"H_1_{k}", MAPS[k - 2] @ np.linalg.inv(MAPS[k - 3]))
    told = "H_1_3, H_1_4, H_1_5, H_1_6 fit when read as the map from the image before"
    with pytest.raises(ValueError, match=told):
        check(find(folder)[0])


def test_homographies_of_another_scene_are_refused_though_nothing_fits(tmp_path):
    folder = write(tmp_path / "wall")
    for k in range(2, 7):
        np.savetxt(folder / f"H_1_{k}", turned(20 * k, 1.1, 40 - 10 * k, 5 * k))
    with pytest.raises(ValueError, match=r"no reading of H_1_2, .*H_1_6 fits.*another scene"):
        check(find(folder)[0])


def test_one_image_of_another_scene_is_named_by_its_file(tmp_path):
    folder = write(tmp_path / "wall")
    cv2.imwrite(str(folder / "4.png"), texture(seed=5))
    with pytest.raises(ValueError, match=r"no reading of H_1_4 fits") as error:
        check(find(folder)[0])
    assert "H_1_3" not in str(error.value)


def test_homographies_that_are_off_by_little_are_refused_where_a_mistake_explains_it(tmp_path):
    """Far better than chance, and still another reading is the right one."""
    slight = [turned(0, 1, 1.5, 0.5)] * 5
    sequences, _ = find(write(tmp_path / "wall", np.linalg.inv, maps=slight))
    found = fit(sequences[0])
    assert all(one.ahead > CHANCE for one in found.measured)
    with pytest.raises(ValueError, match=r"fit better when read inverted .* rises by 0"):
        check(sequences)


def test_a_slight_doubt_is_a_warning(tmp_path, caplog):
    """Pixels counted from 1: off by less than a pixel, where images turn."""
    one = np.array([[1, 0, 1], [0, 1, 1], [0, 0, 1.0]])
    far = [turned(25 + 5 * k, 1.0, 0, 0) for k in range(5)]
    sequences, _ = find(write(tmp_path / "wall", inside(one), maps=far))
    (found,) = check(sequences)
    assert "fit better when read with pixels counted from 1" in found.doubt
    assert found.doubt in caplog.text


def test_a_set_is_not_built_from_inverted_homographies(tmp_path):
    write(tmp_path / "images" / "wall", np.linalg.inv)
    with pytest.raises(ValueError, match=r"wall: .*fit when read inverted"):
        build(tmp_path / "images", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["images"]


def test_a_built_set_says_how_much_alike_matching_patches_are(tmp_path):
    write(tmp_path / "images" / "wall")
    report = build(tmp_path / "images", tmp_path / "out", max_keypoints=5)
    (found,) = report.fits
    assert str(found) in str(report)
    values = [float(word) for word in str(found).partition(";")[0].split()]
    assert values == [round(one.matching, 2) for one in found.measured]
    assert (
        f'"correlation": [\n    {found.measured[0].matching:.4f}'
        in (report.folder / "dataset.json").read_text()
    )


def test_a_sequence_that_fitted_is_measured_again_only_if_a_file_changes(tmp_path, caplog):
    caplog.set_level("INFO")

    def measured(folder):
        caplog.clear()
        check_once(find(folder)[0])
        return "comparing the images of 1 sequences" in caplog.text

    folder = write(tmp_path / "v_one", noise=3.5)
    assert [measured(folder) for _ in range(2)] == [True, False]
    assert not measured(folder.rename(tmp_path / "v_other"))
    np.savetxt(tmp_path / "v_other" / "H_1_2", MAPS[0] @ turned(0, 1.0, 0.2, 0))
    assert measured(tmp_path / "v_other")


def test_a_sequence_that_does_not_fit_is_refused_each_time(tmp_path):
    found, _ = find(write(tmp_path / "v_bad", np.linalg.inv))
    for _ in range(2):
        with pytest.raises(ValueError, match="inverted"):
            check_once(found)


def test_images_of_one_grey_value_are_not_judged(tmp_path):
    folder = write(tmp_path / "wall")
    for k in range(1, 7):
        cv2.imwrite(str(folder / f"{k}.png"), np.full((HEIGHT, WIDTH), 90, np.uint8))
    (found,) = check(find(folder)[0])
    assert found.measured == (None,) * 5
    assert str(found) == "not measured: too few regions"


def test_agreement_of_the_same_patches_is_1_and_of_others_a_half():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 200, 8, 8))
    same, other = agreement(a, 3 * a + 7), agreement(a, b)
    assert (same.matching, same.ahead) == (pytest.approx(1), 1)
    assert abs(same.others) < 0.01
    assert other.ahead == pytest.approx(0.5, abs=0.05)
    assert other.by_chance and not same.by_chance


def test_agreement_counts_what_a_loop_counts():
    rng = np.random.default_rng(1)
    a = rng.integers(0, 4, (9, 2, 2)).astype(np.uint8)
    a[3] = 1  # flat
    b = a + rng.integers(0, 3, a.shape).astype(np.uint8)
    r = np.zeros((9, 9))
    for i, j in np.ndindex(9, 9):
        x, y = (p.ravel() - p.mean() for p in (a[i], b[j]))
        length = np.linalg.norm(x) * np.linalg.norm(y)
        r[i, j] = x @ y / length if length else 0
    wins = [
        (r[i, i] > other) + (r[i, i] == other) / 2
        for i in range(9)
        for j in range(9)
        if i != j
        for other in (r[i, j], r[j, i])
    ]
    found = agreement(a, b)
    assert found.ahead == pytest.approx(np.mean(wins), abs=0.01)  # rounding may decide a tie
    assert found.matching == pytest.approx(np.diag(r).mean())
    assert found.others == pytest.approx((r.sum() - np.trace(r)) / 72)


@pytest.mark.data
@pytest.mark.parametrize("root", ["oxford_affine", "hpatches/images", "hpatches/images_more"])
def test_real_sequences_fit_with_room_to_spare(shared, root):
    """The least of them: i_ajuntament 1-4, whose light changes most."""
    fits = check(find(shared / root)[0])
    assert not any(one.doubt for one in fits)
    assert min(one.ahead for own in fits for one in own.measured) > CHANCE + 0.12


def test_the_bounds_are_those_that_were_measured():
    assert (CHANCE, MARGIN, DOUBT) == (0.65, 0.1, 0.02)
