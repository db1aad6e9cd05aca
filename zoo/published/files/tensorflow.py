"""Reader of frozen graphs of TensorFlow (`.pb`): operations with their attributes and constants.

A graph is a protobuf message. Only the fields that are read here are declared; protobuf skips the
others. TensorFlow is not needed, and nothing is executed.

The messages are those of graph.proto, node_def.proto, attr_value.proto, tensor.proto and
tensor_shape.proto of tensorflow/core/framework.
"""

import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from harness.errors import InputError

SCHEMA = {  # message -> number of a field -> name, type; "*": any number of values
    "Dim": {1: ("size", "int64")},
    "Shape": {2: ("dim", "*Dim")},
    "Tensor": {
        1: ("dtype", "int32"),
        2: ("shape", "Shape"),
        4: ("content", "bytes"),
        5: ("floats", "*float"),
        7: ("ints", "*int32"),
    },
    "List": {3: ("ints", "*int64")},
    "Attribute": {
        1: ("list", "List"),
        2: ("text", "bytes"),
        4: ("number", "float"),
        5: ("flag", "bool"),
        8: ("tensor", "Tensor"),
    },
    "Entry": {1: ("key", "string"), 2: ("value", "Attribute")},
    "Node": {
        1: ("name", "string"),
        2: ("op", "string"),
        3: ("inputs", "*string"),
        5: ("attributes", "*Entry"),
    },
    "Graph": {1: ("nodes", "*Node")},
}
DTYPES = {1: ("<f4", "floats"), 3: ("<i4", "ints")}  # DT_FLOAT, DT_INT32
LARGEST = 1 << 24  # numbers in a constant: one number in the file can stand for all


@dataclass(frozen=True)
class Node:
    """One operation."""

    name: str
    op: str  # "Conv2D"
    inputs: tuple[str, ...]  # names of nodes
    attributes: dict[str, object]  # text, number, flag or list of whole numbers
    constant: np.ndarray | None  # of the operation "Const"


def read(file: Path) -> dict[str, Node]:
    """The operations of a graph, by name.

    Raises:
        InputError: if the file is not a graph, or has a constant of another type; names the file.
    """
    try:
        graph = _message("Graph").FromString(file.read_bytes())
    except DecodeError as error:
        raise InputError(
            f"{file} is not a graph of TensorFlow, or it is cut off: {error}"
        ) from error
    found: dict[str, Node] = {}
    for node in graph.nodes:
        attributes = {entry.key: entry.value for entry in node.attributes}
        constant = None
        if node.op == "Const" and "value" in attributes:
            constant = _constant(file, node.name, attributes["value"].tensor)
        if node.name in found:
            raise InputError(f"{file} has two operations named {node.name!r}: it is damaged")
        # The number of an output is left out: of all operations here, the first one counts.
        inputs = tuple(one.partition(":")[0] for one in node.inputs if one[:1] != "^")
        values = {key: _value(value) for key, value in attributes.items()}
        found[node.name] = Node(node.name, node.op, inputs, values, constant)
    if not found:
        raise InputError(f"{file} has no operations: it is not a graph of TensorFlow")
    return found


def _value(attribute: Any) -> object:
    if attribute.HasField("list"):
        return list(attribute.list.ints)
    if attribute.text:
        return attribute.text.decode("latin-1")
    return attribute.number or attribute.flag


def _constant(file: Path, name: str, tensor: Any) -> np.ndarray:
    shape = tuple(dim.size for dim in tensor.shape.dim)
    numbers = np.empty(0)
    if tensor.dtype in DTYPES:
        dtype, field = DTYPES[tensor.dtype]
        whole = len(tensor.content) // np.dtype(dtype).itemsize * np.dtype(dtype).itemsize
        stored = np.frombuffer(tensor.content[:whole], dtype)
        numbers = stored if stored.size else np.array(getattr(tensor, field), dtype)
    count = math.prod(shape)
    if min(shape, default=0) < 0 or count > LARGEST or numbers.size not in (1, count):
        raise InputError(
            f"{file}: the constant {name!r} of type {tensor.dtype} and shape {shape} has"
            f" {numbers.size} numbers that are read here; the file is damaged, or another network"
        )
    return np.broadcast_to(numbers, count).reshape(shape)


@cache
def _message(name: str) -> Any:
    """The class of a message of SCHEMA."""
    file = descriptor_pb2.FileDescriptorProto(name="graph", package="harness", syntax="proto3")
    for message, fields in SCHEMA.items():
        made = file.message_type.add(name=message)
        for number, (field, kind) in fields.items():
            declared = made.field.add(name=field, number=number)
            declared.label = 3 if kind[0] == "*" else 1  # repeated, or at most one
            kind = kind.lstrip("*")
            if kind in SCHEMA:
                declared.type, declared.type_name = 11, f".harness.{kind}"
            else:
                declared.type = declared.Type.Value(f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"harness.{name}"))
