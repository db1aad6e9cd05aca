"""Published numbers by training scene and test scene, as papers print them, in Markdown."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from harness.escape import markdown
from harness.records import markdown_table, published_table
from harness.records.leaderboard import Board
from harness.records.published import PublishedNumber
from harness.records.published_table import MISSING
from protocols.phototour.scenes import MEAN

MEAN_OF_SIX = "mean of six"  # before a metric: the mean of a method's six cells

Key = tuple[str, str]  # training data and score of a number


def lines(
    board: Board,
    protocol: str,
    options: str,
    metric: str,
    scenes: Sequence[str],
    pairs: Sequence[tuple[str, str]],
) -> Iterator[str]:
    """Lines of a section: methods trained on one scene each, then the others; none without numbers.

    Args:
        board: its published numbers, in the order of their files.
        protocol: that measures the same task.
        options: of the protocol.
        metric: the last part of the scores.
        scenes: that are tested.
        pairs: train and test scene of each column of the first table.
    """
    rows: dict[tuple[str, ...], dict[Key, PublishedNumber]] = defaultdict(dict)
    for one in board.published:
        if (one.protocol, one.options) == (protocol, options):
            rows[one.source, one.method, one.dim][one.trained_on, one.score] = one
    six = [(f"{board.family}/{train}", f"{test}/{metric}") for train, test in pairs]
    families, others = [], []
    for (_, method, dim), found in rows.items():
        row = [markdown(method), markdown(dim or MISSING)]
        if any(key in found for key in six):
            families.append([*row, *_cells(board, found, [*six, ("", f"{MEAN_OF_SIX} {metric}")])])
        for trained_on in dict.fromkeys(trained_on for trained_on, _ in found):
            keys = [(trained_on, f"{test}/{metric}") for test in (*scenes, MEAN)]
            if any(key in found for key in keys) and not {*keys} & {*six}:
                learned = markdown(trained_on or MISSING)
                others.append([*row, learned, *_cells(board, found, keys)])
    if families or others:
        yield from ("", f"### {published_table.TITLE}", "", published_table.LEGEND)
    if families:
        heads = [*(markdown(f"{train} → {test}") for train, test in pairs), MEAN]
        yield from ("", *_table(["train → test", "dim"], heads, families))
    if others:
        heads = [*map(markdown, scenes), MEAN]
        yield from ("", *_table(["test", "dim", "trained on"], heads, others))


def _cells(board: Board, found: Mapping[Key, PublishedNumber], keys: Sequence[Key]) -> list[str]:
    """The numbers of one row, and the facts behind them."""
    numbers = [found.get(key) for key in keys]
    cells = [published_table.cell(one, board.measured, board.quantities) for one in numbers]
    there = [one for one in numbers if one is not None]
    return [*cells, *published_table.facts(there, board.measured)]


def _table(
    facts: Sequence[str], heads: Sequence[str], rows: Sequence[Sequence[str]]
) -> Iterator[str]:
    align = f"{'l' * len(facts)}{'r' * len(heads)}l"
    yield from markdown_table.lines([*facts, *heads, *published_table.FACTS], rows, align)
