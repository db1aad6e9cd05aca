"""What the studies calculate from what they measure."""

import importlib
import json
from functools import partial

import numpy as np
import pytest
from toy import toy_dataset, toy_descriptor, toy_protocol

from harness import Protocol, Scores
from studies import method_comparison, short_training, training_data, zoo_training
from zoo.training.recipe import read


def test_a_training_by_another_recipe_is_not_taken(tmp_path):
    is_trained = short_training.is_trained
    given = ["seed=3", "method.pairs=64"]
    assert not is_trained("hardnet", tmp_path, given)
    kept = json.loads(read("hardnet", given, ["scenes"]).model_dump_json())
    (tmp_path / "model.onnx").touch()
    (tmp_path / "recipe.json").write_text(json.dumps(kept))
    assert is_trained("hardnet", tmp_path, given)
    older = {"name": "hardnet", "pairs": 64, "margin": 1.0}
    (tmp_path / "recipe.json").write_text(json.dumps({**kept, "method": older}))
    with pytest.raises(FileExistsError, match=r"whose method\.separate is False, not True"):
        is_trained("hardnet", tmp_path, given)
    given += ["method.separate=false"]
    assert is_trained("hardnet", tmp_path, given)
    with pytest.raises(FileExistsError, match="whose seed is 3, not 4"):
        is_trained("hardnet", tmp_path, ["seed=4", *given[1:]])
    with pytest.raises(FileExistsError, match=r"whose method\.pairs is 64, not 128"):
        is_trained("hardnet", tmp_path, [*given, "method.pairs=128"])


def test_the_deviation_over_seeds_is_pooled():
    module = training_data
    found = {"a": 1.0, "a, seed 1": 3.0, "b": 9.0, "c, odd": 5.0, "c, odd, seed 1": 5.0}
    deviation, degrees = module.pooled(module.groups({k: {"map": v} for k, v in found.items()}))
    assert (*deviation, degrees) == (pytest.approx(1.0), 2)  # of variances 2 and 0


@pytest.mark.parametrize(("degrees", "t"), [(2, 4.303), (4, 2.776)])  # of a table of Student's t
def test_what_another_seed_would_rarely_be_is_marked(degrees, t):
    seeds = {"a": 10.0, "a, seed 1": 10.0 + 2**0.5, "a, seed 2": 10.0 - 2**0.5}  # deviation 2**0.5
    if degrees == 4:
        seeds |= {k.replace("a", "b"): v + 50 for k, v in seeds.items()}
    far = t * 2**0.5 * (1 + 1 / 3) ** 0.5
    changed = {"less": -far + 0.01, "more": far + 0.01, "far": 30 * far}
    found = {**seeds, **{f"a, {one}": 10 + by for one, by in changed.items()}, "d, odd": 0.0}
    rows = training_data.table({k: {"map": v} for k, v in found.items()})
    assert [one for one in rows if "*" in one[1]] == [
        ["a, more", f"*{found['a, more']:.1f}*"],  # of three that are tried
        ["a, far", f"**{found['a, far']:.1f}**"],
    ]
    assert rows[-1] == ["deviation over seeds", "1.4"]
    alone = training_data.table({"a": {"map": 1.0}, "a, less": {"map": 0.0}})
    assert alone == [["a", "1.0"], ["a, less", "0.0"]]


@pytest.mark.parametrize(
    ("measure", "gain", "said"),
    [
        ("Oxford", 1.0, "yes"),
        ("Oxford", -1.0, "no, worse"),
        ("FPR95 of held-out points", -1.0, "yes"),
        ("FPR95 of held-out points", 1.0, "no, worse"),
        ("Oxford", 0.0, "can't tell"),
    ],
)
def test_answers_go_by_the_interval_and_the_measure(measure, gain, said):
    b = np.array([50.0, 51.0, 53.0])
    a = b + gain + np.array([-0.01, 0.0, 0.01])
    cells = method_comparison.answer("new", "old", measure, a, b)
    assert cells[-1] == said
    assert float(cells[2]) == pytest.approx(gain, abs=0.005)


@pytest.mark.parametrize(
    ("best", "tried"),
    [(4, [1, 2, 4, 8]), (1, [0.5, 1, 2]), (0.25, [0.125, 0.25, 0.5, 1, 2]), (1.5, [0.5, 1, 2])],
)
def test_a_rate_is_doubled_or_halved_as_long_as_that_is_better(best, tried):
    asked = []

    def value(rate):
        asked.append(rate)
        return -abs(rate - best)

    found = method_comparison.climbed(value, 1.0)
    assert sorted(found) == tried == sorted(asked)
    assert all(found[rate] == value(rate) for rate in tried)


def test_all_methods_of_the_zoo_have_one_setting():
    module = zoo_training
    taken = set()
    for name in module.RECIPES:
        whole = read(name, module.settings(read(name), 500_000, 0), ["scenes"])
        assert whole.steps == 480 and whole.optimiser.lr == 0.005
        assert whole.optimiser.name == "adam" and whole.factor_at(479) < 0.01
        assert whole.optimiser.weight_decay == 0 and whole.augmentation.dihedral
        method = dict(whole.method.options)
        assert (method["images"], method["share"]) == (3, 1.0)
        pairs = method.get("pairs", method.get("in_order", 0) + method.get("at_random", 0))
        assert method.get("patches", 2 * pairs) == module.BATCH
        same = {k for k in method if k in module.OPTIONS}
        if method.get("class_size", 0) is None:
            same -= {"class_size", "turn"}
        assert {k: method[k] for k in same} == {k: module.OPTIONS[k] for k in same}
        assert whole.network.options.get("dropout", 0.1) == module.DROPOUT
        taken |= set(method)
    assert taken >= set(module.OPTIONS)


def test_scores_of_another_story_are_measured_again(tmp_path, monkeypatch):
    module = training_data
    monkeypatch.setattr(module.onnx_file, "open_model", lambda *_, **__: toy_descriptor())
    (tmp_path / "model.onnx").write_bytes(b"a")
    scored = partial(module.scored, tmp_path, [toy_protocol()], "scores.json")
    assert scored(lambda *_: {"a": 1.0}) == {"a": 1.0}
    assert scored(pytest.fail) == {"a": 1.0}
    (tmp_path / "model.onnx").write_bytes(b"b")
    assert scored(lambda *_: {"a": 2.0}) == {"a": 2.0}


@pytest.mark.parametrize(
    ("name", "more", "said"),
    [
        ("training_data", ["--photographs=x", "--images=x", "homograhpy"], "rows are: homography;"),
        ("method_comparison", ["--data=x", "hardnett"], "methods are: adasample; hardnet;"),
        ("method_comparison", ["--data=x", "--seeds=1"], "one seed has no spread"),
    ],
)
def test_what_is_not_there_is_said_at_once(monkeypatch, capsys, name, more, said):
    common = [f"--{one}=x" for one in ("held-out", "oxford", "frames", "mini", "out")]
    monkeypatch.setattr("sys.argv", [name, *common, *more])
    with pytest.raises(SystemExit):
        importlib.import_module(f"studies.{name}").main()
    assert said in capsys.readouterr().err


def test_a_story_is_of_the_model_the_data_and_the_definition(tmp_path):
    story = training_data.story
    (tmp_path / "a").write_bytes(b"a")
    (tmp_path / "b").write_bytes(b"b")
    by = [toy_protocol()]
    told = {
        story(tmp_path / "a", by),
        story(tmp_path / "b", by),
        story(tmp_path / "a", [toy_protocol(version=2)]),
        story(tmp_path / "a", [toy_protocol(dataset=toy_dataset(truth="other"))]),
    }
    assert len(told) == 4 and story(tmp_path / "a", by) in told


def test_scores_of_a_row_stand_under_what_they_were_measured_on():
    module = training_data

    def protocol(name, **scores):
        return Protocol(name, 1, toy_dataset(name=name), lambda _: Scores(scores), "map")

    six = {f"{one}/map": k / 10 for k, one in enumerate(module.SIX)}
    by = [protocol("oxford-a", map=0.1), protocol("oxford-b", map=0.2)]
    by += [protocol("oxford", map=0.3, **six), protocol("hpatches-mini", map=0.4)]
    found = module.scores(toy_descriptor(), by)
    heads = {"a": 10, "b": 20, "Oxford": 30, "hpatches-mini": 40}
    assert found == pytest.approx({**heads, **{one: 10 * k for k, one in enumerate(module.SIX)}})
    assert [*found] == ["a", "b", "Oxford", *module.SIX, "hpatches-mini"]
