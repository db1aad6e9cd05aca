"""Puts the scores of the parts of a protocol together."""

from collections.abc import Mapping, Sequence

from harness.types import Parts, Protocol, Scores

OFTEN = 2  # times: parts that need each row more often, in the mean, are not scored apart


def together(parts: Parts, scored: Sequence[Scores]) -> Scores:
    """The scores of a protocol, from those of each part alone, in the order of `parts.names`.

    A number that a part gives and that follows from others, too, is the part's: they may differ in
    the last bit.
    """
    values: dict[str, float] = {}
    scenes: dict[str, Mapping[str, float]] = {}
    intervals: dict[str, tuple[float, float]] = {}
    for one in scored:
        values |= one.values
        scenes |= one.scenes
        intervals |= one.intervals
    summed = parts.sum_up(Scores(values, scenes, intervals))
    for scene, derived in summed.scenes.items():
        scenes[scene] = {**derived, **scenes.get(scene, {})}
    warnings = [*summed.warnings, *(text for one in scored for text in one.warnings)]
    whole = {**summed.values, **values}, scenes, {**summed.intervals, **intervals}
    return Scores(*whole, tuple(warnings))


def worth_apart(protocol: Protocol) -> Sequence[str]:
    """The parts of a protocol if it is worth while to score each on a machine of its own, or ().

    It is not if there is one part, if each needs most vectors, or if intervals of the whole can't
    be put together.
    """
    parts = protocol.parts
    if parts is None or len(parts.names) < 2 or not parts.sums_intervals:
        return ()
    needed = sum(len(parts.rows(name)) for name in parts.names)
    return parts.names if needed <= OFTEN * len(protocol.dataset) else ()


def units_ahead(protocol: Protocol) -> Mapping[str, int]:
    """Number of units in which work can be done ahead, of each part; empty if there is none."""
    parts = protocol.parts
    if parts is None or parts.ahead is None:
        return {}
    return {name: parts.ahead.units(name) for name in parts.names}
