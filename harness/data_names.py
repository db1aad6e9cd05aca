"""Names of the data that models are trained on and that protocols test.

A model has seen test data if their names match. So all spellings of a name must give the same name:
"liberty", "UBC/Liberty" and "phototour/liberty" are one scene. A package declares the names of its
data by an entry point in `harness.data_names`, a list of `Family`. Data that no protocol tests are
named "other/NAME". Any other name is unknown, and tables say so.
"""

import logging
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

from harness import registry

log = logging.getLogger(__name__)

OTHER = "other/"
ALIKE = 0.8  # least SequenceMatcher ratio at which a name counts as a misspelt published name
HINTED = 0.6  # least ratio at which a message suggests a name


@dataclass(frozen=True)
class Family:
    """Data sets with a common first name: "phototour" stands for "phototour/liberty" and others.

    Only letters and digits of names are compared, without case.
    """

    name: str
    aliases: tuple[str, ...] = ()  # other names of the family
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # part -> its other names
    alone: bool = False  # whether a part's name is enough: "liberty" yes, "wall" no
    grows: bool = False  # whether a user's folder, of any name, can be a part
    sets: tuple[str, ...] = ()  # data sets in its file format, such as "hpatches-mini"


@dataclass(frozen=True)
class DataNames:
    """The names of data that protocols know, with all spellings."""

    families: Mapping[str, Family]  # by name
    written: Mapping[str, str]  # letters and digits of each spelling -> the name

    def canonical(self, name: str) -> str | None:
        """The canonical spelling of a name; None if the name is unknown.

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
            whole = self.written.get(_letters("/".join(steps[:n])))
            if whole is not None:
                below = steps[n:]
                if below and "/" not in whole and not self._may_be_part(whole, below[0]):
                    return None
                return "/".join([whole, *below])
        family, called = self._own_set(name)
        return name if family and not self._is_alike(family, called) else None

    def declared(self, name: str) -> str:
        """The name for data that a reader found: the canonical name, or "other/NAME"."""
        return self.canonical(name) or OTHER + name

    def meet(self, trained_on: Iterable[str], sources: Iterable[str]) -> bool:
        """Whether training and test data overlap; "hpatches" and "hpatches/v_wall" do."""
        ours, theirs = (
            {key for name in data for key in self._compared(name)} for data in (trained_on, sources)
        )
        return any(
            a == b or a.startswith(f"{b}/") or b.startswith(f"{a}/") for a in ours for b in theirs
        )

    def unknown(self, trained_on: Iterable[str], sources: Iterable[str]) -> list[str]:
        """Names of training data that no protocol knows and that are not names of test data."""
        tested = [*sources]
        firsts = {key.partition("/")[0] for name in tested for key in self._compared(name)}
        families = firsts - self.families.keys()
        return sorted(
            name
            for name in trained_on
            if self.canonical(name) is None
            and name.casefold().partition("/")[0] not in families
            and not self.meet([name], tested)
        )

    def hint(self, name: str) -> str:
        """Advice for an unknown name, as the end of a message."""
        bare = name[len(OTHER) :] if name.casefold().startswith(OTHER) else name
        last = _letters(bare.rpartition("/")[2])
        close = [
            f"{family.name}/{part}"
            for family in self.families.values()
            for part in family.parts
            if last == _letters(part)
        ] or [
            self.written[spelling]
            for spelling in get_close_matches(_letters(bare), self.written, n=1, cutoff=HINTED)
            or get_close_matches(last, self.written, n=1, cutoff=HINTED)
        ]
        meant = f"did you mean {' or '.join(map(repr, close))}? " if close else ""
        return f"{meant}Data that no protocol tests are named {OTHER + (bare or 'NAME')!r}"

    def _may_be_part(self, whole: str, part: str) -> bool:
        """Whether a user's folder may have this name: not if it looks like a published part."""
        if whole not in self.families:
            return True  # a set made here: its parts may have any name
        return self.families[whole].grows and not self._is_alike(whole, part)

    def _is_alike(self, family: str, called: str) -> bool:
        """Whether a name looks like that of a published part of a family."""
        letters = _letters(called)
        parts = self.families[family].parts
        published = {_letters(word) for part, others in parts.items() for word in (part, *others)}
        return (
            letters == ""
            or any(word in letters for word in published)
            or bool(get_close_matches(letters, published, n=1, cutoff=ALIKE))
        )

    def _own_set(self, name: str) -> tuple[str, str]:
        """Family and NAME of a user's set "family-NAME"; empty strings for any other name."""
        whole, slash, _ = name.partition("/")
        for family in self.families if slash else ():
            if whole.casefold().startswith(f"{family}-"):
                return family, whole[len(family) + 1 :]
        return "", ""

    def _compared(self, name: str) -> set[str]:
        """The name itself and, if the data may be a copy of a published part, the part's name."""
        names = {(self.canonical(name) or name).casefold().removeprefix(OTHER)}
        family, _ = self._own_set(name)
        if family and (copied := self.written.get(_letters(family + name.partition("/")[2]))):
            names.add(copied)
        return names


def of(families: Iterable[Family]) -> DataNames:
    """The names of these families, with all spellings."""
    written: dict[str, str] = {}
    by_name = {family.name: family for family in families}
    for family in by_name.values():
        wholes = (family.name, *family.aliases)
        for part, others in family.parts.items():
            for word in (part, *others):
                for whole in (*wholes, *([""] if family.alone else [])):
                    written[_letters(whole + word)] = f"{family.name}/{part}"
        written |= {_letters(name): name for name in family.sets}
    for family in by_name.values():  # last, since a family's name takes precedence over a part's
        written |= {_letters(whole): family.name for whole in (family.name, *family.aliases)}
    return DataNames(by_name, written)


def known() -> DataNames:
    """The names that installed packages declare; a broken package is logged and left out."""
    families: list[Family] = []
    for name in registry.names("data_names"):
        try:
            brought = registry.load("data_names", name)
        except (ImportError, LookupError) as error:
            log.warning("%s", error)
            continue
        if isinstance(brought, (list, tuple)) and all(isinstance(item, Family) for item in brought):
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
