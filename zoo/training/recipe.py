"""A recipe: everything that decides which weights come out of a training, as one TOML file."""

import inspect
import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Le, Lt
from pydantic import (
    BaseModel,
    ConfigDict,
    ValidationError,
    create_model,
    field_validator,
    model_validator,
)

from harness.errors import FileMissingError, InputError, UnknownNameError, one_line
from harness.files import folders, texts
from harness.registry import unknown

UNFIT = (ValueError, TypeError, LookupError, ImportError, RuntimeError)
"""Errors of a part that is not known, can't be imported, or doesn't take what it is given."""

RECIPES = Path(__file__).parents[1] / "recipes"

METHODS = {
    "adasample": "zoo.adasample:AdaSample",
    "doap": "zoo.doap:DOAP",
    "doap-binary": "zoo.doap:BinaryDOAP",
    "hardnet": "zoo.hardnet:HardNet",
    "hynet": "zoo.hynet:Hybrid",
    "l2net": "zoo.l2net:Progressive",
    "mixed-context": "zoo.mixed_context:MixedContext",
    "sosnet": "zoo.sosnet:SOSNet",
    "triplet-swap": "zoo.triplet_swap:TripletSwap",
}
"""Names in [method]; another package's is written as package.module:Name."""

NETWORKS = {
    "doap": "zoo.doap_networks:L2Net",
    "doap-st": "zoo.doap_networks:SpatialTransformer",
    "hynet": "zoo.hynet:HyNet",
    "l2net": "zoo.backbones:L2Net",
    "l2net-cs": "zoo.l2net:CentralSurround",
    "l2net-mean-deviation": "zoo.mixed_context:L2Net",
    "l2net-mean-image": "zoo.l2net:L2Net",
    "tfeat": "zoo.triplet_swap:TFeat",
}
"""Names in [network]; another package's is written as package.module:Name."""

Share = Annotated[float, Ge(0), Lt(1)]
Dihedral = bool | Literal["hardnet", "tfeat"]


@dataclass(frozen=True)
class Later:
    """Marks an option that did not exist when some trainings that are still around began.

    Their recipes lack it. `before` is the value that says what they did. It may differ from the
    default, which is for new trainings.
    """

    before: Any


class Strict(BaseModel):
    """A table of a recipe: an unknown key, or a value of another type, is an error."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, ser_json_inf_nan="strings")


class Optimiser(Strict):
    """Stochastic gradient descent with momentum, or Adam, whose first beta the momentum is."""

    name: Literal["sgd", "adam"] = "sgd"
    lr: Annotated[float, Gt(0)]
    momentum: Share = 0.9
    dampening: Share = 0.0
    weight_decay: Annotated[float, Ge(0)] = 0.0


class Schedule(Strict):
    """By what the learning rate is multiplied, epoch by epoch or step by step."""

    name: Literal["constant", "linear", "steps", "exponential"]
    at: tuple[Annotated[int, Gt(0)], ...] = ()  # "steps": epochs after which `factor` is applied
    factor: Annotated[float, Gt(0), Le(1)] = 1.0

    @model_validator(mode="before")
    @classmethod
    def _lists(cls, given: Any) -> Any:
        if isinstance(given, dict) and isinstance(given.get("at"), list):
            return given | {"at": tuple(given["at"])}
        return given

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


class Augmentation(Strict):
    """Random changes of the patches in every step.

    `dihedral` is one symmetry of the square for all patches of a point. True draws each of the 8
    equally often; "hardnet" and "tfeat" draw as the code of that name does (see augment.py).
    """

    dihedral: Dihedral = False


class Checkpoints(Strict):
    """Which weights are kept on the way, with their cards, in epochs/NUMBER of the training.

    They change nothing in the training, and can be asked for when it is resumed.
    """

    every: Annotated[int, Gt(0)] | None = None  # epochs; None keeps only the last weights


class Pairs(Strict):
    """An epoch of so many pairs, however many a step takes; the last step may exceed it."""

    pairs: Annotated[int, Gt(0)]


class Part(BaseModel):
    """A name, and keyword arguments of the class that it stands for."""

    model_config = ConfigDict(extra="allow", frozen=True, ser_json_inf_nan="strings")

    name: str

    @property
    def options(self) -> dict[str, Any]:
        """The keyword arguments."""
        return dict(self.model_extra or {})


class Recipe(Strict):
    """Settings of one training. Steps count from 0; an epoch is a number of steps.

    `steps_per_epoch` is a number of steps, or "pass": the steps in which the method goes through
    the training set once (`Method.steps_of_a_pass`), or { pairs = N }. `loop.prepare` replaces the
    last two by the number of steps, which depends on the data and on the batch.

    `held_out` is the share of the images whose points are not trained on but show how training
    goes. With 0 everything is trained on, and no such error is shown.
    """

    name: str
    paper: str = ""
    licence: str = "unknown"  # of the weights
    data: tuple[str, ...]
    epochs: Annotated[int, Gt(0)]
    steps_per_epoch: Annotated[int, Gt(0)] | Literal["pass"] | Pairs
    seed: Annotated[int, Ge(0)] = 0
    held_out: Share = 0.05
    method: Part
    network: Part
    optimiser: Optimiser
    schedule: Schedule = Schedule(name="constant")
    augmentation: Augmentation = Augmentation()
    checkpoints: Checkpoints = Checkpoints()

    @field_validator("steps_per_epoch", mode="before")
    @classmethod
    def _an_epoch(cls, given: Any) -> Any:
        """Check all three forms here: pydantic would report one error for each."""
        number = given["pairs"] if isinstance(given, dict) and set(given) == {"pairs"} else given
        known = given == "pass" or isinstance(given, Pairs) or (type(number) is int and number > 0)
        if not known:
            raise InputError('an epoch is a number of steps above 0, "pass" or { pairs = N }')
        return given

    @property
    def epoch(self) -> int:
        """Steps of an epoch.

        Raises:
            InputError: if only the data tell; a prepared training has a recipe that knows it.
        """
        if not isinstance(self.steps_per_epoch, int):
            raise InputError(f"{self.name}: the data decide how many steps an epoch has")
        return self.steps_per_epoch

    @property
    def steps(self) -> int:
        """Steps in all."""
        return self.epochs * self.epoch

    def factor_at(self, step: int) -> float:
        """The multiple of the learning rate that a step takes."""
        return self.schedule.factor_at(step, epochs=self.epochs, steps_per_epoch=self.epoch)

    def keeps_weights(self, step: int) -> bool:
        """Whether the weights after so many steps are kept beside the last ones."""
        every = self.checkpoints.every
        return every is not None and step > 0 and step % (every * self.epoch) == 0


def names() -> list[str]:
    """Recipes that come with the zoo."""
    return [file.stem for file in folders.entries(RECIPES) if file.suffix == ".toml"]


def listing() -> dict[str, str]:
    """Recipes that come with the zoo, and the paper of each."""
    return {name: read(name).paper for name in names()}


def read(spec: str, settings: Sequence[str] = (), data: Sequence[str] = ()) -> Recipe:
    """The recipe of a name or of a TOML file, with settings KEY=VALUE and other data over it.

    KEY is that of a table where it has dots: optimiser.lr=0.1. VALUE is written as in TOML; what
    TOML can't read is text.

    Raises:
        UnknownNameError: if there is none of this name.
        InputError: if it is no TOML, or a key, a value, a method or a network is not known.
    """
    file = Path(spec) if spec.endswith(".toml") else RECIPES / f"{spec}.toml"
    if not file.is_file():
        if spec.endswith(".toml"):
            raise FileMissingError(f"no recipe file {file}")
        raise UnknownNameError(f"{unknown('recipes', spec, names())}, or give a TOML file")
    try:
        table = tomllib.loads(texts.read(file))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file} is not TOML: {error}") from error
    table = {"name": file.stem, "network": {"name": "l2net"}} | table
    for setting in settings:
        _set(table, setting)
    if data:
        table["data"] = list(data)
    return checked(table, file)


def checked(table: Mapping[str, Any], source: object) -> Recipe:
    """A recipe from its table; every part of it is known and accepts its arguments.

    Arguments that are left out stand in it, too, so that what is kept of it stays what was trained
    by, whatever becomes of a default.

    Raises:
        InputError: otherwise; names the source and the key.
    """
    data = table.get("data", [])
    if isinstance(data, list | tuple):  # anything else is left to be refused
        data = tuple(data) or None
    try:
        recipe = Recipe.model_validate({**table, "data": data}, strict=True)
    except ValidationError as error:
        raise InputError(f"{source}: {reason(error)}") from error
    whole: dict[str, Part] = {}
    for kind, part in (("method", recipe.method), ("network", recipe.network)):
        try:
            whole[kind] = Part(name=part.name, **_options(find(kind, part.name), part.options))
        except UNFIT as error:
            raise InputError(f"{source}: [{kind}] {reason(error)}") from error
    return recipe.model_copy(update=whole)


def kept(table: Mapping[str, Any], source: object) -> Recipe:
    """The recipe that was kept with a training, in recipe.json or on a card, with its old meaning.

    Options that came later get the value that says what was done before. A card names no data.

    Raises:
        InputError: as `checked`.
    """
    whole = {"data": ("unknown",), **table}
    for kind in ("method", "network"):
        given = whole.get(kind)
        part = given if isinstance(given, Mapping) else {}
        try:
            before = {name: one.before for name, one in _later(find(kind, str(part.get("name"))))}
        except UNFIT:
            continue  # `checked` reports it
        # JSON has no infinity; recipes write it as text.
        numbers = {name: math.inf if one == "Infinity" else one for name, one in part.items()}
        whole[kind] = before | numbers
    return checked(whole, source)


def read_kept(file: Path) -> Recipe:
    """The recipe in the file that a training keeps of it.

    Raises:
        InputError: if it is none; names the file.
    """
    try:
        return kept(texts.read_json(file), file)
    except (ValueError, TypeError) as error:  # of what is no table
        raise InputError(
            f"{file} is not the recipe of a training ({one_line(error)}): restore it, or train"
            " anew with another --out"
        ) from error


def identity(recipe: Recipe) -> dict[str, Any]:
    """Settings that decide the weights: with the same data, equal ones are the same training.

    Where the data lie and which weights are kept on the way decide nothing. An option that came
    later is left out at its value from before, so that older trainings keep their identity.
    """
    said = recipe.model_dump(mode="json", exclude={"data", "checkpoints"})
    for kind in ("method", "network"):
        for name, later in _later(find(kind, said[kind]["name"])):
            if said[kind][name] == later.before:
                del said[kind][name]
    return said


def differences(one: Recipe, other: Recipe) -> dict[str, tuple[Any, Any]]:
    """The settings in which two recipes are different trainings, and both values of each."""
    a, b = (dict(_flat(one.model_dump(mode="json"))) for one in (one, other))
    decide = {*dict(_flat(identity(one))), *dict(_flat(identity(other)))}
    return {key: (a.get(key), b.get(key)) for key in sorted(decide) if a.get(key) != b.get(key)}


def make(kind: Literal["method", "network"], part: Part) -> Any:
    """The method or network that a part of a checked recipe stands for."""
    maker = find(kind, part.name)
    return maker(**_options(maker, part.options))


def find(kind: str, name: str) -> Any:
    """The class of a method or network: one of the zoo's names, or package.module:Name."""
    known = METHODS if kind == "method" else NETWORKS
    place = known.get(name, name)
    if ":" not in place:
        raise UnknownNameError(unknown(f"{kind}s", name, known))
    module, _, attribute = place.partition(":")
    found = getattr(import_module(module), attribute, None)
    wanted = _kinds()[kind]
    if not (isinstance(found, type) and issubclass(found, wanted)):
        raise UnknownNameError(f"{place} is no {wanted.__name__}, a class of {wanted.__module__}")
    return found


def _kinds() -> dict[str, type]:
    from zoo.backbones import Network  # torch takes its time, and names are told without
    from zoo.training.method import Method

    return {"method": Method, "network": Network}


def _options(maker: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Keyword arguments, validated by the types in the signature of what takes them."""
    fields: dict[str, Any] = {
        name: (one.annotation, ... if one.default is one.empty else one.default)
        for name, one in inspect.signature(maker).parameters.items()
    }
    model = create_model("Options", __base__=Strict, **fields)
    return dict(model.model_validate(given))


def _later(maker: Any) -> Iterator[tuple[str, Later]]:
    """Options of a method or network that came later."""
    for name, one in inspect.signature(maker).parameters.items():
        for mark in getattr(one.annotation, "__metadata__", ()):
            if isinstance(mark, Later):
                yield name, mark


def _flat(table: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Settings of nested tables by their keys: "optimiser.lr"."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def _set(table: dict[str, Any], setting: str) -> None:
    key, equals, text = setting.partition("=")
    if not equals or not key:
        raise InputError(f"--set {setting} is not KEY=VALUE, e.g. --set optimiser.lr=0.1")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    *path, last = key.split(".")
    for name in path:
        table = table.setdefault(name, {})
        if not isinstance(table, dict):
            raise InputError(f"--set {setting}: {name} is no table of the recipe")
    table[last] = value


def reason(error: Exception) -> str:
    """Why a recipe, or a part of one, is refused, in one line: of one of UNFIT."""
    if not isinstance(error, ValidationError):
        return one_line(error.args[0] if error.args else type(error).__name__)
    return "; ".join(
        f"{'.'.join(map(str, one['loc']))}: {one['msg']} (given: {one['input']!r:.60})"
        for one in error.errors()
    )
