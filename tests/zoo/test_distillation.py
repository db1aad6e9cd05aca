"""Distillation: its losses, what a teacher sees, what is refused, what a student learns."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from checkout import ROOT
from phototour_files import made_scene
from random_teacher import DATA, LICENCE, OPEN, SHOWN, SPEC, open_teacher, teacher
from small_training import TABLE, dataset
from vectors import unit_rows

from harness.data import datasets
from harness.data.datasets import PublishedSet
from harness.data.photographs import Photograph
from protocols.phototour.sample import sample
from zoo import card
from zoo.distillation import Lesson
from zoo.distillation_losses import regression, relational
from zoo.training import command, loop, recipe
from zoo.training.describe import Described
from zoo.training.method import Batch

ON_CPU = {"device": torch.device("cpu"), "precision": torch.float32}


# --- the losses; their slow twins are in test_losses.py


def test_relations_need_no_equal_dimensions_and_no_equal_lengths():
    student, taught = unit_rows(9, 16), unit_rows(9, 40, seed=3)
    found = relational(student, taught)
    assert found > 0
    torch.testing.assert_close(relational(7 * student, taught), found, rtol=1e-4, atol=0)


def test_relations_are_kept_by_turning_vectors_are_not():
    taught = unit_rows(9, 16)
    turned = taught.flip(1)
    assert relational(turned, taught) < 1e-10 < regression(turned, taught)


def test_far_differences_count_linearly():
    """Three points on a line: one distance differs from the teacher's by more than the mean."""
    student = torch.tensor([[0.0], [1.0], [100.0]])
    taught = torch.tensor([[0.0, 1.0], [0.0, 0.0], [1.0, 0.0]])
    near = np.array([1, 100, 99]) / np.mean([1, 100, 99])
    wanted = np.array([1, np.sqrt(2), 1]) / np.mean([1, np.sqrt(2), 1])
    apart = np.abs(near - wanted)
    apart = np.where(apart <= 1, apart**2 / 2, apart - 0.5)
    assert float(relational(student, taught)) == pytest.approx(apart.mean(), rel=1e-5)


# --- teachers


def lesson(name=SPEC, follows="distances"):
    made = Lesson(name, 1.0, follows)
    made.begin()
    return made


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("brief", "teacher brief has no vectors of numbers"),
        (f"{ROOT}/examples/plugin_file.py:shrunk", "nobody knows what teacher .* was trained on"),
        ("adasampel", "did you mean 'adasample'"),
    ],
)
def test_a_teacher_must_have_numbers_and_known_training_data(name, told):
    with pytest.raises((ValueError, LookupError), match=told):
        lesson(name)


def test_a_teacher_of_another_dimension_can_not_be_copied():
    patches, vectors = torch.zeros(4, 1, 32, 32), unit_rows(4, 16)
    with pytest.raises(ValueError, match=r"128 numbers, the network of 16: --set method\.follows"):
        lesson(follows="vectors")(patches, vectors)
    assert lesson()(patches + torch.rand(4, 1, 32, 32) * 200, vectors).isfinite()


# --- training


def run_of(follows="distances", seed=0, **options):
    data, patches = dataset()
    method = {"pairs": 16, "lambda_": 10.0, "margin": 1.0, "class_size": 3}
    if "name" not in options:
        method |= {"name": "distilled-adasample", "teacher": SPEC, "weight": 1.0}
        method |= {"follows": follows}
    method |= options
    table = {"method": method, "network": {"name": "l2net-small"}, "seed": seed}
    table |= {"optimiser": {"name": "adam", "lr": 0.003}}
    made = recipe.checked(TABLE | table, "test")
    larger = np.kron(patches, np.ones((1, 4, 4), np.uint8))
    return loop.prepare(made, data, lambda side: larger, **ON_CPU)


@pytest.mark.parametrize("separate", [False, True])
def test_the_teacher_sees_what_the_student_is_trained_on(separate):
    run = run_of(separate=separate, weight=0.5)
    seen = []

    def taught(patches):
        seen.append(patches)
        return unit_rows(len(patches), 128)

    run.method.lesson.teach = taught
    selected = run.sampler(0)
    shown = torch.from_numpy(run.patches[selected.rows])[:, None].float()

    describe, random = Described(run.network, torch.float32), torch.Generator()
    point = torch.from_numpy(selected.point)
    chosen = run.method.choice(describe.still(shown), random.manual_seed(0))
    run.method(Batch(describe, shown, point, random.manual_seed(0)))
    assert len(seen) == 1 and torch.equal(seen[0], shown[chosen])


def first_loss(run):
    selected = run.sampler(0)
    loss, _ = loop.update(run, loop.optimiser_of(run), 0, selected, run.patches[selected.rows])
    return loss


def test_the_loss_is_the_students_own_and_the_weight_times_the_lesson():
    options = run_of().recipe.method.options
    for name in ("teacher", "weight", "follows"):
        del options[name]
    own = first_loss(run_of(name="adasample", **options))
    half, one = (first_loss(run_of(weight=weight)) for weight in (0.5, 1.0))
    assert one > own
    torch.testing.assert_close(one - own, 2 * (half - own))


def test_training_lowers_the_loss_and_brings_a_student_nearer_to_its_teacher(tmp_path):
    run, terms = run_of("vectors", weight=20.0), []
    run.method.lesson.register_forward_hook(lambda _, given, term: terms.append(term.item()))
    losses = [seen.loss for seen in loop.train(run, tmp_path) if seen.loss is not None]
    assert len(terms) == len(losses) == 12
    assert np.mean(losses[-3:]) < np.mean(losses[:3])
    assert np.mean(terms[-3:]) < np.mean(terms[:3])


@pytest.mark.parametrize("follows", ["vectors", "distances"])
def test_a_student_learns_a_batch_of_its_teacher(follows):
    run, terms = run_of(follows, weight=1000.0), []  # its own loss hardly counts
    run.method.lesson.register_forward_hook(lambda _, given, term: terms.append(term.item()))
    optimiser, selected = loop.optimiser_of(run), run.sampler(0)
    for _ in range(8):
        loop.update(run, optimiser, 0, selected, run.patches[selected.rows])
    assert terms[-1] < terms[0]


def test_a_training_is_not_resumed_with_another_teacher(tmp_path):
    list(loop.train(run_of(), tmp_path, stop=lambda: True))
    changed = run_of()
    changed.method.lesson.hash = "0" * 64  # as if the weights that its name stands for were new
    with pytest.raises(ValueError, match=r"began with weights .* of teacher .*:teacher, which now"):
        list(loop.train(changed, tmp_path, resume=True))
    same = run_of()
    assert [seen.step for seen in loop.train(same, tmp_path, resume=True)] == [*range(2, 13)]


def test_bits_are_taught_by_distances():
    method = {"name": "distilled-doap-binary", "teacher": SPEC, "weight": 25.0, "patches": 48}
    data, patches = dataset()
    table = {"method": method, "network": {"name": "l2net-small", "binary": True}}
    made = recipe.checked(TABLE | table, "test")
    larger = np.kron(patches, np.ones((1, 4, 4), np.uint8))
    run = loop.prepare(made, data, lambda side: larger, **ON_CPU)
    codes = []
    run.method.lesson.register_forward_hook(lambda _, given, __: codes.append(given[1]))
    loss = first_loss(run)
    (code,) = codes
    assert loss.isfinite() and code.shape == (48, 256)
    assert code.abs().max() <= 1 and (code < 0).any()


# --- the card


def card_of(out, data, teacher, *settings):
    settings = ["held_out=0.3", "epochs=1", "steps_per_epoch=1", *settings]
    settings += ["method.pairs=8", "method.class_size=3", "method.follows=distances"]
    settings += [f"method.teacher={teacher}", "network={name='small_training:Small'}"]
    data = [str(data)]
    command.train("l2net-small", out, data=data, settings=settings, device="cpu", onnx=False)
    return card.read(out / "card.json")


def test_the_card_has_the_limits_of_the_teacher(tmp_path):
    made = card_of(tmp_path / "out", sample(), SPEC, "licence=CC0-1.0")
    assert DATA < set(made.trained_on)
    assert {name.partition("/")[0] for name in made.trained_on} == {"other", "phototour"}
    assert made.licence == f"CC0-1.0; of teacher random_teacher:teacher: {LICENCE}"
    weights = teacher().weights
    assert made.recipe["method"]["teacher"] == SPEC
    assert f"Its teacher was random_teacher:teacher, weights {weights}." in made.limits


def test_the_card_names_the_photographs_of_student_and_teacher(tmp_path, monkeypatch):
    """Those of both, or none if the teacher's are not known."""
    ours = [Photograph("b.jpg", "B", "CC-BY-SA-4.0", "README", 64 * "b"), SHOWN[0]]
    made_scene(tmp_path / "open", n=240, images=2)
    about = {"images": [{"name": one.file, "sha256": one.sha256} for one in ours]}
    (tmp_path / "open" / "dataset.json").write_text(json.dumps({"name": "phototour-open", **about}))
    row = PublishedSet("toy", "", "", (), "", "", {}, photographs=tuple(ours))
    monkeypatch.setattr(datasets, "known", lambda: {"toy": row})

    both = card_of(tmp_path / "both", tmp_path / "open", OPEN, "method.images=none")
    assert [one.file for one in both.photographs] == ["a.jpg", "b.jpg", "c.jpg"]
    assert both.licence == "CC-BY-4.0 AND CC-BY-SA-4.0 AND CC0-1.0"
    one = card_of(tmp_path / "one", tmp_path / "open", SPEC, "method.images=none")
    own = "CC-BY-SA-4.0 AND CC0-1.0"
    teachers = f"of teacher random_teacher:teacher: {LICENCE}"
    assert (one.photographs, one.licence) == ((), f"{own}; {teachers}")


CC0, BY = "CC0-1.0", "CC-BY-4.0"


@pytest.mark.parametrize(
    ("stated", "shown", "of_teacher", "taught", "told"),
    [
        (CC0, [], None, [], CC0),
        (CC0, [], "cc0-1.0", [], CC0),
        ("unknown", [], "MIT", [], "unknown; of teacher x: MIT"),
        ("unknown", [CC0], None, [], CC0),
        ("unknown", [CC0], BY, [BY], f"{BY} AND {CC0}"),
        ("unknown", [CC0, BY], BY, [BY], f"{BY} AND {CC0}"),
        ("unknown", [CC0], "MIT", [BY], f"{CC0}; of teacher x: MIT"),  # somebody stated it
        ("unknown", [CC0], "MIT", [], f"{CC0}; of teacher x: MIT"),
        ("MIT", [CC0], BY, [BY], f"MIT; of teacher x: {BY}"),
        ("unknown", [], BY, [BY], f"unknown; of teacher x: {BY}"),
    ],
)
def test_a_student_has_its_licence_and_that_of_its_teacher(stated, shown, of_teacher, taught, told):
    made = recipe.read("hardnet", [f"licence={stated}"])
    ours, theirs = (
        tuple(Photograph(one, "A", one, "README", 64 * "a") for one in some)
        for some in (shown, taught)
    )
    by = replace(teacher(), name="x", licence=of_teacher or "x", photographs=theirs)
    assert command._licence(made, ours, by if of_teacher else None) == told


def test_what_a_model_learned_from_is_known_of_untrained_ones_and_of_lists():
    assert teacher().learned_from is None
    assert open_teacher().learned_from == SHOWN
    assert replace(teacher(), trained_on=frozenset()).learned_from == ()
