import json
import shutil
import unicodedata

import cv2
import numpy as np
import pycolmap
import pytest

from harness import plugins
from harness.distances import HAMMING, L2
from harness.evaluation import evaluate
from harness.records import record as results
from harness.types import Descriptions
from protocols.eth import files
from protocols.eth.protocol import eth
from protocols.eth.sample import EYES, SCENE, SHA256, sample
from protocols.eth.scenes import UNCHECKED, open_scenes
from protocols.eth.structure import reconstruct
from protocols.imaging.photographs import find
from protocols.samples import fingerprint


@pytest.fixture
def folder(tmp_path):
    """The sample, without the name that it has from a file."""
    folder = shutil.copytree(sample(), tmp_path / "rooms")
    (folder / "dataset.json").unlink()
    return folder


def by_point(protocol, dim=32):
    """Vectors that tell every point apart."""
    rng = np.random.default_rng(0)
    of_point = rng.normal(size=(int(protocol.dataset.point.max()) + 1, dim)).astype(np.float32)
    return of_point[protocol.dataset.point]


def scores(protocol, vectors, distance=L2):
    return protocol.score(Descriptions(protocol.dataset, vectors, distance))


def test_the_sample_is_the_same_on_every_machine():
    assert fingerprint(sample()) == SHA256
    assert named(sample()) == ("eth-sample", SCENE)


def test_a_block_is_an_image_read_when_it_is_wanted(folder, monkeypatch):
    read = []
    monkeypatch.setattr(
        "protocols.eth.protocol.read_grey",
        lambda file: read.append(file.name) or np.zeros((320, 400), np.uint8),
    )
    blocks = eth(data=folder).dataset.blocks
    assert [block.name for block in blocks] == [f"{SCENE}/{i:04}.png" for i in range(len(EYES))]
    assert not read
    assert blocks[1].read().shape == (blocks[1].size, 65, 65)
    assert read == ["0001.png"]


def test_every_keypoint_has_its_patch(folder):
    for block in eth(data=folder).dataset.blocks:
        name = block.name.partition("/")[2]
        table = files.read_keypoints(folder / SCENE / "keypoints" / f"{name}.bin")
        assert len(block.read()) == len(table)


def test_the_hash_of_a_block_is_of_what_its_patches_are_made_from(folder):
    def hashes(**options):
        return [block.sha256 for block in eth(data=folder, **options).dataset.blocks]

    before = hashes()
    assert hashes() == before
    for options in ({"side": 33}, {"extent": 5.0}, {"smoothing": 0.0}):
        assert not set(before) & set(hashes(**options))
    file = folder / SCENE / "keypoints/0001.png.bin"
    table = files.read_keypoints(file)
    table[0, 0] += 0.25
    files.write_keypoints(file, table)
    image = cv2.imread(str(folder / SCENE / "images/0002.png"))
    image[0, 0] += 1
    cv2.imwrite(str(folder / SCENE / "images/0002.png"), image)
    assert [a == b for a, b in zip(before, hashes(), strict=True)] == [1, 0, 0, 1, 1]


def test_known_cameras_are_part_of_the_truth(folder):
    before = eth(data=folder).dataset.truth
    file = folder / SCENE / "gt_dense_cameras/0000.png.camera"
    file.write_text(file.read_text().replace("3.6", "3.5"))
    assert eth(data=folder).dataset.truth != before


def test_perfect_vectors_put_the_whole_scene_together(folder):
    protocol = eth(data=folder)
    found = scores(protocol, by_point(protocol)).values
    point = protocol.dataset.point
    seen = np.bincount(point)
    assert found[f"{SCENE}/registered"] == len(EYES)
    assert found[f"{SCENE}/points"] > 0.9 * np.count_nonzero(seen > 1)
    assert found[f"{SCENE}/reprojection_error_px"] < 0.3  # keypoints are off by that at most
    assert found[f"{SCENE}/position_error_m"] < 0.02
    assert found[f"{SCENE}/rotation_error_deg"] < 0.5
    assert found["total/points"] == found[f"{SCENE}/points"]


def test_vectors_that_say_nothing_put_nothing_together(folder):
    protocol = eth(data=folder)
    found = scores(protocol, np.ones((len(protocol.dataset), 4), np.float32))
    assert set(found.values.values()) == {0.0}
    assert "total/observations" in found.values
    assert f"{SCENE}/reprojection_error_px" not in found.values
    assert found.scenes[SCENE]["matches"] == 0
    assert f"COLMAP registered none of the 5 images of {SCENE} in 1 of 1 runs." in found.warnings


def test_bits_of_any_length_are_matched(folder):
    protocol = eth(data=folder)
    bits = np.packbits(by_point(protocol, dim=200) > 0, axis=1)
    assert scores(protocol, bits, HAMMING).values[f"{SCENE}/registered"] == len(EYES)


def test_repeats_are_runs_with_other_seeds_and_scores_are_their_means(folder, monkeypatch):
    seeds = []

    def run(scene, matched, seed):
        seeds.append(seed)
        summed = dict.fromkeys(("registered", "points", "observations"), 10.0 * seed)
        return summed | ({"reprojection_error_px": 0.5} if seed else {})

    monkeypatch.setattr("protocols.eth.scoring.reconstruct", run)
    protocol = eth(data=folder, repeats=3)
    found = scores(protocol, by_point(protocol))
    assert sorted(seeds) == [0, 1, 2]
    assert protocol.options == {"repeats": "3"}
    assert found.values["total/points"] == 10
    assert found.intervals["total/points"] == pytest.approx((0.5, 19.5))
    assert f"{SCENE}/reprojection_error_px" not in found.values  # one run has none


def test_another_ratio_matches_more_or_less_and_is_an_option(folder):
    counts = []
    for ratio in (0.5, 0.8, 1.0):
        protocol = eth(data=folder, ratio=ratio)
        assert protocol.options == ({} if ratio == 0.8 else {"ratio": f"{ratio:g}"})
        rng, vectors = np.random.default_rng(0), by_point(protocol)
        noisy = vectors + 0.6 * rng.normal(size=vectors.shape).astype(np.float32)
        counts.append(scores(protocol, noisy).scenes[SCENE]["matches"])
    assert counts == sorted(set(counts))
    protocol = eth(data=folder, ratio=0.7, repeats=2)
    assert (protocol.name, protocol.options) == ("eth", {"ratio": "0.7", "repeats": "2"})


def test_one_run_of_few_images_is_warned_of_in_the_record(folder, tmp_path):
    protocol = eth(data=folder)
    found = scores(protocol, by_point(protocol))
    (warning,) = found.warnings
    assert warning.startswith(f"Fewer than 15 images, mapped by one run of COLMAP: {SCENE} (5).")
    assert "--set repeats=5" in warning
    (record,) = evaluate(plugins.model("brief"), [protocol])
    assert json.loads(results.save(tmp_path, record).read_text())["warnings"] == [warning]


def test_many_images_or_several_runs_are_not_warned_of(folder, monkeypatch):
    protocol = eth(data=folder, repeats=2)
    assert scores(protocol, by_point(protocol)).warnings == ()
    monkeypatch.setattr("protocols.eth.scoring.FEW", 5)
    protocol = eth(data=folder)
    assert scores(protocol, by_point(protocol)).warnings == ()


def test_one_run_has_no_interval(folder):
    protocol = eth(data=folder)
    assert (protocol.name, protocol.options) == ("eth", {})
    assert scores(protocol, by_point(protocol)).intervals == {}


def test_the_record_names_colmap_and_the_kinds_of_its_scores(folder, tmp_path):
    (record,) = evaluate(plugins.model("brief"), [eth(data=folder)])
    kept = json.loads(results.save(tmp_path, record).read_text())
    assert "pycolmap" in kept["environment"]["libraries"]
    assert kept["protocol"]["quantities"]["reprojection_error_px"]["lower_is_better"]
    assert kept["data"]["name"] == "eth-rooms"
    assert kept["scores"]["total/registered"] == len(EYES)


def test_official_files_are_written_that_the_original_pipeline_reads(folder, tmp_path):
    out = tmp_path / "official"
    protocol = eth(data=folder, files=out)
    vectors = by_point(protocol)
    scores(protocol, vectors)
    name = "0001.png.bin"
    own = files.read_keypoints(out / SCENE / "keypoints" / name)
    given = files.read_keypoints(folder / SCENE / "keypoints" / name)
    np.testing.assert_allclose(own, given, atol=1e-4)
    block = vectors[protocol.dataset.image == 1]
    np.testing.assert_array_equal(files.read_descriptors(out / SCENE / "descriptors" / name), block)
    matches = files.read_matches(out / SCENE / "matches" / "0001.png---0003.png.bin")
    points = [protocol.dataset.point[protocol.dataset.image == i] for i in (1, 3)]
    np.testing.assert_array_equal(points[0][matches[:, 0]], points[1][matches[:, 1]])
    assert len(list((out / SCENE / "matches").iterdir())) == len(EYES) * (len(EYES) - 1) / 2
    with pytest.raises(FileExistsError, match="remove it, or give another, by --set files=DIR"):
        scores(protocol, vectors)
    with pytest.raises(FileExistsError, match="remove it, or give another, by --set files=DIR"):
        eth(data=folder, files=out)


def test_bits_are_written_as_numbers(folder, tmp_path):
    protocol = eth(data=folder, files=tmp_path / "official")
    bits = np.packbits(by_point(protocol) > 0, axis=1)
    scores(protocol, bits, HAMMING)
    found = files.read_descriptors(tmp_path / "official" / SCENE / "descriptors/0000.png.bin")
    np.testing.assert_array_equal(found, np.unpackbits(bits[protocol.dataset.image == 0], axis=1))


def test_two_scenes_are_scored_apart_and_summed_up(folder):
    shutil.copytree(folder / SCENE, folder / "attic")
    shutil.rmtree(folder / "attic" / "points")
    protocol = eth(data=folder)
    assert protocol.dataset.split == f"attic+{SCENE}"
    one = eth(data=folder, split=SCENE)
    assert one.dataset.split == SCENE
    n = len(one.dataset)
    assert len(np.unique(protocol.dataset.point[:n])) == n  # nobody knows: all differ
    vectors = by_point(one)
    found = scores(protocol, np.concatenate([vectors, vectors])).values
    assert found["attic/points"] == found[f"{SCENE}/points"] == found["total/points"] / 2


def test_official_archives_beside_the_scenes_are_read(folder):
    scene = shutil.copytree(folder / SCENE, folder / "south-building")
    shutil.rmtree(folder / SCENE)
    filled(scene)
    (found,) = open_scenes(folder, None, None).scenes
    for part, archive in (("keypoints", "keypoints"), ("database.db", "databases")):
        (folder / archive / "South-Building").mkdir(parents=True)
        (scene / part).rename(folder / archive / "South-Building" / part)
    for root in (folder, scene):
        opened = open_scenes(root, None, None)
        assert opened.split == "south-building"  # no keypoints were detected
        (moved,) = opened.scenes
        assert moved.evidence == found.evidence and moved.database.is_file()
        assert list(map(len, moved.frames)) == list(map(len, found.frames))


def named(folder, **options):
    dataset = eth(data=folder, **options).dataset
    return dataset.name, dataset.split


def test_other_keypoints_have_a_split_of_their_own(folder):
    assert named(folder) == ("eth-rooms", SCENE)
    shutil.rmtree(folder / SCENE / "keypoints")
    assert named(folder) == ("eth-rooms", f"{SCENE}@sift")


def test_other_patches_are_options(folder):
    protocol = eth(data=folder, side=33, smoothing=0.0, extent=6.75)
    assert protocol.options == {"side": "33", "smoothing": "0", "extent": "6.75"}


def test_a_scene_may_be_given_itself(folder):
    assert named(folder / SCENE) == (f"eth-{SCENE}", SCENE)


def test_a_folder_of_many_sets_is_looked_into(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "all" / "eth")
    assert named(tmp_path / "all")[1] == SCENE


def filled(scene):
    """COLMAP's database of the images of a scene, and nothing more."""
    database, images = scene / "database.db", scene / "images"
    pycolmap.Database.open(database).close()
    pycolmap.import_images(database, images, pycolmap.CameraMode.AUTO, find(images))


def test_only_whole_scenes_with_official_files_are_called_eth(folder, monkeypatch, caplog):
    monkeypatch.setitem(eth.__globals__, "listed", lambda *_: [])
    (folder / SCENE).rename(folder / "Fountain")
    assert named(folder)[0] == "eth-rooms"
    assert f"Fountain has {len(EYES)} images, not 11; Fountain has no database.db" in caplog.text
    for i in range(len(EYES), 11):
        for kind, end in (
            ("images", ".png"), ("keypoints", ".png.bin"), ("points", ".png.bin"),
            ("gt_dense_cameras", ".png.camera"),
        ):  # fmt: skip
            inside = folder / "Fountain" / kind
            shutil.copyfile(inside / f"0000{end}", inside / f"{i:04}{end}")
    assert named(folder)[0] == "eth-rooms"  # whose cameras nobody filled in
    filled(folder / "Fountain")
    assert named(folder)[0] == "eth"
    assert eth(data=folder).dataset.unchecked == (UNCHECKED,)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"keypoints": "surf"}, ValueError, "may be official, database, sift, not 'surf'"),
        ({"split": "cornr"}, LookupError, "did you mean 'corner'"),
        ({"side": 0}, ValueError, "side 0.*must be at least 1"),
        ({"extent": 0.0}, ValueError, "extent above 0"),
        ({"smoothing": -1.0}, ValueError, "smoothing at least 0"),
        ({"repeats": 0}, ValueError, "repeats 0: it must be at least 1"),
        ({"ratio": 0.0}, ValueError, "ratio 0.0: it must be above 0"),
        ({"ratio": 1.1}, ValueError, "ratio 1.1: .*at most 1"),
        ({"keypoints": "database"}, ValueError, "database.db is not there.*--set keypoints=sift"),
    ],
)
def test_wrong_options_are_refused_with_what_is_wanted(folder, options, error, message):
    with pytest.raises(error, match=message):
        eth(data=folder, **options)


def without_images(scene):
    shutil.rmtree(scene / "images")


def without_a_file(scene):
    (scene / "keypoints/0002.png.bin").unlink()


def with_a_file_cut_off(scene):
    file = scene / "keypoints/0002.png.bin"
    file.write_bytes(file.read_bytes()[:-2])


def with_points_of_others(scene):
    shutil.copyfile(scene / "points/0001.png.bin", scene / "points/0000.png.bin")


def with_a_camera_missing(scene):
    (scene / "gt_dense_cameras/0003.png.camera").unlink()


def with_a_forbidden_name(scene):
    scene.rename(scene.with_name("total"))


def with_a_database_of_fewer_images(scene):
    filled(scene)
    shutil.copyfile(scene / "images/0000.png", scene / "images/0009.png")
    shutil.copyfile(scene / "keypoints/0000.png.bin", scene / "keypoints/0009.png.bin")


def scaled(scene, column, value):
    file = scene / "keypoints/0002.png.bin"
    table = files.read_keypoints(file)
    table[3, column] = value
    files.write_keypoints(file, table)


def with_a_keypoint_of_scale_1e8(scene):
    scaled(scene, 2, 1e8)


def with_a_keypoint_of_scale_1e12(scene):
    scaled(scene, 2, 1e12)


def with_a_keypoint_far_outside(scene):
    scaled(scene, 0, 4000)


def with_an_angle_in_degrees(scene):
    scaled(scene, 3, 270)


def without_any_keypoint(scene):
    for kind in ("keypoints", "points"):
        for file in (scene / kind).iterdir():
            columns = 4 if kind == "keypoints" else 1
            file.write_bytes(np.array([0, columns], "<i4").tobytes())


def with_12_bits_in_16(scene):
    for file in (scene / "images").iterdir():
        grey = cv2.imread(str(file), cv2.IMREAD_GRAYSCALE).astype(np.uint16)
        cv2.imwrite(str(file), grey * 16)


def with_a_database_cut_off(scene):
    filled(scene)
    file = scene / "database.db"
    file.write_bytes(file.read_bytes()[:-3400])


def with_no_database(scene):
    (scene / "database.db").write_text("words")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (without_images, "has no scene .*and is none itself"),
        (without_a_file, r"0002\.png\.bin is missing"),
        (with_a_file_cut_off, r"0002\.png\.bin is cut off"),
        (with_points_of_others, r"0000\.png has \d+ keypoints and \d+ points: write points/0000"),
        (with_a_camera_missing, r"0003\.png\.camera is missing"),
        (
            with_a_database_of_fewer_images,
            r"database\.db lacks the image 0009\.png: give a database of all",
        ),
        (with_a_keypoint_of_scale_1e8, r"0002\.png: region 3 of \d+.* radii 1e\+08"),
        (with_a_keypoint_of_scale_1e12, r"0002\.png: region 3 of \d+.* radii 1e\+12|0002\.png: r"),
        (with_a_keypoint_far_outside, r"region 3 .* at \(4000, .*in an image of 400 x 320 pixels"),
        (with_an_angle_in_degrees, r"0002\.png\.bin: keypoint 3 has the angle 270; radians are"),
        (without_any_keypoint, r"none of its 5 images has a keypoint \(official\).*no score"),
        (with_12_bits_in_16, r"000\d\.png has 16-bit values, .* 4080: .*multiply them by 16"),
        (with_a_database_cut_off, r"database\.db can't be read .* cut off .*move this one away"),
        (
            with_no_database,
            r"database\.db can't be read as a database of COLMAP.*move this one away",
        ),
        (with_a_forbidden_name, "'total' can't name a scene: rename"),
    ],
)
def test_a_damaged_scene_is_refused_by_the_name_of_what_is_wrong(folder, spoil, message):
    spoil(folder / SCENE)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        eth(data=folder)


def test_names_of_files_are_found_in_either_unicode_form(folder):
    """macOS keeps the names of files in another form than databases and archives have."""
    scene = folder / SCENE
    apart, composed = (unicodedata.normalize(form, "caf\u00e9.png") for form in ("NFD", "NFC"))
    (scene / "images/0002.png").rename(scene / "images" / apart)
    filled(scene)
    for kind, end in (("keypoints", ".bin"), ("points", ".bin"), ("gt_dense_cameras", ".camera")):
        (scene / kind / f"0002.png{end}").rename(scene / kind / f"{composed}{end}")
    (found,) = open_scenes(folder, None, None).scenes
    assert apart in found.names and found.cameras is not None and found.database is not None


def test_an_image_without_keypoints_takes_part(folder):
    files.write_keypoints(folder / SCENE / "keypoints/0004.png.bin", np.zeros((0, 4), np.float32))
    files.write_points(folder / SCENE / "points/0004.png.bin", np.zeros(0, np.intp))
    protocol = eth(data=folder)
    assert protocol.dataset.blocks[4].read().shape == (0, 65, 65)
    found = scores(protocol, by_point(protocol)).values
    assert found[f"{SCENE}/registered"] == len(EYES) - 1


def test_the_reconstruction_is_that_of_the_matches(folder):
    """The protocol adds nothing to what matching and COLMAP give."""
    from protocols.eth.matching import axes, match
    from protocols.eth.scenes import open_scenes

    protocol = eth(data=folder)
    vectors = by_point(protocol)
    (scene,) = open_scenes(folder, None, None).scenes
    own = [vectors[protocol.dataset.image == i] for i in range(len(EYES))]
    by = axes(own, L2)
    matched = {
        (i, j): match(own[i], own[j], by) for i in range(len(own)) for j in range(i + 1, len(own))
    }
    expected = reconstruct(scene, matched, 0)
    found = scores(protocol, vectors).values
    assert {name: found[f"{SCENE}/{name}"] for name in expected} == expected


def test_chosen_pairs_are_matched_alone_and_named_in_the_record(folder, tmp_path):
    file = tmp_path / "list.txt"
    file.write_text("0001.png 0000.png\n0001.png 0002.png\n")
    protocol = eth(data=folder, pairs=file)
    assert protocol.options["pairs"].startswith("list-")
    found = scores(protocol, by_point(protocol))
    assert found.scenes[SCENE]["pairs"] == 2
    assert found.values[f"{SCENE}/registered"] == 3
    everyone = eth(data=folder)
    assert protocol.dataset.truth != everyone.dataset.truth


def test_images_that_the_descriptor_finds_alike_are_matched(folder):
    everyone = eth(data=folder)
    whole = scores(everyone, by_point(everyone))
    truths = {everyone.dataset.truth}
    for neighbours, pairs in ((4, 10), (1, None)):
        protocol = eth(data=folder, pairs="retrieval", neighbours=neighbours)
        assert protocol.options == {"pairs": "retrieval", "neighbours": str(neighbours)}
        found = scores(protocol, by_point(protocol))
        assert found.values == whole.values if pairs else found.scenes[SCENE]["pairs"] < 10
        truths.add(protocol.dataset.truth)
    assert len(truths) == 3
