"""Models that can't be told apart share ranks."""

import csv
import io

import numpy as np
import pytest
from toy import measured, scored

import harness
from harness import Quantity
from harness.records import leaderboard
from harness.records.ranks import ranks

HEADLINE = "verification/ap"


def three(**fields):
    """The first two can't be told apart; both are better than the third."""
    return [
        scored("a", 0.80, 0.82, 0.81, **fields),
        scored("b", 0.81, 0.80, 0.81, **fields),
        scored("c", 0.60, 0.61, 0.62, **fields),
    ]


def test_models_that_can_not_be_told_apart_share_ranks():
    assert ranks(three()) == ["1-2", "1-2", "3"]


def test_where_less_is_better_ranks_are_turned():
    assert ranks(three(headline="scene/fpr95")) == ["2-3", "2-3", "1"]


def test_counts_are_ranked_as_they_are():
    quantities = {"points": Quantity(decimals=0)}
    records = [
        scored(name, *values, headline="points")
        for name, *values in (("a", 900.0, 1000.0, 1100.0), ("b", 100.0, 110.0, 120.0))
    ]
    for one in records:
        one.protocol.quantities.update(quantities)
    assert ranks(records) == ["1", "2"]


def test_ranks_do_not_depend_on_the_order():
    assert ranks(three()[::-1]) == ["3", "1-2", "1-2"]


def test_equal_records_share_all_ranks():
    assert ranks([scored(name, 0.8, 0.8, 0.8) for name in "abc"]) == ["1-3"] * 3


def test_a_record_of_few_scenes_has_no_rank_and_does_not_count():
    assert ranks([*three(), scored("d", 0.9, 0.9), None]) == ["1-2", "1-2", "3", "", ""]
    assert ranks([scored("a", 0.8, 0.8, 0.8), scored("d", 0.9, 0.9)]) == ["", ""]
    assert ranks([]) == []


def test_models_of_other_scenes_are_compared_on_those_of_both():
    few = scored("d", 0.0, 0.75, 0.74, 0.76)
    more = [scored(one.model.name, *[0.7, 0.71, 0.7, 0.72]) for one in three()[:1]]
    left_out = few.model_copy(update={"scenes": {k: v for k, v in few.scenes.items() if k != "s0"}})
    assert ranks([left_out, *more]) == ["1", "2"]
    assert ranks([few, *more]) == ["1-2", "1-2"]


def test_tables_show_ranks_among_the_same_options():
    records = [*three(), *three(options={"ties": "official"})[1:], *measured("one")]
    (board,) = leaderboard.boards(records)
    page = leaderboard.to_markdown(board)
    assert "| model | options | dim | rank | ap |" in page.replace(HEADLINE, "ap")
    assert "| b | | 8 | 1-2 |" in page and "| b | ties=official | 8 | 1 |" in page
    assert "| one | | 8 | — |" in page
    assert f"rank, by {HEADLINE}: " in page
    rows = list(csv.DictReader(io.StringIO(leaderboard.to_csv(board))))
    found = {(row["model"], row["options"]): row["rank"] for row in rows}
    assert (
        found["a", ""] == "1-2" and found["c", "ties=official"] == "2" and found["one", ""] == "—"
    )
    table = harness.leaderboard(records)
    default = table[table["options"] == ""].set_index("model")["rank"]
    assert default.drop("one").to_dict() == {"a": "1-2", "b": "1-2", "c": "3"}
    assert table["rank"].isna().sum() == 1


def test_a_board_without_scenes_says_no_rank():
    (board,) = leaderboard.boards([*measured("a"), *measured("b")])
    assert "rank" not in leaderboard.to_markdown(board)


@pytest.mark.parametrize("scenes", [3, 116])
def test_a_thousand_models_are_ranked(scenes):
    rng = np.random.default_rng(0)
    skill = np.linspace(0.2, 0.8, 1000)
    difficulty = rng.normal(0, 0.05, scenes)
    first = scored("a", *[0.5] * scenes)
    records = [
        first.model_copy(
            update={"scenes": {f"s{i}": {HEADLINE: value} for i, value in enumerate(row.tolist())}}
        )
        for row in skill[:, None] + difficulty + rng.normal(0, 0.01, (1000, scenes))
    ]
    found = [[int(end) for end in rank.split("-")] for rank in ranks(records)]
    true = np.arange(1000, 0, -1)
    held = [one[0] <= rank <= one[-1] for one, rank in zip(found, true, strict=True)]
    assert np.mean(held) > 0.98
