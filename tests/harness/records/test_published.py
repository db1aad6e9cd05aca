"""Published numbers: how they are read, which records they meet, and what is said then."""

import dataclasses

import pytest
from published_files import COLUMNS, number, write_numbers
from toy import measured, toy_dataset

from harness import Quantity
from harness.records import leaderboard, published, tables
from harness.records import record as results

KEY = ("toy", "toy-data", "all")


def told(numbers, score=0.525, **fields):
    (record,) = measured(score=score, **fields)
    return [*published.verdicts(record, numbers)]


def page(*numbers, records=None):
    board = leaderboard.board(KEY, records or [*measured(score=0.525)], numbers)
    return leaderboard.to_markdown(board)


# ---- reading


def test_numbers_are_read_in_the_order_of_files_and_lines(tmp_path):
    first, second = number(method="é|b"), number(method="a", value="3.10")
    other = number(paper="Other", trained_on="phototour/liberty+hpatches")
    write_numbers(tmp_path / "z.csv", other)
    write_numbers(tmp_path / "a.csv", first, second)
    (tmp_path / "README.md").write_text("no numbers")
    assert published.read(tmp_path) == [first, second, other]


def test_without_a_folder_there_are_no_numbers(tmp_path):
    assert published.read(tmp_path / "published") == []


def test_one_number_may_be_printed_by_two_papers_and_in_two_tables(tmp_path):
    numbers = [number(), number(paper="Other", value="4.1"), number(where="Table 2", value="8.39")]
    write_numbers(tmp_path / "a.csv", *numbers)
    assert published.read(tmp_path) == numbers


def test_a_number_that_stands_twice_is_an_error_that_names_both_lines(tmp_path):
    write_numbers(tmp_path / "a.csv", number(), number(dim="9"))
    write_numbers(tmp_path / "b.csv", number(value="1"))
    with pytest.raises(ValueError, match=r"b\.csv, line 2 is of the same number as .*a\.csv, line"):
        published.read(tmp_path)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"paper": ""}, "paper is empty"),
        ({"score": ""}, "score is empty"),
        ({"method": " a"}, "begins or ends with a blank"),
        ({"unit": "per cent"}, "unit is 'per cent'; percent, fraction, count, px are known"),
        ({"value": "14K"}, "value: '14K' is not a number"),
        ({"value": "100.1"}, "value is 100.1 percent"),
        ({"value": "52.8", "unit": "fraction"}, "value is 52.8 fraction"),
        ({"value": "-1"}, "value is -1 percent"),
        ({"value": "nan"}, "value is nan percent"),
        ({"value": "inf", "unit": "count"}, "value is inf count"),
    ],
)
def test_a_number_that_can_not_be_is_refused_by_file_and_line(tmp_path, change, fault):
    write_numbers(tmp_path / "a.csv", number(), number(**({"method": "B"} | change)))
    with pytest.raises(ValueError, match=rf"a\.csv, line 3: .*{fault}"):
        published.read(tmp_path)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "is empty; a first line with the columns"),
        ("paper,where\n", "line 1: the columns are"),
        (f"{','.join(COLUMNS)}\na,b\n", "line 2 has 2 cells; 14 are wanted"),
        (f'{",".join(COLUMNS)}\n"a"b\n', "line 2 is no CSV"),
        (",".join(COLUMNS), "doesn't end with a line end"),
    ],
)
def test_a_file_of_another_form_is_refused(tmp_path, text, fault):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(ValueError, match=rf"a\.csv.*{fault}"):
        published.read(tmp_path)


def test_percent_and_fractions_are_one_number():
    percent, fraction = number(value="52.80"), number(value="0.528", unit="fraction")
    assert percent.number == pytest.approx(fraction.number) == pytest.approx(0.528)
    assert (percent.shown, fraction.shown) == ("52.80", "52.80")
    assert number(value="45.0").shown == "45.0"
    assert number(value="14722", unit="count").number == 14722


# ---- verdicts


@pytest.mark.parametrize(
    ("score", "verdict"),
    [
        (0.528, "mean, verification/ap: 52.80, within 0.3 points of the published 52.8"),
        (0.531, "mean, verification/ap: 53.10, within 0.3 points of the published 52.8"),
        (0.525, "mean, verification/ap: 52.50, within 0.3 points of the published 52.8"),
        (0.5314, "mean, verification/ap: 53.14, 0.34 points above the published 52.8"),
        (0.497, "mean, verification/ap: 49.70, 3.10 points below the published 52.8"),
    ],
)
def test_a_score_is_within_the_tolerance_or_so_many_points_away(score, verdict):
    assert told([number()], score) == [f"{verdict} (Toy paper, Table 1)"]


def test_of_several_models_the_first_that_was_measured_is_compared():
    for models in ("mean", "mean other", "other mean"):
        assert len(told([number(model=models)])) == 1
        assert "(-0.30)" in page(number(model=models))


@pytest.mark.parametrize(
    "change",
    [
        {"model": "other"},
        {"model": ""},
        {"protocol": "toy/matching"},
        {"protocol": ""},
        {"options": "ties=official"},
        {"data": "toy"},
        {"split": "a"},
        {"split": ""},
        {"score": "AP"},  # of another definition
        {"unit": "count"},
    ],
)
def test_a_number_of_anything_else_is_never_compared(change):
    assert told([number(**change)]) == []
    assert "(-0.30)" not in page(number(**change))


def test_a_number_of_an_option_meets_records_of_that_option():
    one = number(options="ties=official")
    assert told([one], options={"ties": "official"})
    assert not told([number()], options={"ties": "official"})


def test_a_number_of_a_scene_meets_a_split_that_joins_scenes():
    one = number(split="two")
    assert told([one], dataset=toy_dataset(split="one+two"))
    assert not told([one], dataset=toy_dataset(split="one+twofold"))
    assert not told([one], dataset=toy_dataset(split="one+two@other-list"))
    assert not told([number(split="one+two")], dataset=toy_dataset(split="one+three+two"))


def test_papers_that_print_one_value_share_a_sentence():
    numbers = [number(), number(paper="B", remark="copied"), number(paper="C", value="8.39")]
    first, second = told(numbers)
    assert first.endswith("52.8 (Toy paper, Table 1; B, Table 1; copied)")
    assert second.endswith("44.11 points above the published 8.39 (C, Table 1)")


def test_other_training_data_are_said():
    named, silent = number(trained_on="phototour/liberty"), number()
    (one,) = told([named], trained_on=frozenset({"other/mine"}))
    assert one.endswith("trained on phototour/liberty, not on the training data of this model)")
    (same,) = told([named], trained_on=frozenset({"phototour/liberty"}))
    assert "trained" not in same
    (unsaid,) = told([silent], trained_on=frozenset({"other/mine"}))
    assert unsaid.endswith("on which training data is not stated)")
    assert "trained" not in told([silent])[0]


def test_quantities_differ_in_their_own_unit():
    (record,) = measured()
    protocol = record.protocol.model_copy(update={"quantities": {"points": Quantity(decimals=0)}})
    record = record.model_copy(update={"protocol": protocol, "scores": {"one/points": 14734.0}})
    one = number(score="one/points", value="14722", unit="count")
    (verdict,) = published.verdicts(record, [one])
    assert verdict == "mean, one/points: 14734, 12 above the published 14722 (Toy paper, Table 1)"
    assert "| 14722 (+12) |" in page(one, records=[record])
    in_percent = dataclasses.replace(one, value="50", unit="percent")
    assert [*published.verdicts(record, [in_percent])] == []


def test_a_published_headline_spares_its_parts():
    (record,) = measured()
    record = record.model_copy(update={"scores": {"verification/ap": 0.5, "easy/ap": 0.5}})
    part, headline = number(score="easy/ap"), number()
    assert len([*published.verdicts(record, [part, headline])]) == 1
    assert "easy/ap" in next(published.verdicts(record, [part]))


# ---- tables


def test_published_numbers_stand_in_a_section_of_their_own():
    other = number(method="Other|+", model="", dim="", trained_on="phototour/liberty", value="99.9")
    text = page(number(remark="by VLFeat"), other)
    ranked, title, section = text.partition("\n## Published, on the same data\n")
    assert title
    assert "99.9" not in ranked
    assert "| Mean | 8 | — | 52.8 (-0.30) | mean | Toy paper, Table 1 | by VLFeat |" in section
    row = r"| Other\|+ | — | phototour/liberty | 99.9 | | Toy paper, Table 1 | |"
    assert row in section


def test_each_group_of_scores_has_its_own_published_table():
    (record,) = measured()
    scores = {"verification/ap": 0.5, "verification/easy/ap": 0.5, "verification/hard/ap": 0.5}
    record = record.model_copy(update={"scores": scores})
    text = page(
        number(score="verification/easy/ap"), number(score="verification/hard/ap", value="1.5"),
        number(), number(score="AP", method="Undefined"),
        records=[record],
    )  # fmt: skip
    section = text.partition("## Published")[2]
    assert "| method | dim | trained on | verification/ap | here |" in section
    assert "| trained on | verification/easy/ap |" in section
    assert "| trained on | verification/hard/ap |" in section
    assert "Undefined" not in section


def test_options_of_published_numbers_stand_in_a_column():
    one = number(options="ties=official")
    (plain,) = measured()
    (official,) = measured(options={"ties": "official"}, score=0.5)
    assert "| Mean | ties=official | 8 | — | 52.8 (-2.80) |" in page(one, records=[plain, official])


def test_a_board_without_published_numbers_has_no_section(tmp_path):
    records = [*measured()]
    assert "Published" not in page(records=records)
    assert "Published" not in page(number(data="other"), records=records)
    (record,) = records
    results.save(tmp_path, record)
    (_, markdown, _) = tables.write(tmp_path)
    assert markdown.read_text() == page(records=records)


def test_the_csv_file_and_the_ranks_hold_only_what_was_measured(tmp_path):
    board = leaderboard.board(KEY, [*measured()], [number()])
    assert leaderboard.to_csv(board) == leaderboard.to_csv(leaderboard.board(KEY, [*measured()]))


def test_tables_are_made_with_the_numbers_of_the_results_folder(tmp_path):
    for record in measured():
        results.save(tmp_path, record)
    file = write_numbers(tmp_path / "published/toy.csv", number())
    (_, markdown, _) = tables.write(tmp_path)
    assert "| Mean | 8 |" in markdown.read_text()
    before = markdown.read_bytes()
    file.write_text("broken\n")
    with pytest.raises(ValueError, match=r"toy\.csv, line 1"):
        tables.write(tmp_path)
    assert markdown.read_bytes() == before
