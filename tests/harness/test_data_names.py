"""Names of training data, however they are written."""

import dataclasses
import doctest
import json

import pytest
from checkout import ROOT
from packages import installed
from toy import toy_dataset, toy_descriptor, toy_protocol

from harness import data_names, registry
from harness.data import datasets
from harness.data_names import Family, known, of
from harness.evaluation import evaluate
from harness.records import leaderboard
from protocols.data_names import FAMILIES
from protocols.eth.scenes import PUBLISHED
from protocols.hpatches.reader import MADE, OFFICIAL
from protocols.oxford.reader import EIGHT
from protocols.phototour import scenes
from protocols.romepatches.reader import HALVES

NAMES = of(FAMILIES)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("HPatches", "hpatches"), ("h-patches", "hpatches"), ("hpatches-release", "hpatches"),
        ("HPatches/V_Wall", "hpatches/v_wall"), ("v_wall", "hpatches/v_wall"),
        ("hpatches/v_wall/e3", "hpatches/v_wall/e3"),
        ("liberty", "phototour/liberty"), ("Liberty", "phototour/liberty"),
        ("UBC/liberty", "phototour/liberty"), ("phototour/Liberty", "phototour/liberty"),
        ("brown/liberty", "phototour/liberty"), ("phototour-liberty", "phototour/liberty"),
        ("UBC PhotoTour Liberty", "phototour/liberty"), (" liberty\n", "phototour/liberty"),
        ("photo-tour", "phototour"), ("phototour/", "phototour"),
        ("Photo Tour", "phototour"), ("Brown", "phototour"),
        ("Notre-Dame", "phototour/notredame"), ("Yosemite_Harris", "phototour/yosemite_harris"),
        ("phototour/liberty/train", "phototour/liberty/train"),
        ("Brown/castle", "phototour/castle"), ("phototour/my-scene", "phototour/my-scene"),
        ("rome", "romepatches"), ("Rome/train", "romepatches/train"),
        ("oxford/graffiti", "oxford/graf"), ("oxford_affine/graf", "oxford/graf"),
        ("ETH", "eth"), ("eth/Fountain-P11", "eth/fountain"),
        ("hpatches-mini", "hpatches-mini"), ("hpatches-built-x/v_a", "hpatches-built-x/v_a"),
        ("other/MegaDepth", "other/MegaDepth"), ("Other/my own", "other/my own"),
    ],
)  # fmt: skip
def test_every_way_to_write_a_name_leads_to_the_same(written, name):
    assert NAMES.canonical(written) == name


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("hpatchs", "did you mean 'hpatches'?"),
        ("libery", "did you mean 'phototour/liberty'?"),
        ("phototour/libery", "did you mean 'phototour/liberty'?"),
        ("phototour/liberty-train", "did you mean 'phototour/liberty'?"),
        ("phototour/liberty2", "did you mean 'phototour/liberty'?"),
        ("phototour-libery/x", "did you mean 'phototour/liberty'?"),
        ("hpatches/v_wal", "did you mean 'hpatches/v_wall'?"),
        ("hpatches/a", "did you mean 'hpatches'?"),
        ("phototourism", "did you mean 'phototour'?"),
        ("graf", "did you mean 'oxford/graf'?"),
        ("eth/fountan", "did you mean 'eth/fountain'?"),
        ("romepatches/v_wall", "did you mean 'hpatches/v_wall'?"),
        ("MegaDepth", "named 'other/MegaDepth'"),
        ("other/liberty", "did you mean 'phototour/liberty'?"),
        ("other/UBC/Liberty", "did you mean 'phototour/liberty'?"),
        ("other/", "named 'other/NAME'"),
        ("null", "named 'other/null'"),
    ],
)  # fmt: skip
def test_an_unknown_name_is_answered_with_the_nearest_one_and_a_way_out(written, hint):
    assert NAMES.canonical(written) is None
    assert hint in NAMES.hint(written)


@pytest.mark.parametrize(
    ("trained", "tested", "met"),
    [
        ("hpatches", "hpatches/v_wall", True),
        ("hpatches/v_wall", "hpatches", True),
        ("hpatches/v_wall", "hpatches/v_wall", True),
        ("hpatches/v_wall", "hpatches/v_walls", False),
        ("phototour/liberty", "phototour/yosemite", False),
        ("HPATCHES", "hpatches/v_wall", True),
        ("UBC", "phototour/castle", True),
        ("Field/A", "field/a", True),
        ("hpatches-split/v_wall", "hpatches/v_wall", True),
        ("eth/fountain", "eth/Fountain-P11", True),
        ("photos/house", "other/photos/house", True),
        ("other/x", "other/y", False),
    ],
)
def test_training_meets_test_data_by_name_or_by_part(trained, tested, met):
    assert NAMES.meet({trained}, {tested, "another"}) is met


def test_names_of_the_tested_data_and_their_neighbours_are_known_without_a_protocol_saying_so():
    assert NAMES.unknown({"field/b", "Field", "feild/b"}, {"field/a"}) == ["feild/b"]


def test_every_published_part_of_a_protocol_is_named():
    parts = {family.name: set(family.parts) for family in FAMILIES}
    assert parts["hpatches"] == set(OFFICIAL["lengths"])
    assert parts["phototour"] == set(scenes.OFFICIAL)
    assert parts["romepatches"] == set(HALVES)
    assert parts["oxford"] == set(EIGHT)
    assert all(NAMES.canonical(f"eth/{begin}").startswith(f"eth/{begin}") for begin in PUBLISHED)
    assert {"hpatches-sample", "hpatches-mini"} == {*MADE} - {"hpatches-built-NAME"}


def test_every_name_of_the_list_of_data_sets_is_known():
    assert [name for name in datasets.known() if NAMES.canonical(name) is None] == []


def test_no_way_to_write_a_name_means_two_things():
    said = {}
    for family in FAMILIES:
        for letters, name in of([family]).written.items():
            said.setdefault(letters, set()).add(name)
    assert {letters: names for letters, names in said.items() if len(names) > 1} == {}


def test_what_comes_along_was_trained_on_data_that_are_known():
    cards = [json.loads(file.read_text()) for file in (ROOT / "zoo" / "weights").glob("*.json")]
    names = {name for card in cards for name in card["trained_on"]}
    assert names and all(NAMES.canonical(name) == name for name in names)


def test_a_package_brings_names_by_an_entry_point(tmp_path):
    assert "published" in registry.names("data_names")
    assert known() == NAMES
    source = "from harness.data_names import Family\nOURS = [Family('megadepth', ('MD',))]\n"
    with installed(tmp_path, "theirs", source, data_names={"ours": "OURS"}):
        assert known().canonical("MD/scene-1") is None  # it does not grow
        assert known().canonical("Mega-Depth") == "megadepth"


@pytest.mark.parametrize("source", ["OURS = 3", "OURS = ['megadepth']", "import no_such"])
def test_a_package_with_wrong_names_is_told_of_and_left_out(tmp_path, source, caplog):
    with installed(tmp_path, "theirs", source, data_names={"ours": "OURS"}):
        assert known() == NAMES
    assert "'ours' of theirs 1.0" in caplog.text


def row_of(trained_on):
    dataset = toy_dataset(sources=frozenset({"hpatches/v_wall"}))
    model = toy_descriptor("m", trained_on=trained_on)
    (record,) = evaluate(model, [toy_protocol(dataset=dataset)])
    (board,) = leaderboard.boards([record])
    return record, leaderboard.headline_table(board)


@pytest.mark.parametrize(
    ("trained_on", "kept", "sign"),
    [
        ({"HPatches"}, ["hpatches"], " †"),
        ({"V_wall", "liberty"}, ["hpatches/v_wall", "phototour/liberty"], " †"),
        ({"UBC/liberty", "Liberty"}, ["phototour/liberty"], ""),
        ({"libery", "Rome"}, ["libery", "romepatches"], " ?"),
        ({"libery", "HPatches"}, ["hpatches", "libery"], " †"),
        ({"other/mine"}, ["other/mine"], ""),
        (set(), [], ""),
    ],
)
def test_a_row_is_marked_however_its_training_data_are_written(trained_on, kept, sign):
    record, lines = row_of(frozenset(trained_on))
    assert record.model.trained_on == kept
    assert lines[2].startswith(f"| m{sign} | 8 |")
    assert record.data.unknown_in_training == [name for name in kept if name == "libery"]


def test_an_unknown_name_is_told_once_with_what_was_meant(caplog):
    model = toy_descriptor("m", trained_on=frozenset({"libery"}))
    list(evaluate(model, [toy_protocol(), toy_protocol("matching")]))
    (said,) = caplog.messages
    assert said.startswith("m says that it was trained on 'libery', which no protocol knows")
    assert "did you mean 'phototour/liberty'?" in said


def test_a_record_of_known_training_data_has_no_field_for_unknown_ones():
    record, _ = row_of(frozenset({"liberty"}))
    assert "unknown_in_training" not in record.model_dump()["data"]


def test_a_family_is_found_by_the_letters_and_digits_of_its_name():
    names = of([Family("tour3", parts={"a_1": ("first",)})])
    assert names.canonical("Tour-3/A1") == names.canonical("TOUR3 first") == "tour3/a_1"
    assert names.canonical("a_1") is None  # too little to know by
    assert dataclasses.replace(names) == names


def test_the_examples_are_right():
    assert doctest.testmod(data_names).failed == 0
