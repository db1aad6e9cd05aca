"""Scenes made from photographs of planes with known cameras."""

import json
import logging
import shutil
from dataclasses import dataclass

import cv2
import numpy as np
import pycolmap
import pytest

from harness import registry
from protocols.builders.phototour import pairs
from protocols.builders.phototour.build import build
from protocols.imaging import kept_fingerprints
from protocols.imaging.agreement import correlation
from protocols.phototour.reader import blocks, read_pairs, read_reference_images, read_scene

WIDTH, HEIGHT, FOCAL = 320, 240, 300.0
K = np.array([[FOCAL, 0, WIDTH / 2], [0, FOCAL, HEIGHT / 2], [0, 0, 1]])
TEXEL = 0.004  # side of a pixel of the texture, in the world


def turn(axis, degrees):
    return cv2.Rodrigues(np.eye(3)[axis] * np.radians(degrees))[0]


@dataclass(frozen=True)
class View:
    name: str
    rotation: np.ndarray
    shift: np.ndarray

    def project(self, xyz):
        """COLMAP's pixels, which count from the corner of the upper left one."""
        x = (xyz @ self.rotation.T + self.shift) @ K.T
        return x[:, :2] / x[:, 2:]


def looking(name, x, y, distance, roll):
    """A camera that looks at the middle of the book."""
    rotation = turn(2, roll) @ turn(0, y) @ turn(1, x)
    return View(name, rotation, np.array([0.0, 0.0, distance]))


VIEWS = [
    looking("a.png", -14, 4, 3.0, 0),
    looking("b.png", 0, -4, 3.2, 90),
    looking("below/c.png", 12, 3, 2.6, -20),
    looking("d.png", 22, 0, 3.1, 5),
]

# Two pages of an open book: origin, direction along x and along y, in the world.
PAGES = [
    (np.array([-1.2, -1.0, -0.5]), np.array([1.2, 0, 0.5]) / 1.3, np.array([0.0, 1.0, 0.0])),
    (np.array([0.0, -1.0, 0.0]), np.array([1.2, 0, -0.5]) / 1.3, np.array([0.0, 1.0, 0.0])),
]
SIZE = np.array([1.3, 2.0])  # of a page


def texture(seed):
    rng = np.random.default_rng(seed)
    width, height = (SIZE / TEXEL).astype(int)
    layers = [
        cv2.resize(rng.normal(size=(height // s, width // s)), (width, height), interpolation=3)
        for s in (4, 8, 16, 48)
    ]
    image = sum(layer / layer.std() for layer in layers)
    return np.clip(128 + 28 * image, 0, 255).astype(np.uint8)


def render(view):
    image = np.zeros((HEIGHT, WIDTH), np.uint8)
    for seed, (origin, right, down) in enumerate(PAGES):
        texel = np.stack([right * TEXEL, down * TEXEL, origin + (right + down) * TEXEL / 2], 1)
        homography = K @ (view.rotation @ texel + np.outer(view.shift, [0, 0, 1]))
        homography = np.array([[1, 0, -0.5], [0, 1, -0.5], [0, 0, 1]]) @ homography
        page = texture(seed)
        warped = cv2.warpPerspective(page, homography, (WIDTH, HEIGHT), flags=cv2.INTER_AREA)
        mask = cv2.warpPerspective(np.ones_like(page), homography, (WIDTH, HEIGHT))
        image = np.where(mask > 0, warped, image)
    return image


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """A folder of images."""
    folder = tmp_path_factory.mktemp("book")
    for view in VIEWS:
        (folder / view.name).parent.mkdir(exist_ok=True)
        cv2.imwrite(str(folder / view.name), render(view))
    return folder


def points():
    """Places on both pages, their directions right and down."""
    rng = np.random.default_rng(5)
    places = []
    for origin, right, down in PAGES:
        for u, v in 0.1 + rng.random((40, 2)) * (SIZE - 0.2):
            places.append((origin + u * right + v * down, right, down))
    return [np.array(column) for column in zip(*places, strict=True)]


def visible(view, xyz):
    """Most of the points, so that tracks differ."""
    chosen = np.random.default_rng(len(view.name) + ord(view.name[0])).random(len(xyz)) < 0.85
    x, y = view.project(xyz).T
    return np.flatnonzero(chosen & (x > 1) & (y > 1) & (x < WIDTH - 1) & (y < HEIGHT - 1))


def quaternion(rotation):
    xyzw = np.asarray(pycolmap.Rotation3d(rotation).quat)
    return xyzw[[3, 0, 1, 2]]


def write_model(folder, forgotten=()):
    """A sparse model of the book as COLMAP's text; what is forgotten is (image, point)."""
    folder.mkdir(parents=True)
    xyz, _, _ = points()
    (folder / "cameras.txt").write_text(
        f"1 PINHOLE {WIDTH} {HEIGHT} {FOCAL} {FOCAL} {WIDTH / 2} {HEIGHT / 2}\n"
    )
    lines, tracks = [], {}
    for k, view in enumerate(VIEWS, 1):
        pose = " ".join(map(str, [*quaternion(view.rotation), *view.shift]))
        seen = []
        for index, p in enumerate(visible(view, xyz).tolist()):
            x, y = view.project(xyz[[p]])[0]
            known = (k, p) not in forgotten
            seen.append(f"{x} {y} {p + 1 if known else -1}")
            if known:
                tracks.setdefault(p, []).append(f"{k} {index}")
        lines += [f"{k} {pose} 1 {view.name}", " ".join(seen)]
    (folder / "images.txt").write_text("\n".join(lines) + "\n")
    (folder / "points3D.txt").write_text(
        "".join(
            f"{p + 1} {' '.join(map(str, xyz[p]))} 9 9 9 0.1 {' '.join(track)}\n"
            for p, track in sorted(tracks.items())
        )
    )
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A sparse model without a database."""
    return write_model(tmp_path_factory.mktemp("model") / "sparse")


def keypoints(view, scale, angle):
    """As a perfect detector finds them: of this size on the page, in this direction."""
    xyz, right, down = points()
    rows = visible(view, xyz)
    xyz, along = xyz[rows], np.cos(angle) * right[rows] + np.sin(angle) * down[rows]
    across = np.cos(angle) * down[rows] - np.sin(angle) * right[rows]
    step = 1e-4
    middle = view.project(xyz)
    x, y = ((view.project(xyz + step * d) - middle) / step for d in (along, across))
    pixels = scale * np.sqrt(np.abs(x[:, 0] * y[:, 1] - x[:, 1] * y[:, 0]))
    # The rotation nearest to the affine map.
    return np.c_[middle, pixels, np.arctan2(x[:, 1] - y[:, 0], x[:, 0] + y[:, 1])].astype(
        np.float32
    )


def write_database(file, columns, odd=(), scale_of_odd=0.02):
    """Keypoints of 4 columns (scale, direction), or of 6 (an affine shape).

    Of the (image, point) that are odd another scale was detected.
    """
    file.parent.mkdir(exist_ok=True)
    xyz = points()[0]
    with pycolmap.Database.open(file) as database:
        camera = pycolmap.Camera.create_from_model_name(1, "PINHOLE", FOCAL, WIDTH, HEIGHT)
        database.write_camera(camera)
        for k, view in enumerate(VIEWS, 1):
            number = database.write_image(pycolmap.Image(name=view.name, camera_id=1, image_id=k))
            scale = [scale_of_odd if (k, p) in odd else 0.02 for p in visible(view, xyz).tolist()]
            found = keypoints(view, scale=np.array(scale), angle=0.7)
            if columns == 6:
                cos, sin = found[:, 2] * np.cos(found[:, 3]), found[:, 2] * np.sin(found[:, 3])
                found = np.c_[found[:, :2], cos, -sin, sin, cos].astype(np.float32)
            database.write_keypoints(number, found)
    return file


@pytest.fixture
def known(model, tmp_path):
    """The same model with its database beside it."""
    shutil.copytree(model, tmp_path / "project" / "sparse" / "0")
    write_database(tmp_path / "project" / "database.db", columns=6)
    return tmp_path / "project" / "sparse" / "0"


def all_patches(folder):
    return np.concatenate([block.read() for block in blocks(read_scene(folder))])


def table(folder, name):
    return np.loadtxt(folder / name, ndmin=2)


def files(folder):
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }


def test_patches_of_a_point_look_alike_from_a_bare_model(book, model, tmp_path):
    report = build(book, tmp_path / "book", model=model)
    # Wide patches, of a book seen under angles up to 36 degrees apart.
    assert report.correlation["matches"] > 0.6
    assert abs(report.correlation["non-matches"]) < 0.1
    about = json.loads((tmp_path / "book" / "dataset.json").read_text())
    assert about["parameters"]["frames"] == "projected"
    assert about["name"] == report.name == "phototour-book"
    with pytest.raises(ValueError, match="shows 4 test images"):
        kept_fingerprints.must_be_others(tmp_path / "book", [book])


def test_patches_of_a_point_look_alike_where_keypoints_are_known(book, known, tmp_path):
    report = build(book, tmp_path / "book", model=known)
    about = json.loads((tmp_path / "book" / "dataset.json").read_text())
    assert about["parameters"]["frames"] == "detected"
    assert report.correlation["matches"] > 0.8  # one view is turned by 90 degrees
    assert report.fit > 0.95
    assert report.offset_px < 0.01


def test_a_patch_is_the_square_of_its_keypoint(book, known, tmp_path):
    build(book, tmp_path / "book", model=known)
    info, interest = (table(tmp_path / "book", name) for name in ("info.txt", "interest.txt"))
    about = json.loads((tmp_path / "book" / "dataset.json").read_text())
    found = {view.name: keypoints(view, scale=0.02, angle=0.7) for view in VIEWS}
    read = all_patches(tmp_path / "book")
    for row in range(0, len(info), 7):
        name = about["images"][int(info[row, 1])]["name"]
        _, x, y, direction, octave = interest[row]
        nearest = np.hypot(found[name][:, 0] - 0.5 - x, found[name][:, 1] - 0.5 - y).argmin()
        key_x, key_y, scale, angle = found[name][nearest]
        np.testing.assert_allclose((x, y), (key_x - 0.5, key_y - 0.5), atol=1e-3)
        np.testing.assert_allclose(octave, np.log2(scale), atol=1e-3)
        np.testing.assert_allclose(direction, angle, atol=1e-3)
        # 64 pixels on a side of 12 scales, by OpenCV.
        line = (np.arange(64) - 31.5) / 32 * 6 * scale
        u, v = np.meshgrid(line, line)
        where = [
            (x + np.cos(angle) * u - np.sin(angle) * v).astype(np.float32),
            (y + np.sin(angle) * u + np.cos(angle) * v).astype(np.float32),
        ]
        image = cv2.imread(str(book / name), cv2.IMREAD_GRAYSCALE)
        expected = cv2.remap(image, *where, interpolation=cv2.INTER_LINEAR)
        assert np.abs(expected.astype(int) - read[row]).max() <= 8  # its weights have 5 bits


def test_keypoints_of_four_and_of_six_columns_give_the_same(book, model, known, tmp_path):
    four = write_database(tmp_path / "four.db", columns=4)
    build(book, tmp_path / "a" / "book", model=model, database=four)
    build(book, tmp_path / "b" / "book", model=known)
    a, b = (all_patches(tmp_path / folder / "book").astype(int) for folder in "ab")
    assert np.abs(a - b).max() <= 1


def test_projected_patches_have_the_size_that_the_reference_has_on_the_page(book, known, tmp_path):
    report = build(book, tmp_path / "book", model=known, frames="projected")
    assert report.fit == 1.0
    info, interest = (table(tmp_path / "book", name) for name in ("info.txt", "interest.txt"))
    for point in np.unique(info[:, 0]):
        own = interest[info[:, 0] == point]
        assert len(np.unique(own[:, 0])) == 1  # the reference image
        assert np.ptp(own[:, 4]) < 1.5  # octaves: views are between 2.6 and 3.2 away, and oblique


def test_the_readers_take_a_scene_that_was_built(book, known, tmp_path):
    report = build(book, tmp_path / "book", model=known)
    scene = read_scene(tmp_path / "book")
    assert len(scene) == report.tally.patches
    assert len(np.unique(scene.point)) == report.tally.points
    assert len(read_reference_images(scene)) == len(scene)
    read = read_pairs(scene)
    assert {read.file.name: len(read.match)} == report.pairs


def test_every_patch_has_a_partner_in_another_image(book, known, tmp_path):
    build(book, tmp_path / "book", model=known)
    info = table(tmp_path / "book", "info.txt").astype(int)
    points, counts = np.unique(info[:, 0], return_counts=True)
    assert counts.min() >= 2
    assert len(np.unique(info, axis=0)) == len(info)  # an image shows a point once
    assert (np.diff(info[:, 0]) >= 0).all()
    assert points.tolist() == list(range(len(points)))


def test_observations_are_all_accounted_for(book, known, tmp_path):
    tally = build(book, tmp_path / "book", model=known, max_patches=60).tally
    left_out = tally.behind + tally.outside + tally.alone + tally.over_cap
    assert left_out + tally.patches == tally.observations
    assert 0 < tally.patches <= 60


def test_lists_are_balanced_and_name_no_pair_twice(book, known, tmp_path):
    build(book, tmp_path / "book", model=known)
    scene = read_scene(tmp_path / "book")
    reference = read_reference_images(scene)
    read = read_pairs(scene)
    assert np.count_nonzero(read.match) * 2 == len(read.match)
    assert (read.a != read.b).all()
    assert len({frozenset(pair) for pair in zip(read.a, read.b, strict=True)}) == len(read.a)
    assert (reference[read.a] == reference[read.b]).all()


def test_the_same_model_and_seed_give_the_same_bytes(book, known, tmp_path):
    for folder in "ab":
        build(book, tmp_path / folder / "book", model=known, seed=3)
    assert files(tmp_path / "a") == files(tmp_path / "b")


def test_the_database_is_only_read(book, known, tmp_path):
    file = tmp_path / "project" / "database.db"
    before = file.read_bytes()
    build(book, tmp_path / "book", model=known)
    assert file.read_bytes() == before
    assert {path.name for path in file.parent.iterdir()} == {"database.db", "sparse"}


def test_another_seed_gives_other_pairs_of_the_same_patches(book, known, tmp_path):
    for seed in (1, 2):
        build(book, tmp_path / str(seed) / "book", model=known, seed=seed)
    one, two = (files(tmp_path / str(seed) / "book") for seed in (1, 2))
    assert one["patches0000.bmp"] == two["patches0000.bmp"]
    lists = [name for name in one if name.startswith("m50")]
    assert all(one[name] != two[name] for name in lists)


def forgetful(folder, scale=0.02):
    """A model that lacks one observation of every third point that three images see or more."""
    xyz = points()[0]
    seen = [(k, p) for k, view in enumerate(VIEWS, 1) for p in visible(view, xyz).tolist()]
    often = [p for p in range(0, len(xyz), 3) if sum(p == q for _, q in seen) >= 3]
    forgotten = {(k, p) for p in often for k in [max(k for k, q in seen if q == p)]}
    write_database(folder / "database.db", columns=6, odd=forgotten, scale_of_odd=scale)
    return write_model(folder / "sparse", forgotten), len(forgotten)


def test_observations_that_were_not_matched_are_found(book, known, tmp_path):
    whole = build(book, tmp_path / "whole", model=known, seed=1)
    sparse, forgotten = forgetful(tmp_path / "forgetful")
    found = build(book, tmp_path / "found", model=sparse, seed=1)
    assert (whole.added, found.added) == (0, forgotten)
    assert found.by_chance == 0
    assert found.tally == whole.tally
    assert set(table(tmp_path / "found", "info.txt")[:, 1]) == {0, 1, 2, 3}
    left = build(book, tmp_path / "left", model=sparse, extend=False)
    assert (left.added, left.tally.observations) == (0, whole.tally.observations - forgotten)


def test_a_keypoint_of_another_scale_is_no_observation(book, tmp_path):
    sparse, _ = forgetful(tmp_path / "forgetful", scale=0.03)
    assert build(book, tmp_path / "book", model=sparse).added == 0


def made_up(points=300, images=3, seed=0):
    """Patches that overlap and disagree in all ways."""
    rng = np.random.default_rng(seed)
    point = np.repeat(np.arange(points), rng.integers(2, 6, points))
    n = len(point)
    return pairs.PatchFacts(
        point=point,
        reference=rng.integers(0, images, points)[point],
        xyz=(rng.integers(0, 7, (points, 3)) * 1.0)[point],
        half=0.5 * 2 ** rng.normal(0, 0.2, n),
        angle=rng.uniform(-np.pi, np.pi, points)[point] + rng.normal(0, 0.4, n),
        offset=rng.uniform(0, 6, n),
    )


def test_matches_agree_in_place_scale_and_direction():
    patches = made_up()
    found = pairs.matching(patches)
    expected = []
    for a in range(len(patches.point)):
        for b in range(a + 1, len(patches.point)):
            turned = np.exp(1j * (patches.angle[a] - patches.angle[b]))
            if (
                patches.point[a] == patches.point[b]
                and max(patches.offset[a], patches.offset[b]) <= 5
                and abs(np.log2(patches.half[a] / patches.half[b])) <= 0.25
                and abs(np.angle(turned)) <= np.pi / 8
            ):
                expected.append((a, b))
    assert sorted(map(tuple, found.tolist())) == expected


def test_matches_are_spread_over_points():
    patches = made_up()
    candidates = pairs.matching(patches)
    with_one = len(np.unique(patches.point[candidates[:, 0]]))
    drawn = pairs.draw_matches(candidates, patches.point, with_one, (0, 1))
    assert len(np.unique(patches.point[drawn[:, 0]])) == with_one
    every = pairs.draw_matches(candidates, patches.point, 10**6, (0, 1))
    assert sorted(every.tolist()) == sorted(candidates.tolist())


def test_non_matches_never_show_the_same_place():
    patches = made_up()
    found = pairs.draw_non_matches(patches, 2000, (0, 2))
    assert len(found) == 2000
    a, b = found.T
    assert (patches.point[a] != patches.point[b]).all()
    assert (patches.xyz[a] != patches.xyz[b]).any(axis=1).all()
    assert (patches.reference[a] == patches.reference[b]).all()
    assert len({frozenset(pair) for pair in found.tolist()}) == len(found)


def test_non_matches_come_from_two_images_only_where_there_are_no_others():
    patches = made_up(points=20, images=20)
    found = pairs.draw_non_matches(patches, 600, (0, 2))
    within = patches.reference[found[:, 0]] == patches.reference[found[:, 1]]
    assert 0 < within.sum() < len(found)
    assert within[: within.sum()].all()


def test_correlation_is_blind_to_brightness_and_contrast():
    a = np.random.default_rng(0).integers(0, 100, (5, 64, 64)).astype(np.uint8)
    np.testing.assert_allclose(correlation(a, 2 * a + 30), 1)
    np.testing.assert_allclose(correlation(a, 200 - a), -1)
    assert correlation(a, np.full_like(a, 7)).tolist() == [0] * 5


def test_images_that_cannot_be_read_are_left_out_and_told(book, tmp_path):
    shutil.copytree(book, tmp_path / "images")
    (tmp_path / "images/cut.png").write_bytes((book / "a.png").read_bytes()[:999])
    deep = np.full((HEIGHT, WIDTH), 4095, np.uint16)
    cv2.imwrite(str(tmp_path / "images/deep.png"), deep)
    report = build(tmp_path / "images", tmp_path / "scene")
    assert report.registered == report.images == 4
    assert list(report.left_out) == ["cut.png", "deep.png"]
    assert "2 images left out: cut.png" in str(report)
    about = json.loads((tmp_path / "scene/dataset.json").read_text())
    assert about["left_out"] == dict(report.left_out)


@pytest.fixture(scope="module")
def by_colmap(book, tmp_path_factory):
    """The report on a scene for which COLMAP was run, where it was interrupted on other images."""
    folder = tmp_path_factory.mktemp("by_colmap")
    work = folder / ".book.colmap"
    (work / "sparse").mkdir(parents=True)
    (work / "database.db").write_text("of other images")
    (work / "request.json").write_text("of other images")
    return build(book, folder / "book")


def test_colmap_is_run_where_no_model_is_given(by_colmap):
    assert by_colmap.registered == by_colmap.images == 4
    assert by_colmap.correlation["matches"] > 0.8
    assert by_colmap.correlation["non-matches"] < 0.4


def test_a_reconstruction_is_kept_in_the_scene_alone(by_colmap):
    assert [path.name for path in by_colmap.folder.parent.iterdir()] == ["book"]
    assert {path.name for path in (by_colmap.folder / "colmap").iterdir()} >= {
        "database.db",
        "sparse",
    }


def test_a_reconstruction_serves_again(book, by_colmap, tmp_path):
    again = build(book, tmp_path / "book", model=by_colmap.folder / "colmap" / "sparse")
    assert again.tally == by_colmap.tally
    one, two = files(by_colmap.folder), files(tmp_path / "book")
    assert two.pop("dataset.json") != one["dataset.json"]  # says what it was made from
    assert all(one[name] == two[name] for name in two)


def test_a_build_that_was_stopped_goes_on(book, tmp_path, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(pycolmap, "incremental_mapping", stop)
        build(book, tmp_path / "book")
    assert not (tmp_path / "book").exists()
    with pycolmap.Database.open(tmp_path / ".book.colmap" / "database.db") as database:
        marked = database.read_keypoints(1)
        marked[:, 0] += 0.01
        database.update_keypoints(1, marked)
        matches = database.num_matches()
    build(book, tmp_path / "book")
    with pycolmap.Database.open(tmp_path / "book" / "colmap" / "database.db") as database:
        np.testing.assert_array_equal(database.read_keypoints(1), marked)
        assert database.num_matches() == matches > 0


@pytest.mark.parametrize("at", ["tile", "text", "list"])
def test_a_build_that_fails_leaves_nothing_like_a_scene(book, known, tmp_path, monkeypatch, at):
    from protocols.phototour import writer

    whole = writer.atomic.write_text

    def full(file, text):
        if at == "text" or (at == "list" and file.name.startswith("m50")):
            raise OSError(28, "No space left on device")
        whole(file, text)

    monkeypatch.setattr(writer.atomic, "write_text", full)
    if at == "tile":
        monkeypatch.setattr(writer, "_bitmap", lambda _: memoryview(b"")[1 / 0])
    with pytest.raises((OSError, ZeroDivisionError)):
        build(book, tmp_path / "book", model=known)
    assert {path.name for path in tmp_path.iterdir()} == {"project"}


def test_two_builds_at_once_do_not_make_one_folder(book, known, tmp_path):
    from filelock import FileLock

    with FileLock(tmp_path / ".book.lock"), pytest.raises(BlockingIOError, match="another process"):
        build(book, tmp_path / "book", model=known)


def without_images(book, model, folder):
    (folder / "empty").mkdir()
    return {"images": folder / "empty"}


def with_a_file_for_a_folder(book, model, folder):
    return {"images": book / "a.png"}


def with_one_image(book, model, folder):
    (folder / "one").mkdir()
    shutil.copy(book / "a.png", folder / "one")
    return {"images": folder / "one"}


def with_an_unreadable_image(book, model, folder):
    (folder / "images").mkdir()
    shutil.copy(book / "a.png", folder / "images")
    (folder / "images" / "b.png").write_bytes((book / "a.png").read_bytes()[:999])
    return {"images": folder / "images"}


def with_images_of_nothing(book, model, folder):
    (folder / "flat").mkdir()
    for k in range(3):
        cv2.imwrite(str(folder / "flat" / f"{k}.png"), np.full((100, 100), 50 * k, np.uint8))
    return {"images": folder / "flat"}


def with_a_model_of_other_images(book, model, folder):
    (folder / "other").mkdir()
    shutil.copy(book / "a.png", folder / "other" / "e.png")
    return {"images": folder / "other", "model": model}


def with_images_of_another_size(book, model, folder):
    shutil.copytree(book, folder / "images")
    cv2.imwrite(str(folder / "images" / "d.png"), np.zeros((HEIGHT * 2, WIDTH * 2), np.uint8))
    return {"images": folder / "images", "model": model}


def swapped(book, folder):
    """The photographs, two of which have each other's names."""
    shutil.copytree(book, folder / "images")
    shutil.copy(book / "b.png", folder / "images" / "a.png")
    shutil.copy(book / "a.png", folder / "images" / "b.png")
    return folder / "images"


def with_images_that_changed_names(book, model, folder):
    return {"images": swapped(book, folder), "model": model}


def with_keypoints_and_images_that_changed_names(book, model, folder):
    database = write_database(folder / "database.db", columns=6)
    return {"images": swapped(book, folder), "model": model, "database": database}


def with_an_image_turned(book, model, folder):
    shutil.copytree(book, folder / "images")
    image = cv2.imread(str(book / "a.png"))
    cv2.imwrite(str(folder / "images" / "a.png"), image[::-1, ::-1])
    return {"images": folder / "images", "model": model}


def with_images_of_something_else(book, model, folder):
    shutil.copytree(book, folder / "images")
    for k, view in enumerate(VIEWS):
        size = (HEIGHT, WIDTH)
        noise = cv2.GaussianBlur(np.random.default_rng(k).normal(128, 300, size), (0, 0), 3)
        cv2.imwrite(str(folder / "images" / view.name), np.clip(noise, 0, 255).astype(np.uint8))
    return {"images": folder / "images", "model": model}


def with_no_model(book, model, folder):
    return {"model": folder}


def with_a_model_cut_off(book, model, folder):
    sparse = pycolmap.Reconstruction(model)
    (folder / "binary").mkdir()
    sparse.write_binary(folder / "binary")
    file = folder / "binary" / "points3D.bin"
    file.write_bytes(file.read_bytes()[:100])
    return {"model": folder / "binary"}


def with_a_model_without_points(book, model, folder):
    shutil.copytree(model, folder / "bare")
    (folder / "bare" / "points3D.txt").write_text("")
    lines = (model / "images.txt").read_text().splitlines()[::2]
    (folder / "bare" / "images.txt").write_text("\n\n".join(lines) + "\n\n")
    return {"model": folder / "bare"}


def with_no_database(book, model, folder):
    return {"model": model, "database": folder / "database.db"}


def with_text_for_a_database(book, model, folder):
    (folder / "database.db").write_text("no database at all")
    return {"model": model, "database": folder / "database.db"}


def with_a_database_of_other_images(book, model, folder):
    with pycolmap.Database.open(folder / "other.db"):
        pass
    return {"model": model, "database": folder / "other.db"}


def with_a_database_of_other_keypoints(book, model, folder):
    write_database(folder / "moved.db", columns=6)
    with pycolmap.Database.open(folder / "moved.db") as database:
        moved = database.read_keypoints(1)
        moved[:, 0] += 3
        database.update_keypoints(1, moved)
    return {"model": model, "database": folder / "moved.db"}


def with_detected_frames_that_nobody_knows(book, model, folder):
    return {"model": model, "frames": "detected"}


def with_unknown_frames(book, model, folder):
    return {"model": model, "frames": "upright"}


def with_too_small_a_cap(book, model, folder):
    return {"model": model, "max_patches": 2}


def with_an_official_name(book, model, folder):
    return {"out": folder / "liberty", "model": model}


def with_an_official_name_in_capitals(book, model, folder):
    return {"model": model, "name": "Liberty"}


BAD = {
    without_images: "no images in .*empty",
    with_a_file_for_a_folder: "a.png is not a folder",
    with_one_image: "has 1 images that can be read, a.png: give two or more",
    with_an_unreadable_image: r"1 images that can be read, .*b.png can't be decoded, it is cut",
    with_images_of_nothing: "can't reconstruct a model from the 3 images in .*flat: it finds",
    with_a_model_of_other_images: "4 of 4 images of .*sparse are not in .*other: a.png and others",
    with_images_of_another_size: "d.png is 640 x 480 pixels, in the model it is 320 x 240",
    with_images_that_changed_names: "2 of 4 images are not .*a.png fits when b.png takes its place",
    with_keypoints_and_images_that_changed_names: "b.png fits when a.png takes its place",
    with_an_image_turned: "1 of 4 images are not those .*: a.png is turned by 180 degrees",
    with_images_of_something_else: "4 of 4 images are not those that the model was made from",
    with_no_model: "is no sparse model.*--model FOLDER",
    with_a_model_cut_off: "points3D.bin: is cut off, or its counts are damaged",
    with_a_model_without_points: "bare has no point that two images see",
    with_no_database: "database.db is not there.*--set database=FILE",
    with_text_for_a_database: "can't be read as a database",
    with_a_database_of_other_images: "other.db has no keypoints of a.png",
    with_a_database_of_other_keypoints: "moved.db and .*sparse have different keypoints of a.png",
    with_detected_frames_that_nobody_knows: "no scale and no direction.*--set database=FILE",
    with_unknown_frames: "'upright': give --set frames=detected or frames=projected",
    with_too_small_a_cap: "max_patches is 2, too few.*--set max-patches",
    with_an_official_name: "'liberty' can't name a scene",
    with_an_official_name_in_capitals: "'Liberty' can't name a scene",
}


@pytest.mark.parametrize("case", BAD, ids=lambda case: case.__name__)
def test_bad_input_is_named_and_leaves_nothing(book, model, tmp_path, case):
    given = {"images": book, "out": tmp_path / "scene", **case(book, model, tmp_path)}
    with pytest.raises(ValueError, match=BAD[case]):
        build(given.pop("images"), given.pop("out"), **given)
    assert not any(path.name in ("scene", "liberty") for path in tmp_path.iterdir())
    assert not list(tmp_path.rglob("patches*.bmp"))


def test_a_folder_with_something_in_it_is_left_alone(book, model, tmp_path):
    (tmp_path / "scene").mkdir()
    (tmp_path / "scene" / "mine.txt").write_text("mine")
    with pytest.raises(FileExistsError, match=r"scene is there already.*remove it"):
        build(book, tmp_path / "scene", model=model)
    assert files(tmp_path) == {"scene/mine.txt": b"mine"}


def test_images_that_the_model_lacks_are_named(book, model, tmp_path, caplog):
    shutil.copytree(book, tmp_path / "images")
    shutil.copy(book / "a.png", tmp_path / "images" / "late.png")
    with caplog.at_level(logging.WARNING):
        report = build(tmp_path / "images", tmp_path / "scene", model=model)
    assert (report.images, report.registered) == (5, 4)
    assert "late.png" in caplog.text


def test_the_command_builds_with_options_given_as_text(book, known, tmp_path, run):
    status, out, _ = run(
        "data", "build", "phototour", "--images", book, "--out", tmp_path / "book", "--model",
        known, "--set", "max-patches=80", "--set", "seed=1", "--set", "name=mine",
    )  # fmt: skip
    assert status == 0
    assert "phototour-mine in" in out
    assert registry.load("builders", "phototour") is build
