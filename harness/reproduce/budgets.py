"""Budgets: how much each item trains, and which data stand for those of the papers."""

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from harness import registry
from harness.errors import UnknownNameError
from harness.files import folders
from harness.reproduce.items import BUDGETS, Part, folders_of_papers, parsed


class Place(Part):
    """Where the data of a name are: a sample, a built set, a folder, or the fetched set."""

    sample: str = ""  # an installed sample
    build: str = ""  # a builder, which makes the data from `images`
    images: str = ""  # folder below --data
    options: dict[str, Any] = Field(default={})  # of the builder
    folder: str = ""  # below --data; empty: the name of the data
    part: str = ""  # the part of the folder that is meant, such as one of several scenes
    split: str = ""  # of the protocol; empty: its usual one
    keypoints: str = ""  # of the protocol
    frames: str = ""  # folder of regions below --data, for the protocol
    settings: tuple[str, ...] = ()  # of recipes that learn from these data
    points: int = Field(default=0, ge=0)  # of the training data, to foretell the cost; 0: counted
    each: int = Field(default=2, ge=2)  # patches of a point


class Budget(Part):
    """Settings of all trainings and evaluations of a budget."""

    about: str  # a sentence for pages
    tells: bool = True  # whether its numbers can support or refute a claim
    settings: tuple[str, ...] = ()  # of every recipe, before those of the cell
    method: dict[str, Any] = Field(default={})  # options of the methods that have them
    network: dict[str, Any] = Field(default={})  # options of the networks that have them
    seeds: int | None = Field(default=None, ge=1)  # most seeds of a cell
    keep: int | None = Field(default=None, ge=1)  # most values of an axis
    points: int = Field(default=10, ge=1)  # epochs that are scored, of cells that ask for them
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    onnx: bool = True  # describe by ONNX Runtime; false: by PyTorch, without an export
    protocols: dict[str, dict[str, Any]] = Field(
        default={}
    )  # options of protocols, by the name of the family
    measures: dict[str, dict[str, Any]] = Field(default={})  # arguments of measures, by their name
    places: dict[str, Place] = Field(default={})  # by the name of the data


def names() -> list[str]:
    """Names of the budgets."""
    return sorted({file.stem for file in _files()})


def find(name: str) -> Budget:
    """The budget of a name.

    Raises:
        UnknownNameError: if there is none; gives the nearest name.
        InputError: if its file is damaged; names the key.
    """
    for file in _files():
        if file.stem == name:
            return parsed(Budget, file)
    raise UnknownNameError(registry.unknown("budgets", name, names()))


def _files() -> list[Path]:
    return [
        file
        for root in folders_of_papers()
        if (root / BUDGETS).is_dir()
        for file in folders.entries(root / BUDGETS)
        if file.suffix == ".toml"
    ]
