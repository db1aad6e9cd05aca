"""Opens the protocol, the data and the model that a record names; others are refused."""

import os
import re
from pathlib import Path

from harness import expression, loading, registry, settings
from harness.data import datasets
from harness.errors import InputError, UnknownNameError
from harness.records import record as results
from harness.records.record import Record
from harness.settings import Options, Typed
from harness.types import Protocol
from harness.vector_folder import Model

SAMPLE = "-sample"  # end of the names of the sets that protocols make themselves
PLAIN = r"[\w.+-]+(\|[\w-]+)*"  # names of models without a path, as "sift|root"


def open_protocol(
    kept: Record, data: str | Path | None, split: str | None, options: Options, *, silent: bool
) -> Protocol:
    """The protocol of a record, on the record's data.

    Raises:
        InputError: if its version, its options or the data are not the record's; says both.
    """
    name = kept.protocol.name
    if name not in registry.names("protocols"):
        raise UnknownNameError(registry.unknown("protocols", name, registry.names("protocols")))
    known = settings.named(registry.load("protocols", name))
    given: Options = {key: Typed(value) for key, value in kept.protocol.options.items()}
    place = _data(kept, data)
    if place is not None:
        given["data"] = place
    tested, _, remarks = kept.data.split.partition("@")
    if "split" in known:
        given["split"] = tested if split is None else split
    elif split is not None:
        raise UnknownNameError(f"{name} has no option split")
    if not kept.data.complete and "allow_partial" in known and "partial" in remarks.split("+"):
        given["allow_partial"] = True
    protocol = loading.open_protocol(name, given | options, silent=silent)
    if protocol.version != kept.protocol.version:
        raise InputError(
            f"the record is of version {kept.protocol.version} of {name}, and this harness has"
            f" version {protocol.version}: their numbers can't be compared; evaluate the model"
            f" again, or audit by harness {kept.environment.harness}"
        )
    if dict(protocol.options) != kept.protocol.options:
        told = [
            results.options_text(o) or "none" for o in (kept.protocol.options, protocol.options)
        ]
        raise InputError(
            f"the record has the options {told[0]}, these are {told[1]}: give the record's"
        )
    dataset = protocol.dataset
    if dataset.sha256 != kept.data.sha256:
        raise InputError(
            f"the record is of other data: of {kept.data.name}, split {kept.data.split}, sha256"
            f" {kept.data.sha256[:12]}; {place or 'the sample'} is {dataset.name}, split"
            f" {dataset.split}, sha256 {dataset.sha256[:12]}. Give the record's data by --data,"
            " and further options of the protocol by --set"
        )
    return protocol


def _data(kept: Record, data: str | Path | None) -> Path | None:
    """The folder of a record's data; None for a sample, which its protocol makes."""
    if data is not None:
        return Path(data)
    if kept.data.name.endswith(SAMPLE):
        return None
    if os.environ.get("HARNESS_DATA"):
        return Path(os.environ["HARNESS_DATA"])
    try:
        found = datasets.path(kept.data.name)
    except UnknownNameError:
        found = None
    if found is None:
        raise InputError(
            f"the record is of {kept.data.name}, split {kept.data.split}: give the folder of these"
            " data by --data"
        )
    return found


def open_model(kept: Record, given: str | Path | Model | None, device: str) -> Model:
    """The model of a record, if the given or installed one is the same.

    A stranger's record loads no file: unless the user gives a model, it must be an installed name,
    and wrappers without arguments.

    Raises:
        UnknownNameError: if the record names no installed model, and none is given.
        InputError: if weights, revision, dim or distance are not the record's; says both.
    """
    if given is None:
        name = kept.model.name
        base, *_ = name.split(expression.BAR)
        if base not in registry.names("descriptors") or not re.fullmatch(PLAIN, name):
            raise UnknownNameError(
                f"the record is of a model {name!r}, which is no installed name: give the model by"
                " --model"
            )
        given = name
    model = loading.load_model(given, device=device)
    wanted = kept.model.identity
    here: dict[str, object] = {
        "weights": model.weights,
        "revision": model.revision,
        "dim": model.dim,
        "distance": model.distance.name,
    }
    if model.weights is None:  # nothing but the name tells it from other models
        here["name"] = model.name
    for fact, value in here.items():
        if value != wanted[fact]:
            told = "sha256 of weights" if fact == "weights" else fact
            raise InputError(
                f"the record is of another model: its {told} is {_short(wanted[fact])}, but that of"
                f" {model.name} is {_short(value)}. Give the record's model by --model"
            )
    return model


def _short(value: object) -> str:
    text = "none" if value is None else str(value)
    return text[:12] if re.fullmatch("[0-9a-f]{64}", text) else text
