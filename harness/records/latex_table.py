"""Writes LaTeX tables for the package `booktabs`; all LaTeX tables are written here."""

from collections.abc import Iterable, Iterator, Sequence


def lines(
    columns: Sequence[str], groups: Iterable[Iterable[Sequence[str]]], align: str = "lr"
) -> Iterator[str]:
    r"""Yields the lines of a `tabular`; a rule stands between groups of rows.

    Columns and cells are LaTeX: `harness.escape.latex` makes it from names.

    Args:
        columns: titles of the columns.
        groups: of rows of cells, one cell for each column.
        align: "l" or "r" for each column; the last letter also holds for all further columns.

    >>> print(*lines(["", "map"], [[["sift", "51.2"]], [["rootsift", "55.1"]]]), sep="\n")
    \begin{tabular}{@{}lr@{}}
    \toprule
     & map \\
    \midrule
    sift & 51.2 \\
    \midrule
    rootsift & 55.1 \\
    \bottomrule
    \end{tabular}
    """
    letters = align.ljust(len(columns), align[-1])
    yield rf"\begin{{tabular}}{{@{{}}{letters}@{{}}}}"
    yield r"\toprule"
    yield _row(columns)
    for rows in groups:
        yield r"\midrule"
        yield from map(_row, rows)
    yield r"\bottomrule"
    yield r"\end{tabular}"


def _row(cells: Sequence[str]) -> str:
    return rf"{' & '.join(cells)} \\"
