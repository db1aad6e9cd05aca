"""The card of a model: facts that are known, also without weights."""

import json

import pytest
from golden_values import models
from packages import installed

import harness
from harness import catalogue, model_card, registry
from harness.catalogue import ModelRow
from zoo import card as cards
from zoo import catalogue as of_zoo

ROWS = catalogue.rows(ModelRow)


@pytest.mark.parametrize("name", models())
def test_every_descriptor_of_this_distribution_tells_its_conventions(name):
    if name in ROWS:
        said = ROWS[name].conventions
    else:
        said = harness.load_model(name, device="cpu").conventions
    assert said is not None
    assert all((said.keypoint, said.normalisation, said.source))


def card_of(run, spec):
    status, out, err = run("models", spec, "--json")
    assert status == 0, err
    return json.loads(out)


def test_a_card_says_what_the_descriptor_says(run):
    made = harness.load_model("brief", device="cpu")
    card = card_of(run, "brief")
    assert (card["dim"], card["bytes"], card["distance"]) == (256, 32, "hamming")
    assert (card["trained_on"], card["weights"], card["revision"]) == ([], None, 1)
    assert (card["keypoint"], card["source"]) == (
        made.conventions.keypoint,
        made.conventions.source,
    )
    assert card["input"] == "65x65 pixels" and card["libraries"] == [*made.libraries]
    assert card_of(run, "sift")["input"] == "the patch at its own size"


def test_a_card_of_shipped_weights_tells_their_training(run):
    of_weights = cards.read(of_zoo.FOLDER / "hardnet.json")
    card = card_of(run, "hardnet")
    assert card["weights"] == of_weights.weights
    assert card["weights_at"].startswith("descriptor-harness ")
    assert (card["hours"], card["limits"]) == (of_weights.hours, of_weights.limits)
    assert card["scores"] == {name: each.value for name, each in of_weights.scores.items()}
    _, text, _ = run("models", "hardnet")
    assert of_weights.limits in text and "trained on" in text


def test_a_card_needs_no_weights_and_says_how_to_get_them(run):
    found = card_of(run, "tfeat")
    assert [each["name"] for each in found] == [
        "tfeat.liberty", "tfeat.notredame", "tfeat.yosemite",
    ]  # fmt: skip
    assert found[0]["weights_at"] == "not here: harness weights fetch tfeat.liberty"
    assert found[0]["input"] == "32x32 pixels"


@pytest.mark.data
def test_a_card_names_the_file_of_weights_that_are_here(run, shared, monkeypatch):
    monkeypatch.setenv("HARNESS_WEIGHTS", str(shared / "checkpoints" / "tfeat"))
    assert card_of(run, "tfeat.liberty")["weights_at"].endswith(".safetensors")


def test_a_wrapped_model_has_a_card(run):
    card = card_of(run, "sift|unit|int8")
    assert (card["name"], card["dim"], card["bytes"]) == ("sift|unit|int8", 128, 128)
    assert "then unit: Vectors of length 1" in card["normalisation"]


def test_a_card_leaves_out_what_nobody_says(run, tmp_path):
    source = (
        "import numpy as np\n"
        "from harness import Descriptor\n"
        "from harness.distances import L2\n"
        "def own():\n"
        "    rows = lambda p: np.ones((len(p), 2), np.float32)\n"
        "    return Descriptor('own', rows, L2, 2, trained_on=None, licence='x\\x1b[2J')\n"
    )
    with installed(tmp_path, "their-zoo", source, descriptors={"own": "own"}):
        card = card_of(run, "own")
        status, text, _ = run("models", "own")
    assert (card["input"], card["keypoint"], card["trained_on"]) == (None, None, None)
    assert status == 0 and "keypoint" not in text and "\x1b" not in text
    assert [line.split() for line in text.splitlines()][:2] == [["own"], ["dim", "2"]]
    assert "trained on  unknown" in text


def test_nested_facts_are_indented():
    facts = {"name": "a", "trained_on": [], "scores": {"b c": 1.0, "d": [1, 2]}}
    assert model_card.lines(facts) == [
        "a", "  trained on  nothing", "  scores", "    b c  1.0", "    d    1, 2",
    ]  # fmt: skip


def test_a_card_and_a_choice_of_models_are_not_asked_together(run):
    status, _, err = run("models", "sift", "--licence", "MIT")
    assert status == 2 and "a card is of one model" in err
    status, _, err = run("models", "sfit")
    assert status == 2 and "did you mean 'sift'?" in err


def test_rows_are_of_installed_models():
    assert {*ROWS} <= {*registry.names("descriptors")}
