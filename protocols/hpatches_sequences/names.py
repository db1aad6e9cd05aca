"""Names of sets of image sequences, and the sequences of a split.

A set is named `hpatches-sequences` if it has the 116 sequences of HPatches by name, and `oxford` or
`oxford-six` if it has Oxford's sequences, equal in every pixel. Other sets are named by their
folder, with "-lossy" at the end if an image was compressed with loss.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from harness.errors import InputError
from protocols.hpatches.writer import IMAGES
from protocols.imaging.sequences import Sequence, if_lossy
from protocols.naming import after_folder, granted, unless_wrong
from protocols.official import official
from protocols.oxford import reader as oxford

NAME = "hpatches-sequences"
RELEASE = "hpatches-sequences-release"  # folder in the official archive
OFFICIAL = frozenset(official("hpatches")["lengths"])
LARGE = frozenset(
    "i_contruction i_crownnight i_dc i_pencils i_whitebuilding v_artisans v_astronautis"
    " v_talent".split()
)
"""Sequences with images larger than 1600 x 1200, which the benchmark of D2-Net (Dusmanu and others,
CVPR 2019; mihaidusmanu/d2-net, folder hpatches_sequences) leaves out."""
FULL, D2_NET = "full", "d2-net"
SPLITS = (FULL, D2_NET)
RECORDED = re.compile(rf"({FULL}|{D2_NET})-([1-9][0-9]*)(?:-([1-9][0-9]*)px)?")


def split_name(split: str | None, keypoints: int, size: int | None) -> str:
    """The name of a split in a record: it also tells the number of keypoints and the size.

    >>> split_name(None, 2000, None), split_name("d2-net", 500, 480)
    ('full-2000', 'd2-net-500-480px')
    """
    return "-".join([split or FULL, str(keypoints), *([] if size is None else [f"{size}px"])])


def from_name(name: str | None) -> tuple[str | None, int | None, int | None]:
    """The split, the number of keypoints and the size that a record's name of a split tells.

    Other names are returned as they are, without numbers.

    >>> from_name("d2-net-500-480px"), from_name("full")
    (('d2-net', 500, 480), ('full', None, None))
    """
    found = RECORDED.fullmatch(name or "")
    if not found:
        return name, None, None
    split, keypoints, size = found.groups()
    return split, int(keypoints), None if size is None else int(size)


def of_split(root: Path, sequences: list[Sequence], split: str | None) -> list[Sequence]:
    """The sequences of a split."""
    if split not in (None, *SPLITS):
        raise InputError(f"no split {split!r}; known: {', '.join(SPLITS)}")
    if split != D2_NET:
        return sequences
    kept = [sequence for sequence in sequences if sequence.folder not in LARGE]
    missing = sorted(OFFICIAL - LARGE - {sequence.folder for sequence in kept})
    if missing:
        raise InputError(
            f"the split {D2_NET} has {len(OFFICIAL - LARGE)} sequences of HPatches, and {root}"
            f" lacks {len(missing)} of them: {missing[0]}{' and others' * (len(missing) > 1)}; add"
            f" them, or leave --split {D2_NET} out"
        )
    return kept


def name_of(root: Path, sequences: list[Sequence], split: str | None) -> str:
    """The name of a set."""
    made = (f"{NAME}-sample",)
    if (root / "dataset.json").is_file():
        return granted(root / "dataset.json", *made)[0]
    names = {sequence.folder for sequence in sequences}
    end = if_lossy(sequences)
    if names <= OFFICIAL:
        wanted = OFFICIAL - LARGE if split == D2_NET else OFFICIAL
        faults = [_missing(root, wanted - names)] if names != wanted else []
        faults += [
            f"{s.folder} has {len(s.files)} images" for s in sequences if len(s.files) != IMAGES
        ]
        faults += [f"{s.lossy[0]} is compressed with loss" for s in sequences if s.lossy]
        return unless_wrong(NAME, faults, root, *made, end=end, family=NAME)
    if not any(map(oxford.differs, sequences)):
        for name, published in (("oxford", oxford.EIGHT), ("oxford-six", oxford.SIX)):
            if names == set(published):
                return name
    return after_folder(NAME, root, *made) + end


def _missing(root: Path, missing: frozenset[str]) -> str:
    few = sorted(missing)[:2]
    advice = f" (--split {D2_NET} tests the other 108)" if missing == LARGE else ""
    return (
        f"{root} lacks {len(missing)} of the {len(OFFICIAL)} sequences, such as"
        f" {' and '.join(few)}{advice}"
    )


def sources_of(name: str, sequence: Sequence) -> Iterator[str]:
    """Names of a sequence's images as training data."""
    yield f"{name.partition('-six')[0]}/{sequence.folder}"
    if sequence.folder in OFFICIAL:
        yield f"hpatches/{sequence.folder}"
    if not oxford.differs(sequence):
        yield f"oxford/{sequence.folder}"


def unchecked(name: str) -> tuple[str, ...]:
    """What could not be checked of the set of this name."""
    if name != NAME:
        return ()
    return ("No hashes of HPatches' images are known: only names and numbers were checked.",)
