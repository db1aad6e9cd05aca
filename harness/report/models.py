"""The facts of each model in a report: kind, licence, training data, size, card, training curve.

Facts come from the records and from the installed packages. No fact depends on the machine: whether
weights need a download is told, and not whether they are here.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness import catalogue, expression, model_card, registry
from harness.catalogue import ModelRow, Moment
from harness.data import published_weights
from harness.distances import DISTANCES
from harness.errors import HarnessError
from harness.records.record import ModelFacts, Record
from harness.types import size

HANDCRAFTED, TRAINED, PUBLISHED, LEARNED = (
    "handcrafted", "trained here", "published weights", "learned",
)  # fmt: skip
KINDS = {
    HANDCRAFTED: "it learned nothing",
    TRAINED: "its weights were trained with this harness, and their training curve is known",
    PUBLISHED: "its weights are those that its authors published",
    LEARNED: "it learned from data, in another way, or nobody says from which data",
}
OF_THE_MACHINE = ("name", "weights_at", "scores")  # facts of a card that no report shows


@dataclass(frozen=True)
class ReportedModel:
    """A model of a report."""

    name: str
    kind: str  # one of KINDS
    licence: str
    trained_on: Sequence[str] | None  # None: unknown
    in_products: str  # one of catalogue.PRODUCTS
    size: str  # of a vector, as tables show it: "128", "256 bits"
    is_binary: bool
    bytes: int  # of a vector
    has_weights: bool  # no download is needed: weights come with the package, or there are none
    facts: Mapping[str, object]  # further facts of its card
    curve: Sequence[Moment]


def models(records: Iterable[Record]) -> list[ReportedModel]:
    """All models of the records, and all that are installed, by name."""
    of_records = {record.model.name: record.model for record in records}
    rows = catalogue.rows(ModelRow)
    published = published_weights.known()
    installed = set(registry.names("descriptors"))
    found = []
    for name in sorted({*of_records, *rows} | installed):
        base = inside(name)
        row = rows.get(base)
        files = [
            one for one in (row.weights if row and row.weights else [base]) if one in published
        ]
        card = _card(base) if base in installed else {}
        known = of_records.get(name) or _of_card(name, row, card)
        if known:
            found.append(_model(known, row, bool(files), card))
    return found


def _model(
    known: ModelFacts, row: ModelRow | None, has_files: bool, card: Mapping[str, object]
) -> ReportedModel:
    learned = known.trained_on is None or bool(known.trained_on)
    kind = LEARNED if learned else HANDCRAFTED
    if row and row.curve:
        kind = TRAINED
    elif has_files:
        kind = PUBLISHED
    shown = {name: value for name, value in card.items() if name not in OF_THE_MACHINE}
    base = inside(known.name)
    own = {"distance": known.distance, "revision": known.revision}
    facts = {
        "made_from": base if base != known.name else "",
        **own,
        "weights": known.weights,
        "recipe": known.recipe,
        "seed": known.seed,
        **shown,
        **own,  # the card of a wrapped model is that of the model inside
    }
    for name in ("dim", "bytes", "licence", "trained_on"):
        facts.pop(name, None)
    return ReportedModel(
        name=known.name,
        kind=kind,
        licence=known.licence,
        trained_on=known.trained_on,
        in_products=catalogue.in_products(_licensed(known, row)),
        size=known.size,
        is_binary=known.distance == "hamming",
        bytes=size(DISTANCES[known.distance], known.dim, known.stored),
        has_weights=not has_files,
        facts={name: value for name, value in facts.items() if value not in (None, [], {}, "")},
        curve=row.curve if row and known.name == row.name else (),
    )


def inside(name: str) -> str:
    """The model inside wrappers: "sift" of "sift|root"."""
    try:
        return expression.parse(name)[0]
    except HarnessError:  # the name of a plug-in may be of any form
        return name


def _card(name: str) -> Mapping[str, object]:
    """The card of an installed model; empty if the model can't be made here."""
    try:
        return next((card for card in model_card.cards(name) if card["name"] == name), {})
    except (HarnessError, RuntimeError):
        return {}


def _of_card(name: str, row: ModelRow | None, card: Mapping[str, object]) -> ModelFacts | None:
    """The facts of an installed model without records."""
    if not card:
        return None
    trained = card["trained_on"]
    return ModelFacts(
        name=name,
        dim=int(str(card["dim"])),
        distance=str(card["distance"]),
        licence=str(card["licence"]),
        trained_on=[*map(str, trained)] if isinstance(trained, list) else None,
        weights=row.sha256 if row else None,
        revision=int(str(card["revision"])),
        stored=row.stored if row else None,
    )


def _licensed(known: ModelFacts, row: ModelRow | None) -> ModelRow:
    """A row with what licences of a model are about; `row` is that of the model inside wrappers."""
    if row and row.name == known.name:
        return row
    trained_on = None if known.trained_on is None else frozenset(known.trained_on)
    images = row.images if row and row.trained_on == trained_on else None  # a wrapper may learn
    return ModelRow(known.name, known.dim, known.distance, trained_on, known.licence, images=images)
