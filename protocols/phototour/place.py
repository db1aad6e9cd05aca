"""Where a scene may be built, and what it may be called."""

import re
from pathlib import Path

from harness.atomic import must_be_free
from protocols.phototour.scenes import MEAN, OFFICIAL

NAMES = (MEAN, *OFFICIAL)  # that no scene may have, in capitals neither


def check_place(out: Path, name: str) -> None:
    """Refuse a name that scenes can't have, and a folder with something in it.

    Raises:
        ValueError: if `name`, or that of the folder, is no name for a scene.
        FileExistsError: if there is something in the folder.
    """
    for what in (name, out.name):
        if not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*", what) or what.lower() in NAMES:
            raise ValueError(
                f"{what!r} can't name a scene: give letters, digits and any of _ . -, and no name"
                " of an official scene"
            )
    must_be_free(out)
