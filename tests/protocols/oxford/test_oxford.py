"""The Oxford protocol: files of regions, names of sets, scores of pairs, the picture."""

import hashlib
from dataclasses import replace

import cv2
import numpy as np
import pytest
from image_sequences import VIEWS, write_sequence
from near_ties import all_pairs

from harness import Descriptions
from harness.contracts import check_protocol
from harness.distances import L2
from harness.statistics import interval_of_mean
from harness.types import Dataset
from protocols.imaging.affine import AffineFrames
from protocols.imaging.sequences import find
from protocols.oxford import picture, reader, regions
from protocols.oxford import protocol as evaluation
from protocols.oxford.ellipses import exact_overlap
from protocols.oxford.protocol import oxford, pair_scores
from protocols.oxford.reader import Oxford, Plane, open_set
from protocols.oxford.truth import Truth, correspondences

SIZE, N = 90, 24
SHIFT = np.array([[1.0, 0, 3], [0, 1, -2], [0, 0, 1]])


def write_set(root, *sequences, seed=0):
    """Sequences of a texture, moved by SHIFT; a folder of regions that move with it."""
    for i, name in enumerate(sequences):
        rng = np.random.default_rng((seed, i))
        (root / "images" / name).mkdir(parents=True)
        image = cv2.GaussianBlur(rng.standard_normal((SIZE, SIZE)), (0, 0), 2)
        image = np.clip(128 + 40 * image / image.std(), 0, 255)
        matrix = rng.normal(0, 1.5, (N, 2, 2)) + 4 * np.eye(2)
        x, y = rng.uniform(15, SIZE - 15, (2, N))
        arrays = {}
        for k in range(1, 7):
            moved = cv2.warpAffine(image, SHIFT[:2] if k > 1 else np.eye(3)[:2], (SIZE, SIZE))
            cv2.imwrite(str(root / "images" / name / f"img{k}.png"), moved.astype(np.uint8))
            if k > 1:
                np.savetxt(root / "images" / name / f"H1to{k}p", SHIFT)
            off = np.array([3.0, -2.0]) * (k > 1)
            place = np.stack([x + off[0], y + off[1]], axis=1) + rng.normal(0, 0.3, (N, 2))
            columns = matrix[:, [0, 1, 0, 1], [0, 0, 1, 1]]
            arrays[f"img{k}"] = np.concatenate([place + 1, columns], axis=1).astype(np.float32)
        (root / "found").mkdir(exist_ok=True)
        np.savez(root / "found" / f"{name}.npz", **arrays)
    return root


@pytest.fixture
def small(tmp_path):
    return write_set(tmp_path / "small", "one", "two")


def opened(root, **options):
    given = {
        "frames": root / "found", "features": None, "magnification": 3.0,
        "measure": exact_overlap, "allow_partial": False,
    }  # fmt: skip
    return open_set(root / "images", **(given | options))


def edit(root, name, change):
    """Change the arrays of a sequence's regions."""
    file = root / "found" / f"{name}.npz"
    arrays = dict(np.load(file))
    change(arrays)
    np.savez(file, **arrays)


# ---- regions of files


def test_regions_are_read_with_the_first_pixel_at_zero(small):
    raw = np.load(small / "found/one.npz")["img3"].astype(float)
    found = regions.read(small / "found", "one", 3, small / "images/one/img3.png")
    assert np.array_equal(found.x, raw[:, 0] - 1) and np.array_equal(found.y, raw[:, 1] - 1)
    assert np.array_equal(found.matrix[:, 1, 0], raw[:, 3])  # a21: how far down x points


def test_both_forms_of_files_give_the_same_outlines(small):
    raw = regions.read(small / "found", "two", 1, small / "images/two/img1.png")
    shape = raw.matrix @ raw.matrix.swapaxes(1, 2)
    form = np.linalg.inv(shape)
    rows = np.stack([raw.x, raw.y, form[:, 0, 0], form[:, 0, 1], form[:, 1, 1]], axis=1)
    text = [f"1.0\n{N}", *(" ".join(map(repr, row)) + " 0.5" for row in rows.tolist())]
    folder = small / "text" / "two"
    folder.mkdir(parents=True)
    (folder / "img1.haraff").write_text("\n".join(text) + "\n")
    found = regions.read(small / "text", "two", 1, small / "images/two/img1.png")
    # The direction that it gets is rounded to a millionth of a pixel.
    assert found.matrix @ found.matrix.swapaxes(1, 2) == pytest.approx(shape, abs=1e-4)
    assert np.array_equal(found.x, raw.x)
    assert np.ptp(np.arctan2(found.matrix[:, 1, 0], found.matrix[:, 0, 0])) > 1  # directed


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("1.0\n2\n5 5 .1 0 .1\n", "2 regions are declared, there are 1"),
        ("1.0\n1\n5 5 .1 x .1\n", "can't be read"),
        ("1.0\n1\n5 5 .1 .2 .1\n", "region 1 of 1 is no ellipse"),
        ("1.0\n2\n5 5 .1 0 .1\n5 5 -.1 0 -.1\n", "region 2 of 2 is no ellipse"),
        ("", "can't be read"),
    ],
)
def test_text_that_holds_no_regions_is_refused(small, text, complaint):
    (small / "text" / "one").mkdir(parents=True)
    (small / "text/one/img1.txt").write_text(text)
    with pytest.raises(ValueError, match=complaint):
        regions.read(small / "text", "one", 1, small / "images/one/img1.png")


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        (
            [30, 30, 1e8, 0, 0, 1e8],
            "with radii 1e\\+08 and 1e\\+08 can't have been found in an image",
        ),
        ([30, 30, 1e200, 0, 0, 1], "can't have been found|is no ellipse"),
        ([30, 30, 50, 0, 0, 0.1], "with radii 50 and 0.1 can't"),
        ([900, 30, 5, 0, 0, 5], r"region 0 of 1, counted from 0, at \(899, 29\)"),
    ],
)
def test_regions_that_no_detector_finds_in_the_image_are_refused(small, row, complaint):
    edit(small, "one", lambda arrays: arrays.update(img1=np.array([row], float)))
    with pytest.raises(ValueError, match=rf"one\.npz: img1.*({complaint})"):
        regions.read(small / "found", "one", 1, small / "images/one/img1.png")


def test_a_text_of_regions_cut_in_its_last_number_is_refused(small):
    (small / "text" / "one").mkdir(parents=True)
    (small / "text/one/img1.txt").write_text("1.0\n1\n30 30 .01 0 .01")
    with pytest.raises(ValueError, match=r"img1\.txt: it doesn't end with a line end"):
        regions.read(small / "text", "one", 1, small / "images/one/img1.png")


def test_an_empty_file_of_arrays_is_named(small):
    (small / "found/one.npz").write_bytes(b"")
    with pytest.raises(ValueError, match=r"one\.npz has no array img1"):
        regions.read(small / "found", "one", 1, small / "images/one/img1.png")


def test_missing_and_malformed_regions_are_named(small):
    image = small / "images/one/img1.png"
    (small / "text" / "one").mkdir(parents=True)
    with pytest.raises(ValueError, match=r"0 files of regions called img1\.\*"):
        regions.read(small / "text", "one", 1, image)
    edit(small, "one", lambda arrays: arrays.pop("img4"))
    with pytest.raises(ValueError, match=r"one\.npz has no array img4"):
        opened(small)
    edit(small, "two", lambda arrays: arrays.update(img2=np.ones((3, 5))))
    with pytest.raises(ValueError, match=r"two\.npz: img2 has the shape \(3, 5\)"):
        regions.read(small / "found", "two", 2, image)
    (small / "found/one.npz").write_bytes((small / "found/one.npz").read_bytes()[:500])
    with pytest.raises(ValueError, match=r"one\.npz has no array img1"):
        regions.read(small / "found", "one", 1, image)
    with pytest.raises(ValueError, match="has no regions of one, two"):
        opened(small, frames=small / "images/one")


# ---- the data set


def test_the_order_of_a_file_does_not_matter(small):
    before = opened(small, features=20).dataset
    rng = np.random.default_rng(0)
    edit(small, "one", lambda arrays: [rng.shuffle(arrays[name]) for name in arrays])
    after = opened(small, features=20).dataset
    assert after.sha256 == before.sha256
    assert np.array_equal(after.point, before.point)


def test_an_image_has_at_most_as_many_regions_as_asked():
    rng = np.random.default_rng(0)
    x, y = rng.uniform(0, 9, (2, 30))
    ranked = AffineFrames(x, y, rng.normal(size=(30, 2, 2)), rng.permutation(30).astype(float))
    strongest = regions.chosen(ranked, 10)
    assert set(strongest.score) == set(range(20, 30))
    assert len(regions.chosen(ranked, None)) == len(regions.chosen(ranked, 99)) == 30
    alike = replace(ranked, score=np.zeros(30))
    assert set(regions.chosen(alike, 10).x) == set(regions.chosen(alike, None).x[:10])
    assert list(strongest.x) != sorted(strongest.x)
    assert list(strongest.score) != sorted(strongest.score, reverse=True)


def test_a_block_holds_the_patches_of_an_image(small):
    dataset = opened(small).dataset
    assert [block.name for block in dataset.blocks[:2]] == ["one/img1", "one/img2"]
    for block in dataset.blocks[::5]:
        patches = block.read()
        assert patches.shape == (block.size, 65, 65)
        assert block.sha256 == hashlib.sha256(patches.tobytes()).hexdigest()
    assert np.array_equal(np.bincount(dataset.image), [block.size for block in dataset.blocks])


def test_what_is_known_of_an_image_is_kept(small, monkeypatch):
    """Patches are not cut out, and regions not looked for, only to open a set again."""
    detect = {"frames": None, "features": 40}
    before = [opened(small).dataset.sha256, opened(small, **detect).dataset.sha256]

    def refuse(*arguments, **options):
        raise AssertionError("again")

    refuse.__module__ = regions.harris_affine.__module__
    monkeypatch.setattr(regions, "harris_affine", refuse)
    monkeypatch.setattr(reader, "read_grey", refuse)
    after = [opened(small).dataset.sha256, opened(small, **detect).dataset.sha256]
    assert after == before


def test_regions_that_are_assigned_are_one_point(small):
    found = opened(small)
    point = found.dataset.point
    for plane in found.planes:
        first = point[plane.rows[0]]
        assert len(set(first)) == len(first)
        for truth, rows in zip(plane.truths, plane.rows[1:], strict=True):
            there = point[rows]
            assert len(set(there)) == len(there)
            assert len(set(first) & set(there)) == len(truth.assigned) > N // 2


def test_images_with_nothing_in_common_are_named(small):
    def far(arrays):
        arrays["img5"] = np.array([[5, 5, 1, 0, 0, 1]], np.float32)

    edit(small, "two", far)
    with pytest.raises(ValueError, match=r"img1\.png corresponds to one of img5\.png"):
        opened(small)


def test_a_detector_is_asked_for_a_number_of_regions(small):
    with pytest.raises(ValueError, match="give a number"):
        opened(small, frames=None)


@pytest.mark.parametrize("features", [0, -5])
def test_fewer_than_one_region_is_refused(small, features):
    with pytest.raises(ValueError, match=f"features={features}: an image needs at least one"):
        opened(small, features=features)


@pytest.mark.parametrize("magnification", [0.0, -3.0, np.inf, np.nan])
def test_patches_have_a_size(small, magnification):
    with pytest.raises(ValueError, match="a number above 0 is wanted"):
        opened(small, magnification=magnification)


# ---- names


@pytest.fixture
def published(small, monkeypatch):
    """As if the sequences one, two and three were the published ones."""
    write_set(small, "three")
    known = {
        one.folder: {
            "outline": hashlib.sha256(reader._outline(one).encode()).hexdigest()[:16],
            "pixels": [pixels[:16] for pixels in one.pixels],
        }
        for one in find(small / "images")[0]
    }
    monkeypatch.setattr(reader, "PUBLISHED", known)
    for module in (reader, evaluation):
        monkeypatch.setattr(module, "SIX", ("two", "one"))
        monkeypatch.setattr(module, "EIGHT", ("two", "one", "three"))
    return small


def test_only_the_published_sequences_are_called_oxford(published, caplog):
    found = opened(published).dataset
    assert (found.name, found.split, found.complete) == ("oxford", "all", True)
    assert found.sources == {"oxford/one", "oxford/two", "oxford/three"}
    assert opened(published, frames=None, features=40).dataset.name == "oxford"
    np.savetxt(published / "images/two/H1to4p", SHIFT + 1e-6)
    assert opened(published).dataset.name == "oxford-images"
    assert "two has images of other sizes, or other homographies" in caplog.text


def test_one_other_pixel_is_enough_for_another_name(published, caplog):
    file = published / "images/two/img3.png"
    image = cv2.imread(str(file))
    image[40, 40] += 3
    cv2.imwrite(str(file), image)
    assert opened(published).dataset.name == "oxford-images"
    assert f"{file} has other pixels" in caplog.text


@pytest.mark.data
def test_the_published_sequences_are_known_by_their_pixels(shared):
    root = shared / "oxford_affine"
    assert [reader.differs(one) for one in find(root)[0]] == [""] * 8


def test_inverted_homographies_are_refused_before_a_descriptor_is_scored(small):
    for k in range(2, 7):
        np.savetxt(small / f"images/two/H1to{k}p", np.linalg.inv(SHIFT))
    with pytest.raises(ValueError, match=r"two: .*fit (better )?when read inverted"):
        opened(small)
    with pytest.raises(ValueError, match=r"two: .*fit (better )?when read inverted"):
        picture.matches("two", "1", "2", data=small / "images", frames=small / "found")


def test_a_folder_of_many_data_sets_is_searched(small):
    (small / "many").mkdir()
    (small / "images").rename(small / "many" / "oxford")
    (small / "images").symlink_to(small / "many")
    assert opened(small).dataset.sources == {"oxford-oxford/one", "oxford-oxford/two"}


def test_regions_of_a_folder_and_other_patches_are_options(published):
    data, frames = published / "images", published / "found"
    protocol = oxford(data=data, frames=frames, features=20, magnification=5)
    assert (protocol.name, protocol.dataset.name, protocol.dataset.split) == (
        "oxford", "oxford", "20",
    )  # fmt: skip
    assert protocol.options == {"frames": "found", "magnification": "5"}
    assert oxford(data=data, features=40).options == {}


def test_sequences_without_regions_are_left_out(published, caplog):
    (published / "found/three.npz").unlink()
    found = opened(published).dataset
    assert (found.name, found.complete) == ("oxford-six", True)
    assert "skipped: three" in caplog.text
    (published / "found/two.npz").unlink()
    with pytest.raises(ValueError, match=r"two is missing.*--allow-partial"):
        opened(published)
    partial = opened(published, allow_partial=True).dataset
    assert (partial.name, partial.split, partial.complete) == ("oxford", "all@partial", False)


def test_a_set_may_be_named_like_no_other(small):
    (small / "images").rename(small / "oxford-sample")
    found = open_set(
        small / "oxford-sample", frames=small / "found", features=None, magnification=3.0,
        measure=exact_overlap, allow_partial=False,
    )  # fmt: skip
    assert found.dataset.name == "oxford-oxford-sample"


# ---- sequences of other forms


def test_a_sequence_has_two_images_or_more(tmp_path):
    write_sequence(tmp_path / "images/two", VIEWS[:1])
    write_sequence(tmp_path / "images/three", VIEWS, image="img{}.tif", homography="H1to{}p")
    protocol = oxford(data=tmp_path / "images", features=60)
    assert protocol.dataset.name == "oxford-images"
    assert [block.name for block in protocol.dataset.blocks] == [
        "three/img1", "three/img2", "three/img3", "two/img1", "two/img2",
    ]  # fmt: skip
    vectors = np.random.default_rng(0).standard_normal((len(protocol.dataset), 8), np.float32)
    scenes = protocol.score(Descriptions(protocol.dataset, vectors, L2)).scenes
    assert "1-2/ap" in scenes["two"] and "1-3/ap" not in scenes["two"]
    assert {"1-2/ap", "1-3/ap"} <= scenes["three"].keys()
    assert not [law for law in check_protocol(protocol) if not law.passed]


def test_a_set_of_lossy_images_says_so_in_its_name(tmp_path):
    write_sequence(tmp_path / "Photos/one", VIEWS, image="img{}.jpg", homography="H1to{}p")
    assert oxford(data=tmp_path / "Photos", features=30).dataset.name == "oxford-photos-lossy"


def test_a_published_sequence_with_fewer_images_is_not_the_published_one(published, caplog):
    for name in ("img6.png", "H1to6p"):
        (published / "images/two" / name).unlink()
    assert opened(published).dataset.name == "oxford-images"
    assert "two has 5 images" in caplog.text


# ---- scores


def vlb(truth, a, b):
    """Slow twin: VLB's strategy "nn", its step sum and its trapezoid."""
    d = all_pairs(L2, a, b)
    order = np.argsort(d, axis=None)
    known = set(zip(truth.a.tolist(), truth.b.tolist(), strict=True))
    rows, columns, labels = set(), set(), []
    for row, column in zip(*(i.tolist() for i in np.unravel_index(order, d.shape)), strict=True):
        if row not in rows and column not in columns:
            rows.add(row)
            columns.add(column)
            labels.append((row, column) in known)
    found, total = np.cumsum(labels), len(truth.assigned)
    precision, recall = found / np.arange(1, len(found) + 1), found / total
    auc = np.trapezoid(np.concatenate([[1], precision]), np.concatenate([[0], recall]))
    return {"ap": (precision * labels).sum() / total, "auc": auc, "correct": float(found[-1])}


def informed(truth, seed=0, noise=0.6):
    """Vectors that are alike where regions correspond."""
    rng = np.random.default_rng(seed)
    a, b = (rng.normal(size=(n, 6)) for n in (truth.rows, truth.columns))
    b[truth.b] = a[truth.a]
    b += rng.normal(0, noise, b.shape)
    return a.astype(np.float32), b.astype(np.float32)


@pytest.fixture
def truth():
    rng = np.random.default_rng(0)
    x, y = rng.uniform(0, 100, (2, 70))
    a = AffineFrames(x, y, rng.normal(0, 1, (70, 2, 2)) + 3 * np.eye(2), np.zeros(70))
    b = AffineFrames(x + 1, y, a.matrix, a.score).take(rng.permutation(70)[:60])
    return correspondences(a, b, np.eye(3), exact_overlap)


def test_scores_are_those_of_vlb(truth):
    for seed in range(5):
        a, b = informed(truth, seed)
        found, wanted = pair_scores(L2, a, b, truth, "greedy"), vlb(truth, a, b)
        assert found["correspondences"] == len(truth.assigned) < len(truth.a)
        for name, value in wanted.items():
            assert found[name] == pytest.approx(value, abs=1e-12)
        assert 0.2 < wanted["ap"] < 0.95


def test_one_threshold_ranks_all_pairs(truth):
    a, b = informed(truth)
    d, known = all_pairs(L2, a, b), np.zeros((len(a), len(b)), bool)
    known[truth.a, truth.b] = True
    labels = known.ravel()[np.argsort(d, axis=None)]
    precision = np.cumsum(labels) / np.arange(1, labels.size + 1)
    found = pair_scores(L2, a, b, truth, "threshold")
    assert found["ap"] == pytest.approx((precision * labels).sum() / labels.sum(), abs=1e-12)
    assert found["correspondences"] == labels.sum()


@pytest.mark.parametrize("strategy", ["nearest", "mutual", "ratio"])
def test_other_strategies_score_vectors_that_tell_best(truth, strategy):
    a, b = informed(truth, noise=0)
    worse = pair_scores(L2, *informed(truth), truth, strategy)
    best = pair_scores(L2, a, b, truth, strategy)
    assert best["ap"] > 0.8 > worse["ap"] > 0.1
    assert best["correct"] <= best["correspondences"]


def test_nothing_found_scores_0(truth):
    none = replace(truth, a=np.array([0]), b=np.array([0]), assigned=np.array([0]))
    a, b = np.eye(4, dtype=np.float32)[[0, 1]], np.eye(4, dtype=np.float32)[[1, 0]]
    scores = pair_scores(L2, a, b, replace(none, rows=2, columns=2), "greedy")
    assert scores == {"ap": 0, "auc": 0, "correct": 0, "correspondences": 1}


def test_map_is_of_six_sequences_and_map8_of_eight():
    pair = Truth(np.array([0, 1]), np.array([0, 1]), np.array([0, 1]), 2, 2)
    names = sorted(reader.EIGHT)
    rows = [tuple(slice(i, i + 2) for i in range(j, j + 12, 2)) for j in range(0, 96, 12)]
    planes = tuple(Plane(name, (pair,) * 5, own) for name, own in zip(names, rows, strict=True))
    vectors = np.tile(np.eye(2, dtype=np.float32), (48, 1))
    for name, pairs in (("bark", 5), ("bikes", 1), ("wall", 2)):  # the last of five
        end = 12 * names.index(name) + 12
        vectors[end - 2 * pairs : end] = np.tile(np.eye(2)[::-1], (pairs, 1))
    dataset = Dataset("made", "all", (), np.arange(96), np.arange(96))
    described = Descriptions(dataset, vectors, L2)
    scores = evaluation._score(Oxford(dataset, planes, published=True), described, "greedy")
    assert scores.values["graf/map"] == 1 and scores.values["bark/map"] == 0
    assert scores.values["map"] == pytest.approx(0.9)
    assert scores.values["map8"] == pytest.approx(0.8)
    wanted = interval_of_mean([1, 1, 1, 1, 1, 0.8, 0.6, 0])
    assert scores.intervals["map8"] == pytest.approx(wanted)
    assert set(scores.intervals) == {"map", "map8"}  # of a sequence's pairs there is none
    assert scores.scenes["wall"]["1-2/ap"] == 1 and scores.scenes["bark"]["1-2/correct"] == 0
    own = evaluation._score(Oxford(dataset, planes, published=False), described, "greedy")
    assert own.values["map"] == pytest.approx(0.8) and "map8" not in own.values
    few = evaluation._score(Oxford(dataset, planes[:3], published=True), described, "greedy")
    assert "map8" not in few.values and few.values["map"] == pytest.approx(0.6)


@pytest.mark.parametrize("options", [{"matching": "mutual"}, {"overlap": "exact"}])
def test_another_definition_is_an_option_and_keeps_the_laws(small, options):
    protocol = oxford(data=small / "images", frames=small / "found", features=None, **options)
    assert protocol.options == {"frames": "found", **options}
    assert not [law for law in check_protocol(protocol) if not law.passed]


@pytest.mark.parametrize("strategy", ["nearest", "ratio", "threshold"])
def test_where_a_region_may_have_several_partners_only_the_oracle_is_not_best(small, strategy):
    """It knows one partner of each."""
    protocol = oxford(
        data=small / "images", frames=small / "found", features=None, matching=strategy
    )
    assert protocol.options["matching"] == strategy
    broken = [law.name for law in check_protocol(protocol) if not law.passed]
    assert broken in ([], ["an oracle scores best"])


# ---- the picture


def test_a_picture_shows_both_images_and_says_what_was_matched(small):
    drawn = picture.matches(
        "two", "1", "3", data=small / "images", frames=small / "found", features=None
    )
    assert [block.name for block in drawn.dataset.blocks] == ["two/img1", "two/img3"]
    truth = opened(small).planes[1].truths[1]
    vectors = np.concatenate(informed(truth, noise=1.0))
    image = cv2.imdecode(
        np.frombuffer(drawn.draw({"m": Descriptions(drawn.dataset, vectors, L2)}), np.uint8), 1
    )
    assert image.shape[1] == picture.WIDTH
    for colour in (picture.RIGHT, picture.WRONG):
        assert (image == colour[::-1]).all(axis=2).sum() > 500


@pytest.mark.parametrize(
    ("of", "complaint"),
    [
        (("thre", "1", "2"), "no sequence named 'thre'"),
        (("one", "0", "2"), "image '0' is none of 1 to 6"),
        (("one", "1", "b"), "image 'b' is none"),
        (("images", "1", "2"), "images holds several sequences: give it as --data"),
    ],
)
def test_a_picture_of_what_is_not_there_is_refused(small, of, complaint):
    with pytest.raises((LookupError, ValueError), match=complaint):
        data = small if of[0] == "images" else small / "images"
        picture.matches(*of, data=data, frames=small / "found")


def test_the_command_writes_a_picture(small, tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    options = (
        "--model",
        "pixels",
        "--data",
        small / "images",
        "--set",
        f"frames={small / 'found'}",
    )
    status, out, _ = run("show", "oxford", "one", 1, 2, *options)
    assert status == 0 and out == "oxford-one-1-2-pixels.png\n"
    assert cv2.imread(str(tmp_path / out.strip())).shape[1] == picture.WIDTH
    status, out, _ = run("show", "oxford", "one", 1, 4, *options, "--out", "a/b.png")
    assert status == 0 and (tmp_path / "a/b.png").is_file()


def test_the_command_says_what_a_picture_is_of(small, run):
    options = ("--model", "pixels", "--data", small / "images")
    status, _, err = run("show", "oxford", "one", 1, *options)
    assert status == 2 and "needs SEQUENCE FIRST SECOND, not 'one 1'" in err
    status, _, err = run("show", "oxfort", "one", 1, 2, *options)
    assert status == 2 and "did you mean 'oxford'?" in err
    two = ("--model", "pixels,random", "--data", small / "images")
    status, _, err = run("show", "oxford", "one", 1, 2, *two)
    assert status == 2 and "a picture is of one model, not of pixels, random" in err
