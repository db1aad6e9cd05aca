"""The splits of a data set: sequences that are scored, and sequences that fit the whitening."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from harness.errors import FileMissingError, InputError, InputTypeError, UnknownNameError
from harness.files import folders, texts
from harness.registry import unknown

FILE = "splits.json"
NAME = re.compile(r"(?!\.{1,2}$)[\w.+-]+")  # split and sequence names: both are parts of paths


class Split(NamedTuple):
    """Names of sequences, in the order of splits.json."""

    test: tuple[str, ...]  # sequences that are scored
    train: tuple[str, ...]  # sequences that fit the whitening; () if the split has none


def choose(name: str | None, patches: Path, folders: Sequence[Path]) -> tuple[str, Split]:
    """The split of this name; None takes split "a", else the only split, else "full".

    If none of the folders has a splits.json, all existing sequences form the split "full".

    Raises:
        UnknownNameError: if there is no such split, or no name was given and there are several.
        InputError: if splits.json is malformed.
        FileMissingError: if there is neither a splits.json nor a sequence.
    """
    places = [place for folder in folders for place in (folder / FILE, folder / "splits" / FILE)]
    file = next((place for place in places if place.is_file()), None)
    known = _read(file) if file else {"full": _everything(patches)}
    if name is None:
        only = next(iter(known)) if len(known) == 1 else "full"
        name = next((option for option in ("a", only) if option in known), None)
    if name is None:
        raise UnknownNameError(f"{file} has {', '.join(known)}: choose one with --split")
    if name not in known and not file:
        raise UnknownNameError(
            f"no split named {name!r}: there is no {FILE} in {' or '.join(map(str, folders))}, so"
            " all sequences are one split, 'full'; put the file of HPatches' task files there"
        )
    if name not in known:
        raise UnknownNameError(f"{unknown('splits', name, known)} ({file})")
    return name, known[name]


def _everything(patches: Path) -> Split:
    names = [f.name for f in folders.folders(patches) if any(f.glob("*.png"))]
    if not names:
        raise FileMissingError(f"no folder in {patches} has a strip (such as ref.png) in it")
    return Split(tuple(map(folders.same_form, names)), ())


def _read(file: Path) -> dict[str, Split]:
    try:
        known = {
            name: Split(_names(entry["test"]), _names(entry.get("train", [])))
            for name, entry in texts.read_json(file).items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{file} is not a table of splits ({error!r}): it should map a split's name to"
            ' {"test": [sequences], "train": [sequences]}'
        ) from error
    for name, split in known.items():
        fault = _fault(name, split)
        if fault:
            raise InputError(f"{file}, split {name!r}: {fault}")
    if not known:
        raise InputError(f"{file} holds no split")
    return known


def _names(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise InputTypeError(f"{value!r:.40} is not a list of names")
    return tuple(map(folders.same_form, value))


def _fault(name: str, split: Split) -> str | None:
    sequences = split.test + split.train
    for listed in (name, *sequences):
        if not NAME.fullmatch(listed):
            return (
                f"{listed!r} can't be part of a path; a name has letters, digits and any of _ . + -"
            )
    if not split.test:
        return "the test list is empty, so there is nothing to score"
    listed, times = Counter(sequences).most_common(1)[0]
    if times > 1:
        return f"{listed} is listed {times} times in test and train; once is wanted"
    return None
