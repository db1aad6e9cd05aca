"""Names of the data that models are trained on and that protocols test.

Whether a model has seen what it is tested on is decided by names, so that every way to write one
must lead to the same: "liberty", "UBC/Liberty" and "phototour/liberty" are one scene. Protocols
bring the names of their data by an entry point in `harness.data_names`, a list of `Family`. What
no protocol tests is named "other/NAME". Any other name is unknown, and tables say so.
"""

import logging
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

from harness import registry

log = logging.getLogger(__name__)

OTHER = "other/"
ALIKE = 0.8  # by SequenceMatcher, from which a name is taken for a published one, misspelt
HINTED = 0.6  # the same, from which a name is worth asking for


@dataclass(frozen=True)
class Family:
    """Data whose names begin alike: "phototour" and all of "phototour/liberty" and others.

    How a name is written does not matter: only its letters and digits are compared, without case.
    """

    name: str
    aliases: tuple[str, ...] = ()  # other names of the whole
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # -> other names of each
    alone: bool = False  # whether the name of a part is enough: "liberty" is, "wall" is not
    grows: bool = False  # whether a user's folder may be a part, called as the user likes
    sets: tuple[str, ...] = ()  # whole sets made in its form, as "hpatches-mini"


@dataclass(frozen=True)
class DataNames:
    """The names that protocols know, and how each may be written."""

    families: Mapping[str, Family]  # by their names
    written: Mapping[str, str]  # letters and digits of every way to write a name -> the name

    def canonical(self, name: str) -> str | None:
        """The one way to write a name, or None where nobody knows it.

        >>> names = of([Family("phototour", ("ubc",), {"liberty": ()}, alone=True, grows=True)])
        >>> names.canonical("UBC/Liberty"), names.canonical("Photo-Tour/castle")
        ('phototour/liberty', 'phototour/castle')
        >>> names.canonical("phototour/libery"), names.canonical("other/libery")
        (None, 'other/libery')
        """
        if name.casefold().startswith(OTHER):
            rest = name[len(OTHER) :]
            known = self.canonical(rest) if _letters(rest) else rest
            return None if known is not None else OTHER + rest
        steps = name.split("/")
        for n in range(len(steps), 0, -1):
            found = self.written.get(_letters("/".join(steps[:n])))
            if found is not None:
                below = steps[n:]
                if below and "/" not in found and not self._may_be_part(found, below[0]):
                    return None
                return "/".join([found, *below])
        family, called = self._own_set(name)
        return name if family and not self._is_alike(family, called) else None

    def declared(self, name: str) -> str:
        """The name of data that a program came across: the known one, or one of no protocol."""
        return self.canonical(name) or OTHER + name

    def meet(self, trained_on: Iterable[str], sources: Iterable[str]) -> bool:
        """Whether training saw tested data: "hpatches" meets "hpatches/v_wall", and reverse."""
        ours, theirs = (
            {one for name in some for one in self._compared(name)} for some in (trained_on, sources)
        )
        return any(
            a == b or a.startswith(f"{b}/") or b.startswith(f"{a}/") for a in ours for b in theirs
        )

    def unknown(self, trained_on: Iterable[str], sources: Iterable[str]) -> list[str]:
        """Names of training data that neither a protocol knows, nor the tested data bear."""
        tested = [*sources]
        firsts = {one.partition("/")[0] for name in tested for one in self._compared(name)}
        own = firsts - self.families.keys()
        return sorted(
            name
            for name in trained_on
            if self.canonical(name) is None
            and name.casefold().partition("/")[0] not in own
            and not self.meet([name], tested)
        )

    def hint(self, name: str) -> str:
        """What to do about an unknown name."""
        own = name[len(OTHER) :] if name.casefold().startswith(OTHER) else name
        last = _letters(own.rpartition("/")[2])
        close = [
            f"{family.name}/{part}"
            for family in self.families.values()
            for part in family.parts
            if last == _letters(part)
        ] or [
            self.written[one]
            for one in get_close_matches(_letters(own), self.written, n=1, cutoff=HINTED)
            or get_close_matches(last, self.written, n=1, cutoff=HINTED)
        ]
        meant = f"did you mean {' or '.join(map(repr, close))}? " if close else ""
        return f"{meant}Data that no protocol tests are named {OTHER + (own or 'NAME')!r}"

    def _may_be_part(self, whole: str, part: str) -> bool:
        """Whether a user's folder may be called so: it is not a published part, misspelt."""
        if whole not in self.families:
            return True  # below a set that was made here: its parts may be called anything
        return self.families[whole].grows and not self._is_alike(whole, part)

    def _is_alike(self, family: str, called: str) -> bool:
        """Whether a name may stand for a published part of a family."""
        letters = _letters(called)
        parts = self.families[family].parts
        published = {_letters(one) for part, others in parts.items() for one in (part, *others)}
        return (
            letters == ""
            or any(one in letters for one in published)
            or bool(get_close_matches(letters, published, n=1, cutoff=ALIKE))
        )

    def _own_set(self, name: str) -> tuple[str, str]:
        """The family of a part of a set "family-NAME", as readers name a user's, and NAME."""
        whole, slash, _ = name.partition("/")
        for family in self.families if slash else ():
            if whole.casefold().startswith(f"{family}-"):
                return family, whole[len(family) + 1 :]
        return "", ""

    def _compared(self, name: str) -> set[str]:
        """The name as it is compared; of a user's set also that of the part it may be a copy of."""
        found = {(self.canonical(name) or name).casefold().removeprefix(OTHER)}
        family, _ = self._own_set(name)
        if family and (copied := self.written.get(_letters(family + name.partition("/")[2]))):
            found.add(copied)
        return found


def of(families: Iterable[Family]) -> DataNames:
    """The names of some families, and every way to write each."""
    written: dict[str, str] = {}
    by_name = {family.name: family for family in families}
    for family in by_name.values():
        wholes = (family.name, *family.aliases)
        for part, others in family.parts.items():
            for one in (part, *others):
                for whole in (*wholes, *([""] if family.alone else [])):
                    written[_letters(whole + one)] = f"{family.name}/{part}"
        written |= {_letters(name): name for name in family.sets}
    for family in by_name.values():  # last: the name of a whole is never that of a part
        written |= {_letters(whole): family.name for whole in (family.name, *family.aliases)}
    return DataNames(by_name, written)


def known() -> DataNames:
    """The names that installed packages bring; a broken package is told of and left out."""
    families: list[Family] = []
    for name in registry.names("data_names"):
        try:
            brought = registry.load("data_names", name)
        except (ImportError, LookupError) as error:
            log.warning("%s", error)
            continue
        if isinstance(brought, (list, tuple)) and all(isinstance(one, Family) for one in brought):
            families += brought
        else:
            origin = registry.source("data_names", name)
            log.warning(
                "data names %r of %s are %.60r; a list of Family is wanted", name, origin, brought
            )
    return of(families)


def _letters(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(letter for letter in folded if letter.isalnum())
