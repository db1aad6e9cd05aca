import json
from dataclasses import replace
from importlib.metadata import version

import numpy as np
import pytest
from checkout import ROOT
from toy import toy_dataset, toy_descriptor, toy_protocol

from harness import Quantity
from harness.evaluation import evaluate
from harness.records import record as results

HEADLINE = "verification/ap"
COUNTED = {
    "name": "toy",
    "version": 1,
    "headline": "points",
    "quantities": {"points": {"decimals": 0}},
}


def one_record():
    (record,) = evaluate(toy_descriptor(), [toy_protocol()])
    return record


def test_a_saved_record_reads_equal(tmp_path):
    record = one_record()
    assert results.read(results.save(tmp_path, record)) == record


def test_the_same_run_writes_the_same_bytes(tmp_path):
    written = {results.save(tmp_path, one_record()).read_bytes() for _ in range(2)}
    assert len(written) == 1


def test_a_record_lives_below_protocol_data_and_split(tmp_path):
    file = results.save(tmp_path, one_record())
    assert file == tmp_path / "records/toy/verification/toy-data/all/mean.json"


def test_a_record_of_other_options_lives_in_a_folder_of_theirs(tmp_path):
    options = {"whitening": "pca", "ties": "official"}
    (record,) = evaluate(toy_descriptor(), [replace(toy_protocol(), options=options)])
    assert record.protocol.options == options
    assert record.protocol.title == "toy/verification (ties=official,whitening=pca)"
    folder = tmp_path / "records/toy/verification/toy-data/all/ties=official,whitening=pca"
    assert results.save(tmp_path, record) == folder / "mean.json"
    results.must_be_free(tmp_path, toy_descriptor(weights="2" * 64), toy_protocol())


@pytest.mark.parametrize("options", [{"a/b": "c"}, {"a": ".."}, {"a": "b,c=d"}, {"a": ""}])
def test_no_option_leads_out_of_the_results(tmp_path, options):
    (record,) = evaluate(toy_descriptor(), [replace(toy_protocol(), options=options)])
    with pytest.raises(ValueError, match="can't be kept under"):
        results.save(tmp_path, record)


def test_what_cannot_change_a_number_is_kept_apart(tmp_path):
    file = results.save(tmp_path, one_record())
    before = file.read_bytes()
    results.save_run(file, {"host": "here"})
    assert file.read_bytes() == before
    assert results.load(tmp_path) == [one_record()]


def test_nan_is_never_written():
    record = one_record()
    with pytest.raises(ValueError, match="finite"):
        results.Record.model_validate(
            {**record.model_dump(), "scores": {"verification/ap": float("nan")}}
        )


@pytest.mark.parametrize(
    ("spoil", "field"),
    [
        (lambda r: r | {"more": 1}, "more"),
        (lambda r: r | {"scores": {"ap": "high"}}, "scores.ap"),
        (lambda r: {k: v for k, v in r.items() if k != "data"}, "data"),
        (lambda r: r | {"data": r["data"] | {"sha256": "abc"}}, "data.sha256"),
        (lambda r: r | {"scores": {"ap": 7e300}}, r"scores\.ap is 7e\+300; a fraction is from 0"),
        (lambda r: r | {"scores": {"ap": -0.1}}, r"scores\.ap is -0\.1; a fraction"),
        (lambda r: r | {"scores": {"ap": 1.01}}, r"scores\.ap is 1\.01; a fraction"),
        (lambda r: r | {"scores": {"ap": float("nan")}}, r"scores\.ap.*finite"),
        (lambda r: r | {"scores": {"ap": 10**400}}, r"scores\.ap"),
        (lambda r: r | {"scores": {"ap": "0.5"}}, r"scores\.ap.*valid number"),
        (lambda r: r | {"scores": {"ap": True}}, r"scores\.ap.*valid number"),
        (lambda r: r | {"scores": {}}, "scores"),
        (
            lambda r: r | {"scores": {"points": -1}, "protocol": COUNTED},
            r"scores\.points is -1; a quantity is from 0",
        ),
        (lambda r: r | {"scores": {"points": 7e300}, "protocol": COUNTED}, r"points is 7e\+300"),
        (
            lambda r: r | {"protocol": COUNTED | {"quantities": {"points": {"decimals": 10**9}}}},
            "decimals is 1000000000",
        ),
        (lambda r: r | {"protocol": r["protocol"] | {"version": 0}}, r"protocol\.version"),
        (lambda r: r | {"intervals": {HEADLINE: [5, 1]}}, f"intervals.{HEADLINE}, lower end, is 5"),
        (
            lambda r: r | {"intervals": {HEADLINE: [0.9, 0.1]}},
            "its ends are swapped",
        ),
        (
            lambda r: r | {"intervals": {HEADLINE: [0, 0.001]}},
            r"is outside of it",
        ),
        (lambda r: r | {"intervals": {HEADLINE: [0, 1, 2]}}, r"intervals\."),
        (
            lambda r: r | {"intervals": {"other/ap": [0, 1]}},
            "there is no such score",
        ),
        (lambda r: r | {"scenes": {"s": {"ap": 2}}}, r"scenes\.s\.ap is 2; a fraction"),
        (lambda r: r | {"model": r["model"] | {"dim": -5}}, r"model\.dim"),
        (lambda r: r | {"model": r["model"] | {"dim": "8"}}, r"model\.dim.*valid integer"),
        (lambda r: r | {"model": r["model"] | {"dim": 10**20}}, r"model\.dim"),
        (lambda r: r | {"model": r["model"] | {"name": ""}}, r"model\.name"),
        (lambda r: r | {"model": r["model"] | {"distance": "l1"}}, r"model\.distance"),
        (lambda r: r | {"data": r["data"] | {"patches": -1}}, r"data\.patches"),
        (lambda r: r | {"data": r["data"] | {"refused": ["x"]}}, "'x' is none of the cells"),
        (lambda r: [r], "file"),
    ],
)
def test_a_file_that_is_no_record_is_named_with_its_field(tmp_path, spoil, field):
    file = results.save(tmp_path, one_record())
    file.write_text(json.dumps(spoil(json.loads(file.read_text()))))
    with pytest.raises(ValueError, match=rf"mean\.json is not a record.*{field}"):
        results.load(tmp_path)


@pytest.mark.parametrize("text", ["", "[" * 200_000, "null", "9" * 5000, "\x00", '{"form": 1'])
def test_a_file_of_anything_is_named(tmp_path, text):
    file = results.save(tmp_path, one_record())
    file.write_text(text)
    with pytest.raises(ValueError, match=r"mean\.json is not a record"):
        results.load(tmp_path)


def test_rounding_may_lead_a_score_a_little_out_of_its_range(tmp_path):
    record = one_record().model_dump()
    record |= {"scores": {HEADLINE: 1.0000000000000009}, "intervals": {HEADLINE: (0.5, 1.0)}}
    read = results.Record.model_validate(record)
    assert results.read(results.save(tmp_path, read)) == read


def test_the_interval_of_a_quantity_may_lie_beside_its_mean():
    record = one_record().model_dump()
    record |= {"protocol": COUNTED, "scores": {"points": 97.6}, "intervals": {"points": (100, 100)}}
    assert results.Record.model_validate(record).scores["points"] == 97.6


def test_every_record_that_comes_along_is_read_and_written_the_same():
    root = ROOT / "results"
    records = results.load(root)
    assert records
    for record in records:
        assert results.to_json(record).encode() == results.place(root, record).read_bytes()


def test_a_cut_off_file_is_named(tmp_path):
    file = results.save(tmp_path, one_record())
    file.write_bytes(file.read_bytes()[:50])
    with pytest.raises(ValueError, match=r"mean\.json is not a record"):
        results.load(tmp_path)


def test_a_record_of_other_contents_is_not_replaced(tmp_path):
    results.save(tmp_path, one_record())
    other = replace(toy_protocol(), dataset=toy_dataset(truth="other"))
    (record,) = evaluate(toy_descriptor(), [other])
    with pytest.raises(ValueError, match=r"mean\.json is a record of other data"):
        results.save(tmp_path, record)


def test_a_record_of_another_model_is_not_replaced(tmp_path):
    for name in ("a:b", "a/b"):  # both make the file name a_b
        (record,) = evaluate(toy_descriptor(name), [toy_protocol()])
        if name == "a:b":
            results.save(tmp_path, record)
    with pytest.raises(ValueError, match="is a record of another model"):
        results.save(tmp_path, record)


def test_a_record_of_other_weights_is_not_replaced(tmp_path):
    for weights in ("1" * 64, "2" * 64):
        (record,) = evaluate(toy_descriptor(weights=weights), [toy_protocol()])
        if weights[0] == "1":
            results.save(tmp_path, record)
    with pytest.raises(ValueError, match=r"is a record of other weights \(1+; this is 2+\)"):
        results.save(tmp_path, record)
    with pytest.raises(ValueError, match="is a record of other weights"):
        results.must_be_free(tmp_path, toy_descriptor(weights="2" * 64), toy_protocol())
    results.must_be_free(tmp_path, toy_descriptor(weights="1" * 64), toy_protocol())


def test_a_record_of_an_older_form_is_replaced(tmp_path):
    file = results.save(tmp_path, one_record())
    file.write_text("{}")
    assert results.read(results.save(tmp_path, one_record())) == one_record()


def test_files_beside_the_records_are_no_records(tmp_path):
    results.save(tmp_path, one_record())
    (tmp_path / "published").mkdir()
    (tmp_path / "published/table.json").write_text("{}")
    assert results.load(tmp_path) == [one_record()]


def test_a_model_of_unknown_training_is_recorded_as_such():
    (record,) = evaluate(toy_descriptor(trained_on=None), [toy_protocol()])
    assert record.model.trained_on is None
    assert not record.data.seen_in_training


def test_the_hash_of_the_data_depends_on_their_contents():
    protocol = toy_protocol()
    block = replace(protocol.dataset.blocks[0], sha256="1" * 64)
    other = replace(protocol.dataset, blocks=(block, *protocol.dataset.blocks[1:]))
    assert other.sha256 != protocol.dataset.sha256
    assert replace(protocol.dataset, truth="x").sha256 != protocol.dataset.sha256


def test_quantities_and_libraries_of_the_protocol_are_part_of_the_record(tmp_path):
    counts = {"points": Quantity(decimals=0)}
    protocol = replace(toy_protocol(), quantities=counts, libraries=("pydantic",))
    (record,) = evaluate(toy_descriptor(), [protocol])
    again = results.read(results.save(tmp_path, record))
    assert again.protocol.quantities == counts
    assert again.environment.libraries["pydantic"] == version("pydantic")


def test_settings_of_the_protocol_are_part_of_the_record(tmp_path):
    protocol = replace(toy_protocol(), settings={"solver": "seeds 0 to 4"})
    (record,) = evaluate(toy_descriptor(), [protocol])
    again = results.read(results.save(tmp_path, record))
    assert again.protocol.settings == {"solver": "seeds 0 to 4"} and again == record
    assert "settings" not in results.to_json(one_record())


def test_a_record_of_fractions_does_not_speak_of_quantities():
    assert "quantities" not in results.to_json(one_record())
    assert '"libraries": []' not in results.to_json(one_record())


def test_full_precision_is_kept(tmp_path):
    record = one_record()
    value = float(np.nextafter(record.scores["verification/ap"], 0))
    exact = record.model_copy(update={"scores": {"verification/ap": value}})
    assert results.read(results.save(tmp_path, exact)).scores["verification/ap"] == value
