"""Reads the parameters of DeepDesc from a published `.t7` file, and checks its layers."""

from pathlib import Path

from harness.data.weights import Tensors
from zoo.published.files import parts, torch7
from zoo.published.files.parts import Part

SIDE = 64  # pixels of a patch
LAYERS = (  # input, output, pixels on the side of the kernel, of the pooling
    (1, 32, 7, 2),
    (32, 64, 6, 3),
    (64, 128, 5, 4),
)
AVERAGED = 5  # pixels on the side of a local mean


def tensors(file: Path) -> Tensors:
    """The parameters: `mean`, `deviation`, `conv1` to `conv3`, `mean1` and `mean2`.

    Raises:
        InputError: if the file is not a Torch7 file, or contains another network.
    """
    published = Part(file, torch7.read(file))
    modules = published["desc"]["fields"]["modules"]
    found = {
        "mean": published["mean"].numbers(1, SIDE, SIDE)[0],
        "deviation": published["std"].numbers(1, SIDE, SIDE)[0],
    }
    place = 0
    for layer, (inputs, outputs, side, pooled) in enumerate(LAYERS, 1):
        convolution = _module(modules, place + 1, "nn.SpatialConvolution")
        for name, wanted in {"dH": 1, "dW": 1, "padH": 0, "padW": 0}.items():
            convolution[name].must_be(wanted)
        weight = convolution["weight"].numbers(outputs, inputs, side, side)
        found[f"conv{layer}.weight"] = weight
        found[f"conv{layer}.bias"] = convolution["bias"].numbers(outputs)
        _module(modules, place + 2, "nn.Tanh")
        pooling = _module(modules, place + 3, "nn.SpatialLPPooling")
        for name in ("kH", "kW", "dH", "dW"):
            pooling[name].must_be(pooled)
        _module(pooling["modules"], 1, "nn.Square")  # the norm is the Euclidean one
        place += 4
        if layer < len(LAYERS):
            subtraction = _module(modules, place, "nn.SpatialSubtractiveNormalization")
            steps = subtraction["meanestimator"]["fields"]["modules"]
            padding = _module(steps, 1, "nn.SpatialZeroPadding")
            for name in ("pad_l", "pad_r", "pad_t", "pad_b"):
                padding[name].must_be(AVERAGED // 2)
            average = _module(steps, 2, "nn.SpatialConvolution")
            weight = average["weight"].numbers(1, outputs, AVERAGED, AVERAGED)
            found |= {
                f"mean{layer}.weight": weight,
                f"mean{layer}.bias": average["bias"].numbers(1),
            }
    _module(modules, place, "nn.Reshape")
    modules.must_have(place)
    return parts.tensors(found)


def _module(modules: Part, place: int, kind: str) -> Part:
    """The fields of a module of this class."""
    module = modules[place]
    module["kind"].must_be(kind)
    return module["fields"]
