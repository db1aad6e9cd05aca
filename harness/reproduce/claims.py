"""Does each claimed effect appear? A row for each claim, computed from the outcomes of items."""

import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from harness.differences import interval_of_difference
from harness.errors import InputError
from harness.escape import markdown
from harness.records import markdown_table
from harness.records import record as results
from harness.records.scenes import scene_scores
from harness.reproduce import budgets, items, outcomes
from harness.reproduce.items import CLAIMS, Part
from harness.reproduce.outcomes import Measured, Outcome
from harness.statistics import FEWEST, Interval, students_t

FIRST, LAST = "first", "last"  # stand for the first and the last value of an axis
YES, NO, UNKNOWN, NOT_RUN = "yes", "no, worse", "can't tell", "not run"
STUDY, DATA = "method-comparison.md", "training-data.md"
NOTE = (
    "The difference is that of the first less the second, in points (fractions times 100); for"
    " errors, with the opposite sign: above 0, the claim holds. The 95 % interval decides:"
    " “yes” if it lies above 0, “no, worse” if below. It is over training seeds if both sides"
    " have three or more (Student's t of pairs with the same seed); else over the scenes of the"
    " records, if all cells are of the same three scenes or more; else over the pairs of numbers,"
    " if there are three or more. These intervals answer different questions and are never"
    " mixed. One pair of cells, and a budget whose numbers say nothing, give no answer."
)


class Claim(Part):
    """A claim: some cells of an item are better than others."""

    text: str
    source: str
    item: str
    better: dict[str, str]  # values of axes; "first" and "last" stand for those of the budget
    worse: dict[str, str]
    study: str = ""  # rows of the study of methods that answer the same question


class Claims(Part):
    """All claims of a folder of papers."""

    claims: tuple[Claim, ...] = ()


@dataclass(frozen=True)
class Answer:
    """Whether a claim holds by one outcome."""

    verdict: str
    difference: float | None = None  # in points; above 0: the claim holds
    interval: Interval | None = None  # in points
    unit: str = ""  # what the interval is over, with its number
    why: str = ""  # why there is no answer


def read() -> list[Claim]:
    """The claims of all installed papers."""
    files = [root / CLAIMS for root in items.folders_of_papers()]
    return [one for file in files if file.is_file() for one in items.parsed(Claims, file).claims]


def answer(claim: Claim, outcome: Outcome, out: Path) -> Answer:
    """Whether a claim holds by an outcome.

    Args:
        claim: the claim.
        outcome: of the claim's item.
        out: folder of the records that the outcome names.

    Raises:
        InputError: if the claim names a value of an axis that the item has not.
    """
    a, b = (_cells(claim, outcome, at) for at in (claim.better, claim.worse))
    pairs = [(one, b[rest]) for rest, one in a.items() if rest in b]
    if not pairs:
        return Answer(NOT_RUN, why="the cells are not part of this budget")
    missing = [one for pair in pairs for one in pair if one.value is None]
    if missing:
        return Answer(UNKNOWN, why=f"{len(missing)} of {2 * len(pairs)} cells are missing")
    sign = -1 if pairs[0][0].lower_is_better else 1
    factor = sign * (1 if pairs[0][0].decimals is not None else 100)
    for sample in (_over_seeds, _over_scenes, _over_cells):
        found = sample(pairs, out)
        if found is None:
            continue
        unit, interval, difference = found
        low, high = sorted(factor * end for end in interval)
        verdict = YES if low > 0 else NO if high < 0 else UNKNOWN
        return Answer(verdict, factor * difference, (low, high), unit)
    difference = _mean([_difference(*pair) for pair in pairs])
    return Answer(UNKNOWN, factor * difference, why=f"{len(pairs)} pair of cells, of one seed each")


def page(out: Path, studies: Path | None = None) -> str:
    """The page of claims as Markdown, from all outcomes in a folder.

    Args:
        out: folder of outcomes.
        studies: folder of the page whose answers are taken up; None: none are.
    """
    counted = _studied(studies / STUDY) if studies and (studies / STUDY).is_file() else {}
    rows = []
    for claim in read():
        told = counted.get(claim.study, "")
        earlier = f"[{told}]({_link(out, studies)})" if told and studies else ""
        found = [*_answers(claim, out)] or [("", Answer(NOT_RUN))]
        for budget, one in found:
            rows.append(
                [
                    markdown(claim.text),
                    markdown(claim.source),
                    f"**{markdown(one.verdict)}**",
                    "" if one.difference is None else f"{one.difference:+.2f}",
                    "" if one.interval is None else "{:+.2f} to {:+.2f}".format(*one.interval),
                    markdown(one.unit or one.why),
                    markdown(budget),
                    earlier,
                ]
            )
    heads = ["claim", "source", "holds?", "difference", "95 %", "over", "budget", "earlier study"]
    lines = ["# Does each claimed effect appear?", "", NOTE, ""]
    if counted:
        lines += [
            f"The last column counts the answers of [{STUDY}]({_link(out, studies)}), which asked"
            " the same with other data and a learning rate for each method.",
            "",
        ]
    lines += markdown_table.lines(heads, rows, "lllrllll")
    if studies and (studies / DATA).is_file():
        lines += ["", f"What matters in training data: [{DATA}]({_link(out, studies, DATA)})."]
    budgeted = dict.fromkeys(row[6] for row in rows if row[6])
    lines += ["", *(f"Budget {name}: {budgets.find(name).about}." for name in budgeted)]
    return "\n".join([*lines, ""])


def _answers(claim: Claim, out: Path) -> Iterator[tuple[str, Answer]]:
    for budget in budgets.names():
        file = outcomes.file_of(out, claim.item, budget)
        if budgets.find(budget).tells and file.is_file():
            yield budget, answer(claim, outcomes.read(file), out)


def _link(out: Path, studies: Path | None, page: str = STUDY) -> str:
    return Path(os.path.relpath(studies / page, out)).as_posix() if studies else ""


def _cells(
    claim: Claim, outcome: Outcome, at: Mapping[str, str]
) -> dict[tuple[tuple[str, str], ...], Measured]:
    """The cells with these values of axes, by their values of the other axes."""
    wanted = {}
    for axis, value in at.items():
        known = list(dict.fromkeys(one.at[axis] for one in outcome.cells if axis in one.at))
        if not known:
            raise InputError(f"{claim.text}: {claim.item} has no axis {axis!r}")
        ends = {FIRST: known[0], LAST: known[-1]}
        wanted[axis] = ends.get(value, value)
    found = {}
    for one in outcome.at(wanted):
        rest = {axis: value for axis, value in one.at.items() if axis not in at}
        found[tuple(sorted(rest.items()))] = one
    return found


Pairs = Sequence[tuple[Measured, Measured]]
Sample = tuple[str, Interval, float]  # unit, interval, mean difference


def _over_seeds(pairs: Pairs, out: Path) -> Sample | None:
    """The interval over seeds, if all cells have the same three seeds or more."""
    seeds = {tuple(value.seed for value in one.final) for pair in pairs for one in pair}
    if len(seeds) != 1 or len(next(iter(seeds))) < FEWEST:
        return None
    number = len(next(iter(seeds)))
    of_seeds = np.mean([_by_seed(a) - _by_seed(b) for a, b in pairs], axis=0)
    return f"{number} seeds", _students(of_seeds), float(of_seeds.mean())


def _by_seed(one: Measured) -> np.ndarray:
    return np.array([value.value for value in one.final])


def _over_scenes(pairs: Pairs, out: Path) -> Sample | None:
    """The interval over scenes, if all records have headlines of the same three scenes or more."""
    sides: list[list[dict[str, float]]] = []
    for pair in pairs:
        of_pair = []
        for one in pair:
            if len(one.final) != 1 or len(one.final[0].records) != 1:
                return None
            file = out / one.final[0].records[0]
            if not file.is_file():
                return None
            kept = results.read(file)
            if not math.isclose(kept.scores.get(kept.protocol.headline, -1), one.final[0].value):
                return None  # the cell shows another score than the scenes have
            of_pair.append(scene_scores(kept))
        sides.append(of_pair)
    scenes = [*dict.fromkeys(sides[0][0])] if sides else []
    same = all(set(one) == set(scenes) for of_pair in sides for one in of_pair)
    if not same or len(scenes) < FEWEST:
        return None
    a, b = (
        np.mean([[of_pair[side][name] for name in scenes] for of_pair in sides], axis=0)
        for side in (0, 1)
    )
    interval = interval_of_difference(a, b, fractions=pairs[0][0].decimals is None)
    return (f"{len(scenes)} scenes", interval, float((a - b).mean())) if interval else None


def _over_cells(pairs: Pairs, out: Path) -> Sample | None:
    """The interval over pairs of numbers, if there are three or more.

    A cell that is a mean over several tested data counts as several numbers.
    """
    differences = np.concatenate([_numbers(a) - _numbers(b) for a, b in pairs])
    if len(differences) < FEWEST:
        return None
    told = f"{len(differences)} pairs of numbers"
    return told, _students(differences), float(differences.mean())


def _numbers(one: Measured) -> np.ndarray:
    """The mean over seeds of each number that the cell is a mean of."""
    return np.mean([value.parts or (value.value,) for value in one.final], axis=0)


def _difference(a: Measured, b: Measured) -> float:
    return (a.value or 0.0) - (b.value or 0.0)


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


def _students(differences: np.ndarray) -> Interval:
    """95 % interval of the mean of differences, by Student's t."""
    n = len(differences)
    middle = float(differences.mean())
    reach = students_t(n - 1) * float(differences.std(ddof=1)) / math.sqrt(n)
    return middle - reach, middle + reach


def _studied(file: Path) -> dict[str, str]:
    """The answers of a study, counted by the question: the first and the last cell of its rows."""
    counts: dict[str, dict[str, int]] = {}
    for line in file.read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and re.fullmatch(r"yes|no, worse|can't tell", cells[-1]):
            of = counts.setdefault(cells[0], {})
            of[cells[-1]] = of.get(cells[-1], 0) + 1
    return {
        question: ", ".join(f"{said} {number}x" for said, number in of.items())
        for question, of in counts.items()
    }
