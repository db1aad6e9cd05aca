"""Sets made from any images, in PhotoTour's official format; with -m data, from photographs."""

import json
import shutil
from dataclasses import fields, replace

import cv2
import numpy as np
import pytest
from homography_images import OFF, picture, write

from harness import parallel, registry
from protocols.builders.homography import build as building
from protocols.builders.homography.build import build
from protocols.builders.homography.strengths import DEFAULT, Strengths
from protocols.imaging.detect import SMALLEST
from protocols.phototour.reader import blocks, read_pairs, read_reference_images, read_scene
from protocols.phototour.verification import phototour

LIST = "m50_144_144_0.txt"


@pytest.fixture(scope="module", autouse=True)
def one_process():
    """Starting others takes longer than the images here."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(parallel, "CORES", 1)
        yield


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    for k, name in enumerate(("a.png", "below/b.png", "c.png")):
        write(folder / name, picture(k))
    return folder


@pytest.fixture(scope="module")
def made(images, tmp_path_factory):
    """A set of 3 images, 8 points each, 3 patches a point, and the report."""
    out = tmp_path_factory.mktemp("made") / "set"
    return out, build(images, out, points=8, versions=3)


def all_patches(folder):
    return np.concatenate([block.read() for block in blocks(read_scene(folder))])


def table(folder, name):
    return np.loadtxt(folder / name, ndmin=2)


def files(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def stop_after_two(done, total):
    if done == 2:
        raise KeyboardInterrupt


def about(folder):
    return json.loads((folder / "dataset.json").read_text())


def test_the_readers_take_a_set(made):
    out, report = made
    scene = read_scene(out)
    assert len(scene) == 72 == report.points * report.versions
    np.testing.assert_array_equal(scene.point, np.arange(72) // 3)
    np.testing.assert_array_equal(read_reference_images(scene), np.arange(72) // 24)
    assert len(all_patches(out)) == 72


def test_a_protocol_scores_a_set(made):
    out, _ = made
    protocol = phototour(data=out)
    assert protocol.dataset.name == "phototour-set"
    assert "phototour/set" in protocol.dataset.sources


def test_lists_are_balanced_and_pair_points_of_one_image(made):
    out, report = made
    assert list(report.pairs) == [LIST]  # all pairs of versions, twice
    pairs = read_pairs(read_scene(out))
    assert np.count_nonzero(pairs.match) == 72 == len(pairs.a) / 2
    assert len({tuple(sorted(two)) for two in zip(pairs.a, pairs.b, strict=True)}) == 144
    np.testing.assert_array_equal(pairs.a // 24, pairs.b // 24)


def test_interest_is_where_the_patch_is_in_its_image(made, images):
    """Without light and stretch, OpenCV finds the same square."""
    out = made[0].with_name("plain")
    moved = replace(OFF, turn=14, scale=0.2, shift=0.1)
    build(images, out, points=8, versions=3, strengths=moved)
    interest, second = table(out, "interest.txt"), table(out, "info.txt")[:, 1]
    names = [one["name"] for one in about(out)["images"]]
    patches = all_patches(out)
    for row in range(0, len(interest), 7):
        image, x, y, direction, octave = interest[row]
        assert image == second[row]
        half = 6 * 2**octave
        if half > 32:
            continue  # smoothed before it is read
        line = (np.arange(64) - 31.5) / 32 * half
        u, v = np.meshgrid(line, line)
        where = [
            (x + np.cos(direction) * u - np.sin(direction) * v).astype(np.float32),
            (y + np.sin(direction) * u + np.cos(direction) * v).astype(np.float32),
        ]
        grey = cv2.imread(str(images / names[int(image)]), cv2.IMREAD_GRAYSCALE)
        expected = cv2.remap(grey, *where, interpolation=cv2.INTER_LINEAR)
        assert np.abs(expected.astype(int) - patches[row]).max() <= 8  # its weights have 5 bits


def test_at_strength_0_versions_are_identical(images, tmp_path):
    report = build(images, tmp_path / "off", points=10, versions=3, strengths=OFF)
    patches = all_patches(tmp_path / "off").reshape(-1, 3, 64, 64)
    np.testing.assert_array_equal(patches, patches[:, :1].repeat(3, 1))
    assert report.correlation["matches"] == 1


def test_versions_of_a_point_are_more_alike_than_points(made):
    _, report = made
    assert report.correlation["matches"] > report.correlation["non-matches"] + 0.2


def test_the_number_of_processes_changes_no_byte(made, images, tmp_path, monkeypatch):
    monkeypatch.setattr(parallel, "CORES", 2)
    build(images, tmp_path / "set", points=8, versions=3)
    assert files(tmp_path / "set") == files(made[0])


def test_patches_of_an_image_depend_on_no_other_and_on_no_name(made, images, tmp_path):
    shutil.copy(images / "below/b.png", write(tmp_path / "images/x.png", picture(9)))
    build(tmp_path / "images", tmp_path / "set", points=8, versions=3)
    np.testing.assert_array_equal(all_patches(tmp_path / "set"), all_patches(made[0])[24:48])


def test_another_seed_gives_other_patches_of_the_same_points(made, images, tmp_path):
    build(images, tmp_path / "set", points=8, versions=3, seed=1)
    assert (all_patches(tmp_path / "set") != all_patches(made[0])).mean() > 0.9


def test_more_points_leave_the_first_ones_alone(made, images, tmp_path):
    build(images, tmp_path / "set", points=3, versions=3)
    few = all_patches(tmp_path / "set").reshape(3, 3, 3, 64, 64)
    np.testing.assert_array_equal(few, all_patches(made[0]).reshape(3, 8, 3, 64, 64)[:, :3])


def test_all_that_makes_a_set_is_written_down(made, images):
    told = about(made[0])
    assert told["parameters"]["strengths"] == {
        field.name: getattr(DEFAULT, field.name) for field in fields(Strengths)
    }
    assert told["parameters"]["magnification"] == 6
    assert [one["name"] for one in told["images"]] == ["a.png", "below/b.png", "c.png"]
    assert "24 points, 3 each, from 3 images" in str(made[1])


def test_progress_counts_images(images, tmp_path):
    told = []
    build(images, tmp_path / "set", points=3, versions=2, progress=lambda *n: told.append(n))
    assert told == [(1, 3), (2, 3), (3, 3)]


# What stops, and what is left out


def test_a_build_that_was_stopped_goes_on(made, images, tmp_path, monkeypatch):
    with pytest.raises(KeyboardInterrupt):
        build(images, tmp_path / "set", points=8, versions=3, progress=stop_after_two)
    assert [path.name for path in tmp_path.iterdir()] == [".set.patches"]
    cut, seen = building.cut, []
    monkeypatch.setattr(building, "cut", lambda *a, **b: seen.append(1) or cut(*a, **b))
    build(images, tmp_path / "set", points=8, versions=3)
    assert len(seen) == 1
    assert files(tmp_path / "set") == files(made[0])
    assert [path.name for path in tmp_path.iterdir()] == ["set"]


def test_other_options_do_not_go_on_from_there(made, images, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        build(images, tmp_path / "set", points=8, versions=3, seed=1, progress=stop_after_two)
    build(images, tmp_path / "set", points=8, versions=3)
    assert files(tmp_path / "set") == files(made[0])


def test_two_builds_at_once_do_not_share_a_folder(images, tmp_path):
    def second(done, total):
        with pytest.raises(BlockingIOError, match="another process is making"):
            build(images, tmp_path / "set", points=5, versions=2)

    build(images, tmp_path / "set", points=5, versions=2, progress=second)
    assert len(read_scene(tmp_path / "set")) == 30


@pytest.mark.parametrize("cores", [1, 2])
def test_bad_images_are_left_out_and_named(images, tmp_path, caplog, monkeypatch, cores):
    monkeypatch.setattr(parallel, "CORES", cores)
    folder = tmp_path / "images"
    shutil.copytree(images, folder)
    (folder / "broken.jpg").write_bytes((folder / "a.png").read_bytes()[:200])
    (folder / "empty.png").write_bytes(b"")
    (folder / "text.png").write_text("no image")
    write(folder / "flat.png", np.full((200, 200), 7, np.uint8))
    write(folder / "tiny.png", picture()[:9, :9])
    shutil.copy(folder / "a.png", folder / "twin.png")
    (folder / "readme.txt").write_text("not asked for")
    report = build(folder, tmp_path / "set", points=8, versions=3)
    assert report.images == 3
    assert list(report.left_out) == [
        "broken.jpg", "empty.png", "flat.png", "text.png", "tiny.png", "twin.png",
    ]  # fmt: skip
    assert "can't be decoded" in report.left_out["broken.jpg"]
    assert "no point in 9 x 9 pixels" in report.left_out["tiny.png"]
    assert report.left_out["twin.png"] == "the same as a.png"
    assert "6 of 9 images left out: broken.jpg" in caplog.text
    assert "6 images left out: broken.jpg" in str(report) and "and 1 more" in str(report)
    assert about(tmp_path / "set")["left_out"] == dict(report.left_out)


def test_images_of_all_kinds_are_read(tmp_path):
    folder = tmp_path / "images"
    grey = picture(3)
    write(folder / "grey.png", grey)
    write(folder / "colour.jpg", np.stack([grey, picture(4), picture(5)], -1))
    write(folder / "deep.png", picture(6).astype(np.uint16) * 257)
    write(folder / "alpha.png", np.stack([picture(7)] * 3 + [grey], -1))
    write(folder / "tall.tif", picture(8, 400, 60))
    report = build(folder, tmp_path / "set", points=4, versions=2)
    assert report.images == 5 and not report.left_out


def test_an_image_with_few_points_gives_those(tmp_path):
    write(tmp_path / "images/a.png", picture())
    report = build(tmp_path / "images", tmp_path / "set", points=5000, versions=2)
    assert 20 < report.points < 200
    assert report.short == 1


def no_images(folder):
    (folder / "notes.txt").write_text("nothing here")


def only_bad_ones(folder):
    (folder / "a.png").write_bytes(b"")
    write(folder / "b.png", np.zeros((50, 50), np.uint8))


def nothing(folder):
    pass


REFUSED = {
    "no folder": (shutil.rmtree, {}, "is not a folder"),
    "no images": (no_images, {}, "no images in"),
    "empty": (nothing, {}, "no images in"),
    "only bad ones": (only_bad_ones, {}, r"have 0 points, two are needed: a.png .*, b.png"),
    "no points": (nothing, {"points": 0}, "points is 0"),
    "one version": (nothing, {"versions": 1}, "versions 1"),
    "many versions": (nothing, {"versions": 101}, "from 2 to 100"),
    "negative seed": (nothing, {"seed": -1}, "seed -1"),
    "name": (nothing, {"name": "a b"}, "can't name a scene"),
    "official name": (nothing, {"name": "Liberty"}, "no name of an official scene"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_set_is_refused_and_leaves_nothing(tmp_path, case):
    spoil, options, message = REFUSED[case]
    (tmp_path / "images").mkdir()
    spoil(tmp_path / "images")
    with pytest.raises(ValueError, match=message):
        build(tmp_path / "images", tmp_path / "set", **options)
    assert {path.name for path in tmp_path.iterdir()} <= {"images"}


def test_one_image_with_one_point_is_refused(images, tmp_path):
    shutil.copytree(images, tmp_path / "images", ignore=shutil.ignore_patterns("b.png", "c.png"))
    with pytest.raises(ValueError, match=r"the 1 images of .* have 1 points, two are needed"):
        build(tmp_path / "images", tmp_path / "set", points=1)


def test_a_point_of_each_of_two_images_is_enough(images, tmp_path):
    report = build(images, tmp_path / "set", points=1, versions=2)
    assert report.points == 3 and list(report.correlation) == ["matches"]
    assert read_pairs(read_scene(tmp_path / "set")).match.sum() == 3


def test_points_at_one_place_of_two_images_are_no_match(tmp_path):
    write(tmp_path / "images/a.png", picture())
    write(tmp_path / "images/b.png", 255 - picture())
    build(tmp_path / "images", tmp_path / "set", points=1, versions=2, strengths=OFF)
    one, _, other, _ = table(tmp_path / "set", "interest.txt")
    np.testing.assert_array_equal(one[[1, 2]], other[[1, 2]])
    assert read_pairs(read_scene(tmp_path / "set")).match.tolist().count(False) == 2


@pytest.mark.parametrize("there", ["notes.txt", "dataset.json"])
def test_a_folder_with_something_in_it_is_left_alone(images, tmp_path, there):
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / there).write_text("mine")
    with pytest.raises(FileExistsError, match="remove it, or give another"):
        build(images, tmp_path / "set")
    assert files(tmp_path / "set") == {there: b"mine"}


# The command


def built(run, images, out, *given):
    settings = [word for one in given for word in ("--set", one)]
    return run("data", "build", "homography", "--images", images, "--out", out, *settings)


def test_the_command_takes_strengths_by_name(images, tmp_path, run):
    given = ("points=3", "versions=2", "blur-share=0.7", "any-turn=true")
    assert "18 patches of 9 points" in built(run, images, tmp_path / "set", *given)[1]
    told = about(tmp_path / "set")["parameters"]["strengths"]
    assert told == {**vars(DEFAULT), "blur_share": 0.7, "any_turn": True}


def test_the_command_refuses_what_it_does_not_know(images, tmp_path, run):
    assert "did you mean 'blur_share'" in built(run, images, tmp_path / "a", "blur_shar=1")[2]
    assert "jpeg is 100.0" in built(run, images, tmp_path / "a", "jpeg=100")[2]
    assert not list(tmp_path.iterdir())


def test_the_builder_is_installed():
    assert registry.load("builders", "homography") is build


@pytest.mark.data
def test_real_photographs_give_points_of_all_sizes(shared, tmp_path):
    folder = tmp_path / "images"
    folder.mkdir()
    found = sorted((shared / "images/bsds500").rglob("*.jpg"))[::100]
    for file in found:
        shutil.copy(file, folder)
    report = build(folder, tmp_path / "set", points=100)
    assert report.points == 100 * len(found) and not report.left_out
    small, middle, large = report.octaves[:3]
    assert small > middle > large > 0.02 * report.points
    assert 0.4 < report.correlation["matches"] < 0.8
    patches = all_patches(tmp_path / "set")
    assert np.quantile(patches.std((1, 2)), 0.01) > 3


def test_patches_are_as_tight_as_told(images, tmp_path):
    tight = build(images, tmp_path / "tight", points=8, versions=2, magnification=3, strengths=OFF)
    about = json.loads((tight.folder / "dataset.json").read_text("utf-8"))
    assert about["parameters"]["magnification"] == 3
    *_, scale = table(tight.folder, "interest.txt").T
    assert scale.min() >= np.log2(SMALLEST) - 1e-4  # told in pixels of the image, not of patches
    with pytest.raises(ValueError, match=r"magnification is 0\.5: give a number from 1 to 12"):
        build(images, tmp_path / "out", magnification=0.5)
