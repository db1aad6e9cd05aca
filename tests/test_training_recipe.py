"""Recipes: what is accepted, what is refused and how it is told."""

import pytest

from zoo.training import recipe

GOOD = """
data = ["phototour/liberty"]
epochs = 10
steps_per_epoch = 100
[method]
name = "hardnet"
pairs = 64
margin = 1.0
[optimiser]
lr = 10.0
[schedule]
name = "steps"
at = [3, 6]
factor = 0.1
"""


@pytest.fixture
def file(tmp_path):
    def write(text=GOOD, name="mine.toml"):
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    return write


def test_every_recipe_of_the_zoo_is_accepted():
    assert {"hardnet", "adasample", "doap", "l2net", "mixed-context"} <= set(recipe.names())
    for name in recipe.names():
        assert recipe.read(name).name == name


def test_every_method_of_the_zoo_has_a_recipe():
    used = {recipe.read(name).method.name for name in recipe.names()}
    assert used == set(recipe.METHODS)


def test_settings_go_over_the_file_by_their_path(file):
    found = recipe.read(file(), ["optimiser.lr=0.5", "seed=3", "schedule.at=[1, 2, 3]"], ["a", "b"])
    assert (found.optimiser.lr, found.seed, found.schedule.at) == (0.5, 3, (1, 2, 3))
    assert found.data == ("a", "b")
    assert found.name == "mine"


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("optimizer.lr=1", "optimizer: Extra inputs are not permitted"),
        ("optimiser.lr=-1", "optimiser.lr: Input should be greater than 0"),
        ("optimiser.lr=fast", "optimiser.lr: Input should be a valid number"),
        ("epochs=2.5", "epochs"),
        ("epochs=true", "epochs"),
        ("schedule.name=cosine", "schedule.name"),
        ("schedule.factor=1.0", "needs a factor below 1"),
        ("schedule.at=[]", "needs at"),
        ("method.pears=3", "[method] pears: Extra inputs are not permitted"),
        ("method.name=hardnt", "did you mean 'hardnet'"),
        ("network.name=l3net", "did you mean 'l2net'"),
        ("network.dropout=many", "[network] dropout"),
        ("held_out=0", "held_out"),
        ("data.x=1", "data is no table"),
        ("seed", "not KEY=VALUE"),
    ],
)
def test_what_is_not_known_or_of_another_type_is_refused(file, setting, told):
    with pytest.raises(ValueError) as error:
        recipe.read(file(), [setting])
    assert told in str(error.value)


def test_unknown_recipes_are_answered_with_known_ones(tmp_path):
    with pytest.raises(LookupError, match="did you mean 'hardnet'"):
        recipe.read("hardnt")
    with pytest.raises(FileNotFoundError, match="no recipe file"):
        recipe.read(str(tmp_path / "none.toml"))


def test_a_file_that_is_not_toml_is_named(file):
    with pytest.raises(ValueError, match=r"bad\.toml is not TOML"):
        recipe.read(file("epochs = = 3", "bad.toml"))


def test_learning_rates_follow_their_schedules(file):
    steps = recipe.read(file())
    assert [steps.factor_at(s) for s in (0, 299, 300, 599, 600, 999)] == pytest.approx(
        [1, 1, 0.1, 0.1, 0.01, 0.01]
    )
    linear = recipe.read(file(), ['schedule={name = "linear"}'])
    assert [linear.factor_at(s) for s in (0, 500, 999)] == pytest.approx([1, 0.5, 0.001])
    falling = recipe.read(file(), ['schedule={name = "exponential", factor = 0.9}'])
    assert [falling.factor_at(s) for s in (0, 99, 100, 250)] == pytest.approx([1, 1, 0.9, 0.81])
