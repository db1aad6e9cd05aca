"""Photographs are known again by their content."""

import io
import json
import shutil
from importlib import resources
from pathlib import Path

import cv2
import numpy as np
import pytest

from harness.data import training_sets
from protocols.builders.homography.build import build as build_homography
from protocols.builders.phototour.build import build as build_phototour
from protocols.imaging import kept_fingerprints, same_photograph
from protocols.imaging.grey import read_grey
from protocols.imaging.same_photograph import CUTS, SAME, differences, fingerprints

NAMES = ("astronaut", "camera", "chelsea", "coffee", "rocket")


@pytest.fixture(scope="module")
def images():
    folder = Path(str(resources.files("skimage") / "data"))
    return {name: read_grey(next(folder.glob(f"{name}.*g"))) for name in NAMES}


def bits(a, b):
    return int(differences(fingerprints(a), fingerprints(b)[None])[0])


def scaled(image, by):
    return cv2.resize(image, None, fx=by, fy=by, interpolation=cv2.INTER_AREA)


def jpeg(image, quality):
    encoded = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, quality])[1]
    return cv2.imdecode(encoded, cv2.IMREAD_GRAYSCALE)


def cut(image, top, bottom, left, right):
    height, width = image.shape
    rows = slice(round(top * height), height - round(bottom * height))
    return image[rows, round(left * width) : width - round(right * width)]


CHANGES = {
    "the same": lambda image: image,
    "a third of the size": lambda image: scaled(image, 1 / 3),
    "twice the size": lambda image: scaled(image, 2),
    "JPEG of quality 10": lambda image: jpeg(image, 10),
    "dark": lambda image: (image * 0.4).astype(np.uint8),
    "gamma": lambda image: (255 * (image / 255) ** 0.6).astype(np.uint8),
    "blurred": lambda image: cv2.GaussianBlur(image, (0, 0), 3),
    "cut on all sides": lambda image: cut(image, 0.1, 0.1, 0.1, 0.1),
    "cut on two sides": lambda image: cut(image, 0.07, 0, 0.03, 0),
    "cut, smaller, JPEG": lambda image: jpeg(scaled(cut(image, 0.05, 0.09, 0, 0.06), 0.5), 30),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_changed_photograph_is_found_whichever_side_it_is_on(images, change):
    for image in images.values():
        assert bits(image, change(image)) <= SAME
        assert bits(change(image), image) <= SAME


def test_different_photographs_are_told_apart(images):
    for a in images:
        assert [b for b in images if bits(images[a], images[b]) <= SAME] == [a]


def test_more_light_changes_hardly_a_bit(images):
    dim = images["camera"] // 2
    assert bits(dim, dim + 100) <= 2  # grey values are rounded


def test_there_is_a_fingerprint_for_each_way_to_cut_four_sides(images):
    assert fingerprints(images["camera"]).shape == (len(CUTS) ** 4, 4)


@pytest.mark.parametrize("size", [(1, 1), (3, 400), (400, 3)])
def test_odd_sizes_have_fingerprints(size):
    image = np.random.default_rng(0).integers(0, 256, size, dtype=np.uint8)
    assert bits(image, image) == 0


@pytest.mark.parametrize("other", ["mirror", "view"])
def test_mirror_images_and_other_views_are_not_found(images, other):
    """What the module's page says of what is not found."""
    image = images["astronaut"]
    height, width = image.shape
    corners = np.float32([[0, 0], [width, 0], [width, height], [0, height]])
    seen = np.float32([[0, 0], [width, 0.25 * height], [width, 0.75 * height], [0, height]])
    view = cv2.warpPerspective(image, cv2.getPerspectiveTransform(corners, seen), (width, height))
    assert bits(image, image[:, ::-1] if other == "mirror" else view) > SAME


@pytest.fixture
def folders(images, tmp_path):
    """Images to train on, and images of a test; one photograph is in both, cut and smaller."""
    train, tests = tmp_path / "train", tmp_path / "tests"
    for folder, names in ((train, ("astronaut", "coffee")), (tests / "deep", ("camera",))):
        folder.mkdir(parents=True)
        for name in names:
            cv2.imwrite(str(folder / f"{name}.png"), images[name])
    cv2.imwrite(str(tests / "deep/x.jpg"), scaled(cut(images["coffee"], 0, 0.05, 0.05, 0), 0.6))
    (tests / "broken.png").write_bytes(b"no image")
    return train, tests


def test_shared_photographs_of_folders_are_named(folders, caplog):
    (pair,) = same_photograph.shared(*folders)
    assert (pair.first, pair.second) == ("coffee.png", "deep/x.jpg") and 0 < pair.bits <= SAME
    assert "broken.png can't be compared" in caplog.text


def test_a_builder_leaves_out_photographs_of_the_tests(folders, tmp_path):
    train, tests = folders
    report = build_homography(train, tmp_path / "out", points=3, versions=2, tests=tests)
    assert report.images == 1
    assert report.left_out == {"coffee.png": f"the same photograph as {tests / 'deep/x.jpg'}"}


@pytest.fixture(scope="module")
def once(images, tmp_path_factory):
    """A data set of two photographs, which are gone."""
    folder = tmp_path_factory.mktemp("once")
    (folder / "train").mkdir()
    for name in ("astronaut", "coffee"):
        cv2.imwrite(str(folder / f"train/{name}.png"), images[name])
    build_homography(folder / "train", folder / "built", points=3, versions=2)
    shutil.rmtree(folder / "train")
    return folder / "built"


@pytest.fixture
def built(once, tmp_path):
    return shutil.copytree(once, tmp_path / "built")


def test_a_data_set_keeps_the_fingerprints_of_its_photographs(once, images):
    kept = kept_fingerprints._kept(once)
    assert [*kept] == ["astronaut.png", "coffee.png"]
    for name, own in kept.items():
        np.testing.assert_array_equal(own, fingerprints(images[name.removesuffix(".png")]))


def test_training_on_test_images_is_refused(once, folders, tmp_path):
    tests, other = folders[1], tmp_path / "other"
    other.mkdir()
    shutil.copy(tests / "deep/camera.png", other)
    assert len(training_sets.open_sets([str(once)], tests=[other])) == 1
    told = r"built shows 1 test images of .*/tests: coffee\.png is deep/x\.jpg"
    with pytest.raises(ValueError, match=told):
        training_sets.open_sets([str(once)], tests=[other, tests])


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda about: about.pop("fingerprints"), "keeps no fingerprints of form 1"),
        (lambda about: about.update(fingerprints=2), "keeps no fingerprints of form 1"),
        (lambda about: about["images"].pop(), r"uint64 \[2, 81, 4\] for the 1 images of dataset"),
    ],
    ids=["older", "newer", "others"],
)
def test_a_set_without_its_fingerprints_is_refused_if_tests_are_given(built, folders, change, told):
    about = json.loads((built / "dataset.json").read_text())
    change(about)
    (built / "dataset.json").write_text(json.dumps(about))
    assert len(training_sets.open_sets([str(built)])) == 1
    with pytest.raises(ValueError, match=told):
        training_sets.open_sets([str(built)], tests=[folders[1]])


def claiming(shape):
    """The start of a file of an array of this shape, without the array."""
    stream = io.BytesIO()
    head = {"descr": "<u8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, head)
    return stream.getvalue()


@pytest.mark.parametrize("damaged", [b"no array", claiming((2**40, 81, 4)), claiming((-1, 81, 4))])
def test_damaged_fingerprints_are_refused(built, folders, damaged):
    (built / kept_fingerprints.FILE).write_bytes(damaged)
    with pytest.raises(ValueError, match=r"the fingerprints of .*built can't be read"):
        kept_fingerprints.must_be_others(built, [folders[1]])


def test_a_scene_of_photographs_of_the_tests_is_refused(folders, tmp_path):
    train, tests = folders
    with pytest.raises(ValueError, match=r"1 images of .* are test images.*coffee\.png is deep/x"):
        build_phototour(train, tmp_path / "out", tests=tests)
    assert not (tmp_path / "out").exists()


def test_a_scene_of_other_photographs_goes_on(folders, tmp_path):
    """To the next check: two images are too few here."""
    train, tests = folders
    (train / "coffee.png").unlink()
    with pytest.raises(ValueError, match=r"has 1 images that can be read, astronaut\.png"):
        build_phototour(train, tmp_path / "out", tests=tests)


@pytest.mark.data
@pytest.mark.parametrize(
    "train", ["images/lund", "sfm/castle-P30", "sfm/entry-P10", "sfm/SceauxCastle"]
)
def test_no_test_image_is_among_images_to_train_on(shared, train):
    for test in ("oxford_affine", "hpatches/images", "sfm/Fountain-P11", "sfm/Herzjesu-P8"):
        assert same_photograph.shared(shared / train, shared / test) == []


@pytest.mark.data
def test_oxford_s_graf_is_known_again_in_hpatches(shared):
    graf, graffiti = shared / "oxford_affine/graf", shared / "hpatches/images/v_graffiti"
    pairs = same_photograph.shared(graf, graffiti)
    assert [(pair.first, pair.second) for pair in sorted(pairs, key=lambda one: one.first)] == [
        (f"img{k}.png", f"{k}.ppm") for k in range(1, 7)
    ]
