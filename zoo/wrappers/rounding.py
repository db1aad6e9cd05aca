"""`int8` and `float16`: vectors rounded to numbers of fewer bytes.

The rounded vectors are still handed on as float32, which holds them exactly, so their L2 distance
is that of the integers.
"""

from typing import Annotated

import numpy as np
from annotated_types import Ge, Lt
from jaxtyping import Float32

from harness.distances import L2
from harness.errors import InputError
from harness.parameters import Parameters
from harness.types import Descriptor
from harness.wrapping import Wrapper
from zoo.wrappers.compose import NUMBERS, after

LARGEST = 127  # of int8; -128 is not used, so that a vector and its negative are alike


def int8(model: Descriptor, file: Parameters | None = None) -> Descriptor:
    """Each number times a scale, rounded to an integer from -127 to 127; half goes to even.

    The scale is 127, for numbers from -1 to 1; or that of a file, where larger numbers become 127.
    """
    scale = np.float32(LARGEST if file is None else file.array("scale"))

    def change(vectors: Float32[np.ndarray, "n d"]) -> Float32[np.ndarray, "n d"]:
        rounded = np.rint(scale * vectors)
        if file is None and (largest := np.abs(rounded).max(initial=0)) > LARGEST:
            raise InputError(
                f"int8 without a file takes numbers from -1 to 1; {largest / LARGEST:.3g} came:"
                f' learn a scale by harness fit --model "{model.name}|int8"'
            )
        return np.clip(rounded, -LARGEST, LARGEST)

    # Not for export: where two runtimes round apart, a number differs by a whole step.
    return after(model, change, None, distance=L2, stored="int8")


def _scale(
    vectors: Float32[np.ndarray, "n d"], *, cut: Annotated[float, Ge(0), Lt(1)] = 0.001
) -> dict[str, np.ndarray]:
    """The scale at which a share of all numbers is cut off at 127.

    Args:
        vectors: of training patches.
        cut: the share; 0 keeps the largest number.
    """
    largest = float(np.quantile(np.abs(vectors), 1 - cut))
    if not largest > 0:
        raise InputError("the training vectors are zero: int8 finds no scale")
    return {"scale": np.array(LARGEST / largest)}


def float16(model: Descriptor) -> Descriptor:
    """Each number rounded to the nearest of half precision."""

    def change(vectors: Float32[np.ndarray, "n d"]) -> Float32[np.ndarray, "n d"]:
        with np.errstate(over="ignore"):
            rounded = vectors.astype(np.float16).astype(np.float32)
        if not np.isfinite(rounded).all():
            raise InputError(f"float16 ends at 65504; {np.abs(vectors).max():.3g} came")
        return rounded

    return after(model, change, lambda vectors: vectors.half().float(), stored="float16")


INT8 = Wrapper(int8, distances=NUMBERS, fit=_scale)
FLOAT16 = Wrapper(float16, distances=NUMBERS)
