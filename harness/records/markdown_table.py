"""Writes Markdown tables; all tables of the project are written here."""

from collections.abc import Iterable, Iterator, Sequence

RULES = {"l": "---", "r": "---:"}


def lines(
    columns: Sequence[str], rows: Iterable[Sequence[object]], align: str = "lr"
) -> Iterator[str]:
    """Yields the lines of a Markdown table, each as soon as its row is known.

    Columns and cells are Markdown: `harness.escape.markdown` makes it from names.

    Args:
        columns: titles of the columns.
        rows: rows of cells, one cell for each column.
        align: "l" or "r" for each column; the last letter also holds for all further columns.

    Raises:
        ValueError: if a row has more or fewer cells than there are columns.

    >>> print(*lines(["", "map"], [["sift", "51.2"], ["rootsift", "55.1"]]), sep="\\n")
    | | map |
    |---|---:|
    | sift | 51.2 |
    | rootsift | 55.1 |
    """
    yield _row(columns)
    rules = [RULES[letter] for letter in align.ljust(len(columns), align[-1])]
    yield f"|{'|'.join(rules)}|"
    for row in rows:
        if len(row) != len(columns):
            raise ValueError(f"a row has {len(row)} cells, the table {len(columns)} columns: {row}")
        yield _row(row)


def _row(cells: Iterable[object]) -> str:
    return "|" + "".join(f" {cell} |" if cell != "" else " |" for cell in cells)
