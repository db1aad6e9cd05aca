"""Names become models and protocols: of `import harness` and of the command line alike."""

import logging
import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from harness import errors, expression, plugins, progress, registry, wrapping
from harness.data.weights import NotHere
from harness.errors import InputError, UnknownNameError
from harness.settings import Options, accepted
from harness.types import Descriptor, Protocol
from harness.vector_folder import Model, VectorFolder

log = logging.getLogger(__name__)


def load_model(name_or_path: str | Path | Model, *, device: str = "auto") -> Model:
    """The model of a name or a path.

    Args:
        name_or_path: an installed name, as `harness models` lists them; "FILE.py:NAME"; an ONNX
            file; or a folder of vectors, a CSV file for each block of patches. Wrappers may follow
            a model: "sift|root". A model is returned as it is.
        device: "cpu", "cuda", or "auto": CUDA where it works.

    Raises:
        UnknownNameError: if nothing has this name; says the nearest name, or the members of a
            family.
        ImportFailedError: if a package that the model needs is missing; says how to install it.
        HarnessError: if the model can't be made, as `plugins.model` says.
    """
    if isinstance(name_or_path, Descriptor | VectorFolder):
        return name_or_path
    name = str(name_or_path)
    members = model_names(name)
    if members != [name]:
        raise UnknownNameError(
            f"{name!r} is a family of models: {', '.join(members)}; name one of them"
        )
    return plugins.model(name, device=device)


def wrap(model: Descriptor, wrappers: str, *, device: str = "auto") -> Descriptor:
    """A descriptor with wrappers around it, as "MODEL|WRAPPERS" is for a model that has a name.

    Args:
        model: the descriptor.
        wrappers: from left to right, as in "root|signs".
        device: for models that are arguments of wrappers, as for `load_model`.

    Raises:
        UnknownNameError: if there is no such wrapper; says the nearest name.
        HarnessError: as `wrapping.applied` does.
    """
    calls = expression.calls(wrappers)
    return wrapping.applied(model, calls, partial(load_model, device=device))


def load_models(given: Sequence[str | Path | Model], *, device: str = "auto") -> list[Model]:
    """Models of different names. The name of a family stands for its members that are here.

    Raises:
        InputError: if two models have one name: a record is found by the name of its model.
        HarnessError: as `load_model` does.
    """
    sources: dict[str, str] = {}
    models: list[Model] = []
    for one in given:
        for spec, model in _members(one, device):
            if model.name in sources:
                raise InputError(
                    f"two models are called {model.name}: {sources[model.name]} and {spec};"
                    " leave one out, or give it another name"
                )
            sources[model.name] = spec
            models.append(model)
    return models


def load_protocol(
    name: str, *, data: str | Path | None = None, split: str | None = None, **options: Any
) -> Protocol:
    """The protocol of a name, opened on its data.

    Args:
        name: as `harness protocols` lists them: "hpatches/matching".
        data: folder of the data set; else the folder HARNESS_DATA, else a small sample is made.
        split: a split of the data set; the protocol's usual one where None.
        options: further options of the protocol, as for `harness eval --set`: ties="official".

    Raises:
        UnknownNameError: if there is no such protocol, option or split, says the nearest; or if it
            is a family, says its members.
        HarnessError: if the data can't be read.
    """
    members = protocol_names(name)
    if members != [name]:
        raise UnknownNameError(
            f"{name!r} is a family of protocols: {', '.join(members)}; name one of them"
        )
    (protocol,) = load_protocols(name, of_data(options, data, split))
    return protocol


def load_protocols(name: str, options: Options, *, silent: bool = True) -> list[Protocol]:
    """The protocols of a name, or of a family, on one data set.

    Args:
        name: of a protocol or of a family.
        options: of each of them, "data" among them; where it is missing, as in `load_protocol`.
        silent: show nothing on stderr while data are opened.

    Raises:
        HarnessError: as `load_protocol` does.
    """
    names = protocol_names(name)
    given = with_data(options)
    return [opened(one, given, silent=silent) for one in names]


def of_data(options: Mapping[str, Any], data: str | Path | None, split: str | None) -> Options:
    """Options with a folder of data and a split among them, unless they are None."""
    named = {"data": None if data is None else Path(data), "split": split}
    return {**options, **{name: value for name, value in named.items() if value is not None}}


def with_data(options: Options) -> Options:
    """Options with the folder HARNESS_DATA, if it is set and they name no data.

    Without both, the log says that a sample is used.
    """
    found = dict(options)
    if "data" not in found and os.environ.get("HARNESS_DATA"):
        found["data"] = Path(os.environ["HARNESS_DATA"])
    if "data" not in found:
        log.warning(
            "NO DATA SET GIVEN: this runs on a small sample made from photographs. Its numbers"
            " compare with no other's; give --data DIR or set HARNESS_DATA"
        )
    return found


def model_names(name: str) -> list[str]:
    """The name of a model itself, or those of a family: "tfeat" stands for "tfeat.liberty" etc.

    Wrappers of a family, as in "tfeat|root", are around each of its members.
    """
    base, wrappers = expression.parse(name)
    known = registry.names("descriptors")
    below = [one for one in known if one.startswith(f"{base}.")]
    if not below or base in known:
        return [name]
    return [expression.BAR.join([one, *map(str, wrappers)]) for one in below]


def protocol_names(name: str) -> list[str]:
    """The name of a protocol itself, or those of a family: "hpatches" stands for its three tasks.

    Raises:
        UnknownNameError: if there is none; says the nearest name.
        InputError: if these are several names.
    """
    if "," in name:
        raise InputError(f"--protocol takes one name, not {name!r}: give each in a run of its own")
    known = registry.names("protocols")
    below = [one for one in known if one.startswith(f"{name}/")]
    if name in known:
        return [name]
    if not below:
        families = {one.partition("/")[0] for one in known}
        raise UnknownNameError(registry.unknown("protocols", name, {*known, *families}))
    return below


def opened(name: str, given: Options, *, silent: bool) -> Protocol:
    """The protocol of a name with its options; without data it takes its sample, silently."""
    maker = registry.load("protocols", name)
    what = f"protocol {name}"
    with errors.naming(what), progress.shown(f"opening {what}", silent=silent):
        protocol: Protocol = maker(**accepted(maker, given, what))
    return protocol


def _members(one: str | Path | Model, device: str) -> list[tuple[str, Model]]:
    """A model with its name; or those of a family whose weights are here."""
    if isinstance(one, Descriptor | VectorFolder):
        return [(one.name, one)]
    names = model_names(str(one))
    found: list[tuple[str, Model]] = []
    for name in names:
        try:
            found.append((name, plugins.model(name, device=device)))
        except (NotHere, RuntimeError) as error:
            of_weights = isinstance(error, NotHere) or isinstance(error.__cause__, NotHere)
            if names == [str(one)] or not of_weights or (name == names[-1] and not found):
                raise
            log.warning("passed over: %s", error)
    return found
