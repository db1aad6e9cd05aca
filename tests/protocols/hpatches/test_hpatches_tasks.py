import hashlib
import shutil
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hpatches_files import LENGTHS, SPLITS, write_set

from harness import Descriptions
from harness.distances import L2
from protocols.hpatches import tasks
from protocols.hpatches.matching import matching
from protocols.hpatches.reader import OFFICIAL, open_set
from protocols.hpatches.retrieval import retrieval
from protocols.hpatches.verification import verification


@pytest.fixture
def root(tmp_path):
    return write_set(tmp_path / "own", LENGTHS, splits=SPLITS)


def official_recipe(opened, pairs):
    """The three files as spec 2.2 tells it, row by row on the global stream."""
    random = np.random.RandomState(42)
    s = random.choice(list(opened.test), pairs)
    idx = [random.choice(np.arange(opened.lengths[k]), 2, replace=False) for k in s]
    t = [random.choice(np.arange(5), 2, replace=False) for _ in s]
    s2 = random.choice(list(opened.test), pairs)
    idx2 = [random.randint(opened.lengths[k]) for k in s2]
    return s, np.array(idx), np.array(t), s2, np.array(idx2)


def test_missing_verification_files_are_made_by_the_official_recipe(root):
    opened = open_set(root, "a")
    task, _ = tasks.verification(opened)
    names = np.array(opened.test)
    s, idx, t, s2, idx2 = official_recipe(opened, len(task.positive.s1))
    place = task.place
    np.testing.assert_array_equal(names[task.positive.s1], s[place])
    np.testing.assert_array_equal(task.positive.idx1, idx[place, 0])
    np.testing.assert_array_equal(task.intra.idx2, idx[place, 1])
    np.testing.assert_array_equal(task.inter.t2, t[place, 1])
    np.testing.assert_array_equal(names[task.inter.s2], s2[place])
    np.testing.assert_array_equal(task.inter.idx2, idx2[place])


def test_pairs_of_one_sequence_stand_together(root):
    task, _ = tasks.verification(open_set(root, "a"))
    assert (np.diff(task.positive.s1) >= 0).all()
    assert sorted(task.place) == list(range(len(task.place)))


def test_made_files_are_said_to_be_made(root):
    opened = open_set(root, "a")
    assert tasks.verification(opened)[1].split == "a@generated-tasks"
    assert tasks.matching(opened)[1].split == "a"


def count_makings(monkeypatch):
    """A list that grows by one whenever files of the verification task are made."""
    made = []
    write = tasks._write_verification
    monkeypatch.setattr(
        tasks, "_write_verification", lambda *given: made.append(given) or write(*given)
    )
    return made


def test_made_files_are_made_once(tmp_path, monkeypatch):
    made = count_makings(monkeypatch)
    root = write_set(tmp_path / "own", LENGTHS, splits=SPLITS, seed=1)
    for _ in range(2):
        tasks.verification(open_set(root, "a"))
    assert len(made) == 1


def test_made_files_are_made_again_by_another_version_of_the_recipe(tmp_path, monkeypatch):
    made = count_makings(monkeypatch)
    root = write_set(tmp_path / "own", LENGTHS, splits=SPLITS, seed=2)
    for version in (tasks.VERSION, tasks.VERSION + 1):
        monkeypatch.setattr(tasks, "VERSION", version)
        tasks.verification(open_set(root, "a"))
    assert len(made) == 2


def test_drawing_pairs_keeps_two_numbers_of_each_permutation_and_not_all():
    """With a slow twin. A slice kept 2,000 numbers a pair: 12 GB at the official size."""
    lengths = [2000] * 3000
    tracemalloc.start()
    found = tasks._first_two(np.random.RandomState(0), lengths)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    random = np.random.RandomState(0)
    np.testing.assert_array_equal(found, [random.permutation(n)[:2] for n in lengths])
    assert found.base is None and peak < 1e6


def test_a_sequence_of_one_patch_has_no_negatives(tmp_path):
    root = write_set(tmp_path / "own", {**LENGTHS, "v_one": 1}, splits=SPLITS)
    with pytest.raises(ValueError, match=r"hpatches-own has only one patch of v_one: .*two"):
        tasks.verification(open_set(root, "a"))


def test_queries_are_no_distractors_and_nothing_stands_twice(root):
    task, _ = tasks.retrieval(open_set(root, "a"))
    queries, distractors = (
        set(zip(t.s.tolist(), t.idx.tolist(), strict=True))
        for t in (task.queries, task.distractors)
    )
    assert not queries & distractors
    assert len(queries) == len(task.queries.s)
    assert len(distractors) == len(task.distractors.s)


def test_flat_patches_never_enter_retrieval(root, tmp_path):
    import cv2

    file = root / "patches/v_one/ref.png"
    image = cv2.imread(str(file), cv2.IMREAD_GRAYSCALE)
    image[8:16] = 77  # patch 1
    cv2.imwrite(str(file), image)
    task, _ = tasks.retrieval(open_set(root, "a"))
    for part in (task.queries, task.distractors):
        assert (0, 1) not in set(zip(part.s.tolist(), part.idx.tolist(), strict=True))


def write_tasks(root, *, kinds=("pos", "neg_intra", "neg_inter"), **change):
    opened = open_set(root, "a", allow_partial=True)
    for kind in kinds:
        rows = {"s1": ["v_one"], "t1": [0], "idx1": [3], "s2": ["i_one"], "t2": [4], "idx2": [8]}
        pd.DataFrame({**rows, **change}).to_csv(
            root / f"tasks/verif_{kind}_split-a.csv", index=False
        )
    return opened


def test_the_users_files_are_read(root):
    task, dataset = tasks.verification(write_tasks(root))
    assert dataset.name == "hpatches-own"
    assert [int(getattr(task.inter, c)[0]) for c in ("s1", "t1", "idx1", "s2", "t2", "idx2")] == [
        0, 0, 3, 1, 4, 8,
    ]  # fmt: skip


def test_one_file_of_three_is_an_error(root):
    opened = write_tasks(root)
    (root / "tasks/verif_neg_inter_split-a.csv").unlink()
    with pytest.raises(FileNotFoundError, match=r"lacks verif_neg_inter_split-a\.csv"):
        tasks.verification(opened)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"s1": ["v_two"]}, r"line 2: a sequence that is not in the test list"),
        ({"idx1": [7]}, r"line 2: idx1 is 7, beyond the strips"),
        ({"idx2": [-1]}, r"line 2: idx2 is -1, beyond"),
        ({"t1": [6]}, r"line 2: t1 is 6, beyond"),
        ({"t1": ["x"]}, r"can't be read as a task file"),
        ({"more": [1]}, r"has the columns .*more"),
    ],
)
def test_a_bad_row_is_named(root, change, message):
    with pytest.raises(ValueError, match=message):
        tasks.verification(write_tasks(root, **change))


THREE = {"a": {"test": ["v_one", "i_one", "v_two"], "train": ["i_two"]}}


@pytest.fixture
def partial_root(tmp_path):
    """A set with task files of its own, of which a test sequence was removed."""
    root = write_set(tmp_path / "own", LENGTHS, splits=THREE)
    tasks.make(root)
    shutil.rmtree(root / "patches/i_one")
    return root


def official_rows(root, kind):
    names = [name.format("a") for name in (*tasks.VERIFICATION, *tasks.RETRIEVAL) if kind in name]
    return [pd.read_csv(root / "tasks" / name) for name in names]


def test_a_pair_is_left_out_of_all_three_files_where_one_names_a_missing_sequence(partial_root):
    task, dataset = tasks.verification(open_set(partial_root, "a", allow_partial=True))
    pos, intra, inter = official_rows(partial_root, "verif")
    left = (pos.s1 != "i_one") & (inter.s2 != "i_one")
    assert 0 < left.sum() < (pos.s1 != "i_one").sum()
    number = {"v_one": 0, "v_two": 1}
    for mine, theirs in ((task.positive, pos), (task.intra, intra), (task.inter, inter)):
        theirs = theirs[left].iloc[task.place]
        np.testing.assert_array_equal(mine.s2, theirs.s2.map(number))
        np.testing.assert_array_equal(mine.idx2, theirs.idx2)
    assert (dataset.name, dataset.split, dataset.complete) == ("hpatches-own", "a", False)


@pytest.mark.parametrize("make", [verification, matching, retrieval])
def test_what_is_left_of_a_set_with_task_files_is_scored(partial_root, make):
    """As a set is that has no more, and whose files name no more."""
    partial = scored(make(data=partial_root, allow_partial=True))
    (partial_root / "tasks/splits.json").write_text('{"a": {"test": ["v_one", "v_two"]}}')
    verif = official_rows(partial_root, "verif")
    gone = np.any([(t.s1 == "i_one") | (t.s2 == "i_one") for t in verif], axis=0)
    for name, table in zip(tasks.VERIFICATION, verif, strict=True):
        table[~gone].to_csv(partial_root / "tasks" / name.format("a"), index=False)
    for name, table in zip(tasks.RETRIEVAL, official_rows(partial_root, "retr"), strict=True):
        table[table.s != "i_one"].to_csv(partial_root / "tasks" / name.format("a"), index=False)
    assert scored(make(data=partial_root)) == partial
    assert set(partial.scenes) == {"v_one", "v_two"}


def scored(protocol):
    rng = np.random.default_rng(0)
    vectors = np.eye(16, dtype=np.float32)[protocol.dataset.point]
    vectors += rng.normal(size=vectors.shape).astype(np.float32) / 4
    return protocol.score(Descriptions(protocol.dataset, vectors, L2))


@pytest.mark.parametrize("make", [verification, matching])
def test_a_kind_of_sequence_may_be_missing_whole(tmp_path, make):
    root = write_set(tmp_path / "own", {"v_one": 7}, splits=SPLITS)
    protocol = make(data=root, allow_partial=True)
    assert protocol.headline in scored(protocol).values


@pytest.mark.parametrize(
    ("lengths", "split"),
    [
        ({"v_one": 5, "v_two": 5, "i_one": 5}, "a@own-tasks"),
        ({"v_one": 5, "v_two": 5}, "a@own-tasks+partial"),
    ],
)
def test_other_files_than_the_official_ones_show_in_the_split(
    tmp_path, monkeypatch, lengths, split
):
    listed = hashlib.sha256(b"i_one\nv_one\nv_two").hexdigest()
    monkeypatch.setitem(OFFICIAL, "split_test_sha256", {"a": listed})
    monkeypatch.setitem(OFFICIAL, "lengths", dict.fromkeys(("v_one", "v_two", "i_one"), (5, 5)))
    splits = {"a": {"test": ["v_one", "v_two", "i_one"]}}
    root = write_set(tmp_path, lengths, size=65, splits=splits)
    for kind in ("queries", "distractors"):
        (root / f"tasks/retr_{kind}_split-a.csv").write_text("s,idx\nv_one,1\n")
    dataset = retrieval(data=root, split="a", allow_partial=True).dataset
    assert (dataset.name, dataset.split) == ("hpatches", split)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("s,idx\nv_one,99999999999999999999\n", "can't be read as a task file"),
        ("s,idx\nv_one,1e400\n", "cannot safely convert"),
        ("s,idx\nv_one,1", "doesn't end with a line end"),
        ("s,idx\nv_one,1\nv_one,1,1,1\n", "Expected 2 fields in line 3, saw 4$"),
    ],
)
def test_a_damaged_task_file_is_named(partial_root, text, message):
    (partial_root / "tasks/retr_queries_split-a.csv").write_text(text)
    with pytest.raises(ValueError, match=rf"retr_queries_split-a\.csv.*{message}"):
        tasks.retrieval(open_set(partial_root, "a", allow_partial=True))


def test_an_index_is_checked_where_another_row_names_a_missing_sequence(partial_root):
    rows = {"s": ["i_one", "v_one"], "idx": [700, 7]}
    pd.DataFrame(rows).to_csv(partial_root / "tasks/retr_queries_split-a.csv", index=False)
    with pytest.raises(ValueError, match="line 3: idx is 7, beyond"):
        tasks.retrieval(open_set(partial_root, "a", allow_partial=True))


def test_files_of_which_no_row_is_left_are_an_error(partial_root):
    opened = open_set(partial_root, "a", allow_partial=True)
    write_tasks(partial_root)
    with pytest.raises(ValueError, match=r"inter_split-a\.csv hold no pair of the sequences"):
        tasks.verification(opened)
    (partial_root / "tasks/retr_queries_split-a.csv").write_text("s,idx\ni_one,1\n")
    with pytest.raises(ValueError, match="hold no query or no distractor of the existing"):
        tasks.retrieval(opened)


def test_files_that_do_not_belong_together_are_an_error(root):
    opened = write_tasks(root)
    write_tasks(root, idx1=[2], kinds=["neg_inter"])
    with pytest.raises(ValueError, match=r"verif_neg_inter_split-a.csv differ in idx1"):
        tasks.verification(opened)


def test_rows_of_sequences_allowed_to_be_missing_are_left_out(tmp_path):
    root = write_set(tmp_path, {"v_one": 7, "v_two": 7}, splits=THREE)
    opened = open_set(root, "a", allow_partial=True)
    for kind in ("queries", "distractors"):
        (root / f"tasks/retr_{kind}_split-a.csv").write_text("s,idx\ni_one,8\nv_one,1\n")
    task, _ = tasks.retrieval(opened)
    assert task.queries.idx.tolist() == [1]


def test_retrieval_in_one_sequence_alone_is_undefined(tmp_path):
    root = write_set(tmp_path, {"v_one": 7})
    with pytest.raises(ValueError, match="v_one is the only sequence"):
        tasks.retrieval(open_set(root, None))


def test_the_official_place_of_the_table_of_splits_is_known(root):
    (root / "tasks/splits").mkdir()
    (root / "tasks/splits.json").rename(root / "tasks/splits/splits.json")
    assert open_set(root, "a").test == ("v_one", "i_one")


def test_all_official_files_are_known_by_hash():
    assert len(OFFICIAL["git_blob_sha1"]) == 30
    assert set(OFFICIAL["split_test_sha256"]) == {"a", "b", "c", "illum", "view", "full"}


@pytest.mark.data
@pytest.mark.parametrize("split", ["a", "b", "c", "illum", "view", "full"])
def test_the_recipe_for_retrieval_draws_the_official_files(shared, split):
    """Flat patches are unknown without the images: what was kept must be part of what is drawn."""
    import json

    lengths = {s: low for s, (low, high) in OFFICIAL["lengths"].items()}
    test = json.loads((shared / "hpatches/official_tasks/splits.json").read_text())[split]["test"]
    random = np.random.RandomState(42)
    for kind, draws in (("queries", 40_000), ("distractors", 200_000)):
        s = random.choice(test, draws)
        drawn = dict.fromkeys((k, random.randint(lengths[k])) for k in s)
        place = {one: i for i, one in enumerate(drawn)}
        file = pd.read_csv(shared / f"hpatches/official_tasks/retr_{kind}_split-{split}.csv")
        places = [place.get(one, -1) for one in zip(file["s"], file["idx"], strict=True)]
        known = [p for p in places if p >= 0]
        # A length that is off by one shifts the stream for a while: most of it must still agree.
        assert len(known) > 0.99 * len(file)
        assert np.count_nonzero(np.diff(known) > 0) > 0.99 * len(known)  # and in the order of draws


@pytest.mark.parametrize("length", [2, 3, 5, 9])
@pytest.mark.parametrize("count", [0, 1, 500])
def test_permutations_that_are_drawn_at_once_are_those_drawn_one_by_one(length, count):
    random, twin = np.random.RandomState(3), np.random.RandomState(3)
    found = tasks._first_two_of(random, length, count)
    one_by_one = [twin.permutation(length)[:2] for _ in range(count)]
    np.testing.assert_array_equal(found, np.reshape(one_by_one, (count, 2)))
    assert random.randint(2**31 - 1) == twin.randint(2**31 - 1)  # as many numbers were drawn
