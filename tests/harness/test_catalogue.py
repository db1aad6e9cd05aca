"""What `harness models` and `harness protocols` tell, and that it is true."""

import json
import platform

import pytest
from packages import installed

import harness
from harness import catalogue, registry
from harness.catalogue import PERMISSIVE, SHARE_ALIKE, ListedModel, ModelRow
from harness.data import published_weights
from zoo import catalogue as of_zoo
from zoo.published.rows import HARDTFEAT, TFEAT

ROWS = {row.name: row for row in of_zoo.models()}
PUBLISHED = published_weights.known().keys()
HERE = sorted(row.name for row in (*TFEAT.values(), *HARDTFEAT.values()))  # in the real data


@pytest.fixture
def no_weights(tmp_path, monkeypatch):
    """An empty cache, so that no published weights are in it, whatever this machine has."""
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("HARNESS_WEIGHTS", raising=False)


def asked(run, *arguments):
    status, out, err = run(*arguments, "--json")
    assert status == 0, err
    return {one["name"]: one for one in json.loads(out)}


# ---- rows are true


def must_be_true(row, made):
    assert (row.dim, row.distance) == (made.dim, made.distance.name)
    assert (row.trained_on, row.licence) == (made.trained_on, made.licence)
    assert row.bytes == made.bytes
    assert (row.revision, row.conventions) == (made.revision, made.conventions)
    assert row.stored == made.stored and row.sha256 in (None, made.weights)
    assert {*made.libraries} & {"torch", "onnx", "onnxscript"} <= {*row.packages}


OURS = [name for name, row in ROWS.items() if not row.weights and name not in PUBLISHED]


@pytest.mark.parametrize("name", sorted(OURS))
def test_a_row_says_what_the_descriptor_says(name):
    must_be_true(ROWS[name], harness.load_model(name, device="cpu"))


@pytest.mark.data
@pytest.mark.parametrize("name", HERE)
def test_a_row_says_what_a_descriptor_of_published_weights_says(name, shared, monkeypatch):
    folder = shared / "checkpoints" / name.partition(".")[0]
    monkeypatch.setenv("HARNESS_WEIGHTS", str(folder))
    must_be_true(ROWS[name], harness.load_model(name, device="cpu"))


@pytest.mark.parametrize("name", registry.names("protocols"))
def test_a_headline_is_that_of_the_protocol(name):
    rows = {row.name: row for row in registry.load("catalogues", "protocols")()}
    maker = registry.load("protocols", name)
    assert rows[name].headline == maker().headline


# ---- models


def test_every_installed_model_is_listed_with_its_facts(run):
    found = asked(run, "models")
    assert sorted(found) == registry.names("descriptors")
    assert all(one["dim"] and one["bytes"] and one["distance"] for one in found.values())
    brief = found["brief"]
    assert (brief["dim"], brief["bytes"], brief["distance"]) == (256, 32, "hamming")
    assert (brief["trained_on"], brief["licence"]) == ([], "Apache-2.0")
    assert brief["source"].startswith("descriptor-harness ")


@pytest.mark.usefixtures("no_weights")
def test_a_model_whose_weights_are_not_here_is_listed_with_the_command_that_gets_them(
    run, tmp_path, monkeypatch
):
    one = asked(run, "models")["tfeat.liberty"]
    assert (one["weights_here"], one["remedy"]) == (False, "harness weights fetch tfeat.liberty")
    monkeypatch.setenv("HARNESS_WEIGHTS", str(tmp_path))
    (tmp_path / TFEAT["liberty"].file).touch()
    one = asked(run, "models")["tfeat.liberty"]
    assert (one["weights_here"], one["remedy"]) == (True, "")


@pytest.mark.usefixtures("no_weights")
def test_only_models_whose_weights_are_here_may_be_listed(run, tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_WEIGHTS", str(tmp_path))
    (tmp_path / TFEAT["liberty"].file).touch()
    found = asked(run, "models", "--here")
    assert {"tfeat.liberty", "hardnet", "sift"} <= found.keys()
    assert not {"tfeat.yosemite", "hardnet8"} & found.keys()


@pytest.mark.usefixtures("no_weights")
def test_a_model_of_several_files_needs_them_all(run, tmp_path, monkeypatch):
    rows = (
        "from harness.catalogue import ModelRow\n"
        + MADE
        + (
            "def rows():\n"
            "    names = ('tfeat.liberty', 'tfeat.yosemite')\n"
            "    return [ModelRow('quick', 3, 'l2', None, 'MIT', weights=names)]\n"
        )
    )
    given = {"descriptors": {"quick": "quick"}, "catalogues": {"theirs": "rows"}}
    monkeypatch.setenv("HARNESS_WEIGHTS", str(tmp_path))
    with installed(tmp_path, "their-zoo", rows, **given):
        both = asked(run, "models")["quick"]
        (tmp_path / TFEAT["liberty"].file).touch()
        one = asked(run, "models")["quick"]
    command = "harness weights fetch"
    assert both["remedy"] == f"{command} tfeat.liberty tfeat.yosemite"
    assert (one["weights_here"], one["remedy"]) == (False, f"{command} tfeat.yosemite")


def test_only_models_of_a_permissive_licence_may_be_listed(run):
    found = asked(run, "models", "--licence", "permissive")
    licences = {part for one in found.values() for part in one["licence"].split(" AND ")}
    assert licences == {
        "MIT", "Apache-2.0", "BSD-3-Clause",
        "BSD-2-Clause", "CC-BY-2.0", "CC-BY-4.0", "CC0-1.0", "LicenseRef-public-domain",
    }  # fmt: skip
    assert {"sift", "mkd", "adasample-open", "doap-binary-open", "l2net-small-open"} <= found.keys()
    assert "hardnet" not in found  # its weights are for research
    assert not {"tfeat.liberty", "beblid.256"} & found.keys()  # no licence of their images is known
    assert "freak" not in found  # nobody says on which images it was trained
    _, told, _ = run("models", "--help")
    told = "".join(told.split()).replace("publicdomain", "LicenseRef-public-domain")
    assert [one for one in PERMISSIVE | SHARE_ALIKE if one not in told] == []


def of(licence, trained_on=frozenset({"phototour/open"}), images=None):
    own = ModelRow("own", 2, "l2", trained_on, licence, images=images)
    return ListedModel("own", "", own, here=True)


BY, SA = frozenset({"CC-BY-4.0"}), frozenset({"CC-BY-4.0", "CC-BY-SA-3.0"})
NC = frozenset({"CC-BY-NC-4.0"})


@pytest.mark.parametrize(
    ("model", "kinds"),
    [
        (of("MIT", frozenset()), ["permissive", "share-alike"]),
        (of("CC-BY-4.0 AND CC0-1.0", images=BY), ["permissive", "share-alike"]),
        (of("CC-BY-4.0 AND CC-BY-SA-3.0", images=SA), ["share-alike"]),
        (of("MIT", images=SA), ["share-alike"]),
        (of("CC-BY-4.0 AND CC-BY-NC-4.0", images=BY), []),
        (of("MIT", images=BY | NC), []),
        (of("MIT"), []),
        (of("MIT", frozenset({"phototour/liberty"})), []),
        (of("MIT", None), []),
        (of("unknown", frozenset()), []),
    ],
)
def test_a_model_is_as_free_as_its_code_its_weights_and_its_images(model, kinds):
    assert [k for k in catalogue.KINDS if catalogue.of_licence([model], k.upper())] == kinds
    said = {"yes": ["permissive", "share-alike"], "share-alike": ["share-alike"], "no": []}
    assert said[catalogue.in_products(model.row)] == kinds


def test_only_models_of_one_licence_may_be_listed(run):
    found = asked(run, "models", "--licence", "mit")
    assert {*HERE} <= found.keys() and {one["licence"] for one in found.values()} == {"MIT"}
    assert asked(run, "models", "--licence", "none such") == {}


def test_models_that_saw_data_or_a_part_of_them_may_be_left_out(run):
    assert "tfeat.liberty" not in asked(run, "models", "--not-trained-on", "phototour")
    found = asked(run, "models", "--not-trained-on", "UBC/Yosemite")
    assert {"tfeat.liberty", "hardnet", "sift"} <= found.keys()
    assert not {"tfeat.yosemite", "hardtfeat"} & found.keys()


def row(trained_on):
    own = ModelRow("own", 2, "l2", trained_on, "MIT")
    return ListedModel("own", "", own, here=True)


@pytest.mark.parametrize("trained_on", [None, frozenset({"phototuor/libery"})])
def test_a_model_that_may_have_seen_the_data_is_left_out(trained_on):
    assert catalogue.not_trained_on([row(trained_on)], "phototour/liberty") == []


def test_unknown_data_are_answered_with_known_data(run):
    status, _, err = run("models", "--not-trained-on", "phototour/libert")
    assert status == 2
    assert "did you mean 'phototour/liberty'?" in err


def test_speeds_are_listed_once_they_are_measured_here(run, tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))  # no vectors of another test
    results = tmp_path / "results"
    assert "patches/s" not in run("models", "--results", results)[1]
    given = ("--protocol", "hpatches/matching", "--results", results)
    run("eval", "--model", "pixels", *given)
    assert "patches/s" in run("models", "--results", results)[1]
    found = asked(run, "models", "--results", results)
    speed = found["pixels"]["patches_per_second"]
    assert speed > 0
    assert found["sift"]["patches_per_second"] is None
    run("eval", "--model", "pixels", *given)  # from the cache: it measures nothing
    (file,) = results.rglob("*.run")
    assert "patches_per_second" not in json.loads(file.read_text())


def test_the_newest_speed_of_this_machine_counts(tmp_path):
    for number, (when, speed, host) in enumerate(
        [
            ("2026-01-01", 1.0, platform.node()),
            ("2026-03-01", 3.0, "elsewhere"),
            ("2026-02-01", 2.0, platform.node()),
        ]
    ):
        facts = {"model": "sift", "finished": when, "patches_per_second": speed, "host": host}
        (tmp_path / f"{number}.run").write_text(json.dumps(facts))
    (tmp_path / "broken.run").write_text("{")
    listed = {one.name: one for one in catalogue.models(tmp_path)}
    assert listed["sift"].patches_per_second == 2.0


MADE = """
import numpy as np
from harness import Descriptor
from harness.distances import L2

def quick():
    return Descriptor("quick", lambda p: np.ones((len(p), 3), np.float32), L2, 3, licence="MIT")

def broken():
    raise ValueError("no luck today\\x1b[2J")

"""


def test_models_of_others_are_asked_and_a_broken_one_says_why(run, tmp_path):
    own = {"quick": "quick", "broken": "broken"}
    with installed(tmp_path, "their-zoo", MADE, descriptors=own):
        found = asked(run, "models")
        _, out, _ = run("models")
    assert (found["quick"]["dim"], found["quick"]["source"]) == (3, "their-zoo 1.0")
    assert "no luck today" in found["broken"]["remedy"]
    assert "\x1b" not in out


# ---- protocols


def test_every_protocol_is_listed_with_its_headline_and_its_data(run, tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_DATA_HOME", str(tmp_path))
    found = asked(run, "protocols")
    assert sorted(found) == registry.names("protocols")
    assert found["phototour"]["headline"] == "mean/fpr95"
    assert found["romepatches"]["data"] == {"romepatches": "not here"}
    _, out, _ = run("protocols")
    (line,) = (line for line in out.splitlines() if line.startswith("romepatches "))
    assert line.endswith("a sample is made; harness data fetch romepatches")


def test_a_protocol_whose_data_are_here_says_so(run, tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_DATA_HOME", str(tmp_path))
    for name in ("img1.ppm", "img6.ppm", "H1to2p", "H1to6p"):
        file = tmp_path / "oxford/graf" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    _, out, _ = run("protocols")
    (line,) = (line for line in out.splitlines() if line.startswith("oxford "))
    assert line.split("  ")[-1].strip() == "oxford/graf is here"


def test_a_protocol_of_others_may_have_no_row(run, tmp_path):
    with installed(tmp_path, "their-bench", "", protocols={"theirs": "made"}):
        assert asked(run, "protocols")["theirs"]["headline"] is None
