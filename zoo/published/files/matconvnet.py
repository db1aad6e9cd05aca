"""Networks in .mat files of MatConvNet, in the form that its `vl_simplenn` runs: layers in a row.

MATLAB's filters have the axes (row, column, input, output), PyTorch's (output, input, row, column).
Both libraries compute correlations, so no filter is turned.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float32

from zoo.published.files import matlab5, matlab73
from zoo.published.files.parts import Arrays, Part


def read(file: Path) -> Part:
    """The variables of a .mat file, of MATLAB 5 or later.

    Raises:
        ExtraMissingError: if the file is HDF5, and h5py is not installed.
        InputError: if the file can't be read; names it.
    """
    return Part(file, (matlab73 if matlab73.is_matlab73(file) else matlab5).read(file))


def layers(network: Part, kinds: Sequence[str]) -> list[Part]:
    """The layers of a network, in their order.

    Raises:
        InputError: if they are not of these kinds.
    """
    found = network["layers"]
    found.must_have(len(kinds))
    for place, kind in enumerate(kinds):
        found[place]["type"].must_be(kind)
    return [found[place] for place in range(len(kinds))]


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
    layer["stride"].must_be(stride)
    layer["pad"].must_be(pad)
    outputs, inputs, rows, columns = shape
    weight = layer["weights"][0].numbers(rows, columns, inputs, outputs)
    bias = layer["weights"][1].vector(outputs)
    return {f"{name}.weight": weight.transpose(3, 2, 0, 1), f"{name}.bias": bias}


def of_whole_vector(layer: Part, channels: int) -> Float32[np.ndarray, "3"]:
    """Constant, factor and power of a normalisation by all channels.

    The layer divides a channel by (constant + factor * sum of squares) ** power. The sum is over a
    window of channels; (window - 1) // 2 of them are before the channel.

    Raises:
        InputError: if the window does not contain all channels for each channel.
    """
    window, *others = layer["param"].vector(4)
    if (window - 1) // 2 < channels - 1:
        raise layer["param"].wrong(f"has a window of {window:.0f}, too few for {channels} channels")
    return np.array(others)
