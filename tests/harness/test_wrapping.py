"""Wrappers by name: arguments, identity of the wrapped model, and what is refused."""

import dataclasses
import hashlib

import numpy as np
import pytest
from hpatches_files import LENGTHS, SPLITS, write_set
from packages import installed
from toy import toy_descriptor, toy_protocol

import harness
from harness import evaluation, loading, registry
from harness.code import code_sha256
from harness.data.photographs import Photograph
from harness.distances import HAMMING
from harness.records import leaderboard as boards
from harness.records import record as results
from harness.records import tables
from harness.types import Conventions

A, B = "a" * 64, "b" * 64
PATCHES = np.random.default_rng(0).integers(0, 256, (5, 16, 16), dtype=np.uint8)


def both(first, second):
    return hashlib.sha256(f"{first} {second}".encode()).hexdigest()


THEIRS = '''
from dataclasses import replace
from harness import Descriptor, Wrapper

def half(model: Descriptor, times: int = 1) -> Descriptor:
    """Half of each number, several times."""
    return replace(model, describe=lambda patches: model.describe(patches) / 2**times)

def renamed(model: Descriptor) -> Descriptor:
    return replace(model, name="mine", licence="mine", weights=None, revision=9, trained_on=None)

def first(model: Descriptor, *others: Descriptor) -> Descriptor:
    return model

HALF, RENAMED = Wrapper(half, revision=3), Wrapper(renamed)
BROKEN = Wrapper(lambda model: 1 / 0)
NOTHING = Wrapper(lambda model: None)
FIRST = Wrapper(first)
'''
NAMES = {"half": "HALF", "renamed": "RENAMED", "broken": "BROKEN", "nothing": "NOTHING",
         "bare": "half", "first": "FIRST"}  # fmt: skip


@pytest.fixture
def theirs(tmp_path):
    with installed(tmp_path, "their-wrappers", THEIRS, wrappers=NAMES):
        yield


# ---- arguments


def test_a_wrapper_of_another_package_is_used_by_name(theirs):
    base = toy_descriptor()
    wrapped = harness.wrap(base, "half")
    assert np.array_equal(wrapped.describe(PATCHES), base.describe(PATCHES) / 2)
    assert wrapped.name == "mean|half"


def test_arguments_have_the_types_of_the_function(theirs):
    base = toy_descriptor()
    vectors = harness.wrap(base, "half(3)").describe(PATCHES)
    assert np.array_equal(vectors, base.describe(PATCHES) / 8)
    with pytest.raises(ValueError, match=r"of half\(x\) is 'x'; it should be an integer"):
        harness.wrap(base, "half(x)")
    with pytest.raises(ValueError, match=r"write half\(\[TIMES\]\)"):
        harness.wrap(base, "half(1,2)")


def test_wrappers_apply_from_left_to_right():
    numbers = toy_descriptor()
    assert harness.wrap(numbers, "root|signs").name == "mean|root|signs"
    with pytest.raises(ValueError, match="root takes vectors compared by angle or l2"):
        harness.wrap(numbers, "signs|root")
    unit = harness.wrap(numbers, "root|unit").describe(PATCHES)
    assert not np.allclose(unit, harness.wrap(numbers, "unit|root|root").describe(PATCHES))


def test_a_model_is_an_argument_and_may_be_wrapped_itself():
    pixels = harness.load_model("pixels", device="cpu").describe(PATCHES)
    made = harness.load_model("pixels|concat(pixels|concat(pixels)|root)", device="cpu")
    assert made.name == "pixels|concat(pixels|concat(pixels)|root)"
    vectors = made.describe(PATCHES)
    twice = harness.load_model("pixels|concat(pixels)|root", device="cpu").describe(PATCHES)
    assert np.array_equal(vectors, np.concatenate([pixels, twice], axis=1))


def test_an_unknown_wrapper_is_answered_with_the_nearest():
    with pytest.raises(LookupError, match="no wrapper named 'sings'; did you mean 'signs'"):
        harness.load_model("pixels|sings")
    with pytest.raises(LookupError, match="no descriptor named 'pixel'; did you mean 'pixels'"):
        harness.load_model("sift|concat(pixel)")


@pytest.mark.parametrize(
    ("wrapper", "error", "told"),
    [
        ("broken", RuntimeError, "broken fails on mean: ZeroDivisionError"),
        ("nothing", TypeError, "nothing returned None; a harness.Descriptor is wanted"),
        ("bare", TypeError, "a harness.Wrapper is wanted"),
    ],
)
def test_a_broken_wrapper_is_named(theirs, wrapper, error, told):
    with pytest.raises(error, match=told):
        harness.wrap(toy_descriptor(), wrapper)


# ---- models of every form


def test_a_model_of_a_file_is_wrapped(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import numpy as np\n"
        "def rows(patches):\n"
        "    return patches.reshape(len(patches), -1)[:, :8].astype(np.float32)\n"
    )
    model = harness.load_model(f"{tmp_path}/mine.py:rows|signs")
    assert (model.name, model.trained_on, model.distance) == ("mine:rows|signs", None, HAMMING)


def test_an_onnx_file_is_wrapped(tmp_path):
    import torch

    class Mean(torch.nn.Module):
        def forward(self, patches):
            return patches.float().flatten(1)[:, :8]

    base = toy_descriptor(network=Mean, dim=8)
    harness.export_onnx(base, tmp_path / "m.onnx")
    model = harness.load_model(f"{tmp_path}/m.onnx|unit")
    assert model.name == "onnx:mean|unit"
    assert np.allclose(np.linalg.norm(model.describe(PATCHES + 1), axis=1), 1)


def test_a_folder_of_vectors_is_refused_with_advice(tmp_path):
    (tmp_path / "e1.csv").write_text("1,2\n3,4\n")
    with pytest.raises(TypeError, match="is a folder of vectors: it can't be wrapped"):
        harness.load_model(f"{tmp_path}|root")
    with pytest.raises(TypeError, match="is a folder of vectors: concat takes models"):
        harness.load_model(f"pixels|concat({tmp_path})")


def test_a_family_is_wrapped_member_by_member():
    members = loading.model_names("tfeat|concat(sift)|signs")
    assert members == [
        f"tfeat.{scene}|concat(sift)|signs" for scene in ("liberty", "notredame", "yosemite")
    ]


# ---- identity


def test_the_harness_sets_the_identity_whatever_the_wrapper_says(theirs):
    base = toy_descriptor(weights=A, revision=2, trained_on=frozenset({"x/y"}), licence="MIT")
    made = harness.wrap(base, "renamed")
    assert (made.name, made.licence, made.weights) == ("mean|renamed", "MIT", A)
    assert (made.revision, made.trained_on) == (2, {"x/y"})


def test_photographs_stay_known_unless_those_of_one_model_are_not():
    bee = Photograph("bee.jpg", "A", "CC0-1.0", "README", A)
    base = toy_descriptor(trained_on=frozenset({"x/y"}), photographs=(bee,))
    assert harness.wrap(base, "root").photographs == (bee,)
    assert harness.wrap(base, "concat(pixels)").photographs == (bee,)  # pixels learned nothing
    unknown = dataclasses.replace(base, photographs=())
    assert harness.wrap(unknown, "concat(pixels)").photographs == ()


def test_revisions_of_model_and_wrapper_add_up(theirs):
    base = toy_descriptor(revision=4)
    assert harness.wrap(base, "half").revision == 4 + 3 - 1
    assert harness.wrap(base, "half|half").revision == 4 + 2 * (3 - 1)
    assert harness.wrap(base, "root").revision == 4


def test_the_code_of_a_wrapped_model_is_that_of_model_and_wrapper():
    made = harness.load_model("pixels|root", device="cpu")
    base, wrapper = code_sha256("zoo.baselines"), code_sha256("zoo.wrappers.norms")
    assert made.code == both(base, wrapper)
    assert made.code != harness.load_model("pixels|signs", device="cpu").code


def test_two_models_have_one_identity_together(tmp_path):
    source = (
        "from harness import Descriptor\n"
        "from harness.distances import L2\n"
        "import numpy as np\n"
        "def other():\n"
        "    return Descriptor('other', lambda p: np.ones((len(p), 2), np.float32), L2, 2,\n"
        f"        trained_on=frozenset({{'b/b'}}), licence='GPL', weights='{B}', revision=3)\n"
    )
    base = toy_descriptor(weights=A, revision=2, trained_on=frozenset({"a/a"}), licence="MIT")
    with installed(tmp_path, "others", source, descriptors={"other": "other"}):
        made = harness.wrap(base, "concat(other)")
    assert made.name == "mean|concat(other)"
    assert (made.weights, made.licence) == (both(A, B), "MIT AND GPL")
    assert (made.revision, made.trained_on) == (4, {"a/a", "b/b"})
    assert made.photographs == ()
    unknown = harness.wrap(dataclasses.replace(base, trained_on=None), "concat(pixels)")
    assert (unknown.trained_on, unknown.weights) == (None, A)


def test_a_network_that_the_wrapper_did_not_wrap_is_dropped(theirs):
    base = toy_descriptor(network=lambda: 1 / 0)
    assert harness.wrap(base, "half").network is None
    assert harness.wrap(base, "root").network is not None


def test_conventions_tell_the_wrappers(theirs):
    said = Conventions("k", 16, "none", "p")
    made = harness.wrap(toy_descriptor(conventions=said), "half(2)|renamed").conventions
    told = "none; then half(2): Half of each number, several times; then renamed"
    assert made == dataclasses.replace(said, normalisation=told)
    assert harness.wrap(toy_descriptor(), "half").conventions is None


# ---- records and tables


@pytest.mark.parametrize(
    "expression", ["mean|concat(pixels|root)|unit", "mean|concat(pixels|domain-size(0.5,1))"]
)
def test_a_record_of_a_wrapped_model_is_kept_and_enters_tables(tmp_path, expression):
    model = harness.wrap(toy_descriptor(), expression.partition("|")[2])
    (record,) = evaluation.evaluate(model, [toy_protocol()])
    assert record.model.name == expression
    file = results.save(tmp_path, record)
    assert not set(file.name) & set('|()<>:"/\\?*,')
    assert results.load(tmp_path) == [record]
    (board,) = boards.boards([record])
    (line,) = (text for text in boards.headline_table(board) if "mean" in text and "\\|" in text)
    assert line.count("|") - line.count("\\|") == boards.headline_table(board)[0].count("|")
    assert tables.write(tmp_path)


def test_two_expressions_with_one_file_name_are_not_mixed_up(tmp_path):
    (record,) = evaluation.evaluate(harness.wrap(toy_descriptor(), "root"), [toy_protocol()])
    results.save(tmp_path, record)
    (other,) = evaluation.evaluate(toy_descriptor("mean_root"), [toy_protocol()])
    with pytest.raises(ValueError, match=r"a record of another model \(mean\|root; this is mean_"):
        results.save(tmp_path, other)


def test_smaller_numbers_are_told_in_records_tables_and_bytes(tmp_path):
    model = harness.wrap(toy_descriptor(), "unit|int8")
    (record,) = evaluation.evaluate(model, [toy_protocol()])
    assert (record.model.stored, record.model.size, model.bytes) == ("int8", "8 int8", 8)
    results.save(tmp_path, record)
    assert results.load(tmp_path) == [record]
    (plain,) = evaluation.evaluate(toy_descriptor(), [toy_protocol()])
    assert plain.model.size == "8" and "stored" not in results.to_json(plain)


def test_a_model_that_declares_smaller_numbers_must_give_them():
    liar = toy_descriptor(stored="int8")
    with pytest.raises(ValueError, match=r"has the number .*, which int8 does not hold"):
        [*evaluation.evaluate(liar, [toy_protocol()])]
    with pytest.raises(ValueError, match="stored is 'int4', not None or one of"):
        toy_descriptor(stored="int4")


# ---- the command line


def test_a_list_of_models_is_divided_outside_of_parentheses(run, tmp_path):
    small = write_set(tmp_path / "small", LENGTHS, splits=SPLITS)
    status, _, err = run(
        "eval", "--model", "pixels|domain-size(0.5,1),pixels|root", "--protocol",
        "hpatches/matching", "--results", tmp_path / "results", "--data", small,
    )  # fmt: skip
    assert status == 0, err
    names = {record.model.name for record in results.load(tmp_path / "results")}
    assert names == {"pixels|domain-size(0.5,1)", "pixels|root"}


def test_a_wrapped_model_is_checked_like_any_other(run):
    status, out, _ = run(
        "check", "--model", "pixels|root,brief|central-surround", "--device", "cpu"
    )
    assert status == 0
    assert "pixels|root\n" in out and "BROKEN" not in out
    status, _, err = run("check", "--model", "pixels|rot")
    assert status == 2 and "did you mean 'root'?" in err


def test_every_wrapper_of_this_distribution_is_a_wrapper_with_a_sentence():
    from harness import wrapping

    for name in registry.names("wrappers"):
        found = wrapping.installed(name)
        assert found.wrap.__doc__ and found.revision >= 1
