"""Recipes: a recipe is a TOML file with all settings that decide the weights of a training."""

import inspect
import math
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Le, Lt, MinLen
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from harness import registry, settings
from harness.errors import FileMissingError, InputError, UnknownNameError, one_line
from harness.files import folders, texts
from zoo.training.later import Later

UNFIT = (ValueError, TypeError, LookupError, ImportError, RuntimeError)
"""Errors of a method or network that is unknown, cannot be imported, or refuses its options."""

Kind = Literal["method", "network"]
KINDS: tuple[Kind, ...] = ("method", "network")

ADDED_LATER = ("average", "data_options", "wrong_labels")  # not used if empty, 0 or None

UNKNOWN = "unknown"

RECIPES = Path(__file__).parents[1] / "recipes"

Share = Annotated[float, Ge(0), Lt(1)]
Dihedral = bool | Literal["hardnet", "tfeat"]


class RecipeTable(BaseModel):
    """A table of a recipe: an unknown key, or a value of another type, is an error."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, ser_json_inf_nan="strings")

    @model_validator(mode="before")
    @classmethod
    def _known(cls, table: Any) -> Any:
        for key in table if isinstance(table, dict) else ():
            if key not in cls.model_fields:
                message = registry.unknown("settings", str(key), cls.model_fields)
                raise PydanticCustomError("unknown_setting", "{message}", {"message": message})
        return table

    @field_validator("*", mode="wrap")
    @classmethod
    def _readings(cls, value: Any, take: Callable[[Any], Any]) -> Any:
        return settings.taken(value, take)


class Optimiser(RecipeTable):
    """Stochastic gradient descent with momentum, or Adam with the momentum as its first beta."""

    name: Literal["sgd", "adam"] = "sgd"
    lr: Annotated[float, Gt(0)]
    momentum: Share = 0.9
    dampening: Share = 0.0
    weight_decay: Annotated[float, Ge(0)] = 0.0


class Schedule(RecipeTable):
    """Factor of the learning rate, by epoch or by step."""

    name: Literal["constant", "linear", "steps", "exponential"]
    at: tuple[Annotated[int, Gt(0)], ...] = ()  # "steps": epochs after which `factor` is applied
    factor: Annotated[float, Gt(0), Le(1)] = 1.0

    @model_validator(mode="after")
    def _complete(self) -> "Schedule":
        if self.name == "steps" and not self.at:
            raise InputError('"steps" needs at = [epochs]')
        if self.name in ("steps", "exponential") and self.factor == 1:
            raise InputError(f'"{self.name}" needs a factor below 1')
        return self

    def factor_at(self, step: int, *, epochs: int, steps_per_epoch: int) -> float:
        """The multiple of the learning rate that a step takes, steps counted from 0."""
        epoch = step // steps_per_epoch
        if self.name == "linear":
            return 1 - step / (epochs * steps_per_epoch)
        if self.name == "steps":
            return self.factor ** sum(epoch >= after for after in self.at)
        return self.factor**epoch


class Augmentation(RecipeTable):
    """Random changes of the patches in every step.

    `dihedral` draws a symmetry of the square for each point, and moves all its patches by it. True
    draws each of the 8 symmetries equally often; "hardnet" and "tfeat" draw like the code of that
    name (see augment.py).
    """

    dihedral: Dihedral = False


class Average(RecipeTable):
    """Moving average of the weights, which is validated and exported in place of the last weights.

    After each step it keeps the share `decay` of itself, in the first steps less (see
    `zoo.training.average`).
    """

    decay: Annotated[float, Gt(0), Lt(1)]


class Checkpoints(RecipeTable):
    """The epochs whose weights and cards are kept, in epochs/NUMBER of the training's folder.

    This setting does not change the training, and it can be changed when a training is resumed.
    """

    every: Annotated[int, Gt(0)] | None = None  # epochs; None keeps only the last weights


class Pairs(RecipeTable):
    """An epoch of a number of pairs, for every batch size; its last step may exceed the number."""

    pairs: Annotated[int, Gt(0)]


class Part(BaseModel):
    """The name of a method or network, and the keyword arguments of its class."""

    model_config = ConfigDict(extra="allow", frozen=True, ser_json_inf_nan="strings")

    name: str

    @field_validator("name", mode="wrap")
    @classmethod
    def _readings(cls, value: Any, take: Callable[[Any], Any]) -> Any:
        return settings.taken(value, take)

    @property
    def options(self) -> dict[str, Any]:
        """The keyword arguments."""
        return dict(self.model_extra or {})


def _an_epoch(given: Any) -> Any:
    """Check all three forms together; otherwise pydantic would report an error for each form."""
    number = given["pairs"] if isinstance(given, dict) and set(given) == {"pairs"} else given
    known = given == "pass" or isinstance(given, Pairs) or (type(number) is int and number > 0)
    if not known:
        raise InputError('an epoch is a number of steps above 0, "pass" or { pairs = N }')
    return given


class Recipe(RecipeTable):
    """Settings of one training. Steps count from 0; an epoch is a number of steps.

    `steps_per_epoch` is a number of steps, or "pass": the steps in which the method goes through
    the training set once (`Method.steps_of_a_pass`), or { pairs = N }. `loop.prepare` replaces the
    last two by the number of steps, which depends on the data and on the batch.

    `held_out` is the share of the images whose points are not used for training; their error shows
    its progress. With 0, all points are used for training, and no held-out error is shown.

    `data_options` are options of the readers of the data, for example strips = "easy+hard" of
    HPatches. `wrong_labels` is the share of the patches to train on that are given to a wrong point
    (see `zoo.training.wrong_labels`). Without `average`, the last weights are exported.
    """

    name: str
    paper: str = ""
    licence: str = UNKNOWN  # of the weights; the card then has that of the images, if known
    data: Annotated[tuple[str, ...], MinLen(1)]
    data_options: dict[str, str] = {}
    wrong_labels: Share = 0.0
    epochs: Annotated[int, Gt(0)]
    steps_per_epoch: Annotated[
        Annotated[int, Gt(0)] | Literal["pass"] | Pairs, BeforeValidator(_an_epoch)
    ]
    seed: Annotated[int, Ge(0)] = 0
    held_out: Share = 0.05
    method: Part
    network: Part
    optimiser: Optimiser
    schedule: Schedule = Schedule(name="constant")
    augmentation: Augmentation = Augmentation()
    average: Average | None = None
    checkpoints: Checkpoints = Checkpoints()

    @property
    def epoch(self) -> int:
        """Steps of an epoch.

        Raises:
            InputError: if the number depends on the data; `loop.prepare` returns a recipe with the
            number.
        """
        if not isinstance(self.steps_per_epoch, int):
            raise InputError(f"{self.name}: the number of steps of an epoch depends on the data")
        return self.steps_per_epoch

    @property
    def steps(self) -> int:
        """Steps of the whole training."""
        return self.epochs * self.epoch

    def factor_at(self, step: int) -> float:
        """The multiple of the learning rate that a step takes."""
        return self.schedule.factor_at(step, epochs=self.epochs, steps_per_epoch=self.epoch)

    def keeps_weights(self, step: int) -> bool:
        """Whether the weights after this number of steps are kept, in addition to the last ones."""
        every = self.checkpoints.every
        return every is not None and step > 0 and step % (every * self.epoch) == 0


def names() -> list[str]:
    """Names of the recipes that come with the zoo."""
    return [file.stem for file in folders.entries(RECIPES) if file.suffix == ".toml"]


def listing() -> dict[str, str]:
    """Recipes that come with the zoo, and the paper of each."""
    return {name: read(name).paper for name in names()}


def read(spec: str, changes: Sequence[str] = (), data: Sequence[str] = ()) -> Recipe:
    """The recipe with a name or in a TOML file, after changes KEY=VALUE and with other data.

    A dot in KEY leads into a table: optimiser.lr=0.1. `harness.settings` says how VALUE is read.

    Raises:
        UnknownNameError: if the zoo has no recipe of this name.
        FileMissingError: if there is no such TOML file.
        InputError: if the file is not TOML, or a key, a value, a method or a network is not known.
    """
    file = Path(spec) if spec.endswith(".toml") else RECIPES / f"{spec}.toml"
    if not file.is_file():
        if spec.endswith(".toml"):
            raise FileMissingError(f"no recipe file {file}")
        raise UnknownNameError(f"{registry.unknown('recipes', spec, names())}, or give a TOML file")
    try:
        table = tomllib.loads(texts.read(file))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file} is not TOML: {error}") from error
    table = {"name": file.stem, "network": {"name": "l2net"}} | table
    for change in changes:
        _set(table, change)
    if data:
        table["data"] = list(data)
    return checked(table, file)


def checked(table: Mapping[str, Any], origin: object) -> Recipe:
    """The recipe of a table, if its method and network exist and take their options.

    Options that the table leaves out are filled in, so that a kept recipe keeps its meaning when a
    default changes.

    Args:
        table: a table from TOML or JSON.
        origin: origin of the table, for messages.

    Raises:
        InputError: if the table is not a valid recipe; names the origin and the key.
    """
    try:
        recipe = Recipe.model_validate(dict(table))
    except ValidationError as error:
        raise InputError(f"{origin}: {reason(error)}") from error
    complete: dict[str, Part] = {}
    for kind in KINDS:
        part: Part = getattr(recipe, kind)
        try:
            complete[kind] = Part(name=part.name, **_options(find(kind, part.name), part))
        except UNFIT as error:
            raise InputError(f"{origin}: [{kind}] {reason(error)}") from error
    return recipe.model_copy(update=complete)


def kept(table: Mapping[str, Any], origin: object) -> Recipe:
    """The recipe of a training, from its recipe.json or its card, with its old meaning.

    An option that was added later gets the value that describes the older trainings. A card does
    not name the data.

    Raises:
        InputError: as `checked`.
    """
    complete = {"data": ("unknown",), **table}
    for kind in KINDS:
        part = complete.get(kind)
        options = part if isinstance(part, Mapping) else {}
        try:
            maker = find(kind, str(options.get("name")))
        except UNFIT:
            continue  # `checked` reports it
        before = {name: later.before for name, later in _later(maker)}
        # JSON has no infinity; recipes write it as text.
        numbers = {
            key: math.inf if value == "Infinity" else value for key, value in options.items()
        }
        complete[kind] = before | numbers
    return checked(complete, origin)


def read_kept(file: Path) -> Recipe:
    """The recipe in a training's recipe.json.

    Raises:
        InputError: if the file holds no recipe; names the file.
    """
    try:
        return kept(texts.read_json(file), file)
    except (ValueError, TypeError) as error:  # TypeError: the JSON is no table
        raise InputError(
            f"{file} is not the recipe of a training ({one_line(error)}): restore it, or train"
            " anew with another --out"
        ) from error


def identity(recipe: Recipe) -> dict[str, Any]:
    """Settings that decide the weights: with the same data, equal settings give equal weights.

    The place of the data and the kept checkpoints are left out. A setting that was added later is
    left out if it has the value of the older trainings, so that these keep their identity.
    """
    table = recipe.model_dump(mode="json", exclude={"data", "checkpoints", *unused(recipe)})
    for kind in KINDS:
        for name, later in _later(find(kind, table[kind]["name"])):
            if table[kind][name] == later.before:
                del table[kind][name]
    return table


def unused(recipe: Recipe) -> set[str]:
    """Settings that were added later and change nothing, as in the recipes of older trainings."""
    return {name for name in ADDED_LATER if not getattr(recipe, name)}


def differences(before: Recipe, now: Recipe) -> dict[str, tuple[Any, Any]]:
    """Settings that decide the weights and differ between two recipes, with both values."""
    a, b = (dict(_flat(recipe.model_dump(mode="json"))) for recipe in (before, now))
    decide = {*dict(_flat(identity(before))), *dict(_flat(identity(now)))}
    return {key: (a.get(key), b.get(key)) for key in sorted(decide) if a.get(key) != b.get(key)}


def make(kind: Kind, part: Part) -> Any:
    """The method or network that a part of a checked recipe names, with its options."""
    maker = find(kind, part.name)
    return maker(**_options(maker, part))


def find(kind: Kind, name: str) -> Any:
    """The class of a method or network: an installed name, or package.module:Class.

    Raises:
        UnknownNameError: if there is no such class, or it has another kind; gives the nearest name.
        ImportError, ValueError: if its module cannot be imported.
    """
    if ":" in name:
        module, _, attribute = name.partition(":")
        named = getattr(import_module(module), attribute, None)
    else:
        named = registry.load(f"{kind}s", name)
    base = _bases()[kind]
    if not (isinstance(named, type) and issubclass(named, base)):
        raise UnknownNameError(f"{name} is no {base.__name__}, a class of {base.__module__}")
    return named


def _bases() -> dict[Kind, type]:
    from zoo.backbones import Network  # imported late: torch is slow, and listings do not need it
    from zoo.training.method import Method

    return {"method": Method, "network": Network}


def _options(maker: Any, part: Part) -> dict[str, Any]:
    """Keyword arguments of a method or network: the options of a part, and defaults."""
    parameters = inspect.signature(maker).parameters
    given = settings.accepted(maker, part.options, part.name, also_positional=True)
    defaults = {
        name: parameter.default
        for name, parameter in parameters.items()
        if parameter.default is not parameter.empty
    }
    complete = defaults | given
    for name in parameters:
        if name not in complete:
            raise InputError(f"{part.name} needs a value of {name}")
    return complete


def _later(maker: Any) -> Iterator[tuple[str, Later]]:
    """Options of a method or network that were added later."""
    for name, parameter in inspect.signature(maker).parameters.items():
        for mark in getattr(parameter.annotation, "__metadata__", ()):
            if isinstance(mark, Later):
                yield name, mark


def _flat(table: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yields the settings of nested tables with their keys, for example "optimiser.lr"."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def _set(recipe: dict[str, Any], change: str) -> None:
    """Put a change KEY=VALUE into the table of a recipe."""
    key, text = settings.split(change)
    *path, last = key.split(".")
    table: Any = recipe
    for name in path:
        table = table.setdefault(name, {})
        if not isinstance(table, dict):
            raise InputError(f"--set {change}: {name} is no table of the recipe")
    inline = settings.table(text)
    table[last] = text if inline is None else inline


def reason(error: Exception) -> str:
    """Why a recipe or a part of a recipe is refused, on one line; the error is one of UNFIT."""
    if not isinstance(error, ValidationError):
        return one_line(error.args[0] if error.args else type(error).__name__)
    return "; ".join(
        f"{'.'.join(map(str, each['loc']))}: {each['msg']} (given: {each['input']!r:.60})"
        for each in error.errors()
    )
