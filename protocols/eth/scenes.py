"""Opens scenes in the official layout: a folder of images, and files of known facts beside it.

<scene>/images/             photographs, subfolders are allowed
<scene>/keypoints/NAME.bin  official keypoints of each image; without them, keypoints are detected
<scene>/database.db         COLMAP's database of the images and their cameras; optional
<scene>/gt_dense_cameras/NAME.camera   known cameras; optional
<scene>/points/NAME.bin     number of each official keypoint's 3-D point (uint32, one column); only
                            in sets that are made here

Keypoints and database of a published scene may also lie beside it, in the unpacked official
archives of all scenes: `keypoints/<scene>/keypoints/`, `databases/<scene>/database.db`.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Int

from harness import parallel
from harness.errors import FileMissingError, InputError, UnknownNameError
from harness.files import folders
from harness.registry import unknown
from protocols import naming
from protocols.colmap import keypoints as colmap
from protocols.eth import fit, keypoints, truth
from protocols.eth.files import read_points
from protocols.imaging import grey, photographs
from protocols.imaging.affine import AffineFrames, must_lie_on

IMAGES, DATABASE, POINTS = "images", "database.db", "points"
TOTAL = "total"
MADE = "dataset.json"
SAMPLE = "eth-sample"

PUBLISHED = {
    "fountain": 11,
    "herzjesu": 8,
    "south": 128,
    "madrid": 1344,
    "gendarmenmarkt": 1463,
    "tower": 1576,
    "alamo": 2915,
    "roman": 2364,
    "cornell": 6514,
}
"""Number of images of each published scene, by the beginning of its folder's name."""

ARCHIVES = {keypoints.FOLDER: "keypoints", DATABASE: "databases"}
"""The official archive's folder, by the part of a scene that it holds."""

UNCHECKED = "the images and keypoints of ETH's scenes; only the numbers of images are known."

SOURCES = OFFICIAL, STORED, SIFT = ("official", "database", "sift")  # of keypoints


@dataclass(frozen=True, eq=False)
class ImageScene:
    """Images of one place."""

    name: str
    images: Path  # the folder that names are relative to
    names: tuple[str, ...]  # in order
    sha256: tuple[str, ...]  # of the image files
    frames: tuple[AffineFrames, ...]  # keypoints of each image
    points: tuple[Int[np.ndarray, " _"], ...] | None  # the 3-D point of each keypoint, if known
    cameras: truth.KnownCameras | None  # known cameras, if there are any
    database: Path | None  # has images and cameras
    evidence: str  # sha256 of the files of cameras

    def __len__(self) -> int:
        """The number of images."""
        return len(self.names)


@dataclass(frozen=True, eq=False)
class ImageScenes:
    """Scenes of one folder, in the order of their names."""

    name: str  # of the data set
    split: str  # names of the scenes, and where their keypoints come from
    scenes: tuple[ImageScene, ...]
    unchecked: tuple[str, ...]  # like `Dataset.unchecked`


def open_scenes(root: Path, split: str | None, source: str | None) -> ImageScenes:
    """The scenes in a folder, with the keypoints of their images.

    Args:
        root: a folder of scene folders, or a scene folder.
        split: names of scenes joined by "+"; None takes all.
        source: of the keypoints, one of SOURCES; None takes official keypoints for scenes that
            have them, and SIFT's for the others.

    Raises:
        FileMissingError: if there is no scene, or a wanted file is missing.
        UnknownNameError: if a scene of the split is missing.
        InputError: if a file of a scene is damaged, or known cameras do not fit the images.
    """
    if source not in (None, *SOURCES):
        raise InputError(f"keypoints may be {', '.join(SOURCES)}, not {source!r}")
    scene_folders = _folders(root)
    chosen = sorted(set(split.split("+"))) if split else list(scene_folders)
    for name in chosen:
        if name not in scene_folders:
            raise UnknownNameError(f"{root}: {unknown('scenes', name, scene_folders)}")
        if name == TOTAL or not re.fullmatch(r"[\w.-]+", name, re.ASCII):
            raise InputError(
                f"{scene_folders[name]}: {name!r} can't name a scene: rename the folder to letters,"
                f" digits and any of _ . -, and not {TOTAL}"
            )
    sources = [source or _source(scene_folders[name]) for name in chosen]
    scenes = tuple(
        _open(scene_folders[name], name, s) for name, s in zip(chosen, sources, strict=True)
    )
    detected = () if set(sources) == {OFFICIAL} else sorted(set(sources))
    called = _name(root, scenes, sources)
    unchecked = (UNCHECKED,) if called == "eth" else ()
    return ImageScenes(called, naming.remarked("+".join(chosen), *detected), scenes, unchecked)


def _folders(root: Path) -> dict[str, Path]:
    if (root / IMAGES).is_dir():
        return {root.resolve().name: root}
    inner = folders.folders(root) if root.is_dir() else []
    scene_folders = {folder.name: folder for folder in inner if (folder / IMAGES).is_dir()}
    if not scene_folders and (root / "eth").is_dir():  # a folder of many data sets
        return _folders(root / "eth")
    if not scene_folders:
        raise FileMissingError(
            f"{root} has no scene (a folder with its photographs in {IMAGES}/) and is none itself:"
            " --data takes either"
        )
    return scene_folders


def _part(folder: Path, part: str) -> Path:
    """The path of a part of a scene; the part may be missing."""
    inside = folder / part
    scene = folder.absolute()
    key = _key(scene.name)
    if inside.exists() or key is None:
        return inside
    archive = sorted(scene.parent.glob(f"{ARCHIVES[part]}/*/{part}"))
    return next(
        (candidate for candidate in archive if candidate.parent.name.lower().startswith(key)),
        inside,
    )


def _source(folder: Path) -> str:
    return OFFICIAL if _part(folder, keypoints.FOLDER).is_dir() else SIFT


def _open(folder: Path, name: str, source: str) -> ImageScene:
    images = folder / IMAGES
    names = photographs.find(images)
    shapes = parallel.each(lambda file: grey.check(images / file), names)
    sha256 = parallel.each(lambda file: photographs.sha256(images / file), names)
    database = _part(folder, DATABASE)
    if database.is_file():
        remedy = "give a database of all images, or move this one away"
        colmap.must_list(database, names, remedy)
    frames = {
        OFFICIAL: lambda: keypoints.official(_part(folder, keypoints.FOLDER), names),
        STORED: lambda: keypoints.in_database(database, names),
        SIFT: lambda: keypoints.detected(images, names, sha256),
    }[source]()
    if not any(map(len, frames)):
        raise InputError(
            f"{folder}: none of its {len(names)} images has a keypoint ({source}), so there is"
            " nothing to match and no score: check whether the images are nearly black, or give"
            " other images"
        )
    for file, image_frames, (height, width) in zip(names, frames, shapes, strict=True):
        must_lie_on(image_frames, width, height, f"{folder}, keypoints ({source}) of {file}")
    points = None
    if source == OFFICIAL and (folder / POINTS).is_dir():
        points = tuple(read_points(folders.at(folder / POINTS, f"{file}.bin")) for file in names)
        for file, image_frames, point in zip(names, frames, points, strict=True):
            if len(image_frames) != len(point):
                raise InputError(
                    f"{folder}: {file} has {len(image_frames)} keypoints and {len(point)} points:"
                    f" write {POINTS}/{file}.bin again, or move {POINTS} away"
                )
    known = folder / truth.FOLDER
    camera_files = [truth.file_of(known, file) for file in names] if known.is_dir() else []
    cameras = truth.read(known, names) if known.is_dir() else None
    if cameras is not None:
        fit.check_once(images, names, sha256, cameras)
    return ImageScene(
        name=name,
        images=images,
        names=tuple(names),
        sha256=tuple(sha256),
        frames=frames,
        points=points,
        cameras=cameras,
        database=database if database.is_file() else None,
        evidence=_hash([database, colmap.log_of(database), *sorted(camera_files)]),
    )


def _hash(files: Sequence[Path]) -> str:
    contents = [f"{file.name} {photographs.sha256(file)}" for file in files if file.is_file()]
    return hashlib.sha256("\n".join(contents).encode()).hexdigest()


def _name(root: Path, scenes: Sequence[ImageScene], sources: Sequence[str]) -> str:
    """The data set's name for records: "eth" only for official keypoints of official scenes."""
    made = root / MADE
    if made.is_file():
        return naming.granted(made, SAMPLE)[0]
    keys = [_key(scene.name) for scene in scenes]
    if None in keys or set(sources) != {OFFICIAL}:
        return naming.after_folder("eth", root, SAMPLE)
    faults = []
    for key, scene in zip(keys, scenes, strict=True):
        if key is not None and len(scene) != PUBLISHED[key]:
            faults.append(f"{scene.name} has {len(scene)} images, not {PUBLISHED[key]}")
        if scene.database is None:
            faults.append(f"{scene.name} has no {DATABASE}")
    return naming.unless_wrong("eth", faults, root, SAMPLE)


def _key(name: str) -> str | None:
    """The published scene that a folder's name begins with."""
    return next((key for key in PUBLISHED if name.lower().startswith(key)), None)
