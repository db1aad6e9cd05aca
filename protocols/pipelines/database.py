"""The COLMAP database of a pipeline: images, cameras, keypoints, and verified matches.

Descriptors are never written: COLMAP's table `descriptors` holds the bytes of its own extractors,
and reads other numbers as such bytes. COLMAP's mapper needs keypoints and verified matches only.

The facts of a run are rows of a table of our own, `harness_facts`, which COLMAP ignores. So a later
run knows which model and settings the keypoints and matches belong to.
"""

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pycolmap

from harness.errors import InputError, one_line
from harness.files import folders
from protocols.colmap import keypoints
from protocols.colmap.keypoints import KeypointTable
from protocols.eth.matching import Matches
from protocols.pipelines.photographs import Photograph

FACTS = "harness_facts"
REMEDY = "give a database of COLMAP, or a new path"


@dataclass(frozen=True, eq=False)
class ListedImage:
    """An image in the database."""

    number: int
    camera: pycolmap.Camera
    keypoints: int | None  # their number; None if the database has none of it


@dataclass(frozen=True, eq=False)
class VerifiedPair:
    """Two images, their matches, and the geometry that COLMAP finds for them."""

    first: int  # number of the image in the database
    second: int
    matches: Matches
    geometry: pycolmap.TwoViewGeometry


def make(database: Path) -> None:
    """Make an empty database, or bring one of an older COLMAP up to date.

    Raises:
        InputError: if the file is no database of COLMAP.
    """
    if database.exists():
        keypoints.must_list(database, [], REMEDY)
    try:
        pycolmap.Database.open(database).close()
    except (RuntimeError, ValueError) as error:
        raise InputError(
            f"{database} can't be opened by COLMAP: {one_line(error)}; {REMEDY}"
        ) from (error)


def facts(database: Path) -> dict[str, object]:
    """The facts of the runs that wrote a database; empty if no run of ours did."""
    with closing(sqlite3.connect(database)) as opened:
        there = opened.execute("SELECT 1 FROM sqlite_master WHERE name = ?", [FACTS]).fetchone()
        rows = opened.execute(f"SELECT name, value FROM {FACTS}").fetchall() if there else []
    return {name: json.loads(value) for name, value in rows}


def add_facts(database: Path, known: Mapping[str, object]) -> None:
    """Add or replace facts, all or none."""
    with closing(sqlite3.connect(database)) as opened, opened:
        opened.execute(f"CREATE TABLE IF NOT EXISTS {FACTS} (name TEXT PRIMARY KEY, value TEXT)")
        rows = [(name, json.dumps(value)) for name, value in known.items()]
        opened.executemany(f"INSERT OR REPLACE INTO {FACTS} VALUES (?, ?)", rows)


def counts(database: Path) -> dict[str, int]:
    """Number of keypoints, of matched pairs and of pairs that were verified."""
    with pycolmap.Database.open(database) as opened:
        verified = opened.read_two_view_geometry_num_inliers()[1]
        return {
            "keypoints": opened.num_keypoints(),
            "matched_pairs": opened.num_matched_image_pairs(),
            "matches": opened.num_matches(),
            "verified_pairs": sum(count > 0 for count in verified),
            "inlier_matches": sum(verified),
        }


def add_images(
    database: Path, photographs: Sequence[Photograph], camera_mode: str, camera_model: str
) -> None:
    """Add images and their cameras, as COLMAP's feature extractor does."""
    if not photographs:
        return
    options = pycolmap.ImageReaderOptions(camera_model=camera_model)
    mode = pycolmap.CameraMode.__members__[camera_mode.upper().replace("-", "_")]
    if mode == pycolmap.CameraMode.SINGLE:
        with pycolmap.Database.open(database) as opened:
            known = opened.read_all_cameras()
        if len(known) == 1:  # of an earlier run
            options.existing_camera_id = known[0].camera_id
    names = [one.name for one in photographs]
    pycolmap.import_images(database, photographs[0].folder, mode, names, options)


def images(database: Path) -> dict[str, ListedImage]:
    """The images of a database, by name in Unicode's form NFC."""
    with pycolmap.Database.open(database) as opened:
        cameras = {camera.camera_id: camera for camera in opened.read_all_cameras()}
        found = {}
        for image in opened.read_all_images():
            number, has_keypoints = image.image_id, opened.exists_keypoints(image.image_id)
            count = opened.num_keypoints_for_image(number) if has_keypoints else None
            found[folders.same_form(image.name)] = ListedImage(
                number, cameras[image.camera_id], count
            )
        return found


def read_keypoints(database: Path, number: int) -> KeypointTable:
    """The keypoints of an image."""
    with pycolmap.Database.open(database) as opened:
        return opened.read_keypoints(number)


def write_keypoints(database: Path, tables: Iterable[tuple[int, np.ndarray]]) -> None:
    """Write the keypoints of images that have none, all or none of them."""
    with pycolmap.Database.open(database) as opened, pycolmap.DatabaseTransaction(opened):
        for number, table in tables:
            opened.write_keypoints(number, table)


def verified_pairs(database: Path) -> set[tuple[int, int]]:
    """The pairs of image numbers that were matched and verified, the smaller first."""
    with closing(sqlite3.connect(database)) as opened:
        rows = opened.execute("SELECT pair_id FROM two_view_geometries").fetchall()
    pairs = (pycolmap.pair_id_to_image_pair(number) for (number,) in rows)
    return {(min(pair), max(pair)) for pair in pairs}


def write_pairs(opened: pycolmap.Database, pairs: Iterable[VerifiedPair]) -> None:
    """Write matches and geometries of pairs, all or none; a pair without matches is written, too.

    So a later run knows that it was matched.
    """
    with pycolmap.DatabaseTransaction(opened):
        for pair in pairs:
            opened.write_matches(pair.first, pair.second, pair.matches)
            opened.write_two_view_geometry(pair.first, pair.second, pair.geometry)
