"""Tables, figures and claims of known outcomes."""

import csv
import io
from pathlib import Path

import pytest
from published_files import number
from toy import scored
from toy_papers import toy_papers

from harness.errors import InputError
from harness.records.comparison import compare
from harness.records.record import save as save_record
from harness.reproduce import claims, figure, items, page
from harness.reproduce.budgets import Budget
from harness.reproduce.claims import Claim
from harness.reproduce.outcomes import Measured, Outcome, Seen, Strip, Value, read, save

BUDGET = Budget(about="a test")


@pytest.fixture
def found(tmp_path):
    (tmp_path / "package").mkdir()
    with toy_papers(tmp_path / "package"):
        yield items.find("toy/table1")


def cell(method, scene, *values, missing="", **fields):
    seeds = tuple(Value(value=value, seed=seed) for seed, value in enumerate(values))
    at = {"method": method, "trained on": scene}
    return Measured(at=at, values=seeds, missing=missing, lower_is_better=True, **fields)


def outcome(*cells):
    return Outcome(item="toy/table1", budget="toy", cells=cells)


WHOLE = outcome(
    cell("Mean", "Liberty", 0.5),
    cell("Mean", "Notre Dame", 0.7),
    cell("Small", "Liberty", 0.2, 0.3, 0.4),
    cell("Small", "Notre Dame", 0.1, 0.2, 0.3),
    cell("Fast", "Liberty", 0.1),
    cell("Fast", "Notre Dame", missing="it | failed"),
)


def rows(text):
    return [one for one in text.splitlines() if one.startswith("|")]


def test_measured_and_published_numbers_have_rows_of_their_own(found):
    other = number(method="Other", trained_on="somewhere", value="42.1")
    printed = [number(), other, number(where="Table 2", value="99.9")]
    text = page.to_markdown(found, WHOLE, BUDGET, printed)
    assert rows(text)[2:] == [
        "| Mean | here | 50.00 | 70.00 | 60.00 |",
        "| Mean | *Toy paper, Table 1* | *52.8* | *52.8* | — |",
        "| Small | here | 30.00 ± 10.00 | 20.00 ± 10.00 | 25.00 |",
        "| Fast | here | 10.00 | — | — |",
        "| Other | *Toy paper, Table 1* | *42.1* | *42.1* | — |",
    ]
    assert "- Fast, Notre Dame: it \\| failed" in text and "99.9" not in text
    assert "**Budget toy**: a test." in text


def test_the_csv_file_has_full_precision_and_names_what_is_missing(found):
    lines = [*csv.DictReader(io.StringIO(page.to_csv(found, WHOLE, BUDGET, [number()])))]
    assert {one["source"] for one in lines} == {"here", "Toy paper, Table 1"}
    by = {(one["row"], one["column"], one["source"]): one for one in lines}
    assert float(by["Small", "Liberty", "here"]["value"]) == pytest.approx(0.3, abs=1e-15)
    assert by["Small", "Liberty", "here"]["seeds"] == "3"
    assert by["Fast", "Notre Dame", "here"]["value"] == ""
    assert by["Fast", "Notre Dame", "here"]["why missing"] == "it | failed"
    assert by["Fast", "mean", "here"]["value"] == ""
    assert not [one for one in lines if one["row"] == "Other"]
    assert float(by["Mean", "Liberty", "Toy paper, Table 1"]["value"]) == pytest.approx(0.528)


def test_published_deviations_and_p_values_stand_beside_the_numbers(found):
    deviation = "deviation of five seeds"
    item = found.item.model_copy(update={"compare": ("Mean", "Small")})
    axes = {**item.axes, "method": dict(item.axes["method"])}
    for name in ("Mean", "Small"):
        one = axes["method"][name]
        told = {"method": name, "score": "verification/ap", "deviation": deviation}
        axes["method"][name] = one.model_copy(update={"published": told})
    changed = items.Found(found.name, item.model_copy(update={"axes": axes}), found.file)
    printed = [
        number(),
        number(score=deviation, value="0.7"),
        number(method="Small", value="50.0"),
        number(method="Mean over Small", score="p value", value="0.031", unit="fraction"),
    ]
    text = page.to_markdown(changed, WHOLE, BUDGET, printed)
    assert "| Mean | *Toy paper, Table 1* | *52.8 ± 0.7* | *52.8 ± 0.7* | — |" in rows(text)
    assert "| Small | *Toy paper, Table 1* | *50.0* | *50.0* | — |" in rows(text)
    assert "| | U | p | *p, Toy paper, Table 1* |" in rows(text)
    tested = [one for one in rows(text) if one.endswith("| *0.031* |")]
    assert [one.split(" | ")[0] for one in tested] == ["| Liberty", "| Notre Dame"]
    lines = [*csv.DictReader(io.StringIO(page.to_csv(changed, WHOLE, BUDGET, printed)))]
    quoted = [one for one in lines if one["source"] != "here" and one["row"] == "Mean"]
    assert [float(one["deviation"]) for one in quoted] == pytest.approx([0.007, 0.007])


def test_two_numbers_of_one_source_are_refused(found):
    two = [number(), number(score="other")]
    with pytest.raises(InputError, match="several numbers of"):
        page.to_markdown(found, WHOLE, BUDGET, two)


def test_an_outcome_is_read_as_it_was_written(tmp_path):
    file = save(tmp_path, WHOLE)
    assert read(file) == WHOLE
    before = file.read_bytes()
    save(tmp_path, read(file))
    assert file.read_bytes() == before
    file.write_text('{"item": "x"}')
    with pytest.raises(InputError, match="budget: Field required"):
        read(file)


def test_the_same_outcome_draws_the_same_figure(found):
    drawn = figure.to_svg(found, WHOLE)
    assert drawn is not None and drawn == figure.to_svg(found, WHOLE)
    assert "Liberty" in drawn and "budget toy" in drawn


@pytest.mark.parametrize("kind", ["curves", "points", "strips", "epochs", "lines"])
def test_each_kind_of_figure_is_drawn(found, kind):
    strips = (
        Strip(label="one", side=2, patches=("00ff00ff", "ffffffff"), links=("two",)),
        Strip(label="two", side=2, patches=("00000000",)),
    )
    seen = Seen(curves={"c": ((0, 1), (1, 2))}, points={"p": ((0, 1), (1, 2))}, strips=strips)
    ones = [cell("Mean", scene, 0.5, seen=seen) for scene in ("1", "10")]
    ones += [cell("Small", scene, 0.4, seen=seen) for scene in ("1", "10")]
    ones = [
        one.model_copy(update={"values": tuple(
            Value(value=0.1 * epoch, epoch=epoch) for epoch in (1, 2)
        )})
        for one in ones
    ]  # fmt: skip
    drawing = items.Figure(kind=kind, x="trained on")
    changed = items.Found("toy/x", found.item.model_copy(update={"figure": drawing}), found.file)
    drawn = figure.to_svg(changed, outcome(*ones))
    assert drawn is not None and drawn.count("<path") > 2


CLAIM = Claim(
    text="Small is better",
    source="Toy paper",
    item="toy/table1",
    better={"method": "Small"},
    worse={"method": "Mean"},
)


def answered(*cells, claim=CLAIM):
    return claims.answer(claim, outcome(*cells), Path())


@pytest.mark.parametrize(
    ("better", "verdict"),
    [
        ((0.10, 0.11, 0.12), "yes"),
        ((0.90, 0.91, 0.92), "no, worse"),
        ((0.20, 0.50, 0.80), "can't tell"),
    ],
)
def test_seeds_decide_a_claim_and_less_is_better_for_errors(better, verdict):
    found = answered(cell("Small", "Liberty", *better), cell("Mean", "Liberty", 0.5, 0.51, 0.52))
    assert (found.verdict, found.unit) == (verdict, "3 seeds")
    assert found.difference == pytest.approx(100 * (0.51 - sum(better) / 3))
    low, high = found.interval
    assert low <= found.difference <= high


def test_cells_decide_a_claim_if_there_are_three_pairs():
    ones = [cell("Small", f"{i}", 0.1 + i / 100) for i in range(4)]
    others = [cell("Mean", f"{i}", 0.2 + i / 90) for i in range(4)]
    found = answered(*ones, *others)
    assert (found.verdict, found.unit) == ("yes", "4 pairs of numbers")


def test_scenes_decide_a_claim_as_they_decide_a_comparison(tmp_path):
    scores = {"Small": (0.5, 0.6, 0.7, 0.8), "Mean": (0.4, 0.45, 0.62, 0.7)}
    kept = {name: scored(name.lower(), *of_scenes) for name, of_scenes in scores.items()}
    cells = []
    for name, one in kept.items():
        file = save_record(tmp_path, one).relative_to(tmp_path).as_posix()
        (headline,) = one.scores.values()
        value = Value(value=headline, records=(file,))
        cells.append(Measured(at={"method": name, "trained on": "Liberty"}, values=(value,)))
    found = claims.answer(CLAIM, outcome(*cells), tmp_path)
    expected = compare(kept["Small"], kept["Mean"])
    assert (found.verdict, found.unit) == ("yes", "4 scenes")
    assert found.difference == pytest.approx(100 * expected.difference)
    assert found.interval == pytest.approx([100 * end for end in expected.interval])


def test_one_pair_and_missing_cells_give_no_answer():
    pair = [cell("Small", "Liberty", 0.1), cell("Mean", "Liberty", 0.5)]
    found = answered(*pair)
    assert (found.verdict, found.interval) == ("can't tell", None)
    assert found.difference == pytest.approx(40)
    lacking = cell("Mean", "Liberty", missing="failed")
    assert answered(pair[0], lacking).verdict == "can't tell"
    assert answered(pair[0]).verdict == "not run"


def test_the_first_and_the_last_value_of_an_axis_can_be_compared():
    claim = CLAIM.model_copy(
        update={"better": {"trained on": "last"}, "worse": {"trained on": "first"}}
    )
    ones = [cell("Mean", scene, *values) for scene, values in
            (("a", (0.5, 0.6, 0.7)), ("b", (9, 9, 9)), ("c", (0.1, 0.2, 0.3)))]  # fmt: skip
    found = answered(*ones, claim=claim)
    assert found.verdict == "yes" and found.difference == pytest.approx(40)
    with pytest.raises(InputError, match="no axis"):
        answered(*ones, claim=CLAIM.model_copy(update={"better": {"size": "1"}}))


def test_a_study_is_counted_by_question(tmp_path):
    lines = ["| | measured on | |", "|---|---|---|"]
    lines += [
        "| a over b | Oxford | yes |",
        "| a over b | mini | can't tell |",
        "| a over b | x | yes |",
    ]
    (tmp_path / "method-comparison.md").write_text("\n".join(lines))
    assert claims._studied(tmp_path / "method-comparison.md") == {
        "a over b": "yes 2x, can't tell 1x"
    }
