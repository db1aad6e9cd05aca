"""Networks that were trained here: weights, cards, and the descriptors made of them."""

import json
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
import safetensors.torch
import torch
from cards import FACTS, card_of
from checkout import ROOT
from hypothesis import given
from hypothesis import strategies as st

from harness import cache, code, registry
from harness.contracts import check_descriptor
from harness.differences import interval_of_difference
from harness.distances import HAMMING, L2
from harness.evaluation import evaluate
from harness.files import home
from harness.onnx.check import apart_by
from harness.onnx.export import export
from harness.records import record as results
from harness.records import tables as all_tables
from protocols.eth import protocol as reconstruction
from protocols.hpatches import variant
from protocols.hpatches_sequences import protocol as sequences
from protocols.oxford import protocol as evaluation
from protocols.phototour import snn, verification
from protocols.romepatches import protocol as retrieval
from studies import ship, zoo_tables
from zoo import card as cards
from zoo import shipped as shipped_models
from zoo import trained
from zoo.backbones import L2Net, resize
from zoo.card import Card
from zoo.training.recipe import Part, make

PATCHES = np.random.default_rng(0).integers(0, 256, (9, 65, 65), dtype=np.uint8)
PATCHES[3] = 128
PATCHES.flags.writeable = False


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    return L2Net(dropout=0.1)


@pytest.fixture
def shipped(network, tmp_path, monkeypatch):
    """A folder with one model, where those that are shipped are looked for; gives its card."""
    contents = trained.pack(network)
    (tmp_path / "adasample.safetensors").write_bytes(contents)
    card = card_of(contents)
    cards.write(tmp_path / "adasample.json", card)
    monkeypatch.setattr(shipped_models, "FOLDER", tmp_path)
    return card


VARIANTS = [
    *({"name": name} for name in registry.names("networks")),
    *({"name": name, "binary": True} for name in ("doap", "doap-st", "l2net-mean-image")),
]


@pytest.mark.parametrize("part", VARIANTS, ids=lambda part: "-".join(map(str, part.values())))
def test_every_network_of_the_zoo_is_exported_as_it_computes(part, tmp_path):
    torch.manual_seed(0)
    made = make("network", Part(**part))
    contents = trained.pack(made)
    (tmp_path / "weights").write_bytes(contents)
    facts = {"distance": made.distance.name, "dim": made.dim, "side": made.side, "network": part}
    card = card_of(contents, **facts)
    export(trained.by_torch(tmp_path / "weights", card), tmp_path / "x.onnx")  # or it is refused


def file_of(card: Card) -> Path:
    return shipped_models.FOLDER / f"{card.name}.safetensors"


def test_a_shipped_model_computes_what_its_weights_give_in_torch(shipped):
    made = shipped_models.adasample()
    by_torch = trained.by_torch(file_of(shipped), shipped)
    assert made.provider == "CPUExecutionProvider"
    assert apart_by(made.describe(PATCHES), by_torch.describe(PATCHES), L2).max() < 1e-5
    assert not [law for law in check_descriptor(made) if not law.passed]
    entries = home.cache("onnx").rglob("*.entry")
    kept = [onnx.load_from_string(entry.read_bytes()[: -cache.END]) for entry in entries]
    said = [{one.key: one.value for one in model.metadata_props} for model in kept]
    mine = [one for one in said if one["weights_sha256"] == shipped.weights]
    recipe = {**FACTS["recipe"], "seed": 3, "steps": 10, "data": ["1" * 64]}
    assert [json.loads(one["recipe"]) for one in mine] == [recipe]
    assert made.seed == by_torch.seed == 3 and made.recipe == by_torch.recipe


def test_pytorch_on_a_device_computes_the_same_whatever_the_batch(shipped):
    """Under another name of the CPU: it is described as on a GPU, in passes of one size."""
    wanted = trained.by_torch(file_of(shipped), shipped).describe(PATCHES)
    found = trained.by_torch(file_of(shipped), shipped, device="cpu:0")
    assert apart_by(found.describe(PATCHES), wanted, L2).max() < 1e-5
    assert np.array_equal(found.describe(PATCHES[4:5]), found.describe(PATCHES)[4:5])


def test_where_onnx_runtime_has_no_gpu_pytorch_takes_it_and_that_is_told(
    shipped, monkeypatch, caplog
):
    monkeypatch.setattr("onnxruntime.get_available_providers", lambda: ["CPUExecutionProvider"])
    monkeypatch.setattr(trained.onnx_file, "has_nvidia_driver", lambda: True)
    with pytest.raises(RuntimeError, match=r"knows no CUDA.*; PyTorch finds no CUDA device here"):
        trained.opened(file_of(shipped), shipped, device="cuda")
    assert trained.opened(file_of(shipped), shipped, device="auto").provider.startswith("CPU")
    assert "PyTorch finds no CUDA device here: the CPU computes instead" in caplog.text
    monkeypatch.setattr(trained, "cuda_failure", lambda: None)
    for device in ("auto", "cuda"):
        caplog.clear()
        made = trained.opened(file_of(shipped), shipped, device=device)
        assert made.provider == "torch-cuda"
        assert "knows no CUDA" in caplog.text and "PyTorch computes there instead" in caplog.text


def test_the_code_of_a_shipped_model_is_that_of_its_network_and_graph(shipped, monkeypatch):
    """Otherwise a new maker, recipe or form of record would empty the cache of vectors."""
    read = []
    found = code._file
    monkeypatch.setattr(code, "_file", lambda name: read.append(name) or found(name))
    made = shipped_models.adasample()
    assert {"zoo.backbones", "harness.onnx.export", "harness.onnx.file"} <= set(read)
    assert not {"zoo.shipped", "zoo.trained", "zoo.training.recipe", "harness.types"} & set(read)
    assert made.code != trained.by_torch(file_of(shipped), shipped).code


def test_the_descriptor_says_what_the_card_says(shipped):
    made = trained.by_torch(file_of(shipped), shipped)
    assert (made.name, made.dim, made.distance) == ("adasample", 128, L2)
    assert made.trained_on == {"made/up"}
    assert (made.licence, made.weights) == ("Apache-2.0", shipped.weights)


def test_weights_are_kept_to_half_precision_and_few_bytes(network, shipped):
    kept = safetensors.torch.load_file(file_of(shipped))
    assert file_of(shipped).stat().st_size < 3e6
    assert {one.dtype for one in kept.values()} == {torch.float16, torch.float32, torch.int64}
    assert {kept[name].dtype for name, _ in network.named_parameters()} == {torch.float16}
    loaded = trained.load(file_of(shipped), shipped).state_dict()
    assert not trained.load(file_of(shipped), shipped).training
    for name, value in network.state_dict().items():
        assert loaded[name].dtype == value.dtype
        assert torch.allclose(loaded[name], value, rtol=5e-4, atol=1e-7)


def test_binary_networks_give_packed_signs(tmp_path):
    torch.manual_seed(0)
    options = {"name": "l2net-mean-image", "binary": True}
    own = trained.make("network", cards.Part(**options))
    contents = trained.pack(own)
    (tmp_path / "w").write_bytes(contents)
    card = card_of(contents, network=options, distance="hamming")
    made = trained.by_torch(tmp_path / "w", card)
    loaded = trained.load(tmp_path / "w", card)
    with torch.inference_mode():
        vectors = loaded(resize(torch.from_numpy(PATCHES.copy())[:, None].float(), 32))
    assert made.distance is HAMMING
    assert np.array_equal(made.describe(PATCHES), np.packbits(vectors.numpy() >= 0, axis=1))


def test_weights_that_do_not_fit_float16_are_refused(network):
    torch.manual_seed(0)
    large = L2Net()
    large.first[0].weight.data[0, 0, 0, 0] = 1e6
    with pytest.raises(ValueError, match=r"first\.0\.weight holds numbers up to 1e\+06"):
        trained.pack(large)


def test_weights_of_another_card_are_refused(shipped):
    other = shipped.model_copy(update={"weights": "2" * 64})
    with pytest.raises(ValueError, match=f"has sha256 {shipped.weights}, but the card of adasamp"):
        trained.load(file_of(shipped), other)


def test_missing_weights_are_named(shipped, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file of weights .*none\.safetensors"):
        trained.load(tmp_path / "none.safetensors", shipped)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"network": {"name": "tfeat"}}, r"safetensors does not fit tfeat: .*[Mm]issing key"),
        ({"network": {"name": "l2net", "drop": 1}}, r"safetensors: .* \[network\] .*named 'drop'"),
        ({"network": {"name": "l2net", "dropout": 7.0}}, r"safetensors: .* \[network\] "),
        ({"network": {"name": "l3net"}}, r"safetensors: .* \[network\] .*did you mean 'l2net'"),
        (
            {"dim": 64},
            r"safetensors: .* says .*\('l2', 64, 32\); its network has \('l2', 128, 32\)",
        ),
        ({"distance": "hamming"}, "says distance, dim and side"),
    ],
)
def test_a_card_of_another_network_is_refused(change, message, shipped):
    card = Card(**shipped.model_dump() | change)
    with pytest.raises(ValueError, match=message):
        trained.load(file_of(shipped), card)


@pytest.mark.data
def test_what_is_shipped_scores_on_hpatches_as_it_does_in_torch(shared):
    tasks = ("verification", "matching", "retrieval")
    data = shared / "hpatches" / "mini"
    protocols = [registry.load("protocols", f"hpatches/{task}")(data=data) for task in tasks]
    card = cards.read(shipped_models.FOLDER / "adasample.json")
    models = shipped_models.adasample(), trained.by_torch(file_of(card), card)
    for here, there in zip(*(evaluate(model, protocols) for model in models), strict=True):
        assert here.scores.keys() == there.scores.keys()
        for name, score in here.scores.items():
            assert score == pytest.approx(there.scores[name], abs=1e-5), name


# ---- what is shipped

RECORDS = ROOT / "results"
CARDS = sorted(shipped_models.FOLDER.glob("*.json"))


@pytest.fixture(scope="module")
def records():
    return results.load(RECORDS)


@pytest.mark.parametrize("file", CARDS, ids=lambda file: file.stem)
def test_a_shipped_card_says_what_records_say_and_no_more(file, records):
    card = cards.read(file)
    assert card.name == file.stem and card.name in registry.names("descriptors")
    most = 5e6 if card.dim == 256 else 3e6  # the last layer of 256 outputs is twice as large
    assert file.with_suffix(".safetensors").stat().st_size < most
    assert card.curve[-1].step == card.steps and card.limits
    assert card.scores and card.scores == ship.headlines(records, card)


# Records that wait to be measured again, by protocol and data set: their scores stand, but for what
# near ties decide, their intervals are those of the version before.
WAITING: set[tuple[str, str]] = set()


def test_records_are_of_protocols_as_they_are_but_for_those_that_wait(records):
    now = {
        "eth": reconstruction.VERSION,
        "hpatches": variant.VERSION,
        "hpatches-sequences": sequences.VERSION,
        "oxford": evaluation.VERSION,
        "phototour": verification.VERSION,
        "phototour/snn": snn.VERSION,
        "romepatches": retrieval.VERSION,
    }
    older = set()
    for record in records:
        name, version = record.protocol.name, record.protocol.version
        family = name.partition("/")[0]
        if version != now[name if name in now else family]:
            older.add((family, record.data.name))
    assert older == WAITING  # take out what was measured again


def test_the_table_of_the_zoo_is_that_of_the_records(records):
    assert (RECORDS / "studies/zoo.md").read_text("utf-8") == zoo_tables.text(records)


def test_oxford_stands_in_the_table_below_its_sequences(records):
    known = zoo_tables.board(records, "oxford", "oxford", "3000")
    text = "\n".join(zoo_tables.oxford("regions", known))
    head, _, first = (line.split(" | ") for line in text[text.index("| |") :].splitlines()[:3])
    assert first[0] == "| rootsift"
    assert first[head.index("wall |")] == f"{100 * known['rootsift'].scores['wall/map']:.1f} |"


@pytest.mark.parametrize("where", ["hpatches-mini", "Oxford, our regions"])
def test_a_difference_is_of_pairs_of_sequences(records, where):
    known = zoo_tables.board(records, *zoo_tables.WHOLE[where])
    a, b = ([*zoo_tables.scene_maps(known[one]).values()] for one in ("adasample", "hardnet"))
    low, high = 100 * np.array(interval_of_difference(np.array(a), np.array(b)))
    wanted = f"{100 * np.mean(np.subtract(a, b)):+.1f} [{low:+.1f}, {high:+.1f}]"
    assert low > 0 and zoo_tables.difference(known, "hardnet") == f"**{wanted}**"
    turned = {"adasample": known["hardnet"], "hardnet": known["adasample"]}
    assert zoo_tables.difference(turned, "hardnet").startswith("*-")
    same = {"adasample": known["hardnet"], "hardnet": known["hardnet"]}
    assert zoo_tables.difference(same, "hardnet") == "+0.0 [-0.0, +0.0]"
    assert zoo_tables.difference(known, "none") == "—"
    scores = {**known["hardnet"].scores, known["hardnet"].protocol.headline: 0.1}
    with pytest.raises(ValueError, match="hardnet is not the mean"):
        zoo_tables.scene_maps(known["hardnet"].model_copy(update={"scores": scores}))


def test_structure_from_motion_is_shown_by_the_ratio_of_matching(records):
    usual = [one for one in records if "ratio" not in one.protocol.options]
    assert list(zoo_tables.by_ratio(usual)) == []
    known = zoo_tables.board(usual, "eth", *zoo_tables.ETH)

    def at(ratio, **data):
        one = known["rootsift"]
        protocol = one.protocol.model_copy(update={"options": {"ratio": ratio}})
        moved = one.data.model_copy(update=data)
        return one.model_copy(update={"protocol": protocol, "data": moved})

    assert list(zoo_tables.by_ratio([*usual, at("0.9", name="eth-sample")])) == []
    lines = list(zoo_tables.by_ratio([*usual, at("0.9"), at("0.7")]))
    rows = [line.split(" | ")[:2] for line in lines if line.startswith("| rootsift")]
    assert [ratio for _, ratio in rows] == ["0.7", "0.8", "0.9"]
    assert not any(line.startswith("| brief") for line in lines)  # of one ratio


def test_leaderboards_of_the_repository_are_those_of_its_records(tmp_path):
    again = shutil.copytree(RECORDS, tmp_path / "results")
    written = all_tables.write(again)
    assert len(written) == len(list((RECORDS / "tables").glob("*/*/*/*")))
    for file in written:
        assert file.read_bytes() == (RECORDS / file.relative_to(again)).read_bytes(), file


def test_the_page_of_models_says_what_records_say(records):
    assert zoo_tables.short(records) in (ROOT / "docs" / "models.md").read_text("utf-8")


def test_weights_come_in_with_their_card_and_scores(shipped, network, tmp_path, records):
    into = tmp_path / "into"
    into.mkdir()
    folder = tmp_path / "trained"
    folder.mkdir()
    cards.write(folder / "card.json", shipped.model_copy(update={"scores": {}}))
    (folder / "weights.safetensors").write_bytes(trained.pack(network))
    assert ship.take(folder, "few steps", into) == shipped.name
    card = cards.read(into / f"{shipped.name}.json")
    assert (card.limits, card.scores) == ("few steps", {})
    assert (into / f"{shipped.name}.safetensors").read_bytes() == trained.pack(network)
    some = [record for record in records if record.model.name == "rootsift"]

    def of(name, record):
        own = record.model.model_copy(update={"name": name, "weights": card.weights})
        return record.model_copy(update={"model": own})

    told = [of(shipped.name, record) for record in some]
    signs = [of("its signs", record) for record in records if record.model.name == "brief"]
    cells = told[0].model_copy(update={"scores": {"one/cell": 0.5}})  # the others were trained on
    ship.score([*records, *told[1:], *signs, cells], into)
    scores = cards.read(into / f"{shipped.name}.json").scores
    assert len(scores) == len(some) - 1
    of_mini = scores["hpatches/matching on hpatches-mini, split mini: matching/map"]
    low, high = of_mini.interval
    assert low < of_mini.value < high


def test_signs_come_in_as_a_descriptor_of_the_same_weights(tmp_path):
    rng = np.random.default_rng(0)
    patches = rng.integers(0, 256, (20, 32, 32), np.uint8)
    for end in ("json", "safetensors"):
        shutil.copy(shipped_models.FOLDER / f"l2net+.{end}", tmp_path)
    ship.signs("l2net+", "bits", tmp_path)
    own, card = (cards.read(tmp_path / f"{name}.json") for name in ("l2net+", "bits"))
    assert (card.weights, card.curve, card.hours) == (own.weights, own.curve, own.hours)
    assert card.recipe["name"] == "bits" and card.recipe["network"]["binary"]
    vectors, bits = (
        trained.by_torch(tmp_path / f"{one.name}.safetensors", one).describe(patches)
        for one in (own, card)
    )
    np.testing.assert_array_equal(np.unpackbits(bits, axis=1), vectors >= 0)
    assert cards.read(shipped_models.FOLDER / "l2net-binary.json").weights == own.weights


# ---- cards


def test_a_card_is_read_as_it_was_written_byte_for_byte(shipped, tmp_path):
    read = cards.read(shipped_models.FOLDER / "adasample.json")
    assert read == shipped
    cards.write(tmp_path / "again.json", read)
    assert (tmp_path / "again.json").read_bytes() == (
        shipped_models.FOLDER / "adasample.json"
    ).read_bytes()


def test_a_missing_card_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no model card .*x\.json"):
        cards.read(tmp_path / "x.json")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": "abc"}, "weights: "),
        ({"sise": 3}, "sise: Extra inputs"),
        ({"distance": "cosine"}, "distance: .*no distance named 'cosine'"),
        ({"hours": -1}, "hours: "),
        ({"data": [{"name": "x"}]}, r"data\.0\.sha256: Field required"),
    ],
)
def test_what_is_wrong_with_a_card_is_named(change, message, tmp_path):
    (tmp_path / "x.json").write_text(json.dumps(FACTS | change))
    with pytest.raises(ValueError, match=rf"x\.json is not a valid model card: {message}"):
        cards.read(tmp_path / "x.json")


@given(st.one_of(st.binary(max_size=50), st.text(max_size=50).map(str.encode)))
def test_any_bytes_are_a_card_or_an_error_of_one_kind(tmp_path_factory, contents):
    file = tmp_path_factory.mktemp("card") / "x.json"
    file.write_bytes(contents)
    with pytest.raises(ValueError, match=r"x\.json is not a valid model card"):
        cards.read(file)
