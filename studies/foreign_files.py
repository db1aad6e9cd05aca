"""The readers of foreign files that mutated_inputs.py tries, each with a small valid set."""

import json
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from harness.errors import InputError
from harness.files import folders

# What a reader needs is imported where it is used: a process with one reader needs little of it.

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Reader:
    """What makes a valid set in a folder, and what reads it; of a module, so that both travel."""

    name: str
    make: Callable[[Path], object]
    read: Callable[[Path], object]
    mutates: str = "*"  # names of the files that are changed


def make_vectors(folder: Path) -> None:
    from harness import vector_folder
    from harness.distances import L2

    numbers = np.random.default_rng(0).random((20, 8), np.float32)
    for block in ("v_a/ref", "v_a/e1"):
        vector_folder.write(folder, block, numbers, L2)
    about = '{"name": "x", "distance": "l2", "trained_on": ["phototour"], "licence": "MIT"}'
    (folder / vector_folder.ABOUT).write_text(about)


def read_vectors(folder: Path) -> None:
    from harness import Block, vector_folder

    model = vector_folder.open_folder(folder)
    blocks = [Block(name, 20, "0" * 64, _none) for name in ("v_a/ref", "v_a/e1")]
    model.must_not_count_rows({block.name: model.read(block) for block in blocks})


def _none() -> None:
    return None


def make_records(folder: Path) -> None:
    for part in ("hpatches", "phototour", "eth"):
        files = [f for f in folders.files(ROOT / "results/records" / part) if f.suffix == ".json"]
        for file in files[:2]:
            target = folder / file.relative_to(ROOT / "results")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)


def read_records(folder: Path) -> None:
    from harness.records import tables

    tables.write(folder)


def make_recipes(folder: Path) -> None:
    from zoo.training import recipe

    for name in ("hardnet", "doap-st", "l2net+"):
        shutil.copy(ROOT / f"zoo/recipes/{name}.toml", folder)
    kept = recipe.read(str(folder / "hardnet.toml"), data=["x"])
    (folder / "recipe.json").write_text(kept.model_dump_json())


def read_recipes(folder: Path) -> None:
    from zoo.training import recipe

    recipe.read_kept(folder / "recipe.json")
    for name in ("hardnet", "doap-st", "l2net+"):
        recipe.read(str(folder / f"{name}.toml"))


def make_cards(folder: Path) -> None:
    for ending in ("json", "safetensors"):
        shutil.copy(ROOT / f"zoo/weights/hardnet.{ending}", folder)


def read_cards(folder: Path) -> None:
    from zoo import card, trained

    trained.load(folder / "hardnet.safetensors", card.read(folder / "hardnet.json"))


def _training() -> Any:
    import torch

    from zoo.training.state import Trained

    network = torch.nn.Linear(4, 4)
    return Trained(network, torch.nn.PReLU(), torch.optim.Adam(network.parameters()))


def make_state(folder: Path) -> None:
    from zoo.training import state

    state.save(folder, _training(), step=2, seconds=1.0, origin="x")
    lines = [f'{{"step": {k}, "loss": 0.5, "lr": 0.1, "seconds": 0.1}}\n' for k in range(3)]
    (folder / state.LOG).write_text("".join(lines))


def read_state(folder: Path) -> None:
    from zoo.training import log, state

    log.read_log(folder)
    log.open_log(folder, upto=2)
    state.load(folder, _training(), origin="x")


def make_cache(folder: Path) -> None:
    from harness import cache

    cache.Cache(folder).write_array({"of": "vectors"}, np.arange(99.0))
    read_cache(folder)
    cache.sum_up(folder)


def read_cache(folder: Path) -> None:
    from harness import cache

    kept, numbers = cache.Cache(folder), np.arange(99.0)
    found = kept.read_array({"of": "vectors"})
    if found is not None and not np.array_equal(found, numbers):
        raise AssertionError("other numbers were read")
    mapped = kept.file({"of": "patches"}, lambda stream: np.save(stream, numbers))
    if not np.array_equal(np.load(mapped), numbers):
        raise AssertionError("other numbers were mapped")
    cache.is_as_summed(folder)


def make_onnx(folder: Path) -> None:
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


def read_onnx(folder: Path) -> None:
    from harness.onnx import file as onnx_file

    described = onnx_file.open_model(folder / "tiny.onnx", device="cpu")
    described.describe(np.zeros((2, 65, 65), np.uint8))


def make_checkpoints(folder: Path) -> None:
    import safetensors.torch
    import torch

    tensors = {"a.weight": torch.ones(9, 9), "a.bias": torch.zeros(9)}
    safetensors.torch.save_file(tensors, folder / "net.safetensors")
    torch.save({"state_dict": tensors}, folder / "net.pth")
    torch.save(tensors, folder / "net.pt", _use_new_zipfile_serialization=False)


def read_checkpoints(folder: Path) -> None:
    from harness.data import weights

    for file in folders.files(folder):
        weights.tensors(file)


def make_archives(folder: Path) -> None:
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


def read_archives(folder: Path) -> None:
    from harness.data import archive

    for file in folders.files(folder):
        with tempfile.TemporaryDirectory() as inner:
            try:
                archive.unpack(file, Path(inner, "out"))
            except archive.BadArchive as error:  # the caller of unpack adds the name of the file
                raise InputError(f"{file}: {error}") from error


def make_scene(folder: Path) -> None:
    from protocols.phototour.writer import write_scene

    rng, point = np.random.default_rng(0), np.arange(300) // 3
    interest = np.c_[point % 4, rng.uniform(0, 99, (300, 4))].astype(np.float64)
    patches = rng.integers(0, 256, (300, 64, 64), np.uint8)
    pairs = np.r_[np.c_[0:90:3, 1:90:3], np.c_[0:90:3, 200:230]]
    images = [{"name": f"{k}.png", "sha256": f"{k:064}"} for k in range(4)]
    about = {"name": "phototour-x", "images": images}
    named = {"m50_60_60_0.txt": pairs}
    write_scene(folder / "scene", [patches], point, interest, named, about=about)


def read_scene(folder: Path) -> None:
    from protocols.phototour import reader, scenes, training

    for scene in scenes.open_scenes(folder, None).scenes:
        reader.read_pairs(scene)
        reader.read_reference_images(scene)
        for block in reader.blocks(scene):
            block.read()
    training.training_set(folder)


def make_hpatches(folder: Path) -> None:
    from protocols.hpatches import tasks
    from protocols.hpatches.reader import STRIPS

    names = ("i_one", "i_two", "v_one", "v_two")
    for n, name in enumerate(names, 6):
        (folder / "patches" / name).mkdir(parents=True)
        strip = np.random.default_rng(n).integers(0, 256, (8 * n, 8), np.uint8)
        for one in STRIPS:
            cv2.imwrite(str(folder / "patches" / name / f"{one}.png"), strip)
    (folder / "tasks").mkdir()
    split = {"name": "a", "test": ["v_one", "i_one"], "train": ["i_two", "v_two"]}
    (folder / "tasks/splits.json").write_text(json.dumps({"a": split}))
    about = {"name": "hpatches-built-x", "sequences": {name: {"origin": "x"} for name in names}}
    (folder / "dataset.json").write_text(json.dumps(about))
    tasks.make(folder)


def read_hpatches(folder: Path) -> None:
    from protocols.hpatches import reader, tasks

    opened = reader.open_set(folder, None, training=True)
    tasks.verification(opened)
    tasks.retrieval(opened)
    for block in (*opened.dataset.blocks, *reader.open_training(folder).blocks):
        block.read()


def make_oxford(folder: Path) -> None:
    rng = np.random.default_rng(0)
    place = folder / "images/v_a"
    for part in (place, folder / "npz", folder / "text/v_a"):
        part.mkdir(parents=True)
    picture = cv2.resize(rng.integers(0, 256, (48, 60, 3), np.uint8), (150, 120))
    rows = {}
    for k, ending in enumerate(("png", "ppm", "pgm", "png", "ppm", "pgm"), 1):
        view = picture[k : k + 110, k : k + 140]
        cv2.imwrite(str(place / f"img{k}.{ending}"), view if ending == "ppm" else view[..., 0])
        if k > 1:
            np.savetxt(place / f"H1to{k}p", np.array([[1, 0, 1 - k], [0, 1, 1 - k], [0, 0, 1]]))
        xy = rng.uniform(30, 110, (9, 2))
        rows[f"img{k}"] = np.c_[xy, np.tile([5, 0, 1, 4], (9, 1))]
        text = "".join(f"{x:.3f} {y:.3f} 0.04 0.001 0.05\n" for x, y in xy)
        (folder / f"text/v_a/img{k}.haraff").write_text(f"1.0\n9\n{text}")
    np.savez_compressed(folder / "npz/v_a.npz", **rows)  # type: ignore[arg-type]


def read_oxford(folder: Path) -> None:
    from protocols.imaging import sequences
    from protocols.oxford import reader

    found, _ = sequences.find(folder / "images")
    reader.check_fit(folder / "images", found)
    for form in ("npz", "text"):
        for place in ((sequence, k) for sequence in found for k in range(6)):
            frames = reader.regions_of(place, frames=folder / form, features=None)
            reader.block_of((place, frames), magnification=3.0).read()


def make_romepatches(folder: Path) -> None:
    import scipy.io

    rng, point = np.random.default_rng(0), np.arange(1.0, 6)[:, None]
    for k, half in enumerate(("train", "test")):
        stem = f"patch_retrieval_Rome_{half}"
        patches = rng.integers(0, 256, (51, 51, 50), np.uint8)
        scipy.io.savemat(folder / f"{stem}.mat", {"patches": patches}, do_compression=bool(k))
        labels = {"labels_gt": point, "labels": np.repeat(point, 9, axis=0)}
        scipy.io.savemat(folder / f"{stem}_labels.mat", labels)
    (folder / "dataset.json").write_text('{"name": "romepatches-x"}\n')


def read_romepatches(folder: Path) -> None:
    from protocols.romepatches.training import training_set

    training_set(folder)


def make_eth(folder: Path) -> None:
    import pycolmap

    from protocols.eth import files, sample

    sample.make(folder)
    scene = folder / "corner"
    for file in folders.files(scene):
        if file.name[:4] > "0002":  # three images are read sooner
            file.unlink()
    names = sorted(file.name for file in folders.files(scene / "images"))
    pycolmap.Database.open(scene / "database.db").close()
    pycolmap.import_images(scene / "database.db", scene / "images", pycolmap.CameraMode.AUTO, names)
    with pycolmap.Database.open(scene / "database.db") as opened:
        for image in opened.read_all_images():
            table = files.read_keypoints(scene / f"keypoints/{image.name}.bin")
            opened.write_keypoints(image.image_id, table)
    files.write_descriptors(scene / f"descriptors/{names[0]}.bin", np.ones((9, 8), np.float32))
    files.write_matches(scene / "matches/0---1.bin", np.ones((9, 2), np.uint32))


def read_eth(folder: Path) -> None:
    from protocols.colmap.keypoints import copy
    from protocols.eth import files, keypoints, scenes
    from protocols.imaging.grey import read_grey

    (scene,) = scenes.open_scenes(folder, None, "official").scenes
    assert scene.database is not None
    keypoints.in_database(scene.database, scene.names)
    with tempfile.TemporaryDirectory() as inner:
        copy(scene.database, Path(inner, "database.db"))
    for name in scene.names:
        read_grey(scene.images / name)
    for file in folders.files(folder / "corner/descriptors"):
        files.read_descriptors(file)
    files.read_matches(folder / "corner/matches/0---1.bin")


def make_colmap(folder: Path) -> None:
    import pycolmap

    pycolmap.set_random_seed(0)
    options = pycolmap.SyntheticDatasetOptions(
        num_rigs=2, num_cameras_per_rig=1, num_frames_per_rig=4, num_points3D=30
    )
    with pycolmap.Database.open(folder / "database.db") as database:
        sparse = pycolmap.synthesize_dataset(options, database)
        for image in database.read_all_images():
            own = database.read_keypoints(image.image_id)
            table = np.c_[own[:, :2], np.full(len(own), 2), np.zeros(len(own))]
            database.update_keypoints(image.image_id, table.astype(np.float32))
    for form, write in (("binary", sparse.write_binary), ("text", sparse.write_text)):
        (folder / form).mkdir()
        write(folder / form)
        for part in ("rigs", "frames"):  # not read
            for file in (folder / form).glob(f"{part}.*"):
                file.unlink()


def read_colmap(folder: Path) -> None:
    from protocols.builders.phototour import sparse

    for form in ("binary", "text"):
        sparse.read(folder / form, folder / "database.db")


def make_photographs(folder: Path) -> None:
    colour = cv2.resize(np.random.default_rng(0).integers(0, 256, (12, 16, 3), np.uint8), (64, 48))
    for ending in ("png", "jpg", "bmp", "ppm", "tif"):
        cv2.imwrite(str(folder / f"colour.{ending}"), colour)
    for ending in ("png", "pgm", "tif"):
        cv2.imwrite(str(folder / f"deep.{ending}"), colour[..., 0].astype(np.uint16) * 257)
    numbers = " ".join(map(str, range(12)))
    (folder / "text.pgm").write_text(f"P2\n# made here\n4 3\n255\n{numbers}\n")
    (folder / "bits.pgm").write_text("P1\n4 3\n1 0 1 0\n0110\n1111\n")


def read_photographs(folder: Path) -> None:
    from protocols.imaging import grey, photographs

    for name in photographs.find(folder):
        shape = grey.check(folder / name)
        if grey.read_grey(folder / name).shape != shape:
            raise AssertionError(f"{name} has another shape than it says")


READERS = (
    Reader("vectors", make_vectors, read_vectors),
    Reader("records", make_records, read_records, "*.json"),
    Reader("recipes", make_recipes, read_recipes),
    Reader("cards", make_cards, read_cards),
    Reader("training states", make_state, read_state),
    Reader("cache", make_cache, read_cache),
    Reader("onnx", make_onnx, read_onnx),
    Reader("checkpoints", make_checkpoints, read_checkpoints),
    Reader("archives", make_archives, read_archives),
    Reader("phototour", make_scene, read_scene),
    Reader("dataset.json", make_scene, read_scene, "dataset.json"),
    Reader("hpatches", make_hpatches, read_hpatches),
    Reader("oxford", make_oxford, read_oxford),
    Reader("romepatches", make_romepatches, read_romepatches),
    Reader("eth", make_eth, read_eth),
    Reader("colmap", make_colmap, read_colmap),
    Reader("photographs", make_photographs, read_photographs),
)
