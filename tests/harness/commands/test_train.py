"""`harness train`, from a recipe file and a folder of patches to weights, card and ONNX file."""

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from phototour_files import made_scene

from harness import load_model
from harness.data import datasets, training_sets
from harness.data.datasets import PublishedSet
from harness.data.photographs import Photograph
from harness.onnx import file as onnx_file
from protocols.phototour.sample import sample
from zoo import card, trained
from zoo.training import command, log, state
from zoo.training.loop import Seen

RECIPE = """
epochs = 3
steps_per_epoch = 2
held_out = 0.3
licence = "CC0"
[method]
name = "small_training:Contrast"
pairs = 16
[network]
name = "small_training:Small"
[optimiser]
lr = 0.1
"""


@pytest.fixture
def recipe(tmp_path):
    file = tmp_path / "small.toml"
    file.write_text(RECIPE)
    return str(file)


@pytest.fixture(scope="module")
def scenes():
    return str(sample())


def test_a_training_leaves_weights_card_log_and_an_onnx_file(recipe, scenes, tmp_path):
    out = command.train(recipe, tmp_path / "out", data=[scenes], device="cpu")
    made = card.read(out / "card.json")
    assert (made.name, made.steps, made.licence, made.dim) == ("small", 6, "CC0", 16)
    assert "phototour-sample" in made.data[0].name and made.trained_on
    assert str(scenes) not in (out / "card.json").read_text()
    network = trained.load(out / "weights.safetensors", made)
    steps = log.read_log(out)
    assert [seen.step for seen in steps] == list(range(7))
    assert not made.scores  # nothing has tested it
    assert [moment.step for moment in made.curve] == [s.step for s in steps if s.fpr95 is not None]
    assert made.curve[0].loss is None and made.curve[-1].fpr95 == steps[-1].fpr95
    counted = [m.loss * (m.step - n.step) for n, m in itertools.pairwise(made.curve)]
    assert sum(counted) == pytest.approx(sum(seen.loss for seen in steps[1:]))
    model = onnx_file.open_model(out / "model.onnx", device="cpu")
    patches = np.random.default_rng(0).integers(0, 256, (5, 64, 64), dtype=np.uint8)
    of_torch = trained.Deployed(network)(torch.from_numpy(patches)).detach().numpy()
    np.testing.assert_allclose(model.describe(patches), of_torch, atol=1e-5)
    assert model.trained_on == frozenset(made.trained_on)
    assert onnxruntime.InferenceSession(out / "model.onnx").get_inputs()[0].name == "patches"


def test_an_infinite_option_is_told_as_text_that_is_json(scenes, tmp_path):
    settings = ["epochs=1", "steps_per_epoch=1", 'schedule={name="constant"}', "held_out=0.3"]
    settings += ["method.pairs=8", "method.class_size=3"]
    settings += ["network.name=small_training:Small"]
    out = command.train("hardpos", tmp_path / "out", data=[scenes], settings=settings, device="cpu")
    made = card.read(out / "card.json")
    assert made.recipe["method"]["lambda_"] == "Infinity"
    facts = onnx.load(out / "model.onnx").metadata_props
    (told,) = [one.value for one in facts if one.key == "recipe"]
    recipe = json.loads(told, parse_constant=pytest.fail)
    assert recipe.items() >= made.recipe.items()  # and what tells trainings of it apart
    assert recipe["data"] == [each.sha256 for each in made.data] and recipe["steps"] == 1
    assert '"lambda_": "Infinity"' in (out / "recipe.json").read_text()


def test_a_folder_that_holds_a_training_is_not_written_over(recipe, scenes, tmp_path):
    out = command.train(recipe, tmp_path / "out", data=[scenes], device="cpu")
    before = (out / "weights.safetensors").read_bytes()
    with pytest.raises(FileExistsError, match="--resume, or choose another --out"):
        command.train(recipe, out, data=[scenes], device="cpu")
    said = (out / "log.jsonl").read_bytes()
    command.train(recipe, out, data=[scenes], device="cpu", resume=True)  # all is done already
    assert (out / "log.jsonl").read_bytes() == said
    lines = said.splitlines(keepends=True)
    (out / "log.jsonl").write_bytes(b"".join(lines[:-1]))  # killed before it was told
    command.train(recipe, out, data=[scenes], device="cpu", resume=True)
    assert card.read(out / "card.json").curve[-1].step == len(lines) - 1
    assert (out / "weights.safetensors").read_bytes() == before


def test_weights_of_epochs_are_those_of_a_shorter_training(recipe, scenes, tmp_path):
    settings = ["checkpoints.every=2", "epochs=4"]
    out = command.train(recipe, tmp_path / "out", data=[scenes], settings=settings, device="cpu")
    short = command.train(
        recipe, tmp_path / "short", data=[scenes], settings=["epochs=2"], device="cpu"
    )
    assert sorted(one.name for one in (out / "epochs").iterdir()) == ["00002", "00004"]
    for epoch, same in (("00002", short), ("00004", out)):
        folder = out / "epochs" / epoch
        assert (folder / command.WEIGHTS).read_bytes() == (same / command.WEIGHTS).read_bytes()
        own = card.read(folder / "card.json")
        assert own.steps == own.curve[-1].step == 2 * int(epoch)
        assert own.curve[-1] == card.read(same / "card.json").curve[-1]
        assert "checkpoints" not in own.recipe
        vectors = trained.by_torch(folder / command.WEIGHTS, own).describe(
            np.zeros((3, 64, 64), np.uint8)
        )
        assert vectors.shape == (3, 16)
    resumed = command.train(
        recipe, out, data=[scenes], settings=["epochs=4"], device="cpu", resume=True
    )
    assert resumed == out  # what is kept on the way makes no other training


def test_a_training_that_may_resume_begins_anew_without_a_state(recipe, scenes, tmp_path):
    given = {"data": [scenes], "settings": ["checkpoints.every=1"], "device": "cpu", "onnx": False}
    whole = command.train(recipe, tmp_path / "whole", resume=None, **given)
    out, first = tmp_path / "out", Path("epochs", "00001")
    shutil.copytree(whole / first, out / first)  # killed between these weights and the state
    with pytest.raises(FileExistsError, match="can't be resumed"):
        command.train(recipe, out, **given)
    command.train(recipe, out, resume=None, **given)
    assert (out / command.WEIGHTS).read_bytes() == (whole / command.WEIGHTS).read_bytes()


def test_a_kept_epoch_is_a_model_with_a_name_of_its_own(recipe, scenes, tmp_path):
    settings = ["checkpoints.every=1", "epochs=2"]
    out = command.train(recipe, tmp_path / "out", data=[scenes], settings=settings, device="cpu")
    patches = np.random.default_rng(0).integers(0, 256, (5, 64, 64), dtype=np.uint8)
    first = load_model(out / "epochs" / "00001", device="cpu")
    last = load_model(out / "epochs" / "00002", device="cpu")
    whole = load_model(out, device="cpu")
    assert [one.name for one in (first, last, whole)] == ["small@epoch-1", "small@epoch-2", "small"]
    assert last.weights == whole.weights != first.weights
    exported = onnx_file.open_model(out / "model.onnx", device="cpu")
    np.testing.assert_array_equal(last.describe(patches), exported.describe(patches))
    assert np.abs(first.describe(patches) - last.describe(patches)).max() > 1e-3
    assert (last.recipe, last.seed) == (whole.recipe, whole.seed) != (first.recipe, first.seed)
    (out / "epochs" / "00001" / "card.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"no model card .*00001.card\.json"):
        load_model(out / "epochs" / "00001", device="cpu")


def kept(out):
    """The contents of all kept epochs, but for the duration of the training."""
    files = sorted((out / "epochs").glob("*/*"))
    assert not any(".tmp" in file.name for file in files)
    return {
        str(file.relative_to(out)): file.read_bytes()
        if file.suffix == ".safetensors"
        else card.read(file).model_copy(update={"hours": 0.0})
        for file in files
    }


def test_a_killed_training_that_resumes_keeps_the_same_epochs(recipe, scenes, tmp_path):
    settings = ["epochs=20", "checkpoints.every=3"]
    whole = command.train(
        recipe, tmp_path / "whole", data=[scenes], settings=settings, device="cpu"
    )
    broken = tmp_path / "broken"
    process = started(
        "--recipe", recipe, "--data", scenes, "--out", broken,
        "--set", settings[0], "--set", settings[1],
    )  # fmt: skip
    under_way(process, broken, steps=9)
    process.kill()
    process.communicate()
    assert not (broken / "weights.safetensors").exists()
    command.train(recipe, broken, data=[scenes], settings=settings, device="cpu", resume=True)
    assert kept(broken) == kept(whole)
    assert len(kept(whole)) == 2 * 6


def test_weights_of_epochs_without_a_state_are_not_written_over(recipe, scenes, tmp_path):
    (tmp_path / "out" / "epochs" / "00001").mkdir(parents=True)
    with pytest.raises(FileExistsError, match="epochs holds weights of a training that can't be"):
        command.train(recipe, tmp_path / "out", data=[scenes], device="cpu")


def test_a_card_says_that_nothing_was_held_out(recipe, scenes, tmp_path):
    out = command.train(
        recipe, tmp_path / "out", data=[scenes], settings=["held_out=0"], device="cpu"
    )
    made = card.read(out / "card.json")
    assert "No points were held out: the curve has losses only." in made.limits
    assert [moment.step for moment in made.curve] == [0, 2, 4, 6]
    assert all(moment.fpr95 is None for moment in made.curve)
    losses = [seen.loss for seen in log.read_log(out)]
    assert made.curve[1].loss == pytest.approx((losses[1] + losses[2]) / 2)
    assert made.recipe["held_out"] == 0


def test_a_recipe_that_changed_since_names_what_changed(recipe, scenes, tmp_path):
    out = command.train(recipe, tmp_path / "out", data=[scenes], device="cpu")
    with pytest.raises(ValueError) as error:
        command.train(
            recipe,
            out,
            data=[scenes],
            settings=["method.pairs=8", "optimiser.lr=0.2"],
            device="cpu",
            resume=True,
        )
    told = str(error.value)
    assert "recipe.json is of a training with another recipe" in told
    assert "method.pairs was 16, now 8; optimiser.lr was 0.1, now 0.2" in told
    assert "--set KEY=VALUE" in told
    for other in ("[1]", "[" * 100_000):
        (out / "recipe.json").write_text(other)
        with pytest.raises(ValueError, match=r"recipe\.json is not the recipe of a training"):
            command.train(recipe, out, data=[scenes], device="cpu", resume=True)


def test_automatic_precision_is_float32_on_gpus():
    assert command.precision_of("auto", torch.device("cuda")) is torch.float32
    assert command.precision_of("bfloat16", torch.device("cuda")) is torch.bfloat16


def test_bfloat16_that_a_gpu_imitates_is_told(monkeypatch, caplog):
    asked = []
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.is_bf16_supported", lambda **how: asked.append(how) or False)
    assert command.precision_of("bfloat16", torch.device("cuda")) is torch.bfloat16
    assert asked == [{"including_emulation": False}]
    assert "has no bfloat16 and only imitates it" in caplog.text


def test_a_gpu_that_can_not_compute_is_told_and_the_cpu_trains(monkeypatch, caplog):
    monkeypatch.setattr(command, "cuda_failure", lambda: "PyTorch can't compute: no kernel image")
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    with command._processes("auto") as place:
        assert place.type == "cpu"
    assert "no kernel image: this trains on the CPU instead" in caplog.text
    with (
        pytest.raises(RuntimeError, match="no kernel image: choose --device cpu"),
        command._processes("cuda"),
    ):
        pass


@pytest.mark.parametrize("average", ["none", "{decay=0.9}"], ids=["last", "averaged"])
def test_a_killed_process_resumes_to_the_same_weights(recipe, scenes, tmp_path, average):
    settings = ["epochs=20", f"average={average}"]
    whole = command.train(
        recipe, tmp_path / "whole", data=[scenes], device="cpu", settings=settings
    )
    broken = tmp_path / "broken"
    process = started(
        "--recipe", recipe, "--data", scenes, "--out", broken,
        "--set", settings[0], "--set", settings[1],
    )  # fmt: skip
    under_way(process, broken)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    assert process.returncode == 130
    assert not (broken / "weights.safetensors").exists()
    command.train(recipe, broken, data=[scenes], device="cpu", settings=settings, resume=True)
    assert (broken / "weights.safetensors").read_bytes() == (
        whole / "weights.safetensors"
    ).read_bytes()
    made = card.read(broken / "card.json")
    assert made.recipe.get("average") == (None if average == "none" else {"decay": 0.9})
    assert [seen.step for seen in log.read_log(broken)] == list(range(41))


def test_what_cannot_be_trained_is_told_before_anything_is_written(
    recipe, scenes, tmp_path, monkeypatch, read_only
):
    out = tmp_path / "out"
    with pytest.raises(ValueError, match="epochs"):
        command.train(recipe, out, data=[scenes], settings=["epochs=0"])
    with pytest.raises(LookupError, match=r"no dataset named '.*elsewhere'"):
        command.train(recipe, out, data=[str(tmp_path / "elsewhere")], device="cpu")
    with pytest.raises(ValueError, match="no precision 'half'"):
        command.train(recipe, out, data=[scenes], precision="half", device="cpu")
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match="TensorBoard is not installed"):
        command.train(recipe, out, data=[scenes], tensorboard=True, device="cpu")
    if not torch.cuda.is_available():
        with pytest.raises(RuntimeError, match="finds no CUDA device here"):
            command.train(recipe, out, data=[scenes], device="cuda")
    data = training_sets.open_set(scenes)
    few = [f"method.pairs={len(np.unique(data.point)) + 1}"]  # found when patches are read
    with pytest.raises(ValueError, match="points"):
        command.train("hardnet", out, data=[scenes], settings=few, device="cpu")
    with pytest.raises(FileNotFoundError, match="leave out --resume"):
        command.train(recipe, out, data=[scenes], device="cpu", resume=True)
    with pytest.raises(OSError, match=r"can't be kept in .*read-only.*: choose another --out"):
        command.train(recipe, read_only / "out", data=[scenes], device="cpu")
    with pytest.raises(ValueError, match="keeps no fingerprints"):
        command.train(recipe, out, data=[scenes], device="cpu", tests=[tmp_path])
    assert not out.exists()


TRAIN = [sys.executable, "-m", "harness", "train", "--device", "cpu"]


def started(*arguments):
    """A training in a process of its own."""
    paths = os.pathsep.join(sys.path)
    return subprocess.Popen(
        [*TRAIN, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def under_way(process, out, steps=4):
    """Wait until some steps are done."""
    deadline = time.monotonic() + 120
    while len(log.read_log(out)) < steps and time.monotonic() < deadline:
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.02)


def test_of_two_trainings_into_one_folder_the_second_is_refused_at_once(recipe, scenes, tmp_path):
    out = tmp_path / "out"
    first = started("--recipe", recipe, "--data", scenes, "--out", out, "--set", "epochs=3000")
    under_way(first, out)
    before = {file.name for file in out.iterdir()}
    for resume in (False, True):
        with pytest.raises(BlockingIOError, match=r"another process trains in .*: wait for it"):
            command.train(recipe, out, data=["nowhere"], device="cpu", resume=resume)
    assert {file.name for file in out.iterdir()} == before
    first.kill()
    first.communicate()
    assert (out / command.LOCK).exists()  # a lock that nobody holds
    done = command.train(recipe, out, data=[scenes], device="cpu")
    assert not (done / command.LOCK).exists()


@pytest.mark.parametrize(("sign", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_training_that_is_asked_to_end_keeps_its_state(recipe, scenes, tmp_path, sign, status):
    out = tmp_path / "out"
    process = started("--recipe", recipe, "--data", scenes, "--out", out, "--set", "epochs=3000")
    under_way(process, out)
    process.send_signal(sign)
    _, said = process.communicate(timeout=120)
    assert process.returncode == status, said
    assert "run the command again to continue" in said
    left = {file.name for file in out.iterdir()}
    assert left == {state.FILE, state.LOG, command.RECIPE}


def test_progress_tells_loss_error_and_speed():
    seen = log.Seen(7, loss=0.25, fpr95=None, patches=64)
    told = command._line("hardnet", seen, 0.012, 1234.5)
    assert told == "hardnet  step 7  loss 0.2500  held-out FPR95 1.200 %  1,234 patches/s"
    assert command._line("hardnet", log.Seen(0), None, 0.0) == "hardnet  step 0"


def test_the_log_forgets_what_comes_again(tmp_path):
    lines = [json.dumps({"step": n, "patches": 0, "seconds": 0.0}) for n in range(5)]
    (tmp_path / state.LOG).write_text("\n".join([*lines, '{"step": 5, "lo']))
    write = log.open_log(tmp_path, upto=2)
    write(log.Seen(3, loss=0.5))
    assert [seen.step for seen in log.read_log(tmp_path)] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "damaged",
    [
        '{"step": 1, "lo,ss": 0.5}',
        '{"step": 1, "loss": "0.5"}',
        '{"step": 1.5}',
        '{"step": -1}',
        '[{"step": 1}]',
        "[" * 100_000,
        "7" * 5000,
    ],
)
def test_damaged_lines_of_the_log_are_steps_that_it_lacks(damaged, tmp_path, caplog):
    lines = ['{"step": 0, "loss": NaN}', damaged, '{"step": 2}']
    (tmp_path / state.LOG).write_text("\n".join(lines))
    assert [seen.step for seen in log.read_log(tmp_path)] == [0, 2]
    log.open_log(tmp_path, upto=2)
    assert "lacks 1 earlier steps" in caplog.text
    assert len((tmp_path / state.LOG).read_text().splitlines()) == 2


def test_hours_are_those_of_the_middle_step_so_that_a_pause_does_not_count():
    ends = [0.0, 3.0, 6.0, 3600.0, 3603.0, 3606.0]
    seen = [Seen(step, seconds=seconds) for step, seconds in enumerate(ends)]
    assert command.hours(seen) == round(5 * 3 / 3600, 3)
    assert command.hours(seen[:1]) == 0


def test_the_card_names_the_photographs_and_takes_their_licences(recipe, tmp_path, monkeypatch):
    """A licence that the recipe states is kept; without all photographs there is no such claim."""
    made_scene(tmp_path / "open", n=240, images=2)
    hashes = [64 * letter for letter in "ab"]
    listed = [{"name": f"{sha[0]}.jpg", "sha256": sha} for sha in hashes]
    about = {"name": "phototour-open", "images": listed}
    (tmp_path / "open" / "dataset.json").write_text(json.dumps(about))
    shown = [
        Photograph(f"{sha[0]}.jpg", author, licence, "README", sha)
        for sha, author, licence in zip(hashes, "AB", ("CC-BY-4.0", "CC0-1.0"), strict=True)
    ]

    def trained_with(listed, out, *settings):
        row = PublishedSet("toy", "", "", (), "", "", {}, photographs=tuple(listed))
        monkeypatch.setattr(datasets, "known", lambda: {"toy": row})
        data, changes = [str(tmp_path / "open")], ["epochs=1", "steps_per_epoch=1", *settings]
        command.train(recipe, out, data=data, settings=changes, device="cpu", onnx=False)
        return card.read(out / "card.json")

    made = trained_with(shown, tmp_path / "known", "licence=unknown")
    assert [(one.file, one.author) for one in made.photographs] == [("a.jpg", "A"), ("b.jpg", "B")]
    assert made.licence == "CC-BY-4.0 AND CC0-1.0"
    assert trained_with(shown, tmp_path / "stated").licence == "CC0"  # as the recipe says
    unknown = trained_with(shown[:1], tmp_path / "unknown", "licence=unknown")
    assert (unknown.photographs, unknown.licence) == ((), "unknown")
    assert "photographs" not in (tmp_path / "unknown" / "card.json").read_text()
