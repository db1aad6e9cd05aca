"""What an audit found: the numbers of a record beside those that were found, and verdicts."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from harness.records.record import Record

EQUAL = 1e-8  # differences up to this are rounding on one machine
# 20 times as much as any score of 212 records moved when another machine measured them again
# (5e-7), and a tenth of the last digit that tables show.
OTHER_MACHINES = 1e-5
TOTALS = "totals"


class Verdict(IntEnum):
    """How the numbers of a record compare with those that were found; the worst is the highest."""

    EQUAL = 0  # to EQUAL
    CLOSE = 1  # to OTHER_MACHINES
    UNSTEADY = 2  # but for numbers of a random search, which differ by no more than they may
    WRONG = 3


@dataclass(frozen=True)
class Number:
    """One number of a record, and the number that was found."""

    name: str
    kept: float | None  # None: the record lacks it
    found: float | None  # None: there is no such number
    unsteady: float = 0.0  # largest difference between machines, if a random search decides it

    @property
    def difference(self) -> float:
        """The difference; of a quantity above 1, as a share of the record's number."""
        if self.kept is None or self.found is None:
            return float("inf")
        return abs(self.kept - self.found) / max(1.0, abs(self.kept))

    def __str__(self) -> str:
        """A sentence about the two numbers."""
        if self.found is None:
            return f"{self.name} is {self.kept!r}, but there is no such number"
        if self.kept is None:
            return f"{self.name} is missing; it is {self.found!r}"
        return f"{self.name} is {self.kept!r}; {self.found!r} was found"


@dataclass(frozen=True)
class Checked:
    """The numbers of one scene, or those that follow from all scenes."""

    name: str
    numbers: tuple[Number, ...]
    within: float = OTHER_MACHINES  # largest difference that is not wrong

    @property
    def difference(self) -> float:
        """The largest difference."""
        return max((number.difference for number in self.numbers), default=0.0)

    @property
    def wrong(self) -> list[Number]:
        """The numbers that do not hold, the most different first."""
        return [n for n in self._different if n.difference > max(self.within, n.unsteady)]

    @property
    def unsteady(self) -> list[Number]:
        """The numbers of a random search that differ by no more than they may, likewise."""
        return [n for n in self._different if n.difference <= n.unsteady]

    @property
    def _different(self) -> list[Number]:
        found = [number for number in self.numbers if number.difference > self.within]
        return sorted(found, key=lambda number: -number.difference)

    @property
    def verdict(self) -> Verdict:
        """The verdict on these numbers."""
        if self.wrong:
            return Verdict.WRONG
        if self.unsteady:
            return Verdict.UNSTEADY
        return Verdict.EQUAL if self.difference <= EQUAL else Verdict.CLOSE


@dataclass(frozen=True)
class Audit:
    """The result of running scenes of a record again."""

    record: Record
    whole: bool  # whether the protocol was run as a whole, since no scene can be run alone
    scenes: tuple[Checked, ...]  # those that were run again
    not_run: tuple[str, ...]  # the other scenes
    totals: Checked  # scores and intervals that follow from the scenes
    facts: tuple[str, ...]  # sentences about facts of the record that are wrong
    machine: tuple[str, ...]  # what differs between this machine and the record's
    unchecked: tuple[str, ...] = ()  # numbers that could not be checked without the other scenes

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of all."""
        if self.facts:
            return Verdict.WRONG
        return max(checked.verdict for checked in (*self.scenes, self.totals))


def ends(intervals: Mapping[str, tuple[float, float]]) -> dict[str, float]:
    """The ends of intervals, by names of their own."""
    return {
        f"{name}, {end} end of the interval": value
        for name, both in intervals.items()
        for end, value in zip(("lower", "upper"), both, strict=True)
    }


def compared(
    kept: Mapping[str, float],
    found: Mapping[str, float],
    unsteady: Mapping[str, float] | None = None,
) -> tuple[Number, ...]:
    """The numbers of a record and those that were found, by name; a number may be missing.

    Args:
        kept: of the record.
        found: now.
        unsteady: see `Protocol.unsteady`; None: no number may differ so much.
    """

    def may_differ(name: str) -> float:
        last = name.partition(",")[0].rpartition("/")[2]  # without "lower end of the interval"
        return (unsteady or {}).get(last, 0.0)

    return tuple(
        Number(name, kept.get(name), found.get(name), may_differ(name))
        for name in dict.fromkeys([*kept, *found])
    )
