"""Table of recipes that were trained with several seeds: means, deviations, and tests of recipes.

An interval over scenes says how a model would score on other scenes. A deviation over seeds says
how another training would score on the same scenes. No table mixes them.
"""

import csv
import io
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from harness.differences import rank_sum
from harness.escape import csv_cell, markdown
from harness.metrics import lower_is_better
from harness.records import leaderboard, markdown_table
from harness.records.leaderboard import MISSING, Board, Texts
from harness.records.record import Record

HEAD = ("score", "options", "recipe", "models", "seeds", "mean", "deviation")
NOTE = (
    "Mean and deviation (n - 1) over training seeds, on the same scenes; fractions in percent. p:"
    " the probability that seeds of two equal recipes come in the order of these two, or in a"
    " clearer one (Mann and Whitney's U, one-sided, exact). Three seeds against three give 0.05 at"
    " least. Intervals over scenes are in the leaderboard; they are about other scenes, and the"
    " numbers here are about other seeds."
)


@dataclass(frozen=True)
class Trained:
    """The trainings of one recipe, scored by one protocol: a record for each seed."""

    name: str  # of the models, up to "@"; with the first digits of the recipe where two are alike
    records: tuple[Record, ...]  # in the order of the seeds

    @property
    def scores(self) -> list[float]:
        """The headline of each seed."""
        return [one.scores[one.protocol.headline] for one in self.records]


def texts_of(board: Board) -> Texts:
    """What the files `seeds.csv` and `seeds.md` of a board hold, if a recipe has several seeds."""
    found = groups(board)
    return {".csv": to_csv(found), ".md": to_markdown(board, found)} if found else {}


def groups(board: Board) -> list[list[Trained]]:
    """Recipes with two or more seeds, the best mean first, for each protocol and set of options.

    Of several records of one recipe and seed, the first by the model's name counts.
    """
    tasks: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for row in board.rows:
        for one in row:
            if one.protocol.headline in one.scores:
                tasks[one.protocol.options_text, one.protocol.name].append(one)
    found = [_recipes(records) for _, records in sorted(tasks.items())]
    return [recipes for recipes in found if recipes]


def _recipes(records: Sequence[Record]) -> list[Trained]:
    seeds: dict[str, dict[int, Record]] = defaultdict(dict)
    for one in sorted(records, key=lambda r: r.model.name):
        if one.model.recipe is not None and one.model.seed is not None:
            seeds[one.model.recipe].setdefault(one.model.seed, one)
    several = {recipe: own for recipe, own in seeds.items() if len(own) > 1}
    short = {recipe: own[min(own)].model.name.partition("@")[0] for recipe, own in several.items()}
    found = []
    for recipe, own in several.items():
        alike = [*short.values()].count(short[recipe]) > 1
        name = f"{short[recipe]} ({recipe:.8})" if alike else short[recipe]
        found.append(Trained(name, tuple(own[seed] for seed in sorted(own))))
    return sorted(found, key=lambda one: -_sign(one) * float(np.mean(one.scores)))


def to_csv(found: Sequence[Sequence[Trained]]) -> str:
    """Full precision, one line a recipe; U and p are of the line's recipe over the column's."""
    names = list(dict.fromkeys(one.name for recipes in found for one in recipes))
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    tests = [f"{test} over {name}" for name in names for test in ("U", "p")]
    lines.writerow([*HEAD, *map(csv_cell, tests)])
    for recipes in found:
        for one in recipes:
            protocol = one.records[0].protocol
            texts = (protocol.headline, protocol.options_text, one.name, _models(one), _seeds(one))
            moments = (float(np.mean(one.scores)), float(np.std(one.scores, ddof=1)))
            others = {other.name: _over(one, other) for other in recipes if other is not one}
            cells = [value for name in names for value in others.get(name, (None, None))]
            numbers = [MISSING if value is None else repr(value) for value in (*moments, *cells)]
            lines.writerow([*map(csv_cell, texts), *numbers])
    return out.getvalue()


def to_markdown(board: Board, found: Sequence[Sequence[Trained]]) -> str:
    """A page to read: a table for each protocol and set of options."""
    lines = [f"# {leaderboard.heading(board)}: seeds", "", NOTE]
    for recipes in found:
        protocol = recipes[0].records[0].protocol
        options = f" ({markdown(protocol.options_text)})" if protocol.options else ""
        lines += ["", f"## {markdown(protocol.headline)}{options}", ""]
        heads = ["recipe", "seeds", "mean ± deviation"]
        heads += [f"p over {markdown(one.name)}" for one in recipes] if len(recipes) > 1 else []
        lines += markdown_table.lines(heads, _rows(recipes), "llr")
    return "\n".join([*lines, ""])


def _rows(recipes: Sequence[Trained]) -> Iterator[list[str]]:
    for one in recipes:
        row = [markdown(one.name), _seeds(one), _moments(one)]
        if len(recipes) > 1:
            row += [MISSING if other is one else f"{_over(one, other)[1]:.2g}" for other in recipes]
        yield row


def _over(one: Trained, other: Trained) -> tuple[float, float]:
    """U and p of the hypothesis that the first recipe is no better than the second."""
    a, b = (_sign(one) * np.array(each.scores) for each in (one, other))
    return rank_sum(a.tolist(), b.tolist())


def _moments(one: Trained) -> str:
    protocol = one.records[0].protocol
    quantity = protocol.quantities.get(protocol.headline.rpartition("/")[2])
    unit, decimals = (1, quantity.decimals) if quantity else (100, 2)
    mean, deviation = unit * np.mean(one.scores), unit * np.std(one.scores, ddof=1)
    return f"{mean:,.{decimals}f} ± {deviation:,.{decimals}f}"


def _sign(one: Trained) -> int:
    protocol = one.records[0].protocol
    return -1 if lower_is_better(protocol.headline, protocol.quantities) else 1


def _models(one: Trained) -> str:
    return " ".join(record.model.name for record in one.records)


def _seeds(one: Trained) -> str:
    return ", ".join(str(record.model.seed) for record in one.records)
