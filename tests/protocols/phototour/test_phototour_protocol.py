import json
import logging
from dataclasses import replace

import numpy as np
import pytest
from near_ties import nearly_tied
from phototour_files import TEST, made_pairs, made_patches, made_scene
from toy import toy_descriptor

from harness import Descriptions
from harness.contracts import check_protocol
from harness.distances import HAMMING, L2
from harness.evaluation import describe
from harness.loading import protocol_names
from harness.metrics import average_precision, fpr_at_95, rank, roc_auc
from harness.statistics import interval_of_mean, interval_over_parts
from protocols.phototour import sample as sample_module
from protocols.phototour import scenes
from protocols.phototour.fpr95 import fpr_at_95_hardnet, fpr_at_95_tian
from protocols.phototour.reader import read_pairs, read_scene
from protocols.phototour.sample import sample
from protocols.phototour.scenes import cells, open_scenes
from protocols.phototour.snn import snn
from protocols.phototour.verification import phototour
from protocols.phototour.writer import write_scene
from protocols.samples import fingerprint

PAPERS = "m50_100000_100000_0.txt"


@pytest.fixture
def three(tmp_path):
    """Three small scenes: what each was written from."""
    root = tmp_path / "Three"
    return root, {
        name: made_scene(root / name, n, seed=n) for name, n in (("a", 40), ("b", 30), ("c", 300))
    }


def coarse(protocol, seed=0, dim=6):
    """Vectors that know something of the point, with many ties."""
    rng = np.random.default_rng(seed)
    n = len(protocol.dataset)
    means = rng.integers(0, 3, (protocol.dataset.point.max() + 1, dim))[protocol.dataset.point]
    return (means + (rng.random((n, dim)) < 0.2)).astype(np.float32)


def scored(protocol, vectors, distance=L2):
    return protocol.score(Descriptions(protocol.dataset, vectors, distance))


# ---- laws on the sample


VARIANTS = [
    (phototour, {}, "phototour"),
    (phototour, {"fpr95": "hardnet"}, "phototour"),
    (phototour, {"fpr95": "tian"}, "phototour"),
    (snn, {}, "phototour/snn"),
]


@pytest.mark.parametrize(("maker", "options", "name"), VARIANTS)
def test_the_laws_of_protocols_are_kept(maker, options, name):
    protocol = maker(**options)
    assert (protocol.name, protocol.options) == (name, options)
    assert [(law.name, law.detail) for law in check_protocol(protocol) if not law.passed] == []


def test_the_name_stands_for_verification_alone():
    assert protocol_names("phototour") == ["phototour"]
    assert protocol_names("phototour/snn") == ["phototour/snn"]


def test_the_sample_has_the_same_bytes_everywhere(tmp_path):
    assert fingerprint(sample()) == sample_module.SHA256
    sample_module.make(tmp_path)
    assert fingerprint(tmp_path) == sample_module.SHA256


def test_a_sample_that_came_out_otherwise_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path))
    monkeypatch.setattr(sample_module, "GRAIN", 7.0)
    with pytest.raises(RuntimeError, match="scores on it could not be compared"):
        sample()


def test_the_sample_never_bears_the_name_of_the_benchmark():
    assert phototour().dataset.name == snn().dataset.name == "phototour-sample"


def test_patches_of_one_point_look_alike_in_the_sample():
    scene = open_scenes(None, "camera").scenes[0]
    protocol = phototour(split="camera")
    task = read_pairs(scene)
    patches = np.concatenate([block.read() for block in protocol.dataset.blocks])
    grey = patches.reshape(len(patches), -1).astype(float)
    grey = (grey - grey.mean(1, keepdims=True)) / grey.std(1, keepdims=True)
    rows = np.unique([task.a, task.b])
    a, b = np.searchsorted(rows, task.a), np.searchsorted(rows, task.b)
    alike = np.einsum("nd,nd->n", grey[a], grey[b]) / grey.shape[1]
    assert alike[task.match].mean() > 0.6 > 0.3 > alike[~task.match].mean()


# ---- verification


@pytest.mark.parametrize(
    ("variant", "fpr95"),
    [
        ("tie-aware", lambda m, d: fpr_at_95(rank(m, d))),
        ("hardnet", fpr_at_95_hardnet),
        ("tian", lambda m, d: fpr_at_95_tian(rank(m, d))),
    ],
)
def test_scores_equal_those_of_pairs_described_one_by_one(three, variant, fpr95):
    root, written = three
    protocol = phototour(data=root, fpr95=variant)
    model = toy_descriptor(
        describe=lambda p: p.reshape(len(p), 8, -1).mean(axis=2).round(0).astype(np.float32)
    )
    scores = protocol.score(describe(model, protocol.dataset)).values
    each = {}
    for name, (patches, point) in written.items():
        pairs = made_pairs(point, 60, len(patches))
        distance = []
        for a, b in pairs:
            va, vb = (model.describe(patches[i : i + 1])[0] for i in (a, b))
            distance.append(np.square(va - vb).sum())
        match = point[pairs[:, 0]] == point[pairs[:, 1]]
        distance = np.array(distance, np.float32)
        each[name] = {
            "fpr95": fpr95(match, distance),
            "ap": average_precision(rank(match, distance)),
            "auc": roc_auc(rank(match, distance)),
        }
    expected = {f"{name}/{m}": v for name, own in each.items() for m, v in own.items()}
    for m in ("fpr95", "ap", "auc"):
        expected[f"mean/{m}"] = np.mean([own[m] for own in each.values()])
    assert scores == pytest.approx(expected, abs=1e-12)
    assert protocol.headline in scores


def test_a_patch_is_described_once_and_only_if_a_pair_names_it(three):
    root, written = three
    protocol = phototour(data=root)
    seen = []

    def counting(patches):
        seen.extend(patch.tobytes() for patch in patches)
        return np.zeros((len(patches), 8), np.float32)

    describe(toy_descriptor(describe=counting), protocol.dataset)
    wanted = [
        patches[row].tobytes()
        for patches, point in written.values()
        for row in np.unique(made_pairs(point, 60, len(patches)))
    ]
    assert seen == wanted


def test_curves_are_kept_and_pass_through_the_scores(three):
    protocol = phototour(data=three[0])
    scores = scored(protocol, coarse(protocol))
    for scene, own in scores.scenes.items():
        assert own["fpr@95"] == scores.values[f"{scene}/fpr95"]
        assert own["precision@100"] == pytest.approx(0.5 / (0.5 + 0.5 * own["fpr@100"]))
        values = [own[f"fpr@{recall}"] for recall in (*range(5, 100, 5), 99, 100)]
        assert values == sorted(values)


@pytest.mark.parametrize("variant", ["tie-aware", "hardnet", "tian"])
def test_an_interval_holds_its_value(three, variant):
    protocol = phototour(data=three[0], fpr95=variant)
    scores = scored(protocol, coarse(protocol))
    assert set(scores.intervals) == {f"{s}/fpr95" for s in ("a", "b", "c", "mean")}
    for name, (low, high) in scores.intervals.items():
        assert 0 <= low <= scores.values[name] <= high <= 1
        assert high - low < 1


# ---- names, splits, cells


def official(monkeypatch, folder=None, **patches):
    """As if the official scenes had so many patches, and files of the sizes in a folder."""
    for name, n in patches.items():
        monkeypatch.setitem(scenes.OFFICIAL, name, n)
        sizes = {}
        if folder is not None:
            sizes = {file.name: file.stat().st_size for file in folder.glob("*.txt")}
            sizes |= {"tiles": 1, "bytes of a tile": (folder / "patches0000.bmp").stat().st_size}
        monkeypatch.setitem(scenes.SIZES, name, sizes)


def test_only_scenes_of_the_official_size_are_phototour(tmp_path, monkeypatch, caplog):
    pairs = {PAPERS: made_pairs(np.arange(40) // 2, 100_000)}
    for name in ("liberty", "yosemite_harris"):
        made_scene(tmp_path / "Data" / name, pairs=pairs)
    with caplog.at_level(logging.WARNING):
        protocol = phototour(data=tmp_path / "Data")
    assert protocol.dataset.name == "phototour-data"
    assert "liberty has 40 patches, not 450092" in caplog.text
    official(monkeypatch, tmp_path / "Data" / "liberty", liberty=40)
    assert phototour(data=tmp_path / "Data").dataset.name == "phototour-data"
    assert phototour(data=tmp_path / "Data" / "liberty").dataset.name == "phototour"
    official(monkeypatch, yosemite_harris=40)
    protocol = phototour(data=tmp_path / "Data")
    assert (protocol.dataset.name, protocol.dataset.split) == (
        "phototour",
        "liberty+yosemite_harris",
    )


@pytest.mark.parametrize("file", ["info.txt", PAPERS, "interest.txt"])
def test_a_stand_in_of_the_right_number_of_patches_is_not_phototour(
    tmp_path, monkeypatch, caplog, file
):
    scene = tmp_path / "Data" / "liberty"
    made_scene(scene, pairs={PAPERS: made_pairs(np.arange(40) // 2, 100_000)})
    official(monkeypatch, scene, liberty=40)
    found = phototour(data=scene.parent).dataset
    assert (found.name, found.unchecked) == ("phototour", (scenes.UNCHECKED,))
    with (scene / file).open("ab") as stream:
        stream.write(b"\n")
    found = phototour(data=scene.parent).dataset
    assert (found.name, found.unchecked) == ("phototour-data", ())
    size = (scene / file).stat().st_size
    assert f"{scene / file} has {size} bytes, not {size - 1}" in caplog.text


def test_a_file_that_no_protocol_asks_for_may_be_missing(tmp_path, monkeypatch):
    scene = tmp_path / "liberty"
    made_scene(scene, pairs={PAPERS: made_pairs(np.arange(40) // 2, 100_000)})
    (scene / "sim.txt").write_text("0\n")
    official(monkeypatch, scene, liberty=40)
    (scene / "sim.txt").unlink()
    assert phototour(data=scene).dataset.name == "phototour"


def test_a_set_can_say_its_name(three):
    root, _ = three
    (root / "dataset.json").write_text(json.dumps({"name": "phototour-built-x"}))
    assert phototour(data=root).dataset.name == "phototour-built-x"
    (root / "dataset.json").write_text("{}")
    with pytest.raises(ValueError, match=r"dataset.json does not name its data set"):
        phototour(data=root)


@pytest.mark.parametrize("name", ["phototour", "phototour-a/b", "hpatches-mine"])
def test_a_name_that_is_not_ones_own_is_refused(three, name):
    root, _ = three
    (root / "dataset.json").write_text(json.dumps({"name": name}))
    with pytest.raises(ValueError, match=r"Three.dataset.json names the set"):
        phototour(data=root)


def test_a_folder_and_a_scene_name_a_set_by_plain_letters(tmp_path):
    made_scene(tmp_path / "My Säts" / "a b")
    dataset = phototour(data=tmp_path / "My Säts").dataset
    assert dataset.name == "phototour-my_s_ts"
    assert dataset.split.startswith("1-scenes-")


def test_a_folder_that_is_called_sample_is_not_the_sample(tmp_path):
    made_scene(tmp_path / "sample" / "a")
    assert phototour(data=tmp_path / "sample").dataset.name == "phototour-sample-folder"


def test_a_linked_scene_has_the_name_of_its_link(tmp_path):
    made_scene(tmp_path / "elsewhere" / "mean")
    root = tmp_path / "set"
    root.mkdir()
    (root / "town").symlink_to(tmp_path / "elsewhere" / "mean")
    assert list(phototour(data=root).cells) == ["town"]
    (root / "town").rename(root / "mean")
    with pytest.raises(ValueError, match="can't be called 'mean'"):
        phototour(data=root)


def test_the_official_size_is_that_of_the_name_of_the_link(tmp_path, monkeypatch):
    made_scene(tmp_path / "elsewhere" / "liberty")
    official(monkeypatch, tmp_path / "elsewhere" / "liberty", liberty=40)
    (tmp_path / "set").mkdir()
    link = tmp_path / "set" / "town"
    link.symlink_to(tmp_path / "elsewhere" / "liberty")
    assert phototour(data=tmp_path / "set").dataset.name == "phototour-set"
    link.rename(tmp_path / "set" / "liberty")
    assert phototour(data=tmp_path / "set").dataset.name == "phototour"


def test_one_scene_under_two_names_is_refused(three):
    root, _ = three
    (root / "d").symlink_to(root / "a")
    with pytest.raises(ValueError, match="a and d are one scene"):
        phototour(data=root)
    assert list(phototour(data=root, split="b+d").cells) == ["b", "d"]


def test_names_that_differ_in_case_alone_are_refused(three):
    root, _ = three
    (root / "c").rename(root / "A")
    with pytest.raises(ValueError, match="A and a are one scene"):
        phototour(data=root)


def test_the_second_detector_is_left_out_unless_asked_for(tmp_path, caplog):
    for name in ("liberty", "Liberty_harris", "yosemite_harris"):
        made_scene(tmp_path / name)
    with caplog.at_level(logging.INFO):
        assert list(phototour(data=tmp_path).cells) == ["liberty", "yosemite_harris"]
        assert list(snn(data=tmp_path).cells) == ["liberty", "yosemite_harris"]
    assert "Liberty_harris left out" in caplog.text
    asked = phototour(data=tmp_path, split="liberty+Liberty_harris")
    assert list(asked.cells) == ["Liberty_harris", "liberty"]


def test_sources_do_not_depend_on_case(tmp_path):
    made_scene(tmp_path / "Liberty")
    found = phototour(data=tmp_path).cells["Liberty"]
    assert {"phototour/Liberty", "phototour/liberty", "phototour/liberty_harris"} <= found


def test_a_scene_that_says_its_name_is_a_source_of_that_name(three):
    root, _ = three
    (root / "a" / "dataset.json").write_text(json.dumps({"name": "phototour-castle"}))
    protocol = phototour(data=root)
    assert protocol.dataset.name == "phototour-three"
    assert {"phototour/a", "phototour/castle"} <= protocol.cells["a"]
    assert "phototour/castle" not in protocol.cells["b"]


def test_a_list_that_stands_in_for_that_of_the_papers_is_named(three, caplog):
    phototour(data=three[0], pairs=TEST)
    phototour()
    assert "papers" not in caplog.text
    phototour(data=three[0])
    assert f"the test uses {TEST} of a, {TEST} of b, {TEST} of c" in caplog.text


def test_only_the_list_of_the_papers_has_no_suffix(tmp_path):
    made_scene(tmp_path / "set" / "a", pairs={PAPERS: made_pairs(np.arange(40) // 2, 100_000)})
    file = tmp_path / "set" / "a" / PAPERS
    assert phototour(data=tmp_path / "set").dataset.split == "a"
    few = "".join(file.read_text().splitlines(keepends=True)[:50])
    file.with_suffix(".csv").write_text(few)
    other = phototour(data=tmp_path / "set", pairs=file.with_suffix(".csv").name)
    assert other.dataset.split == "a@m50_100000_100000_0.csv"


def test_a_split_is_a_choice_of_scenes(three):
    root, _ = three
    protocol = phototour(data=root, split="c+a")
    assert list(protocol.cells) == ["a", "c"]
    assert protocol.dataset.split == "a+c@m50_60_60_0"
    whole = phototour(data=root)
    assert whole.dataset.sha256 != protocol.dataset.sha256
    assert whole.dataset.name == protocol.dataset.name == "phototour-three"
    with pytest.raises(LookupError, match="no scene named 'd'"):
        phototour(data=root, split="a+d")


def test_a_split_of_many_scenes_has_a_short_name(tmp_path):
    for number in range(9):
        made_scene(tmp_path / f"a-rather-long-name-{number}")
    assert phototour(data=tmp_path).dataset.split.startswith("9-scenes-")


def test_another_list_of_pairs_gives_another_split(three):
    root, written = three
    for name, (_, point) in written.items():
        text = "".join(f"{a} {point[a]} 0 {b} {point[b]} 0\n" for a, b in made_pairs(point, 80, 9))
        (root / name / "m50_80_80_0.txt").write_text(text)
    assert phototour(data=root).dataset.split == "a+b+c@m50_80_80_0"
    protocol = phototour(data=root, pairs=TEST)
    assert protocol.dataset.split == "a+b+c@m50_60_60_0"
    (root / "a" / "m50_80_80_0.txt").unlink()
    assert phototour(data=root).dataset.split == "a+b+c@m50_60_60_0+m50_80_80_0"


def test_the_hash_of_the_data_covers_the_pairs(three):
    root, _ = three
    before = phototour(data=root).dataset
    file = root / "b" / TEST
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[2:] + lines[:2]))
    after = phototour(data=root).dataset
    assert before.sha256 != after.sha256
    assert [b.sha256 for b in before.blocks] == [b.sha256 for b in after.blocks]


def test_both_detectors_of_one_place_are_one_source(tmp_path):
    for name in ("liberty", "liberty_harris", "town"):
        made_scene(tmp_path / name)
    found = cells(open_scenes(tmp_path, "liberty+liberty_harris+town"))
    both = {"phototour/liberty", "phototour/liberty_harris"}
    assert found["liberty"] == found["liberty_harris"] == both
    assert "phototour/town" in found["town"]
    assert phototour(data=tmp_path).dataset.sources == frozenset().union(*found.values())


def test_what_is_no_scene_is_passed_over(three):
    root, _ = three
    (root / "notes").mkdir()
    (root / ".a.unfinished").mkdir()
    (root / ".a.unfinished" / "info.txt").write_text("0 0\n")
    assert list(phototour(data=root).cells) == ["a", "b", "c"]


def test_scenes_are_found_in_a_folder_of_many_data_sets(three):
    root, _ = three
    root.rename(root.with_name("phototour"))
    protocol = phototour(data=root.parent)
    assert (list(protocol.cells), protocol.dataset.name) == (["a", "b", "c"], "phototour-phototour")


def test_what_is_left_of_a_scene_is_an_error(three):
    root, _ = three
    (root / "b" / "info.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"b.info.txt is missing"):
        phototour(data=root)


def test_no_scene_is_an_error_that_says_what_is_one(tmp_path):
    with pytest.raises(FileNotFoundError, match="has no scene"):
        phototour(data=tmp_path)
    with pytest.raises(FileNotFoundError, match="is not a folder"):
        phototour(data=tmp_path / "nowhere")


def test_a_scene_called_like_the_mean_is_refused(tmp_path):
    made_scene(tmp_path / "mean")
    with pytest.raises(ValueError, match="can't be called 'mean'"):
        phototour(data=tmp_path)


def test_an_unknown_variant_is_refused():
    with pytest.raises(ValueError, match="fpr95 may be tie-aware, hardnet, tian, not 'x'"):
        phototour(fpr95="x")


# ---- the nearest of all others


def snn_slow(vectors, point, image):
    """Anchor by anchor; ties as the docstring has them; None where an image is left out."""
    found = []
    for number in np.unique(image):
        rows = np.flatnonzero(image == number)
        ratio, chance = [], []
        for a in rows:
            others = [
                np.square(vectors[a] - vectors[n]).sum() for n in rows if point[n] != point[a]
            ]
            for p in rows:
                if p == a or point[p] != point[a] or not others:
                    continue
                d, hardest = np.square(vectors[a] - vectors[p]).sum(), min(others)
                low, high = sorted([d, hardest])
                ratio.append(low / high if high else 1.0)
                tie = 1 / (1 + others.count(hardest))
                chance.append(1.0 if d < hardest else tie if d == hardest else 0.0)
        if not ratio:
            continue
        ratio, chance = np.array(ratio), np.array(chance)
        area = last = 0.0
        for threshold in np.unique(ratio):
            accepted = chance[ratio <= threshold]
            area += (accepted.sum() - last) * accepted.mean()
            last = accepted.sum()
        found.append(area / last if last else 0.0)
    return np.mean(found)


@pytest.mark.parametrize("seed", range(5))
def test_snn_equals_its_slow_twin(tmp_path, seed):
    rng = np.random.default_rng(seed)
    for name, n in (("a", 40), ("b", 61)):
        point = np.sort(rng.integers(0, n // 3, n))
        interest = np.zeros((n, 5))
        interest[:, 0] = rng.integers(0, 5, n // 3)[point]
        interest[0, 0] = 9  # an image of one patch
        write_scene(tmp_path / name, [made_patches(n)], point, interest, {})
    protocol = snn(data=tmp_path)
    vectors = coarse(protocol, seed, dim=4)
    scores = scored(protocol, vectors)
    start = 0
    for scene in open_scenes(tmp_path, None).scenes:
        rows = slice(start, start + len(scene))
        start += len(scene)
        image = protocol.dataset.image[rows]
        expected = snn_slow(vectors[rows], scene.point, image)
        assert scores.values[f"{scene.name}/snn-map"] == pytest.approx(expected, abs=1e-9)


def test_snn_orders_what_float32_cannot_tell(tmp_path):
    """Positives and negatives differ in the last digit of some numbers."""
    n = 60
    point = np.sort(np.random.default_rng(0).integers(0, n // 3, n))
    write_scene(tmp_path / "a", [made_patches(n)], point, np.zeros((n, 5)), {})
    protocol = snn(data=tmp_path)
    vectors = nearly_tied(0, n, of=3)
    exact = snn_slow(vectors.astype(float), protocol.dataset.point, protocol.dataset.image)
    assert scored(protocol, vectors).values["a/snn-map"] == pytest.approx(exact, abs=1e-12)


def test_the_interval_of_snn_is_over_reference_images(tmp_path):
    rng = np.random.default_rng(0)
    for name, n in (("a", 300), ("b", 400)):
        point = np.sort(rng.integers(0, n // 3, n))
        interest = np.zeros((n, 5))
        interest[:, 0] = rng.integers(0, 12, n // 3)[point]
        write_scene(tmp_path / name, [made_patches(n)], point, interest, {})
    protocol = snn(data=tmp_path)
    vectors = coarse(protocol, 0, dim=8)
    point, image = protocol.dataset.point, protocol.dataset.image
    own = [snn_slow(vectors[rows], point[rows], image[rows]) for rows in by_image(image)]
    scores = scored(protocol, vectors)
    for name, part in (("a", own[:12]), ("b", own[12:])):
        assert scores.intervals[f"{name}/snn-map"] == pytest.approx(interval_of_mean(part))
    ends = [scores.intervals[f"{name}/snn-map"] for name in ("a", "b")]
    values = [scores.values[f"{name}/snn-map"] for name in ("a", "b")]
    assert scores.intervals["mean/snn-map"] == pytest.approx(interval_over_parts(values, ends))


def by_image(image):
    return [np.flatnonzero(image == one) for one in np.unique(image)]


@pytest.mark.parametrize("images", [1, 2, 7])
def test_snn_finds_the_hardest_negative_in_images_of_any_size(tmp_path, images):
    """Official numbers look for it only in images of more than 1,000 patches."""
    made_scene(tmp_path / "scene", 40, images=images)
    protocol = snn(data=tmp_path)
    point = protocol.dataset.point
    vectors = np.eye(20, dtype=np.float32)[point]
    vectors[5] = vectors[4 + 2 * images]  # row 4 or 5 and a patch of its image look the same
    assert 0 < scored(protocol, vectors).values["mean/snn-map"] < 1


def test_snn_is_the_same_for_large_images_cut_up(monkeypatch):
    protocol = snn()
    vectors = coarse(protocol)
    whole = scored(protocol, vectors).values
    monkeypatch.setattr("protocols.phototour.snn.HELD", 1000)
    assert scored(protocol, vectors).values == whole


def test_snn_gives_a_constant_what_guessing_gives(tmp_path):
    made_scene(tmp_path / "scene", 40, images=2)  # 18 patches of others in each image
    protocol = snn(data=tmp_path)
    for vectors, distance in (
        (np.ones((40, 3), np.float32), L2),
        (np.zeros((40, 3), np.uint8), HAMMING),
    ):
        assert scored(protocol, vectors, distance).values["mean/snn-map"] == pytest.approx(1 / 19)


def test_snn_measures_no_negative_whose_vector_equals_the_anchors(tmp_path):
    """A constant descriptor ties with everything: measuring all pairs would take minutes."""
    made_scene(tmp_path / "scene", 40, images=2)
    protocol = snn(data=tmp_path)
    measured = []

    def paired(vectors, a, b):
        measured.append(len(a))
        return L2.paired(vectors, a, b)

    scored(protocol, np.ones((40, 3), np.float32), replace(L2, paired=paired))
    assert sum(measured) == 40  # the positives: one of each anchor


def test_snn_scores_zero_where_nothing_is_correct(tmp_path):
    made_scene(tmp_path / "scene", 4, images=1)
    protocol = snn(data=tmp_path)
    vectors = np.array([[0], [9], [0], [9]], np.float32)
    assert scored(protocol, vectors).values == {"scene/snn-map": 0.0, "mean/snn-map": 0.0}


def test_snn_needs_the_reference_image_not_the_one_that_was_seen(tmp_path):
    n = 8
    interest = np.zeros((n, 5))
    interest[:, 0] = np.arange(n) % 2
    write_scene(tmp_path / "s", [made_patches(n)], np.arange(n) // 2, interest, {})
    with pytest.raises(ValueError, match="in which image the point was found, not the patch"):
        snn(data=tmp_path)


def test_snn_needs_interest(three):
    root, _ = three
    (root / "a" / "interest.txt").unlink()
    phototour(data=root)
    with pytest.raises(FileNotFoundError, match=r"interest.txt is missing"):
        snn(data=root)


def test_a_scene_read_twice_is_the_same(three):
    root, _ = three
    assert read_scene(root / "a").tiles == read_scene(root / "a").tiles
    assert snn(data=root).dataset.sha256 == snn(data=root).dataset.sha256
