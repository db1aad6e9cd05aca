"""Facts of files that were checked before, so that a file is read again only if it changed.

A file counts as unchanged if its size, its inode, and its times of writing and of change are those
that it had when it was checked. The time of change can't be set back (Windows has none): a program
that writes a file and restores its time of writing, as `rsync -t` does, still changes it. A file
that was written less than FRESH before it was checked is checked again: it may have been written
again within the same tick of the clock. Facts are kept in the cache, an entry for each folder.
"""

import json
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness import cache as caches
from harness.files import home

FRESH = 2_000_000_000  # nanoseconds; some file systems count times in steps of two seconds

Facts = list[int | str]
Stamp = tuple[int, ...]
Known = Mapping[str, tuple[Stamp, int, Facts]]  # by name of file: stamp, time of the check, facts


def facts(kind: str, files: Sequence[Path], check: Callable[[Path], Facts]) -> list[Facts]:
    """The facts of each file: from an earlier check, or by `check`, in threads.

    Args:
        kind: name and version of the check; facts of another kind are not taken.
        files: the files. Those in the cache itself are always checked.
        check: reads a whole file; its errors come through, that of the first wrong file first.
    """
    known: dict[Path, Known] = {}
    by_folder: dict[Path, list[Path]] = defaultdict(list)
    for file in files:
        by_folder[file.parent].append(file)
    own = home.cache().resolve()
    kept = caches.kept("verified")
    origins = {
        folder: {"kind": kind, "folder": str(folder.resolve())}
        for folder in by_folder
        if not folder.resolve().is_relative_to(own)
    }
    for folder, origin in origins.items():
        contents = kept.read(origin)
        entry = {} if contents is None else json.loads(contents)
        known[folder] = {
            name: (tuple(of_file), when, checked)
            for name, (of_file, when, checked) in entry.items()
        }

    def found(file: Path) -> tuple[Stamp | None, int, Facts]:
        began, now = stamp(file), time.time_ns()
        before = known.get(file.parent, {}).get(file.name)
        if before is not None and began == before[0] and max(began[2:]) < before[1] - FRESH:
            return began, before[1], before[2]
        checked = check(file)
        return (began if began == stamp(file) else None), now, checked

    with ThreadPoolExecutor() as pool:  # reading and hashing release the GIL
        every = dict(zip(files, pool.map(found, files), strict=True))
    for folder, origin in origins.items():
        new = {
            file.name: (of_file, when, checked)
            for file in by_folder[folder]
            for of_file, when, checked in [every[file]]
            if of_file is not None
        }
        if any(known[folder].get(name) != values for name, values in new.items()):
            entry = {**known[folder], **new}
            kept.write(origin, json.dumps(entry, sort_keys=True).encode())
    return [every[file][2] for file in files]


def stamp(file: Path) -> Stamp | None:
    """Size, inode, and times of writing and of change; None if there is no such file.

    If one of them changes, the file was written.
    """
    try:
        known = file.stat()
    except OSError:  # the check will report it
        return None
    return known.st_size, known.st_ino, known.st_mtime_ns, known.st_ctime_ns
