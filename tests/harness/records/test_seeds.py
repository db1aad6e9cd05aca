"""Recipes with several seeds: mean, deviation, and whether one is better."""

import csv
import io

import pytest
from toy import measured, scored

from harness.records import leaderboard, seeds, tables
from harness.records import record as results

LEADERBOARD = {"leaderboard.csv", "leaderboard.md", "leaderboard.tex"}
SCORES = {"good": (0.80, 0.82, 0.81), "bad": (0.70, 0.72, 0.715)}


def trained(name, recipe, seed, score, **fields):
    one = scored(name, score, **fields)
    model = one.model.model_copy(update={"recipe": recipe, "seed": seed})
    return one.model_copy(update={"model": model})


def both(**fields):
    return [
        trained(f"{name}@{seed}", f"recipe of {name}", seed, score, **fields)
        for name, scores in SCORES.items()
        for seed, score in enumerate(scores)
    ]


def board(records):
    (found,) = leaderboard.boards(records)
    return found


def rows(records):
    return list(csv.DictReader(io.StringIO(seeds.texts_of(board(records))[".csv"])))


def test_the_table_has_means_and_deviations_over_seeds():
    good, bad = rows([*both(), scored("other", 0.9)])
    assert (good["recipe"], good["seeds"], good["models"]) == (
        "good", "0, 1, 2", "good@0 good@1 good@2",
    )  # fmt: skip
    assert float(good["mean"]) == pytest.approx(0.81)
    assert float(good["deviation"]) == pytest.approx(0.01)  # n - 1
    assert (good["U over bad"], good["p over bad"]) == ("9.0", "0.05")
    assert (bad["U over good"], bad["p over good"]) == ("0.0", "1.0")
    assert good["p over good"] == "—"


def test_the_page_shows_percent():
    page = seeds.texts_of(board(both()))[".md"]
    assert "| recipe | seeds | mean ± deviation | p over good | p over bad |" in page
    assert "| good | 0, 1, 2 | 81.00 ± 1.00 | — | 0.05 |" in page
    assert "| bad | 0, 1, 2 | 71.17 ± 1.04 | 1 | — |" in page
    assert "toy-data, split all: seeds" in page and seeds.NOTE in page


def test_where_less_is_better_the_least_is_better():
    bad, good = rows(both(headline="scene/fpr95"))
    assert (bad["recipe"], good["recipe"]) == ("bad", "good")
    assert bad["p over good"] == "0.05"


def test_recipes_of_other_options_are_not_compared():
    records = [*both()[:3], *both(options={"ties": "official"})[3:]]
    found = rows(records)
    assert [(row["options"], row["recipe"]) for row in found] == [
        ("", "good"), ("ties=official", "bad"),
    ]  # fmt: skip
    assert {row["p over good"] for row in found} == {"—"}


def test_one_seed_makes_no_table():
    assert not seeds.texts_of(board([*both()[:1], *both()[3:4]]))
    assert not seeds.texts_of(board([scored("a", 0.5), scored("b", 0.6)]))


def test_a_seed_counts_once():
    twice = trained("zz", "recipe of good", 0, 0.1)
    good, _ = rows([*both(), twice])
    assert good["models"] == "good@0 good@1 good@2" and float(good["mean"]) == pytest.approx(0.81)


def test_recipes_of_one_name_are_told_apart():
    records = [
        trained(f"net@{recipe}{seed}", recipe, seed, 0.5 + seed / 10)
        for recipe in ("1234567890", "abcdefghij")
        for seed in (0, 1)
    ]
    assert {row["recipe"] for row in rows(records)} == {"net (12345678)", "net (abcdefgh)"}


def test_the_files_stand_beside_the_leaderboard_and_go_with_their_records(tmp_path):
    for one in both():
        results.save(tmp_path, one)
    names = {file.name for file in tables.write(tmp_path)}
    assert names == {*LEADERBOARD, "seeds.csv", "seeds.md"}
    for file in (tmp_path / "records").rglob("*_[12].json"):
        file.unlink()
    assert {file.name for file in tables.write(tmp_path)} == LEADERBOARD
    assert not list(tmp_path.rglob("seeds.*"))


# ---- facts of a record


def test_recipe_and_seed_are_facts_of_a_record_and_no_identity():
    (plain,) = measured("a")
    (told,) = measured("a", recipe="mine", seed=0)
    assert (told.model.recipe, told.model.seed) == ("mine", 0)
    assert told.model.identity == plain.model.identity
    assert "recipe" not in results.to_json(plain) and "seed" not in plain.model.model_dump()
    assert results.Record.model_validate_json(results.to_json(told)) == told
