"""Checks the name of a new scene."""

import re
from pathlib import Path

from harness.errors import InputError
from protocols.phototour.scenes import MEAN, OFFICIAL

NAMES = (MEAN, *OFFICIAL)  # reserved names, also in capitals


def check_name(out: Path, name: str) -> None:
    """Refuse a name that a scene can't have.

    Raises:
        InputError: if `name`, or the name of the folder, can't be the name of a scene.
    """
    for scene in (name, out.name):
        if not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*", scene) or scene.lower() in NAMES:
            raise InputError(
                f"{scene!r} can't name a scene: give letters, digits and any of _ . -, and no name"
                " of an official scene"
            )
