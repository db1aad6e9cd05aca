"""Exports a torch network as an ONNX file, uint8 patches of any size to vectors, and checks it.

The network resizes, normalises and packs bits, so these steps are nodes of the graph.
"""

import hashlib
import json
import math
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path

import torch  # first: of both, its extra is the one to install
from torch import nn

# isort: split
import onnx

from harness import cache as caches
from harness.code import code_sha256
from harness.errors import InputError
from harness.files import atomic
from harness.onnx import check as onnx_check
from harness.onnx import file as onnx_file
from harness.onnx import precision as onnx_precision
from harness.types import Descriptor, Patches

OPSET = 18
LIBRARIES = ("torch", "onnx", "onnxscript")  # that make a graph


@dataclass(frozen=True)
class Exported:
    """A written file, and the largest distance between its vectors and the network's."""

    file: Path
    size: int  # bytes
    apart: onnx_check.Apart


def export(
    descriptor: Descriptor,
    file: Path,
    *,
    precision: str = "fp32",
    calibration: Patches | None = None,
) -> Exported:
    """Write a descriptor's network as an ONNX file, if the file gives the same vectors.

    Args:
        descriptor: a descriptor with a network.
        file: the file to write.
        precision: as in `contents_of`.
        calibration: as in `contents_of`.

    Raises:
        InputError: as `contents_of` does.
    """
    atomic.must_be_writable(file.parent, f"{file} can't be written")
    contents, apart = contents_of(descriptor, precision=precision, calibration=calibration)
    with atomic.writing(file) as stream:
        stream.write(contents)
    return Exported(file, len(contents), apart)


def contents_of(
    descriptor: Descriptor, *, precision: str = "fp32", calibration: Patches | None = None
) -> tuple[bytes, onnx_check.Apart]:
    """The ONNX contents of a descriptor's network, and the largest distance from its vectors.

    Torch and ONNX Runtime, at each level of its optimisation, describe patches of several sizes,
    also flat and nearly flat ones, 0, 1, 2, 7 and 33 at a time. In float32 the cosine distance must
    be below 1e-5 for all patches; in other precisions it is only returned. The metadata contain the
    facts of the descriptor, and `recipe` if the network has this text.

    Args:
        descriptor: a descriptor with a network.
        precision: of convolutions and linear layers: "fp32", "fp16" or "int8".
        calibration: typical patches, from which int8 computes its scales.

    Raises:
        InputError: if there is no network, if it can't be exported, or if the graph gives other
            vectors; names the patch.
    """
    if descriptor.network is None:
        raise InputError(
            f"{descriptor.name} can't be exported: it has no network (Descriptor.network, a"
            " function that makes a torch module from uint8 patches to vectors); some wrappers have"
            " none either"
        )
    if precision not in onnx_precision.KINDS:
        raise InputError(f"no precision {precision!r}; known: {', '.join(onnx_precision.KINDS)}")
    if precision == "int8" and calibration is None:
        raise InputError("int8 takes its scales from patches: give some for calibration")
    network = descriptor.network().cpu().eval()
    model = graph(network, descriptor.name)
    if precision == "fp16":
        model = onnx_precision.to_float16(model)
    elif precision == "int8" and calibration is not None:
        model = onnx_precision.to_int8(model, calibration)
    onnx.helper.set_model_props(model, _metadata(descriptor, network, precision))
    contents = model.SerializeToString(deterministic=True)
    allowed = onnx_check.rounding(descriptor) if precision == "fp32" else math.inf
    return contents, onnx_check.verify(contents, network, descriptor, allowed=allowed)


def through_onnx(descriptor: Descriptor, *, device: str = "cpu") -> Descriptor:
    """The same descriptor, but ONNX Runtime computes its vectors from its exported network.

    The graph is exported once and cached. Its key is: weights, code and facts of the descriptor,
    the code of the export, and the versions of the libraries that make graphs.

    Args:
        descriptor: a descriptor with network, weights and code.
        device: "cpu" or "cuda".

    Raises:
        ComputeError: if device is "cuda" and ONNX Runtime would compute elsewhere.
        InputError: as `contents_of` does.
    """
    if not (descriptor.weights and descriptor.code):
        raise InputError(
            f"{descriptor.name} has no weights or no code: its cached graph could not be told"
            " from that of others"
        )
    made_by = {name: version(name) for name in LIBRARIES}
    both = f"{descriptor.code} {code_sha256(__name__, onnx_file.__name__)}"
    code = hashlib.sha256(both.encode()).hexdigest()
    origin = {**_facts(descriptor), **made_by, "code": code}
    contents = caches.kept("onnx").get(origin, lambda: contents_of(descriptor)[0])
    opened = onnx_file.open_model(Path(f"{descriptor.name}.onnx"), device=device, contents=contents)
    return replace(
        descriptor,
        describe=opened.describe,
        code=code,
        libraries=tuple(sorted({*opened.libraries, *LIBRARIES})),
        provider=opened.provider,
    )


class _AnyNumber(nn.Module):
    """A network that also accepts zero patches: it adds a blank one and drops its row."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, patches: torch.Tensor) -> torch.Tensor:
        n, height, width = patches.shape
        blank = patches.new_zeros((torch.sym_max(1 - n, 0), height, width))
        return self.network(torch.cat([patches, blank]))[:n]


def graph(network: nn.Module, name: str) -> onnx.ModelProto:
    """The ONNX graph of a network, from its input "patches", uint8, to its output "vectors".

    Raises:
        InputError: if it can't be exported for any number of patches of any size.
    """
    example = torch.zeros((3, 40, 40), dtype=torch.uint8)
    try:
        with onnx_precision.quietly(), _no_compiler_folder():
            program = torch.onnx.export(
                _AnyNumber(network),
                (example,),
                input_names=["patches"],
                output_names=["vectors"],
                dynamic_shapes={"patches": {0: "n", 1: "height", 2: "width"}},
                opset_version=OPSET,
                dynamo=True,
                verbose=False,
            )
    except Exception as error:  # its type depends on the step that failed
        cause = error.__cause__ or error
        raise InputError(
            f"{name} can't be exported: {type(cause).__name__}: {cause}. A network takes uint8"
            " patches [n, height, width], any n, height and width"
        ) from error
    assert program is not None
    model = program.model_proto
    _strip_debug_metadata(model)
    return model


@contextmanager
def _no_compiler_folder() -> Iterator[None]:
    """Keep torch from making a compiler folder, which it does even if it compiles nothing.

    Torch uses the folder in this variable. The temporary folder always exists, so none is made.
    """
    name = "TORCHINDUCTOR_CACHE_DIR"
    before = os.environ.get(name)
    os.environ[name] = before or tempfile.gettempdir()
    try:
        yield
    finally:
        os.environ.pop(name, None)
        if before is not None:
            os.environ[name] = before


def _strip_debug_metadata(model: onnx.ModelProto) -> None:
    """Strip the exporter's debug metadata: source lines of this machine, names of values."""
    del model.metadata_props[:]
    graph = model.graph
    del graph.metadata_props[:], graph.value_info[:]
    for part in (*graph.node, *graph.input, *graph.output, *graph.initializer):
        del part.metadata_props[:]
        part.doc_string = ""


def _metadata(descriptor: Descriptor, network: nn.Module, precision: str) -> dict[str, str]:
    texts = _facts(descriptor) | {"precision": precision}
    texts |= {f"{name}_version": version(name) for name in (*LIBRARIES, "descriptor-harness")}
    recipe = getattr(network, "recipe", None)
    return texts | ({"recipe": recipe} if isinstance(recipe, str) else {})


def _facts(descriptor: Descriptor) -> dict[str, str]:
    """The metadata that `onnx_file.open_model` reads, and the hash of the weights."""
    facts = {
        "name": descriptor.name,
        "dim": str(descriptor.dim),
        "distance": descriptor.distance.name,
        "licence": descriptor.licence,
    }
    if descriptor.trained_on is not None:
        facts["trained_on"] = json.dumps(sorted(descriptor.trained_on))
    if descriptor.photographs:
        facts["photographs"] = json.dumps([asdict(one) for one in descriptor.photographs])
    if descriptor.weights:
        facts["weights_sha256"] = descriptor.weights
    return facts
