"""Figures of image sequences: accuracy over the pixels that are allowed, as in D2-Net's paper.

M. Dusmanu et al., D2-Net: a trainable CNN for joint description and detection, CVPR 2019.
"""

from collections.abc import Iterator, Sequence

from harness.records.leaderboard import Board, scores_of
from harness.report.figures import Axis, Bars, Figure, Line, Lines, Marker, axis, bars
from protocols.hpatches_sequences.protocol import ESTIMATED, MATCHED, PARTS

BARS = ("mma-3px", "correct-3px", "homography-3px", "auc-3px")
CURVES = {  # beginning of the scores' names -> title, and the pixels of the scores
    "mma": ("Mean matching accuracy", MATCHED),
    "homography": ("Homography accuracy", ESTIMATED),
}


def figures(board: Board) -> Iterator[Figure]:
    """Scores at 3 pixels by kind of change; then curves over the pixels that are allowed."""
    kinds = _kinds(board)
    found = (_bars(board, score, kinds) for score in BARS)
    note = (
        "At 3 pixels. Bars are means over all pairs of images, lines on bars 95 % intervals over"
        " sequences, and markers means over the sequences of one kind."
    )
    yield Figure("accuracy", "Accuracy by kind of change", note, tuple(filter(None, found)))
    note = "A match or a homography counts as right up to an error of so many pixels."
    for name, (title, pixels) in CURVES.items():
        groups = {"all sequences": "", **{kind: f"{kind}/" for kind in kinds}}
        panels = (_curves(board, g, f"{start}{name}", title, pixels) for g, start in groups.items())
        yield Figure(name, f"{title} by threshold", note, tuple(filter(None, panels)))


def _kinds(board: Board) -> Sequence[str]:
    """The kinds of change of a board's sequences; none if all sequences are of one kind."""
    known = {name.partition("/")[0] for row in board.rows for name in scores_of(row)}
    found = [kind for kind in PARTS if kind in known]
    return found if len(found) > 1 else []


def _bars(board: Board, score: str, kinds: Sequence[str]) -> Bars | None:
    markers = [(Marker(kind, n, n), f"{kind}/{score}") for n, kind in enumerate(kinds)]
    return bars(board, score, markers)


def _curves(
    board: Board, group: str, score: str, title: str, pixels: Sequence[int]
) -> Lines | None:
    lines = []
    for number, row in enumerate(board.rows):
        own = scores_of(row)
        known = ((float(t), own.get(f"{score}-{t}px")) for t in pixels)
        points = tuple((t, value) for t, value in known if value is not None)
        if points:
            lines.append(Line(number, points))
    y = axis(board, score, title)
    return Lines(group, Axis("pixels"), y, tuple(lines)) if lines else None
