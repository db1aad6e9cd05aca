"""The zoo beside RootSIFT and TFeat: what a practitioner asks of a descriptor, from the records.

    python benchmarks/zoo_tables.py --results results

writes RESULTS/zoo.md: the same records, the same bytes. Nothing is measured here.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from harness import atomic, results
from protocols.oxford.reader import SIX
from zoo import card as cards
from zoo.shipped import FOLDER

ROOTSIFT, TFEAT = BESIDE = ("rootsift", "tfeat.liberty")  # used today; a published network
HPATCHES = ("hpatches-mini", "hpatches-built-images", "hpatches-built-oxford")
OXFORD = {
    "our Harris-Affine regions, 3,000 an image": ("oxford", "3000"),
    "VLFeat's regions, all": ("oxford-six+vlfeat_frames", "all"),
}
ETH = ("eth-sfm", "Fountain-P11+Herzjesu-P8@sift")
COUNTED = {"points": "{:,.0f}", "observations": "{:,.0f}", "reprojection_error_px": "{:.3f}"}

Board = Mapping[str, Mapping[str, float]]  # scores of a model, by its name


def board(records: Sequence[results.Record], protocol: str, data: str, split: str = "") -> Board:
    """Scores by model, of whole records; of one split where a data set has several.

    Of what the zoo ships only those of the very weights.
    """
    shipped = {file.stem: cards.read(file).weights for file in FOLDER.glob("*.json")}
    return {
        one.model.name: one.scores
        for one in records
        if (one.protocol.name, one.data.name) == (protocol, data)
        and one.data.complete
        and split in ("", one.data.split)
        and one.model.weights == shipped.get(one.model.name, one.model.weights)
    }


def names(known: Board, by: str) -> list[str]:
    """What is beside the zoo, then what it ships, best first by a score."""
    zoo = [file.stem for file in FOLDER.glob("*.json") if file.stem in known]
    return [*(one for one in BESIDE if one in known), *sorted(zoo, key=lambda n: -known[n][by])]


def table(columns: Sequence[str], rows: Iterator[Sequence[str]]) -> Iterator[str]:
    """A table in Markdown, names on the left and numbers on the right."""
    yield f"| | {' | '.join(columns)} |"
    yield f"|---|{'---:|' * len(columns)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""


def cell(value: float, better: bool, form: str = "{:.1f}") -> str:
    """A number, in bold where it is better."""
    return f"**{form.format(value)}**" if better else form.format(value)


def hpatches(records: Sequence[results.Record]) -> Iterator[str]:
    """Matching on sets in HPatches' form."""
    found = {data: board(records, "hpatches/matching", data) for data in HPATCHES}

    def rows() -> Iterator[list[str]]:
        for name in names(found[HPATCHES[0]], "matching/map"):
            row = [name]
            for known in found.values():
                maps = {one: 100 * known[one]["matching/map"] for one in known}
                best = max(maps[one] for one in BESIDE if one in maps)
                row.append(cell(maps[name], maps[name] > best) if name in maps else "—")
            yield row

    yield "## Matching mAP on sets in HPatches' form\n"
    yield f"Bold: better than {' and '.join(BESIDE)}.\n"
    yield from table(HPATCHES, rows())


def oxford(title: str, known: Board) -> Iterator[str]:
    """Matching on Oxford, the mean over its six and each."""
    columns = {"map": "map", **{one: f"{one}/map" for one in SIX}}
    base = known[ROOTSIFT]

    def rows() -> Iterator[list[str]]:
        for name in names(known, "map"):
            own = known[name]
            cells = [cell(100 * own[key], own[key] > base[key]) for key in columns.values()]
            yield [name, f"{own['map'] / base['map']:.3f}", *cells]

    yield f"## Oxford, {title}\n"
    yield f"Bold: better than {ROOTSIFT}; ratio: of `map` to its.\n"
    yield from table(["ratio", *columns], rows())


def eth(known: Board) -> Iterator[str]:
    """What is reconstructed of two places, and how exactly."""
    places = ETH[1].partition("@")[0].split("+")
    base = known[ROOTSIFT]

    def rows() -> Iterator[list[str]]:
        for name in names(known, "total/observations"):
            row = [name]
            for key, form in (
                (f"{p}/{kind}", form) for p in places for kind, form in COUNTED.items()
            ):
                gain = known[name][key] - base[key]
                row.append(
                    cell(known[name][key], (-gain if key.endswith("px") else gain) > 0, form)
                )
            yield row

    yield "## Structure from motion, on the keypoints of COLMAP's SIFT\n"
    yield f"Bold: better than {ROOTSIFT}: more points and observations, a smaller error.\n"
    yield from table([f"{p.partition('-')[0]}: {kind}" for p in places for kind in COUNTED], rows())


def text(records: Sequence[results.Record]) -> str:
    """All tables."""
    lines = ["# The zoo's weights beside RootSIFT and TFeat\n"]
    lines += [
        "From the records of this folder, by `benchmarks/zoo_tables.py`.\n",
        *hpatches(records),
    ]
    for title, where in OXFORD.items():
        lines += oxford(title, board(records, "oxford", *where))
    lines += eth(board(records, "eth", *ETH))
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    """Read the records, write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", required=True, type=Path)
    folder = parser.parse_args().results
    atomic.write_text(folder / "zoo.md", text(results.load(folder)))


if __name__ == "__main__":
    main()
