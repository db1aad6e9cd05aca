"""Learned parameters: what `fit` writes, and which models the file fits."""

import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest
import safetensors.numpy
from fitted import fitted, of_patches
from phototour_files import made_scene
from toy import toy_descriptor

import harness
from harness import parameters
from harness.parameters import KEY, About, FittedModel, TrainingSet

PATCHES = np.random.default_rng(0).integers(0, 256, (30, 16, 16), dtype=np.uint8)
A = "a" * 64


@pytest.fixture
def file(tmp_path):
    return harness.fit(toy_descriptor(), "thresholds", [of_patches(PATCHES)], tmp_path / "own.st")


# ---- what is written


def test_the_file_says_what_it_was_learned_from(file):
    about = parameters.read(file).about
    model = FittedModel(name="mean", weights=None, revision=1, dim=8, distance="l2")
    data = of_patches(PATCHES)
    assert about == About(
        wrapper="thresholds",
        revision=1,
        model=model,
        trained_on=("toy/scene",),
        data=(TrainingSet(name="toy-training", sha256=data.sha256),),
        patches=30,
        options={},
    )


def test_the_same_vectors_give_the_same_bytes(file, tmp_path):
    again = harness.fit(
        toy_descriptor(), "thresholds", [of_patches(PATCHES)], tmp_path / "again", batch_size=7
    )
    assert again.read_bytes() == file.read_bytes()


def test_several_sets_are_learned_from_together(tmp_path):
    parts = [of_patches(PATCHES[:10], "one"), of_patches(PATCHES[10:], "two")]
    harness.fit(toy_descriptor(), "thresholds", parts, tmp_path / "both")
    harness.fit(toy_descriptor(), "thresholds", [of_patches(PATCHES)], tmp_path / "all")
    both, everything = (parameters.read(tmp_path / name) for name in ("both", "all"))
    assert [each.name for each in both.about.data] == ["one", "two"]
    assert np.array_equal(both.arrays["threshold"], everything.arrays["threshold"])


def test_what_learns_nothing_says_so(tmp_path):
    with pytest.raises(ValueError, match=r"signs learns nothing from data: write MODEL\|signs"):
        harness.fit(toy_descriptor(), "signs", [of_patches(PATCHES)], tmp_path / "x")


def test_options_of_a_fit_are_checked(tmp_path):
    given = (toy_descriptor(), "pcapl", [of_patches(PATCHES)], tmp_path / "x")
    with pytest.raises(LookupError, match="no option named 'keep'; did you mean 'kept'"):
        harness.fit(*given, keep=0.5)
    with pytest.raises(ValueError, match="fit of pcapl: kept is 2"):
        harness.fit(*given, kept=2.0)


# ---- which models it fits


def test_the_wrapped_model_has_weights_and_data_of_both(tmp_path):
    base = toy_descriptor(weights=A, trained_on=frozenset({"a/a"}))
    made = fitted(base, "thresholds", tmp_path / "mine.safetensors", PATCHES)
    sha256 = hashlib.sha256((tmp_path / "mine.safetensors").read_bytes()).hexdigest()
    assert made.name == "mean|thresholds(mine)"
    assert made.weights == hashlib.sha256(f"{A} {sha256}".encode()).hexdigest()
    assert made.trained_on == {"a/a", "toy/scene"}
    bare = fitted(toy_descriptor(), "thresholds", tmp_path / "mine.safetensors", PATCHES)
    assert (bare.weights is None, bare.trained_on) == (False, {"toy/scene"})
    unknown = fitted(replace(base, trained_on=None), "thresholds", tmp_path / "x", PATCHES)
    assert unknown.trained_on is None


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"name": "other"}, "was fitted for mean, not for other"),
        ({"weights": A}, "fitted for mean weights None, not for mean weights aaaaaaaaaaaa"),
        ({"revision": 2}, "fitted for mean revision 1, not for mean revision 2"),
    ],
)
def test_a_file_of_another_model_is_refused(file, change, told):
    with pytest.raises(ValueError, match=told) as error:
        harness.wrap(replace(toy_descriptor(), **change), f"thresholds({file})")
    name = change.get("name", "mean")
    assert f'harness fit --model "{name}|thresholds" --data DIR' in str(error.value)


def test_a_file_is_for_the_model_with_its_wrappers_before(tmp_path):
    before = harness.wrap(toy_descriptor(), "unit")
    made = fitted(before, "thresholds", tmp_path / "own", PATCHES)
    assert made.name == "mean|unit|thresholds(own)"
    with pytest.raises(ValueError, match=r"was fitted for mean\|unit, not for mean"):
        harness.wrap(toy_descriptor(), f"thresholds({tmp_path / 'own'})")


def test_a_file_of_another_wrapper_is_refused(file):
    with pytest.raises(ValueError, match="is for the wrapper thresholds, not for pcapl"):
        harness.wrap(toy_descriptor(), f"pcapl({file})")


def test_a_file_of_another_revision_is_refused(file, tmp_path):
    found = parameters.read(file)
    older = found.about.model_copy(update={"revision": 7})
    parameters.write(tmp_path / "old", older, found.arrays)
    with pytest.raises(ValueError, match="is for revision 7 of thresholds, which has revision 1"):
        harness.wrap(toy_descriptor(), f"thresholds({tmp_path / 'old'})")


# ---- damaged files


def test_a_missing_file_is_told():
    with pytest.raises(FileNotFoundError, match=r"there is no file of parameters none\.st"):
        harness.wrap(toy_descriptor(), "thresholds(none.st)")


def other_metadata(contents):
    return safetensors.numpy.save({"threshold": np.zeros(8)}, {"a": "b"})


def changed(**change):
    def change_(contents):
        size = int.from_bytes(contents[:8], "little")
        about = json.loads(json.loads(contents[8 : 8 + size])["__metadata__"][KEY]) | change
        return safetensors.numpy.save({"threshold": np.zeros(8)}, {KEY: json.dumps(about)})

    return change_


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda contents: b"", "is not a safetensors file"),
        (lambda contents: contents[:50], "is not a safetensors file"),
        (lambda contents: contents[:-1], "is not a safetensors file"),
        (lambda contents: b"{}", "is not a safetensors file"),
        (other_metadata, "was not written by harness fit: it has no"),
        (changed(patches=0), "is not valid .*patches.*: fit the file again"),
        (changed(more=1), "is not valid .*more.*: fit the file again"),
    ],
)
def test_a_damaged_file_is_refused_by_name(file, damage, told):
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(ValueError, match=f"own.st.*{told}"):
        harness.wrap(toy_descriptor(), f"thresholds({file})")


@pytest.mark.parametrize(
    ("arrays", "told"),
    [
        ({}, "is missing"),
        ({"threshold": np.zeros(7)}, r"is float64 \[7\]; finite numbers \[8\]"),
        ({"threshold": np.full(8, np.nan)}, "finite numbers"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(file, tmp_path, arrays, told):
    parameters.write(tmp_path / "bad", parameters.read(file).about, arrays)
    with pytest.raises(ValueError, match=f"the array 'threshold' .*{told}"):
        harness.wrap(toy_descriptor(), f"thresholds({tmp_path / 'bad'})")


# ---- the command line


def test_a_file_of_the_command_is_used_by_the_name_that_it_prints(run, tmp_path):
    made_scene(tmp_path / "scene")
    out = tmp_path / "own.safetensors"
    status, said, err = run(
        "fit", "--model", "pixels|root|pcapl", "--data", tmp_path / "scene", "--out", out,
        "--set", "kept=0.5",
    )  # fmt: skip
    assert status == 0, err
    expression = said.partition("--model ")[2].strip().strip("'")
    assert expression == f"pixels|root|pcapl({out})"
    model = harness.load_model(expression, device="cpu")
    assert model.name == "pixels|root|pcapl(own)"
    assert parameters.read(out).about.options == {"kept": 0.5}
    assert model.trained_on == {*parameters.read(out).about.trained_on} != set()


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ("pixels", "does not end with a wrapper without arguments"),
        ("pixels|pcapl(x)", "does not end with a wrapper without arguments"),
        ("pixels|pcap", "did you mean 'pcapl'"),
        ("pixels|root", "root learns nothing"),
        ("brief|pcapl", "those of brief are compared by hamming"),
        ("tfeat|pcapl", "is a family of models"),
    ],
)
def test_a_fit_that_can_not_be_is_refused_before_any_work(run, tmp_path, model, told):
    status, out, err = run("fit", "--model", model, "--data", "nowhere", "--out", tmp_path / "x")
    assert (status, out) == (2, "")
    assert told in err
    assert not [*tmp_path.iterdir()]
