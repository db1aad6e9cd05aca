"""Folders in any installed form become one training set."""

import json
from dataclasses import replace

import numpy as np
import pytest
from phototour_files import made_scene

from harness.data import datasets, training_sets
from harness.data.datasets import PublishedSet
from harness.data.photographs import Photograph
from protocols.hpatches import sample as hpatches
from protocols.phototour import sample as phototour
from protocols.romepatches import sample as romepatches


@pytest.fixture(scope="module")
def samples():
    return {
        "phototour": phototour.sample(),
        "romepatches": romepatches.sample(),
        "hpatches": hpatches.sample(),
    }


@pytest.mark.parametrize("form", ["phototour", "romepatches", "hpatches"])
def test_each_form_gives_all_its_patches_by_points(samples, form):
    found = training_sets.open_set(str(samples[form]))
    n = sum(len(block.read()) for block in found.blocks)
    assert n == len(found) == len(found.image)
    assert np.array_equal(np.unique(found.point), np.arange(found.point.max() + 1))
    assert np.bincount(found.point).min() >= 2
    assert found.sources and found.name.startswith(form)


def test_rome_gives_its_training_half_alone(samples):
    found = training_sets.open_set(str(samples["romepatches"]))
    assert found.sources == {"romepatches/train"}
    assert [block.name for block in found.blocks] == ["train"]


def test_hpatches_gives_no_sequence_that_it_tests(samples):
    from protocols.hpatches.reader import open_set

    found = training_sets.open_set(str(samples["hpatches"]))
    tested = open_set(samples["hpatches"], None).dataset
    assert not {b.name for b in found.blocks} & {b.name for b in tested.blocks}
    assert not found.sources & tested.sources


def test_chosen_strips_of_hpatches_are_read_alone(samples):
    folder = str(samples["hpatches"])
    every = training_sets.open_set(folder)
    (few,) = training_sets.open_sets([folder], {"strips": "easy+hard"})
    assert {b.name.partition("/")[2] for b in few.blocks} == {
        "ref", *(f"{level}{k}" for level in "eh" for k in range(1, 6))
    }  # fmt: skip
    patches = {b.name: b.sha256 for b in every.blocks}
    assert all(patches[b.name] == b.sha256 for b in few.blocks)
    assert len(few) * 16 == len(every) * 11
    assert set(np.bincount(few.point)) == {11} and np.ptp(few.image) == len(few.blocks) - 1
    assert few.sources == every.sources and few.sha256 != every.sha256
    assert few.split == f"{every.split}:ref,e1,e2,e3,e4,e5,h1,h2,h3,h4,h5"
    (all_named,) = training_sets.open_sets([folder], {"strips": "hard+tough+easy"})
    assert (all_named.sha256, all_named.split) == (every.sha256, every.split)


def test_an_option_goes_to_the_sets_whose_form_has_it(samples):
    both = [str(samples["phototour"]), str(samples["hpatches"])]
    scenes, few = training_sets.open_sets(both, {"strips": "easy"})
    assert len(few.blocks) * 16 == 6 * len(training_sets.open_set(both[1]).blocks)
    assert scenes.sha256 == training_sets.open_set(both[0]).sha256
    with pytest.raises(
        LookupError, match=r"data_options of .*: no option named 'strips'; known: none"
    ):
        training_sets.open_sets(both[:1], {"strips": "easy"})
    with pytest.raises(LookupError, match=r"no option named 'strip'; did you mean 'strips'\?"):
        training_sets.open_sets(both, {"strip": "easy"})


@pytest.mark.parametrize(
    ("strips", "told"),
    [
        ("easy+hart", "strips=easy\\+hart: no strip named 'hart'; did you mean 'hard'"),
        ("", "no strip named ''"),
        ("e1", "no strip named 'e1'"),
        ("easy+easy", "names a level twice"),
    ],
)
def test_levels_that_hpatches_does_not_have_are_refused(samples, strips, told):
    with pytest.raises((ValueError, LookupError), match=told):
        training_sets.open_sets([str(samples["hpatches"])], {"strips": strips})


@pytest.mark.parametrize("form", ["romepatches", "hpatches"])
def test_forms_that_keep_no_fingerprints_are_not_compared_with_tests(samples, form, tmp_path):
    with pytest.raises(ValueError, match=f"has the form {form}, which keeps nothing to compare"):
        training_sets.open_sets([str(samples[form])], tests=[tmp_path])


def test_several_are_one_set_in_which_no_point_and_no_image_is_shared(samples):
    folders = [str(samples["phototour"]), str(samples["romepatches"])]
    alone = [training_sets.open_set(folder) for folder in folders]
    both = training_sets.joined(alone)
    n = len(alone[0])
    assert len(both) == n + len(alone[1])
    for of_both, first, second in (
        (both.point, alone[0].point, alone[1].point),
        (both.image, alone[0].image, alone[1].image),
    ):
        np.testing.assert_array_equal(of_both[:n], first)
        assert len(np.unique(of_both)) == len(np.unique(first)) + len(np.unique(second))
    assert both.sources == alone[0].sources | alone[1].sources
    assert both.sha256 not in {one.sha256 for one in alone}


def test_one_photograph_is_one_in_all_sets_that_are_made_of_it(tmp_path):
    for name, files in {"one": "ab", "other": "bc"}.items():
        made_scene(tmp_path / name, seed=ord(files[0]), images=3)
        listed = [{"name": f"{file}.jpg", "sha256": file} for file in files]
        about = {"name": f"phototour-{name}", "images": listed}
        (tmp_path / name / "dataset.json").write_text(json.dumps(about))
    both = training_sets.joined(
        [training_sets.open_set(str(tmp_path / n)) for n in ("one", "other")]
    )
    assert both.photographs == ("a", "b", "", "b", "c", "")
    number = training_sets.photograph(both)
    assert len(np.unique(both.image)) == 6 and len(np.unique(number)) == 5
    a, b = (np.unique(number[both.image == image]) for image in (1, 3))
    assert len(a) == 1 and a == b
    plain = made_scene(tmp_path / "plain") and training_sets.open_set(str(tmp_path / "plain"))
    np.testing.assert_array_equal(training_sets.photograph(plain), plain.image)
    many = replace(plain, image=np.arange(len(plain)), photographs=())
    np.testing.assert_array_equal(training_sets.photograph(many), many.image)
    with pytest.raises(ValueError, match="names 1 photographs of 2 images"):
        training_sets.joined([replace(plain, photographs=("a",))])
    (tmp_path / "one" / "interest.txt").unlink()
    assert training_sets.open_set(str(tmp_path / "one")).photographs == ("",)


def test_all_photographs_of_a_training_set_are_known_or_none(tmp_path, monkeypatch):
    """Also those in which no point was found first: patches were cut from them, too."""
    for name, files in {"one": "abc", "other": "cd", "bare": ""}.items():
        made_scene(tmp_path / name, seed=ord(name[0]), images=2)
        listed = [{"name": f"{file}.jpg", "sha256": file} for file in files]
        about = {"name": f"phototour-{name}", "images": listed}
        (tmp_path / name / "dataset.json").write_text(json.dumps(about))
    one, other, bare = (training_sets.open_set(str(tmp_path / n)) for n in ("one", "other", "bare"))
    assert one.cut_from == {"a", "b", "c"} and bare.cut_from is None
    both = training_sets.joined([one, other])
    assert both.cut_from == {"a", "b", "c", "d"}
    assert training_sets.joined([one, bare]).cut_from is None
    shown = [Photograph(f"{9 - k}.jpg", "A", "CC0-1.0", "here", f) for k, f in enumerate("abcde")]
    for listed, wanted in ((shown, (*shown[3::-1],)), (shown[:3], ())):
        row = PublishedSet("x", "", "", (), "", "", {}, photographs=tuple(listed))
        monkeypatch.setattr(datasets, "known", lambda row=row: {"x": row})
        assert training_sets.cut_from(both) == wanted
        assert training_sets.cut_from(bare) == ()


def test_a_list_of_images_that_no_builder_wrote_is_refused(tmp_path):
    made_scene(tmp_path / "odd")
    (tmp_path / "odd" / "dataset.json").write_text('{"name": "phototour-odd", "images": ["a.jpg"]}')
    with pytest.raises(ValueError, match=r"dataset\.json does not list images as builders do"):
        training_sets.open_set(str(tmp_path / "odd"))


def test_what_is_no_training_set_is_refused_by_name(samples, tmp_path):
    with pytest.raises(ValueError, match=r"holds no training data in a known format \(hpat"):
        training_sets.open_set(str(tmp_path))
    with pytest.raises(ValueError, match="given twice"):
        training_sets.joined([training_sets.open_set(str(samples["phototour"]))] * 2)
    with pytest.raises(ValueError, match="no training data: give --data"):
        training_sets.joined([])
    with pytest.raises(LookupError, match="did you mean 'phototour/liberty'"):
        training_sets.open_set("phototour/libery")


def test_a_published_set_that_is_not_here_is_told_how_to_get(tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_DATA_HOME", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="harness data fetch phototour/liberty"):
        training_sets.open_set("phototour/liberty")
