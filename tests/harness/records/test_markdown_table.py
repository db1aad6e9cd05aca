"""Markdown tables: one writer, whatever the cells."""

import pytest

from harness.records import markdown_table


def test_the_last_letter_of_align_stands_for_all_further_columns():
    assert list(markdown_table.lines("abcd", [], "lrl"))[1] == "|---|---:|---|---|"
    assert list(markdown_table.lines("abcd", []))[1] == "|---|---:|---:|---:|"


def test_a_row_is_written_as_soon_as_it_comes():
    drawn = []

    def rows():
        for number in range(2):
            drawn.append(number)
            yield "a", number

    lines = markdown_table.lines(["", "n"], rows())
    assert [next(lines) for _ in range(3)] == ["| | n |", "|---|---:|", "| a | 0 |"]
    assert drawn == [0]


@pytest.mark.parametrize("row", [["a"], ["a", "1", "2"]])
def test_a_row_of_other_length_is_refused(row):
    with pytest.raises(ValueError, match=rf"a row has {len(row)} cells, the table 2 columns"):
        list(markdown_table.lines(["", "n"], [row]))
