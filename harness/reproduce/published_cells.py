"""The published numbers that belong to the cells of an item."""

from collections.abc import Sequence
from dataclasses import fields

from harness.errors import InputError
from harness.records.published import PublishedNumber
from harness.reproduce.items import Cell, Item

COLUMNS = frozenset(field.name for field in fields(PublishedNumber))


def of_cell(cell: Cell, numbers: Sequence[PublishedNumber]) -> dict[str, PublishedNumber]:
    """The published number of a cell in each source; sources without one are left out.

    The cell says which columns the number has. Keys that are no columns fill in braces: "{loss}".
    A model that learned nothing has no training data, whatever the cell says.

    Args:
        cell: the cell.
        numbers: those of the item's sources.

    Raises:
        InputError: if a source has several numbers of the cell.
    """
    known = cell.published
    if "method" not in known:
        return {}
    wanted = {key: text.format(**known) for key, text in known.items() if key in COLUMNS}
    if cell.model:
        wanted["trained_on"] = ""
    found = _matching(wanted, numbers)
    if not found and "trained_on" in wanted:  # sources do not always say it
        found = _matching({**wanted, "trained_on": ""}, numbers)
    return found


def deviations(cell: Cell, numbers: Sequence[PublishedNumber]) -> dict[str, PublishedNumber]:
    """The published standard deviation over seeds of a cell, in each source that prints it."""
    if "deviation" not in cell.published:
        return {}
    return of_cell(_of(cell, score=cell.published["deviation"]), numbers)


def p_values(
    cell: Cell, better: str, worse: str, numbers: Sequence[PublishedNumber]
) -> dict[str, PublishedNumber]:
    """The published p-value that one method is better than another, in each source that has it."""
    return of_cell(_of(cell, method=f"{better} over {worse}", score="p value"), numbers)


def _of(cell: Cell, **columns: str) -> Cell:
    """A cell whose published numbers have other columns."""
    return cell.model_copy(update={"published": {**cell.published, **columns}, "model": ""})


def _matching(
    wanted: dict[str, str], numbers: Sequence[PublishedNumber]
) -> dict[str, PublishedNumber]:
    """The number with these columns in each source."""
    found: dict[str, PublishedNumber] = {}
    for one in numbers:
        if all(getattr(one, key) == text for key, text in wanted.items()):
            if one.source in found:
                raise InputError(
                    f"{one.source} has several numbers of {wanted}, {found[one.source].score} and"
                    f" {one.score}: name the score in the item"
                )
            found[one.source] = one
    return found


def unmeasured(
    rows: Sequence[Sequence[Cell]], numbers: Sequence[PublishedNumber]
) -> dict[str, list[Cell]]:
    """Rows of cells of the methods that the sources print and the item does not measure, by method.

    They are those of a row of the item, with another method, so that whole rows can be quoted. An
    item in which the columns are a part of the method's name has none.

    Args:
        rows: the cells of each row of the item.
        numbers: those of the item's sources.
    """
    named = [row for row in rows if all("method" in one.published for one in row)]
    if not named or any("{" in one.published["method"] for row in named for one in row):
        return {}
    own = {one.published["method"] for row in named for one in row}
    others = dict.fromkeys(one.method for one in numbers if one.method not in own)
    return {method: [_of(one, method=method) for one in named[0]] for method in others}


def of_item(item: Item, numbers: Sequence[PublishedNumber]) -> list[PublishedNumber]:
    """The published numbers of the item's sources."""
    return [one for one in numbers if one.source in item.sources]


def of_mean(
    item: Item, cell: Cell, numbers: Sequence[PublishedNumber]
) -> dict[str, PublishedNumber]:
    """The published mean over the columns of a row, in each source that prints it."""
    if item.mean is None or "method" not in cell.published:
        return {}
    method = cell.published["method"].format(**cell.published)
    where = cell.published.get("where")
    return {
        one.source: one
        for one in numbers
        if one.method == method and one.score in item.mean.scores and where in (None, one.where)
    }
