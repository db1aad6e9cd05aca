"""Parts of a published file; each knows its file and its place, for messages."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float32

from harness.data.weights import Tensors
from harness.errors import InputError

Arrays = dict[str, Float32[np.ndarray, "..."]]
TOP = "the file"


@dataclass(frozen=True, eq=False)
class Part:
    """A value that was read from a file: a dict, a list, an array, a text or a number."""

    file: Path
    value: object
    place: str = TOP

    def wrong(self, problem: str) -> InputError:
        """The refusal of this part."""
        return InputError(
            f"{self.file} is not the published network: {self.place} {problem}; get the file of"
            " the authors"
        )

    def __getitem__(self, key: str | int) -> "Part":
        """The part of this name, or at this place of a list.

        Raises:
            InputError: if there is none.
        """
        value = self.value
        if isinstance(value, list) and isinstance(key, int) and 0 <= key < len(value):
            found = value[key]
        elif isinstance(value, dict) and key in value:
            found = value[key]
        else:
            raise self.wrong(f"has no part {key!r}")
        return Part(self.file, found, str(key) if self.place == TOP else f"{self.place}.{key}")

    def must_have(self, count: int) -> None:
        """Refuse another number of parts.

        Raises:
            InputError: if there are more or fewer.
        """
        found = len(self.value) if isinstance(self.value, dict | list) else 0
        if found != count:
            raise self.wrong(f"has {found} parts, and should have {count}")

    def must_be(self, wanted: str | float) -> None:
        """Refuse another text or number; each number of an array must be the wanted one.

        Raises:
            InputError: if the part differs.
        """
        value = self.value
        if isinstance(value, np.ndarray) and not isinstance(wanted, str):
            same = value.size > 0 and bool((value == wanted).all())
        else:
            same = value == wanted
        if not same:
            raise self.wrong(f"is {value!r:.60}, and should be {wanted!r}")

    def numbers(self, *shape: int) -> Float32[np.ndarray, "..."]:
        """Its numbers as a new array.

        Raises:
            InputError: if they are not finite numbers of this shape.
        """
        value = self.value
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "iuf":
            raise self.wrong(f"is {value!r:.60}, and should be an array of numbers")
        if value.shape != shape:
            raise self.wrong(f"has the shape {value.shape}, and should have {shape}")
        array = np.array(value, np.float32)
        if not np.isfinite(array).all():
            raise self.wrong("has numbers that are not finite")
        return array

    def vector(self, size: int) -> Float32[np.ndarray, " size"]:
        """Its numbers, if they are a row, a column or an array of one axis.

        Raises:
            InputError: if they are not so many finite numbers.
        """
        shapes = [(size,), (1, size), (size, 1)]
        shape = np.shape(self.value) if isinstance(self.value, np.ndarray) else ()
        return self.numbers(*(shape if shape in shapes else shapes[0])).ravel()


def tensors(arrays: Mapping[str, Float32[np.ndarray, "..."]]) -> Tensors:
    """Arrays as tensors of PyTorch."""
    return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}
