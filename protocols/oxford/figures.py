"""Figures of Oxford: a curve for each model over the pairs of images, a panel for each sequence."""

from collections.abc import Iterator

from harness.records.leaderboard import Board
from harness.report.figures import Axis, Figure, Line, Lines, axis, headlines

DISTORTIONS = {  # of the eight sequences; Mikolajczyk et al., IJCV 2005, figure 9
    "bark": "zoom and rotation",
    "bikes": "blur",
    "boat": "zoom and rotation",
    "graf": "viewpoint",
    "leuven": "light",
    "trees": "blur",
    "ubc": "JPEG compression",
    "wall": "viewpoint",
}
ENDINGS = {"ap": "Average precision", "correct": "Right matches"}


def figures(board: Board) -> Iterator[Figure]:
    """Headlines; then average precision and right matches by distortion and pair."""
    yield from headlines(board)
    sequences = sorted(
        {scene for row in board.rows for record in row for scene in record.scenes},
        key=lambda name: (DISTORTIONS.get(name, ""), name),
    )
    for ending, title in ENDINGS.items():
        panels = tuple(_panel(board, sequence, ending, title) for sequence in sequences)
        note = "Each panel is a sequence; the pairs go from the least to the strongest change."
        yield Figure(f"pairs-{ending}", f"{title} by distortion and pair", note, panels)


def _panel(board: Board, sequence: str, ending: str, title: str) -> Lines:
    found: dict[int, dict[str, float]] = {}
    for number, row in enumerate(board.rows):
        values = row[0].scenes.get(sequence, {})
        found[number] = {
            name.removesuffix(f"/{ending}"): value
            for name, value in values.items()
            if name.endswith(f"/{ending}")
        }
    pairs = sorted({pair for own in found.values() for pair in own})
    lines = tuple(
        Line(number, tuple((x, own[pair]) for x, pair in enumerate(pairs) if pair in own))
        for number, own in found.items()
        if own
    )
    distortion = DISTORTIONS.get(sequence)
    head = f"{sequence}: {distortion}" if distortion else sequence
    return Lines(
        head, Axis("pair of images", ticks=tuple(pairs)), axis(board, ending, title), lines
    )
