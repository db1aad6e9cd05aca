"""Map real scenes from descriptors through `harness colmap`, beside COLMAP's own pipeline.

    python -m studies.from_images --data DIR --work FOLDER --out results/studies/from-images.md

Each scene is mapped once by COLMAP's own SIFT extraction and exhaustive matching, and once for each
model. All have the same keypoints, image readers and cameras, and COLMAP's own verification and
mapping with its default options and the same seed. What differs is the descriptor and the matcher.

Finished rows are kept in the work folder, and a run that was stopped continues there. Seconds are
processor time, summed over threads, so other programs on the machine change them little.
"""

import argparse
import json
import logging
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
import pycolmap

from benchmarks.machine import machine
from harness import loading
from harness.files import atomic
from harness.records import markdown_table
from harness.types import Descriptor
from protocols.colmap import sift
from protocols.colmap.keypoints import frames_of
from protocols.colmap.mapping import models, quiet
from protocols.colmap.verification import verified
from protocols.eth import truth
from protocols.eth.matching import axes, match
from protocols.imaging.keypoint_patches import USUAL
from protocols.pipelines import colmap, photographs
from protocols.pipelines.features import vectors_of

SCENES = {  # name: folder of images below the folder of data
    "Fountain-P11": "sfm/Fountain-P11/images",
    "Herzjesu-P8": "sfm/Herzjesu-P8/images",
    "castle-P30": "sfm/castle-P30/images",
    "lund": "images/lund",
}
MODELS = ("adasample", "rootsift", "hashsift.256")
OWN = "COLMAP's own"
KEYPOINTS = 2048
SEED = 0

Row = dict[str, float]
T = TypeVar("T")

log = logging.getLogger(__name__)


def mapped(database: Path, images: Path) -> Row:
    """Counts and errors of the largest model of a database, and the processor time of mapping."""
    begun = time.process_time()
    with quiet():
        found = models(database, images, seed=SEED, threads=1)
    seconds = time.process_time() - begun
    with pycolmap.Database.open(database) as opened:
        inliers = opened.read_two_view_geometry_num_inliers()[1]
        row: Row = {"images": opened.num_images(), "matches": opened.num_matches()}
    row |= {"inlier matches": sum(inliers), "mapping s": seconds}
    if not found:
        return row | {"registered": 0}
    model = found[0]
    row |= {
        "registered": model.num_reg_images(),
        "points": model.num_points3D(),
        "observations": model.compute_num_observations(),
        "track length": model.compute_mean_track_length(),
        "error px": model.compute_mean_reprojection_error(),
    }
    known = images.parent / truth.FOLDER
    if known.is_dir():
        names = sorted(file.name for file in images.iterdir() if file.suffix == ".jpg")
        errors = truth.errors(model, names, truth.read(known, names), SEED)
        if errors:
            row["position mm"] = 1000 * errors["position_error_m"]
            row["rotation deg"] = errors["rotation_error_deg"]
    return row


def colmaps_own(images: Path, folder: Path, keypoints: int, camera_mode: str) -> Row:
    """One row: COLMAP extracts, matches exhaustively, verifies and maps."""
    database = folder / "own.db"
    database.unlink(missing_ok=True)
    pycolmap.Database.open(database).close()
    names = [one.name for one in photographs.opened(images)[0]]
    extraction = pycolmap.FeatureExtractionOptions(num_threads=1, use_gpu=False)
    extraction.sift.max_num_features = keypoints
    matching = pycolmap.FeatureMatchingOptions(num_threads=1, use_gpu=False)
    verification = pycolmap.TwoViewGeometryOptions()
    verification.ransac.random_seed = SEED
    begun = time.process_time()
    with quiet():
        pycolmap.extract_features(
            database,
            images,
            names,
            camera_mode=pycolmap.CameraMode.__members__[camera_mode.upper().replace("-", "_")],
            extraction_options=extraction,
            device=pycolmap.Device.cpu,
        )
        extracted = time.process_time()
        pycolmap.match_exhaustive(
            database,
            matching_options=matching,
            verification_options=verification,
            device=pycolmap.Device.cpu,
        )
    times = {"describing s": extracted - begun, "matching s": time.process_time() - extracted}
    return times | mapped(database, images)


def ours(
    images: Path, folder: Path, keypoints: int, camera_mode: colmap.CameraMode, model: Descriptor
) -> Row:
    """One row: `harness colmap` describes, matches and verifies; COLMAP maps."""
    database = folder / "ours.db"
    begun = time.process_time()
    colmap.colmap(
        images, database, model=model, keypoints=keypoints, camera_mode=camera_mode, seed=SEED
    )
    return {"all but mapping s": time.process_time() - begun} | mapped(database, images)


@contextmanager
def timed(row: Row, step: str) -> Iterator[None]:
    """Add the processor time of the block to a row."""
    begun = time.process_time()
    yield
    row[step] = row.get(step, 0.0) + time.process_time() - begun


def steps(images: Path, keypoints: int, loaded: Sequence[Descriptor]) -> dict[str, Row]:
    """Processor time of each step for the first two images of a scene, or their pair, by model."""
    shared: Row = {}
    pair = photographs.opened(images)[0][:2]
    options = pycolmap.FeatureExtractionOptions(num_threads=1, use_gpu=False)
    options.sift.max_num_features = keypoints
    with timed(shared, "detect"), quiet():
        tables = [sift._detect(images, one.name, options) for one in pair]
    with timed(shared, "cut"):
        patches = [
            USUAL.patches(one.read(), frames_of(table))
            for one, table in zip(pair, tables, strict=True)
        ]
    cameras = [
        pycolmap.Camera.create_from_model_name(
            1, "SIMPLE_RADIAL", 1.2 * one.width, one.width, one.height
        )
        for one in pair
    ]
    rows: dict[str, Row] = {}
    for model in loaded:
        row = rows[model.name] = dict(shared)
        vectors_of(model, patches[0][:512], pair[0].name)  # the first call may load and compile
        with timed(row, "describe"):
            vectors = [vectors_of(model, some, pair[0].name) for some in patches]
        by = axes(vectors, model.distance)
        with timed(row, "match"):
            matches = match(vectors[0], vectors[1], by)
        with timed(row, "verify"):
            verified((cameras[0], cameras[1]), (tables[0][:, :2], tables[1][:, :2]), matches, SEED)
        for step in ("detect", "cut", "describe"):
            row[step] /= len(pair)
        row["keypoints"] = float(np.mean([len(table) for table in tables]))
    return rows


def kept(file: Path, make: Callable[[], T]) -> T:
    """A result that is kept in a file; it is made and written if the file is missing."""
    if file.is_file():
        known: T = json.loads(file.read_text("utf-8"))
        return known
    made = make()
    atomic.write_json(file, made)
    log.info("%s: %s", file.stem, made)
    return made


def in_folder(folder: Path, make: Callable[[Path], Row]) -> Row:
    """A row that needs a folder for its files; a database there is continued."""
    folder.mkdir(exist_ok=True)
    row = make(folder)
    shutil.rmtree(folder)
    return row


def table(rows: Mapping[tuple[str, str], Row]) -> Iterator[str]:
    """The lines of the table of models."""
    head = ["scene", "descriptor", "registered", "points", "observations", "track length",
            "error px", "position mm", "rotation deg", "inlier matches"]  # fmt: skip
    decimals = {"track length": 2, "error px": 3, "position mm": 1, "rotation deg": 3}

    def cell(row: Row, name: str) -> str:
        if name == "registered":
            return f"{row[name]:.0f} of {row['images']:.0f}"
        return f"{row[name]:,.{decimals.get(name, 0)}f}" if name in row else "-"

    body = (
        [scene, who, *(cell(row, name) for name in head[2:])] for (scene, who), row in rows.items()
    )
    yield from markdown_table.lines(head, body)


def speeds(rows: Mapping[tuple[str, str], Row]) -> Iterator[str]:
    """The lines of the table of processor time."""
    names = ["detect", "cut", "describe", "match", "verify"]
    head = ["scene", "descriptor", "keypoints", *names]
    body = (
        [scene, who, f"{row['keypoints']:.0f}", *(f"{row[name]:.2f}" for name in names)]
        for (scene, who), row in rows.items()
    )
    yield from markdown_table.lines(head, body)


def page(
    rows: Mapping[tuple[str, str], Row],
    times: Mapping[tuple[str, str], Row],
    keypoints: int,
    mode: str,
) -> str:
    """The page of both tables."""
    parts = [
        "# Scenes mapped from images\n",
        "`harness colmap` with three descriptors, beside COLMAP's own extraction and matching, on"
        " four scenes. All rows\nof a scene have the same images, cameras and SIFT keypoints"
        f" (`--keypoints {keypoints}`: COLMAP keeps whole levels of\nscale space, until it has at"
        " least so many). COLMAP verifies and maps with its default options, on one thread, with\n"
        f"seed {SEED}. Ours match mutual nearest neighbours with a ratio of 0.8. `error px` is the"
        " mean reprojection error. Position\nand rotation errors are means over registered images,"
        f" where cameras are known. Cameras are shared as in `--camera-mode {mode}`.\n",
        "With one seed and few images, differences of some percent mean nothing: another seed moves"
        " them as much.\n",
        "`lund` is hard for all: it is a walk down a street, and a camera that moves forward sees"
        " little parallax. COLMAP's own\npipeline registers 14 of its 29 images at its default of"
        " 8192 keypoints, and 2 to 6 with 2048.\n",
        *table(rows),
        "\n## Processor time of each step\n",
        "Seconds of one core: for one image (`detect`, `cut`, `describe`) and for one pair of"
        " images (`match`, `verify`), from the\nfirst two images of each scene, all in one run on"
        f" one machine ({machine()}). Compare them with each other, not with those of\nanother"
        " run.\n",
        *speeds(times),
        f"\npycolmap {pycolmap.__version__}. The command:\n",
        '```sh title="Needs your data"',
        f"python -m studies.from_images --data DIR --work FOLDER --keypoints {keypoints}"
        f" --camera-mode {mode} --out results/studies/from-images.md",
        "```",
    ]
    return "\n".join(parts) + "\n"


def measure(
    data: Path, work: Path, keypoints: int, mode: colmap.CameraMode, names: Sequence[str]
) -> Iterator[str]:
    """Measure all rows that the work folder lacks; yields the page after each row."""
    rows: dict[tuple[str, str], Row] = {}
    times: dict[tuple[str, str], Row] = {}
    loaded = [loading.load_model(name, device="cpu") for name in names]
    described = [model for model in loaded if isinstance(model, Descriptor)]
    for scene, below in SCENES.items():
        images = data / below
        makers: dict[str, Callable[[Path], Row]] = {
            OWN: partial(colmaps_own, images, keypoints=keypoints, camera_mode=mode)
        }
        for model in described:
            makers[model.name] = partial(
                ours, images, keypoints=keypoints, camera_mode=mode, model=model
            )
        for who, make in makers.items():
            name = f"{scene} {who} {keypoints}" + (f" {mode}" if mode != "auto" else "")
            rows[scene, who] = kept(work / f"{name}.json", partial(in_folder, work / name, make))
            yield page(rows, times, keypoints, mode)
        file = work / f"{scene} steps {keypoints}.json"
        of_models = kept(file, partial(steps, images, keypoints, described))
        times |= {(scene, who): row for who, row in of_models.items()}
        yield page(rows, times, keypoints, mode)


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--keypoints", type=int, default=KEYPOINTS)
    parser.add_argument(
        "--camera-mode", default="auto", choices=["auto", "single", "per-folder", "per-image"]
    )
    parser.add_argument("--models", default=",".join(MODELS))
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    options.work.mkdir(parents=True, exist_ok=True)
    names = options.models.split(",")
    for text in measure(options.data, options.work, options.keypoints, options.camera_mode, names):
        atomic.write_text(options.out, text)


if __name__ == "__main__":
    main()
