"""Pieces of an unfinished evaluation stay until its result is kept."""

import pytest

from harness.unfinished import done_with, kept_until_end


def test_pieces_are_removed_at_once_outside_of_a_block():
    removed = []
    done_with(lambda: removed.append(1))
    assert removed == [1]


def test_pieces_are_removed_at_the_end_of_the_outer_block():
    removed = []
    with kept_until_end():
        with kept_until_end():
            done_with(lambda: removed.append(1))
            assert not removed
        assert not removed
    assert removed == [1]


def test_pieces_of_a_block_that_fails_or_clears_them_stay():
    removed = []
    with pytest.raises(KeyboardInterrupt), kept_until_end():
        done_with(lambda: removed.append(1))
        raise KeyboardInterrupt
    with kept_until_end() as pieces:
        done_with(lambda: removed.append(1))
        pieces.clear()
    assert not removed
    done_with(lambda: removed.append(2))  # the blocks have ended
    assert removed == [2]
