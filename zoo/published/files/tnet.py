"""Reads the parameters of TNet from a published `.mat` file, and checks its layers."""

from pathlib import Path

from harness.data.weights import Tensors
from zoo.published.files import matconvnet, parts

SIDE = 64  # pixels of a patch
KINDS = (
    *("conv", "relu", "pool", "conv", "relu", "pool"),
    *("conv", "relu", "conv", "relu", "conv", "normalize"),
)
CONVOLUTIONS = {  # place in KINDS -> output, input, pixels on the side of the kernel, stride
    0: (96, 1, 7, 3),
    3: (192, 96, 5, 1),
    6: (256, 192, 3, 1),
    8: (256, 256, 1, 1),
    10: (256, 256, 1, 1),
}


def tensors(file: Path) -> Tensors:
    """The parameters: `mean`, and `layers.0` to `layers.10` for the convolutions.

    Raises:
        InputError: if the file is not a .mat file, or contains another network.
    """
    published = matconvnet.read(file)
    layers = matconvnet.layers(published["net"], KINDS)
    found = {"mean": published["averageImage"].numbers(SIDE, SIDE)}
    for place, layer in enumerate(layers):
        if KINDS[place] == "conv":
            outputs, inputs, side, stride = CONVOLUTIONS[place]
            shape = (outputs, inputs, side, side)
            found |= matconvnet.convolution(layer, f"layers.{place}", shape, stride=stride)
        if KINDS[place] == "pool":
            layer["method"].must_be("max")
            for name, wanted in {"pool": 2, "stride": 2, "pad": 0}.items():
                layer[name].must_be(wanted)
    if tuple(matconvnet.of_whole_vector(layers[-1], 256)) != (0, 1, 0.5):
        raise layers[-1]["param"].wrong("does not give vectors of unit length")
    return parts.tensors(found)
