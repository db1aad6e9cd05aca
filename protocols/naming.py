"""Names in records: of a data set, of its split, and of a protocol's options.

The name of a data set comes from its dataset.json or from its folder. A published name comes from
neither: a reader gives it only after it has checked the data. A split's name says which part of the
data is tested; remarks after "@" say which files, pairs or keypoints are not the usual ones.
"""

import logging
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.errors import InputError
from harness.files import texts

PARTIAL = "partial"  # remark on a split: parts are missing, and the user allowed it

log = logging.getLogger(__name__)


def granted(file: Path, *forms: str) -> tuple[str, dict[str, Any]]:
    """The name that a dataset.json gives its set, and the whole contents of the file.

    Args:
        file: a dataset.json that a builder wrote.
        forms: allowed forms of the name, so that the set can't take the name of another set. NAME
            in a form stands for letters, digits and any of `_ . + -`; so a name is never a path out
            of a folder.

    Raises:
        InputError: if the file gives no name, or a name that has none of the forms.
    """
    try:
        about = texts.read_json(file)
        name = about["name"]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{file} does not name its data set ({error!r}): it should hold what the builder"
            ' wrote, {"name": ...}; move the file away to name the set by its folder'
        ) from error
    wanted = "|".join(re.escape(form).replace("NAME", r"[\w.+-]+") for form in forms)
    if not (isinstance(name, str) and re.fullmatch(wanted, name, re.ASCII)):
        raise InputError(
            f"{file} names the set {name!r}; the name must have the form {' or '.join(forms)}"
            " (NAME: letters, digits and any of _ . + -): correct it, or move the file away to name"
            " the set by its folder"
        )
    return name, about


def unless_wrong(
    published: str,
    faults: Sequence[str],
    root: Path,
    *made: str,
    family: str | None = None,
    end: str = "",
) -> str:
    """The published name of a set or, with a warning, a name after its folder if it has faults.

    Args:
        published: the published name.
        faults: sentences about differences from the published set.
        root: folder of the set.
        made: see `after_folder`.
        family: that the other name begins with; None: the published name up to its first "-".
        end: of the other name.
    """
    if not faults:
        return published
    name = after_folder(family or published.partition("-")[0], root, *made) + end
    more = f"; and {len(faults) - 3} more differences" if len(faults) > 3 else ""
    log.warning(
        "%s is not the published %s; its scores are kept under the name %s: %s%s",
        root, published, name, "; ".join(faults[:3]), more,
    )  # fmt: skip
    return name


def after_folder(family: str, folder: Path, *made: str) -> str:
    """The name of a set without a dataset.json: "family-folder", in plain letters.

    Args:
        family: of the protocol.
        folder: of the set; links are followed.
        made: beginnings of the names of sets that this project makes. Such a set has a
            dataset.json, so a folder whose name begins in the same way gets another name: it must
            not share a table with those sets.
    """
    name = f"{family}-{plain(folder)}"
    return name + "-folder" * name.startswith(made)


def plain(folder: Path) -> str:
    """The name of a folder in plain letters; links are followed."""
    return re.sub(r"[^a-z0-9_.+-]", "_", folder.resolve().name.lower())


def remarked(split: str, *remarks: str) -> str:
    """A split's name with remarks on unusual files, pairs or keypoints.

    >>> remarked("a", "own-tasks", "partial"), remarked("a")
    ('a@own-tasks+partial', 'a')
    """
    for remark in remarks:
        split += ("+" if "@" in split else "@") + remark
    return split


def unusual(usual: Mapping[str, object], **given: object) -> dict[str, str]:
    """The options whose values are not the usual ones, as texts for `Protocol.options`.

    >>> unusual({"ties": "mean", "ratio": 0.8}, ties="mean", ratio=0.75)
    {'ratio': '0.75'}
    """
    return {
        name: f"{value:.15g}" if isinstance(value, float) else str(value)
        for name, value in given.items()
        if value != usual[name]
    }
