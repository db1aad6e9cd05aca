"""Recipes: what is accepted, what is refused, and what kept ones mean."""

import json
import math

import pytest
from packages import installed

from harness import registry
from zoo import card, shipped
from zoo.training import recipe, state

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
    assert used == set(registry.names("methods"))


def test_settings_go_over_the_file_by_their_path(file):
    found = recipe.read(file(), ["optimiser.lr=0.5", "seed=3", "schedule.at=[1, 2, 3]"], ["a", "b"])
    assert (found.optimiser.lr, found.seed, found.schedule.at) == (0.5, 3, (1, 2, 3))
    assert found.data == ("a", "b")
    assert found.name == "mine"


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("optimizer.lr=1", "no setting named 'optimizer'; did you mean 'optimiser'?"),
        ("optimiser.lr=-1", "optimiser.lr: Input should be greater than 0"),
        ("optimiser.lr=fast", "optimiser.lr: Input should be a valid number"),
        ("epochs=2.5", "epochs"),
        ("epochs=true", "epochs"),
        (
            "optimiser.momentun=1",
            "optimiser: no setting named 'momentun'; did you mean 'momentum'?",
        ),
        ("method.margin=wide", "[method] hardnet: margin is 'wide'; it should be a number"),
        ("method.pairs=1", "hardnet: pairs is '1'; it should be greater than or equal to 2"),
        ("schedule.name=cosine", "schedule.name"),
        ("schedule.factor=1.0", "needs a factor below 1"),
        ("schedule.at=[]", "needs at"),
        ("network.name='torch:nowhere'", "[network] torch:nowhere is no Network"),
        ("network.name='no_such_package:Net'", "[network] No module named 'no_such_package'"),
        ("network.name=':Net'", "[network] Empty module name"),
        ("network.name='.near:Net'", "[network] the 'package' argument is required"),
        ("method.pears=3", "[method] hardnet: no option named 'pears'; did you mean 'pairs'?"),
        ("method.name=hardnt", "did you mean 'hardnet'"),
        ("network.name=l3net", "did you mean 'l2net'"),
        ("network.dropout=many", "[network] l2net: dropout"),
        ("held_out=1", "held_out"),
        ("held_out=-0.1", "held_out"),
        ("steps_per_epoch=0", 'an epoch is a number of steps above 0, "pass" or { pairs = N }'),
        ("steps_per_epoch=passes", "steps_per_epoch: Value error, an epoch is a number of steps"),
        ("steps_per_epoch={pairs=0}", "steps_per_epoch: Value error, an epoch is a number of"),
        ("steps_per_epoch={patches=9}", "steps_per_epoch: Value error, an epoch is a number of"),
        ("steps_per_epoch=true", "steps_per_epoch: Value error, an epoch is a number of"),
        ("augmentation.dihedral=hynet", "augmentation.dihedral"),
        ("checkpoints.every=0", "checkpoints.every"),
        ("average.decay=1", "average.decay: Input should be less than 1"),
        ("average.decay=none", "average.decay: Input should be a valid number"),
        ("average={}", "average.decay: Field required"),
        ("method.separate=2", "[method] hardnet: separate"),
        ("method.class_size=1", "[method] hardnet: class_size"),
        ("data.x=1", "data is no table"),
        ("data=5", "data: Input should be a valid tuple"),
        ("data=scenes", "data: Input should be a valid tuple"),
        ("wrong_labels=1", "wrong_labels: Input should be less than 1"),
        ("wrong_labels=-0.1", "wrong_labels: Input should be greater than or equal to 0"),
        ("data_options=easy", "data_options: Input should be a valid dictionary"),
        ("seed", "not KEY=VALUE"),
    ],
)
def test_what_is_not_known_or_of_another_type_is_refused(file, setting, told):
    with pytest.raises(ValueError) as error:
        recipe.read(file(), [setting])
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("setting", "key", "value"),
    [
        ("licence=CC0", "licence", "CC0"),
        ("licence='CC0'", "licence", "CC0"),
        ("name=2024", "name", "2024"),
        ("epochs=1_000", "epochs", 1000),
        ("held-out=.25", "held_out", 0.25),
        ('data=["a", "b"]', "data", ("a", "b")),
        ("steps_per_epoch=pass", "steps_per_epoch", "pass"),
        ("steps_per_epoch={pairs = 9}", "steps_per_epoch", recipe.Pairs(pairs=9)),
        ("augmentation.dihedral=true", "augmentation", recipe.Augmentation(dihedral=True)),
        ("augmentation.dihedral=tfeat", "augmentation", recipe.Augmentation(dihedral="tfeat")),
        ("checkpoints.every=none", "checkpoints", recipe.Checkpoints()),
        ("average.decay=0.99", "average", recipe.Average(decay=0.99)),
        ("average=none", "average", None),
        ("data_options.strips=easy+hard", "data_options", {"strips": "easy+hard"}),
        ("wrong_labels=0.05", "wrong_labels", 0.05),
    ],
)
def test_the_type_of_a_setting_decides_how_its_text_is_read(file, setting, key, value):
    assert getattr(recipe.read(file(), [setting]), key) == value


def test_options_of_a_method_are_read_as_those_of_a_protocol(file):
    settings = ["method.class_size=none", "method.turn=20", "method.separate=False"]
    options = recipe.read(file(), settings).method.options
    assert options["class_size"] is None and options["separate"] is False
    assert options["turn"] == 20.0 and type(options["turn"]) is float
    whole = recipe.read(
        file(),
        ['method={name="adasample"}', "method.pairs=8", "method.margin=1", "method.lambda_=inf"],
    )
    assert whole.method.options["lambda_"] == math.inf


def test_an_option_that_a_method_needs_is_asked_for(file):
    with pytest.raises(ValueError, match=r"\[method\] hardnet needs a value of pairs"):
        recipe.read(file(), ['method={name="hardnet"}'])


THEIRS = """
from torch import nn
from zoo.hardnet import HardNet
from zoo.backbones import L2Net

class Theirs(HardNet):
    def __init__(self, pairs: int = 4) -> None:
        super().__init__(pairs=pairs, margin=1.0)

class TheirNet(L2Net):
    pass
"""


def test_a_method_and_a_network_of_another_package_are_found_by_name(file, tmp_path):
    parts = ["method={name='theirs'}", "network.name=their-net"]
    groups = {"methods": {"theirs": "Theirs"}, "networks": {"their-net": "TheirNet"}}
    with installed(tmp_path, "their-package", THEIRS, **groups):
        read = recipe.read(file(), [*parts, "method.pairs=6"])
        assert recipe.make("method", read.method).pairs == 6
        assert type(recipe.make("network", read.network)).__name__ == "TheirNet"
        with pytest.raises(ValueError, match="no method named 'theirz'; did you mean 'theirs'"):
            recipe.read(file(), ["method.name=theirz"])
    with pytest.raises(ValueError, match="no network named 'their-net'"):
        recipe.read(file(), parts[1:])


@pytest.mark.parametrize(
    "text",
    [
        "[1]",
        "5",
        "{}",
        "[" * 100_000,
        "9" * 5000,
        '{"data": 5}',
        '{"network": {"name": "no_such:N"}}',
    ],
)
def test_what_is_no_kept_recipe_is_refused_by_the_file_s_name(text, tmp_path):
    (tmp_path / "recipe.json").write_text(text)
    with pytest.raises(ValueError, match=r"recipe\.json is not the recipe of a training \("):
        recipe.read_kept(tmp_path / "recipe.json")


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


# --- recipes that were kept before some options came


def without_none(table):
    if not isinstance(table, dict):
        return list(table) if isinstance(table, tuple) else table
    return {key: without_none(one) for key, one in table.items() if one is not None}


def is_part(table, of):
    if not isinstance(table, dict):
        return table == of
    return table.keys() <= of.keys() and all(is_part(one, of[key]) for key, one in table.items())


CARDS = sorted(shipped.FOLDER.glob("*.json"))


@pytest.mark.parametrize("file", CARDS, ids=lambda file: file.stem)
def test_the_recipe_of_a_shipped_card_means_what_it_meant(file):
    told = card.read(file).recipe
    found = recipe.kept(told, file)
    options = found.method.options
    assert options.get("separate", False) is False
    assert options.get("neighbourhood", "paper") == told["method"].get("neighbourhood", "paper")
    assert options.get("class_size") == told["method"].get("class_size")
    assert found.augmentation.dihedral is True
    assert found.network.options.get("dropout", 0.0) == told["network"].get("dropout", 0.0)
    # Nothing but what the card says identifies the training, and the recipe has all that it says.
    assert is_part(without_none(recipe.identity(found)), told)
    assert is_part(told, without_none(found.model_dump(mode="json")))
    if "average" not in told:  # older cards have no setting that identity leaves out
        assert without_none(recipe.identity(found)) == told


TABLE = {
    "name": "x",
    "data": ["d"],
    "epochs": 4,
    "steps_per_epoch": 3,
    "held_out": 0.5,
    "optimiser": {"lr": 0.1},
    "network": {"name": "l2net", "dropout": 0.1},
    "augmentation": {"dihedral": True},
}
BEFORE = {  # options of older recipes, and the origin that was written to their states
    "hardnet": (
        {"pairs": 8, "margin": 1.0},
        "e7b7aabb133fa11fb68e9221a190376c8cb16a85c7ff40002c12366a12c177a9",
    ),
    "sosnet": (
        {"pairs": 8, "margin": 1.0, "neighbours": 3},
        "e901b7c931f3c127a12a2f15edec96fc1be307a89b58b22af6e571ca356b4d0d",
    ),
    "hynet": (
        {"pairs": 8, "margin": 1.2, "alpha": 2.0, "gamma": 0.1},
        "5f9b2f9a40cc5028d96ddada6ca8015d63167c48bbaca1ce4d3b97628b0081d5",
    ),
    "adasample": (
        {"pairs": 8, "lambda_": "Infinity", "margin": 1.0},
        "44ebde80236fdc3df2651936ed4cb3fb448bfb2a6735342ba49ebcd35a73a918",
    ),
    "l2net": (
        {"in_order": 4, "at_random": 4},
        "c2e776b419e66605161d706d5b5469a644079fb5e6c6bcff29c0705d74500b00",
    ),
    "mixed-context": (
        {"pairs": 8, "gamma": 0.5, "theta": 1.15, "alpha": 0.0, "delta": 5.0}
        | {"loss": "log", "negatives": "hardest", "context": "fixed"},
        "05860ba0f3cbb05e1b8292708b81cba1a5f9773e717a07d4dbb4179d4ddfa13d",
    ),
}


@pytest.mark.parametrize("name", BEFORE)
def test_states_from_before_an_option_came_are_those_of_its_value_from_before(name):
    options, origin = BEFORE[name]
    old = recipe.kept({**TABLE, "method": {"name": name, **options}}, "old")
    assert state.origin(old, "data", processes=1) == origin
    numbers = {key: math.inf if one == "Infinity" else one for key, one in options.items()}
    new = recipe.checked({**TABLE, "method": {"name": name, **numbers}}, "new")
    same = name == "mixed-context"  # its option changes nothing by default
    assert (state.origin(new, "data", processes=1) == origin) is same


def test_what_is_kept_on_the_way_and_where_data_lie_make_no_other_training(file):
    one = recipe.read(file(), [], ["here"])
    other = recipe.read(file(), ["checkpoints.every=2"], ["there"])
    assert state.origin(one, "data") == state.origin(other, "data")
    assert recipe.differences(one, other) == {}


def test_differences_are_named_by_their_keys(file):
    one = recipe.read(file(), ["method.separate=false"])
    other = recipe.read(file(), ["optimiser.lr=0.1", "method.gor=1.0", "network.dropout=0.1"])
    assert recipe.differences(one, other) == {
        "method.gor": (0.0, 1.0),
        "method.separate": (False, True),
        "network.dropout": (0.0, 0.1),
        "optimiser.lr": (10.0, 0.1),
    }


@pytest.mark.parametrize("name", recipe.names())
def test_every_recipe_is_read_back_from_what_is_kept_of_it(name):
    read = recipe.read(name)
    assert recipe.kept(json.loads(read.model_dump_json()), name) == read
