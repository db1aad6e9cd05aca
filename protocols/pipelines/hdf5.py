"""Reads and writes features in the HDF5 layout of hloc (Hierarchical-Localization).

Each image is a group, named by the path of the image below its folder. Its data sets are:

| name | shape | what it holds |
|---|---|---|
| `keypoints` | [n, 2] float32 | x and y; the centre of the first pixel is (0, 0), as in hloc |
| `descriptors` | [D, n] float32 or float16 | one column for each keypoint |
| `descriptors`, binary | [bytes, n] uint8 | bits packed as by `numpy.packbits`, first bit highest |
| `scores` | [n] float32 | of the detector; 1 if it gives none |
| `image_size` | [2] int64 | width and height |
| `scales` | [n] float32 | radius of the keypoint, pixels; of an ellipse: the circle of equal area |
| `oris` | [n] float32 | angle from the x axis towards the y axis, radians |
| `affine` | [n, 2, 2] float32 | only if a region is no circle: maps the unit circle to the region |

All data sets are numbers, since hloc's matchers turn each of them into a tensor. Other facts are
attributes: of the file, `model`, `distance`, `dim` and so on; of binary descriptors, `packed_bits`
(their number) and `bit_order` ("big").
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from harness.distances import HAMMING
from harness.errors import InputError, one_line
from harness.types import Descriptor
from protocols.imaging.affine import AffineFrames, are_circles, from_similarity, scale_and_angle
from protocols.pipelines.features import Features
from protocols.pipelines.photographs import Photograph

FORM = "harness features 1"  # of the layout; raised if it changes
IMAGE = "sha256"  # attribute of a group: hash of the image file


def write_facts(file: h5py.File, facts: Mapping[str, object]) -> None:
    """Write the attributes of a file."""
    file.attrs["form"] = FORM
    for name, value in facts.items():
        file.attrs[name] = value


def write(
    file: h5py.File, photograph: Photograph, features: Features, model: Descriptor, dtype: str
) -> None:
    """Write the group of one image.

    Args:
        file: open for writing.
        photograph: the image.
        features: its keypoints and vectors.
        model: that made the vectors.
        dtype: of descriptors that are numbers: "float32" or "float16".
    """
    frames = features.frames
    group = file.create_group(photograph.name)
    group.attrs[IMAGE] = photograph.sha256
    scale, angle = scale_and_angle(frames)
    score = frames.score if frames.score.any() else np.ones(len(frames))
    tables = {
        "keypoints": np.stack([frames.x, frames.y], axis=1),
        "scores": score,
        "scales": scale,
        "oris": angle,
    }
    if not are_circles(frames):
        tables["affine"] = frames.matrix
    for name, table in tables.items():
        group.create_dataset(name, data=table.astype(np.float32))
    group.create_dataset("image_size", data=np.array([photograph.width, photograph.height]))
    columns = np.ascontiguousarray(features.vectors.T)
    if model.distance is HAMMING:
        stored = group.create_dataset("descriptors", data=columns)
        stored.attrs["packed_bits"] = model.dim
        stored.attrs["bit_order"] = "big"
    else:
        group.create_dataset("descriptors", data=columns.astype(dtype))


def read_frames(file: Path, name: str) -> tuple[AffineFrames, bool]:
    """The keypoints of an image, and whether they have angles.

    Raises:
        InputError: if the file is not HDF5, or lacks the image or the sizes of its keypoints.
    """
    try:
        with h5py.File(file, "r") as opened:
            group = opened.get(name)
            if not isinstance(group, h5py.Group) or "keypoints" not in group:
                raise InputError(
                    f"{file} has no keypoints of {name}: add the image, or leave it out"
                )
            arrays = {
                key: np.asarray(group[key], np.float64)
                for key in ("keypoints", "scales", "oris", "scores", "affine")
                if key in group
            }
    except OSError as error:
        raise InputError(f"{file} can't be read as HDF5: {one_line(error)}") from error
    return _frames(arrays, f"{file}, {name}")


def _frames(arrays: Mapping[str, np.ndarray], subject: str) -> tuple[AffineFrames, bool]:
    places = arrays["keypoints"]
    n = len(places)
    if places.shape != (n, 2):
        raise InputError(f"{subject}: keypoints of shape {list(places.shape)}; [n, 2] is wanted")
    if not {"scales", "affine"} & arrays.keys():
        raise InputError(
            f"{subject}: keypoints without scales, so the size of their patches is unknown: add a"
            " data set `scales` (pixels, one for each keypoint)"
        )
    shapes = {"scales": (n,), "oris": (n,), "scores": (n,), "affine": (n, 2, 2)}
    for key, shape in shapes.items():
        if key in arrays and arrays[key].shape != shape:
            raise InputError(
                f"{subject}: {key} of shape {list(arrays[key].shape)} for {n} keypoints"
            )
    x, y = places.T.copy()
    score = arrays.get("scores", np.zeros(n))
    if "affine" in arrays:
        return AffineFrames(x, y, arrays["affine"], score), True
    angle = arrays.get("oris", np.zeros(n))
    return from_similarity(x, y, arrays["scales"], angle, score), "oris" in arrays


def images_of(file: Path, facts: Mapping[str, object]) -> dict[str, str]:
    """The hash of the image file of each group, by name; empty if there is no file.

    Raises:
        InputError: if the file is not HDF5, or was written by another model or setting.
    """
    if not file.exists():
        return {}
    remedy = "give another --out, or remove the file"
    try:
        with h5py.File(file, "r") as opened:
            known = {"form": FORM} | dict(facts)
            for name, value in known.items():
                there = opened.attrs.get(name)
                if there != value:
                    raise InputError(
                        f"{file} has features of {name} {there!s:.80}, not {value!s:.80}: {remedy}"
                    )
            return {name: str(group.attrs[IMAGE]) for name, group in _groups(opened).items()}
    except OSError as error:
        raise InputError(f"{file} can't be read as HDF5 ({one_line(error)}): {remedy}") from error


def keypoint_counts(file: Path) -> dict[str, int]:
    """Number of keypoints of each image in a file of ours, by name."""
    with h5py.File(file, "r") as opened:
        return {name: len(group["keypoints"]) for name, group in _groups(opened).items()}


def _groups(file: h5py.File) -> dict[str, h5py.Group]:
    """The group of each image, by name; names have slashes, so groups lie in groups."""
    found: dict[str, h5py.Group] = {}

    def visit(name: str, entry: Any) -> None:
        if isinstance(entry, h5py.Group) and IMAGE in entry.attrs:
            found[name] = entry

    file.visititems(visit)
    return found
