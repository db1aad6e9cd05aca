"""Reads the parameters of L2-Net from a published `.mat` file, and checks its layers.

A file contains two networks with their mean images: `net`, `pixMean` for a patch, and `netCen`,
`pixMeanCen` for its central half, which the authors use together in L2-Net CS. No file was at hand:
the form is that of the authors' matlab/cal_L2Net_des.m, which runs a file, and of two programs that
read one: extractors of the Image Matching Benchmark, and virtualgraham/L2-Net-Python-Keras.
"""

from pathlib import Path

from harness.data.weights import Tensors
from zoo.published.files import matconvnet, parts
from zoo.published.files.parts import Arrays, Part

SIDE = 32  # pixels of a patch
CONVOLUTIONS = (  # input, output, pixels on the side of the kernel, stride, padding
    (1, 32, 3, 1, 1),
    (32, 32, 3, 1, 1),
    (32, 64, 3, 2, 1),
    (64, 64, 3, 1, 1),
    (64, 128, 3, 2, 1),
    (128, 128, 3, 1, 1),
    (128, 128, 8, 1, 0),
)
KINDS = (*("conv", "bnormPair", "relu") * 6, "conv", "bnormPair", "normalize")


def tensors(file: Path) -> Tensors:
    """The parameters of both networks: `whole` for the patch, `centre` for its central half.

    Raises:
        InputError: if the file is not a .mat file, or contains another network.
    """
    published = matconvnet.read(file)
    whole = _tower(published["net"], published["pixMean"])
    centre = _tower(published["netCen"], published["pixMeanCen"])
    return parts.tensors(
        {f"whole.{name}": array for name, array in whole.items()}
        | {f"centre.{name}": array for name, array in centre.items()}
    )


def _tower(network: Part, mean: Part) -> Arrays:
    found = {"mean": mean.numbers(SIDE, SIDE)}
    layers = matconvnet.layers(network, KINDS)
    for i, (inputs, outputs, side, stride, pad) in enumerate(CONVOLUTIONS):
        shape = (outputs, inputs, side, side)
        convolution, normalisation = layers[3 * i : 3 * i + 2]
        found |= matconvnet.convolution(
            convolution, f"convolutions.{i}", shape, stride=stride, pad=pad
        )
        factor, shift, moments = (normalisation["weights"][j] for j in range(3))
        found[f"normalisations.{i}.factor"] = factor.vector(outputs)
        found[f"normalisations.{i}.shift"] = shift.vector(outputs)
        found[f"normalisations.{i}.mean"] = moments.numbers(outputs, 2)[:, 0]
        found[f"normalisations.{i}.deviation"] = moments.numbers(outputs, 2)[:, 1]
    found["length"] = matconvnet.of_whole_vector(layers[-1], outputs)
    return found
