"""What a user may name as a model: a plug-in, a file, an ONNX graph, a folder."""

import hashlib
import json
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness import Descriptor, plugins
from harness.data.weights import NotHere
from harness.distances import ANGLE, HAMMING, L2
from harness.onnx import file as onnx_file
from harness.vector_folder import VectorFolder

PATCHES = np.random.default_rng(0).integers(0, 256, (5, 65, 65), dtype=np.uint8)
PATCHES.flags.writeable = False

GOOD = """
import numpy as np
from harness import Descriptor
from harness.distances import L2

def made(name="good", **also):
    return Descriptor(name, lambda p: np.ones((len(p), 3), np.float32), L2, 3, **also)

def good():
    return made()

def asks(device):
    return made("asks", provider=device)

def lies(device):
    return made("lies", provider="cpu")

def breaks(device):
    def describe(patches):
        raise RuntimeError("no kernel image is available")
    model = made("breaks", provider=device)
    import dataclasses
    return model if device == "cpu" else dataclasses.replace(model, describe=describe)

def knows():
    return made("knows", code="1" * 64)

def needs(device):
    from harness.data.weights import NotHere
    raise NotHere("get them")
"""

without_cuda = pytest.mark.skipif(onnx_file.has_nvidia_driver(), reason="CUDA may work here")


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Puts a distribution on sys.path: one module and its entry points."""
    monkeypatch.syspath_prepend(tmp_path)

    def install(name, source, **entries):
        module = name.replace("-", "_")
        (tmp_path / f"{module}.py").write_text(source)
        info = tmp_path / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = [f"{entry} = {module}:{value}" for entry, value in entries.items()]
        (info / "entry_points.txt").write_text("\n".join(["[harness.descriptors]", *lines]))
        monkeypatch.delitem(sys.modules, module, raising=False)
        return tmp_path / f"{module}.py"

    yield install
    for module in tmp_path.glob("*.py"):
        sys.modules.pop(module.stem, None)


@pytest.fixture
def file(tmp_path):
    """A file of the user, `mine.py`, with this text."""

    def write(text):
        (tmp_path / "mine.py").write_text(text)
        return str(tmp_path / "mine.py")

    return write


# ---- installed names


def test_an_installed_name_is_made_into_its_descriptor(install):
    install("their-zoo", GOOD, good="good")
    assert plugins.model("good").describe(PATCHES).shape == (5, 3)


def test_the_code_of_an_installed_descriptor_is_hashed_from_its_source(install):
    file = install("their-zoo", GOOD, good="good")
    before = plugins.model("good").code
    file.write_text("# A comment is no code.\n" + GOOD)
    assert plugins.model("good").code == before
    file.write_text(GOOD.replace("np.ones", "np.zeros"))
    after = plugins.model("good").code
    assert len(before) == len(after) == 64
    assert before != after


def test_a_maker_that_knows_the_code_of_its_vectors_is_believed(install):
    install("their-zoo", GOOD, knows="knows")
    assert plugins.model("knows").code == "1" * 64


BROKEN = {
    "import": ("import no_such_package", ImportError, "ModuleNotFoundError: No module named 'no_s"),
    "syntax": ("def bad(:", ImportError, "SyntaxError"),
    "exits": ("raise SystemExit(3)", ImportError, "SystemExit: 3"),
    "exits later": ("def bad(): raise SystemExit(3)", RuntimeError, "SystemExit: 3"),
    "name": ("", ImportError, "AttributeError"),
    "raises": ("def bad(): raise OSError('no weights')", RuntimeError, "OSError: no weights"),
    "wants": ("def bad(size): pass", RuntimeError, "missing 1 required positional argument"),
    "none": ("def bad(): pass", TypeError, "returned None; a harness.Descriptor is wanted"),
    "number": ("bad = 3", TypeError, "is 3; a function that makes a Descriptor is wanted"),
    "renamed": (GOOD + "bad = good", ValueError, "calls itself 'good'"),
}


@pytest.mark.parametrize(("source", "kind", "message"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_plugin_is_named_with_its_distribution(install, source, kind, message):
    install("broken-zoo", source, bad="bad")
    with pytest.raises(kind, match=f"'bad' of broken-zoo 1.0.*{message}"):
        plugins.model("bad")


@pytest.mark.parametrize("source", [text for text, _, _ in BROKEN.values()], ids=BROKEN.keys())
def test_a_broken_plugin_breaks_no_other(install, source):
    install("broken-zoo", source, bad="bad")
    install("their-zoo", GOOD, good="good")
    assert plugins.model("good").name == "good"


def test_an_unknown_name_is_answered_with_the_nearest_one(install):
    install("their-zoo", GOOD, good="good")
    with pytest.raises(LookupError, match="no descriptor named 'gould'; did you mean 'good'"):
        plugins.model("gould")


@pytest.mark.parametrize("spec", ["zzzzzzzz", "", "no/such/folder"])
def test_what_is_no_model_is_answered_with_what_is(spec):
    with pytest.raises(LookupError, match=r"a model is an installed name, file\.py:name, a \.onnx"):
        plugins.model(spec)


def test_an_installed_name_goes_before_a_folder_of_that_name(install, tmp_path, monkeypatch):
    install("their-zoo", GOOD, good="good")
    (tmp_path / "good").mkdir()
    (tmp_path / "good" / "ref.csv").write_text("1,2\n")
    monkeypatch.chdir(tmp_path)
    assert isinstance(plugins.model("good"), Descriptor)
    assert isinstance(plugins.model("./good"), VectorFolder)


# ---- devices


def test_a_maker_that_takes_a_device_is_told_it(install):
    install("their-zoo", GOOD, asks="asks")
    assert [plugins.model("asks", device=d).provider for d in ("cpu", "cuda")] == ["cpu", "cuda"]


@pytest.mark.skipif(plugins.cuda_works(), reason="auto means CUDA here")
def test_auto_is_the_cpu_where_cuda_does_not_work(install):
    install("their-zoo", GOOD, asks="asks")
    assert plugins.model("asks", device="auto").provider == "cpu"


def test_auto_suits_a_maker_that_takes_no_device(install):
    install("their-zoo", GOOD, good="good")
    assert plugins.model("good", device="auto").provider == "cpu"


def test_auto_is_told_and_the_cpu_where_a_model_can_not_use_the_cuda_that_works(
    install, monkeypatch, caplog
):
    monkeypatch.setattr(plugins, "cuda_works", lambda: True)
    install("their-zoo", GOOD, asks="asks", lies="lies")
    assert plugins.model("asks", device="auto").provider == "cuda"
    assert plugins.model("lies", device="auto").provider == "cpu"
    assert "was told to compute on cuda" in caplog.text
    assert "it computes on the CPU instead" in caplog.text


def test_a_model_whose_kernel_fails_on_cuda_is_told_and_of_the_cpu(install, monkeypatch, caplog):
    monkeypatch.setattr(plugins, "cuda_works", lambda: True)
    install("their-zoo", GOOD, breaks="breaks")
    told = r"'breaks' of their-zoo 1\.0 can't compute on cuda: .*no kernel image"
    with pytest.raises(RuntimeError, match=told):
        plugins.model("breaks", device="cuda")
    assert not caplog.text
    assert plugins.model("breaks", device="auto").provider == "cpu"
    assert "no kernel image is available; it computes on the CPU instead" in caplog.text


class Session:
    """A session of ONNX Runtime as CUDA's is where cuDNN has no algorithm: opened, it fails."""

    def __init__(self, session):
        self.get_inputs, self.get_outputs = session.get_inputs, session.get_outputs

    def get_providers(self):
        return [onnx_file.CUDA, "CPUExecutionProvider"]

    def run(self, *given):
        raise RuntimeError("CUDNN failure 8: CUDNN_STATUS_EXECUTION_FAILED")


@pytest.fixture
def broken_cuda(monkeypatch):
    """A driver, and sessions on CUDA that fail at the first patch."""
    opened = onnx_file.onnx_runtime.session

    def session(contents, *, provider="CPUExecutionProvider", **options):
        return Session(opened(contents)) if provider == onnx_file.CUDA else opened(contents)

    monkeypatch.setattr(onnx_file.onnx_runtime, "session", session)
    monkeypatch.setattr(onnx_file, "has_nvidia_driver", lambda: True)
    available = [onnx_file.CUDA, "CPUExecutionProvider"]
    monkeypatch.setattr("onnxruntime.get_available_providers", lambda: available)


def test_an_onnx_file_whose_kernel_fails_on_cuda_is_told_and_of_the_cpu(
    tmp_path, broken_cuda, caplog
):
    file = str(graph(tmp_path))
    told = r"tiny\.onnx can't compute on cuda: it fails on one patch: .*CUDNN failure 8"
    with pytest.raises(RuntimeError, match=told):
        plugins.model(file, device="cuda")
    assert not caplog.text
    found = plugins.model(file, device="auto")
    assert found.provider == "CPUExecutionProvider"
    np.testing.assert_allclose(found.describe(PATCHES), ROW_MEANS, rtol=1e-6)
    assert "EXECUTION_FAILED; it computes on the CPU instead" in caplog.text


def test_a_provider_that_opens_a_graph_but_fails_on_a_patch_does_not_work(broken_cuda):
    providers, failure = onnx_file.working_providers()
    assert providers == ["CPUExecutionProvider"]
    assert "CUDNN failure 8" in failure


def test_weights_that_are_nowhere_are_not_looked_for_twice(install, monkeypatch, caplog):
    monkeypatch.setattr(plugins, "cuda_works", lambda: True)
    install("their-zoo", GOOD, needs="needs")
    with pytest.raises(RuntimeError, match="can't be made: get them") as error:
        plugins.model("needs", device="auto")
    assert isinstance(error.value.__cause__, NotHere)
    assert not caplog.text


def test_cuda_for_a_model_that_takes_no_device_is_an_error_that_names_it(install):
    install("their-zoo", GOOD, good="good")
    with pytest.raises(RuntimeError, match="good can't compute on cuda"):
        plugins.model("good", device="cuda")


def test_a_maker_that_ignores_cuda_is_found_out(install):
    install("their-zoo", GOOD, lies="lies")
    with pytest.raises(RuntimeError, match=r"'lies' of their-zoo 1\.0 was told .* says 'cpu'"):
        plugins.model("lies", device="cuda")


def test_a_folder_of_vectors_has_nothing_to_compute_on_cuda(tmp_path):
    (tmp_path / "ref.csv").write_text("1,2\n")
    with pytest.raises(RuntimeError, match="can't compute on cuda"):
        plugins.model(str(tmp_path), device="cuda")


def test_an_unknown_device_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match="no device 'gpu'; known: auto, cpu, cuda"):
        plugins.model("sift", device="gpu")


# ---- files


FLOATS = "import numpy as np\ndef mean(p): return p.mean(axis=(1, 2)).astype(np.float32)[:, None]\n"
BITS = "import numpy as np\ndef bits(p): return np.packbits(p[:, 32] > 127, axis=1)\n"


def test_a_plain_function_of_floats_is_compared_by_l2(file):
    descriptor = plugins.model(file(FLOATS) + ":mean")
    assert (descriptor.distance, descriptor.dim) == (L2, 1)


def test_what_a_plain_function_was_trained_on_is_unknown(file):
    assert plugins.model(file(FLOATS) + ":mean").trained_on is None


def test_a_plain_function_of_bits_is_compared_by_hamming(file):
    descriptor = plugins.model(file(BITS) + ":bits")
    assert (descriptor.distance, descriptor.dim) == (HAMMING, 72)


def test_a_descriptor_of_a_file_is_named_by_file_and_name(file):
    path = file(FLOATS + GOOD + "ready = good()\n")
    named = [plugins.model(f"{path}:{name}").name for name in ("mean", "good", "ready")]
    assert named == ["mine:mean", "mine:good", "mine:ready"]


def test_the_code_of_a_file_is_the_hash_of_what_it_means(file):
    code = plugins.model(file(FLOATS) + ":mean").code
    assert plugins.model(file(f"# the same\n{FLOATS}") + ":mean").code == code
    assert plugins.model(file(f"{FLOATS}\nx = 1") + ":mean").code != code


def test_an_edited_file_is_read_again(file):
    first = plugins.model(file(FLOATS) + ":mean")
    second = plugins.model(file(FLOATS.replace("mean(axis", "min(axis")) + ":mean")
    assert first.code != second.code
    assert (first.describe(PATCHES) > second.describe(PATCHES)).all()


def test_a_maker_in_a_file_is_told_the_device(file):
    assert plugins.model(file(GOOD) + ":asks", device="cuda").provider == "cuda"


def test_a_plain_function_can_not_be_sent_to_cuda(file):
    with pytest.raises(RuntimeError, match=r"mine\.py:mean can't compute on cuda"):
        plugins.model(file(FLOATS) + ":mean", device="cuda")


def test_what_a_file_imports_counts_among_its_libraries(file):
    descriptor = plugins.model(file("from scipy import ndimage\nimport json\n" + FLOATS) + ":mean")
    assert descriptor.libraries == ("numpy", "scipy")


def test_a_file_may_define_dataclasses(file):
    text = "from dataclasses import dataclass\n@dataclass\nclass Size:\n    n: int = 3\n"
    assert plugins.model(file(text + GOOD) + ":good").dim == 3


def test_a_file_leaves_no_trace_on_the_import_path(file):
    before = set(sys.path)
    plugins.model(file(FLOATS) + ":mean")
    assert set(sys.path) == before
    assert "mine" not in sys.modules


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("import no_such", ImportError, r"mine\.py can't be imported: ModuleNotFoundError"),
        ("def f(:", ImportError, r"mine\.py can't be imported: SyntaxError"),
        ("raise SystemExit(1)", ImportError, r"mine\.py can't be imported: SystemExit"),
        ("def fx(p): pass", LookupError, r"mine\.py: no descriptor named 'f'; did you mean 'fx'"),
        ("f = 3", LookupError, "no descriptor named 'f'; known: none"),
        ("def f(): return 3", TypeError, r"mine\.py:f returned 3; a harness\.Descriptor"),
        ("def f(): raise OSError('gone')", RuntimeError, "f can't be made: OSError: gone"),
        ("def f(p): raise SystemExit(3)", RuntimeError, "f fails on 2 patches .* SystemExit: 3"),
        ("def f(p): return p[9]", RuntimeError, "f fails on 2 patches of 65 x 65: IndexError"),
        ("def f(p): return [1, 2]", TypeError, "f returned list  for 2 patches; a NumPy array"),
        ("def f(p): return p[:1, 0]", TypeError, r"returned ndarray \(1, 65\) for 2 patches"),
        ("def f(p): return p", TypeError, r"returned ndarray \(2, 65, 65\) for 2 patches"),
        ("def f(p): return p.mean(axis=2)", TypeError, r"float64 vectors.*astype\(np\.float32\)"),
    ],
)  # fmt: skip
def test_a_file_that_gives_no_descriptor_is_told_why(file, text, kind, message):
    with pytest.raises(kind, match=message):
        plugins.model(file(text) + ":f")


def test_a_file_needs_a_name(file):
    with pytest.raises(LookupError, match=r"mine\.py:<name> is wanted"):
        plugins.model(file(FLOATS))


@pytest.mark.parametrize("spec", ["gone.py:f", "gone.onnx"])
def test_a_missing_file_is_named(spec):
    with pytest.raises(FileNotFoundError, match="gone"):
        plugins.model(spec)


# ---- ONNX


def graph(
    tmp_path,
    *nodes,
    shape=("n", "h", "w"),
    image=TensorProto.UINT8,
    out=TensorProto.FLOAT,
    constants=(),
    **said,
):
    """An ONNX file, `tiny.onnx`: nodes from "image" to "vectors", without any the row means."""
    nodes = nodes or (cast("image", "grey"), mean("grey", "vectors", len(shape)))
    model = helper.make_model(
        helper.make_graph(
            list(nodes),
            "tiny",
            [helper.make_tensor_value_info("image", image, shape)],
            [helper.make_tensor_value_info("vectors", out, None)],
            constants,
        ),
        opset_imports=[helper.make_opsetid("", 13)],
        ir_version=8,
    )
    helper.set_model_props(model, said)
    onnx.save(model, tmp_path / "tiny.onnx")
    return tmp_path / "tiny.onnx"


def cast(a, b, to=TensorProto.FLOAT):
    return helper.make_node("Cast", [a], [b], to=to)


def mean(a, b, rank):
    """Over columns, and over channels where there are any."""
    return helper.make_node("ReduceMean", [a], [b], keepdims=0, axes=[rank - 1, 1][: rank // 2])


ROW_MEANS = PATCHES.mean(axis=2).astype(np.float32)


def test_an_onnx_file_describes_patches_as_they_are(tmp_path):
    descriptor = plugins.model(str(graph(tmp_path)))
    np.testing.assert_allclose(descriptor.describe(PATCHES), ROW_MEANS, rtol=1e-6)


def test_an_onnx_file_may_take_patches_with_a_channel(tmp_path):
    descriptor = plugins.model(str(graph(tmp_path, shape=("n", 1, 65, 65))))
    np.testing.assert_allclose(descriptor.describe(PATCHES), ROW_MEANS, rtol=1e-6)


@pytest.mark.parametrize("shape", [("n", "h", "w"), ("n", 65, 65), ("n", 1, 65, 65)])
def test_an_onnx_file_describes_no_patches(tmp_path, shape):
    vectors = plugins.model(str(graph(tmp_path, shape=shape))).describe(PATCHES[:0])
    assert (vectors.shape, vectors.dtype) == ((0, 65), np.float32)


def test_the_metadata_of_an_onnx_file_describe_it(tmp_path):
    said = {"name": "tiny.net", "distance": "angle", "dim": "65", "licence": "MIT"}
    file = graph(tmp_path, **said, trained_on="phototour/liberty, hpatches/v_wall")
    found = plugins.model(str(file))
    assert (found.name, found.distance, found.dim) == ("onnx:tiny.net", ANGLE, 65)
    assert found.licence == "MIT"
    assert found.trained_on == {"phototour/liberty", "hpatches/v_wall"}


def test_training_data_may_be_a_json_list(tmp_path):
    file = graph(tmp_path, trained_on=json.dumps(["a, b", "c"]))
    assert plugins.model(str(file)).trained_on == {"a, b", "c"}


def test_an_onnx_file_without_metadata_bears_the_name_of_the_file(tmp_path):
    found = plugins.model(str(graph(tmp_path)))
    assert (found.name, found.distance, found.dim) == ("onnx:tiny", L2, 65)


@pytest.mark.parametrize(
    ("said", "known"),
    [
        ({}, None),
        ({"trained_on": ""}, None),
        ({"trained_on": "null"}, None),
        ({"trained_on": "[]"}, frozenset()),
    ],
)
def test_silence_of_an_onnx_file_about_training_is_not_taken_for_none(tmp_path, said, known):
    assert plugins.model(str(graph(tmp_path, **said))).trained_on == known


def test_the_weights_of_an_onnx_file_are_its_hash(tmp_path):
    file = graph(tmp_path)
    assert plugins.model(str(file)).weights == hashlib.sha256(file.read_bytes()).hexdigest()


def test_the_provider_and_the_library_really_used_are_told(tmp_path):
    found = plugins.model(str(graph(tmp_path)))
    assert found.provider == "CPUExecutionProvider"
    assert found.libraries[0] == "numpy"
    assert found.libraries[1] in ("onnxruntime", "onnxruntime-gpu")


def packed(tmp_path, **said):
    """Row means, cast to uint8: 65 bytes a vector."""
    nodes = (
        cast("image", "grey"),
        mean("grey", "means", 3),
        cast("means", "vectors", TensorProto.UINT8),
    )
    return graph(tmp_path, *nodes, out=TensorProto.UINT8, **said)


@pytest.mark.parametrize(("said", "dim"), [({}, 520), ({"dim": "520"}, 520), ({"dim": "517"}, 517)])
def test_uint8_vectors_of_an_onnx_file_are_packed_bits(tmp_path, said, dim):
    found = plugins.model(str(packed(tmp_path, **said)))
    assert (found.distance, found.dim) == (HAMMING, dim)


def test_patches_of_another_size_are_refused_by_a_graph_of_one_size(tmp_path):
    found = plugins.model(str(graph(tmp_path, shape=("n", 1, 32, 32))))
    with pytest.raises(
        ValueError, match="takes 32 x 32 patches, but these are 65 x 65: resizing belongs"
    ):
        found.describe(PATCHES)


TWO = (cast("image", "vectors"), cast("image", "more"))
BAD_GRAPHS = {
    "float input": ({"image": TensorProto.FLOAT}, r"'image' is tensor\(float\) .* put a Cast, and"),
    "fixed batch": ({"shape": (1, "h", "w")}, "any number of patches must fit"),
    "colour": ({"shape": ("n", 3, "h", "w")}, "one input is wanted: uint8 patches"),
    "oblong": ({"shape": ("n", 32, 64)}, "patches are square"),
    "vectors in": ({"shape": ("n", "d")}, "one input is wanted: uint8 patches"),
    "wrong dim": ({"dim": "64"}, "gives 65 float32 a vector, but its metadata say dim=64"),
    "no dim": ({"dim": "many"}, "its metadata say dim=many"),
    "no distance": ({"distance": "l1"}, "no distance named 'l1'"),
    "bits of floats": ({"distance": "hamming"}, "metadata say distance=hamming, which takes uint8"),
    "odd list": ({"trained_on": "[1]"}, r"trained_on is \[1\]; wanted are data names"),
    "list with null": ({"trained_on": "[null]"}, "wanted are data names"),
    "list with a blank": ({"trained_on": '["hpatches", " "]'}, "wanted are data names"),
    "object": ({"trained_on": '{"data": "hpatches"}'}, "wanted are data names"),
    "quoted text": ({"trained_on": '"hpatches"'}, 'trained_on is "hpatches"; wanted are data'),
    "number": ({"trained_on": "3"}, "wanted are data names"),
    "true": ({"trained_on": "true"}, "wanted are data names"),
    "deep list": ({"trained_on": "[" * 100_000}, "neither names nor a JSON list"),
    "broken list": ({"trained_on": "[a"}, "neither names nor a JSON list"),
}


@pytest.mark.parametrize(("said", "message"), BAD_GRAPHS.values(), ids=BAD_GRAPHS.keys())
def test_an_onnx_file_that_breaks_the_contract_is_told_how_to_mend_it(tmp_path, said, message):
    with pytest.raises(ValueError, match=message):
        plugins.model(str(graph(tmp_path, **said)))


def test_an_onnx_file_of_float64_vectors_is_refused(tmp_path):
    nodes = cast("image", "g", TensorProto.DOUBLE), mean("g", "vectors", 3)
    with pytest.raises(ValueError, match="end the graph with a Cast"):
        plugins.model(str(graph(tmp_path, *nodes, out=TensorProto.DOUBLE)))


def test_an_onnx_file_whose_vectors_are_not_flat_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"gives \[1, 65, 65\] for one patch.* Flatten"):
        plugins.model(str(graph(tmp_path, cast("image", "vectors"))))


def test_an_onnx_file_that_fails_at_once_is_refused(tmp_path):
    add = helper.make_node("MatMul", ["grey", "eye"], ["vectors"])
    eye = helper.make_node(
        "Constant", [], ["eye"], value=numpy_helper.from_array(np.eye(3, dtype="f4"))
    )
    with pytest.raises(ValueError, match="fails on one 65 x 65 patch"):
        plugins.model(str(graph(tmp_path, cast("image", "grey"), eye, add)))


def test_a_file_that_is_no_onnx_is_refused(tmp_path):
    (tmp_path / "x.onnx").write_bytes(b"not a model")
    with pytest.raises(ValueError, match=r"x\.onnx is not an ONNX file"):
        plugins.model(str(tmp_path / "x.onnx"))


def test_an_onnx_file_with_unknown_operators_is_refused(tmp_path):
    node = helper.make_node("NoSuchOperator", ["image"], ["vectors"])
    with pytest.raises(ValueError, match=r"ONNX Runtime can't load .*NoSuchOperator"):
        plugins.model(str(graph(tmp_path, node)))


@without_cuda
def test_falling_back_to_the_cpu_is_an_error_where_cuda_was_asked_for(tmp_path):
    with pytest.raises(RuntimeError, match=r"tiny\.onnx can't compute on cuda"):
        plugins.model(str(graph(tmp_path)), device="cuda")


@without_cuda
def test_auto_computes_an_onnx_file_on_the_cpu_where_there_is_no_driver(tmp_path):
    found = plugins.model(str(graph(tmp_path)), device="auto")
    assert found.provider == "CPUExecutionProvider"


@without_cuda
def test_only_the_cpu_really_works_where_there_is_no_driver():
    assert onnx_file.working_providers() == (["CPUExecutionProvider"], None)


# ---- folders


def test_a_folder_of_csv_files_is_a_model(tmp_path):
    (tmp_path / "ref.csv").write_text("1,2\n")
    assert isinstance(plugins.model(str(tmp_path)), VectorFolder)
