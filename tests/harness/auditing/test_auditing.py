"""`harness audit`: an honest record holds; each thing that was changed in a record is found."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hpatches_files import LENGTHS, write_set
from phototour_files import made_scene
from toy import measured, toy_descriptor

import harness
from harness.auditing.running import choose
from harness.auditing.verdict import OTHER_MACHINES, TOTALS, Checked, Number, Verdict, compared
from harness.records import record as results

SPLITS = {"a": {"name": "a", "test": ["v_one", "i_one", "i_two", "v_two"], "train": ["v_three"]}}
LONGER = LENGTHS | {"v_three": 9}


@pytest.fixture(scope="module")
def hpatches(tmp_path_factory):
    return write_set(tmp_path_factory.mktemp("audit") / "small", LONGER, splits=SPLITS)


@pytest.fixture(scope="module")
def phototour(tmp_path_factory):
    root = tmp_path_factory.mktemp("audit") / "scenes"
    for number, name in enumerate(("castle", "street", "wall")):
        made_scene(root / name, 60, seed=number, images=4)
    return root


def record_of(protocol, data=None, model="meanstd", **options):
    (one,) = harness.evaluate([model], protocol, data=data, cache=False, **options)
    return one


def changed(record, **parts):
    """The record with other contents, as a forger writes it: {"scenes": {"v_one": {...}}}."""

    def merged(old, new):
        if not (isinstance(old, dict) and isinstance(new, dict)):
            return new
        return old | {key: merged(old.get(key), value) for key, value in new.items()}

    table = merged(json.loads(results.to_json(record)), parts)
    return results.Record.model_validate_json(json.dumps(table), strict=True)


def wrong(found):
    """Everything that an audit calls wrong: (scene or "totals", name of the number)."""
    return {
        (checked.name, number.name)
        for checked in (*found.scenes, found.totals)
        for number in checked.wrong
    }


ALL = {
    "hpatches/matching": ({}, {"whitening": "pcapl"}, {"ties": "official"}),
    "hpatches/verification": ({},),
    "hpatches/retrieval": ({}, {"whitening": "pcapl"}),
    "phototour": ({}, {"fpr95": "hardnet"}),
    "phototour/snn": ({},),
    "romepatches": ({}, {"ap": "step"}),
    "oxford": ({},),
    "hpatches-sequences": ({"seeds": 2, "keypoints": 90, "size": 200},),
}  # `eth` takes long; its parts keep the laws of protocols


@pytest.mark.parametrize(
    ("protocol", "options"), [(name, one) for name, some in ALL.items() for one in some]
)
def test_an_honest_record_holds(protocol, options, hpatches, phototour):
    data = {"hpatches": hpatches, "phototour": phototour}.get(protocol.partition("/")[0])
    record = record_of(protocol, data, **options)
    found = harness.audit(record, scenes=1, data=data)
    assert found.verdict is Verdict.EQUAL
    assert not found.facts and not found.machine and not found.unchecked
    assert sum(len(checked.numbers) for checked in found.scenes)
    whole = protocol == "hpatches/verification"
    assert found.whole is whole
    assert len(found.scenes) == (len(record.scenes) if whole else 1)
    numbers = [*record.scores, *record.intervals, *record.intervals]
    if len(found.scenes) == max(1, len(record.scenes)) and protocol != "romepatches":
        told = {n.name for checked in (*found.scenes, found.totals) for n in checked.numbers}
        assert {*record.scores} <= told and len(told) >= len(numbers)


def test_a_number_of_a_scene_that_was_changed_is_found_and_named(hpatches):
    honest = record_of("hpatches/matching", hpatches)
    for scene in honest.scenes:
        kept = honest.scenes[scene]["matching/hard/3/ap"]
        forged = changed(honest, scenes={scene: {"matching/hard/3/ap": kept + 0.01}})
        found = harness.audit(forged, scenes=4, data=hpatches)
        assert found.verdict is Verdict.WRONG
        assert (scene, "matching/hard/3/ap") in wrong(found)
        # A number that does not fit the others of its scene is found without running the scene.
        assert (TOTALS, f"{scene}: matching/hard/map") in wrong(found)


def test_a_forger_who_changes_everything_that_follows_is_found_by_running_the_scene(hpatches):
    honest = record_of("hpatches/retrieval", hpatches)
    opened = harness.load_protocol("hpatches/retrieval", data=hpatches)
    scenes = {name: dict(numbers) for name, numbers in honest.scenes.items()}
    for name in scenes["v_two"]:
        scenes["v_two"][name] *= 0.98
    of_scene = [x for name, x in scenes["v_two"].items() if name != "retrieval/map"]
    scenes["v_two"]["retrieval/map"] = float(np.mean(of_scene))
    summed = opened.parts.sum_up(harness.Scores({}, scenes))
    forged = changed(
        honest, scenes=scenes, scores=dict(summed.values), intervals=dict(summed.intervals)
    )
    for n in range(1, 5):
        found = harness.audit(forged, scenes=n, data=hpatches)
        assert found.totals.verdict is Verdict.EQUAL
        ran = "v_two" in [checked.name for checked in found.scenes]
        assert found.verdict is (Verdict.WRONG if ran else Verdict.EQUAL)
    assert {scene for scene, _ in wrong(found)} == {"v_two"}


@pytest.mark.parametrize("protocol", ["hpatches/matching", "hpatches/verification", "phototour"])
def test_a_total_and_an_interval_that_were_changed_are_found_whatever_is_run(
    protocol, hpatches, phototour
):
    data = phototour if protocol == "phototour" else hpatches
    honest = record_of(protocol, data)
    score = "mean/fpr95" if protocol == "phototour" else honest.protocol.headline
    forged = changed(honest, scores={score: honest.scores[score] * (1 - 1e-4)})
    forged = forged.model_copy(update={"intervals": {}})
    found = harness.audit(forged, scenes=1, data=data)
    assert (TOTALS, score) in wrong(found)
    assert any("interval" in name for _, name in wrong(found))  # they are missing
    some = next(
        name for name in sorted(honest.intervals) if name.endswith(score.rpartition("/")[2])
    )
    low, high = honest.intervals[some]
    forged = changed(honest, intervals={some: [low - 1e-4, high]})
    found = harness.audit(forged, scenes=3, data=data)
    named = {name for _, name in wrong(found)}
    assert f"{some}, lower end of the interval" in named
    assert f"{some}, upper end of the interval" not in named


def test_scores_and_scenes_that_the_data_do_not_have_are_named(hpatches):
    honest = record_of("hpatches/matching", hpatches)
    forged = changed(honest, scores={"matching/best": 1.0}, scenes={"v_more": {"x": 1.0}})
    found = harness.audit(forged, scenes=1, data=hpatches)
    assert (TOTALS, "matching/best") in wrong(found)
    assert found.facts == ("it has numbers of a scene v_more, which is not tested",)
    lost = honest.model_copy(
        update={"scenes": {k: v for k, v in honest.scenes.items() if k != "i_two"}}
    )
    found = harness.audit(lost, scenes=1, data=hpatches)
    assert found.facts == ("it lacks 'i_two', from which its totals follow",)
    assert found.verdict is Verdict.WRONG


def test_differences_of_other_machines_are_tolerated_and_larger_ones_are_not(hpatches):
    honest = record_of("hpatches/verification", hpatches)
    name = "verification/easy/inter/auc"  # which has no interval
    for difference, verdict in (
        (9e-9, Verdict.EQUAL),
        (5e-7, Verdict.CLOSE),
        (9e-6, Verdict.CLOSE),
        (2e-5, Verdict.WRONG),
    ):
        moved = changed(honest, scores={name: honest.scores[name] - difference})
        assert harness.audit(moved, data=hpatches).verdict is verdict
    # What follows from the record's own numbers is equal on every machine.
    honest = record_of("hpatches/matching", hpatches)
    name = "matching/hard/illum/map"
    moved = changed(honest, scores={name: honest.scores[name] - 5e-7})
    assert harness.audit(moved, data=hpatches).verdict is Verdict.WRONG


def test_numbers_of_a_random_search_may_differ_as_far_as_their_protocol_says():
    unsteady = {"auc-1px": 0.25, "corner_error_px": np.inf}

    def verdict(name, kept, found):
        numbers = [{name: x, "mma-1px": 0.5} if x is not None else {} for x in (kept, found)]
        numbers = [{"mma-1px": 0.5} | one for one in numbers]
        return Checked("a", compared(*numbers, unsteady)).verdict

    assert verdict("auc-1px", 0.4, 0.4) is Verdict.EQUAL
    assert verdict("auc-1px", 0.4, 0.4 + 5e-6) is Verdict.CLOSE
    assert verdict("auc-1px", 0.4, 0.6) is Verdict.UNSTEADY
    assert verdict("auc-1px", 0.4, 0.7) is Verdict.WRONG
    assert verdict("auc-1px", 0.4, None) is Verdict.WRONG
    assert verdict("auc-1px, lower end of the interval", 0.4, 0.6) is Verdict.UNSTEADY
    assert verdict("1-3/corner_error_px", 2.0, None) is Verdict.UNSTEADY
    assert verdict("mma-3px", 0.4, 0.41) is Verdict.WRONG
    both = [{"auc-1px": 0.4, "mma-3px": 0.5}, {"auc-1px": 0.5, "mma-3px": 0.6}]
    checked = Checked("a", compared(*both, unsteady))
    assert [[one.name for one in some] for some in (checked.wrong, checked.unsteady)] == [
        ["mma-3px"], ["auc-1px"],
    ]  # fmt: skip


def test_an_audit_tells_other_homographies_from_other_matches(run, tmp_path):
    honest = record_of("hpatches-sequences", keypoints=60)
    scene, number = "v_coffee", honest.scenes["v_coffee"]["auc-5px"]
    sequences = harness.load_protocol("hpatches-sequences", keypoints=60)

    def audited(**moved):
        scenes = {name: dict(numbers) for name, numbers in honest.scenes.items()}
        scenes[scene] |= moved
        summed = sequences.parts.sum_up(harness.Scores({}, scenes))
        record = changed(
            honest, scenes=scenes, scores=dict(summed.values), intervals=dict(summed.intervals)
        )
        (tmp_path / "theirs.json").write_text(results.to_json(record))
        return run("audit", tmp_path / "theirs.json", "--scenes", 6, "--set", "keypoints=60")

    status, said, _ = audited(**{"auc-5px": abs(number - 0.1)})
    assert status == 0 and "The record holds as far as can be told" in said
    assert f"decided by a random search: {scene}: auc-5px is" in said
    status, said, _ = audited(**{"mma-5px": honest.scenes[scene]["mma-5px"] - 0.01})
    assert status == 1 and f"wrong: {scene}: mma-5px is" in said


def test_the_difference_of_a_quantity_is_a_share_of_it():
    assert Number("points", 20000.0, 20001.0).difference == pytest.approx(5e-5)
    assert Number("ap", 0.5, 0.6).difference == pytest.approx(0.1)


# ---- the choice of scenes


def test_the_record_alone_chooses_the_scenes(hpatches):
    record = record_of("hpatches/matching", hpatches)
    names = [f"s{i}" for i in range(40)]
    first = choose(record, names, 5)
    assert choose(record, names, 5) == first and len(first) == 5
    assert set(choose(record, names, 3)) < set(first)
    assert sorted(choose(record, names[::-1], 5)) == sorted(first)
    assert choose(record, names, 5, "my own words") != first
    assert choose(record, names, 99) == names
    counts = dict.fromkeys(names, 0)
    for i in range(400):
        one = changed(record, model={"licence": f"licence {i}"})
        for name in choose(one, names, 10):
            counts[name] += 1
    assert np.abs(np.array([*counts.values()]) - 100).max() < 4.5 * np.sqrt(400 * 0.25 * 0.75)


def test_only_the_patches_that_a_scene_needs_are_described(hpatches):
    plain, seen = harness.load_model("meanstd"), []

    def counted(patches):
        seen.append(len(patches))
        return plain.describe(patches)

    model = replace(plain, describe=counted)
    for protocol, others in (("matching", 0), ("retrieval", 1)):
        record = record_of(f"hpatches/{protocol}", hpatches)
        seen.clear()
        found = harness.audit(record, scenes=1, data=hpatches, model=model)
        points = LONGER[found.scenes[0].name]
        every = sum(LONGER[name] for name in SPLITS["a"]["test"])
        assert sum(seen) == 9 + 16 * points + others * (every - points)  # 9 of the fingerprint


# ---- another model, other data, another version


def test_weights_that_are_not_the_records_are_refused_and_named(hpatches):
    one, other = (
        replace(harness.load_model("meanstd"), name="mine", weights=digit * 64) for digit in "ab"
    )
    record = record_of("hpatches/matching", hpatches, model=one)
    assert harness.audit(record, data=hpatches, model=one).verdict is Verdict.EQUAL
    with pytest.raises(
        ValueError, match=r"its sha256 of weights is aaaaaaaaaaaa, but that of mine is bb"
    ):
        harness.audit(record, data=hpatches, model=other)
    with pytest.raises(
        LookupError, match=r"a model 'mine', which is no installed name: .* --model"
    ):
        harness.audit(record, data=hpatches)
    stranger = replace(one, name="theirs")  # the same weights under another name
    assert harness.audit(record, data=hpatches, model=stranger).verdict is Verdict.EQUAL
    with pytest.raises(ValueError, match="its sha256 of weights is none, but"):
        harness.audit(record_of("hpatches/matching", hpatches), data=hpatches, model=one)


def test_weights_of_a_record_that_were_swapped_are_found(hpatches):
    """The record names the weights of one model, and has the numbers of another."""
    plain = harness.load_model("meanstd")
    one = replace(plain, name="one", weights="a" * 64)
    other = replace(
        plain, name="other", weights="b" * 64, describe=lambda p: plain.describe(p) ** 3
    )
    record = record_of("hpatches/matching", hpatches, model=other)
    forged = changed(record, model={"name": "one", "weights": "a" * 64})
    found = harness.audit(forged, scenes=1, data=hpatches, model=one)
    assert found.verdict is Verdict.WRONG
    assert found.scenes[0].wrong and found.totals.verdict is Verdict.EQUAL
    assert found.machine == ("the model's vectors of made-up patches differ in some bit",)


@pytest.mark.parametrize("name", ["{file}:run", "meanstd|concat({file}:run)", "{file}"])
def test_the_name_in_a_record_loads_no_file(name, hpatches, tmp_path):
    file = tmp_path / "theirs.py"
    file.write_text("raise SystemExit('this ran')")
    record = record_of("hpatches/matching", hpatches)
    with pytest.raises(LookupError, match="which is no installed name"):
        harness.audit(changed(record, model={"name": name.format(file=file)}), data=hpatches)


def test_a_record_of_a_wrapped_model_holds(hpatches):
    record = record_of("hpatches/matching", hpatches, model="pixels|signs")
    assert record.model.name == "pixels|signs"
    assert harness.audit(record, scenes=1, data=hpatches).verdict is Verdict.EQUAL


def test_a_model_without_weights_is_told_by_its_name(hpatches):
    record = record_of("hpatches/matching", hpatches)
    dim = harness.load_model("pixels").dim
    with pytest.raises(ValueError, match=r"its name is meanstd, but that of pixels is pixels"):
        harness.audit(changed(record, model={"dim": dim}), data=hpatches, model="pixels")


def test_other_data_are_refused_and_named(hpatches, tmp_path):
    record = record_of("hpatches/matching", hpatches)
    other = write_set(tmp_path / "small", LONGER, splits=SPLITS, seed=1)
    with pytest.raises(
        ValueError, match=r"of other data: of hpatches-small, split a, sha256 \w{12};"
    ):
        harness.audit(record, data=other)
    sampled = changed(record_of("romepatches"), data={"sha256": "0" * 64})
    with pytest.raises(ValueError, match=r"of other data.*; the sample is romepatches-sample"):
        harness.audit(sampled)
    with pytest.raises(ValueError, match=r"of hpatches-small, split a: give the folder"):
        harness.audit(record)


def test_the_data_of_a_record_that_were_swapped_are_found(hpatches, tmp_path):
    """The record names one set, and has the numbers of another."""
    other = write_set(tmp_path / "small", LONGER, splits=SPLITS, seed=1)
    record = record_of("hpatches/matching", other)
    true = record_of("hpatches/matching", hpatches)
    forged = changed(record, data={"sha256": true.data.sha256})
    found = harness.audit(forged, scenes=1, data=hpatches)
    assert found.verdict is Verdict.WRONG and found.scenes[0].wrong


def test_the_data_are_found_by_the_environment(hpatches, monkeypatch):
    record = record_of("hpatches/matching", hpatches)
    monkeypatch.setenv("HARNESS_DATA", str(hpatches))
    assert harness.audit(record).verdict is Verdict.EQUAL


def test_a_record_of_an_older_version_is_told_so(hpatches):
    record = record_of("hpatches/matching", hpatches)
    older = changed(record, protocol={"version": record.protocol.version - 1})
    with pytest.raises(ValueError, match=r"of version 2 of hpatches/matching, .* has version 3"):
        harness.audit(older, data=hpatches)


def test_a_protocol_that_is_not_installed_is_told_with_the_nearest_name():
    (record,) = measured()
    with pytest.raises(LookupError, match="no protocol named 'toy/verification'"):
        harness.audit(record, model=toy_descriptor())


def test_facts_that_tables_show_are_compared(hpatches):
    model = replace(
        harness.load_model("meanstd"), name="mine", weights="a" * 64,
        trained_on=frozenset({"hpatches-small/v_one"}),
    )  # fmt: skip
    record = record_of("hpatches/matching", hpatches, model=model)
    assert record.data.seen_in_training
    forged = changed(record, model={"trained_on": []}, data={"seen_in_training": False})
    found = harness.audit(forged, data=hpatches, model=model)
    assert found.verdict is Verdict.WRONG and not wrong(found)
    assert [fact.partition(" ")[0] for fact in found.facts] == [
        "data.seen_in_training", "model.trained_on",
    ]  # fmt: skip


def test_a_record_without_scores_on_its_training_data_holds(phototour):
    model = replace(
        harness.load_model("meanstd"), name="mine", weights="a" * 64,
        trained_on=frozenset({"phototour/wall"}),
    )  # fmt: skip
    record = record_of("phototour", phototour, model=model)
    assert record.data.refused == ["wall"]
    found = harness.audit(record, scenes=9, data=phototour, model=model)
    assert found.verdict is Verdict.EQUAL
    assert [checked.name for checked in found.scenes] == ["castle", "street"]
    forged = changed(record, scores={"mean/fpr95": 0.5})  # there is no mean without one scene
    assert (TOTALS, "mean/fpr95") in wrong(
        harness.audit(forged, scenes=1, data=phototour, model=model)
    )
    forged = changed(record, scores={"wall/fpr95": 0.01}, scenes={"wall": {"fpr95": 0.01}})
    found = harness.audit(forged, scenes=1, data=phototour, model=model)
    assert (TOTALS, "wall/fpr95") in wrong(found)
    assert found.facts == ("it has numbers of a scene wall, which is not tested",)


def test_an_interval_over_runs_needs_all_scenes():
    record = record_of("eth", repeats=2)
    found = harness.audit(record, scenes=1)  # the sample has one scene, so all are run
    assert found.whole and found.verdict is Verdict.EQUAL
    assert {name for name in (n.name for n in found.totals.numbers) if "interval" in name}


# ---- the command line


@pytest.fixture
def file(hpatches, tmp_path):
    def write(record):
        path = tmp_path / "theirs.json"
        path.write_text(results.to_json(record))
        return path

    return write


def test_the_exit_status_says_whether_the_record_holds(run, file, hpatches):
    honest = record_of("hpatches/matching", hpatches)
    status, said, _ = run("audit", file(honest), "--data", hpatches, "--scenes", 2)
    assert status == 0
    assert "meanstd on hpatches/matching, hpatches-small, split a: 2 of 4 scenes run again" in said
    assert "The record holds: its numbers are equal to 1e-08." in said
    name = "matching/hard/illum/map"
    low = honest.scores[name] - 0.01
    forged = file(changed(honest, scores={name: low}))
    status, said, _ = run("audit", forged, "--data", hpatches)
    assert status == 1
    assert f"wrong: totals: {name} is {low!r}; " in said and "The record is wrong." in said
    status, _, told = run(
        "audit", file(changed(honest, protocol={"version": 2})), "--data", hpatches
    )
    assert status == 2 and "is of version 2 of hpatches/matching" in told
    status, _, told = run("audit", "nowhere.json")
    assert status == 2 and "nowhere.json" in told


def test_a_program_reads_the_audit_as_json(run, file, hpatches):
    honest = record_of("hpatches/verification", hpatches)
    name = "verification/easy/inter/ap"
    scenes = {"i_one": {name: 0.123}}
    status, said, _ = run(
        "audit", file(changed(honest, scenes=scenes)), "--data", hpatches, "--json"
    )
    assert status == 1
    found = json.loads(said)
    assert found["verdict"] == "wrong" and found["whole"] is True
    assert found["scenes"]["i_one"]["wrong"] == [
        {"name": name, "record": 0.123, "found": honest.scenes["i_one"][name]}
    ]
    assert found["scenes"]["i_two"]["verdict"] == "equal"
    assert found["totals"]["tolerance"] == OTHER_MACHINES
