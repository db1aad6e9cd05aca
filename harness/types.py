"""The nouns of the project, as frozen data: Block, Dataset, Descriptor, Descriptions, Protocol."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import UInt8

from harness.distances import Distance, Distances, ManyRows
from harness.distances import Rows as Rows
from harness.distances import Vectors as Vectors

Patches = UInt8[np.ndarray, "n height width"]
"""Grey patches exactly as the data set stores them: 8 bits, not resized, not normalised."""


@dataclass(frozen=True)
class Block:
    """Consecutive patches of one file or scene: the unit that is read, described and cached."""

    name: str  # unique in its data set, e.g. "v_wall/e3"
    size: int  # patches
    sha256: str  # of the contents that `read` returns, or of the file that holds them
    read: Callable[[], Patches]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Patches, block after block, and what each of them shows. Row i of an array is patch i."""

    name: str
    split: str
    blocks: tuple[Block, ...]
    point: Rows  # two patches match iff their points are equal; all differ where nobody knows
    image: Rows  # patches of one image share a number
    truth: str = ""  # sha256 of the files that define the task: pairs, queries, splits
    sources: frozenset[str] = frozenset()  # where the patches come from, as in `trained_on`
    complete: bool = True  # False where the user allowed parts to be missing
    photographs: tuple[str, ...] = ()  # sha256 of the file of image i, or ""; none: nobody knows

    def __len__(self) -> int:
        """Patches in all."""
        return len(self.point)

    @cached_property
    def sha256(self) -> str:
        """Over the contents: every block's name, size and hash, in order, and the truth's."""
        lines = [f"{b.name} {b.size} {b.sha256}\n" for b in self.blocks]
        return hashlib.sha256("".join([*lines, self.truth]).encode()).hexdigest()


@dataclass(frozen=True, eq=False)
class Descriptor:
    """One entry of the zoo: how patches become vectors, and how vectors are compared."""

    name: str
    describe: Callable[[Patches], Vectors]  # any n, 0 included; any square patch
    distance: Distance
    dim: int  # numbers in a vector; bits where the distance takes packed bits
    # Names of data: "phototour/liberty", "hpatches/v_wall". None: nobody says on what.
    trained_on: frozenset[str] | None = frozenset()
    licence: str = "unknown"
    weights: str | None = None  # sha256 of the weights file
    code: str = ""  # sha256 of the source that makes the vectors; `plugins` fills it in where empty
    libraries: tuple[str, ...] = ("numpy",)  # distributions whose version may change a vector
    provider: str = "cpu"  # what really computes: "cpu", "cuda", "CPUExecutionProvider"
    # Makes a torch module from uint8 patches [n, height, width] to vectors, for `harness export`.
    network: Callable[[], Any] | None = None

    @property
    def width(self) -> int:
        """Columns of the array of its vectors."""
        return self.distance.columns(self.dim)


@dataclass(frozen=True, eq=False)
class Descriptions:
    """A data set, described: row i of `vectors` belongs to patch i."""

    dataset: Dataset
    vectors: Vectors
    distance: Distance

    def paired(self, a: Rows, b: ManyRows) -> Distances:
        """Distances between rows a[i] and b[..., i]."""
        return self.distance.paired(self.vectors, a, b)


@dataclass(frozen=True)
class Quantity:
    """A kind of score that is no fraction: a count, a length, an angle. Never below 0."""

    decimals: int  # that tables show
    lower_is_better: bool = False


@dataclass(frozen=True)
class Scores:
    """What a protocol measured: fractions, never percent, or quantities that it declares.

    A score that is undefined, as an error of what is not there, is left out.
    """

    values: Mapping[str, float]
    scenes: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # 95 %
    warnings: tuple[str, ...] = ()  # what a reader of the numbers must know; whole sentences


@dataclass(frozen=True, eq=False)
class Protocol:
    """One published evaluation: a data set and the scores that it prints. Never sees a model."""

    name: str  # "hpatches/matching"; a variant has a name of its own
    version: int  # raised whenever a number that it prints could change
    dataset: Dataset
    score: Callable[[Descriptions], Scores]
    headline: str  # the score that tables are sorted by
    distances: frozenset[str] | None = None  # names of those it can score; None: any
    # Parts that a model may be kept from one by one, by the first part of the names of their
    # scores and of their blocks -> sources.
    cells: Mapping[str, frozenset[str]] = field(default_factory=dict)
    # Of scores that are no fractions, by the last part of their names.
    quantities: Mapping[str, Quantity] = field(default_factory=dict)
    libraries: tuple[str, ...] = ()  # distributions whose version may change a score


@dataclass(frozen=True, eq=False)
class Picture:
    """Something for a person to judge: patches, and what is drawn of their vectors."""

    dataset: Dataset
    draw: Callable[[Descriptions], bytes]  # a PNG file
