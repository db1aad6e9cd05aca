"""The list of photographs that weights for products may be trained on."""

import hashlib
import re
import tomllib
from importlib import resources
from pathlib import Path

import pytest
from mirrors import serving
from packed import debian

from harness.catalogue import PERMISSIVE, SHARE_ALIKE
from harness.data import datasets, download
from harness.data.fetch import fetch
from protocols.imaging.grey import read_grey
from protocols.imaging.same_photograph import SAME, differences, fingerprints
from protocols.open_photographs import sets
from protocols.open_photographs.sets import photograph_sets

SETS = {one.name: one for one in photograph_sets()}
SAMPLES = ("astronaut", "brick", "camera", "chelsea", "coffee", "coins", "grass", "gravel")


def licences(name):
    return {one.licence for one in SETS[name].photographs}


def test_open_photographs_ask_for_their_authors_names_and_no_more():
    assert licences("open-photographs/attribution") <= PERMISSIVE


def test_share_alike_and_gpl_stand_apart():
    assert licences("open-photographs/share-alike") <= SHARE_ALIKE
    assert {one.partition("-")[0] for one in licences("gpl-photographs")} == {"GPL", "LGPL"}


def test_each_photograph_has_an_author_and_says_where_its_licence_stands():
    for one in [one for row in SETS.values() for one in row.photographs]:
        assert one.author.strip() and one.stated.strip(), one.file
        assert re.fullmatch("[0-9a-f]{64}", one.sha256), one.file


def test_no_photograph_is_listed_twice():
    listed = [one.sha256 for row in SETS.values() for one in row.photographs]
    assert len(set(listed)) == len(listed)


def test_each_listed_photograph_is_a_file_that_a_part_of_its_set_leaves():
    for row in SETS.values():
        left = {f"{part.into}/{file}" for part in row.parts for file in part.kept}
        assert left == {one.file for one in row.photographs}


def test_every_copy_has_a_hash():
    copies = [copy for row in SETS.values() for part in row.parts for copy in part.copies]
    assert all(copy.hash and copy.hash.startswith("sha256:") for copy in copies)


@pytest.mark.parametrize(
    ("package", "file"),
    [("skimage.data", "rocket.jpg"), ("sklearn.datasets.images", "china.jpg"),
     ("sklearn.datasets.images", "flower.jpg")],
)  # fmt: skip
def test_no_sample_of_a_protocol_shows_a_listed_photograph(package, file):
    ours = fingerprints(read_grey(Path(str(resources.files(package) / file))))
    for name in SAMPLES:
        image = read_grey(Path(str(resources.files("skimage") / "data" / f"{name}.png")))
        assert differences(ours, fingerprints(image)[None])[0] > SAME


LIST = """
[sets.toy-photographs]
title = "toys"

[[sources]]
set = "toy-photographs"
into = "pack"
addresses = ["{dead}/toy.deb", "{package}"]
sha256 = "{sha256}"
size = {size}
stated = "copyright file"

[[sources.photographs]]
file = "usr/share/bee.jpg"
author = "A"
licence = "CC-BY-4.0"
sha256 = "{bee}"

[[sources]]
set = "toy-photographs"
into = "loose"
addresses = ["{folder}/"]
stated = "LICENSE"

[[sources.photographs]]
file = "fly.jpg"
author = "B"
licence = "CC0-1.0"
sha256 = "{fly}"
"""


def sha256(body):
    return hashlib.sha256(body).hexdigest()


def test_a_list_is_fetched_from_packages_and_single_files(tmp_path, monkeypatch):
    """From a real server; the first mirror is gone, and the package holds more than is listed."""
    files = {"usr/share/bee.jpg": b"bee", "usr/share/gradient.jpg": b"dull", "usr/doc": b"text"}
    body = debian((f"./{name}", contents) for name, contents in files.items())
    monkeypatch.setenv("HARNESS_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(download, "PAUSE", 0.01)
    with serving() as mirror:
        package = mirror.give("pool/toy_1.0_all.deb", body)
        mirror.give("loose/fly.jpg", b"fly")
        (tmp_path / "photographs.toml").write_text(
            LIST.format(
                dead=f"{mirror.address}/gone", package=package, sha256=sha256(body),
                size=len(body), folder=f"{mirror.address}/loose", bee=sha256(b"bee"),
                fly=sha256(b"fly"),
            )
        )  # fmt: skip
        monkeypatch.setattr(sets, "files", lambda package: tmp_path)
        (row,) = photograph_sets()
        assert row.licence == "CC-BY-4.0 AND CC0-1.0"
        monkeypatch.setattr(datasets, "known", lambda: {row.name: row})
        place = fetch("toy-photographs")
    assert sorted(file.relative_to(place).as_posix() for file in place.rglob("*.*")) == [
        datasets.LIST, "loose/fly.jpg", "pack/usr/share/bee.jpg",
    ]  # fmt: skip
    assert (place / "pack/usr/share/bee.jpg").read_bytes() == b"bee"
    assert not datasets.verify("toy-photographs")
    (place / "loose/fly.jpg").unlink()
    assert row.state == datasets.INCOMPLETE


def test_every_image_that_is_left_out_has_a_reason():
    text = (resources.files("protocols.open_photographs") / "photographs.toml").read_text("utf-8")
    for source in tomllib.loads(text)["left_out"]:
        assert all(one["name"] and one["why"] for one in source["files"]), source["from"]
