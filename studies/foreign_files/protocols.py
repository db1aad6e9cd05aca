"""Readers of the protocols: benchmarks, COLMAP's files and photographs."""

import json
import tempfile
from pathlib import Path

import cv2
import numpy as np

from harness.files import folders
from studies.foreign_files.reader import Reader

# Each function imports the modules that it needs: a process with one reader needs only a few.


def _make_scene(folder: Path) -> None:
    from protocols.phototour.writer import write_scene

    rng, point = np.random.default_rng(0), np.arange(300) // 3
    interest = np.c_[point % 4, rng.uniform(0, 99, (300, 4))].astype(np.float64)
    patches = rng.integers(0, 256, (300, 64, 64), np.uint8)
    pairs = np.r_[np.c_[0:90:3, 1:90:3], np.c_[0:90:3, 200:230]]
    images = [{"name": f"{k}.png", "sha256": f"{k:064}"} for k in range(4)]
    about = {"name": "phototour-x", "images": images}
    named = {"m50_60_60_0.txt": pairs}
    write_scene(folder / "scene", [patches], point, interest, named, about=about)


def _read_scene(folder: Path) -> None:
    from protocols.phototour import reader, scenes, training

    for scene in scenes.open_scenes(folder, None).scenes:
        reader.read_pairs(scene)
        reader.read_reference_images(scene)
        for block in reader.blocks(scene):
            block.read()
    training.training_set(folder)


def _make_hpatches(folder: Path) -> None:
    from protocols.hpatches import tasks
    from protocols.hpatches.reader import STRIPS

    names = ("i_one", "i_two", "v_one", "v_two")
    for n, name in enumerate(names, 6):
        (folder / "patches" / name).mkdir(parents=True)
        strip = np.random.default_rng(n).integers(0, 256, (8 * n, 8), np.uint8)
        for stem in STRIPS:
            cv2.imwrite(str(folder / "patches" / name / f"{stem}.png"), strip)
    (folder / "tasks").mkdir()
    split = {"name": "a", "test": ["v_one", "i_one"], "train": ["i_two", "v_two"]}
    (folder / "tasks/splits.json").write_text(json.dumps({"a": split}))
    about = {"name": "hpatches-built-x", "sequences": {name: {"origin": "x"} for name in names}}
    (folder / "dataset.json").write_text(json.dumps(about))
    tasks.make(folder)


def _read_hpatches(folder: Path) -> None:
    from protocols.hpatches import reader, tasks

    opened = reader.open_set(folder, None, training=True)
    tasks.verification(opened)
    tasks.retrieval(opened)
    for block in (*opened.dataset.blocks, *reader.open_training(folder).blocks):
        block.read()


def _make_oxford(folder: Path) -> None:
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
    np.savez_compressed(folder / "npz/v_a.npz", **rows)


def _read_oxford(folder: Path) -> None:
    from protocols.imaging import sequences
    from protocols.oxford import reader

    all_sequences, _ = sequences.find(folder / "images")
    reader.check_fit(folder / "images", all_sequences)
    for form in ("npz", "text"):
        for place in ((sequence, k) for sequence in all_sequences for k in range(6)):
            frames = reader.regions_of(place, frames=folder / form, features=None)
            reader.block_of((place, frames), magnification=3.0).read()


def _make_romepatches(folder: Path) -> None:
    import scipy.io

    rng, point = np.random.default_rng(0), np.arange(1.0, 6)[:, None]
    for k, half in enumerate(("train", "test")):
        stem = f"patch_retrieval_Rome_{half}"
        patches = rng.integers(0, 256, (51, 51, 50), np.uint8)
        scipy.io.savemat(folder / f"{stem}.mat", {"patches": patches}, do_compression=bool(k))
        labels = {"labels_gt": point, "labels": np.repeat(point, 9, axis=0)}
        scipy.io.savemat(folder / f"{stem}_labels.mat", labels)
    (folder / "dataset.json").write_text('{"name": "romepatches-x"}\n')


def _read_romepatches(folder: Path) -> None:
    from protocols.romepatches.training import training_set

    training_set(folder)


def _make_eth(folder: Path) -> None:
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


def _read_eth(folder: Path) -> None:
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


def _make_colmap(folder: Path) -> None:
    import pycolmap

    pycolmap.set_random_seed(0)
    options = pycolmap.SyntheticDatasetOptions(
        num_rigs=2, num_cameras_per_rig=1, num_frames_per_rig=4, num_points3D=30
    )
    with pycolmap.Database.open(folder / "database.db") as database:
        sparse = pycolmap.synthesize_dataset(options, database)
        for image in database.read_all_images():
            keypoints = database.read_keypoints(image.image_id)[:, :2]
            n = len(keypoints)
            table = np.c_[keypoints, np.full(n, 2), np.zeros(n)]
            database.update_keypoints(image.image_id, table.astype(np.float32))
    for form, write in (("binary", sparse.write_binary), ("text", sparse.write_text)):
        (folder / form).mkdir()
        write(folder / form)
        for part in ("rigs", "frames"):  # not read
            for file in (folder / form).glob(f"{part}.*"):
                file.unlink()


def _read_colmap(folder: Path) -> None:
    from protocols.builders.phototour import sparse

    for form in ("binary", "text"):
        sparse.read(folder / form, folder / "database.db")


def _make_photographs(folder: Path) -> None:
    colour = cv2.resize(np.random.default_rng(0).integers(0, 256, (12, 16, 3), np.uint8), (64, 48))
    for ending in ("png", "jpg", "bmp", "ppm", "tif"):
        cv2.imwrite(str(folder / f"colour.{ending}"), colour)
    for ending in ("png", "pgm", "tif"):
        cv2.imwrite(str(folder / f"deep.{ending}"), colour[..., 0].astype(np.uint16) * 257)
    numbers = " ".join(map(str, range(12)))
    (folder / "text.pgm").write_text(f"P2\n# made here\n4 3\n255\n{numbers}\n")
    (folder / "bits.pgm").write_text("P1\n4 3\n1 0 1 0\n0110\n1111\n")


def _read_photographs(folder: Path) -> None:
    from protocols.imaging import grey, photographs

    for name in photographs.find(folder):
        shape = grey.check(folder / name)
        if grey.read_grey(folder / name).shape != shape:
            raise AssertionError(f"{name} has another shape than it says")


READERS = (
    Reader("phototour", _make_scene, _read_scene),
    Reader("dataset.json", _make_scene, _read_scene, "dataset.json"),
    Reader("hpatches", _make_hpatches, _read_hpatches),
    Reader("oxford", _make_oxford, _read_oxford),
    Reader("romepatches", _make_romepatches, _read_romepatches),
    Reader("eth", _make_eth, _read_eth),
    Reader("colmap", _make_colmap, _read_colmap),
    Reader("photographs", _make_photographs, _read_photographs),
)
