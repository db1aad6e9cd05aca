"""ONNX files of strangers: none reads another file, hangs at once, or fails without its name."""

import hashlib
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from onnx.onnx_ml_pb2 import ModelProto

from harness import Descriptor
from harness.distances import L2
from harness.onnx import check as onnx_check
from harness.onnx import contents as onnx_contents
from harness.onnx import file as onnx_file
from harness.onnx import runtime as onnx_runtime

PATCHES = np.random.default_rng(0).integers(0, 256, (5, 65, 65), dtype=np.uint8)
PATCHES.flags.writeable = False


def number(value: float, name: str = "c") -> TensorProto:
    return numpy_helper.from_array(np.array([value], np.float32), name)


def elsewhere(name: str = "c", location: str = "numbers.bin") -> TensorProto:
    """A tensor of one number, which lies in another file."""
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[1])
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    return tensor


def node(operator, inputs, outputs, **attributes):
    return helper.make_node(operator, inputs.split(), outputs.split(), **attributes)


ADD = node("Add", "means c", "vectors")


def model(*nodes, constants=(), sparse=(), functions=(), shape=("n", "h", "w"), **said):
    """From uint8 patches, "image", through "means" of their rows, to "vectors"."""
    before = [
        node("Cast", "image", "grey", to=TensorProto.FLOAT),
        node("ReduceMean", "grey", "means", keepdims=0, axes=[2]),
    ]
    graph = helper.make_graph(
        [*before, *nodes],
        "tiny",
        [helper.make_tensor_value_info("image", TensorProto.UINT8, shape)],
        [helper.make_tensor_value_info("vectors", TensorProto.FLOAT, None)],
        list(constants),
        sparse_initializer=list(sparse),
    )
    domains = {"": 17, "mine": 1, "com.microsoft": 1}
    made = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid(*one) for one in domains.items()],
        ir_version=9,
        functions=list(functions),
    )
    helper.set_model_props(made, said)
    return made


def branching(then: onnx.GraphProto) -> ModelProto:
    yes = helper.make_tensor("yes", TensorProto.BOOL, [], [True])
    return model(node("If", "yes", "vectors", then_branch=then, else_branch=then), constants=[yes])


def branch(*nodes, constants=()):
    out = helper.make_tensor_value_info("out", TensorProto.FLOAT, None)
    nodes = (*nodes, node("Add", "means c", "out"))
    return helper.make_graph(list(nodes), "branch", [], [out], list(constants))


def sparse(values, indices=None):
    indices = indices or numpy_helper.from_array(np.array([0]))
    return onnx.SparseTensorProto(values=values, indices=indices, dims=[1])


def constant(**attributes):
    return node("Constant", "", "c", **attributes)


FUNCTION = helper.make_function(
    "mine",
    "Shift",
    ["a"],
    ["b"],
    [constant(value=elsewhere()), node("Add", "a c", "b")],
    [helper.make_opsetid("", 17)],
)
ONE = helper.make_tensor("one", TensorProto.INT64, [1], [1])
OUTSIDE = {  # places from which ONNX Runtime 1.31 reads a file of the working directory
    "initializer": model(ADD, constants=[elsewhere()]),
    "constant": model(constant(value=elsewhere()), ADD),
    "shape": model(node("ConstantOfShape", "one", "c", value=elsewhere()), ADD, constants=[ONE]),
    "branch": branching(branch(constants=[elsewhere()])),
    "constant of a branch": branching(branch(constant(value=elsewhere()))),
    "function": model(node("Shift", "means", "vectors", domain="mine"), functions=[FUNCTION]),
    "sparse initializer": model(ADD, sparse=[sparse(elsewhere())]),
    "sparse constant": model(constant(sparse_value=sparse(elsewhere())), ADD),
    "sparse indices": model(ADD, sparse=[sparse(number(1), elsewhere("at"))]),
}


@pytest.fixture
def saved(tmp_path, monkeypatch):
    """Writes a model as tiny.onnx into the working directory, which has a file of numbers."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "numbers.bin").write_bytes(np.array([7], np.float32).tobytes())

    def save(made):
        contents = made if isinstance(made, bytes) else made.SerializeToString()
        (tmp_path / "tiny.onnx").write_bytes(contents)
        return tmp_path / "tiny.onnx"

    return save


def opened(file):
    return onnx_file.open_model(file, device="cpu")


# ---- other files


@pytest.mark.parametrize("made", OUTSIDE.values(), ids=OUTSIDE)
def test_numbers_in_another_file_are_refused_wherever_the_tensor_stands(saved, made):
    with pytest.raises(ValueError, match=r"tiny\.onnx keeps the numbers of tensor '(c|at)' \("):
        opened(saved(made))


@pytest.mark.parametrize("place", ["branch", "sparse constant", "shape"])
def test_onnx_runtime_would_read_the_other_file(saved, place):
    """The reason of the refusals: else the vectors hang on a file that no hash covers."""
    contents = OUTSIDE[place].SerializeToString()
    saved(contents)
    vectors = onnx_runtime.session(contents).run(None, {"image": PATCHES})[0]
    np.testing.assert_allclose(vectors, PATCHES.mean(axis=2) + 7, rtol=1e-6)


@pytest.mark.parametrize("location", ["/etc/passwd", "../numbers.bin", "link", "", "*/_ORT_MEM_A"])
def test_the_name_of_the_other_file_does_not_matter(saved, location, tmp_path):
    (tmp_path / "link").symlink_to("numbers.bin")
    with pytest.raises(ValueError, match="in another file"):
        opened(saved(model(ADD, constants=[elsewhere(location=location)])))


def ways(kind, above=()):
    """Rows of fields that lead from a message to a tensor, through no kind of message thrice."""
    for field in kind.fields:
        inside = field.message_type
        if inside is TensorProto.DESCRIPTOR:
            yield (field,)
        elif inside is not None and above.count(inside.full_name) < 2:
            yield from ((field, *rest) for rest in ways(inside, (*above, inside.full_name)))


def test_no_field_of_the_format_hides_a_tensor_in_another_file():
    """Fields are those of the installed onnx, so that new ones are tried as they come."""
    tried = set()
    for way in ways(ModelProto.DESCRIPTOR):
        made = message = ModelProto()
        for field in way:
            value = getattr(message, field.name)
            message = value.add() if hasattr(value, "add") else value
        message.CopyFrom(elsewhere())
        place = r"(\[0\])?\.".join(field.name for field in way)
        with pytest.raises(ValueError, match=rf"tensor 'c' \({place}"):
            onnx_contents.parse(made.SerializeToString(), Path("x.onnx"))
        tried.add(".".join(field.name for field in way))
    assert {
        "graph.initializer", "graph.sparse_initializer.values", "graph.sparse_initializer.indices",
        "graph.node.attribute.t", "graph.node.attribute.tensors",
        "graph.node.attribute.sparse_tensor.values", "graph.node.attribute.sparse_tensors.values",
        "graph.node.attribute.g.initializer", "graph.node.attribute.graphs.initializer",
        "functions.node.attribute.t", "training_info.initialization.initializer",
        "training_info.algorithm.initializer",
    } <= tried  # fmt: skip


@pytest.mark.parametrize("place", ["initializer", "branch", "function"])
def test_the_remedy_for_numbers_in_another_file_works(saved, place):
    file = saved(OUTSIDE[place])
    with pytest.raises(ValueError, match="python -c") as error:
        opened(file)
    command = str(error.value).partition("python -c ")[2].strip('"')
    subprocess.run([sys.executable, "-c", command], check=True)
    vectors = opened(file).describe(PATCHES)
    np.testing.assert_allclose(vectors, PATCHES.mean(axis=2) + 7, rtol=1e-6)


def test_a_model_compiled_for_one_device_is_refused(saved):
    cached = node(
        "EPContext", "means", "vectors", domain="com.microsoft", embed_mode=0, main_context=1,
        ep_cache_context="numbers.bin",
    )  # fmt: skip
    with pytest.raises(ValueError, match=r"tiny\.onnx was compiled for one device \(graph\.node"):
        opened(saved(model(cached)))


def test_options_of_onnx_runtime_in_a_model_are_refused(saved, monkeypatch, tmp_path):
    """With this variable it would obey them, and write a profile into the working directory."""
    monkeypatch.setenv("ORT_LOAD_CONFIG_FROM_MODEL", "1")
    config = '{"session_options": {"enable_profiling": 1}}'
    with pytest.raises(ValueError, match=r"tiny\.onnx holds options of ONNX Runtime"):
        opened(saved(model(ADD, constants=[number(1)], ort_config=config)))
    assert {file.name for file in tmp_path.iterdir()} == {"tiny.onnx", "numbers.bin"}


def test_an_onnx_file_that_begins_like_another_format_is_read_as_onnx(saved):
    """Bytes 4 to 8 of a file in ONNX Runtime's own format are ORTM."""
    text = b"\0ORTM".ljust(130, b" ")
    contents = b"\x32\x82\x01" + text + model(ADD, constants=[number(1)]).SerializeToString()
    assert onnx_contents.parse(contents, Path("x")).doc_string.encode() == text
    vectors = opened(saved(contents)).describe(PATCHES)
    np.testing.assert_allclose(vectors, PATCHES.mean(axis=2) + 1, rtol=1e-6)


def test_an_exported_graph_is_whole_in_one_file(saved):
    """What `harness export` writes goes through the same eyes before it is written."""
    network = torch.nn.Flatten()
    descriptor = Descriptor("net", network, L2, 1, network=lambda: network)
    with pytest.raises(ValueError, match=r"net\.onnx keeps the numbers of tensor 'c'"):
        onnx_check.verify(OUTSIDE["branch"].SerializeToString(), network, descriptor, allowed=1)


def test_a_whole_model_is_described_and_hashed(saved):
    file = saved(model(ADD, constants=[number(1)]))
    found = opened(file)
    assert (found.name, found.distance, found.dim) == ("onnx:tiny", L2, 65)
    assert found.weights == hashlib.sha256(file.read_bytes()).hexdigest()
    np.testing.assert_allclose(found.describe(PATCHES), PATCHES.mean(axis=2) + 1, rtol=1e-6)


def test_the_numbers_of_a_sparse_tensor_in_the_file_are_taken(saved):
    vectors = opened(saved(model(ADD, sparse=[sparse(number(3))]))).describe(PATCHES)
    np.testing.assert_allclose(vectors, PATCHES.mean(axis=2) + 3, rtol=1e-6)


# ---- what is broken, or without bounds


def functions(depth: int):
    """Functions of which each calls the one before twice: 2 ** depth nodes."""
    yield helper.make_function("mine", "F0", ["a"], ["b"], [node("Neg", "a", "b")],
                               [helper.make_opsetid("", 17)])  # fmt: skip
    for level in range(1, depth + 1):
        calls = [
            node(f"F{level - 1}", "a", "x", domain="mine"),
            node(f"F{level - 1}", "x", "b", domain="mine"),
        ]
        imports = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
        yield helper.make_function("mine", f"F{level}", ["a"], ["b"], calls, imports)


def calling(depth: int) -> ModelProto:
    return model(node(f"F{depth}", "means", "vectors", domain="mine"), functions=functions(depth))


def test_functions_are_expanded(saved):
    vectors = opened(saved(calling(4))).describe(PATCHES)
    np.testing.assert_allclose(vectors, PATCHES.mean(axis=2), rtol=1e-6)


@pytest.mark.parametrize(
    ("depth", "message"),
    [
        (16, r"tiny\.onnx has 196609 nodes after its functions are expanded; at most 50000"),
        (60, r"tiny\.onnx has \d{19} nodes after"),
        (2000, r"tiny\.onnx has functions that call each other endlessly, or too deeply"),
    ],
)
def test_functions_that_expand_without_limit_are_refused(saved, depth, message):
    with pytest.raises(ValueError, match=message):
        opened(saved(calling(depth)))


def test_a_function_that_calls_itself_is_refused(saved):
    call = [node("F", "a", "b", domain="mine")]
    imports = [helper.make_opsetid("mine", 1)]
    own = helper.make_function("mine", "F", ["a"], ["b"], call, imports)
    with pytest.raises(ValueError, match=r"tiny\.onnx has functions that call each other endless"):
        opened(saved(model(node("F", "means", "vectors", domain="mine"), functions=[own])))


def test_a_loop_without_end_is_stopped(saved, monkeypatch):
    monkeypatch.setattr(onnx_file, "PATIENCE", 0.5)
    values = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "vw"}
    flags = {name: helper.make_tensor_value_info(name, TensorProto.BOOL, []) for name in "cd"}
    count = helper.make_tensor_value_info("i", TensorProto.INT64, [])
    body = helper.make_graph(
        [node("Identity", "c", "d"), node("Identity", "v", "w")],
        "body",
        [count, flags["c"], values["v"]],
        [flags["d"], values["w"]],
    )
    loop = helper.make_node("Loop", ["", "yes", "means"], ["vectors"], body=body)
    endless = model(loop, constants=[helper.make_tensor("yes", TensorProto.BOOL, [], [True])])
    with pytest.raises(
        ValueError, match=r"tiny\.onnx fails on one 65 x 65 patch: it took more than 0\.5 seconds"
    ):
        opened(saved(endless))


def dense(dims, **also):
    return TensorProto(name="c", data_type=TensorProto.FLOAT, dims=dims, raw_data=bytes(4), **also)


def spread(dims):
    made = sparse(number(1))
    made.dims[:] = dims
    return made


def of_shape(*dims):
    shape = numpy_helper.from_array(np.array(dims), "shape")
    fill = node("ConstantOfShape", "shape", "filled")
    total = node("ReduceSum", "filled", "c", keepdims=0)
    return model(fill, total, ADD, constants=[shape])


ABSURD = {
    "dims that are not there": model(ADD, constants=[dense([1 << 40])]),
    "dims that overflow": model(ADD, constants=[dense([1 << 32, 1 << 32])]),
    "negative dims": model(ADD, constants=[dense([-1])]),
    "terabytes of zeros": model(ADD, sparse=[spread([1 << 42])]),
    "sparse dims that overflow": model(ADD, sparse=[spread([1 << 32, 1 << 32])]),
    "negative sparse dims": model(ADD, sparse=[spread([-4])]),
    "terabytes computed": of_shape(1 << 42),
    "computed dims that overflow": of_shape(1 << 32, 1 << 32),
    "patches of a million pixels": model(
        ADD, constants=[number(1)], shape=("n", 1_000_000, 1_000_000)
    ),
    "patches of no pixel": model(ADD, constants=[number(1)], shape=("n", 0, 0)),
}


@pytest.mark.parametrize("made", ABSURD.values(), ids=ABSURD)
def test_absurd_sizes_are_refused_with_the_name_of_the_file(saved, made):
    with pytest.raises(ValueError, match=r"tiny\.onnx"):
        opened(saved(made))


PHOTOGRAPH = {
    "file": "a.jpg", "author": "A", "licence": "CC0-1.0", "stated": "here", "sha256": "0" * 64,
}  # fmt: skip


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"dim": "9" * 5000}, "its metadata say dim=9999"),
        ({"dim": "\u0666\u0665"}, "its metadata say dim="),
        ({"trained_on": "[" * 50_000}, "trained_on is neither names nor a JSON list"),
        ({"trained_on": "[" + "9" * 5000 + "]"}, "trained_on is neither names nor a JSON list"),
        ({"trained_on": json.dumps([{"a": "b" * 50_000}])}, "trained_on is"),
        ({"photographs": "[" * 50_000}, r"photographs is .*wanted is a JSON list of objects"),
        ({"photographs": "null"}, "photographs is null"),
        ({"photographs": '["a.jpg"]'}, "photographs is"),
        ({"photographs": '[{"file": "a.jpg"}]'}, "the keys file, author, licence, stated, sha256"),
        ({"photographs": json.dumps([PHOTOGRAPH | {"author": 3}])}, "photographs is"),
        ({"photographs": json.dumps([PHOTOGRAPH | {"licence": " "}])}, "photographs is"),
        ({"photographs": json.dumps([PHOTOGRAPH | {"size": "3"}])}, "photographs is"),
        ({"name": "x" * 100_001}, "its metadata 'name' have 100001 characters; at most 100000"),
    ],
)
def test_absurd_metadata_are_refused_in_a_short_message(saved, said, message):
    with pytest.raises(ValueError, match=rf"tiny\.onnx.*{message}") as error:
        opened(saved(model(ADD, constants=[number(1)], **said)))
    assert len(str(error.value)) < 600


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (b"abcd", r"value of metadata_props\[0\]"),
        (b"image", r"input of graph\.node\[0\]"),
        (b"vectors", r"output of graph\.node\[2\]"),
    ],
)
def test_text_that_is_no_utf_8_is_refused(saved, text, place):
    contents = model(ADD, constants=[number(1)], name="abcd").SerializeToString()
    with pytest.raises(ValueError, match=rf"tiny\.onnx is damaged: {place} is not UTF-8 text"):
        opened(saved(contents.replace(text, b"\xff" * len(text), 1)))


def test_fields_that_onnx_does_not_know_are_refused(saved):
    """ONNX Runtime, which may know them, would be given what nobody looked through."""
    contents = model(ADD, constants=[number(1)]).SerializeToString() + b"\xfa\x3e\x02ab"
    with pytest.raises(ValueError, match=r"tiny\.onnx is damaged, or newer .* field of the model"):
        opened(saved(contents))


def test_a_file_larger_than_any_message_is_refused_unread(tmp_path):
    with (tmp_path / "x.onnx").open("wb") as stream:
        os.truncate(stream.fileno(), 1 << 40)  # takes no place on the disk
    with pytest.raises(ValueError, match=r"x\.onnx is not an ONNX file: it has 1099511627776 byt"):
        opened(tmp_path / "x.onnx")


def test_damaged_files_are_refused_by_name_or_described(saved):
    """Cut off, and with bytes changed, forty ways."""
    whole = model(constant(value=number(1)), ADD, name="net", dim="65").SerializeToString()
    rng = random.Random(0)
    refused = 0
    for trial in range(40):
        spoilt = bytearray(whole)
        if trial % 2:
            del spoilt[rng.randrange(len(whole)) :]
        for _ in range(trial % 4):
            at = rng.randrange(len(spoilt) + 1)
            spoilt[at : at + 1] = bytes([rng.randrange(256)])
        try:
            opened(saved(bytes(spoilt)))
        except ValueError as error:
            assert "tiny.onnx" in str(error)
            refused += 1
    assert refused > 20
