"""`import harness`: its names, what they take, and that the command line does the same."""

import subprocess
import sys

import pandas as pd
import pytest
from checkout import ROOT
from hpatches_files import LENGTHS, SPLITS, write_set
from toy import toy_dataset, toy_descriptor, toy_protocol

import harness

PUBLIC = [
    "Audit", "Block", "Dataset", "DescribedKeypoints", "Descriptions", "Descriptor", "HarnessError",
    "OpenCVDescriptor", "Parts", "Protocol", "Quantity", "Record", "Scores", "Wrapper", "audit",
    "compare", "describe_keypoints", "evaluate", "export_onnx", "fit", "leaderboard", "load_model",
    "load_protocol", "read_records", "wrap",
]  # fmt: skip
MATCHING = "hpatches/matching"


@pytest.fixture
def small(tmp_path):
    return write_set(tmp_path / "small", LENGTHS, splits=SPLITS)


def test_the_public_names_are_these():
    assert harness.__all__ == PUBLIC
    assert set(PUBLIC) <= set(dir(harness))


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_is_there_and_documented(name):
    assert getattr(harness, name).__doc__
    assert getattr(harness, name).__module__.startswith("harness.")


def test_another_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'evaluat'"):
        harness.evaluat  # noqa: B018


def test_a_public_name_is_itself_whatever_is_imported_before():
    """No module of the harness bears the name of a public function."""
    modules = {file.stem for file in (ROOT / "harness").iterdir()}
    assert not modules & {*PUBLIC}


def test_importing_the_harness_imports_nothing_heavy():
    code = "import sys, harness; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numpy", "pandas", "pydantic", "rich", "torch", "typer"} & {*done.stdout.split()}


# ---- models and protocols


def test_a_model_is_loaded_by_name_file_or_folder(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import numpy as np\n"
        "def ones(patches):\n"
        "    return np.ones((len(patches), 3), np.float32)\n"
    )
    (tmp_path / "vectors/v_a").mkdir(parents=True)
    (tmp_path / "vectors/v_a/ref.csv").write_text("1,2\n")
    assert harness.load_model("pixels").name == "pixels"
    assert harness.load_model(f"{tmp_path}/mine.py:ones").dim == 3
    assert harness.load_model(tmp_path / "vectors").name == "csv:vectors"


def test_a_descriptor_is_its_own_model():
    model = toy_descriptor()
    assert harness.load_model(model) is model


def test_a_family_of_models_is_refused_with_its_members():
    with pytest.raises(LookupError, match=r"'tfeat' is a family of models: tfeat\.liberty, tfeat"):
        harness.load_model("tfeat")


def test_a_protocol_is_loaded_with_options(small):
    protocol = harness.load_protocol(MATCHING, data=str(small), split="a", ties="official")
    assert protocol.name == "hpatches/matching"
    assert protocol.options == {"ties": "official"}
    assert protocol.dataset.name == "hpatches-small"


def test_a_family_of_protocols_is_refused_with_its_members():
    with pytest.raises(LookupError, match="family of protocols: hpatches/matching, hpatches/retr"):
        harness.load_protocol("hpatches")


@pytest.mark.parametrize(
    ("name", "options", "told"),
    [
        ("hpatchs", {}, "did you mean 'hpatches'"),
        (MATCHING, {"tis": "mean"}, "did you mean 'ties'"),
        (MATCHING, {"split": "z"}, "no split named 'z'"),
    ],
)
def test_an_unknown_name_of_a_protocol_is_a_harness_error(small, name, options, told):
    with pytest.raises(harness.HarnessError, match=told):
        harness.load_protocol(name, data=small, **options)


# ---- evaluating


def counting(calls, name="counted"):
    model = toy_descriptor(name)

    def describe(patches):
        calls.append(len(patches))
        return model.describe(patches)

    return toy_descriptor(name, describe)


def test_each_model_and_protocol_gives_a_record(small):
    records = harness.evaluate(["pixels", "constant"], "hpatches", data=small)
    found = [(record.model.name, record.protocol.name) for record in records]
    tasks = [f"hpatches/{task}" for task in ("matching", "retrieval", "verification")]
    assert found == [(model, task) for model in ("pixels", "constant") for task in tasks]


def test_one_model_and_a_loaded_protocol_are_enough():
    (record,) = harness.evaluate(toy_descriptor(), toy_protocol())
    assert (record.model.name, record.protocol.name) == ("mean", "toy/verification")


def test_options_of_a_loaded_protocol_come_too_late():
    with pytest.raises(ValueError, match="ties: options go to load_protocol"):
        harness.evaluate(toy_descriptor(), toy_protocol(), ties="official")


@pytest.mark.parametrize(
    ("models", "protocols"), [([], [toy_protocol()]), ([toy_descriptor()], [])]
)
def test_no_model_or_no_protocol_is_an_error(models, protocols):
    with pytest.raises(ValueError, match=r"no (model|protocol) to evaluate"):
        harness.evaluate(models, protocols)


def test_the_command_line_makes_the_same_records(small, tmp_path, run):
    run("eval", "--model", "pixels", "--protocol", "hpatches", "--data", small,
        "--set", "ties=official", "--results", tmp_path / "typed")  # fmt: skip
    called = harness.evaluate(
        "pixels", "hpatches", data=small, ties="official", results=tmp_path / "called"
    )
    assert harness.read_records(tmp_path / "called") == called
    for file in sorted((tmp_path / "called").rglob("*.json")):
        same = tmp_path / "typed" / file.relative_to(tmp_path / "called")
        assert file.read_bytes() == same.read_bytes()


def test_python_prints_nothing_unless_asked(small, capsys):
    harness.evaluate("pixels", MATCHING, data=small)
    done = capsys.readouterr()
    assert (done.out, done.err) == ("", "")


def test_without_the_cache_patches_are_described_again():
    calls = []
    for cache, again in ((True, True), (True, False), (False, True)):
        calls.clear()
        harness.evaluate(counting(calls), toy_protocol(), cache=cache)
        assert (30 in calls) is again


# ---- leaderboards


def board(*models, protocol=None):
    return harness.evaluate(list(models), protocol or toy_protocol())


def coarse():
    """Worse than the mean: half of its numbers, and nobody says what it was trained on."""
    model = toy_descriptor()
    return toy_descriptor(
        "coarse", lambda patches: model.describe(patches)[:, ::2], dim=4, trained_on=None
    )


def test_a_leaderboard_has_full_precision_and_the_best_first():
    records = board(coarse(), toy_descriptor())
    table = harness.leaderboard(records)
    assert list(table.columns) == [
        "protocol", "data", "split", "model", "options", "dim", "distance",
        "trained_on_tested_data", "weights", "revision", "rank",
        "verification/ap", "verification/ap low", "verification/ap high",
    ]  # fmt: skip
    assert list(table["model"]) == ["mean", "coarse"]
    assert list(table["trained_on_tested_data"]) == ["no", "unknown"]
    assert table["verification/ap"][0] == records[1].scores["verification/ap"]
    assert table["verification/ap low"][0] == 0.25
    assert table["weights"].isna().all()


def test_tasks_of_a_family_share_a_row_and_other_data_stand_below():
    other = toy_dataset(name="other-data")
    records = [
        *board(toy_descriptor(), protocol=[toy_protocol(), toy_protocol("matching")]),
        *board(toy_descriptor(), protocol=toy_protocol("retrieval", dataset=other)),
    ]
    table = harness.leaderboard(records)
    assert list(table["data"]) == ["other-data", "toy-data"]
    assert table["retrieval/ap"].isna().tolist() == [False, True]
    assert table["matching/ap"].isna().tolist() == [True, False]


def test_partial_data_enter_no_leaderboard():
    partial = toy_protocol(dataset=toy_dataset(complete=False))
    assert len(harness.leaderboard(board(toy_descriptor(), protocol=partial))) == 0


def test_the_leaderboard_of_no_records_is_an_empty_table():
    table = harness.leaderboard([])
    assert isinstance(table, pd.DataFrame)
    assert len(table) == 0
    assert "model" in table.columns


def test_records_that_can_not_share_a_table_are_refused():
    records = [*board(toy_descriptor()), *board(coarse(), protocol=toy_protocol(version=2))]
    with pytest.raises(harness.HarnessError, match="can't share a table"):
        harness.leaderboard(records)


# ---- examples


@pytest.mark.parametrize(
    ("example", "printed"),
    [("evaluate_from_python", ["rootsift", "grid"]), ("torch_module", ["small"])],
)
def test_an_example_runs_on_the_sample(example, printed):
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / f"{example}.py"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "NO DATA SET GIVEN" in done.stderr
    for name in printed:
        assert name in done.stdout


def test_the_torch_module_of_the_example_keeps_every_law_and_is_exported(tmp_path):
    model = harness.load_model(f"{ROOT}/examples/torch_module.py:small", device="cpu")
    from harness.contracts import check_descriptor

    assert [law for law in check_descriptor(model) if not law.passed] == []
    assert harness.export_onnx(model, tmp_path / "small.onnx").apart.distance < 1e-5
