"""Pieces of an unfinished evaluation stay until its result is kept."""

import pytest

from harness import cache
from harness.unfinished import done_with, kept_until_end

PIECE = ("tried", {"piece": 1})


@pytest.fixture(autouse=True)
def piece(monkeypatch, tmp_path):
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path))
    cache.kept("tried").write(PIECE[1], b"contents")


def is_there():
    return cache.kept("tried").read(PIECE[1]) == b"contents"


def test_pieces_are_removed_at_once_outside_of_a_block(tmp_path):
    done_with([PIECE])
    assert not is_there()
    assert not [*(tmp_path / "tried").iterdir()]  # no empty folder stays
    done_with([PIECE])  # it may be missing


def test_pieces_are_removed_at_the_end_of_the_outer_block():
    with kept_until_end():
        with kept_until_end():
            done_with([PIECE])
            assert is_there()
        assert is_there()
    assert not is_there()


def test_pieces_of_a_block_that_fails_or_clears_them_stay():
    with pytest.raises(KeyboardInterrupt), kept_until_end():
        done_with([PIECE])
        raise KeyboardInterrupt
    with kept_until_end() as pieces:
        done_with([PIECE])
        assert pieces == [PIECE]
        pieces.clear()
    assert is_there()
    done_with([PIECE])  # the blocks have ended
    assert not is_there()
