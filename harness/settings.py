"""Options that a user gives, and what the maker of a protocol or of a data set takes."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from harness import registry
from harness.errors import InputError, UnknownNameError

Options = dict[str, Any]
Reader = Callable[[str], object]  # raises ValueError or KeyError for text that it can't read

READERS: dict[object, tuple[str, Reader]] = {  # by annotation, with words for what is wanted
    bool: ("true or false", lambda text: {"true": True, "false": False}[text.lower()]),
    int: ("an integer", int),
    float: ("a number", float),
    Path: ("a path", Path),
    str: ("a text", str),
    NoneType: ("none", {"none": None}.__getitem__),
}


def options(*, settings: Sequence[str] | None = None, **given: object) -> Options:
    """The options that the user gave, those of `--set KEY=VALUE` among them as they were typed.

    Raises:
        InputError: if a setting is not KEY=VALUE, or has an option of its own.
    """
    found: Options = {name: value for name, value in given.items() if value is not None}
    for setting in settings or ():
        key, equals, value = setting.partition("=")
        if not equals:
            raise InputError(f"--set takes KEY=VALUE, not {setting!r}")
        name = key.replace("-", "_")
        if name in given:
            raise InputError(f"--set {setting}: use --{name.replace('_', '-')}")
        found[name] = value
    return found


def positional(maker: Callable[..., Any]) -> list[str]:
    """Names of what a maker takes in order."""
    parameters = inspect.signature(maker).parameters.values()
    return [one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD]


def accepted(maker: Callable[..., Any], given: Options, what: str) -> Options:
    """Options as a maker takes them by keyword: text becomes what its annotations ask for.

    An option without annotation gets the text. One that is a dataclass is made of its fields,
    each of which is an option.

    Raises:
        UnknownNameError: if the maker has no such option; says the nearest.
        InputError: if a text can't be read, says what is wanted; or if a dataclass refuses it.
    """
    known = _keywords(maker)
    made: dict[str, Any] = {name: kind for name, kind in known.items() if is_dataclass(kind)}
    parts = {name: _keywords(kind) for name, kind in made.items()}
    for of_one in parts.values():
        known |= of_one
    for name in given:
        if name not in known:
            raise UnknownNameError(f"{what}: {registry.unknown('options', name, known)}")
    found = {
        name: _read(value, known[name], f"{what}: {name}") if isinstance(value, str) else value
        for name, value in given.items()
    }
    for name, of_one in parts.items():
        own = {part: found.pop(part) for part in of_one if part in found}
        if own:
            found[name] = made[name](**own)
    return found


def _keywords(maker: Callable[..., Any]) -> dict[str, Any]:
    """What it takes by keyword alone, with the annotations."""
    return {
        name: parameter.annotation
        for name, parameter in inspect.signature(maker, eval_str=True).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    }


def _read(text: str, annotation: object, what: str) -> object:
    readers = _readers(annotation)
    for reader in readers.values():
        try:
            return reader(text)
        except (ValueError, KeyError):
            continue
    wanted = " or ".join(readers) or "nothing that can be typed"
    raise InputError(f"{what} is {text!r}; wanted is {wanted}")


def _readers(annotation: object) -> dict[str, Reader]:
    """What text may be for an annotation, in its order, and how that is read."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if annotation is inspect.Parameter.empty:
        return _readers(str)
    if origin is Annotated:
        return _readers(parts[0])
    if origin is Literal:
        return {" or ".join(map(str, parts)): {str(part): part for part in parts}.__getitem__}
    if origin in (Union, UnionType):
        return {words: reader for part in parts for words, reader in _readers(part).items()}
    return dict([READERS[annotation]]) if annotation in READERS else {}
