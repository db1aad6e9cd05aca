"""Every recipe of the zoo takes a step, and says in what it follows papers and released code."""

import math

import numpy as np
import pytest
import torch
from cards import card_of
from random_teacher import SPEC

from harness import Block, Dataset
from zoo import card as cards
from zoo.l2net import MeanImageL2Net
from zoo.trained import pack
from zoo.training import loop, recipe
from zoo.training.groups import Groups

POINTS, EACH = 48, 3
SMALL = {"pairs": 8, "in_order": 4, "at_random": 4, "patches": 24, "teacher": SPEC}
ON_CPU = {"device": torch.device("cpu"), "precision": torch.float32}
EVERY = recipe.names()


def dataset():
    """Four points an image, so that images are sequences."""
    point = np.repeat(np.arange(POINTS), EACH)
    read = Block("all", len(point), "toy", lambda: np.empty((len(point), 1, 1), np.uint8))
    return Dataset("toy", "", (read,), point, point // 4)


def patches(side):
    return np.random.default_rng(side).integers(0, 256, (POINTS * EACH, side, side), np.uint8)


def settings(name):
    options = recipe.read(name).method.options
    return ["held_out=0", *(f"method.{k}={v}" for k, v in SMALL.items() if k in options)]


def l2net_weights(folder):
    """Weights that the central-surround network starts from."""
    torch.manual_seed(0)
    file = folder / "weights.safetensors"
    file.write_bytes(pack(MeanImageL2Net()))
    card = card_of(file.read_bytes(), network={"name": "l2net-mean-image"})
    cards.write(file.with_name("card.json"), card)
    return file


@pytest.fixture(scope="module")
def l2net(tmp_path_factory):
    return l2net_weights(tmp_path_factory.mktemp("l2net"))


@pytest.mark.parametrize("name", EVERY)
def test_every_recipe_takes_a_step(name, l2net, tmp_path):
    start = [f"network.start={l2net}"] if name == "l2net-cs" else []
    read = recipe.read(name, [*settings(name), *start], ["toy"])
    run = loop.prepare(read, dataset(), patches, **ON_CPU)
    before = {k: v.clone() for k, v in run.network.named_parameters() if v.requires_grad}
    told = [seen for seen in loop.train(run, tmp_path, stop=lambda: True) if seen.loss is not None]
    assert [seen.step for seen in told] == [1] and math.isfinite(told[0].loss)
    after = dict(run.network.named_parameters())
    assert all(after[k].isfinite().all() for k in before)
    assert any(not torch.equal(v, after[k]) for k, v in before.items())


# --- released combinations


def of(name):
    return recipe.read(name)


@pytest.mark.parametrize("name", EVERY)
def test_learning_rate_10_goes_with_dropout_of_3_tenths(name):
    """Every released version of HardNet with learning rate 10 and gain 0.6 has dropout 0.3."""
    read = of(name)
    if read.optimiser.lr == 10:
        assert read.network.options["dropout"] == 0.3


def test_the_recipes_that_follow_hardnet_are_known():
    fast = {name for name in EVERY if of(name).optimiser.lr == 10}
    ada = {"adasample", "adasample+sos", "adasample-ht", "adasample-lambda-0", "hardpos"}
    assert fast == {"hardnet", "hardnet-gor", "hardnet-star"} | ada
    assert {of(name).augmentation.dihedral for name in fast} == {"hardnet"}


@pytest.mark.parametrize(
    ("dihedral", "names"),
    [
        ("tfeat", {"tfeat", "sosnet", "hynet"}),
        (True, {"doap", "doap-st", "doap-binary", "l2net+"}),
        (False, {"doap-hpatches", "doap-rome", "doap-rome-binary", "l2net", "l2net-cs"}),
    ],
)
def test_symmetries_are_drawn_as_papers_or_released_code_do(dihedral, names):
    assert {of(name).augmentation.dihedral for name in names} == {dihedral}


def test_halves_of_a_pair_are_normalised_separately_where_that_is_known():
    separate = {name for name in EVERY if of(name).method.options.get("separate")}
    follow = {name for name in EVERY if of(name).augmentation.dihedral == "hardnet"}
    assert separate == follow | {"sosnet", "hynet", "l2net", "l2net+", "l2net-cs"}


def test_papers_of_hpatches_and_rome_train_on_everything():
    held_out = {name: of(name).held_out for name in EVERY}
    assert {name for name, share in held_out.items() if share == 0} == {
        "doap-hpatches",
        "doap-rome",
        "doap-rome-binary",
    }


def test_hardnet_star_is_hardnets_loss_on_classes_of_15():
    method = of("hardnet-star").method
    assert method.name == "hardnet"
    assert (method.options["class_size"], method.options["turn"]) == (15, 20.0)
    assert (method.options["margin"], method.options["gor"]) == (1.0, 0.0)
    other = of("adasample-lambda-0").method
    assert (other.name, other.options["lambda_"]) == ("adasample", 0.0)


# --- epochs


def liberty(scale=1):
    """About as many points and patches as Liberty has: 160,000 and 450,092."""
    size = np.full(160_000, 2)
    size[: 450_092 - 2 * 160_000] += 1
    point = np.repeat(np.arange(160_000 // scale), size[: 160_000 // scale])
    return Groups.of(point, np.zeros(len(point), np.int64))


def sequences(count=76):
    point = np.repeat(np.arange(count * 2), 16)
    return Groups.of(point, point // 2)


def rome(count=1000):
    point = np.repeat(np.arange(count), 10)
    return Groups.of(point, np.zeros(len(point), np.int64))


def epoch(name, groups, *more):
    read = recipe.read(name, more)
    return loop.steps_per_epoch(read, recipe.make("method", read.method), groups)


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("hardnet", 4883),  # 5,000,000 pairs, 1,024 a step
        ("adasample", 977),
        ("hardnet-star", 977),
        ("tfeat", 3334),
        ("l2net", 2500),
        ("mixed-context", 1250),
        ("sosnet", 439),
        ("hynet", 439),
        ("doap", 439),
        ("doap-binary", 439),
    ],
)
def test_an_epoch_of_liberty_has_the_papers_steps(name, steps):
    assert epoch(name, liberty()) == steps


@pytest.mark.parametrize("count", [76, 30])
def test_an_epoch_of_hpatches_is_all_pairs_of_sequences(count):
    assert epoch("doap-hpatches", sequences(count)) == count * (count - 1) // 2


@pytest.mark.parametrize("count", [1000, 600])
def test_an_epoch_of_rome_has_a_batch_for_each_group(count):
    assert epoch("doap-rome", rome(count)) == count


@pytest.mark.parametrize("name", ["l2net", "mixed-context", "sosnet", "hynet", "doap", "doap-st"])
def test_a_pass_through_half_the_points_has_half_the_steps(name):
    whole, half = epoch(name, liberty()), epoch(name, liberty(2))
    assert half == pytest.approx(whole / 2, rel=0.2) and half < whole


@pytest.mark.parametrize(("pairs", "steps"), [(1024, 4883), (512, 9766), (256, 19532)])
def test_an_epoch_of_pairs_has_as_many_pairs_whatever_a_step_takes(pairs, steps):
    assert epoch("hardnet", liberty(2), f"method.pairs={pairs}") == steps


@pytest.mark.parametrize("name", EVERY)
def test_no_epoch_is_fixed_to_the_size_of_one_set(name):
    assert not isinstance(of(name).steps_per_epoch, int)


def test_steps_can_be_given_as_a_number():
    assert epoch("hardnet", liberty(), "steps_per_epoch=7") == 7
    assert recipe.read("doap", ["steps_per_epoch=7", "epochs=2"]).steps == 14


def test_a_method_that_does_not_know_its_epoch_says_so():
    for asked, told in (("pass", "'pass'"), ("{pairs=9}", "a number of pairs")):
        network = "network.name=small_training:Small"
        method = 'method={name="small_training:Contrast"}'
        with pytest.raises(ValueError, match=f"is {told}, but method .*Contrast.* give a number"):
            epoch("hardnet", rome(), network, method, f"steps_per_epoch={asked}")


def test_a_recipe_that_waits_for_its_data_knows_no_number_of_steps():
    with pytest.raises(ValueError, match="doap: the number of steps of an epoch depends"):
        _ = of("doap").steps


def test_a_prepared_training_knows_the_steps_of_its_epochs():
    read = recipe.read("mixed-context", settings("mixed-context"), ["toy"])
    run = loop.prepare(read, dataset(), patches, **ON_CPU)
    assert run.recipe.steps_per_epoch == POINTS // 8
    assert run.recipe.steps == 50 * (POINTS // 8)
