import csv
import io
from dataclasses import replace

import numpy as np
import pytest
from packages import installed
from phototour_files import made_scene
from toy import toy_dataset, toy_descriptor

import harness
from harness import Protocol, Scores, loading, plugins, registry
from harness.data import weights
from harness.evaluation import evaluate
from harness.records import leaderboard, tables
from harness.records import record as results
from harness.records.leaderboard import MISSING
from harness.records.record import TrainedOnAll
from protocols.phototour import cross_scene
from protocols.phototour.snn import snn
from protocols.phototour.verification import phototour

SCENES = ("lib", "nd", "yos")
MEANS = {"lib": 0.1, "nd": 0.2, "yos": 0.3, "mean": 0.2}


def toy_cells(scenes=SCENES, name="field", metric="fpr95", scale=1.0):
    """A protocol that gives every model the same scores, scene by scene."""
    values = {f"{scene}/{metric}": scale * MEANS[scene] for scene in (*scenes, "mean")}
    return Protocol(
        name,
        1,
        toy_dataset(sources=frozenset(f"field/{scene}" for scene in scenes)),
        lambda described: Scores(
            values,
            {scene: {metric: values[f"{scene}/{metric}"], "more": 0.5} for scene in scenes},
            {n: (v / 2, v * 2) for n, v in values.items() if not n.startswith("yos")},
        ),
        f"mean/{metric}",
        cells={scene: frozenset({f"field/{scene}"}) for scene in scenes},
    )


def measured(name, *trained, protocol=None):
    trained_on = None if trained == (None,) else frozenset(f"field/{scene}" for scene in trained)
    model = toy_descriptor(name, trained_on=trained_on)
    (record,) = evaluate(model, [protocol or toy_cells()])
    return record


def table(*records):
    (board,) = leaderboard.boards(records)
    (found,) = cross_scene.tables(board)
    return found


def changed(record, part, **fields):
    return record.model_copy(update={part: getattr(record, part).model_copy(update=fields)})


@pytest.fixture
def write(tmp_path_factory):
    """Makes all tables, where a package contributes this kind for the family "field"."""
    source = "from protocols.phototour.cross_scene import KIND"
    folder = tmp_path_factory.mktemp("package")
    with installed(folder, "own-tables", source, tables={"field": "KIND"}):
        yield tables.write


def values(row):
    return [cell and cell.value for cell in row.cells]


# ---- cells


def test_a_cell_that_a_model_was_trained_on_is_refused():
    record = measured("net.nd", "nd")
    assert set(record.scores) == {"lib/fpr95", "yos/fpr95"}
    assert set(record.scenes) == {"lib", "yos"}
    assert set(record.intervals) == {"lib/fpr95"}
    assert (record.data.cells, record.data.refused) == (list(SCENES), ["nd"])


def test_a_score_over_all_cells_goes_with_any_of_them():
    assert "mean/fpr95" in measured("sift").scores
    assert "mean/fpr95" not in measured("net.nd", "nd").scores


def test_what_remains_was_not_seen_in_training():
    assert not measured("net.nd", "nd").data.seen_in_training
    assert not measured("sift").data.seen_in_training


@pytest.mark.parametrize("trained", [SCENES, ("",)])
def test_a_model_trained_on_every_cell_is_refused_before_it_is_run(trained):
    def never(patches):
        raise AssertionError("described for nothing")

    sources = frozenset(f"field/{scene}".rstrip("/") for scene in trained)
    model = toy_descriptor("net", describe=never, trained_on=sources)
    with pytest.raises(TrainedOnAll, match=r"net was trained on .*, and field tests lib, nd, yos"):
        next(evaluate(model, [toy_cells()]))


def test_a_protocol_without_cells_refuses_nothing():
    protocol = replace(toy_cells(), cells={})
    record = measured("net.nd", *SCENES, protocol=protocol)
    assert set(record.scores) == {"lib/fpr95", "nd/fpr95", "yos/fpr95", "mean/fpr95"}
    assert record.data.seen_in_training
    assert (record.data.cells, record.data.refused) == ([], [])


def test_a_record_of_before_there_were_cells_is_read(tmp_path):
    file = results.save(tmp_path, measured("sift", protocol=replace(toy_cells(), cells={})))
    text = file.read_text()
    file.write_text(text.replace('  "cells": [],\n', "").replace('  "refused": [],\n', ""))
    assert file.read_text() != text
    assert results.read(file).data.cells == []


def test_the_scenes_of_phototour_are_cells(tmp_path):
    for scene in ("liberty", "notredame"):
        made_scene(tmp_path / scene)
    model = toy_descriptor("net.liberty", dim=128, trained_on=frozenset({"phototour/liberty"}))
    protocol = phototour(data=tmp_path)
    (record,) = evaluate(model, [protocol])
    assert record.data.refused == ["liberty"]
    assert set(record.scores) == {f"notredame/{metric}" for metric in ("fpr95", "ap", "auc")}
    with pytest.raises(TrainedOnAll, match="tests liberty of phototour-liberty"):
        next(evaluate(model, [phototour(data=tmp_path / "liberty")]))


@pytest.mark.parametrize("task", [phototour, snn])
def test_the_patches_of_a_refused_scene_are_not_described(tmp_path, task):
    for seed, scene in enumerate(("liberty", "notredame", "town")):
        made_scene(tmp_path / scene, 40 + 2 * seed, seed=seed)
    seen, told = [], []

    def first_pixels(patches):
        seen.append(patches)
        return patches.reshape(len(patches), -1)[:, :128].astype(np.float32)

    model = toy_descriptor("net.liberty", first_pixels, dim=128)
    protocol = task(data=tmp_path)
    (everywhere,) = evaluate(model, [protocol])
    seen.clear()
    model = replace(model, trained_on=frozenset({"phototour/liberty"}))
    (kept,) = evaluate(model, [protocol], progress=told.append)
    blocks = {block.name.partition("/")[0]: block for block in protocol.dataset.blocks}
    described = np.concatenate(seen[1:])  # the first are made up
    np.testing.assert_array_equal(
        described, np.concatenate([blocks[scene].read() for scene in ("notredame", "town")])
    )
    assert sum(told) == len(protocol.dataset)  # so that a bar comes to its end
    assert kept.data.refused == ["liberty"]
    assert kept.scores == {
        name: value
        for name, value in everywhere.scores.items()
        if name.startswith(("notredame", "town"))
    }


# ---- families


def test_a_family_stands_for_its_models(monkeypatch):
    known = ["net.lib", "net.nd", "network.lib", "net", "other.a.x", "other.a.y"]
    monkeypatch.setattr(registry, "names", lambda kind: sorted(known))
    assert loading.model_names("net") == ["net"]
    assert loading.model_names("network") == ["network.lib"]
    assert loading.model_names("other") == loading.model_names("other.a")
    assert loading.model_names("unknown") == ["unknown"]
    known.remove("net")
    assert loading.model_names("net") == ["net.lib", "net.nd"]
    assert loading.model_names("net.lib") == ["net.lib"]


@pytest.fixture
def models(monkeypatch):
    """Models that are found by name, trained on the scene that they are called after."""

    def one(spec, device):
        scene = spec.partition(".")[2]
        trained_on = frozenset({f"phototour/{scene}"} if scene else ())
        return toy_descriptor(spec, dim=128, trained_on=trained_on)

    monkeypatch.setattr(
        registry, "names", lambda kind: ["net.liberty", "net.notredame", "phototour"]
    )
    monkeypatch.setattr(plugins, "model", one)


def evaluated(data, folder, *specs):
    harness.evaluate(specs, "phototour", data=data, results=folder)
    return {record.model.name: record for record in results.load(folder)}


def test_a_family_fills_the_cells_that_exist(tmp_path, models, run):
    for scene in ("liberty", "notredame"):
        made_scene(tmp_path / "data" / scene)
    given = ("--data", tmp_path / "data", "--results", tmp_path / "results")
    _, out, _ = run("eval", "--model", "net", "--protocol", "phototour", *given)
    found = {record.model.name: record for record in results.load(tmp_path / "results")}
    assert set(found) == {"net.liberty", "net.notredame"}
    assert "liberty/fpr95" not in found["net.liberty"].scores
    assert "train → test" in out


def test_a_model_without_a_cell_does_not_stop_its_family(tmp_path, models, caplog):
    made_scene(tmp_path / "data" / "liberty")
    found = evaluated(tmp_path / "data", tmp_path / "results", "net")
    assert set(found) == {"net.notredame"}
    assert "passed over: net.liberty was trained on" in caplog.text


def test_models_without_any_cell_are_an_error(tmp_path, models):
    made_scene(tmp_path / "data" / "liberty")
    with pytest.raises(TrainedOnAll):
        evaluated(tmp_path / "data", tmp_path / "results", "net.liberty")


def test_a_model_of_a_family_whose_weights_are_not_here_is_passed_over(
    tmp_path, monkeypatch, models, caplog
):
    made = plugins.model

    def one(spec, device):
        if spec == "net.liberty":
            try:
                raise weights.NotHere("net.liberty needs net.pth")
            except weights.NotHere as error:
                raise RuntimeError(f"net.liberty can't be made: {error}") from error
        return made(spec, device)

    monkeypatch.setattr(plugins, "model", one)
    for scene in ("liberty", "notredame"):
        made_scene(tmp_path / "data" / scene)
    found = evaluated(tmp_path / "data", tmp_path / "results", "net")
    assert set(found) == {"net.notredame"}
    assert "passed over: net.liberty can't be made: net.liberty needs net.pth" in caplog.text
    with pytest.raises(RuntimeError, match=r"needs net\.pth"):
        evaluated(tmp_path / "data", tmp_path / "named", "net.liberty", "net.notredame")


def test_a_family_of_which_nothing_is_here_is_an_error(monkeypatch, models):
    def none(spec, device):
        raise weights.NotHere(f"{spec} is not here")

    monkeypatch.setattr(plugins, "model", none)
    with pytest.raises(weights.NotHere, match=r"net\.notredame"):
        loading.load_models(["net"])


def test_another_failure_of_a_family_is_an_error(monkeypatch, models):
    def broken(spec, device):
        raise RuntimeError(f"{spec} is broken")

    monkeypatch.setattr(plugins, "model", broken)
    with pytest.raises(RuntimeError, match=r"net\.liberty is broken"):
        loading.load_models(["net"])


# ---- the table


def test_columns_stand_as_in_the_papers():
    found = table(measured("sift"))
    assert found.pairs == [
        ("nd", "lib"), ("yos", "lib"), ("lib", "nd"), ("yos", "nd"), ("lib", "yos"), ("nd", "yos"),
    ]  # fmt: skip


def test_models_of_a_family_share_a_row():
    found = table(*(measured(f"net.{scene}", scene) for scene in SCENES), measured("sift"))
    (row,) = found.families
    assert (row.name, row.dim) == ("net", "8")
    assert values(row) == [0.1, 0.1, 0.2, 0.2, 0.3, 0.3]
    assert [cell.model for cell in row.cells[:2]] == ["net.nd", "net.yos"]
    assert row.mean.value == pytest.approx(0.2)
    (other,) = found.others
    assert (other.name, values(other), other.mean.value) == ("sift", [0.1, 0.2, 0.3], 0.2)


def test_a_row_that_is_not_whole_has_no_mean():
    (row,) = table(measured("net.lib", "lib"), measured("net.nd", "nd")).families
    assert values(row) == [0.1, None, 0.2, None, 0.3, 0.3]
    assert row.mean is None


def test_a_family_is_one_where_a_scene_it_learned_is_not_tested():
    two = toy_cells(("lib", "nd"))
    records = [measured(f"net.{scene}", scene, protocol=two) for scene in SCENES]
    found = table(*records, measured("sift", protocol=two))
    assert found.pairs == [("nd", "lib"), ("yos", "lib"), ("lib", "nd"), ("yos", "nd")]
    (row,) = found.families
    assert (row.name, values(row)) == ("net", [0.1, 0.1, 0.2, 0.2])
    assert [cell.train for cell in row.cells] == ["nd", "yos", "lib", "yos"]
    assert row.mean.value == pytest.approx(0.15)
    assert [row.name for row in found.others] == ["sift"]


def test_a_family_is_one_where_a_single_scene_is_tested():
    one = toy_cells(("lib",))
    (row,) = table(*(measured(f"net.{s}", s, protocol=one) for s in ("nd", "yos"))).families
    assert (row.name, values(row), row.mean.value) == ("net", [0.1, 0.1], 0.1)


def test_a_family_that_learned_none_of_the_scenes_has_a_table_of_its_own():
    abroad = [measured(f"far.{scene}", scene) for scene in ("rome", "oslo")]
    home = [measured(f"net.{scene}", scene) for scene in SCENES]
    (board,) = leaderboard.boards([*abroad, *home, measured("sift")])
    first, second = cross_scene.tables(board)
    assert [row.name for row in first.families + first.others] == ["net", "sift"]
    assert first.families[0].mean.value == pytest.approx(0.2)
    assert second.pairs == [(a, b) for b in SCENES for a in ("oslo", "rome")]
    (row,) = second.families
    assert (row.name, row.mean.value) == ("far", pytest.approx(0.2))
    assert second.others == ()
    page = cross_scene.to_markdown(board, [first, second])
    assert "## field: fpr95\n" in page
    assert "## field: fpr95, trained elsewhere\n" in page


def test_a_model_trained_on_two_scenes_of_which_one_is_tested_is_of_no_family():
    found = table(measured("net.all", "lib", "yos", protocol=toy_cells(("lib", "nd"))))
    assert found.families == ()
    assert found.others[0].cells[1].train == "lib+yos"


@pytest.mark.parametrize(
    ("part", "fields", "what"),
    [
        ("model", {"dim": 16}, "model dim is 16 and 8"),
        ("model", {"distance": "hamming"}, "model distance is hamming and l2"),
        ("model", {"revision": 2}, "model revision is 2 and 1"),
    ],
)
def test_models_that_differ_in_more_than_training_share_no_row(part, fields, what):
    odd = changed(measured("net.nd", "nd"), part, **fields)
    with pytest.raises(ValueError, match=rf"net\.nd .*net\.lib .*can't share a table.*{what}"):
        table(measured("net.lib", "lib"), odd)
    table(measured("other.lib", "lib"), odd)  # another family may


def test_what_nobody_says_is_not_said_to_be_none(tmp_path):
    records = [measured("secret", None), measured("sift")]
    (board,) = leaderboard.boards(records)
    found = cross_scene.tables(board)
    page = cross_scene.to_markdown(board, found)
    assert "| secret ? | 8 |" in page
    assert "| sift | 8 |" in page
    assert "\n\n? its training data are unknown, or have a name" in page
    rows = list(csv.DictReader(io.StringIO(cross_scene.to_csv(found))))
    assert {(row["row"], row["train"]) for row in rows} == {("secret", "?"), ("sift", "")}
    (board,) = leaderboard.boards(records[1:])
    assert "nobody" not in cross_scene.to_markdown(board, cross_scene.tables(board))


def test_only_whole_parts_of_a_name_stand_for_a_scene():
    records = [measured(f"net.calib-{scene}_v2", scene) for scene in SCENES]
    (row,) = table(*records).families
    assert row.name == "net.calib-*_v2"


def test_a_model_trained_on_several_scenes_has_a_row_of_its_own():
    (row,) = table(measured("net.all", "lib", "nd")).others
    assert (values(row), row.mean) == ([None, None, 0.3], None)
    assert row.cells[2].train == "lib+nd"


def test_variants_of_a_family_have_rows_of_their_own():
    records = [measured(f"net.{scene}{tag}", scene) for scene in SCENES for tag in ("", "-aug")]
    found = table(*records, measured("net.x.lib", "lib"))
    assert sorted(row.name for row in found.families) == ["net", "net.*-aug", "net.x"]


def test_two_models_that_learned_one_scene_do_not_stand_for_each_other():
    found = table(measured("net.field-lib", "lib"), measured("net.field-*", "lib"))
    assert sorted(row.name for row in found.families) == ["net.field-*", "net.field-lib"]


def test_the_best_mean_stands_first():
    worse = replace(toy_cells(), score=toy_cells(scale=2.0).score)
    found = table(measured("a", protocol=worse), measured("b"))
    assert [row.name for row in found.others] == ["b", "a"]
    higher = toy_cells(metric="ap")
    worse = replace(higher, score=toy_cells(metric="ap", scale=2.0).score)
    found = table(measured("a", protocol=higher), measured("b", protocol=worse))
    assert [row.name for row in found.others] == ["b", "a"]


def test_the_interval_of_a_mean_over_models_is_there_if_all_are():
    (row,) = table(*(measured(f"net.{scene}", scene) for scene in SCENES)).families
    assert row.cells[0].interval == (0.05, 0.2)
    assert row.mean.interval is None  # "yos" has none
    two = toy_cells(("lib", "nd"))
    (row,) = table(*(measured(f"net.{s}", s, protocol=two) for s in ("lib", "nd"))).families
    np.testing.assert_allclose(row.mean.interval, (0.075, 0.3))


def test_a_board_without_cells_has_no_table(tmp_path, write):
    results.save(tmp_path, measured("sift", protocol=replace(toy_cells(), cells={})))
    assert {file.stem for file in write(tmp_path)} == {"leaderboard"}


def test_tables_of_good_boards_are_written_where_another_is_faulty(tmp_path, write):
    good, bad = toy_cells(), toy_cells()
    bad = replace(bad, dataset=replace(bad.dataset, name="bad"))
    results.save(tmp_path, measured("sift", protocol=bad))
    (before,) = {file.parent for file in write(tmp_path)}
    results.save(tmp_path, measured("sift", protocol=good))
    other = changed(measured("odd", protocol=bad), "data", sha256="0" * 64)
    results.save(tmp_path, other)
    with pytest.raises(ValueError, match=r"/field/bad/all: .* can't share a table on bad") as fault:
        write(tmp_path)
    assert str(fault.value).count("can't share") == 1
    names = {"leaderboard.csv", "leaderboard.md", "cross_scene.csv", "cross_scene.md"}
    for folder in (before, tmp_path / "tables/field/toy-data/all"):
        assert {file.name for file in folder.iterdir() if file.is_file()} >= names


def test_a_family_that_mixes_does_not_stop_the_leaderboard(tmp_path, write):
    odd = changed(measured("net.nd", "nd"), "model", revision=2)
    for record in (measured("net.lib", "lib"), odd):
        results.save(tmp_path, record)
    with pytest.raises(ValueError, match="can't share a table"):
        write(tmp_path)
    assert {file.name for file in tmp_path.rglob("*.md")} == {"leaderboard.md"}


def test_tables_without_records_are_removed(tmp_path, write):
    file = results.save(tmp_path, measured("sift"))
    other = replace(toy_cells(), dataset=replace(toy_cells().dataset, name="other"))
    results.save(tmp_path, measured("sift", protocol=other))
    assert len(write(tmp_path)) == 12
    file.unlink()
    assert len(write(tmp_path)) == 6
    assert len(list(tmp_path.rglob("cross_scene.*"))) == 3


def test_files_stand_beside_the_leaderboard_and_are_the_same_again(tmp_path, write):
    for record in (*(measured(f"net.{scene}", scene) for scene in SCENES), measured("sift")):
        results.save(tmp_path, record)
    files = write(tmp_path)
    assert [file.name for file in files] == [
        "leaderboard.csv", "leaderboard.md", "leaderboard.tex",
        "cross_scene.csv", "cross_scene.md", "cross_scene.tex",
    ]  # fmt: skip
    assert len({file.parent for file in files}) == 1
    before = [file.read_bytes() for file in files]
    write(tmp_path)
    assert [file.read_bytes() for file in files] == before


def test_markdown_is_in_percent_and_csv_in_fractions(tmp_path):
    records = [*(measured(f"net.{scene}", scene) for scene in SCENES[:2]), measured("sift")]
    (board,) = leaderboard.boards(records)
    found = cross_scene.tables(board)
    page = cross_scene.to_markdown(board, found)
    assert "| train → test | dim | nd → lib | yos → lib |" in page
    assert f"| net | 8 | 10.00 [5.00, 20.00] | {MISSING} | 20.00 [10.00, 40.00] |" in page
    assert "| sift | 8 | 10.00 [5.00, 20.00] | 20.00 [10.00, 40.00] | 30.00 | 20.00 [10" in page
    rows = list(csv.DictReader(io.StringIO(cross_scene.to_csv(found))))
    assert len(rows) == 7 + 4
    assert rows[0] == {
        "protocol": "field", "options": "", "metric": "fpr95", "row": "net", "dim": "8",
        "train": "nd", "test": "lib", "model": "net.nd", "value": "0.1", "low": "0.05",
        "high": "0.2",
    }  # fmt: skip
    assert rows[1]["value"] == rows[6]["value"] == MISSING
    assert (rows[-1]["test"], rows[-1]["value"]) == ("mean", "0.2")


def test_two_protocols_of_one_board_have_tables_of_their_own():
    one, two = toy_cells(name="field/a"), toy_cells(name="field/b", metric="snn-map")
    (board,) = leaderboard.boards([measured("sift", protocol=one), measured("sift", protocol=two)])
    assert [(t.protocol, t.metric) for t in cross_scene.tables(board)] == [
        ("field/a", "fpr95"), ("field/b", "snn-map"),
    ]  # fmt: skip


def test_the_leaderboard_breaks_scores_of_scenes_down_by_metric():
    (board,) = leaderboard.boards([measured("sift"), measured("net.nd", "nd")])
    page = leaderboard.to_markdown(board)
    assert "## fpr95\n\n| model | dim | lib/fpr95 | nd/fpr95 | yos/fpr95 |" in page
    assert f"| net.nd | 8 | 10.00 [5.0, 20.0] | {MISSING} | 30.00 |" in page


def test_a_model_of_partly_unknown_training_stands_for_no_scene():
    dataset = toy_cells()
    model = toy_descriptor("net.lib", trained_on=frozenset({"Field/LIB", "feild/nd"}))
    (record,) = evaluate(model, [dataset])
    assert record.data.refused == ["lib"]
    found = table(record)
    assert [row.name for row in found.others] == ["net.lib"]
    assert found.others[0].mark == "?"
    assert found.others[0].cells[1].train == "lib+?"


def test_the_latex_table_has_the_cells_of_the_markdown_table():
    records = [*(measured(f"net_a.{scene}", scene) for scene in SCENES), measured("a|b")]
    board = leaderboard.board(("field", "toy-data", "all"), [*records])
    text = cross_scene.texts_of(board)[".tex"]
    assert text.startswith("% field on toy-data, split all\n")
    assert r"train $\to$ test & dim & nd $\to$ lib & yos $\to$ lib &" in text
    assert r"net\_a & 8 & 10.00 {\scriptsize [5.00, 20.00]} &" in text
    assert r"a\textbar{}b & 8 & 10.00 {\scriptsize [5.00, 20.00]} &" in text
    assert text.count(r"\begin{tabular}") == 2 == text.count(r"\end{tabular}")
