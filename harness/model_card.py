"""The card of one model: all facts that are known about it.

A model with a row in a catalogue is not made, so its card needs neither its weights nor its
libraries. Any other model is made, and its descriptor is asked.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict

from harness import catalogue, loading, plugins, registry
from harness.catalogue import ModelRow
from harness.data import published_weights, weights

Facts = dict[str, object]
"""Facts by name, in the order of the card, as JSON has them. None: unknown."""


def cards(spec: str) -> list[Facts]:
    """The card of a model, or of each member of a family.

    Args:
        spec: a model, as for `load_model`, or the name of a family.

    Raises:
        HarnessError: if a model without a row can't be made, as `load_model` says.
    """
    rows = catalogue.rows(ModelRow)
    return [
        _of_row(rows[name]) if name in rows else _of_made(name)
        for name in loading.model_names(spec)
    ]


def lines(facts: Facts) -> list[str]:
    """A card as text: the name, then a line for each fact that is known."""
    shown = {name: value for name, value in facts.items() if name != "name"}
    shown |= {"trained_on": facts["trained_on"] or _NO_DATA[facts["trained_on"] is None]}
    return [str(facts["name"]), *_indented(shown, 1)]


_NO_DATA = {False: "nothing", True: "unknown"}


def _indented(facts: Mapping[str, object], depth: int) -> Iterator[str]:
    """A line for each fact that is known, its text in one column; nested facts are indented."""
    known = {name: value for name, value in facts.items() if value not in (None, [], {})}
    flat = [name for name, value in known.items() if not isinstance(value, Mapping)]
    width = max(map(len, flat), default=0)
    for name, value in known.items():
        label = f"{'  ' * depth}{name if depth > 1 else name.replace('_', ' ')}"
        if isinstance(value, Mapping):
            yield label
            yield from _indented(value, depth + 1)
        else:
            text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            yield f"{label:{width + 2 * depth}}  {text}"


def _of_row(row: ModelRow) -> Facts:
    known = published_weights.known()
    files = [known[name] for name in row.weights or (row.name,) if name in known]
    absent = [file.name for file in files if not weights.is_here(file)]
    if absent:
        at = f"not here: harness weights fetch {' '.join(absent)}"
    elif files:
        at = ", ".join(str(weights.path(file)) for file in files)
    else:
        at = registry.source("descriptors", row.name)
    hashes = ", ".join(file.sha256 or f"git {file.git_blob}" for file in files)
    return _facts(row, at, hashes or row.sha256)


def _of_made(name: str) -> Facts:
    made = plugins.model(name, device="cpu")
    return _facts(catalogue.row_of(made), None, made.weights)


def _facts(row: ModelRow, weights_at: str | None, sha256: str | None) -> Facts:
    said = asdict(row.conventions) if row.conventions else {}
    side = said.get("side")
    size = f"{side}x{side} pixels" if side else "the patch at its own size"
    return {
        "name": row.name,
        "source": said.get("source"),
        "keypoint": said.get("keypoint"),
        "input": size if said else None,
        "normalisation": said.get("normalisation"),
        "dim": row.dim,
        "bytes": row.bytes,
        "distance": row.distance,
        "trained_on": None if row.trained_on is None else sorted(row.trained_on),
        "licence": row.licence,
        "weights": sha256,
        "weights_at": weights_at,
        "revision": row.revision,
        "libraries": list(row.libraries or row.packages),
        **row.more,
    }
