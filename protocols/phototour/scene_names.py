"""What a scene may be called."""

import re
from pathlib import Path

from harness.errors import InputError
from protocols.phototour.scenes import MEAN, OFFICIAL

NAMES = (MEAN, *OFFICIAL)  # that no scene may have, in capitals neither


def check_name(out: Path, name: str) -> None:
    """Refuse a name that scenes can't have.

    Raises:
        InputError: if `name`, or that of the folder, is no name for a scene.
    """
    for what in (name, out.name):
        if not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*", what) or what.lower() in NAMES:
            raise InputError(
                f"{what!r} can't name a scene: give letters, digits and any of _ . -, and no name"
                " of an official scene"
            )
