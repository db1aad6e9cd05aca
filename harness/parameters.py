"""Learned parameters of a wrapper: arrays in a safetensors file, with the model that they fit.

`harness fit` writes a file. A wrapper refuses a file of another model or another wrapper.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge
from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from harness import extras
from harness.errors import FileMissingError, InputError, one_line
from harness.files import atomic
from harness.types import SHA256, Descriptor

KEY = "harness.parameters"  # one key of metadata: the order of several would vary

Sha256 = Annotated[str, StringConstraints(pattern=f"^{SHA256}$")]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class FittedModel(_Table):
    """The identity of the model whose vectors the parameters were learned from."""

    name: str
    weights: Sha256 | None
    revision: Annotated[int, Ge(1)]
    dim: Annotated[int, Ge(1)]
    distance: str

    @classmethod
    def of(cls, model: Descriptor) -> "FittedModel":
        """The identity of a descriptor."""
        return cls(
            name=model.name,
            weights=model.weights,
            revision=model.revision,
            dim=model.dim,
            distance=model.distance.name,
        )


class TrainingSet(_Table):
    """A data set that parameters were learned from."""

    name: str
    sha256: Sha256  # of `Dataset.sha256`


class About(_Table):
    """The facts about learned parameters that the file holds beside the arrays."""

    form: Literal[1] = 1
    wrapper: str
    revision: Annotated[int, Ge(1)]  # of the wrapper
    model: FittedModel
    trained_on: tuple[str, ...]  # data names, as in `Descriptor.trained_on`
    data: tuple[TrainingSet, ...]
    patches: Annotated[int, Ge(1)]  # number of patches
    options: dict[str, Any]  # of the fit, if they were given


@dataclass(frozen=True, eq=False)
class Parameters:
    """The contents of one file of learned parameters."""

    file: Path
    sha256: str  # of the file
    about: About
    arrays: Mapping[str, np.ndarray]

    def array(self, name: str, *shape: int) -> np.ndarray:
        """The array of a name.

        Raises:
            InputError: if it is missing, has another shape, or a number in it is not finite.
        """
        found = self.arrays.get(name)
        if found is None or found.shape != shape or not np.isfinite(found).all():
            came = "missing" if found is None else f"{found.dtype} {list(found.shape)}"
            raise InputError(
                f"{self.file}: the array {name!r} is {came}; finite numbers {list(shape)} are"
                " wanted: fit the file again"
            )
        return found


def write(file: Path, about: About, arrays: Mapping[str, np.ndarray]) -> None:
    """Write a file of parameters, whole or not at all; the same parameters give the same bytes."""
    with extras.needed("a file of parameters"):
        import safetensors.numpy

    ordered = {name: np.array(arrays[name], order="C") for name in sorted(arrays)}
    contents = safetensors.numpy.save(ordered, {KEY: about.model_dump_json()})
    with atomic.writing(file) as stream:
        stream.write(contents)


def read(file: Path) -> Parameters:
    """The parameters in a file.

    Raises:
        FileMissingError: if there is no such file.
        InputError: if it is damaged, or `harness fit` did not write it.
    """
    with extras.needed(f"reading {file}"):
        import safetensors.numpy

    if not file.is_file():
        raise FileMissingError(f"there is no file of parameters {file}: harness fit writes one")
    contents = file.read_bytes()
    try:
        arrays = safetensors.numpy.load(contents)
        size = int.from_bytes(contents[:8], "little")  # of the header, which is JSON
        metadata = json.loads(contents[8 : 8 + size]).get("__metadata__", {})
        about = About.model_validate_json(metadata[KEY])
    except KeyError as error:
        raise InputError(f"{file} was not written by harness fit: it has no {KEY}") from error
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise InputError(f"{file}: {KEY} is not valid ({faults}): fit the file again") from error
    except Exception as error:  # its type depends on the damage
        raise InputError(f"{file} is not a safetensors file: {one_line(error)}") from error
    return Parameters(file, hashlib.sha256(contents).hexdigest(), about, arrays)


def must_fit(found: Parameters, wrapper: str, revision: int, model: Descriptor) -> None:
    """Refuse parameters of another wrapper or another model.

    Raises:
        InputError: if they are of another one; says the first difference.
    """
    about, wanted = found.about, FittedModel.of(model)
    again = f'fit it again: harness fit --model "{model.name}|{wrapper}" --data DIR --out FILE'
    if about.wrapper != wrapper:
        raise InputError(f"{found.file} is for the wrapper {about.wrapper}, not for {wrapper}")
    if about.revision != revision:
        raise InputError(
            f"{found.file} is for revision {about.revision} of {wrapper}, which has revision"
            f" {revision} now: {again}"
        )
    for fact, theirs in about.model.model_dump().items():
        if theirs != getattr(wanted, fact):
            what = "" if fact == "name" else f" {fact} {_short(theirs)}"
            ours = "" if fact == "name" else f" {fact} {_short(getattr(wanted, fact))}"
            raise InputError(
                f"{found.file} was fitted for {about.model.name}{what}, not for"
                f" {model.name}{ours}: {again}"
            )


def _short(value: object) -> str:
    return str(value)[:12]
