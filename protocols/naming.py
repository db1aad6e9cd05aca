"""The names that scores are kept under: of a data set, of its split, and of a protocol's options.

The name of a data set is granted by a file, or the folder's. A published name is neither: a reader
gives it to what it has looked at. A split's name says which part of the data is tested, and after
"@" where the files, pairs or keypoints are others than the usual ones.
"""

import logging
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.errors import InputError
from harness.files import texts

PARTIAL = "partial"  # a remark: parts are missing, and the user allowed it

log = logging.getLogger(__name__)


def granted(file: Path, *forms: str) -> tuple[str, dict[str, Any]]:
    """The name that a dataset.json gives its set, and all that the file says.

    Args:
        file: what a builder wrote.
        forms: names that are not another set's; NAME in them stands for letters, digits and any of
            `_ . + -`, so that no name leads out of a folder.

    Raises:
        InputError: if it gives no name, or one that is of none of the forms.
    """
    try:
        about = texts.read_json(file)
        name = about["name"]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{file} does not say what set this is ({error!r}): it should be what the builder"
            ' wrote, {"name": ...}; move it away to name the set by its folder'
        ) from error
    wanted = "|".join(re.escape(form).replace("NAME", r"[\w.+-]+") for form in forms)
    if not (isinstance(name, str) and re.fullmatch(wanted, name, re.ASCII)):
        raise InputError(
            f"{file} names the set {name!r}; {' or '.join(forms)} is wanted (NAME: letters, digits"
            " and any of _ . + -): correct it, or move it away to name the set by its folder"
        )
    return name, about


def unless_wrong(published: str, faults: Sequence[str], root: Path, *made: str) -> str:
    """The published name of a set; the folder's, with a warning, if a known fact is against it.

    Args:
        published: the name.
        faults: sentences on what differs from the published set.
        root: folder of the set.
        made: as for `after_folder`.
    """
    if not faults:
        return published
    name = after_folder(published.partition("-")[0], root, *made)
    more = f"; and {len(faults) - 3} more differences" if len(faults) > 3 else ""
    log.warning(
        "%s is not the published %s, its scores are kept as those of %s: %s%s",
        root, published, name, "; ".join(faults[:3]), more,
    )  # fmt: skip
    return name


def after_folder(family: str, folder: Path, *made: str) -> str:
    """The name of a set that no file names: "family-folder", in plain letters.

    Args:
        family: of the protocol.
        folder: of the set; links are followed.
        made: how names of sets that are made here begin. Those come with a dataset.json: a folder
            that happens to be called alike must not share a table with them.
    """
    name = f"{family}-{plain(folder)}"
    return name + "-folder" * name.startswith(made)


def plain(folder: Path) -> str:
    """The name of a folder in plain letters; links are followed."""
    return re.sub(r"[^a-z0-9_.+-]", "_", folder.resolve().name.lower())


def remarked(split: str, *remarks: str) -> str:
    """A split's name with remarks on what is not as usual.

    >>> remarked("a", "own-tasks", "partial"), remarked("a")
    ('a@own-tasks+partial', 'a')
    """
    for remark in remarks:
        split += ("+" if "@" in split else "@") + remark
    return split


def unusual(usual: Mapping[str, object], **given: object) -> dict[str, str]:
    """The options that are not as usual, as texts for `Protocol.options`.

    >>> unusual({"ties": "mean", "ratio": 0.8}, ties="mean", ratio=0.75)
    {'ratio': '0.75'}
    """
    return {
        name: f"{value:.15g}" if isinstance(value, float) else str(value)
        for name, value in given.items()
        if value != usual[name]
    }
