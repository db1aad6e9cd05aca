"""RomePatches: the official files in every order of axes, what is refused, and the scores."""

import dataclasses
import itertools
import json
import shutil

import numpy as np
import pytest
import scipy.io

from harness import Descriptions, loading, registry
from harness.contracts import check_protocol
from harness.distances import HAMMING, L2
from harness.metrics import average_precision, rank
from protocols.romepatches import protocol as retrieval
from protocols.romepatches import sample
from protocols.romepatches.reader import UNCHECKED, open_set

QUERIES, MATCHES, SIDE = 7, 4, 16
N = QUERIES * (1 + MATCHES)


def labels(seed=0):
    """Queries, each of a point of its own, and the points of the database in some order."""
    rng = np.random.default_rng(seed)
    points = rng.permutation(1000)[:QUERIES]
    return points, rng.permutation(np.repeat(points, MATCHES))


def grey(seed=0):
    return np.random.default_rng(seed).integers(0, 256, (N, SIDE, SIDE), dtype=np.uint8)


def write(folder, half, patches, queries, database):
    folder.mkdir(exist_ok=True)
    stem = folder / f"patch_retrieval_Rome_{half}"
    scipy.io.savemat(f"{stem}.mat", {"patches": patches})
    scipy.io.savemat(f"{stem}_labels.mat", {"labels_gt": queries, "labels": database})


def written(folder, patches=None, queries=None, database=None):
    """A set of two halves in the official layout; what is given replaces a part of the first."""
    for seed, half in enumerate(("train", "test")):
        own = (grey(seed), *labels(seed))
        if half == "train":
            given = (patches, queries, database)
            own = tuple(a if b is None else b for a, b in zip(own, given, strict=True))
        write(folder, half, *own)
    return folder


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "rome"


def train_patches(folder):
    return open_set(folder).dataset.blocks[0].read()


def refusal(folder, kind=ValueError):
    with pytest.raises(kind) as refused:
        open_set(folder)
    return str(refused.value)


# ---- reading


def orders(axes):
    """Orders of patches, rows, columns (, colours) in which rows come before columns."""
    every = itertools.permutations(range(axes))
    return [order for order in every if order.index(1) < order.index(2)]


@pytest.mark.parametrize("order", orders(3))
def test_grey_patches_are_read_in_every_order_of_axes(folder, order):
    written(folder, grey().transpose(order))
    np.testing.assert_array_equal(train_patches(folder), grey())


@pytest.mark.parametrize("order", orders(4))
def test_colour_is_read_in_every_order_of_axes_and_made_grey(folder, order):
    colour = np.random.default_rng(0).integers(0, 256, (N, SIDE, SIDE, 3), dtype=np.uint8)
    written(folder, colour.transpose(order))
    wanted = np.floor(colour @ np.array([0.299, 0.587, 0.114]) + 0.5 + 1e-9)
    np.testing.assert_array_equal(train_patches(folder), wanted)


def test_grey_stored_as_colour_stays_as_it_is(folder):
    written(folder, np.repeat(grey()[..., None], 3, axis=3))
    np.testing.assert_array_equal(train_patches(folder), grey())


def test_a_single_channel_is_no_matter(folder):
    written(folder, grey()[:, None])
    np.testing.assert_array_equal(train_patches(folder), grey())


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32, np.uint16])
def test_numbers_of_every_type_are_read(folder, dtype):
    written(folder, grey().astype(dtype))
    np.testing.assert_array_equal(train_patches(folder), grey())


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_fractions_are_read_as_bytes(folder, dtype):
    written(folder, (grey() / 255).astype(dtype))
    np.testing.assert_array_equal(train_patches(folder), grey())


@pytest.mark.parametrize("shape", [(-1,), (1, -1), (-1, 1)])
@pytest.mark.parametrize("dtype", [float, np.int32, np.uint16])
def test_labels_may_be_rows_or_columns_of_any_type(folder, shape, dtype):
    queries, database = labels()
    written(folder, None, queries.reshape(shape).astype(dtype), database.reshape(shape))
    opened = open_set(folder)
    found = opened.dataset.point[:N]
    assert len(np.unique(found)) == QUERIES
    wanted = np.concatenate([queries, database])
    np.testing.assert_array_equal(found[:, None] == found, wanted[:, None] == wanted)


def test_queries_come_first_and_have_their_matches_in_the_database(folder):
    opened = open_set(written(folder))
    assert [half.name for half in opened.halves] == ["train", "test"]
    for i, half in enumerate(opened.halves):
        np.testing.assert_array_equal(half.query, np.arange(QUERIES) + i * N)
        np.testing.assert_array_equal(half.database, np.arange(QUERIES, N) + i * N)
        point = opened.dataset.point
        matched = point[half.database[half.positive]]
        assert half.positive.shape == (QUERIES, MATCHES)
        assert (matched == point[half.query][:, None]).all()
        assert len(np.unique(half.positive)) == half.positive.size


def test_the_halves_share_no_point(folder):
    for half in ("train", "test"):
        write(folder, half, grey(), *labels())
    point = open_set(folder).dataset.point
    assert not set(point[:N]) & set(point[N:])


def test_points_without_a_query_are_distractors(folder):
    queries, database = labels()
    more = np.concatenate([database, [5000, 5001, 5002]])
    written(folder, np.concatenate([grey(), grey()[:3]]), queries, more)
    assert open_set(folder).halves[0].positive.shape == (QUERIES, MATCHES)


def test_the_hash_is_that_of_the_contents(folder, tmp_path):
    first = open_set(written(folder)).dataset
    again = open_set(written(tmp_path / "again", grey().transpose(1, 2, 0).astype(float))).dataset
    assert [block.sha256 for block in again.blocks] == [block.sha256 for block in first.blocks]
    assert again.sha256 == first.sha256
    spoilt = grey()
    spoilt[0, 0, 0] ^= 1
    assert open_set(written(tmp_path / "other", spoilt)).dataset.sha256 != first.sha256


def test_other_labels_are_another_truth(folder, tmp_path):
    queries, database = labels()
    first = open_set(written(folder)).dataset
    other = open_set(written(tmp_path / "other", None, queries, database[::-1])).dataset
    assert other.truth != first.truth


def test_only_a_set_of_the_published_size_bears_its_name(folder, caplog):
    small = open_set(written(folder)).dataset
    assert (small.name, small.unchecked) == ("romepatches-rome", ())
    assert "test has 7 queries with 4 matches each" in caplog.text
    for half in ("train", "test"):
        points = np.arange(1000)
        write(folder, half, np.zeros((10000, 51, 51), np.uint8), points, np.repeat(points, 9))
    dataset = open_set(folder).dataset
    assert (dataset.name, dataset.unchecked) == ("romepatches", (UNCHECKED,))
    assert dataset.sources == {"romepatches/train", "romepatches/test"}


def test_a_set_may_say_its_name(folder):
    written(folder)
    (folder / "dataset.json").write_text(json.dumps({"name": "romepatches-mine"}))
    assert open_set(folder).dataset.name == "romepatches-mine"


@pytest.mark.parametrize(
    ("called", "name"),
    [("Rome; 2 é", "romepatches-rome__2__"), ("sample", "romepatches-sample-folder")],
)
def test_a_folder_names_a_set_by_plain_letters(tmp_path, called, name):
    assert open_set(written(tmp_path / called)).dataset.name == name


def test_a_set_in_a_folder_of_sets_is_found(folder, tmp_path):
    written(tmp_path / "romepatches")
    inner = open_set(tmp_path / "romepatches").dataset
    assert open_set(tmp_path).dataset is inner


def test_a_changed_file_is_read_again(folder):
    first = open_set(written(folder)).dataset
    assert open_set(folder).dataset is first
    written(folder, grey(7))
    assert open_set(folder).dataset.sha256 != first.sha256
    (folder / "dataset.json").write_text(json.dumps({"name": "romepatches-mine"}))
    assert open_set(folder).dataset.name == "romepatches-mine"


# ---- what is refused


def test_a_damaged_dataset_json_is_named(folder):
    file = written(folder) / "dataset.json"
    file.write_text("{}")
    assert f"{file} does not name its data set" in refusal(folder)


@pytest.mark.parametrize("name", ["romepatches", "hpatches", "romepatches-../x"])
def test_a_name_that_is_another_set_s_or_leads_elsewhere_is_refused(folder, name):
    file = written(folder) / "dataset.json"
    file.write_text(json.dumps({"name": name}))
    assert f"{file} names the set {name!r}" in refusal(folder)


def test_missing_files_are_named(folder):
    written(folder)
    (folder / "patch_retrieval_Rome_test.mat").unlink()
    (folder / "patch_retrieval_Rome_train_labels.mat").unlink()
    said = refusal(folder, FileNotFoundError)
    assert "lacks patch_retrieval_Rome_train_labels.mat, patch_retrieval_Rome_test.mat" in said
    assert "harness data fetch romepatches" in said
    assert "is not a folder" in refusal(folder / "nowhere", FileNotFoundError)


@pytest.mark.parametrize("which", ["", "_labels"])
@pytest.mark.parametrize("share", [0, 0.01, 0.5, 0.99])
@pytest.mark.parametrize("compressed", [False, True])
def test_a_cut_off_file_is_named(folder, which, share, compressed):
    written(folder)
    file = folder / f"patch_retrieval_Rome_train{which}.mat"
    variables = {k: v for k, v in scipy.io.loadmat(file).items() if not k.startswith("__")}
    scipy.io.savemat(file, variables, do_compression=compressed)
    file.write_bytes(file.read_bytes()[: int(share * file.stat().st_size)])
    assert str(file) in refusal(folder)


@pytest.mark.parametrize(
    "body", [b"<!DOCTYPE html><html>Moved</html>", b"\0" * 2000, b"MATLAB 5.0 MAT-file".ljust(200)]
)
def test_what_is_no_mat_file_is_named(folder, body):
    file = written(folder) / "patch_retrieval_Rome_test.mat"
    file.write_bytes(body)
    assert str(file) in refusal(folder)


def test_a_file_of_matlab_7_3_is_told_apart(folder):
    file = written(folder) / "patch_retrieval_Rome_test.mat"
    header = b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM"
    file.write_bytes(header.ljust(512) + b"\x89HDF\r\n\x1a\n" + bytes(100))
    assert "MATLAB 7.3 (HDF5), which SciPy can't read: save it again" in refusal(folder)


def test_a_missing_variable_is_named_with_those_that_are_there(folder):
    written(folder)
    scipy.io.savemat(folder / "patch_retrieval_Rome_train.mat", {"x": 1, "sifts": [1, 2]})
    assert "has no variable 'patches'; it has x, sifts" in refusal(folder)


@pytest.mark.parametrize(
    "shape",
    [
        (N - 1, SIDE, SIDE),
        (N, SIDE, SIDE + 1),
        (N, SIDE * SIDE),
        (N, SIDE, SIDE, 4),
        (N, SIDE, SIDE, 3, 2),
        (N, N, N),
        (N, SIDE, SIDE, 3, 3),
    ],
)
def test_patches_of_an_impossible_shape_are_refused(folder, shape):
    said = refusal(written(folder, np.zeros(shape, np.uint8)))
    assert f"the shape {shape}; it should have one axis of {N}" in said


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (256.0, "values from 0 to 256"),
        (-1.0, "from -1 to 0"),
        (np.nan, "values that are not finite"),
    ],
)
def test_patches_of_impossible_values_are_refused(folder, value, told):
    patches = np.zeros((N, SIDE, SIDE))
    patches[0, 0, 0] = value
    assert told in refusal(written(folder, patches))


def test_patches_that_are_no_numbers_are_refused(folder):
    assert "patches is not an array of numbers" in refusal(
        written(folder, np.full((N, 2, 2), "x", object))
    )


BAD_LABELS = {
    "a query without a match": (lambda q, d: (q, np.where(d == q[0], 9999, d)), "is 0 times in"),
    "a match too few": (lambda q, d: (q, np.where(np.arange(len(d)) == 0, 9999, d)), "is 3 times"),
    "a match too many": (lambda q, d: (q, np.append(d, d[0])), "others up to 5 times"),
    "one point queried twice": (lambda q, d: (np.append(q, q[0]), d), "has a point twice"),
    "no query": (lambda q, d: (q[:0], d), "labels_gt is"),
    "a matrix": (lambda q, d: (q, d.reshape(4, -1)), "it should be a vector of point numbers"),
    "a half point": (lambda q, d: (q + 0.5, d), "not a valid whole number"),
    "no number": (lambda q, d: (q * np.nan, d), "not a valid whole number"),
    "text": (lambda q, d: ("points", d), "it should be a vector of point numbers"),
}


@pytest.mark.parametrize("case", BAD_LABELS)
def test_bad_labels_are_refused(folder, case):
    change, told = BAD_LABELS[case]
    said = refusal(written(folder, None, *change(*labels())))
    assert told in said
    assert "patch_retrieval_Rome_train_labels.mat" in said


def test_labels_for_more_patches_than_there_are_are_refused(folder):
    queries, database = labels()
    said = refusal(written(folder, grey()[:-1], queries, database))
    assert (
        f"one axis of {N} (the number of labels in patch_retrieval_Rome_train_labels.mat)" in said
    )


# ---- scores


def described(protocol, vectors, distance=L2):
    return Descriptions(protocol.dataset, vectors, distance)


def ported(vectors, queries, database, points, *, trapezoid):
    """A query after the other, as the third party's port has it: sort, then walk down the list."""
    precisions = []
    for query in queries:
        distance = np.linalg.norm(vectors[database] - vectors[query], axis=1)
        match = points[database][np.argsort(distance, kind="stable")] == points[query]
        recall = np.concatenate([[0], np.cumsum(match) / match.sum()])
        precision = np.concatenate([[1], np.cumsum(match) / np.arange(1, len(match) + 1)])
        height = (precision[1:] + precision[:-1]) / 2 if trapezoid else precision[1:]
        precisions.append((height * np.diff(recall)).sum())
    return np.mean(precisions)


@pytest.mark.parametrize("ap", retrieval.AP)
def test_scores_are_those_of_the_port(folder, ap):
    protocol = retrieval.romepatches(data=written(folder), ap=ap)
    rng = np.random.default_rng(3)
    point = protocol.dataset.point
    vectors = rng.normal(size=(point.max() + 1, 8))[point] + rng.normal(size=(len(point), 8))
    vectors = vectors.astype(np.float32)
    scores = protocol.score(described(protocol, vectors))
    for i, half in enumerate(("train", "test")):
        queries, database = np.arange(QUERIES) + i * N, np.arange(QUERIES, N) + i * N
        wanted = ported(
            vectors.astype(float), queries, database, point, trapezoid=ap == "trapezoid"
        )
        assert 0.2 < wanted < 0.95
        assert scores.values[f"{half}/map"] == pytest.approx(wanted, abs=1e-12)
        low, high = scores.intervals[f"{half}/map"]
        assert low < wanted < high


def test_the_other_definition_is_an_option(folder):
    written(folder)
    one, other = (retrieval.romepatches(data=folder, ap=ap) for ap in retrieval.AP)
    assert (one.options, other.options) == ({}, {"ap": "step"})
    assert one.headline == other.headline == "test/map"
    assert one.dataset is other.dataset  # so that both are described at once


@pytest.mark.parametrize("ap", retrieval.AP)
def test_bits_that_tie_score_the_mean_over_orders(folder, ap):
    protocol = retrieval.romepatches(data=written(folder), ap=ap)
    bits = np.random.default_rng(0).integers(0, 4, (2 * N, 1), dtype=np.uint8)
    scores = protocol.score(described(protocol, bits, HAMMING)).values
    rng = np.random.default_rng(1)
    drawn = []
    for _ in range(60):  # bits as numbers, ties broken by a grain too small to matter otherwise
        numbers = np.unpackbits(bits, axis=1).astype(np.float32)
        grain = rng.normal(scale=1e-3, size=(2 * N, 1)).astype(np.float32)
        drawn.append(
            protocol.score(described(protocol, np.concatenate([numbers, grain], 1))).values
        )
    for name, value in scores.items():
        values = [one[name] for one in drawn]
        assert value == pytest.approx(np.mean(values), abs=5 * np.std(values) / np.sqrt(60))


@pytest.mark.parametrize("seed", range(20))
def test_the_step_sum_is_the_mean_over_all_orders_of_ties(seed):
    rng = np.random.default_rng(seed)
    match = np.append(rng.random(6) < 0.4, True)
    distance = rng.integers(0, 3, 7).astype(float)
    sums = []
    for order in itertools.permutations(range(7)):
        if (np.diff(distance[list(order)]) >= 0).all():
            ranked = match[list(order)]
            precision = np.cumsum(ranked) / np.arange(1, 8)
            sums.append(precision[ranked].mean())
    found = retrieval.step_average_precision(rank(match, distance))
    assert found == pytest.approx(np.mean(sums), abs=1e-12)


def test_without_ties_the_step_sum_is_the_usual_one():
    rng = np.random.default_rng(0)
    ranking = rank(rng.random(500) < 0.2, rng.random(500))
    wanted = average_precision(ranking)
    assert retrieval.step_average_precision(ranking) == pytest.approx(wanted, abs=1e-12)


def test_hits_by_chance_are_refused_by_the_step_sum():
    ranking = rank(np.array([True, False]), np.array([0.1, 0.2]))
    with pytest.raises(ValueError, match="squared_hits"):
        retrieval.step_average_precision(dataclasses.replace(ranking, squared_hits=ranking.hits))


# ---- the sample, and the laws


@pytest.mark.parametrize("ap", retrieval.AP)
def test_the_laws_of_protocols_are_kept_on_the_sample(ap):
    protocol = registry.load("protocols", "romepatches")(ap=ap)
    assert protocol.name == "romepatches"
    assert protocol.dataset.name == "romepatches-sample"
    for law in check_protocol(protocol):
        assert law.passed, f"{law.name}: {law.detail}"


def test_the_sample_has_the_official_form():
    opened = open_set(None)
    assert [block.read().shape for block in opened.dataset.blocks] == [(600, 51, 51)] * 2
    for half in opened.halves:
        assert half.positive.shape == (60, 9)


def test_patches_of_a_point_look_alike_in_the_sample():
    opened = open_set(None)
    patches = opened.dataset.blocks[1].read().reshape(600, -1).astype(float)
    patches -= patches.mean(axis=1, keepdims=True)
    patches /= np.linalg.norm(patches, axis=1, keepdims=True)
    alike = patches[:60] @ patches[60:].T
    own = np.take_along_axis(alike, opened.halves[1].positive, axis=1)
    assert own.mean() > alike.mean() + 0.25


def test_the_sample_has_the_same_bytes_again(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        sample.make(tmp_path / name)
        assert sample.contents(tmp_path / name) == sample.SHA256
    for file in (tmp_path / "one").iterdir():
        assert (tmp_path / "two" / file.name).read_bytes() == file.read_bytes()


def test_a_sample_that_came_out_otherwise_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path))
    monkeypatch.setattr(sample, "GRAIN", 11.0)
    with pytest.raises(RuntimeError, match="scores on it could not be compared"):
        sample.sample()


def changed(variable, change):
    """What spoils the first number of a variable of the files of one half."""
    ending = "" if variable == "patches" else "_labels"

    def spoil(folder):
        file = folder / f"patch_retrieval_Rome_test{ending}.mat"
        held = {k: v for k, v in scipy.io.loadmat(file).items() if not k.startswith("__")}
        held[variable].flat[0] = change(held[variable].flat[0])
        scipy.io.savemat(file, held)

    return spoil


@pytest.mark.parametrize("variable", ["patches", "labels_gt", "labels"])
def test_the_hash_of_the_sample_is_that_of_its_numbers(tmp_path, variable):
    folder = shutil.copytree(sample.sample(), tmp_path / "copy")
    changed(variable, lambda number: number)(folder)  # another header
    assert sample.contents(folder) == sample.SHA256
    changed(variable, lambda number: number + 1)(folder)
    assert sample.contents(folder) != sample.SHA256


@pytest.mark.parametrize("file", ["_test.mat", "_train_labels.mat", "dataset.json"])
@pytest.mark.parametrize("share", [None, 0, 0.5, 0.99])
def test_the_hash_of_a_damaged_sample_is_another(tmp_path, file, share):
    folder = shutil.copytree(sample.sample(), tmp_path / "copy")
    (damaged,) = folder.glob(f"*{file}")
    if share is None:
        damaged.unlink()
    else:
        damaged.write_bytes(damaged.read_bytes()[: int(share * damaged.stat().st_size)])
    assert sample.contents(folder) != sample.SHA256
    assert sample.contents(tmp_path / "nowhere") != sample.SHA256


def test_a_sample_with_numbers_of_an_unknown_type_ends_no_process(tmp_path):
    folder = shutil.copytree(sample.sample(), tmp_path / "copy")
    (damaged,) = folder.glob("*_train_labels.mat")
    contents = damaged.read_bytes()
    at = contents.index(b"labels_gt") + 16
    assert contents[at] == 9  # of doubles
    damaged.write_bytes(contents[:at] + b"\0" + contents[at + 1 :])
    assert sample.contents(folder) != sample.SHA256


def test_a_sample_with_other_labels_is_made_again(tmp_path, monkeypatch, caplog):
    whole = sample.sample()
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path))
    monkeypatch.setattr(
        sample, "make", lambda folder: shutil.copytree(whole, folder, dirs_exist_ok=True)
    )
    changed("labels", lambda number: number + 1)(sample.sample())
    assert sample.contents(sample.sample()) == sample.SHA256
    assert "is damaged or was edited" in caplog.text


def test_the_family_is_found_by_name():
    assert loading.protocol_names("romepatches") == ["romepatches"]
