"""What is installed, with the facts that people choose by.

Packages bring the facts as rows: a function that returns them, by an entry point in
`harness.catalogues`. A row needs neither weights nor the libraries that the model needs. A model
without a row is made, to ask it.
"""

import json
import logging
import platform
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

from harness import data_names, extras, plugins, registry
from harness.data import datasets, published_weights, weights
from harness.data.weights import NotHere, Weights
from harness.distances import DISTANCES
from harness.errors import HarnessError, UnknownNameError
from harness.files import folders
from harness.types import Conventions, Descriptor, size
from harness.vector_folder import Model

PERMISSIVE = frozenset(
    {"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC-BY-2.0", "CC-BY-3.0",
     "CC-BY-4.0", "CC0-1.0", "ISC", "LicenseRef-public-domain", "MIT", "MIT-0", "Unlicense",
     "Zlib"}
)  # fmt: skip
"""Licences, by their SPDX names, that allow any use, and ask for no more than to be named."""

SHARE_ALIKE = frozenset({"CC-BY-SA-2.0", "CC-BY-SA-3.0", "CC-BY-SA-4.0"})
"""Licences that allow any use, and ask that changed versions are passed on under the same terms."""

KINDS = {"permissive": PERMISSIVE, "share-alike": PERMISSIVE | SHARE_ALIKE}
"""Names for several licences: a model of a kind has only these, and so have its images."""

PRODUCTS = {
    "yes": "code, weights and training images have permissive licences",
    "share-alike": "they have permissive or share-alike licences",
    "no": "a licence does not allow it, or the licence of the training images is unknown",
}
"""What `in_products` says of a model, and why."""

OF_THE_CARD = (  # fields of a row that no list of models shows
    "packages", "weights", "sha256", "revision", "conventions", "stored", "libraries", "more",
    "curve", "images",
)  # fmt: skip

Row = TypeVar("Row", "ModelRow", "ProtocolRow")

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Moment:
    """Training progress since the previous moment."""

    step: int
    loss: float | None  # mean
    fpr95: float | None  # of held-out points, in [0, 1]; None if there are none


@dataclass(frozen=True)
class ModelRow:
    """The facts of one model; those that a Descriptor has, too, mean the same."""

    name: str
    dim: int
    distance: str
    trained_on: frozenset[str] | None
    licence: str
    packages: tuple[str, ...] = ()  # of extras, which must be installed: "torch", "onnx"
    weights: tuple[str, ...] = ()  # names of published weights; (): those of its own name, if any
    sha256: str | None = None  # of weights that come with its package
    revision: int = 1
    conventions: Conventions | None = None
    stored: str | None = None
    libraries: tuple[str, ...] = ()  # of a model that was made and asked
    more: Mapping[str, object] = field(default_factory=dict)  # further facts of its card, for JSON
    curve: tuple[Moment, ...] = ()  # of its training
    images: frozenset[str] | None = None  # licences of the images of its training, if known

    @property
    def bytes(self) -> int:
        """Size of a vector where it is kept."""
        return size(DISTANCES[self.distance], self.dim, self.stored)


@dataclass(frozen=True)
class ProtocolRow:
    """The facts of one protocol."""

    name: str
    headline: str  # the score that tables are sorted by


@dataclass(frozen=True)
class ListedModel:
    """An installed model."""

    name: str
    source: str  # the package that brings it
    row: ModelRow | None  # None where the model can't be asked; `remedy` says why
    here: bool  # whether its weights are here, or it needs none
    remedy: str = ""  # what to do before it can be used: a command, or an error; "" if nothing
    patches_per_second: float | None = None  # in the newest run on this machine

    def as_json(self) -> dict[str, object]:
        """Its facts as JSON has them: `trained_on` is null where nobody says on what."""
        row = self.row
        facts = {**asdict(row), "bytes": row.bytes} if row else {}
        for name in OF_THE_CARD:
            facts.pop(name, None)
        if row and row.trained_on is not None:
            facts["trained_on"] = sorted(row.trained_on)
        own = {name: value for name, value in asdict(self).items() if name != "row"}
        own["weights_here"] = own.pop("here")
        return facts | own


@dataclass(frozen=True)
class ListedProtocol:
    """An installed protocol."""

    name: str
    source: str  # the package that brings it
    headline: str | None  # None where no row says
    data: Mapping[str, str]  # published sets that it reads -> "here", "incomplete" or "not here"

    def as_json(self) -> dict[str, object]:
        """Its facts as JSON has them."""
        return {**asdict(self), "data": dict(self.data)}


def rows(kind: type[Row]) -> dict[str, Row]:
    """The rows of a kind that installed packages bring, by name."""
    found: dict[str, Row] = {}
    for name in registry.names("catalogues"):
        try:
            brought = registry.load("catalogues", name)()
        except (ImportError, LookupError) as error:  # one broken package must not hide others
            log.warning("%s", error)
            continue
        found |= {row.name: row for row in brought if isinstance(row, kind)}
    return found


def row_of(made: Model) -> ModelRow:
    """The facts of a model that was made."""
    row = ModelRow(
        made.name,
        made.dim,
        made.distance.name,
        made.trained_on,
        made.licence,
        sha256=made.weights,
        revision=made.revision,
        libraries=made.libraries,
    )
    if not isinstance(made, Descriptor):
        return row
    images = frozenset(one.licence for one in made.photographs) or None
    return replace(row, conventions=made.conventions, stored=made.stored, images=images)


def models(results: Path | None = None) -> list[ListedModel]:
    """Every installed model.

    Args:
        results: a folder of records, beside which the facts of their runs tell speeds.
    """
    found = rows(ModelRow)
    published = published_weights.known()
    speeds = _speeds(results) if results else {}
    return [
        _listed(name, found.get(name), published, speeds.get(name))
        for name in registry.names("descriptors")
    ]


def protocols() -> list[ListedProtocol]:
    """Every installed protocol, and which of its published data are here."""
    brought = rows(ProtocolRow)
    sets = datasets.known()
    found = []
    for name in registry.names("protocols"):
        family = name.partition("/")[0].partition("+")[0]
        data = {key: one.state for key, one in sorted(sets.items()) if family in one.needs}
        headline = brought[name].headline if name in brought else None
        found.append(ListedProtocol(name, _source("protocols", name), headline, data))
    return found


def of_licence(listed: Iterable[ListedModel], licence: str) -> list[ListedModel]:
    """Models of a licence, however it is capitalised, or of one of KINDS.

    A model is of a kind if its code, its weights and the images that it learned from are. A model
    that learned from images whose licence nobody states is of no kind.
    """
    kind = KINDS.get(licence.casefold())
    if kind is None:
        folded = licence.casefold()
        return [one for one in listed if one.row and one.row.licence.casefold() == folded]
    sets = _licences_of_sets()
    return [one for one in listed if one.row and _licences(one.row, sets) <= kind]


def in_products(row: ModelRow) -> str:
    """Whether licences allow to use a model in products, one of PRODUCTS.

    A model of the kind "permissive" has "yes", another of the kind "share-alike" has "share-alike";
    `of_licence` says which model is of a kind.
    """
    found = _licences(row, _licences_of_sets())
    if found <= KINDS["permissive"]:
        return "yes"
    return "share-alike" if found <= KINDS["share-alike"] else "no"


def _licences_of_sets() -> dict[str, str]:
    return {name: row.licence for name, row in datasets.known().items()}


def _licences(row: ModelRow, sets: Mapping[str, str]) -> set[str]:
    """The licences of a model and of the images that it learned from; "" stands for no licence."""
    own = set(row.licence.split(" AND "))
    if row.images is not None:
        return own | row.images
    if row.trained_on is None:
        return own | {""}
    return own | {sets.get(name, "") for name in row.trained_on}


def not_trained_on(listed: Iterable[ListedModel], data: str) -> list[ListedModel]:
    """Models that were not trained on data, nor on a part of them; surely not: nobody may doubt it.

    Raises:
        UnknownNameError: if no protocol knows these data.
    """
    names = data_names.known()
    if names.canonical(data) is None:
        raise UnknownNameError(f"no data named {data!r}; {names.hint(data)}")
    return [
        one
        for one in listed
        if one.row
        and one.row.trained_on is not None
        and not names.meet(one.row.trained_on, [data])
        and not names.unknown(one.row.trained_on, [data])
    ]


def _listed(
    name: str, row: ModelRow | None, published: Mapping[str, Weights], speed: float | None
) -> ListedModel:
    source = _source("descriptors", name)
    wanted = row.weights if row and row.weights else (name,)
    absent = [one for one in wanted if one in published and not weights.is_here(published[one])]
    fetched = f"harness weights fetch {' '.join(absent)}" if absent else ""
    remedy = ""
    if row is None:
        try:
            made = plugins.model(name, device="cpu")
        except HarnessError as error:
            not_here = isinstance(error, NotHere) or isinstance(error.__cause__, NotHere)
            told = fetched if not_here and fetched else str(error)
            return ListedModel(name, source, None, not not_here, told, speed)
        row = row_of(made)
    else:
        missing = [one for one in row.packages if find_spec(one) is None]
        if missing:
            remedy = extras.remedy(missing[0])
    remedy = " && ".join(filter(None, (remedy, fetched)))
    return ListedModel(name, source, row, not absent, remedy, speed)


def _source(kind: str, name: str) -> str:
    try:
        return registry.source(kind, name)
    except LookupError as error:  # two packages claim it
        return f"! {error}"


def _speeds(results: Path) -> dict[str, float]:
    """Patches a second by model, in the newest run on this machine that described patches."""
    newest: dict[str, tuple[str, float]] = {}
    for file in folders.files(results) if results.is_dir() else ():
        if file.suffix != ".run":
            continue
        try:
            facts = json.loads(file.read_bytes())
            model, when = str(facts["model"]), str(facts["finished"])
            speed, host = float(facts["patches_per_second"]), facts["host"]
        except (OSError, ValueError, KeyError, TypeError):  # of an older form, or of cached vectors
            continue
        if host == platform.node() and when > newest.get(model, ("", 0.0))[0]:
            newest[model] = when, speed
    return {model: speed for model, (_, speed) in newest.items()}
