"""Reduces the precision of an ONNX graph: float16, or int8 with scales computed from patches."""

import logging
import tempfile
import warnings
from collections.abc import Container, Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from harness.errors import InputError
from harness.types import Patches

KINDS = ("fp32", "fp16", "int8")
WEIGHTED = {"Conv", "Gemm"}
PASSING = {"Relu", "Tanh", "MaxPool"}  # they stay in float16 after a WEIGHTED node
TOGETHER = 32  # patches described at a time to find the largest numbers


def to_float16(model: onnx.ModelProto) -> onnx.ModelProto:
    """The graph with WEIGHTED layers, and PASSING nodes after them, in float16.

    Resizing, normalising and norms of vectors stay in float32, which can hold sums of squares.
    """
    graph = model.graph
    weights = {t.name: t for t in graph.initializer if t.data_type == TensorProto.FLOAT}
    nodes: list[onnx.NodeProto] = []
    half: set[str] = set()  # tensors that have a float16 copy
    computed: set[str] = set()  # tensors that exist only in float16 so far

    def halved(name: str) -> str:
        if name and name not in half:
            half.add(name)
            if name in weights:
                values = numpy_helper.to_array(weights[name]).astype(np.float16)
                graph.initializer.append(numpy_helper.from_array(values, f"{name}/half"))
            else:
                nodes.append(_cast(name, f"{name}/half", TensorProto.FLOAT16))
        return f"{name}/half" if name else name

    def whole(name: str) -> None:
        if name in computed:
            computed.remove(name)
            nodes.append(_cast(f"{name}/half", name, TensorProto.FLOAT))

    for node in graph.node:  # in the order of computation
        passes = node.op_type in PASSING and node.input[0] in half
        if passes or _is_weighted(node, weights):
            node.input[:] = [halved(name) for name in node.input]
            half.update(node.output)
            computed.update(node.output)
            node.output[:] = [f"{name}/half" for name in node.output]
        else:
            for name in node.input:
                whole(name)
        nodes.append(node)
    for output in graph.output:
        whole(output.name)
    del graph.node[:]
    graph.node.extend(nodes)
    _drop_unused(graph)
    return model


def to_int8(model: onnx.ModelProto, patches: Patches) -> onnx.ModelProto:
    """The graph with all layers but the first in int8, with a scale for each channel.

    The first layer's input is the normalised patch, whose rare bright pixels would use up the range
    of int8: with that layer, the error was three times as large and the graph not faster.

    Args:
        model: the graph.
        patches: typical patches; their largest activations set the scales.

    Raises:
        InputError: if there is no second layer.
    """
    from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_static

    class Batches(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            chunks = (patches[i : i + TOGETHER] for i in range(0, len(patches), TOGETHER))
            self.left = ({model.graph.input[0].name: chunk} for chunk in chunks)

        def get_next(self) -> dict[str, Patches] | None:
            return next(self.left, None)

    weights = {tensor.name for tensor in model.graph.initializer}
    layers = [node.name for node in model.graph.node if _is_weighted(node, weights)]
    if len(layers) < 2:
        raise InputError(f"int8 is for all layers but the first, and the graph has {len(layers)}")
    with tempfile.TemporaryDirectory() as folder, quietly():
        # Use a file: a model in memory would be split into files named by time and network card,
        # and the latter opens a socket.
        whole, file = Path(folder, "fp32.onnx"), Path(folder, "int8.onnx")
        onnx.save(model, whole)
        quantize_static(
            str(whole),
            str(file),
            Batches(),
            per_channel=True,
            nodes_to_quantize=layers[1:],
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
        )
        return onnx.load(file)


def _is_weighted(node: onnx.NodeProto, weights: Container[str]) -> bool:
    return node.op_type in WEIGHTED and node.input[1] in weights


def _cast(tensor: str, result: str, kind: int) -> onnx.NodeProto:
    return helper.make_node("Cast", [tensor], [result], name=f"{result}/cast", to=kind)


def _drop_unused(graph: onnx.GraphProto) -> None:
    used = {name for node in graph.node for name in node.input}
    kept = [tensor for tensor in graph.initializer if tensor.name in used]
    del graph.initializer[:]
    graph.initializer.extend(kept)


@contextmanager
def quietly() -> Iterator[None]:
    """Silence prints, warnings and log messages of libraries in the block, but not errors."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with redirect_stdout(StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
