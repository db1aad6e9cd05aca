import json
import math
import zlib
from dataclasses import replace
from itertools import combinations

import cv2
import image_sequences
import numpy as np
import pytest
from image_sequences import turned

from harness.data_names import known
from protocols.builders.hpatches.build import build
from protocols.hpatches.reader import STRIPS, open_set
from protocols.hpatches.writer import Regions, select, write_strips
from protocols.imaging import frames, png, sampling
from protocols.imaging.detect import detect
from protocols.imaging.frames import MAGNIFICATION, NOISE, Frames, Noise
from protocols.imaging.grey import read_grey
from protocols.imaging.sequences import find

SIZE = 160
MOVE = np.array([[0.95, 0.08, 4.0], [-0.06, 0.97, 12.0], [1e-4, -5e-5, 1.0]])
STAY = np.eye(3)


def texture(seed, height=SIZE, width=SIZE):
    """Blobs of several sizes."""
    rng = np.random.default_rng(seed)
    image = np.zeros((height, width))
    for sigma in (1.5, 3, 6):
        layer = cv2.GaussianBlur(rng.standard_normal((height, width)), (0, 0), sigma)
        image += layer / layer.std()
    return np.clip(128 + 35 * image, 0, 255).astype(np.uint8)


def write_sequence(folder, h=MOVE, *, seed=0, image="{}.png", homography="H_1_{}", height=SIZE):
    """A texture and what h makes of it, five times."""
    folder.mkdir(parents=True)
    first = texture(seed, height)
    moved = cv2.warpPerspective(first, h, (SIZE, height), flags=cv2.INTER_LINEAR)
    for k in range(1, 7):
        colours = cv2.cvtColor(moved if k > 1 else first, cv2.COLOR_GRAY2BGR)
        assert cv2.imwrite(str(folder / image.format(k)), colours)
    for k in range(2, 7):
        np.savetxt(folder / homography.format(k), h)
    return folder


def build_few(images, out, **options):
    """For tests that don't look at the patches."""
    return build(images, out, max_keypoints=3, **options)


def tree(folder):
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }


def strip(folder, sequence, name):
    image = cv2.imread(str(folder / "patches" / sequence / f"{name}.png"), cv2.IMREAD_UNCHANGED)
    return image.reshape(-1, 65, 65)


def standardised(patches):
    rows = patches.reshape(len(patches), -1).astype(float)
    rows -= rows.mean(axis=1, keepdims=True)
    return rows / (rows.std(axis=1, keepdims=True) + 1e-9)


def correlation(a, b):
    return (standardised(a) * standardised(b)).mean(axis=1)


def median_gap(folder, sequence, name):
    """Median correlation of corresponding patches, less that of others."""
    reference, other = (strip(folder, sequence, s) for s in ("ref", name))
    others = np.roll(other, len(other) // 2, axis=0)
    return np.median(correlation(reference, other)) - np.median(correlation(reference, others))


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    root = tmp_path_factory.mktemp("built")
    write_sequence(root / "images" / "moved")
    return build(root / "images", root / "out", name="test")


# Sets


def test_a_set_is_16_columns_of_square_grey_patches_for_each_sequence(built):
    strips = {name: strip(built.folder, "v_moved", name) for name in STRIPS}
    assert {s.shape for s in strips.values()} == {(built.sequences[0].kept, 65, 65)}
    files = {f.name for f in (built.folder / "patches" / "v_moved").iterdir()}
    assert files == {f"{name}.png" for name in STRIPS}


def test_a_set_can_be_read_as_one_in_the_official_format(built):
    opened = open_set(built.folder, "full")
    assert opened.dataset.name == "hpatches-built-test"
    assert opened.lengths == {"v_moved": built.sequences[0].kept}


def test_a_model_trained_on_the_images_of_a_set_has_seen_the_set(tmp_path):
    write_sequence(tmp_path / "oxford_affine" / "graf", image="img{}.ppm", homography="H1to{}p")
    build_few(tmp_path / "oxford_affine", tmp_path / "out")
    sources = open_set(tmp_path / "out", None).dataset.sources
    assert sources == {"hpatches-built-oxford_affine/v_graf", "oxford/graf"}
    assert known().meet({"oxford_affine"}, sources)


def test_the_tally_adds_up(built):
    (tally,) = built.sequences
    lost = sum(tally.outside) + tally.overlapping + tally.over_cap
    assert tally.detected == lost + tally.kept
    assert tally.kept > 20


def test_the_report_is_a_table_with_all_counts(built):
    (tally,) = built.sequences
    row = next(line for line in str(built).splitlines() if line.startswith("v_moved"))
    counts = [tally.detected, *tally.outside, tally.overlapping, tally.over_cap, tally.kept]
    assert row.split() == ["v_moved", *map(str, counts)]


@pytest.mark.parametrize("name", ["e3", "h3", "t3"])
def test_corresponding_patches_are_more_alike_than_others(built, name):
    assert median_gap(built.folder, "v_moved", name) > 0.2


def test_more_noise_makes_patches_less_alike(built):
    easy, hard, tough = (median_gap(built.folder, "v_moved", f"{noise}2") for noise in "eht")
    assert easy > hard > tough


def test_the_same_images_give_the_same_bytes(built, tmp_path):
    again = build(built.folder.parent / "images", tmp_path / "again", name="test")
    assert tree(again.folder) == tree(built.folder)


def test_another_seed_gives_another_jitter_of_the_same_regions(built, tmp_path):
    other = build(built.folder.parent / "images", tmp_path / "other", seed=1)
    # A region near the border may be lost to one jitter and not to another.
    assert abs(other.sequences[0].kept - built.sequences[0].kept) < 10
    first = strip(other.folder, "v_moved", "e1")[:5]
    assert (first != strip(built.folder, "v_moved", "e1")[:5]).any()


def test_a_cap_keeps_the_first_patches_and_changes_none(built, tmp_path):
    capped = build(built.folder.parent / "images", tmp_path / "capped", max_keypoints=7)
    tally = capped.sequences[0]
    assert (tally.kept, tally.over_cap) == (7, built.sequences[0].kept - 7)
    for name in STRIPS:
        of_all = strip(built.folder, "v_moved", name)
        np.testing.assert_array_equal(strip(capped.folder, "v_moved", name), of_all[:7])


def test_both_layouts_give_the_same_patches(built, tmp_path):
    oxford = tmp_path / "oxford" / "moved"
    write_sequence(oxford, image="img{}.ppm", homography="H1to{}p")
    other = build(tmp_path / "oxford", tmp_path / "out", name="test")
    assert tree(other.folder / "patches") == tree(built.folder / "patches")


def test_a_folder_that_is_a_sequence_is_taken_by_itself(built, tmp_path):
    other = build(built.folder.parent / "images" / "moved", tmp_path / "out")
    assert tree(other.folder / "patches") == tree(built.folder / "patches")


def test_patches_of_a_sequence_do_not_depend_on_other_sequences(built, tmp_path):
    write_sequence(tmp_path / "images" / "moved")
    write_sequence(tmp_path / "images" / "before", STAY, seed=1)
    other = build(tmp_path / "images", tmp_path / "out")
    ours = tree(built.folder / "patches" / "v_moved")
    assert tree(other.folder / "patches" / "v_moved") == ours


def test_where_the_set_comes_from_is_written_down(built):
    about = json.loads((built.folder / "dataset.json").read_text())
    (source,) = about["sequences"].values()
    assert source["folder"] == "moved"
    assert source["origin"] == "images/moved"
    assert sorted(source["images"]) == [f"{k}.png" for k in range(1, 7)]
    assert source["regions"]["kept"] == built.sequences[0].kept


def test_a_set_is_named_after_its_folder(tmp_path):
    write_sequence(tmp_path / "streets" / "i_one")
    assert build_few(tmp_path / "streets", tmp_path / "out").name == "hpatches-built-streets"


def test_progress_counts_sequences(tmp_path):
    write_sequence(tmp_path / "images" / "one")
    write_sequence(tmp_path / "images" / "two")
    seen = []
    build_few(
        tmp_path / "images", tmp_path / "out", progress=lambda done, of: seen.append((done, of))
    )
    assert seen == [(0, 2), (1, 2), (2, 2)]


def test_an_interrupted_build_leaves_nothing(tmp_path):
    write_sequence(tmp_path / "images" / "one")

    def interrupt(done, of):
        if done == of:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_few(tmp_path / "images", tmp_path / "out", progress=interrupt)
    assert [p.name for p in tmp_path.iterdir()] == ["images"]


def test_a_finished_set_is_not_written_over(built):
    with pytest.raises(FileExistsError, match="is there already"):
        build(built.folder.parent / "images", built.folder)


def test_a_folder_with_other_things_is_not_written_into(built, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="is not an empty folder"):
        build(built.folder.parent / "images", tmp_path)


def test_an_empty_folder_is_taken(built, tmp_path):
    (tmp_path / "out").mkdir()
    build_few(built.folder.parent / "images", tmp_path / "out")
    assert (tmp_path / "out" / "dataset.json").is_file()


def test_from_four_sequences_on_every_other_one_is_for_training(tmp_path):
    for name in ("i_1", "i_2", "i_3", "v_1", "v_2"):
        write_sequence(tmp_path / "images" / name)
    build_few(tmp_path / "images", tmp_path / "out")
    splits = json.loads((tmp_path / "out" / "tasks" / "splits.json").read_text())
    assert splits["full"]["test"] == ["i_1", "i_2", "i_3", "v_1", "v_2"]
    assert splits["half"]["test"] == ["i_1", "i_3", "v_1"]
    assert splits["half"]["train"] == ["i_2", "v_2"]
    assert open_set(tmp_path / "out", None).dataset.split == "full"


def test_few_sequences_are_all_for_testing(built):
    splits = json.loads((built.folder / "tasks" / "splits.json").read_text())
    assert splits == {"full": {"name": "full", "test": ["v_moved"]}}


# Sequences


def test_a_sequence_that_stays_in_place_is_one_of_illumination(tmp_path):
    write_sequence(tmp_path / "lamp", STAY)
    assert find(tmp_path)[0][0].name == "i_lamp"


def test_a_prefix_is_kept(tmp_path):
    write_sequence(tmp_path / "v_lamp", STAY)
    assert find(tmp_path)[0][0].name == "v_lamp"


def test_folders_without_images_are_passed_over_and_named(tmp_path):
    write_sequence(tmp_path / "images" / "one")
    (tmp_path / "images" / "notes").mkdir()
    (tmp_path / "images" / "notes" / "frames.npz").touch()
    report = build_few(tmp_path / "images", tmp_path / "out")
    assert report.passed_over == (tmp_path / "images" / "notes",)
    assert "notes" in str(report)


def test_a_homography_may_be_scaled_and_separated_by_commas(tmp_path):
    folder = write_sequence(tmp_path / "one")
    for k in range(2, 7):
        np.savetxt(folder / f"H_1_{k}", -3 * MOVE, delimiter=",")
    scaled = find(folder)[0][0].from_first[1]
    np.testing.assert_allclose(scaled / scaled[2, 2], MOVE, rtol=1e-12)


def test_grey_is_the_luma_of_the_colours(tmp_path):
    colours = np.array([[[0, 0, 255], [0, 255, 0], [255, 0, 0], [7, 7, 7]]], np.uint8)  # BGR
    cv2.imwrite(str(tmp_path / "c.png"), colours)
    assert read_grey(tmp_path / "c.png").tolist() == [[76, 150, 29, 7]]


def remove_image(folder):
    (folder / "4.png").unlink()
    return r"has an image 6, but no image 4"


def remove_first_image(folder):
    (folder / "1.png").unlink()
    return r"sequence has images, but no image 1"


def remove_homography(folder):
    (folder / "H_1_3").unlink()
    return r"H_1_3 is missing"


def write_words(folder):
    (folder / "H_1_5").write_text("1 0 0\n0 one 0\n0 0 1\n")
    return r"H_1_5 can't be read as a homography \(.*'one'"


def write_too_few_numbers(folder):
    (folder / "H_1_5").write_text("1 0 0\n0 1 0\n")
    return r"H_1_5 holds 6 numbers"


def write_singular_matrix(folder):
    (folder / "H_1_6").write_text("1 2 3\n2 4 6\n0 0 1\n")
    return r"H_1_6 is singular"


def write_not_a_number(folder):
    (folder / "H_1_6").write_text("1 2 nan\n2 4 6\n0 0 1\n")
    return r"H_1_6 .*finite"


def write_horizon_through_the_middle(folder):
    (folder / "H_1_6").write_text(f"1 0 0\n0 1 0\n1 0 {-(SIZE - 1) / 2}\n")
    return r"H_1_6 maps the middle of image 1 to infinity"


def cut_off_image(folder):
    (folder / "2.png").write_bytes((folder / "2.png").read_bytes()[:1000])
    return r"2\.png can't be decoded, it is cut off after 1000 bytes"


def empty_image(folder):
    (folder / "2.png").write_bytes(b"")
    return r"2\.png can't be decoded"


def write_image_twice(folder):
    (folder / "3.ppm").write_bytes((folder / "3.png").read_bytes())
    return r"3\.png and .*3\.ppm are the same image twice"


@pytest.mark.parametrize(
    "spoil",
    [
        remove_image,
        remove_first_image,
        remove_homography,
        write_words,
        write_too_few_numbers,
        write_singular_matrix,
        write_not_a_number,
        write_horizon_through_the_middle,
        cut_off_image,
        empty_image,
        write_image_twice,
    ],
)
def test_a_malformed_sequence_is_refused_by_the_name_of_the_file(tmp_path, spoil):
    write_sequence(tmp_path / "images" / "a_good_one")
    message = spoil(write_sequence(tmp_path / "images" / "sequence"))
    with pytest.raises(ValueError, match=message):
        build(tmp_path / "images", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("images", "shown"),
    [(2, [1, 2, 2, 2, 2, 2]), (4, [1, 2, 3, 3, 3, 4]), (11, [1, 2, 4, 7, 9, 11])],
)
def test_strips_are_spread_over_the_images_of_a_shorter_or_longer_sequence(tmp_path, images, shown):
    maps = [turned(3 * k, 1, k, 0) for k in range(1, images)]
    image_sequences.write_sequence(tmp_path / "images/v_a", maps)
    report = build_few(tmp_path / "images", tmp_path / "out")
    about = json.loads((tmp_path / "out/dataset.json").read_text())["sequences"]["v_a"]
    assert about["strips_of"] == shown and len(about["images"]) == images
    than = "more" if images > 6 else "fewer"
    assert f"v_a has {than} than 6 images: its strips are" in str(report)
    assert open_set(tmp_path / "out", None).dataset.name == "hpatches-built-images"
    strips = [strip(tmp_path / "out", "v_a", f"t{k}") for k in range(1, 6)]
    assert not any(np.array_equal(a, b) for a, b in combinations(strips, 2))  # other jitters


def test_a_set_of_lossy_images_says_so_in_its_name(tmp_path):
    image_sequences.write_sequence(tmp_path / "images/v_a", image="{}.jpg")
    assert build_few(tmp_path / "images", tmp_path / "out").name == "hpatches-built-images-lossy"
    assert open_set(tmp_path / "out", None).dataset.name == "hpatches-built-images-lossy"


def test_a_folder_without_sequences_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no images in"):
        find(tmp_path)


def test_a_path_that_is_no_folder_is_refused(tmp_path):
    with pytest.raises(ValueError, match="is not a folder"):
        find(tmp_path / "nothing")


def test_two_folders_that_would_share_a_name_are_refused(tmp_path):
    write_sequence(tmp_path / "one")
    write_sequence(tmp_path / "v_one")
    with pytest.raises(ValueError, match=r"folders one and v_one .* both be called v_one"):
        find(tmp_path)


def test_a_folder_whose_name_would_break_task_files_is_refused(tmp_path):
    write_sequence(tmp_path / "one, two")
    with pytest.raises(ValueError, match="one, two can't name a sequence"):
        find(tmp_path)


def test_a_name_that_would_break_results_is_refused(tmp_path):
    write_sequence(tmp_path / "images" / "one")
    with pytest.raises(ValueError, match="'a/b' can't name a set"):
        build(tmp_path / "images", tmp_path / "out", name="a/b")


@pytest.mark.parametrize("cap", [1, 20_000])
def test_a_cap_that_no_strip_can_have_is_refused(tmp_path, cap):
    with pytest.raises(ValueError, match=f"max_keypoints is {cap}"):
        build(tmp_path, tmp_path / "out", max_keypoints=cap)


def test_a_sequence_of_which_nothing_stays_visible_is_refused(tmp_path):
    away = np.array([[1.0, 0, 5 * SIZE], [0, 1, 0], [0, 0, 1]])
    write_sequence(tmp_path / "images" / "one", away)
    with pytest.raises(ValueError, match=r"v_one is left with 0 of .* check its homographies"):
        build(tmp_path / "images", tmp_path / "out")
    assert not (tmp_path / "out").exists()


# Regions


def chosen(h=MOVE):
    shape = (SIZE, SIZE)
    views = [STAY, *[h] * 5]
    return select("v_x", texture(0), shapes=[shape] * 6, from_first=views, seed=0, most=2000)[0]


def test_without_noise_a_view_that_stays_gives_the_reference_patches(tmp_path):
    found = chosen(STAY).frames
    still = np.broadcast_to(STAY, (len(found), 3, 3))
    regions = Regions(found, {name: still for name in STRIPS[1:]})
    load = [lambda: texture(0)] * 6
    write_strips(tmp_path, load, from_first=[STAY] * 6, regions=regions, compress=False)
    reference = (tmp_path / "ref.png").read_bytes()
    assert {name: (tmp_path / f"{name}.png").read_bytes() == reference for name in STRIPS} == {
        name: True for name in STRIPS
    }


def test_without_noise_a_moved_view_gives_nearly_the_reference_patches():
    first = texture(0)
    moved = cv2.warpPerspective(first, MOVE, (SIZE, SIZE), flags=cv2.INTER_LINEAR)
    maps = frames.image_from_patch(chosen().frames)
    reference = sampling.patches(first.astype(np.float32), maps)
    view = sampling.patches(moved.astype(np.float32), frames.compose(MOVE, maps))
    assert np.median(correlation(reference, view)) > 0.98


def test_regions_and_their_jitter_are_visible_everywhere():
    regions = chosen()
    maps = frames.compose(MOVE, frames.image_from_patch(regions.frames))
    for jitter in regions.jitters.values():
        for corner in ((-1, -1), (-1, 1), (1, -1), (1, 1)):
            x, y, w = (frames.compose(maps, jitter) @ np.array([*corner, 1.0])).T
            assert (x >= 0).all() and (x / w <= SIZE - 1).all()
            assert (y >= 0).all() and (y / w <= SIZE - 1).all()


def test_regions_behind_the_camera_are_not_visible():
    behind = np.diag([1.0, 1.0, -1.0])[None]
    assert not frames.inside(behind, 10, 10).any()


@pytest.mark.parametrize(("noise", "overlap"), [("e", 0.85), ("h", 0.72), ("t", 0.60)])
def test_the_median_overlap_is_that_of_the_description_of_hpatches(noise, overlap):
    jitter = frames.jitter(NOISE[noise], frames.uniform((0,), 20_000, frames.DRAWS))
    assert np.median(frames.overlap(jitter)) == pytest.approx(overlap, abs=0.005)


def test_a_jitter_stays_within_its_bounds():
    noise = Noise(half_tangent=math.tan(math.radians(10)), scale=1.3, stretch=1.0, shift=0.2)
    draws = np.random.default_rng(0).random((1000, frames.DRAWS))
    maps = frames.jitter(noise, draws)
    angle = np.degrees(np.arctan2(maps[:, 1, 0], maps[:, 0, 0]))
    scale = np.sqrt(np.linalg.det(maps[:, :2, :2]))
    assert 19 < np.abs(angle).max() <= 20
    assert 1.28 < scale.max() <= 1.3 and 1 / 1.3 <= scale.min() < 1 / 1.28
    assert 0.19 < MAGNIFICATION * np.abs(maps[:, :2, 2]).max() <= 0.2


def test_overlap_is_that_of_a_fine_grid():
    maps = frames.jitter(NOISE["t"], frames.uniform((5,), 20, frames.DRAWS))
    x, y = (axis.ravel() for axis in np.meshgrid(*[np.linspace(-3, 3, 601)] * 2))
    disc = np.hypot(x, y) < 1
    detected = maps * np.array([[1, 1, MAGNIFICATION], [1, 1, MAGNIFICATION], [1, 1, 1]])
    for jitter, overlap in zip(detected, frames.overlap(maps), strict=True):
        u, v, _ = np.linalg.inv(jitter) @ np.stack([x, y, np.ones_like(x)])
        moved = np.hypot(u, v) < 1
        expected = np.count_nonzero(disc & moved) / np.count_nonzero(disc | moved)
        assert overlap == pytest.approx(expected, abs=0.02)


def shared_part(x, y, half, i, j):
    """Intersection over union of two upright squares."""
    wide = min(x[i] + half[i], x[j] + half[j]) - max(x[i] - half[i], x[j] - half[j])
    tall = min(y[i] + half[i], y[j] + half[j]) - max(y[i] - half[i], y[j] - half[j])
    both = max(wide, 0) * max(tall, 0)
    return both / (4 * half[i] ** 2 + 4 * half[j] ** 2 - both)


def test_thinning_drops_whatever_overlaps_a_stronger_one_by_half_and_nothing_else():
    rng = np.random.default_rng(0)
    x, y, half = rng.uniform(0, 60, 300), rng.uniform(0, 60, 300), rng.uniform(5, 15, 300)
    ones = np.ones(300)
    kept: list[int] = []
    for i in range(300):
        if all(shared_part(x, y, half, i, j) <= 0.5 for j in kept):
            kept.append(i)
    thinned = frames.thin(Frames(x, y, half, ones, 0 * ones, ones))
    assert np.flatnonzero(thinned).tolist() == kept
    assert 50 < len(kept) < 250


def test_no_two_regions_of_a_sequence_overlap_by_more_than_half():
    f = chosen().frames
    pairs = combinations(range(len(f)), 2)
    assert max(shared_part(f.x, f.y, f.half, i, j) for i, j in pairs) <= 0.5


@pytest.mark.parametrize("sigma", [2.0, 4.0, 8.0])
def test_a_blob_is_found_where_it_is_at_its_scale(sigma):
    y, x = np.mgrid[:150, :150]
    blob = np.exp(-((x - 70) ** 2 + (y - 80) ** 2) / (2 * sigma**2))
    found = detect((40 + 150 * blob).astype(np.uint8))
    assert len(found) > 0
    assert np.hypot(found.x[0] - 70, found.y[0] - 80) <= sigma
    assert sigma / 1.5 < found.half[0] / MAGNIFICATION < sigma * 1.5


def test_a_patch_is_turned_so_that_it_gets_brighter_to_the_right():
    found = chosen().frames
    patches = sampling.patches(texture(0).astype(np.float32), frames.image_from_patch(found))
    middle = patches[:, 20:45, 20:45].astype(float)
    right = np.diff(middle, axis=2).mean(axis=(1, 2))
    down = np.diff(middle, axis=1).mean(axis=(1, 2))
    assert np.median(np.abs(np.degrees(np.arctan2(down, right)))) < 30


def test_nothing_is_found_in_a_flat_or_a_tiny_image():
    assert len(detect(np.full((100, 100), 90, np.uint8))) == 0
    assert len(detect(texture(0, 9, 9))) == 0


# Pixels


def test_reading_between_pixels_is_bilinear():
    image = texture(0).astype(np.float32)
    x, y = np.linspace(0, SIZE - 1, 50), np.linspace(3, SIZE - 8, 40)
    expected = cv2.remap(
        image, *(axis.astype(np.float32) for axis in np.meshgrid(x, y)), cv2.INTER_LINEAR
    )
    read = sampling.read(image, STAY[None], x, y)[0]
    np.testing.assert_allclose(read, expected, atol=2.0)  # remap rounds to 1/32 pixel
    assert np.abs(read - expected).mean() < 0.1


def test_reading_at_pixels_gives_the_image_to_its_borders():
    image = texture(0).astype(np.float32)
    line = np.arange(SIZE) * 1.0
    np.testing.assert_array_equal(sampling.read(image, STAY[None], line, line)[0], image)


def test_a_patch_is_the_region_and_not_mirrored():
    image = texture(0).astype(np.float32)
    frame = Frames(*(np.array([v]) for v in (100.0, 90.0, 32.5, 1.0, 0.0, 1.0)))
    patch = sampling.patches(image, frames.image_from_patch(frame))[0]
    np.testing.assert_array_equal(patch, image[58:123, 68:133])


def test_a_fine_pattern_under_coarse_sampling_becomes_grey():
    y, x = np.mgrid[:600, :600]
    board = (255 * ((x + y) % 2)).astype(np.float32)
    frame = Frames(*(np.array([v]) for v in (300.0, 300.0, 200.0, 0.8, 0.6, 1.0)))
    patch = sampling.patches(board, frames.image_from_patch(frame))[0]
    assert np.abs(patch.astype(float) - 127.5).max() < 3


def test_smoothing_is_a_gaussian():
    image = texture(0).astype(np.float32)
    expected = cv2.GaussianBlur(image, (13, 13), 2.0, borderType=cv2.BORDER_REPLICATE)
    np.testing.assert_allclose(sampling.smooth(image, 2.0), expected, atol=1e-3)


def test_smoothing_leaves_a_flat_image_alone():
    flat = np.full((20, 30), 255, np.float32)
    np.testing.assert_allclose(sampling.smooth(flat, 3.3), flat, rtol=1e-6)


@pytest.mark.parametrize("compress", [True, False])
@pytest.mark.parametrize("rows", [1, 65, 3000])
def test_a_written_image_is_read_back(compress, rows):
    image = np.random.default_rng(0).integers(0, 256, (rows, 65), dtype=np.uint8)
    data = np.frombuffer(png.encode(image, compress=compress), np.uint8)
    np.testing.assert_array_equal(cv2.imdecode(data, cv2.IMREAD_UNCHANGED), image)


def test_uncompressed_images_do_not_ask_zlib_to_compress(monkeypatch):
    monkeypatch.delattr(zlib, "compress")
    assert png.encode(np.zeros((3, 5), np.uint8), compress=False).startswith(b"\x89PNG")


def test_jitters_are_their_own_for_each_strip():
    jitters = chosen().jitters
    assert len({maps.tobytes() for maps in jitters.values()}) == len(jitters) == 15


def test_the_jitter_is_applied_before_the_homography(tmp_path):
    regions = chosen()
    only = replace(regions, frames=regions.frames.take(np.arange(3)))
    only = replace(only, jitters={name: maps[:3] for name, maps in only.jitters.items()})
    moved = cv2.warpPerspective(texture(0), MOVE, (SIZE, SIZE))
    load = [lambda: moved] * 6
    write_strips(tmp_path, load, from_first=[MOVE] * 6, regions=only, compress=True)
    image = cv2.imread(str(tmp_path / "t2.png"), cv2.IMREAD_GRAYSCALE).reshape(-1, 65, 65)
    maps = MOVE @ frames.image_from_patch(only.frames) @ only.jitters["t2"]
    expected = sampling.patches(moved.astype(np.float32), maps).astype(int)
    assert np.abs(image - expected).max() <= 1


# Real images


@pytest.mark.data
def test_real_regions_resemble_the_official_ones(shared, tmp_path):
    """v_graffiti has 1,123 official patches; sharpness tells how large regions are."""
    official = cv2.imread(str(shared / "hpatches/patches/v_graffiti/ref.png"), 0)
    report = build(shared / "hpatches/images/v_graffiti", tmp_path / "out")
    ours = strip(report.folder, "v_graffiti", "ref")
    theirs = official.reshape(-1, 65, 65)
    assert len(ours) == pytest.approx(len(theirs), rel=0.1)

    def contrast_and_sharpness(patches):
        spread = patches.std(axis=(1, 2))
        down, right = np.gradient(patches.astype(float), axis=(1, 2))
        slope = np.sqrt((down**2 + right**2).mean(axis=(1, 2)))
        return np.median(spread), np.median(slope / np.maximum(spread, 1))

    assert contrast_and_sharpness(ours) == pytest.approx(contrast_and_sharpness(theirs), rel=0.1)
    gaps = [median_gap(report.folder, "v_graffiti", f"{noise}1") for noise in "eht"]
    assert gaps[0] > gaps[1] > gaps[2] > 0.15


@pytest.mark.data
def test_oxford_sequences_are_of_the_kind_that_the_literature_says(shared):
    names = {sequence.name for sequence in find(shared / "oxford_affine")[0]}
    still = {"i_bikes", "i_leuven", "i_trees", "i_ubc"}
    assert names == still | {"v_bark", "v_boat", "v_graf", "v_wall"}
