"""Parts of a published file, each with its place, so that a refusal can name the file and the place."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float32

from harness.errors import InputError


@dataclass(frozen=True, eq=False)
class Part:
    """A value that was read from a file: a dict, a list, an array, a text or a number."""

    file: Path
    value: object
    place: str = "the file"

    def wrong(self, problem: str) -> InputError:
        """The refusal of this part."""
        return InputError(
            f"{self.file} is not the published network: {self.place} {problem}; get the authors' file"
        )

    def __getitem__(self, key: str | int) -> "Part":
        """The part of this name, or of this place in a list.

        Raises:
            InputError: if there is none.
        """
        place = f"{self.place}.{key}" if self.place != "the file" else str(key)
        value = self.value
        if isinstance(value, dict) and key in value:
            return Part(self.file, value[key], place)
        if isinstance(value, list) and isinstance(key, int) and key < len(value):
            return Part(self.file, value[key], place)
        raise self.wrong(f"has no part {key!r}")

    def must_be(self, wanted: object) -> None:
        """Refuse another text or other numbers.

        Raises:
            InputError: if the part differs.
        """
        same = isinstance(self.value, str) == isinstance(wanted, str) and np.array_equal(
            np.ravel(np.asarray(self.value)), np.ravel(np.asarray(wanted))
        )
        if not same:
            raise self.wrong(f"is {self.value!r:.80}, and should be {wanted!r}")

    def numbers(self, *shape: int) -> Float32[np.ndarray, "..."]:
        """Its numbers as a new array of float32.

        Raises:
            InputError: if they are not finite numbers of this shape.
        """
        value = self.value
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "iuf":
            raise self.wrong(f"is of type {type(value).__name__}, and should be an array of numbers")
        if value.shape != shape:
            raise self.wrong(f"has the shape {value.shape}, and should have {shape}")
        if not np.isfinite(value).all():
            raise self.wrong("has numbers that are not finite")
        return np.array(value, np.float32)
