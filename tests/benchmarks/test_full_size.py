"""Stand-ins have the official numbers, are read as other sets are, and never pass as official."""

import shutil
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.full_size import child, hpatches, madrid, phototour, place
from benchmarks.full_size.__main__ import Row, Step, growth, to_csv, to_markdown, with_growth
from harness.errors import ComputeError, SystemRefusedError
from protocols.hpatches.reader import OFFICIAL, STRIPS, open_set
from protocols.phototour import scenes
from protocols.phototour.reader import read_pairs, read_reference_images

SMALL = {"i_made-one": 9, "v_made-two": 12, "v_made-three": 7}
PARTS = {"test": ["i_made-one", "v_made-two"], "train": ["v_made-three"]}


@pytest.fixture
def small(monkeypatch):
    """HPatches' stand-in with three short sequences."""
    monkeypatch.setattr(hpatches, "lengths", lambda share=1.0: (SMALL, PARTS))


def contents(folder):
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }


def test_hpatches_has_the_official_numbers():
    length, parts = hpatches.lengths()
    assert len(length) == 116 and len(STRIPS) * sum(length.values()) == 2_510_720
    assert {len(parts["test"]), len(parts["train"])} == {40, 76}
    assert sorted(n for n in length.values()) == sorted(n for n, _ in OFFICIAL["lengths"].values())
    assert sum(name.startswith("i_") for name in length) == 57


def test_hpatches_has_no_official_sequence():
    assert not hpatches.lengths()[0].keys() & OFFICIAL["lengths"].keys()


@pytest.mark.parametrize("share", [1 / 64, 1 / 16, 1 / 8, 1 / 4, 1 / 2])
def test_a_share_of_hpatches_is_about_that_share(share):
    length, parts = hpatches.lengths(share)
    assert set(parts["test"]) | set(parts["train"]) == set(length)
    whole = sum(hpatches.lengths()[0].values())
    wanted = max(share, 4 / 116)
    assert sum(length.values()) / whole == pytest.approx(wanted, rel=0.2)
    assert length.items() <= hpatches.lengths()[0].items()


def test_hpatches_is_read_under_a_name_of_its_own(small, tmp_path):
    hpatches.make(tmp_path / "hpatches")
    opened = open_set(tmp_path / "hpatches", "full")
    assert opened.dataset.name == "hpatches-built-stand-in"
    assert dict(opened.lengths) == SMALL and opened.dataset.blocks[0].read().shape == (9, 65, 65)
    (tmp_path / "hpatches/dataset.json").unlink()
    assert open_set(tmp_path / "hpatches", "a").dataset.name == "hpatches-hpatches"


def test_strips_of_hpatches_show_the_same_points(small, tmp_path):
    hpatches.make(tmp_path / "set")
    opened = open_set(tmp_path / "set", "full")
    patches = [block.read().reshape(block.size, -1) for block in opened.dataset.blocks[:16]]
    ref = patches[0].astype(float)
    for other in (patches[STRIPS.index(strip)] for strip in ("e1", "t5")):
        apart = np.corrcoef(ref, other)[: len(ref), len(ref) :]
        assert np.diag(apart).mean() > apart.mean() + 0.2


def test_the_same_seed_gives_the_same_bytes(small, tmp_path):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        hpatches.make(tmp_path / name, seed=seed)
    first, again, other = (contents(tmp_path / name) for name in "abc")
    assert first == again
    assert first["patches/v_made-two/e1.png"] != other["patches/v_made-two/e1.png"]


def test_a_stopped_run_continues_at_the_next_sequence(small, tmp_path, monkeypatch):
    hpatches.make(tmp_path / "whole")
    write, written = hpatches._write_sequence, []

    def stop(folder, name, n, seed):
        if len(written) == 2:
            raise KeyboardInterrupt
        written.append(name)
        write(folder, name, n, seed)

    monkeypatch.setattr(hpatches, "_write_sequence", stop)
    with pytest.raises(KeyboardInterrupt):
        hpatches.make(tmp_path / "set")
    assert not (tmp_path / "set").exists()
    monkeypatch.setattr(hpatches, "_write_sequence", lambda *a: written.append(a[1]) or write(*a))
    hpatches.make(tmp_path / "set")
    assert written == list(SMALL)
    assert contents(tmp_path / "set") == contents(tmp_path / "whole")
    assert {path.name for path in tmp_path.iterdir()} == {"set", "whole"}


def test_without_room_on_the_disk_nothing_is_written(small, tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=place.SPARE + 10))
    with pytest.raises(SystemRefusedError, match=r"set needs .* give a smaller share"):
        hpatches.make(tmp_path / "set")
    assert not list(tmp_path.iterdir())


def test_the_room_that_is_asked_for_is_enough(small, tmp_path):
    hpatches.make(tmp_path / "set")
    strips = sum(file.stat().st_size for file in (tmp_path / "set/patches").rglob("*.png"))
    assert strips < hpatches.bytes_needed(1.0) < 2 * strips
    phototour.make(tmp_path / "scenes", share=1e-9)
    assert place.used(tmp_path / "scenes") < phototour.bytes_needed(1e-9)
    madrid.make(tmp_path / "madrid", share=1e-9)
    assert place.used(tmp_path / "madrid") < madrid.bytes_needed(1e-9)


def test_phototour_has_the_official_numbers():
    assert phototour.patches_of(1) == scenes.OFFICIAL["liberty"] == 450_092
    assert -(-phototour.patches_of(1) // 256) == scenes.SIZES["liberty"]["tiles"]


def test_a_scene_is_read_under_a_name_of_its_own_with_right_pairs(tmp_path):
    phototour.make(tmp_path / "set", share=0.005)
    opened = scenes.open_scenes(tmp_path / "set", None)
    (scene,) = opened.scenes
    assert opened.name == "phototour-stand-in" and scene.name == "stand-in"
    assert scenes.open_scenes(tmp_path / "set/stand-in", None).name == "phototour-stand-in"
    assert len(scene) == phototour.patches_of(0.005)
    pairs = read_pairs(scene)  # which checks the points of each pair
    assert pairs.match.mean() == 0.5 and (pairs.a != pairs.b).all()
    image = read_reference_images(scene)
    assert (image[pairs.a] == image[pairs.b]).all()
    assert (np.bincount(scene.point)[:-1] >= 2).all()


def test_madrid_has_the_official_number_of_images():
    assert madrid.images_of(1) == 1344 and madrid.PAIRS == 902_496
    for share in (1 / 4, 1 / 1000):
        n = madrid.images_of(share)
        assert (n - 1) * (n - 2) / 2 < share * madrid.PAIRS <= n * (n - 1) / 2


def test_vectors_of_an_image_do_not_depend_on_the_share(tmp_path):
    madrid.make(tmp_path / "two", share=1e-9, keypoints=20)
    madrid.make(tmp_path / "three", share=3 / madrid.PAIRS, keypoints=20)
    two, three = (list(madrid.read(tmp_path / name)) for name in ("two", "three"))
    assert len(two) == 2 and len(three) == 3 and two[0].shape == (20, madrid.DIM)
    np.testing.assert_array_equal(two, three[:2])


def row(name, share, work, cpu_s):
    return Row(Step(name, (), work, "patches"), share, child.Cost(2 * cpu_s, cpu_s, 100, ""), 1.0)


@pytest.mark.parametrize(("exponent", "more"), [(0, 1), (1, 2), (2, 4)])
def test_more_is_the_cost_of_twice_the_work(exponent, more):
    before, after = (row("a", "", n, float(n) ** exponent) for n in (10, 30))
    assert growth(before, after) == pytest.approx(more)
    assert growth(None, after) is None and growth(after, after) is None


def test_rows_are_compared_with_the_same_step_at_the_share_before():
    rows = [row(name, share, n, n) for share, n in (("1/8", 8), ("1/16", 4)) for name in "ab"]
    found = with_growth(rows)
    assert [(r.step.name, r.share, more) for r, more in found] == [
        ("a", "1/16", None), ("a", "1/8", 2.0), ("b", "1/16", None), ("b", "1/8", 2.0),
    ]  # fmt: skip
    assert to_markdown(rows).splitlines()[3].endswith("| 8 patches | 16.0 | 8.0 | 100 | 1 | 2.0 |")
    assert to_csv(rows).splitlines()[2].startswith("a,1/8,8,patches,16.0,8.0,100.0,1.0,2.00,")


BUSY = "import time; x = bytes(200 << 20)\nwhile time.process_time() < 0.3: pass\nprint('done')"


def test_the_cost_of_a_command_is_that_of_its_process():
    cost = child.run([sys.executable, "-c", BUSY], {})
    assert cost.printed == "done\n" and cost.peak_mib > 200
    assert 0.3 <= cost.cpu_s < 5


def test_a_command_that_fails_says_why():
    with pytest.raises(ComputeError, match="no such thing"):
        child.run([sys.executable, "-c", "raise SystemExit('no such thing')"], {})
