import csv
import dataclasses
import io

import pytest
from toy import measured, toy_dataset

from harness import Quantity
from harness.records import leaderboard
from harness.records import record as results
from harness.records.leaderboard import MISSING


def board(*records):
    (found,) = leaderboard.boards(records)
    return found


def cells(one):
    return list(csv.DictReader(io.StringIO(leaderboard.to_csv(one))))


def test_the_best_stands_first():
    one = board(*measured("bad", score=0.1), *measured("good", score=0.9))
    assert [row["model"] for row in cells(one)] == ["good", "bad"]


def test_the_least_stands_first_where_less_is_better():
    records = []
    for name, value in (("bad", 0.9), ("good", 0.1)):
        (record,) = measured(name)
        headline = record.protocol.model_copy(update={"headline": "scene/fpr95"})
        records.append(
            record.model_copy(update={"scores": {"scene/fpr95": value}, "protocol": headline})
        )
    assert [row["model"] for row in cells(board(*records))] == ["good", "bad"]


def test_what_was_not_measured_is_said_to_be_missing():
    one = board(*measured("all", tasks=("verification", "matching")), *measured("one"))
    rows = {row["model"]: row for row in cells(one)}
    assert rows["one"]["matching/ap"] == MISSING
    assert f"| one | 8 | {MISSING} |" in leaderboard.to_markdown(one)


def test_a_row_trained_on_what_it_is_tested_on_is_marked():
    one = board(*measured("cheat", trained_on=frozenset({"toy"})), *measured("fair"))
    table = leaderboard.to_markdown(one)
    assert "| cheat † |" in table
    assert "| fair |" in table
    found = {row["model"]: row["trained_on_tested_data"] for row in cells(one)}
    assert found == {"cheat": "yes", "fair": "no"}


def test_what_can_not_be_known_of_the_data_is_said_below_the_table():
    dataset = dataclasses.replace(toy_dataset(), unchecked=("its pixels.",))
    (record,) = measured("one", dataset=dataset)
    assert record.data.unchecked == ["its pixels."]
    assert '"unchecked": [\n   "its pixels."\n  ]' in results.to_json(record)
    table = leaderboard.to_markdown(board(record, *measured("two", dataset=dataset)))
    assert table.count("\nNot checked: its pixels.\n") == 1
    (plain,) = measured("one")
    assert "unchecked" not in results.to_json(plain)
    assert "Not checked" not in leaderboard.to_markdown(board(plain))


def test_a_row_of_unknown_training_is_marked():
    one = board(*measured("secret", trained_on=None))
    assert "| secret ? |" in leaderboard.to_markdown(one)
    assert "? its training data are unknown" in leaderboard.to_markdown(one)
    assert cells(one)[0]["trained_on_tested_data"] == "unknown"


def test_partial_data_enter_no_board():
    assert not leaderboard.boards(measured(dataset=toy_dataset(complete=False)))


def test_data_sets_of_other_names_never_share_a_board():
    found = leaderboard.boards(
        [*measured("a"), *measured("b", dataset=toy_dataset(name="toy-sample"))]
    )
    assert [b.data for b in found] == ["toy-data", "toy-sample"]


def test_other_contents_under_one_name_are_an_error():
    with pytest.raises(ValueError, match=r"b .*and a .*can't share a table.*data"):
        leaderboard.boards([*measured("a"), *measured("b", dataset=toy_dataset(truth="other"))])


def test_other_weights_under_one_name_are_an_error():
    with pytest.raises(ValueError, match=r"can't share a table.*model weights"):
        leaderboard.boards([*measured("a"), *measured("a", tasks=("matching",), weights="0" * 64)])


@pytest.mark.parametrize(
    ("fields", "what"),
    [({"revision": 2}, "revision is 2 and 1"), ({"dim": 9}, "dim is 9 and 8")],
)
def test_another_model_in_one_row_is_an_error(fields, what):
    one, two = measured("a", tasks=("verification", "matching"))
    other = two.model.model_copy(update=fields)
    with pytest.raises(ValueError, match=f"model {what}"):
        leaderboard.boards([one, two.model_copy(update={"model": other})])


def test_another_environment_in_one_row_is_the_same_model():
    one, two = measured("a", tasks=("verification", "matching"))
    elsewhere = two.environment.model_copy(update={"provider": "cuda", "fingerprint": "other"})
    assert len(board(one, two.model_copy(update={"environment": elsewhere})).rows) == 1


def test_other_versions_of_what_a_protocol_scores_by_are_an_error():
    records = []
    for name, version in (("a", "3.13"), ("b", "4.2")):
        (record,) = measured(name)
        protocol = record.protocol.model_copy(update={"libraries": ["judge"]})
        versions = {**record.environment.libraries, "judge": version, "own": version}
        environment = record.environment.model_copy(update={"libraries": versions})
        records.append(record.model_copy(update={"protocol": protocol, "environment": environment}))
    with pytest.raises(ValueError, match=r"version of judge is 4\.2 and 3\.13"):
        leaderboard.boards(records)
    same = records[0].model_copy(update={"model": records[1].model})
    assert len(board(records[0], same).rows) == 2
    name = {"name": "toy/matching"}  # which is not scored by it
    protocol = records[1].protocol.model_copy(update={**name, "libraries": []})
    assert len(board(records[0], records[1].model_copy(update={"protocol": protocol})).rows) == 2


@pytest.mark.parametrize(
    ("part", "fields"),
    [
        ("data", {"name": "../../elsewhere"}),
        ("data", {"name": ".."}),
        ("data", {"name": "/tmp"}),
        ("data", {"split": "."}),
        ("data", {"split": ""}),
        ("data", {"split": "a\\b"}),
        ("protocol", {"name": "toy/../../verification"}),
        ("protocol", {"name": "../verification"}),
    ],
)
def test_no_name_leads_out_of_the_results(tmp_path, part, fields):
    (record,) = measured()
    bad = getattr(record, part).model_copy(update=fields)
    with pytest.raises(ValueError, match="can't be kept under"):
        results.save(tmp_path / "results", record.model_copy(update={part: bad}))
    assert not list(tmp_path.rglob("*"))


def test_names_of_data_and_splits_may_have_signs(tmp_path):
    (record,) = measured(dataset=toy_dataset(name="toy+more", split="a+b_c.2@m50"))
    folder = tmp_path / "records/toy/verification/toy+more/a+b_c.2@m50"
    assert results.place(tmp_path, record) == folder / "mean.json"


def test_rows_of_other_options_stand_below_and_are_not_ranked_with_the_default():
    one = board(
        *measured("a", score=0.1),
        *measured("b", score=0.2),
        *measured("a", score=0.9, options={"ties": "official"}),
        *measured("b", score=0.8, options={"ties": "official"}),
        *measured("a", score=0.5, options={"size": "3"}),
    )
    found = [(row["model"], row["options"]) for row in cells(one)]
    official = "ties=official"
    assert found == [("b", ""), ("a", ""), ("a", "size=3"), ("a", official), ("b", official)]
    page = leaderboard.to_markdown(one)
    assert "| model | options | dim |" in page and f"| a | {official} | 8 | 90.00" in page
    assert "| model | dim |" in leaderboard.to_markdown(board(*measured("a")))


def test_data_and_version_of_other_options_need_not_agree():
    (other,) = measured("b", dataset=toy_dataset(truth="other"), options={"frames": "mine"})
    newer = other.protocol.model_copy(update={"version": 2})
    assert len(board(*measured("a"), other.model_copy(update={"protocol": newer})).rows) == 2


def test_a_model_is_one_whatever_the_options():
    with pytest.raises(ValueError, match=r"\(ties=official\) and a on toy.*model weights"):
        leaderboard.boards(
            [*measured("a"), *measured("a", weights="0" * 64, options={"ties": "official"})]
        )


def test_a_score_without_an_interval_is_told_among_rows_of_the_same_options():
    (runs,) = measured("a", options={"repeats": "5"})
    (once,) = measured("a")
    once = once.model_copy(update={"intervals": {}, "scenes": {}})
    assert "without brackets" not in leaderboard.to_markdown(board(once, runs))
    twice = once.model_copy(update={"protocol": runs.protocol})
    other = twice.model.model_copy(update={"name": "b"})
    twice = twice.model_copy(update={"model": other})
    assert "without brackets" in leaderboard.to_markdown(board(twice, runs))


def test_percent_stands_only_in_the_table_to_read():
    one = board(*measured(score=0.123456789))
    assert cells(one)[0]["verification/ap"] == "0.123456789"
    assert "12.35 [25.0, 100.0]" in leaderboard.to_markdown(one)


def counted(name, **scores):
    """A record of counts and errors in two scenes, headed by all points."""
    (record,) = measured(name)
    quantities = {"points": Quantity(decimals=0), "error_px": Quantity(3, lower_is_better=True)}
    protocol = record.protocol.model_copy(
        update={"headline": "total/points", "quantities": quantities}
    )
    named = {key.replace("_", "/", 1): value for key, value in scores.items()}
    return record.model_copy(update={"protocol": protocol, "scores": named, "intervals": {}})


def test_quantities_are_shown_as_they_are_and_the_most_stands_first():
    one = board(
        counted("few", total_points=14722.0, a_points=722.0, a_error_px=0.3929),
        counted("many", total_points=20000.0, a_points=6000.0, a_error_px=1.25),
    )
    text = leaderboard.to_markdown(one)
    assert "| few | 8 | 14,722 |" in text
    assert "percent" not in text.lower()
    assert [row["model"] for row in cells(one)] == ["many", "few"]
    assert cells(one)[1]["total/points"] == "14722.0"


def test_quantities_of_one_scene_stand_together():
    one = board(counted("few", total_points=2.0, a_points=1.0, b_points=1.0, a_error_px=0.3929))
    assert "## a\n\n| model | dim | error_px | points |" in leaderboard.to_markdown(one)
    assert "| few | 8 | 0.393 | 1 |" in leaderboard.to_markdown(one)


def test_a_score_of_one_word_has_its_place_below_the_headline():
    record = counted("few", total_points=2.0)
    scores = {"map": 0.5, "map8": 0.25, "graf/map": 0.75}
    protocol = record.protocol.model_copy(update={"headline": "map"})
    text = leaderboard.to_markdown(
        board(record.model_copy(update={"protocol": protocol, "scores": scores}))
    )
    assert "| model | dim | map |\n|---|---|---:|\n| few | 8 | 50.00 |" in text
    assert "## overall\n\n| model | dim | map8 |\n|---|---|---:|\n| few | 8 | 25.00 |" in text
    assert "\nPercent" in text  # though its cases are counted; and nothing is in brackets
    update = {"protocol": protocol, "scores": scores, "intervals": {"map": (0.4, 0.6)}}
    bounded = record.model_copy(update=update)
    assert "Percent; in brackets the 95 % interval over similar scenes" in leaderboard.to_markdown(
        board(bounded)
    )


def test_a_headline_over_scenes_without_an_interval_says_why():
    (record,) = measured("few")
    scenes = {"a": {"ap": 0.5}, "b": {"ap": 0.6}}
    text = leaderboard.to_markdown(
        board(record.model_copy(update={"scenes": scenes, "intervals": {}}))
    )
    assert "Percent; without brackets: too few scenes" in text
    ends = {record.protocol.headline: (0.4, 0.6)}
    text = leaderboard.to_markdown(
        board(record.model_copy(update={"scenes": scenes, "intervals": ends}))
    )
    assert "without brackets" not in text


def test_warnings_stand_below_the_table_with_the_models_they_are_about():
    a, b, c = (next(iter(measured(name))) for name in "abc")
    all_three = ["One run of few images."]
    rows = [
        a.model_copy(update={"warnings": all_three}),
        b.model_copy(update={"warnings": [*all_three, "Nothing was found."]}),
        c.model_copy(update={"warnings": all_three}),
    ]
    lines = leaderboard.headline_table(board(*rows))
    assert sum(line.startswith(("| a ‡ |", "| b ‡ |", "| c ‡ |")) for line in lines) == 3
    assert lines[-4:] == ["", "‡ One run of few images.", "", "‡ b: Nothing was found."]
    assert "‡" not in "".join(leaderboard.headline_table(board(a, b, c)))


def test_the_interval_of_a_quantity_is_shown_like_it():
    (record,) = [counted("few", total_points=14722.0)]
    ends = record.model_copy(update={"intervals": {"total/points": (14700.0, 14750.5)}})
    assert "In brackets the middle 95 % of runs.\n" in leaderboard.to_markdown(board(ends))
    assert "14,722 [14,700, 14,750]" in leaderboard.to_markdown(board(ends))


def test_a_headline_of_which_less_is_better_says_so_itself():
    records = []
    for name, value in (("bad", 9.0), ("good", 1.0)):
        record = counted(name, a_error_px=value)
        headline = record.protocol.model_copy(update={"headline": "a/error_px"})
        records.append(record.model_copy(update={"protocol": headline}))
    assert [row["model"] for row in cells(board(*records))] == ["good", "bad"]
