"""Data of items: the folders that stand for the names in items, found, made or refused."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import registry
from harness.data import datasets
from harness.errors import FileMissingError
from harness.reproduce.budgets import Place
from harness.settings import accepted


@dataclass(frozen=True)
class Located:
    """A folder of data."""

    name: str  # in the item
    folder: Path
    place: Place

    @property
    def training(self) -> Path:
        """The folder to train on."""
        return self.folder / self.place.part if self.place.part else self.folder

    @property
    def options(self) -> dict[str, Any]:
        """Options of a protocol that tests these data."""
        found = {"split": self.place.split or self.place.part, "keypoints": self.place.keypoints}
        return {name: value for name, value in found.items() if value}


def locate(name: str, place: Place, given: Path | None, out: Path) -> Located:
    """The data of a name.

    Args:
        name: in the item, such as "phototour/liberty".
        place: where the budget looks for it.
        given: the folder of --data.
        out: folder in which sets are built.

    Raises:
        FileMissingError: if the data are nowhere; says where they were sought.
    """
    own = place.folder or name
    if given is not None and (given / own).is_dir():
        return Located(name, given / own, place)
    if place.sample:
        return Located(name, registry.load("samples", place.sample)(), place)
    if place.build:
        return Located(name, _built(place, name, given, out), place)
    known = datasets.known()
    if name in known or any(one.startswith(f"{name}/") for one in known):
        folder = datasets.path(name)
        if folder is not None:
            return Located(name, folder, place)
    sought = f"{given / own} and " if given is not None else ""
    raise FileMissingError(
        f"there are no data {name}: {sought}the fetched sets were looked through; give --data DIR"
        f" with a folder {own} in it, or fetch the set (harness data list)"
    )


def _built(place: Place, name: str, given: Path | None, out: Path) -> Path:
    """The set that a builder makes from images; it is made once."""
    if given is None or not (given / place.images).is_dir():
        where = given / place.images if given is not None else place.images
        raise FileMissingError(
            f"{name} is built from images, and there is no folder {where}: give --data DIR with a"
            f" folder {place.images} in it"
        )
    told = json.dumps([place.build, place.images, place.options], sort_keys=True)
    folder = (
        out
        / f"{place.build}-{Path(place.images).name}-{hashlib.sha256(told.encode()).hexdigest():.8}"
    )
    if not folder.is_dir():
        maker = registry.load("builders", place.build)
        folder.parent.mkdir(parents=True, exist_ok=True)
        maker(
            given / place.images, folder, **accepted(maker, place.options, f"builder {place.build}")
        )
    return folder
