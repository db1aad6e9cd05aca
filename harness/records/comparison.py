"""Is one model better than another? Two records, compared over their scenes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness import registry
from harness.differences import interval_of_difference, sign_flip_p
from harness.errors import InputError, UnknownNameError
from harness.escape import markdown, visible
from harness.metrics import lower_is_better
from harness.records import leaderboard, markdown_table
from harness.records.comparable import must_agree, must_be_comparable
from harness.records.record import Record
from harness.records.scenes import is_quantity, scene_scores
from harness.statistics import FEWEST, Interval

NOTE = (
    "In brackets the 95 % interval of the mean difference over scenes like these: Student's t"
    " interval of the paired differences. Where an end of the interval on the logit scale lies"
    " farther out, it counts. p: each difference gets a plus or a minus, in all ways; p is the"
    " share of ways whose sum is at least as far from 0 as the measured sum. The scene is the unit,"
    " because patches of one scene depend on each other. Differences between training seeds are not"
    " included."
)
ENDS = 10  # scenes that a table shows at each end, if there are more than twice as many
NAMED = 3  # scenes that a sentence names


@dataclass(frozen=True)
class Comparison:
    """Answer to "is a better than b?": scores of the scenes, their mean difference, how sure it is.

    `str` gives the answer as a sentence, and the scenes as a Markdown table. Differences are of a
    less b: fractions, or in the unit of the quantity.
    """

    a: Record
    b: Record
    scenes: Mapping[str, tuple[float, float]]  # scores of a and of b, where both have one
    difference: float  # of the means over scenes; of the headlines if there are no scenes
    interval: Interval | None  # 95 %; None for fewer than 3 scenes
    p: float | None  # exact, by signs; None for fewer than 3 scenes
    better: str | None  # name of the model that is surely better: the interval lies beside 0
    deciding: Sequence[str]  # scenes without any one of which no model is surely better

    def __str__(self) -> str:
        """The answer in a sentence, then a table of the scenes, and what the numbers are."""
        return "\n".join([visible(sentence(self)), "", *table(self), "", NOTE])


def compare(record_a: Record, record_b: Record) -> Comparison:
    """Is the model of one record better than that of another by the headline of their protocol?

    The difference is paired over the scenes that both records have a score of. `print` of the
    result shows the answer and a table of the scenes.

    Raises:
        InputError: if the records may not share a table, or are of different tasks; names the
            difference.
    """
    _must_be_of_one_task(record_a, record_b)
    scores, others = scene_scores(record_a), scene_scores(record_b)
    scenes = {name: (scores[name], others[name]) for name in scores if name in others}
    wholes = [one.scores.get(one.protocol.headline) for one in (record_a, record_b)]
    if not scenes and None in wholes:
        raise InputError(
            f"{record_a.model.name} and {record_b.model.name} have no scene and no"
            f" {record_a.protocol.headline} in common: nothing can be compared"
        )
    pairs = np.array([*scenes.values()]) if scenes else np.array([wholes], float)
    interval = _interval(record_a, pairs)
    better = _better(record_a, record_b, interval)
    deciding = [
        name
        for i, name in enumerate(scenes)
        if better is not None
        and len(scenes) > FEWEST
        and not _better(record_a, record_b, _interval(record_a, np.delete(pairs, i, axis=0)))
    ]
    differences = pairs[:, 0] - pairs[:, 1]
    p = sign_flip_p(differences) if interval else None
    return Comparison(
        record_a, record_b, scenes, float(differences.mean()), interval, p, better, deciding
    )


def comparisons(
    records: Sequence[Record], a: str, b: str, protocol: str, data: str | None = None
) -> list[Comparison]:
    """Comparisons of two models by name, one for each task that records of both are of.

    Args:
        records: of any models.
        a: name of a model.
        b: name of another model.
        protocol: its name, or the family of several.
        data: name of a data set; all where None.

    Raises:
        UnknownNameError: if there is no record of a name; says the nearest.
        InputError: if no record of one model is of the same task as one of the other, or as
            `compare` does.
    """
    names = [one.protocol.name for one in records]
    families = [name.partition("/")[0] for name in names]
    by = [r for r, *called in zip(records, names, families, strict=True) if protocol in called]
    _must_be_known("protocols", protocol, {*names, *families})
    if data is not None:
        _must_be_known("data sets", data, {one.data.name for one in by})
    found: dict[tuple[str, ...], dict[str, Record]] = {}
    for one in by:
        if data in (None, one.data.name):
            task = (one.protocol.title, one.data.name, one.data.split)
            found.setdefault(task, {})[one.model.name] = one
    for name in (a, b):
        _must_be_known("models", name, {name for models in found.values() for name in models})
    pairs = [(models[a], models[b]) for models in found.values() if {a, b} <= models.keys()]
    if not pairs:
        raise InputError(
            f"{a} and {b} have no record by {protocol} of the same data, split and options:"
            " evaluate both on one data set"
        )
    return [compare(*pair) for pair in pairs]


def sentence(found: Comparison) -> str:
    """Whether a beats b, by how much, how surely, and on which scenes."""
    a, b = found.a.model.name, found.b.model.name
    answer = f"Can't tell whether {a} beats {b}"
    if found.better:
        answer = f"Yes, {a} beats {b}" if found.better == a else f"No, {b} beats {a}"
    options = found.a.protocol.options_text
    where = f"{found.a.data.name}, split {found.a.data.split}{f', {options}' if options else ''}"
    unit = "" if is_quantity(found.a) else " points"
    gap = f"{found.a.protocol.headline} {_signed(found, found.difference)}{unit}"
    n = len(found.scenes)
    if found.interval is None or found.p is None:
        return f"{answer} on {where}: {gap}, but {FEWEST} scenes are needed, and there are {n}."
    low, high = (_signed(found, end) for end in found.interval)
    least = " (the least that so few scenes give)" if 0.05 < found.p == 2 / 2**n else ""
    sure = f"[{low}, {high}], n = {n} scenes, p = {found.p:.2g}{least}"
    return f"{answer} on {where}: {gap} {sure}; {_decided(found)}."


def table(found: Comparison) -> Iterator[str]:
    """Lines of Markdown: the scenes, those where a gains most first, and their means."""
    marks = [leaderboard.mark([one]) for one in (found.a, found.b)]
    names = [markdown(one.model.name) for one in (found.a, found.b)]
    heads = [f"{name} {mark}".strip() for name, mark in zip(names, marks, strict=True)]
    yield from markdown_table.lines(["", *heads, "difference"], _rows(found))
    yield from leaderboard.footnotes({*marks})


def _rows(found: Comparison) -> Iterator[Sequence[str]]:
    def row(name: str, a: float, b: float) -> Sequence[str]:
        return name, _number(found, a), _number(found, b), _signed(found, a - b)

    gains = _gains(found)
    names = sorted(gains, key=gains.__getitem__, reverse=True)
    between = names[ENDS:-ENDS]
    for name in names:
        if name not in between:
            yield row(markdown(name), *found.scenes[name])
        elif name == between[0]:
            yield f"{len(between)} scenes between", "", "", ""
    means = np.mean([*found.scenes.values()], axis=0).tolist() if found.scenes else []
    if means:
        yield row("mean over scenes", *means)
    headline = found.a.protocol.headline
    wholes = [one.scores[headline] for one in (found.a, found.b) if headline in one.scores]
    if len(wholes) == 2 and not (means and np.allclose(means, wholes, rtol=0, atol=1e-9)):
        yield row(markdown(headline), *wholes)


def _decided(found: Comparison) -> str:
    """On which scenes a is better, and without which the answer is open."""
    gains = _gains(found)
    on = [name for name, gain in gains.items() if gain > 0]
    rest = [name for name in gains if name not in on]
    text = f"{found.a.model.name} is better on {len(on)} of them"
    if on and rest and min(len(on), len(rest)) <= NAMED:
        text += f", on {', '.join(on)}" if len(on) <= len(rest) else f", not on {', '.join(rest)}"
    if found.deciding:
        text += f"; without {' or '.join(found.deciding[:NAMED])} it can't be told"
    return text


def _gains(found: Comparison) -> dict[str, float]:
    """By how much a is better than b on each scene."""
    sign = -1 if _less_is_better(found.a) else 1
    return {name: sign * (a - b) for name, (a, b) in found.scenes.items()}


def _number(found: Comparison, value: float) -> str:
    """A score as tables show it: fractions in percent."""
    protocol = found.a.protocol
    quantity = protocol.quantities.get(protocol.headline.rpartition("/")[2])
    return f"{value:,.{quantity.decimals}f}" if quantity else f"{100 * value:.2f}"


def _signed(found: Comparison, value: float) -> str:
    return f"{'+' * (value > 0)}{_number(found, value)}"


def _interval(record: Record, pairs: np.ndarray) -> Interval | None:
    return interval_of_difference(*pairs.T, fractions=not is_quantity(record))


def _better(a: Record, b: Record, interval: Interval | None) -> str | None:
    if interval is None or interval[0] <= 0 <= interval[1]:
        return None
    return (b if (interval[0] > 0) == _less_is_better(a) else a).model.name


def _less_is_better(record: Record) -> bool:
    return lower_is_better(record.protocol.headline, record.protocol.quantities)


def _must_be_of_one_task(a: Record, b: Record) -> None:
    """Refuse records that stand in different tables, or apart in one.

    Raises:
        InputError: if they do; names the difference.
    """
    must_agree(a, b, "protocol", a.protocol.title, b.protocol.title)
    must_agree(a, b, "data set", a.data.name, b.data.name)
    must_agree(a, b, "split", a.data.split, b.data.split)
    must_be_comparable([a, b])
    for one in (a, b):
        if not one.data.complete:
            raise InputError(
                f"the record of {one.model.name} is of a part of {one.data.name}: evaluate it on"
                " all of it"
            )


def _must_be_known(kind: str, name: str, known: set[str]) -> None:
    if name not in known:
        raise UnknownNameError(f"among the records there is {registry.unknown(kind, name, known)}")
