"""Write tables of the zoo's weights, RootSIFT and published weights, from the records.

    python -m studies.zoo_tables --results results

writes RESULTS/studies/zoo.md and prints the table of docs/models.md. The same records give the same
bytes; the script measures nothing.
"""

import argparse
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from harness.differences import interval_of_difference
from harness.escape import markdown
from harness.files import atomic
from harness.records import markdown_table
from harness.records import record as results
from harness.records.scenes import scene_scores
from protocols.eth.matching import RATIO
from protocols.oxford.reader import SIX
from studies.ship import shipped_cards
from zoo import card as cards

ROOTSIFT = "rootsift"
BARS = (ROOTSIFT, "tfeat.liberty", "tfeat.notredame", "tfeat.yosemite")  # in use today
BESIDE = (*BARS, "hardtfeat", "brief")
HPATCHES = ("hpatches-mini", "hpatches-built-images", "hpatches-built-oxford")
OXFORD = {
    "our Harris-Affine regions, 3,000 an image": ("oxford", "3000"),
    "VLFeat's regions, all": ("oxford-six", "all", "frames=vlfeat_frames"),
}
ETH = ("eth-sfm", "Fountain-P11+Herzjesu-P8@sift")
SHORT = {  # columns of the table in docs/models.md
    "`hpatches-mini`": ("hpatches/matching", "hpatches-mini"),
    "`hpatches-built-oxford`": ("hpatches/matching", "hpatches-built-oxford"),
    "`oxford`, our regions": ("oxford", "oxford", "3000"),
    "`oxford`, VLFeat's regions": ("oxford", "oxford-six", "all", "frames=vlfeat_frames"),
}
DEFAULT = "adasample"
OPEN = "`*-open`"  # weights that were trained on photographs for products
WHOLE = {
    **{name: ("hpatches/matching", name) for name in HPATCHES},
    "Oxford, our regions": ("oxford", *OXFORD["our Harris-Affine regions, 3,000 an image"]),
    "Oxford, VLFeat's": ("oxford", *OXFORD["VLFeat's regions, all"]),
}
COUNTED = {"points": "{:,.0f}", "observations": "{:,.0f}", "reprojection_error_px": "{:.3f}"}

OF_ETH = {  # column of the table: score, form
    f"{place.partition('-')[0]}: {kind}": (f"{place}/{kind}", form)
    for place in ETH[1].partition("@")[0].split("+")
    for kind, form in COUNTED.items()
}

Board = Mapping[str, results.Record]  # by the model's name


def board(
    records: Sequence[results.Record], protocol: str, data: str, split: str = "", options: str = ""
) -> Board:
    """Complete records of a protocol with one set of options on a data set, by model.

    Records of a shipped model count only if they are of the shipped weights. If a data set has
    several splits, give one of them.
    """
    shipped = {file.stem: cards.read(file).weights for file in shipped_cards()}
    return {
        record.model.name: record
        for record in records
        if (record.protocol.name, record.data.name) == (protocol, data)
        and record.protocol.options_text == options
        and record.data.complete
        and split in ("", record.data.split)
        and record.model.weights == shipped.get(record.model.name, record.model.weights)
    }


def names(known: Board, by: str) -> list[str]:
    """Names of the other models, then names of the zoo's models, best first by a score."""
    zoo = [file.stem for file in shipped_cards() if file.stem in known]
    return [
        *(name for name in BESIDE if name in known),
        *sorted(zoo, key=lambda n: -known[n].scores[by]),
    ]


def table(columns: Sequence[str], rows: Iterator[Sequence[str]]) -> Iterator[str]:
    """Lines of a table of models, with an empty line below it."""
    yield from markdown_table.lines(["", *columns], rows)
    yield ""


def cell(value: float, better: bool, form: str = "{:.1f}") -> str:
    """A number, in bold if it is better."""
    return f"**{form.format(value)}**" if better else form.format(value)


def hpatches(records: Sequence[results.Record]) -> Iterator[str]:
    """Section on matching on sets in HPatches' form."""
    boards = {data: board(records, "hpatches/matching", data) for data in HPATCHES}

    def rows() -> Iterator[list[str]]:
        for name in names(boards[HPATCHES[0]], "matching/map"):
            row = [markdown(name), boards[HPATCHES[0]][name].model.size]
            for known in boards.values():
                maps = {model: 100 * r.scores["matching/map"] for model, r in known.items()}
                best = max(maps[bar] for bar in BARS if bar in maps)
                row.append(cell(maps[name], maps[name] > best) if name in maps else "—")
            yield row

    yield "## Matching mAP on sets in HPatches' form\n"
    yield f"Scores in bold are better than those of {', '.join(BARS)}."
    yield "hpatches-mini has 100 regions of each of churchill, graffiti and leuven. The other two"
    yield "sets have all regions: hpatches-built-images of churchill, graffiti and wormhole,"
    yield "hpatches-built-oxford of Oxford's eight sequences.\n"
    yield from table(["dim", *HPATCHES], rows())


def beside(records: Sequence[results.Record]) -> Iterator[str]:
    """Section on differences between the default and other models, on the same sequences."""
    boards = [board(records, *where) for where in WHOLE.values()]

    def rows() -> Iterator[list[str]]:
        for name in names(boards[0], "matching/map"):
            if name != DEFAULT:
                yield [markdown(name), *(difference(known, name) for known in boards)]

    yield f"## Matching mAP of {DEFAULT} minus that of others\n"
    yield "Differences are in points; brackets hold the 95 % interval over sequences, as `harness"
    yield "compare` has it. Bold: the interval is above 0; italic: below 0. The first two columns"
    yield "have three sequences each. The intervals do not include the variance between training"
    yield "seeds. Trainings differ in length and images, see below.\n"
    yield from table([*WHOLE], rows())


def difference(known: Board, other: str) -> str:
    """Cell with the mean difference over sequences between the default and another model."""
    if not {DEFAULT, other} <= known.keys():
        return "—"
    a, b = (scene_maps(known[name]) for name in (DEFAULT, other))
    pairs = np.array([(a[scene], b[scene]) for scene in a]).T
    text = f"{100 * np.mean(pairs[0] - pairs[1]):+.1f}"
    interval = interval_of_difference(*pairs)
    if interval is None:
        return text
    low, high = interval
    mark = "**" if low > 0 else "*" if high < 0 else ""
    return f"{mark}{text} [{100 * low:+.1f}, {100 * high:+.1f}]{mark}"


def scene_maps(record: results.Record) -> Mapping[str, float]:
    """Matching mAP of each sequence.

    Raises:
        ValueError: if their mean is not the headline.
    """
    maps = scene_scores(record)
    if record.protocol.name == "oxford":
        maps = {sequence: maps[sequence] for sequence in SIX}
    if not math.isclose(np.mean([*maps.values()]), record.scores[record.protocol.headline]):
        raise ValueError(f"the headline of {record.model.name} is not the mean over sequences")
    return maps


def oxford(title: str, known: Board) -> Iterator[str]:
    """Section on Oxford: the mean over its six sequences, and each sequence."""
    columns = {"map": "map", **{sequence: f"{sequence}/map" for sequence in SIX}}
    base = known[ROOTSIFT].scores

    def rows() -> Iterator[list[str]]:
        for name in names(known, "map"):
            scores = known[name].scores
            cells = [cell(100 * scores[key], scores[key] > base[key]) for key in columns.values()]
            yield [markdown(name), f"{scores['map'] / base['map']:.3f}", *cells]

    yield f"## Oxford, {title}\n"
    yield f"Scores in bold are better than those of {ROOTSIFT}. The ratio is `map` divided by the"
    yield f"`map` of {ROOTSIFT}.\n"
    yield from table(["ratio", *columns], rows())


def eth(known: Board) -> Iterator[str]:
    """Section on structure from motion of two places."""
    base = known[ROOTSIFT].scores

    def rows() -> Iterator[list[str]]:
        for name in names(known, "total/observations"):
            scores, row = known[name].scores, [markdown(name)]
            for key, form in OF_ETH.values():
                gain = scores[key] - base[key]
                row.append(cell(scores[key], (-gain if key.endswith("px") else gain) > 0, form))
            yield row

    yield "## Structure from motion, on the keypoints of COLMAP's SIFT\n"
    yield f"Numbers in bold are better than those of {ROOTSIFT}: more points and observations, or a"
    yield f"smaller error. The zoo's networks, but for those named {OPEN}, were trained on"
    yield "castle-P30; two of its images show the fountain of Fountain-P11, at a small size."
    yield "Herzjesu-P8 shows another place.\n"
    yield from table([*OF_ETH], rows())


def by_ratio(records: Sequence[results.Record]) -> Iterator[str]:
    """Section on structure from motion by the matching ratio; models with several ratios."""
    ratios = {RATIO: ""}
    for record in records:
        facts = record.protocol
        if [*facts.options] == ["ratio"] and (record.data.name, record.data.split) == ETH:
            ratios[float(facts.options["ratio"])] = facts.options_text
    if len(ratios) == 1:
        return
    boards = {ratio: board(records, "eth", *ETH, ratios[ratio]) for ratio in sorted(ratios)}

    def rows() -> Iterator[list[str]]:
        for name in names(boards[RATIO], "total/observations"):
            of_model = {
                ratio: known[name].scores for ratio, known in boards.items() if name in known
            }
            for ratio, scores in of_model.items() if len(of_model) > 1 else ():
                cells = [form.format(scores[key]) for key, form in OF_ETH.values()]
                yield [markdown(name), f"{ratio:g}", *cells]

    yield "## Structure from motion, by the largest accepted ratio of distances\n"
    yield from table(["ratio", *OF_ETH], rows())


def trainings() -> Iterator[str]:
    """Section on the length of each training, and on the images, by the cards of the weights."""

    def rows() -> Iterator[list[str]]:
        for file in shipped_cards():
            card = cards.read(file)
            images = f"{len(card.photographs)} for products" if card.photographs else "of research"
            hours = f"{card.hours:.2f}"
            yield [markdown(card.name), f"{card.steps:,}", hours, markdown(card.machine), images]

    yield "## Trainings\n"
    yield "Hours are batches times the median time of a batch. The cards (`harness models NAME`)"
    yield "have the recipes, the curves and the photographs.\n"
    yield from table(["batches", "hours", "machine", "photographs"], rows())


def short(records: Sequence[results.Record]) -> str:
    """Matching mAP on four benchmarks, a row for each model."""
    boards = [board(records, *where) for where in SHORT.values()]

    def rows() -> Iterator[list[str]]:
        for name in names(boards[0], "matching/map"):
            of_model = [known.get(name) for known in boards]
            cells = [f"{100 * r.scores[r.protocol.headline]:.1f}" if r else "—" for r in of_model]
            yield [f"`{name}`", boards[0][name].model.size, *cells]

    return "\n".join(table(["dim", *SHORT], rows()))


def text(records: Sequence[results.Record]) -> str:
    """The whole page."""
    lines = [
        "# The zoo's weights compared with RootSIFT and published weights\n",
        "`studies/zoo_tables.py` makes this page from the records of this folder and the cards of",
        "the weights. Trainings differ in length and in images; their table stands at the end.",
        "[method-comparison.md](method-comparison.md) compares methods with equal numbers of",
        "batches.\n",
        *hpatches(records),
    ]
    for title, where in OXFORD.items():
        lines += oxford(title, board(records, "oxford", *where))
    lines += beside(records)
    lines += [*eth(board(records, "eth", *ETH)), *by_ratio(records), *trainings()]
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    """Read the records, write the tables, and print the short table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", required=True, type=Path)
    folder = parser.parse_args().results
    records = results.load(folder)
    atomic.write_text(folder / "studies/zoo.md", text(records))
    print(short(records))


if __name__ == "__main__":
    main()
