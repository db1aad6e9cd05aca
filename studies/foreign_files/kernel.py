"""Readers of the harness: vectors, records, caches, networks and archives."""

import shutil
import tarfile
import tempfile
import zipfile
from pathlib import Path

import numpy as np

from harness.errors import InputError
from harness.files import folders
from studies.foreign_files.reader import ROOT, Reader

# Each function imports the modules that it needs: a process with one reader needs only a few.


def _make_vectors(folder: Path) -> None:
    from harness import vector_folder
    from harness.distances import L2

    numbers = np.random.default_rng(0).random((20, 8), np.float32)
    for block in ("v_a/ref", "v_a/e1"):
        vector_folder.write(folder, block, numbers, L2)
    about = '{"name": "x", "distance": "l2", "trained_on": ["phototour"], "licence": "MIT"}'
    (folder / vector_folder.ABOUT).write_text(about)


def _read_vectors(folder: Path) -> None:
    from harness import Block, vector_folder

    model = vector_folder.open_folder(folder)
    blocks = [Block(name, 20, "0" * 64, _no_patches) for name in ("v_a/ref", "v_a/e1")]
    model.must_not_count_rows({block.name: model.read(block) for block in blocks})


def _make_records(folder: Path) -> None:
    for part in ("hpatches", "phototour", "eth"):
        files = [f for f in folders.files(ROOT / "results/records" / part) if f.suffix == ".json"]
        for file in files[:2]:
            target = folder / file.relative_to(ROOT / "results")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)


def _read_records(folder: Path) -> None:
    from harness.records import tables

    tables.write(folder)


def _make_cache(folder: Path) -> None:
    from harness import cache

    cache.Cache(folder).write_array({"of": "vectors"}, np.arange(99.0))
    _read_cache(folder)
    cache.sum_up(folder)


def _read_cache(folder: Path) -> None:
    from harness import cache

    kept, numbers = cache.Cache(folder), np.arange(99.0)
    vectors = kept.read_array({"of": "vectors"})
    if vectors is not None and not np.array_equal(vectors, numbers):
        raise AssertionError("other numbers were read")
    mapped = kept.file({"of": "patches"}, lambda stream: np.save(stream, numbers))
    if not np.array_equal(np.load(mapped), numbers):
        raise AssertionError("other numbers were mapped")
    cache.is_as_summed(folder)


def _make_onnx(folder: Path) -> None:
    from onnx import TensorProto, helper, numpy_helper

    grey = helper.make_node("Cast", ["image"], ["grey"], to=TensorProto.FLOAT)
    means = helper.make_node("ReduceMean", ["grey"], ["means"], keepdims=0, axes=[2])
    add = helper.make_node("Add", ["means", "c"], ["vectors"])
    graph = helper.make_graph(
        [grey, means, add],
        "tiny",
        [helper.make_tensor_value_info("image", TensorProto.UINT8, ["n", 65, 65])],
        [helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["n", 65])],
        [numpy_helper.from_array(np.ones(65, np.float32), "c")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    helper.set_model_props(model, {"name": "net", "dim": "65", "trained_on": '["hpatches"]'})
    (folder / "tiny.onnx").write_bytes(model.SerializeToString())


def _read_onnx(folder: Path) -> None:
    from harness.onnx import file as onnx_file

    described = onnx_file.open_model(folder / "tiny.onnx", device="cpu")
    described.describe(np.zeros((2, 65, 65), np.uint8))


def _make_checkpoints(folder: Path) -> None:
    import safetensors.torch
    import torch

    tensors = {"a.weight": torch.ones(9, 9), "a.bias": torch.zeros(9)}
    safetensors.torch.save_file(tensors, folder / "net.safetensors")
    torch.save({"state_dict": tensors}, folder / "net.pth")
    torch.save(tensors, folder / "net.pt", _use_new_zipfile_serialization=False)


def _read_checkpoints(folder: Path) -> None:
    from harness.data import weights

    for file in folders.files(folder):
        weights.tensors(file)


def _make_archives(folder: Path) -> None:
    members = {"set/a.txt": b"1 2 3\n" * 50, "set/inner/b.bin": bytes(range(256))}
    with tempfile.TemporaryDirectory() as inner:
        for name, contents in members.items():
            file = Path(inner, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(contents)
        with zipfile.ZipFile(folder / "set.zip", "w", zipfile.ZIP_DEFLATED) as packed:
            for name in members:
                packed.write(Path(inner, name), name)
        for ending, mode in (("tar", "w"), ("tgz", "w:gz")):
            with tarfile.open(folder / f"set.{ending}", mode) as packed:  # type: ignore[call-overload]
                packed.add(Path(inner, "set"), "set")


def _read_archives(folder: Path) -> None:
    from harness.data import archive

    for file in folders.files(folder):
        with tempfile.TemporaryDirectory() as inner:
            try:
                archive.unpack(file, Path(inner, "out"))
            except archive.BadArchive as error:  # the caller of unpack adds the name of the file
                raise InputError(f"{file}: {error}") from error


def _no_patches() -> np.ndarray:
    return np.empty((0, 1, 1), np.uint8)


READERS = (
    Reader("vectors", _make_vectors, _read_vectors),
    Reader("records", _make_records, _read_records, "*.json"),
    Reader("cache", _make_cache, _read_cache),
    Reader("onnx", _make_onnx, _read_onnx),
    Reader("checkpoints", _make_checkpoints, _read_checkpoints),
    Reader("archives", _make_archives, _read_archives),
)
