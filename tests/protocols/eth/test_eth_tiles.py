"""Units of matching: the same matches as all at once, kept until the scene is scored."""

import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import harness
from harness.distances import HAMMING, L2
from harness.files import home
from harness.unfinished import kept_until_end
from protocols.eth import tiles
from protocols.eth.matching import axes, match
from protocols.eth.pair_lists import exhaustive, sequential

IMAGES = 7
POINTS = np.random.default_rng(0).normal(size=(300, 32))


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch, tmp_path):
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(tiles, "SIDE", 2)


@pytest.fixture
def vectors():
    """Vectors of images that see the same points; the fourth image has none."""
    rng = np.random.default_rng(1)
    found = [
        (POINTS + rng.normal(scale=0.3, size=POINTS.shape))[rng.permutation(300)[:200]]
        for _ in range(IMAGES)
    ]
    found[3] = found[3][:0]
    return [rows.astype(np.float32) for rows in found]


def entries():
    return sorted(home.cache("matches").rglob("*.entry"))


@pytest.mark.parametrize("wanted", [exhaustive(IMAGES), sequential(IMAGES, 2), [(0, 6), (4, 5)]])
@pytest.mark.parametrize("distance", [L2, HAMMING])
def test_matches_and_their_order_are_those_of_all_pairs_at_once(vectors, wanted, distance):
    if distance is HAMMING:
        vectors = [np.packbits(rows > 0, axis=1) for rows in vectors]
    by = axes(vectors, distance)
    found = tiles.matched("place", vectors, wanted, distance, 0.9)
    assert list(found) == wanted
    for a, b in wanted:
        np.testing.assert_array_equal(found[a, b], match(vectors[a], vectors[b], by, 0.9))
        assert found[a, b].dtype == np.uint32
    assert sum(map(len, found.values())) > 0


def test_tiles_hold_each_pair_once():
    found = tiles.by_tile(exhaustive(IMAGES))
    assert sorted(pair for pairs in found.values() for pair in pairs) == exhaustive(IMAGES)
    assert list(found) == tiles.all_tiles(IMAGES)[:-1]  # the last image alone has no pair
    assert all(len({*sum(pairs, ())}) <= 4 for pairs in found.values())


def test_matches_are_kept_until_the_result_is_and_then_removed(vectors):
    with kept_until_end():
        tiles.matched("place", vectors, exhaustive(IMAGES), L2, 0.8)
        assert len(entries()) == 9
    assert not [*home.cache("matches").iterdir()]


def interrupted(vectors, **options):
    """The matches of a run that kept its units and then failed."""
    given = {"wanted": exhaustive(IMAGES), "distance": L2, "ratio": 0.8} | options
    with pytest.raises(KeyboardInterrupt), kept_until_end():
        found = tiles.matched("place", vectors, **given)
        raise KeyboardInterrupt
    return found


def test_kept_matches_are_of_these_vectors_this_distance_and_this_ratio(vectors):
    interrupted(vectors)
    times = {file: file.stat().st_mtime_ns for file in entries()}
    interrupted(vectors)
    assert {file: file.stat().st_mtime_ns for file in entries()} == times
    interrupted(vectors, ratio=0.7)
    assert len(entries()) == 18
    others = [*vectors[:-1], vectors[-1] + np.float32(1e-6)]
    interrupted(others)
    assert len(entries()) == 18 + 3  # three tiles have pairs of the last image
    interrupted(vectors, wanted=[pair for pair in exhaustive(IMAGES) if pair != (0, 2)])
    assert len(entries()) == 21 + 1
    bits = [rows.view(np.uint8) for rows in vectors]
    interrupted(bits, distance=HAMMING)
    assert len(entries()) == 22 + 9


def test_a_damaged_unit_is_told_dropped_and_matched_again(vectors, caplog):
    before = interrupted(vectors)
    damaged = entries()[4]
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:-20] + b"x" + whole[-19:])
    after = interrupted(vectors)
    assert f"{damaged} is damaged" in caplog.text
    assert damaged.read_bytes() == whole
    for pair, rows in before.items():
        np.testing.assert_array_equal(after[pair], rows)


def test_a_unit_is_the_same_whoever_matches_it(vectors, monkeypatch):
    for pairs in tiles.by_tile(exhaustive(IMAGES)).values():
        tiles.match_tile(vectors.__getitem__, pairs, L2, 0.8)
    assert len(entries()) == 9
    monkeypatch.setattr(tiles, "match", None)  # nothing is left to match
    tiles.matched("place", vectors, exhaustive(IMAGES), L2, 0.8)
    assert not entries()


RUN = """
    import os, signal, sys
    import harness
    from harness import parallel
    from protocols.eth import tiles

    parallel.CORES, tiles.SIDE = 1, 1
    match, calls, stop = tiles.match, [], int(sys.argv[2])

    def counted(*given):
        calls.append(1)
        if len(calls) == stop:
            os.kill(os.getpid(), getattr(signal, sys.argv[3]))
        return match(*given)

    tiles.match = counted
    (record,) = harness.evaluate("brief", "eth", results=sys.argv[1])
    print(len(calls))
"""


@pytest.mark.parametrize("sent", ["SIGKILL", "SIGINT"])
def test_an_interrupted_run_goes_on_and_gives_the_same_record(tmp_path, sent):
    def run(results, stop):
        given = [str(tmp_path / results), str(stop), sent]
        command = [sys.executable, "-c", textwrap.dedent(RUN), *given]
        return subprocess.run(command, capture_output=True, text=True)

    assert run("stopped", 7).returncode == -getattr(signal, sent)
    assert len(entries()) == 6
    assert run("stopped", 0).stdout == "4\n"
    assert not entries()
    harness.evaluate("brief", "eth", results=tmp_path / "whole", cache=False)
    stopped, whole = (
        next((tmp_path / folder).rglob("brief.json")).read_bytes()
        for folder in ("stopped", "whole")
    )
    assert stopped == whole
