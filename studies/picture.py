"""Draw the picture of the README: matching mAP on Oxford with its intervals, from the records.

    python -m studies.picture --results results --out docs/oxford.svg

The same records give the same bytes. The colours are from Okabe and Ito's palette, which
colour-blind readers can distinguish.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from harness.files import atomic
from harness.records import record as results
from harness.records.record import Record
from studies.ship import shipped_cards
from studies.zoo_tables import BESIDE, OXFORD, Board, board

BOARD = ("oxford", *OXFORD["our Harris-Affine regions, 3,000 an image"])
LEFT, WIDTH, RIGHT = 130, 480, 130  # pixels: names, bars, values
ROW, BAR, TOP, BOTTOM = 22, 14, 62, 34
FONT = "font-family='Helvetica, Arial, sans-serif' font-size='13'"
KINDS = {  # kind of a model: its name in the legend, its colour
    "here": ("trained here", "#0072B2"),
    "published": ("published weights", "#E69F00"),
    "handcrafted": ("handcrafted", "#999999"),
}
TITLE = "Matching mAP on Oxford, percent, with 95 % intervals over its six sequences"
HANDCRAFTED = ("rootsift", "brief")


def models(known: Board) -> list[str]:
    """Names of the models in the picture, best first."""
    shown = {*BESIDE, *(file.stem for file in shipped_cards())}
    return sorted(shown & known.keys(), key=lambda name: (-known[name].scores["map"], name))


def draw(records: Sequence[Record]) -> str:
    """The picture as SVG: a bar for each model, best first."""
    shipped = {file.stem for file in shipped_cards()}
    known = board(records, *BOARD)
    shown = models(known)
    height = TOP + ROW * len(shown) + BOTTOM
    lines = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {LEFT + WIDTH + RIGHT} {height}'"
        f" width='{LEFT + WIDTH + RIGHT}' height='{height}' {FONT}>",
        "<rect width='100%' height='100%' fill='white'/>",
        f"<text x='12' y='22' font-size='15' font-weight='bold'>{TITLE}</text>",
        *_legend(),
        *_grid(len(shown)),
    ]
    for number, name in enumerate(shown):
        lines += _bar(known[name], _kind(name, shipped), TOP + ROW * number)
    return "\n".join([*lines, "</svg>", ""])


def _kind(name: str, shipped: set[str]) -> str:
    if name in HANDCRAFTED:
        return "handcrafted"
    return "here" if name in shipped else "published"


def _legend() -> Iterator[str]:
    for number, (name, colour) in enumerate(KINDS.values()):
        x = LEFT + 160 * number
        yield f"<rect x='{x}' y='34' width='14' height='14' fill='{colour}'/>"
        yield f"<text x='{x + 20}' y='46'>{escape(name)}</text>"


def _grid(rows: int) -> Iterator[str]:
    bottom = TOP + ROW * rows
    for percent in range(0, 101, 20):
        x = _x(percent / 100)
        yield f"<line x1='{x}' y1='{TOP - 4}' x2='{x}' y2='{bottom}' stroke='#dddddd'/>"
        yield f"<text x='{x}' y='{bottom + 18}' text-anchor='middle'>{percent}</text>"


def _bar(record: Record, kind: str, y: int) -> Iterator[str]:
    value, middle = record.scores["map"], y + BAR / 2
    label = f"{100 * value:.1f}"
    yield (
        f"<text x='{LEFT - 8}' y='{y + 12}' text-anchor='end'>{escape(record.model.name)}</text>"
        f"<rect x='{LEFT}' y='{y}' width='{_x(value) - LEFT:.1f}' height='{BAR}'"
        f" fill='{KINDS[kind][1]}'/>"
    )
    if "map" in record.intervals:
        low, high = record.intervals["map"]
        label += f" [{100 * low:.1f}, {100 * high:.1f}]"
        yield (
            f"<path d='M{_x(low)} {middle}H{_x(high)}M{_x(low)} {middle - 4}v8"
            f"M{_x(high)} {middle - 4}v8' stroke='black' fill='none'/>"
        )
    yield f"<text x='{LEFT + WIDTH + 8}' y='{y + 12}'>{label}</text>"


def _x(fraction: float) -> float:
    return round(LEFT + WIDTH * fraction, 1)


def main() -> None:
    """Read the records, and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", required=True, type=Path)
    parser.add_argument("--out", required=True, type=Path)
    given = parser.parse_args()
    atomic.write_text(given.out, draw(results.load(given.results)))


if __name__ == "__main__":
    main()
