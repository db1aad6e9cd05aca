"""Lists the published weights of installed packages, and downloads them into the store.

It is apart from the store, so that changes of the download don't change the code behind vectors.
"""

import logging
import shutil
from pathlib import Path

from harness import registry
from harness.data import download, weights
from harness.data.download import Progress
from harness.data.weights import Weights
from harness.errors import UnknownNameError
from harness.files import atomic, home, locks

log = logging.getLogger(__name__)


def known() -> dict[str, Weights]:
    """All rows that installed packages declare, by name."""
    rows: dict[str, Weights] = {}
    for table in registry.names("weights"):
        try:
            listed = registry.load("weights", table)
        except ImportError as error:  # one broken package must not hide the others' weights
            log.warning("%s", error)
            continue
        for row in listed.values():
            if rows.setdefault(row.name, row) != row:
                raise UnknownNameError(
                    f"weights {row.name!r} are listed twice, with different rows;"
                    f" the second is of {registry.source('weights', table)}: uninstall one package"
                )
    return rows


def fetch(row: Weights, *, progress: Progress = lambda done, total: None) -> Path:
    """The stored file of a row, downloaded from the first mirror that gives the right bytes.

    Raises:
        SystemRefusedError: if no mirror does; gives the reason for each.
    """
    folder = home.cache("weights", ".fetching", row.key)
    atomic.must_be_writable(folder, "weights can't be kept", home.REMEDY)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locks.alone(folder.with_suffix(".lock")):
        if not weights.is_stored(row):  # another process may have fetched it in the meantime
            download.fetch(
                row.copies,
                folder,
                lambda file: weights.add(file, [row]),
                title=f"{row.name}, {row.described}",
                by_hand=row.by_hand,
                progress=progress,
            )
            shutil.rmtree(folder)
    return weights.path(row)
