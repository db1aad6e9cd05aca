"""Write the table and the picture of accuracy, speed and bytes of all models, from the records.

    python -m studies.front --results results

writes RESULTS/studies/front.md and front.svg. Accuracy is in the records; speed is in
RESULTS/studies/speed.csv, which `python -m benchmarks.descriptor_speed --out FILE` writes. The same
files give the same bytes; nothing is measured here.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from harness.escape import markdown
from harness.files import atomic
from harness.records import markdown_table, speeds
from harness.records import record as results
from studies.zoo_tables import ROOTSIFT, WHOLE, board

JUDGED = "hpatches-built-images"  # the accuracy that decides the front: of all models


@dataclass(frozen=True)
class Model:
    """Accuracy, speed and size of a model."""

    name: str
    map: Mapping[str, float]  # by the name of the data; fractions
    bytes: int  # of a vector
    speed: Mapping[int, float]  # patches a second, by number of cores

    @property
    def qualities(self) -> tuple[float, float, int]:
        """The three respects in which it is judged; more is better."""
        return self.map[JUDGED], self.speed[1], -self.bytes


def models(records: Sequence[results.Record], measured: pd.DataFrame) -> list[Model]:
    """Models with an accuracy and a speed, the most accurate first."""
    boards = {data: board(records, *where) for data, where in WHOLE.items()}
    known = [name for name in boards[JUDGED] if name in set(measured["model"])]
    found = []
    for name in known:
        rows = measured[measured["model"] == name]
        scores = {data: _map(known[name]) for data, known in boards.items() if name in known}
        speed = dict(zip(rows["cores"].tolist(), rows["patches_per_second"].tolist(), strict=True))
        found.append(Model(name, scores, int(rows["bytes"].iloc[0]), speed))
    return sorted(found, key=lambda model: (-model.map[JUDGED], model.name))


def front(known: Sequence[Model]) -> set[str]:
    """Names of the models that no other model beats."""
    best = speeds.front([one.qualities for one in known])
    return {one.name for one, is_best in zip(known, best, strict=True) if is_best}


def page(known: Sequence[Model], machine: str) -> Iterator[str]:
    """Lines of the Markdown page."""
    best = front(known)
    cores = sorted({count for model in known for count in model.speed})
    yield "# Accuracy, speed and bytes\n"
    yield f"Bold names are the front: no other model has at least the mAP on {JUDGED}, the speed"
    yield "on one core and as few bytes, and more of one of them. Matching mAP in percent; an empty"
    yield "cell is not measured. The column bytes has the memory of one vector. Speed is patches a"
    yield f"second, 65x65 pixels, all models in one run on one machine ({machine}); compare speeds"
    yield "with each other, not with those of another run."
    yield "`python -m studies.front --results results` makes this page and the picture.\n"
    yield "The picture names the models of the front, and RootSIFT.\n"
    yield "![mAP against speed; colour shows bytes](front.svg)\n"
    columns = ["", "bytes", *(f"patches/s, cores: {count}" for count in cores), *WHOLE]
    rows = [
        [
            f"**{markdown(model.name)}**" if model.name in best else markdown(model.name),
            str(model.bytes),
            *(f"{model.speed[count]:,.0f}" if count in model.speed else "" for count in cores),
            *(f"{100 * model.map[data]:.1f}" if data in model.map else "" for data in WHOLE),
        ]
        for model in known
    ]
    yield from markdown_table.lines(columns, rows)
    yield ""


def draw(known: Sequence[Model], file: Path) -> None:
    """The picture: mAP against speed on one core; a ring marks the models of the front."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot as plot
    from matplotlib.colors import LogNorm

    best = front(known)
    style: Any = {"svg.hashsalt": "front", "font.family": "sans-serif", "svg.fonttype": "none"}
    with matplotlib.rc_context(style), atomic.writing(file) as stream:
        figure, axes = plot.subplots(figsize=(9, 6), layout="constrained")
        points = axes.scatter(
            [model.speed[1] for model in known],
            [100 * model.map[JUDGED] for model in known],
            c=[model.bytes for model in known],
            norm=LogNorm(),
            cmap="cividis",
            s=45,
            linewidths=[1.8 if model.name in best else 0 for model in known],
            edgecolors="#D55E00",
        )
        for model in (model for model in known if model.name in (*best, ROOTSIFT)):
            at = (model.speed[1], 100 * model.map[JUDGED])
            weight = "bold" if model.name in best else "normal"
            axes.annotate(
                model.name, at, (5, 3), textcoords="offset points", fontsize=7, weight=weight
            )
        axes.set_xscale("log")
        axes.set_xlabel("patches a second on one core")
        axes.set_ylabel(f"matching mAP in percent, {JUDGED}")
        axes.grid(alpha=0.3)
        figure.colorbar(points, label="bytes of a vector")
        figure.savefig(stream, format="svg", metadata={"Date": None})
        plot.close(figure)


def _map(record: results.Record) -> float:
    return record.scores[record.protocol.headline]


def main() -> None:
    """Read records and speeds, write page and picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", required=True, type=Path)
    given = parser.parse_args()
    measured = speeds.table(given.results / speeds.FILE)
    known = models(results.load(given.results), measured)
    text = "\n".join(page(known, str(measured["machine"].iloc[0])))
    atomic.write_text(given.results / "studies/front.md", text)
    draw(known, given.results / "studies/front.svg")


if __name__ == "__main__":
    main()
