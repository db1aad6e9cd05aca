"""Networks in .mat files of MatConvNet, in the form that `vl_simplenn` runs: layers in a row.

MATLAB's arrays have the axes (row, column, input, output); PyTorch's have (output, input, row,
column). Both libraries compute correlations, so no filter is turned.
"""

from pathlib import Path

import numpy as np
from jaxtyping import Float32

from zoo.published import matlab5, matlab73
from zoo.published.parts import Part

Arrays = dict[str, Float32[np.ndarray, "..."]]


def read(file: Path) -> Part:
    """The variables of a .mat file, of any version from 5 on.

    Raises:
        InputError: if the file can't be read; names it.
    """
    return Part(file, (matlab73 if matlab73.is_matlab73(file) else matlab5).read(file))


def layers(network: Part) -> list[Part]:
    """The layers of a network, in their order.

    Raises:
        InputError: if it has none.
    """
    part = network["layers"]
    if not isinstance(part.value, list):
        raise part.wrong("is not a cell of layers")
    return [part[i] for i in range(len(part.value))]


def convolution(
    layer: Part, name: str, shape: tuple[int, int, int, int], *, stride: int = 1, pad: int = 0
) -> Arrays:
    """Weight and bias of a convolution, as PyTorch has them.

    Args:
        layer: of the file.
        name: of the convolution, to which ".weight" and ".bias" are added.
        shape: output, input, row, column.
        stride: must be that of the file.
        pad: pixels on each side; must be that of the file.

    Raises:
        InputError: if the layer is another.
    """
    layer["type"].must_be("conv")
    layer["stride"].must_be(stride)
    layer["pad"].must_be(pad)
    outputs, inputs, rows, columns = shape
    weight = layer["weights"][0].numbers(rows, columns, inputs, outputs)
    return {
        f"{name}.weight": weight.transpose(3, 2, 0, 1),
        f"{name}.bias": vector(layer["weights"][1], outputs),
    }


def vector(part: Part, size: int) -> Float32[np.ndarray, " size"]:
    """A row or a column of numbers.

    Raises:
        InputError: if the part is another.
    """
    shape = (size, 1) if np.shape(part.value)[:1] == (size,) else (1, size)
    return part.numbers(*shape).ravel()
