"""The figure of the HPatches paper: a bar for each task, with markers by difficulty and by kind.

V. Balntas, K. Lenc, A. Vedaldi, K. Mikolajczyk, HPatches, CVPR 2017, figure 5.
"""

from collections.abc import Iterator

from harness.records.leaderboard import Board
from harness.report.figures import Figure, Marker, bars

DIFFICULTIES = ("easy", "hard", "tough")
KINDS = {  # task -> the name of a score of a difficulty and a kind, and the kinds
    "verification": ("verification/{difficulty}/{kind}/ap", ("intra", "inter")),
    "matching": ("matching/{difficulty}/{kind}/map", ("illum", "view")),
    "retrieval": ("retrieval/{difficulty}/map@{kind}", ("100", "20000")),
}
SHOWN = {"100": "100 distractors", "20000": "20,000 distractors"}


def figures(board: Board) -> Iterator[Figure]:
    """The three tasks side by side."""
    panels = []
    for task, (score, kinds) in KINDS.items():
        markers = [
            (
                Marker(f"{difficulty}, {SHOWN.get(kind, kind)}", colour, shape),
                score.format(difficulty=difficulty, kind=kind),
            )
            for shape, kind in enumerate(kinds)
            for colour, difficulty in enumerate(DIFFICULTIES)
        ]
        panels.append(bars(board, f"{task}/map", markers, task))
    note = (
        "Bars are the mean average precision of each task, lines on bars 95 % intervals over"
        " sequences. Colours of markers are difficulties; shapes are kinds: patches of one or of"
        " several sequences, illumination or viewpoint, few or many distractors."
    )
    yield Figure("tasks", "Tasks by difficulty and kind", note, tuple(filter(None, panels)))
