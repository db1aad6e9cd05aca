"""Options of makers: reads a user's KEY=VALUE as a value of the option's type.

`--set KEY=VALUE` has one grammar, for protocols, builders, pictures and recipes. VALUE can be read
as

- a value of TOML: 3, 1e-3, inf, true, "text", [1, 2], { pairs = 10 };
- an integer, a number or a truth value of Python: 007, .5, True;
- a path, or text without quotes;
- none, which is None.

The option takes the first of these readings that has its type: from 2024, an option that takes text
gets "2024"; from none, an option that takes a number or None gets None. No reading is converted: an
integer is not a truth value, and 2.0 is not an integer.
"""

import inspect
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from functools import partial
from pathlib import Path
from types import NoneType
from typing import Any, TypeVar, get_args

from pydantic import ConfigDict, InstanceOf, TypeAdapter, ValidationError

from harness import registry
from harness.errors import InputError, UnknownNameError

Options = dict[str, Any]
T = TypeVar("T")

TRUTH = {"true": True, "false": False}
WORDS = {  # for the value that pydantic wants, by its type of error
    "bool_type": "true or false",
    "float_type": "a number",
    "int_from_float": "an integer",
    "int_type": "an integer",
    "callable_type": "a Python function",
    "none_required": "none",
    "path_type": "a path",
    "string_type": "text",
    "list_type": "a list",
    "tuple_type": "a list",
}


class Typed(str):
    """VALUE of a setting as text; it is read later, when the type of its option is known."""

    __slots__ = ()


def split(setting: str) -> tuple[str, Typed]:
    """Key and value of a setting; dashes in the key become underscores.

    Raises:
        InputError: if the setting is not KEY=VALUE.
    """
    key, equals, text = setting.partition("=")
    if not equals or not key:
        raise InputError(f"--set {setting} is not KEY=VALUE")
    return key.replace("-", "_"), Typed(text)


def options(*, settings: Sequence[str] | None = None, **given: object) -> Options:
    """Options by name, from keywords that are not None and from `--set KEY=VALUE`.

    Raises:
        InputError: if a setting is not KEY=VALUE, or the command line has an option of that name.
    """
    chosen: Options = {name: value for name, value in given.items() if value is not None}
    for setting in settings or ():
        name, text = split(setting)
        if name in given:
            raise InputError(f"--set {setting}: use --{name.replace('_', '-')}")
        chosen[name] = text
    return chosen


def positional(maker: Callable[..., Any]) -> list[str]:
    """Names of a maker's positional parameters, in order."""
    parameters = inspect.signature(maker).parameters.values()
    return [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]


def named(maker: Callable[..., Any]) -> list[str]:
    """Names of a maker's options: of its keyword-only parameters."""
    return list(_annotations(maker))


def accepted(
    maker: Callable[..., Any], given: Options, subject: str, *, also_positional: bool = False
) -> Options:
    """Keyword arguments of a maker: the given options, each read as its annotation demands.

    An option without annotation takes any value; text of `--set` stays text. If an option is a
    dataclass, its fields are given as options, and the dataclass is made from them.

    Args:
        maker: its keyword-only parameters are the options.
        given: values by name; text of `--set` is `Typed`.
        subject: name of the maker in messages.
        also_positional: whether parameters that can be given by position are options, too.

    Raises:
        UnknownNameError: if the maker has no such option; gives the nearest known name.
        InputError: if a value does not have the type of its option; says what is wanted.
    """
    types = _annotations(maker, also_positional=also_positional)
    dataclasses: Options = {name: kind for name, kind in types.items() if is_dataclass(kind)}
    fields = {name: _annotations(kind) for name, kind in dataclasses.items()}
    for name, of_fields in fields.items():
        if name not in given:
            types |= of_fields
    for name in given:
        if name not in types:
            raise UnknownNameError(f"{subject}: {registry.unknown('options', name, types)}")
    arguments = {
        name: checked(value, types[name], f"{subject}: {name}") for name, value in given.items()
    }
    for name, of_fields in fields.items():
        values = {field: arguments.pop(field) for field in of_fields if field in arguments}
        if values:
            arguments[name] = dataclasses[name](**values)
    return arguments


def absolute(maker: Callable[..., Any], given: Options, subject: str) -> Options:
    """The given options with absolute paths, for a process that runs in another folder.

    If an option takes text, too, its value is a path only if there is a file of that name.

    Args:
        maker: as for `accepted`.
        given: as for `accepted`.
        subject: as for `accepted`.

    Raises:
        InputError: as `accepted` does.
    """
    types = _annotations(maker)
    found = dict(given)
    for name in given.keys() & types.keys():
        value = checked(given[name], types[name], f"{subject}: {name}")
        if isinstance(value, Path) and (str not in get_args(types[name]) or value.exists()):
            found[name] = value.absolute()
    return found


def checked(value: object, annotation: Any, subject: str) -> Any:
    """A value of the type of its annotation; a missing annotation takes any value.

    Args:
        value: typed text is `Typed`.
        annotation: of the option or argument.
        subject: names the option or argument in messages.

    Raises:
        InputError: if no reading of the value has the type; names the right values.
    """
    if annotation is inspect.Parameter.empty:
        return str(value) if isinstance(value, Typed) else value
    adapter: TypeAdapter[Any]
    if is_dataclass(annotation):  # so pydantic does not look at the types of its fields
        adapter = TypeAdapter(InstanceOf[annotation])
    else:
        adapter = TypeAdapter(annotation, config=ConfigDict(arbitrary_types_allowed=True))
    try:
        return taken(value, partial(adapter.validate_python, strict=True))
    except ValidationError as error:
        none = " or none" if NoneType in get_args(annotation) else ""
        raise InputError(
            f"{subject} is {value!r:.60}; it should be {_wanted(error)}{none}"
        ) from error


def taken(value: object, take: Callable[[Any], T]) -> T:
    """The result of `take` for the first reading of a value that it does not refuse.

    Raises:
        ValidationError: if `take` refuses all readings; the error is that of the reading in which
            the fault lies deepest.
    """
    refused = []
    for reading in _readings(value):
        try:
            return take(reading)
        except ValidationError as error:
            refused.append(error)
    raise max(refused, key=lambda error: max(len(each["loc"]) for each in error.errors()))


def table(text: str) -> dict[str, Any] | None:
    """The TOML table in a text like { name = "l2net" }; None if the text is not a table."""
    values = [value for value in _toml(text) if isinstance(value, dict)]
    return values[0] if values else None


def _annotations(maker: Callable[..., Any], *, also_positional: bool = False) -> dict[str, Any]:
    """Annotations of the parameters that are options, by name."""
    return {
        name: parameter.annotation
        for name, parameter in inspect.signature(maker, eval_str=True).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
        or (also_positional and parameter.kind is parameter.POSITIONAL_OR_KEYWORD)
    }


def _wanted(error: ValidationError) -> str:
    """Words for the values that an option takes, from pydantic's error."""
    words = (
        WORDS.get(each["type"], each["msg"].removeprefix("Input should be "))
        for each in error.errors()
    )
    return " or ".join(dict.fromkeys(words))


def _readings(value: object) -> Iterator[object]:
    """The values that a given value can stand for, in order of preference."""
    if isinstance(value, Typed):
        yield from _readings_of_text(str(value))
    elif isinstance(value, str):
        yield from (Path(value), value)
    elif isinstance(value, list):
        yield from (value, tuple(value))  # TOML and JSON have no tuples
    else:
        yield value


def _readings_of_text(text: str) -> Iterator[object]:
    for parsed in _toml(text):
        yield from _readings(parsed)
        if isinstance(parsed, str):  # a value in quotes is text only
            return
    for number in (int, float):
        try:
            yield number(text)
        except ValueError:
            continue
    if text.lower() in TRUTH:
        yield TRUTH[text.lower()]
    yield from (Path(text), text)
    if text == "none":
        yield None


def _toml(text: str) -> Iterator[object]:
    """Yields the value of a text in TOML, if it is one; a date is left to be read as text."""
    try:
        document: Mapping[str, Any] = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return
    if len(document) == 1 and isinstance(document["value"], bool | int | float | str | list | dict):
        yield document["value"]
