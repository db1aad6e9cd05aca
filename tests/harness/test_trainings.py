"""Trainings of one recipe are found by their settings."""

import pytest

from harness.trainings import recipe_and_seed

SETTINGS = {"name": "mine", "epochs": 3, "method": {"margin": 1.0}, "data": ["a"], "seed": 0}


def test_seeds_of_one_recipe_have_one_text_whatever_their_names():
    recipe, seed = recipe_and_seed(SETTINGS)
    other = {**SETTINGS, "seed": 4, "name": "mine@4", "paper": "P", "licence": "MIT"}
    assert recipe_and_seed(other) == (recipe, 4)
    assert seed == 0


@pytest.mark.parametrize("change", [{"epochs": 4}, {"data": ["b"]}, {"method": {"margin": 2.0}}])
def test_other_settings_are_another_recipe(change):
    assert recipe_and_seed({**SETTINGS, **change})[0] != recipe_and_seed(SETTINGS)[0]


def test_another_precision_is_another_recipe():
    assert recipe_and_seed(SETTINGS, precision="int8")[0] != recipe_and_seed(SETTINGS)[0]


@pytest.mark.parametrize("lacks", ["seed", "data"])
def test_without_seed_or_data_no_recipe_is_known(lacks):
    settings = {key: value for key, value in SETTINGS.items() if key != lacks}
    assert recipe_and_seed(settings) == (None, None)


@pytest.mark.parametrize("seed", [-1, True, "1", None, 1.0])
def test_a_seed_is_a_number_from_0_on(seed):
    assert recipe_and_seed({**SETTINGS, "seed": seed}) == (None, None)
