"""The protocol of image sequences: scores, their laws, keypoints, names, records."""

import json

import cv2
import numpy as np
import pytest
from image_sequences import HEIGHT, STILL, VIEWS, WIDTH, texture, turned, write_sequence
from near_ties import all_pairs

import harness
from harness import Descriptions, parallel, plugins
from harness.contracts import check_protocol
from harness.distances import HAMMING, L2
from harness.errors import InputError
from harness.evaluation import evaluate
from harness.records import leaderboard
from harness.statistics import interval_of_mean
from protocols.hpatches_sequences import images, names
from protocols.hpatches_sequences import protocol as evaluation
from protocols.hpatches_sequences.figures import figures
from protocols.hpatches_sequences.homography import (
    Ransac,
    corner_error,
    estimate,
    transfer_errors,
    warp,
)
from protocols.hpatches_sequences.matching import mutual
from protocols.hpatches_sequences.protocol import (
    COUNT,
    ESTIMATED,
    MATCHED,
    PARTS,
    SCORES,
    hpatches_sequences,
    pair_scores,
)
from protocols.hpatches_sequences.reader import open_set

HOW = Ransac(3.0, 2)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Three sequences: one of light, two of views, one of them with fewer images."""
    root = tmp_path_factory.mktemp("data") / "small"
    write_sequence(root / "i_a", STILL, noise=12, seed=1)
    write_sequence(root / "v_b", (*VIEWS, turned(70, 0.8, 0, 0)), seed=2)
    write_sequence(root / "v_c", VIEWS[:1], seed=3)
    return root


@pytest.fixture(scope="module")
def protocol(small):
    return hpatches_sequences(data=small, keypoints=90)


@pytest.fixture(scope="module")
def opened(small):
    return open_set(small, None, keypoints=90, size=None)


def rootsift(protocol):
    (record,) = evaluate(plugins.model("rootsift"), [protocol])
    return record


def normal(n, seed=0, dim=16):
    return np.random.default_rng(seed).standard_normal((n, dim), dtype=np.float32)


# ---- slow twins


def slow_matches(distance, a, b):
    """Mutual nearest neighbours one by one; of equal distances, the least (j - i) mod n."""
    d, n = all_pairs(distance, a, b), max(len(a), len(b))

    def first(candidates):
        return min(candidates, key=lambda c: (c[0], c[1]))[2]

    there = [first([(d[i, j], (j - i) % n, j) for j in range(len(b))]) for i in range(len(a))]
    back = [first([(d[i, j], (j - i) % n, i) for i in range(len(a))]) for j in range(len(b))]
    return [(i, j) for i, j in enumerate(there) if back[j] == i]


def slow_scores(a, b, pair, how):
    """Point by point, with OpenCV's maps; the areas by counting under the curve on a fine grid."""
    matches = slow_matches(L2, a, b)
    off = []
    for i, j in matches:
        x, y, w = pair.homography @ [*pair.places[0][i], 1]
        off.append(
            ((x / w - pair.places[1][j][0]) ** 2 + (y / w - pair.places[1][j][1]) ** 2) ** 0.5
        )
    scores = {f"mma-{t}px": sum(e <= t for e in off) / len(off) for t in range(1, 11)}
    scores |= {"matches": len(off), "correct-3px": sum(e <= 3 for e in off)}
    height, width = pair.shape
    ends = np.array([[(0, 0), (width - 1, 0), (0, height - 1), (width - 1, height - 1)]], float)
    wanted = cv2.perspectiveTransform(ends, pair.homography)[0]
    errors = []
    for seed in range(how.seeds):
        i, j = np.array(matches).T
        h = estimate(pair.places[0][i], pair.places[1][j], how, seed)
        found = cv2.perspectiveTransform(ends, h)[0]
        errors.append(sum(np.hypot(*(p - q)) for p, q in zip(found, wanted, strict=True)) / 4)
    for t in (1, 3, 5):
        scores[f"homography-{t}px"] = sum(e <= t for e in errors) / len(errors)
        grid = (np.arange(20000) + 0.5) / 20000 * t
        scores[f"auc-{t}px"] = float(np.mean([np.mean(np.array(errors) <= e) for e in grid]))
    return scores


def noisy(opened, seed=0, noise=0.8):
    """Vectors of which about a half find their partners."""
    point = opened.dataset.point
    of_points = normal(point.max() + 1, seed)
    return of_points[point] + noise * normal(len(point), seed + 1)


def test_scores_of_a_pair_are_those_of_the_slow_twin(opened):
    for i, pair in enumerate(opened.pairs):
        vectors = noisy(opened, i)
        a, b = (vectors[rows] for rows in pair.rows)
        found, wanted = pair_scores(L2, a, b, pair, HOW), slow_scores(a, b, pair, HOW)
        for name in SCORES:
            assert found[name] == pytest.approx(wanted[name], abs=1e-4 if "auc" in name else 1e-12)
        assert (found["matches"], found[COUNT]) == (wanted["matches"], wanted[COUNT])
        assert 0.1 < wanted["mma-3px"] < 1 and wanted["homography-5px"] > 0


@pytest.mark.parametrize("distance", [L2, HAMMING])
@pytest.mark.parametrize(("rows", "columns"), [(30, 30), (20, 31), (31, 20), (1, 7)])
def test_matches_are_those_of_the_slow_twin_where_many_distances_are_equal(distance, rows, columns):
    rng = np.random.default_rng(rows)
    dtype = np.uint8 if distance is HAMMING else np.float32
    a, b = (rng.integers(0, 3, (n, 2)).astype(dtype) for n in (rows, columns))
    assert list(zip(*mutual(distance, a, b), strict=True)) == slow_matches(distance, a, b)


def published_auc(errors, t):
    """The papers' area: below lines that join the points (error, share), by trapezoids."""
    errors = np.sort(errors)
    share = np.arange(1, len(errors) + 1) / len(errors)
    below = errors < t
    last = share[below][-1] if below.any() else 0.0
    x, y = np.array([0, *errors[below], t]), np.array([0, *share[below], last])
    return float(np.trapezoid(y, x)) / t


def test_areas_differ_from_those_of_papers_by_half_a_pair_at_most():
    rng = np.random.default_rng(0)
    for n in (5, 40, 540):
        errors = rng.gamma(1.0, 2.5, n)
        for t in ESTIMATED:
            ours = np.maximum(0, 1 - errors / t).mean()
            assert 0 <= published_auc(errors, t) - ours <= 1 / (2 * n)


# ---- laws


def test_the_protocol_keeps_the_contract(protocol):
    assert not [law for law in check_protocol(protocol) if not law.passed]


def test_equal_images_score_1_with_any_vectors_that_tell_keypoints_apart(tmp_path):
    write_sequence(tmp_path / "i_same", STILL, noise=0)
    record = rootsift(hpatches_sequences(data=tmp_path, keypoints=200))
    assert {name: record.scores[name] for name in SCORES} == pytest.approx(
        dict.fromkeys(SCORES, 1.0), abs=1e-5
    )


def test_equal_images_have_keypoints_in_other_orders_so_constant_vectors_score_chance(tmp_path):
    write_sequence(tmp_path / "i_same", STILL, noise=0)
    opened = open_set(tmp_path, None, keypoints=200, size=None)
    first, second = (opened.pairs[0].places[i] for i in (0, 1))
    assert not np.array_equal(first, second)
    assert np.array_equal(np.unique(first, axis=0), np.unique(second, axis=0))
    ones = np.ones((len(first), 4), np.float32)
    assert pair_scores(L2, ones, ones, opened.pairs[0], HOW)["mma-1px"] < 0.1


def test_random_vectors_score_the_share_of_all_pairs_of_keypoints_that_are_near(protocol, opened):
    shares = []
    for pair in opened.pairs:
        mapped = warp(pair.homography, pair.places[0])
        apart = np.linalg.norm(mapped[:, None] - pair.places[1][None], axis=2)
        shares.append([np.mean(apart <= t) for t in MATCHED])
    chance = dict(zip((f"mma-{t}px" for t in MATCHED), np.mean(shares, axis=0), strict=True))
    trials = [
        protocol.score(Descriptions(protocol.dataset, normal(len(protocol.dataset), seed), L2))
        for seed in range(30)
    ]
    for name, wanted in chance.items():
        found = [scores.values[name] for scores in trials]
        assert np.mean(found) == pytest.approx(wanted, abs=4 * np.std(found) / 30**0.5 + 1e-4)
    assert max(scores.values["homography-5px"] for scores in trials) == 0


def test_the_order_in_which_keypoints_are_found_does_not_matter(small, protocol, monkeypatch):
    rng, found = np.random.default_rng(0), images.sift.sift
    monkeypatch.setenv("HARNESS_CACHE", str(small / "cache"))
    monkeypatch.setattr(
        images.sift, "sift", lambda *given: (f := found(*given)).take(rng.permutation(len(f)))
    )
    other = hpatches_sequences(data=small, keypoints=90)
    assert other.dataset.sha256 == protocol.dataset.sha256
    assert np.array_equal(other.dataset.point, protocol.dataset.point)


def test_the_order_of_pairs_and_sequences_does_not_matter(opened):
    described = Descriptions(opened.dataset, noisy(opened), L2)
    wanted = evaluation._score(opened.pairs, described, HOW)
    for order in (opened.pairs[::-1], opened.pairs[3:] + opened.pairs[:3]):
        found = evaluation._score(order, described, HOW)
        assert found.values == pytest.approx(wanted.values, abs=1e-12)
        assert found.scenes.keys() == wanted.scenes.keys()
        for name, scores in wanted.scenes.items():
            assert found.scenes[name] == pytest.approx(scores, abs=1e-12)


def test_cores_and_batches_change_nothing(small, protocol, monkeypatch):
    wanted = rootsift(protocol)
    monkeypatch.setattr(parallel, "CORES", 5)
    monkeypatch.setenv("HARNESS_CACHE", str(small / "cache of cores"))
    again = hpatches_sequences(data=small, keypoints=90)
    (found,) = evaluate(plugins.model("rootsift"), [again], batch_size=7)
    assert found == wanted


def test_a_pair_without_matches_counts_as_0(opened):
    pair = opened.pairs[0]
    none = np.empty((0, 16), np.float32)
    some = normal(pair.rows[1].stop - pair.rows[1].start)
    scores = pair_scores(L2, none, some, pair, HOW)
    assert {scores[name] for name in SCORES} == {0.0}
    assert scores["matches"] == scores[COUNT] == 0 and "corner_error_px" not in scores


def test_an_image_without_keypoints_counts_as_0(tmp_path):
    folder = write_sequence(tmp_path / "i_dark", STILL)
    cv2.imwrite(str(folder / "3.png"), np.zeros((HEIGHT, WIDTH), np.uint8))
    opened = open_set_unchecked(tmp_path)
    assert [len(pair.places[1]) for pair in opened.pairs][1] == 0
    described = Descriptions(opened.dataset, noisy(opened, noise=0), L2)
    scores = evaluation._score(opened.pairs, described, HOW)
    half = scores.scenes["i_dark"]["1-2/mma-3px"] / 2
    assert scores.values["mma-3px"] == pytest.approx(half) and half > 0.3


def open_set_unchecked(root):
    (root / "dataset.json").write_text(json.dumps({"name": "hpatches-sequences-sample"}))
    return open_set(root, None, keypoints=90, size=None)


# ---- means


def test_means_are_over_pairs_and_over_sequences_by_name(opened):
    described = Descriptions(opened.dataset, noisy(opened), L2)
    scores = evaluation._score(opened.pairs, described, HOW)
    of = {
        pair.scene + str(pair.number): pair_scores(
            L2, *(described.vectors[rows] for rows in pair.rows), pair, HOW
        )
        for pair in opened.pairs
    }
    for name in SCORES:
        each = {key: one[name] for key, one in of.items()}
        a, b = np.mean([each["i_a2"], each["i_a3"]]), [each["v_b2"], each["v_b3"], each["v_b4"]]
        c = each["v_c2"]
        assert scores.values[name] == pytest.approx(np.mean([*each.values()]))
        assert scores.values[f"sequences/{name}"] == pytest.approx(np.mean([a, np.mean(b), c]))
        assert scores.values[f"illumination/{name}"] == pytest.approx(a)
        assert scores.values[f"viewpoint/{name}"] == pytest.approx(np.mean([*b, c]))
        assert scores.scenes["v_b"][name] == pytest.approx(np.mean(b))
    counts = [one[COUNT] for one in of.values()]
    assert scores.values[COUNT] == pytest.approx(np.mean(counts))
    assert scores.values[f"viewpoint/{COUNT}"] == pytest.approx(np.mean(counts[2:]))
    assert COUNT not in scores.intervals and f"sequences/{COUNT}" not in scores.values
    means = [scores.scenes[scene]["mma-3px"] for scene in ("i_a", "v_b", "v_c")]
    assert scores.intervals["mma-3px"] == pytest.approx(interval_of_mean(means, [2, 3, 1]))
    assert scores.intervals["sequences/mma-3px"] == pytest.approx(interval_of_mean(means))
    assert "viewpoint/mma-3px" not in scores.intervals  # two sequences are too few
    assert scores.scenes["v_b"]["1-4/matches"] == of["v_b4"]["matches"]


def test_a_part_without_sequences_has_no_score(tmp_path):
    write_sequence(tmp_path / "i_a", STILL)
    record = rootsift(hpatches_sequences(data=tmp_path, keypoints=60))
    assert "illumination/mma-3px" in record.scores
    assert not [name for name in record.scores if name.startswith("viewpoint")]


def test_sequences_are_the_scenes_that_models_are_compared_over(protocol):
    (a,) = evaluate(plugins.model("rootsift"), [protocol])
    (b,) = evaluate(plugins.model("pixels"), [protocol])
    result = harness.compare(a, b)
    assert set(result.scenes) == {"i_a", "v_b", "v_c"}
    assert result.scenes["v_b"][0] == a.scenes["v_b"]["mma-3px"]


# ---- homographies


def test_the_error_of_corners_is_that_of_a_known_move():
    moved = np.array([[1.0, 0, 3], [0, 1, -4], [0, 0, 1]])
    assert corner_error(moved, np.eye(3), (100, 200)) == pytest.approx(5)
    wider = np.diag([1.01, 1, 1])  # two of four corners move by 1.99
    assert corner_error(wider, np.eye(3), (100, 200)) == pytest.approx(1.99 / 2)
    assert corner_error(-2 * moved, np.eye(3), (100, 200)) == pytest.approx(5)  # up to its scale
    assert corner_error(None, np.eye(3), (100, 200)) == np.inf
    flat = np.array([[1.0, 0, 0], [0, 1, 0], [1, 0, 0]])  # the left side goes to infinity
    assert corner_error(flat, np.eye(3), (100, 200)) == np.inf


def test_ransac_finds_a_homography_among_wrong_matches_and_repeats_itself():
    rng = np.random.default_rng(0)
    a = rng.uniform(0, 100, (200, 2))
    b = warp(VIEWS[1], a)
    b[80:] = rng.uniform(0, 100, (120, 2))
    how = Ransac(3.0, 1)
    found = [estimate(a, b, how, seed) for seed in (0, 0, 1)]
    assert corner_error(found[0], VIEWS[1], (HEIGHT, WIDTH)) < 0.5
    assert np.array_equal(found[0], found[1])
    assert np.median(transfer_errors(found[0], a[:80], b[:80])) < 0.2


@pytest.mark.parametrize("n", [0, 3, 4, 50])
def test_matches_that_determine_no_homography_give_none_or_a_wrong_one(n):
    same = np.ones((n, 2))
    assert corner_error(estimate(same, same, HOW, 0), np.eye(3), (100, 100)) > 5


# ---- keypoints


def test_all_patches_are_of_the_keypoints_that_sift_finds(small, opened):
    block = opened.dataset.blocks[0]
    assert block.name == "i_a/1"
    patches = block.read()
    assert patches.shape == (block.size, 65, 65)
    grey = cv2.imread(str(small / "i_a/1.png"), cv2.IMREAD_GRAYSCALE)
    detector = cv2.SIFT_create(enable_precise_upscale=True)
    found = sorted(detector.detect(grey), key=lambda point: -point.response)[:90]
    wanted, places = np.array([point.pt for point in found]), opened.pairs[0].places[0]
    apart = np.linalg.norm(wanted[:, None] - places, axis=2)
    assert max(apart.min(axis=0).max(), apart.min(axis=1).max()) < 1e-3  # as `portable` says


def test_a_turned_image_has_the_same_patches(tmp_path):
    """Half a turn: the direction of keypoints turns with the image."""
    half = np.array([[-1.0, 0, WIDTH - 1], [0, -1, HEIGHT - 1], [0, 0, 1]])
    write_sequence(tmp_path / "v_turned", (half,), noise=0)
    record = rootsift(hpatches_sequences(data=tmp_path, keypoints=90))
    assert record.scores["mma-1px"] > 0.95 and record.scores["homography-1px"] == 1


def test_keypoints_are_at_most_as_many_as_asked_and_the_strongest(small):
    few, many = (open_set(small, None, keypoints=n, size=None) for n in (20, 10_000))
    assert {block.size for block in few.dataset.blocks} == {20}
    assert all(block.size > 90 for block in many.dataset.blocks)
    strong, all_places = (set(map(tuple, one.pairs[0].places[0])) for one in (few, many))
    assert strong <= all_places


def test_resized_images_have_homographies_between_resized_pixels(small, opened):
    resized = open_set(small, None, keypoints=90, size=60)
    assert resized.dataset.split == "full-90-60px"
    for large, pair in zip(opened.pairs, resized.pairs, strict=True):
        assert pair.shape == (60, 75)
        here = np.array([[20.0, 30], [100, 80]])
        there = warp(large.homography, here)
        small_there = warp(pair.homography, (here + 0.5) / 2 - 0.5)
        assert small_there == pytest.approx((there + 0.5) / 2 - 0.5)
    assert resized.dataset.sha256 != opened.dataset.sha256
    scores = rootsift(hpatches_sequences(data=small, keypoints=90, size=90)).scores
    assert scores["mma-3px"] > 0.6


def test_patches_of_another_extent_are_an_option(small, protocol):
    wide = hpatches_sequences(data=small, keypoints=90, extent=15)
    assert wide.options == {"extent": "15"} and protocol.options == {}
    assert "extent 15" in wide.settings["patches"] and "extent 7.5" in protocol.settings["patches"]
    narrow, broad = (one.dataset.blocks[0].read() for one in (protocol, wide))
    middle = broad[:, 16:49, 16:49].astype(float)  # as wide as the narrow patches
    assert np.abs(middle[:, ::4, ::4] - narrow[:, ::8, ::8]).mean() < 12


# ---- names, splits, options, the record


def named(root, split=None, **files):
    write_sequence(root / "i_one", STILL, **files)
    write_sequence(root / "v_two", VIEWS, **files)
    return open_set(root, split, keypoints=20, size=None).dataset


def as_if_published(monkeypatch, official, large):
    monkeypatch.setattr(names, "OFFICIAL", frozenset(official.split()))
    monkeypatch.setattr(names, "LARGE", frozenset(large.split()))


def test_a_set_has_the_name_of_its_folder_and_says_that_it_is_lossy(tmp_path):
    found = named(tmp_path / "Mine")
    assert (found.name, found.split) == ("hpatches-sequences-mine", "full-20")
    assert found.sources == {"hpatches-sequences-mine/i_one", "hpatches-sequences-mine/v_two"}
    assert named(tmp_path / "photos", image="{}.jpg").name == "hpatches-sequences-photos-lossy"


def test_only_a_set_with_all_official_names_is_called_hpatches_sequences(
    tmp_path, monkeypatch, caplog
):
    monkeypatch.setattr(names, "IMAGES", 3)
    as_if_published(monkeypatch, "i_one v_two", "")
    found = named(tmp_path / "release")
    assert found.name == "hpatches-sequences"
    assert {"hpatches/i_one", "hpatches-sequences/v_two"} <= found.sources
    assert "only names and numbers were checked" in found.unchecked[0]
    lossy = named(tmp_path / "jpegs", image="{}.jpg")
    assert lossy.name == "hpatches-sequences-jpegs-lossy" and lossy.unchecked == ()
    assert "1.jpg is compressed with loss" in caplog.text
    as_if_published(monkeypatch, "i_one v_two v_three", "v_three")
    assert named(tmp_path / "some").name == "hpatches-sequences-some"
    assert "lacks 1 of the 3 sequences, such as v_three (--split d2-net" in caplog.text


def test_the_split_of_d2_net_leaves_the_large_images_out(tmp_path, monkeypatch):
    monkeypatch.setattr(names, "IMAGES", 3)
    as_if_published(monkeypatch, "i_one v_two v_large", "v_large")
    root = tmp_path / "release"
    write_sequence(root / "v_large", VIEWS, seed=5)
    found = named(root, "d2-net")
    assert (found.name, found.split) == ("hpatches-sequences", "d2-net-20")
    assert {block.name.partition("/")[0] for block in found.blocks} == {"i_one", "v_two"}
    assert open_set(root, None, keypoints=20, size=None).dataset.split == "full-20"


def test_a_split_that_a_set_has_not_is_refused(small):
    assert len(names.OFFICIAL - names.LARGE) == 108 and len(names.LARGE & names.OFFICIAL) == 8
    parts = [sum(n.startswith(part) for n in names.OFFICIAL - names.LARGE) for part in ("i_", "v_")]
    assert parts == [52, 56]
    with pytest.raises(ValueError, match=r"d2-net has 108 sequences of HPatches, and .* lacks 108"):
        hpatches_sequences(data=small, split="d2-net")
    with pytest.raises(ValueError, match="no split 'a'; known: full, d2-net"):
        hpatches_sequences(data=small, split="a")


@pytest.mark.parametrize(
    ("option", "complaint"),
    [
        ({"keypoints": 0}, "keypoints=0"),
        ({"size": 0}, "size=0"),
        ({"extent": 0.0}, "extent 0"),
        ({"ransac": 0.0}, "ransac=0"),
        ({"seeds": 0}, "seeds=0"),
    ],
)
def test_options_without_meaning_are_refused(small, option, complaint):
    with pytest.raises(ValueError, match=complaint):
        hpatches_sequences(data=small, **option)


def test_inverted_homographies_are_refused_before_a_descriptor_is_scored(tmp_path):
    far = turned(12, 0.85, 14, -9, 3e-4)
    write_sequence(tmp_path / "v_a", (far, far), written=[np.linalg.inv(far)] * 2)
    with pytest.raises(ValueError, match=r"v_a: .*fit (better )?when read inverted"):
        hpatches_sequences(data=tmp_path)


def test_a_record_has_the_settings_and_seeds_of_ransac(small, protocol):
    record = rootsift(protocol)
    assert record.protocol.options == {}
    assert "threshold 3 px" in record.protocol.settings["ransac"]
    assert record.protocol.settings["ransac"].endswith("seeds 0 to 4")
    assert record.environment.libraries["opencv-contrib-python-headless"]
    other = hpatches_sequences(data=small, keypoints=90, ransac=1.5, seeds=2)
    assert other.options == {"ransac": "1.5", "seeds": "2"}
    assert "threshold 1.5 px" in other.settings["ransac"]
    assert other.dataset.sha256 == protocol.dataset.sha256


def test_the_command_scores_sequences_of_jpegs(tmp_path, run):
    write_sequence(tmp_path / "sets/mine/v_a", VIEWS, image="img{}.jpg", homography="H1to{}p")
    options = ("--protocol", "hpatches-sequences", "--data", tmp_path / "sets/mine")
    kept = ("--results", tmp_path / "results", "--set", "keypoints=100")
    status, out, _ = run("eval", "--model", "rootsift", *options, *kept)
    assert status == 0 and "hpatches-sequences-mine-lossy, split full-100" in out
    (file,) = (tmp_path / "results/records").rglob("*.json")
    assert file.parent.relative_to(tmp_path / "results/records").as_posix() == (
        "hpatches-sequences/hpatches-sequences-mine-lossy/full-100"
    )
    assert json.loads(file.read_text())["scores"]["mma-3px"] > 0.7


@pytest.mark.data
def test_rootsift_matches_real_sequences(shared):
    record = rootsift(hpatches_sequences(data=shared / "hpatches/images"))
    assert record.data.name == "hpatches-sequences-images"
    assert record.scores["mma-3px"] == pytest.approx(0.5142, abs=0.005)
    assert record.scenes["v_graffiti"]["1-2/mma-3px"] > 0.7


@pytest.mark.data
def test_oxfords_sequences_are_known_by_their_pixels(shared):
    found = open_set(shared / "oxford_affine", None, keypoints=50, size=None).dataset
    assert found.name == "oxford" and "oxford/graf" in found.sources


def test_the_textures_of_these_tests_have_enough_keypoints():
    assert len(cv2.SIFT_create().detect(texture(0))) > 100


def test_the_split_of_a_record_tells_the_keypoints_and_the_size(small):
    told = hpatches_sequences(data=small, keypoints=90, size=60)
    for given in ({}, {"keypoints": 90}, {"size": 60}):
        again = hpatches_sequences(data=small, split=told.dataset.split, **given)
        assert (again.dataset.split, again.dataset.sha256) == ("full-90-60px", told.dataset.sha256)
    for given in ({"keypoints": 80}, {"size": 70}):
        with pytest.raises(InputError, match="split full-90-60px: it is of 90 keypoints"):
            hpatches_sequences(data=small, split="full-90-60px", **given)


def board_of(*names, data):
    protocol = hpatches_sequences(data=data, keypoints=90)
    records = [one for name in names for one in evaluate(harness.load_model(name), [protocol])]
    return leaderboard.board(("hpatches-sequences", "small", "full-90"), records)


def test_figures_show_every_threshold_and_kind_of_change(small):
    board = board_of("rootsift", data=small)
    (record,) = board.rows[0]
    marked, *curves = figures(board)
    for bars in marked.panels:
        (bar,) = bars.bars
        assert bar.value == record.scores[bars.title]
        assert bar.marks == tuple(record.scores[f"{kind}/{bars.title}"] for kind in PARTS)
    for figure, thresholds in zip(curves, (MATCHED, ESTIMATED), strict=True):
        assert [panel.title for panel in figure.panels] == ["all sequences", *PARTS]
        for panel in figure.panels:
            start = f"{panel.title}/" if panel.title in PARTS else ""
            assert panel.lines[0].points == tuple(
                (t, record.scores[f"{start}{figure.name}-{t}px"]) for t in thresholds
            )


def test_one_kind_of_change_is_not_drawn_twice(tmp_path):
    write_sequence(tmp_path / "v_only", VIEWS[:1], seed=3)
    marked, *curves = figures(board_of("rootsift", data=tmp_path))
    assert all(not bars.markers for bars in marked.panels)
    assert [len(figure.panels) for figure in curves] == [1, 1]
