"""Wrappers: functions that make one descriptor from another, by name from entry points.

A user writes "MODEL|NAME" or "MODEL|NAME(ARG,...)", as `harness.expression` reads it. This module
loads the wrapper, converts its arguments and sets the identity of the new descriptor.
"""

import hashlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np

from harness import expression, parameters, registry
from harness.code import code_sha256
from harness.data.photographs import all_of
from harness.errors import FAILURES, ComputeError, HarnessError, InputError, InputTypeError, text_of
from harness.expression import Call
from harness.parameters import Parameters
from harness.settings import Typed, checked
from harness.types import Conventions, Descriptor
from harness.vector_folder import VectorFolder

Load = Callable[[str], Descriptor | VectorFolder]  # makes the model of a text


@dataclass(frozen=True)
class Wrapper:
    """One entry of `harness.wrappers`: a function from a descriptor to another descriptor.

    The function takes the descriptor, then the arguments in the parentheses by position. An
    argument that is annotated as `Descriptor` is the text of a model; as `Parameters`, the path of
    a file of `harness fit`. Other arguments are read as in `harness eval --set`.

    The function decides the fields `describe`, `distance`, `dim`, `stored` and `network` of the new
    descriptor, for example by `dataclasses.replace`. The harness sets the other fields. It drops a
    network that is still that of the old descriptor, since it does not give the new vectors.
    """

    wrap: Callable[..., Descriptor]
    revision: int = 1  # raised by hand when the vectors change
    distances: frozenset[str] | None = None  # names of those it can wrap; None: any
    # Learns the arrays of a file from vectors of training patches; keyword arguments are options.
    fit: Callable[..., Mapping[str, np.ndarray]] | None = None


def applied(model: Descriptor | VectorFolder, wrappers: Sequence[Call], load: Load) -> Descriptor:
    """A descriptor after wrappers, applied from left to right.

    Args:
        model: the descriptor.
        wrappers: with their arguments.
        load: makes the models that are arguments.

    Raises:
        UnknownNameError: if there is no such wrapper; says the nearest name.
        InputTypeError: if the model is a folder of vectors.
        InputError: if an argument or a file is wrong, or a wrapper does not take these vectors.
        ComputeError: if the code of a wrapper fails.
    """
    wrapped = _descriptor(model, "it can't be wrapped: wrap the model that describes the patches")
    for call in wrappers:
        wrapped = _wrapped(wrapped, call, load)
    return wrapped


def installed(name: str) -> Wrapper:
    """The wrapper of a name.

    Raises:
        UnknownNameError: if there is none; says the nearest name.
        InputTypeError: if the entry point names another object.
    """
    found = registry.load("wrappers", name)
    if not isinstance(found, Wrapper):
        raise InputTypeError(
            f"wrapper {name!r} of {registry.source('wrappers', name)} is {found!r:.60}; a"
            " harness.Wrapper is wanted"
        )
    return found


def must_take(wrapper: Wrapper, name: str, model: Descriptor) -> None:
    """Refuse a descriptor whose vectors are compared by a distance that the wrapper does not take.

    Raises:
        InputError: if they are.
    """
    if wrapper.distances is not None and model.distance.name not in wrapper.distances:
        raise InputError(
            f"{name} takes vectors compared by {' or '.join(sorted(wrapper.distances))}; those of"
            f" {model.name} are compared by {model.distance.name}"
        )


@dataclass(frozen=True)
class _Argument:
    """An argument of a wrapper: its value, its text in the name, and its part of the identity."""

    value: object
    text: str
    model: Descriptor | None = None
    parameters: Parameters | None = None


def _wrapped(base: Descriptor, call: Call, load: Load) -> Descriptor:
    wrapper = installed(call.name)
    must_take(wrapper, call.name, base)
    arguments = _arguments(wrapper, call, base, load)
    try:
        made = wrapper.wrap(base, *(each.value for each in arguments))
    except HarnessError:
        raise
    except FAILURES as error:
        raise ComputeError(f"{call} fails on {base.name}: {text_of(error)}") from error
    if not isinstance(made, Descriptor):
        raise InputTypeError(f"{call} returned {made!r:.60}; a harness.Descriptor is wanted")
    named = str(Call(call.name, tuple(each.text for each in arguments)))
    models = [base, *(each.model for each in arguments if each.model)]
    files = [each.parameters for each in arguments if each.parameters]
    return replace(
        base,
        name=f"{base.name}{expression.BAR}{named}",
        describe=made.describe,
        distance=made.distance,
        dim=made.dim,
        stored=made.stored,
        network=None if made.network is base.network else made.network,
        trained_on=_joined([each.trained_on for each in models], files),
        licence=" AND ".join(dict.fromkeys(each.licence for each in models)),
        photographs=() if files else all_of(each.learned_from for each in models) or (),
        weights=_hash([*(each.weights for each in models), *(each.sha256 for each in files)]),
        revision=sum(each.revision - 1 for each in models) + wrapper.revision,
        code=_code([each.code for each in models], wrapper),
        libraries=tuple(
            sorted({"numpy", *made.libraries, *(x for m in models for x in m.libraries)})
        ),
        provider=" + ".join(dict.fromkeys(each.provider for each in models)),
        conventions=_extended(base.conventions, named, wrapper),
    )


def _arguments(wrapper: Wrapper, call: Call, base: Descriptor, load: Load) -> list[_Argument]:
    _, *parameters_ = inspect.signature(wrapper.wrap, eval_str=True).parameters.values()
    wanted = [each.annotation for each in parameters_ if each.kind is not each.VAR_POSITIONAL]
    needed = sum(each.default is each.empty for each in parameters_[: len(wanted)])
    given = len(call.arguments)
    rest = [each.annotation for each in parameters_ if each.kind is each.VAR_POSITIONAL]
    if given < needed or (given > len(wanted) and not rest):
        usage = Call(call.name, tuple(map(_usage, parameters_)))
        raise InputError(f"wrong number of arguments in {call}: write {usage}")
    annotations = [*wanted[:given], *rest * (given - len(wanted))]
    return [
        _argument(text, annotation, call, wrapper, base, load)
        for text, annotation in zip(call.arguments, annotations, strict=True)
    ]


def _argument(
    text: str, annotation: Any, call: Call, wrapper: Wrapper, base: Descriptor, load: Load
) -> _Argument:
    kinds = {annotation, *get_args(annotation)}
    if Descriptor in kinds:
        other = _descriptor(load(text), f"{call.name} takes models that describe patches")
        return _Argument(other, other.name, model=other)
    if Parameters in kinds:
        found = parameters.read(Path(text))
        parameters.must_fit(found, call.name, wrapper.revision, base)
        return _Argument(found, found.file.stem, parameters=found)
    return _Argument(checked(Typed(text), annotation, f"an argument of {call}"), text)


def _usage(parameter: inspect.Parameter) -> str:
    name = parameter.name.upper().replace("_", "-")
    if parameter.kind is parameter.VAR_POSITIONAL:
        return f"{name},..."
    return name if parameter.default is parameter.empty else f"[{name}]"


def _descriptor(model: Descriptor | VectorFolder, advice: str) -> Descriptor:
    if isinstance(model, VectorFolder):
        raise InputTypeError(f"{model.name} is a folder of vectors: {advice}")
    return model


def _joined(
    trained_on: Sequence[frozenset[str] | None], files: Sequence[Parameters]
) -> frozenset[str] | None:
    """All training data; None if those of one model are unknown."""
    if None in trained_on:
        return None
    of_files = (frozenset(each.about.trained_on) for each in files)
    return frozenset().union(*filter(None, trained_on), *of_files)


def _hash(hashes: Sequence[str | None]) -> str | None:
    """SHA-256 of several hashes in order; one hash alone stays as it is."""
    known = [each for each in hashes if each]
    if len(known) < 2:
        return known[0] if known else None
    return hashlib.sha256(" ".join(each or "none" for each in hashes).encode()).hexdigest()


def _code(codes: Sequence[str], wrapper: Wrapper) -> str:
    own = code_sha256(wrapper.wrap.__module__)
    return hashlib.sha256(" ".join([*codes, own]).encode()).hexdigest()


def _extended(conventions: Conventions | None, named: str, wrapper: Wrapper) -> Conventions | None:
    """Conventions with the wrapper and the first line of its docstring behind the normalisation."""
    if conventions is None:
        return None
    said = (inspect.getdoc(wrapper.wrap) or "").partition("\n")[0].rstrip(".")
    then = f"then {named}{f': {said}' if said else ''}"
    return replace(conventions, normalisation=f"{conventions.normalisation}; {then}")
