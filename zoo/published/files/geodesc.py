"""Reads the parameters of GeoDesc from the published frozen graph, and checks its operations.

The file was not at hand. Its input and output are named in the authors' examples; its layers are
those of `GeoDesc` in their training code, lzx551402/tfmatch@e26a18f:cnn_wrapper/descnet.py. Names
of other operations are not known, so the layers are found by following inputs from the output on. A
graph with other operations is refused.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float32

from harness.data.weights import Tensors
from harness.errors import InputError
from zoo.published.files import parts, tensorflow
from zoo.published.files.parts import Part
from zoo.published.files.tensorflow import Node

INPUT, OUTPUT = "input", "squeeze_1"
CONVOLUTIONS = (  # input, output, pixels on the side of the kernel, stride, TensorFlow's padding
    (1, 32, 3, 1, "SAME"),
    (32, 32, 3, 1, "SAME"),
    (32, 64, 3, 2, "SAME"),
    (64, 64, 3, 1, "SAME"),
    (64, 128, 3, 2, "SAME"),
    (128, 128, 3, 1, "SAME"),
    (128, 128, 8, 1, "VALID"),
)
NORMALISATIONS = ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
BETWEEN = 2  # operations that may follow a convolution: a bias and batch normalisation
DEFAULTS = {"data_format": "NHWC", "dilations": [1, 1, 1, 1]}  # of attributes that are absent


def tensors(file: Path) -> Tensors:
    """Weights and biases of `convolutions`; they include the batch normalisation.

    Raises:
        InputError: if the file is not a graph of TensorFlow, or contains another network.
    """
    graph = _Graph(file, tensorflow.read(file))
    node = graph.before_unit_length(graph.named(OUTPUT))
    found = {}
    for place in reversed(range(len(CONVOLUTIONS))):
        if place < len(CONVOLUTIONS) - 1:
            node = graph.input(graph.must_be(node, "Relu"))
        node, weight, bias = graph.layer(node, place)
        found[f"convolutions.{place}.weight"] = weight
        found[f"convolutions.{place}.bias"] = bias
    if graph.must_be(node, "Placeholder").name != INPUT:
        raise graph.wrong(node, f"is not named {INPUT!r}")
    return parts.tensors(found)


@dataclass
class _Graph:
    file: Path
    nodes: dict[str, Node]

    def wrong(self, node: Node, problem: str) -> InputError:
        return InputError(
            f"{self.file} is not the published network: the operation {node.name!r}, {node.op},"
            f" {problem}; get the file of the authors"
        )

    def named(self, name: str) -> Node:
        """The operation of this name, or the one whose value it only hands on."""
        for _ in self.nodes:
            if name not in self.nodes:
                break
            node = self.nodes[name]
            if node.op != "Identity" or not node.inputs:
                return node
            name = node.inputs[0]
        raise InputError(
            f"{self.file} is not the published network: it has no operation {name!r}; get the file"
            " of the authors"
        )

    def input(self, node: Node, place: int = 0) -> Node:
        if place >= len(node.inputs):
            raise self.wrong(node, f"has no input {place}")
        return self.named(node.inputs[place])

    def must_be(self, node: Node, *ops: str) -> Node:
        if node.op not in ops:
            raise self.wrong(node, f"should be {' or '.join(ops)}")
        return node

    def constant(self, node: Node, place: int, *shape: int) -> Float32[np.ndarray, "..."]:
        source = self.must_be(self.input(node, place), "Const")
        return Part(self.file, source.constant, f"the constant {source.name!r}").numbers(*shape)

    def must_have(self, node: Node, **attributes: object) -> None:
        for name, wanted in attributes.items():
            found = node.attributes.get(name, DEFAULTS.get(name))
            if found != wanted:
                raise self.wrong(node, f"has {name} {found!r}, and should have {wanted!r}")

    def epsilon(self, node: Node) -> float:
        epsilon = node.attributes.get("epsilon")
        if not isinstance(epsilon, float):
            raise self.wrong(node, "has no epsilon")
        return epsilon

    def before_unit_length(self, node: Node) -> Node:
        """The vector of which the output is `squeeze(l2_normalize(vector))`."""
        product = self.must_be(self.input(self.must_be(node, "Squeeze")), "Mul")
        vector, node = self.input(product), self.must_be(self.input(product, 1), "Rsqrt")
        for op in ("Maximum", "Sum", "Square"):
            node = self.must_be(self.input(node), op)
        if self.input(node) is not vector:
            raise self.wrong(node, f"is not of the vector {vector.name!r}")
        return vector

    def layer(
        self, node: Node, place: int
    ) -> tuple[Node, Float32[np.ndarray, "o i h w"], Float32[np.ndarray, " o"]]:
        """The operation before a convolution, and its weight and bias, as PyTorch has them."""
        inputs, outputs, side, stride, padding = CONVOLUTIONS[place]
        factor, shift = np.ones(outputs), np.zeros(outputs)
        for _ in range(BETWEEN):
            if node.op == "Conv2D":
                break
            self.must_be(node, "Conv2D", "BiasAdd", *NORMALISATIONS)
            self.must_have(node, data_format="NHWC")
            if node.op == "BiasAdd":
                shift = shift + factor * self.constant(node, 1, outputs)
            else:
                self.must_have(node, is_training=False)
                scale, offset, mean, variance = (
                    self.constant(node, i, outputs).astype(float) for i in range(1, 5)
                )
                scale = scale / np.sqrt(variance + self.epsilon(node))
                shift = shift + factor * (offset - scale * mean)
                factor = factor * scale
            node = self.input(node)
        self.must_be(node, "Conv2D")
        strides = [1, stride, stride, 1]
        self.must_have(node, strides=strides, padding=padding, dilations=[1, 1, 1, 1])
        self.must_have(node, data_format="NHWC")
        filters = self.constant(node, 1, side, side, inputs, outputs) * factor
        weight = filters.transpose(3, 2, 0, 1).astype(np.float32)
        return self.input(node), weight, shift.astype(np.float32)
