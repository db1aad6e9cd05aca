"""Checks the contents of an ONNX file before ONNX Runtime reads them.

Any tensor of a model (an initializer, an attribute, a branch, a function, a sparse tensor) may keep
its numbers in another file, which ONNX Runtime reads from the working directory. The vectors would
then depend on a file that is not part of the model's hash. So a model must be complete in one file,
and every protobuf message in it is checked, in whatever field it is.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import FileMissingError, InputError, one_line

if TYPE_CHECKING:
    import onnx

LARGEST = 2**31 - 1  # bytes; the largest protobuf message
NODES = 50_000  # ONNX Runtime needs a minute for so many from nested functions
TEXT = 100_000  # characters of a text in the metadata, at most


def read(file: Path) -> bytes:
    """The bytes of an ONNX file.

    Raises:
        FileMissingError: if there is no such file.
        InputError: if it is larger than an ONNX file can be.
    """
    if not file.is_file():
        raise FileMissingError(f"no ONNX file {file}")
    size = file.stat().st_size
    if size > LARGEST:
        raise InputError(f"{file} is not an ONNX file: it has {size} bytes, more than {LARGEST}")
    return file.read_bytes()


def parse(contents: bytes, file: Path) -> "onnx.ModelProto":
    """The checked ONNX model in these bytes.

    Args:
        contents: the bytes.
        file: the file that they come from or go to, for messages.

    Raises:
        InputError: if the bytes are not an ONNX model; or it needs another file, has fields that
            the installed onnx does not know, has text that is not UTF-8, or too many nodes after
            its functions are expanded.
    """
    import onnx
    from google.protobuf.unknown_fields import UnknownFieldSet

    try:
        model = onnx.load_model_from_string(contents)
    except Exception as error:  # protobuf's DecodeError is not public
        raise InputError(f"{file} is not an ONNX file: {one_line(error)}") from error
    for place, message in _messages(model):
        if len(UnknownFieldSet(message)):
            raise InputError(
                f"{file} is damaged, or newer than the installed onnx {onnx.__version__}, which"
                f" does not know a field of {place}: try a newer onnx"
            )
        if field := _broken_text(message):
            raise InputError(f"{file} is damaged: {field} of {place} is not UTF-8 text")
        if isinstance(message, onnx.TensorProto) and message.data_location == message.EXTERNAL:
            raise InputError(
                f"{file} keeps the numbers of tensor {message.name!r:.60} ({place}) in another"
                " file, which its hash would miss; to join them:"
                f' python -c "import onnx; onnx.save(onnx.load({str(file)!r}),'
                f' {str(file)!r})"'
            )
        if isinstance(message, onnx.NodeProto) and message.op_type == "EPContext":
            raise InputError(
                f"{file} was compiled for one device ({place} is an EPContext node, whose code may"
                " lie in another file): give the model that it was compiled from"
            )
    if (nodes := _expanded(model, file)) > NODES:
        raise InputError(
            f"{file} has {nodes} nodes after its functions are expanded; at most {NODES} are read"
        )
    return model


def metadata(model: "onnx.ModelProto", file: Path) -> dict[str, str]:
    """The metadata of a model; if a key is there twice, the last text counts, as in ONNX Runtime.

    Raises:
        InputError: if a text is too long, or if the metadata contain options of ONNX Runtime.
    """
    texts: dict[str, str] = {}
    for entry in model.metadata_props:
        if max(len(entry.key), len(entry.value)) > TEXT:
            raise InputError(
                f"{file}: its metadata {entry.key!r:.60} have {len(entry.value)} characters; at"
                f" most {TEXT} are read"
            )
        texts[entry.key] = entry.value
    if "ort_config" in texts:  # used if ORT_LOAD_CONFIG_FROM_MODEL is set; can write files
        raise InputError(
            f"{file} holds options of ONNX Runtime (ort_config in its metadata), which could change"
            " its vectors: delete them"
        )
    return texts


def _messages(whole: Any) -> Iterator[tuple[str, Any]]:
    """All protobuf messages in a message, with their places: "graph.node[3].attribute[0].t"."""
    from google.protobuf.message import Message

    waiting: list[tuple[str, Any]] = [("", whole)]
    while waiting:
        place, message = waiting.pop()
        yield place or "the model", message
        for field, value in message.ListFields():
            if field.message_type is None:
                continue
            inside = f"{place}.{field.name}" if place else field.name
            if isinstance(value, Message):
                waiting.append((inside, value))
            else:
                waiting.extend((f"{inside}[{i}]", item) for i, item in enumerate(value))


def _broken_text(message: Any) -> str | None:
    """The first text field that is not UTF-8; protobuf returns its text as bytes."""
    for field, value in message.ListFields():
        if field.type == field.TYPE_STRING:
            texts = [value] if isinstance(value, str | bytes) else value
            if any(isinstance(text, bytes) for text in texts):
                return str(field.name)
    return None


def _expanded(model: "onnx.ModelProto", file: Path) -> int:
    """Number of nodes after every call of a function is replaced by its nodes.

    A few kilobytes of functions that call each other twice expand to more than fits in memory.
    """
    calls = {_called(function, function.name): _calls(function) for function in model.functions}

    @cache
    def size(call: tuple[str, str]) -> int:
        return 1 + sum(size(inner) for inner in calls.get(call, ()))

    try:
        return sum(size(call) for call in _calls(model.graph))
    except RecursionError as error:
        raise InputError(
            f"{file} has functions that call each other endlessly, or too deeply"
        ) from error


def _calls(part: "onnx.GraphProto | onnx.FunctionProto") -> list[tuple[str, str]]:
    import onnx

    nodes = (message for _, message in _messages(part) if isinstance(message, onnx.NodeProto))
    return [_called(node, node.op_type) for node in nodes]


def _called(part: "onnx.NodeProto | onnx.FunctionProto", name: str) -> tuple[str, str]:
    return ("" if part.domain == "ai.onnx" else part.domain, name)  # two names of the same domain
