"""Is A better than B? A sentence, and a table of scenes."""

import numpy as np
import pytest
from toy import measured, scored, toy_dataset

import harness
from harness import HarnessError, Quantity
from harness.differences import interval_of_difference, sign_flip_p
from harness.records import comparison
from harness.records import record as results
from harness.records.comparison import comparisons, sentence

HEADLINE = "verification/ap"
GOOD = (0.80, 0.90, 0.70, 0.85, 0.75)
BAD = (0.70, 0.82, 0.59, 0.76, 0.69)


def test_the_first_line_answers():
    found = harness.compare(scored("a", *GOOD), scored("b", *BAD))
    first, empty, head, *_ = str(found).splitlines()
    assert first.startswith(
        f"Yes, a beats b on toy-data, split all: {HEADLINE} +8.80 points [+6.41, +11.31],"
        " n = 5 scenes, p = 0.062 (the least that so few scenes give); a is better on 5 of them."
    )
    assert empty == "" and head == "| | a | b | difference |"
    assert str(found).endswith(comparison.NOTE)


def test_numbers_are_those_of_the_paired_differences():
    found = harness.compare(scored("a", *GOOD), scored("b", *BAD))
    a, b = np.array(GOOD), np.array(BAD)
    assert found.difference == pytest.approx((a - b).mean())
    assert found.interval == interval_of_difference(a, b)
    assert found.p == sign_flip_p(a - b)
    assert found.scenes["s1"] == (0.90, 0.82)
    assert found.better == "a" and found.deciding == []


def test_the_other_way_round_the_answer_is_no():
    found = harness.compare(scored("b", *BAD), scored("a", *GOOD))
    assert sentence(found).startswith("No, a beats b on ")
    assert "-8.80 points [-11.31, -6.41]" in sentence(found)
    assert "b is better on 0 of them." in sentence(found)


def test_where_the_interval_holds_0_nothing_can_be_told():
    found = harness.compare(scored("a", 0.8, 0.7, 0.6, 0.5), scored("b", 0.7, 0.6, 0.61, 0.52))
    assert found.better is None
    assert sentence(found).startswith("Can't tell whether a beats b")
    assert "a is better on 2 of them, on s0, s1." in sentence(found)


def test_a_model_beats_no_equal_of_its_own():
    found = harness.compare(scored("a", *GOOD), scored("b", *GOOD))
    assert found.better is None and found.difference == 0 and found.p == 1


def test_fewer_than_three_scenes_can_not_tell():
    found = harness.compare(scored("a", 0.9, 0.9), scored("b", 0.1, 0.1))
    assert found.interval is found.p is found.better is None
    assert sentence(found) == (
        f"Can't tell whether a beats b on toy-data, split all: {HEADLINE} +80.00 points, but 3"
        " scenes are needed, and there are 2."
    )


def test_without_scenes_the_headlines_are_shown():
    a, b = (one.model_copy(update={"scenes": {}}) for one in (scored("a", 0.7), scored("b", 0.6)))
    found = harness.compare(a, b)
    assert "+10.00 points, but 3 scenes are needed, and there are 0." in sentence(found)
    assert f"| {HEADLINE} | 70.00 | 60.00 | +10.00 |" in str(found)
    neither = a.model_copy(update={"scores": {"other": 0.7}})
    with pytest.raises(HarnessError, match="have no scene and no verification/ap in common"):
        harness.compare(neither, b)


def test_scenes_without_which_the_answer_is_open_are_named():
    a = (0.52, 0.515, 0.51, 0.60)
    found = harness.compare(scored("a", *a), scored("b", 0.50, 0.50, 0.50, 0.50))
    assert found.better is None
    found = harness.compare(scored("a", 0.6, 0.56, 0.6, 0.52), scored("b", 0.5, 0.5, 0.5, 0.5))
    assert found.better == "a" and found.deciding == ["s0", "s1", "s2"]
    assert "; without s0 or s1 or s2 it can't be told." in sentence(found)


def test_where_less_is_better_less_wins():
    a, b = (
        scored(name, *values, headline="mean/fpr95") for name, values in (("a", BAD), ("b", GOOD))
    )
    found = harness.compare(a, b)
    assert sentence(found).startswith("Yes, a beats b") and found.difference < 0
    assert "a is better on 5 of them." in sentence(found)


def test_counts_are_no_points():
    quantities = {"points": Quantity(decimals=0)}
    a, b = (
        scored(name, *values, headline="points")
        for name, values in (("a", (1900.0, 2900.0, 3900.0)), ("b", (900.0, 1900.0, 2910.0)))
    )
    for one in (a, b):
        one.protocol.quantities.update(quantities)
    found = harness.compare(a, b)
    assert "points +997 [+982, +1,011], n" in sentence(found)
    assert "| mean over scenes | 2,900 | 1,903 | +997 |" in str(found)


def test_rows_begin_where_a_gains_most_and_end_with_means():
    a = scored("a", *GOOD)
    a = a.model_copy(update={"scores": {HEADLINE: 0.9}})
    rows = [line for line in str(harness.compare(a, scored("b", *BAD))).splitlines()[4:] if line]
    assert [row.split(" | ")[0] for row in rows[:-1]] == [
        "| s2", "| s0", "| s3", "| s1", "| s4", "| mean over scenes", f"| {HEADLINE}",
    ]  # fmt: skip


def test_of_many_scenes_the_ends_are_shown():
    many = np.linspace(0.3, 0.9, 40)
    text = str(harness.compare(scored("a", *many), scored("b", *(many**2))))
    assert "| 20 scenes between | | | |" in text
    assert text.count("\n| s") == 20


def test_a_scene_that_one_record_lacks_is_left_out():
    few = scored("a", *GOOD[:4])
    found = harness.compare(few, scored("b", *BAD))
    assert list(found.scenes) == ["s0", "s1", "s2", "s3"]


def test_training_on_tested_data_is_marked():
    text = str(harness.compare(scored("a", *GOOD, trained_on=None), scored("b", *BAD)))
    assert "| | a ? | b | difference |" in text and "? its training data are unknown" in text


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"dataset": toy_dataset(truth="other")}, "data is "),
        ({"dataset": toy_dataset(name="other")}, "data set is toy-data and other"),
        ({"dataset": toy_dataset(split="b")}, "split is all and b"),
        (
            {"options": {"ties": "official"}},
            r"protocol is toy/verification and toy/.*ties=official",
        ),
        ({"tasks": ("matching",)}, "protocol is toy/verification and toy/matching"),
    ],
)
def test_records_that_may_not_share_a_table_are_refused(fields, what):
    with pytest.raises(HarnessError, match=f"can't share a table.*{what}"):
        harness.compare(scored("a", *GOOD), scored("b", *BAD, **fields))


def test_partial_data_are_refused():
    part = toy_dataset(complete=False)
    with pytest.raises(HarnessError, match="record of a is of a part of toy-data"):
        harness.compare(scored("a", *GOOD, dataset=part), scored("b", *BAD, dataset=part))


# ---- by name


def records():
    other = toy_dataset(name="more")
    return [
        *(scored(name, *values) for name, values in (("a", GOOD), ("b", BAD), ("c", BAD))),
        *(scored(name, *BAD, dataset=other) for name in "ab"),
        *(scored(name, *GOOD, options={"ties": "official"}) for name in "ab"),
        *measured("a", tasks=("matching",)),
    ]


def test_each_task_that_both_have_a_record_of_is_compared():
    found = comparisons(records(), "a", "b", "toy")
    assert [(one.a.data.name, one.a.protocol.options_text, one.better) for one in found] == [
        ("toy-data", "", "a"), ("more", "", None), ("toy-data", "ties=official", None),
    ]  # fmt: skip
    assert len(comparisons(records(), "a", "b", "toy/verification", "more")) == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("a", "x", "toy"), "there is no model named 'x'; known: a, b"),
        (("a", "b", "toi"), "there is no protocol named 'toi'; did you mean 'toy'"),
        (("a", "b", "toy", "mor"), "there is no data set named 'mor'; did you mean 'more'"),
        (("a", "c", "toy", "more"), "there is no model named 'c'; known: a, b"),
        (("b", "a", "toy/matching"), "there is no model named 'b'; known: a"),
    ],
)
def test_unknown_names_are_answered(arguments, told):
    with pytest.raises(HarnessError, match=told):
        comparisons(records(), *arguments)


def test_models_that_share_no_data_are_told_so():
    both = [scored("a", *GOOD), scored("b", *GOOD, dataset=toy_dataset(name="more"))]
    with pytest.raises(HarnessError, match="a and b have no record by toy of the same data"):
        comparisons(both, "a", "b", "toy")


def test_the_command_answers_first(run, tmp_path):
    for one in (scored("a", *GOOD), scored("b", *BAD)):
        results.save(tmp_path, one)
    status, out, _ = run("compare", "a", "b", "--protocol", "toy", "--results", tmp_path)
    assert status == 0 and out.startswith("Yes, a beats b on toy-data")
    assert "mean over scenes" in out and out.count("In brackets") == 1
    status, _, err = run("compare", "a", "d", "--protocol", "toy", "--results", tmp_path)
    assert status == 2 and "among the records there is no model named 'd'" in err
