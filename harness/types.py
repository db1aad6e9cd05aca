"""The nouns of the project as frozen dataclasses: Block, Dataset, Descriptor, Protocol, Scores."""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import UInt8

from harness.data.photographs import Photograph
from harness.distances import DISTANCES, Distance, Distances, ManyRows
from harness.distances import Rows as Rows
from harness.distances import Vectors as Vectors
from harness.errors import InputError, InputTypeError

Patches = UInt8[np.ndarray, "n height width"]
"""Grey patches exactly as the data set stores them: uint8, not resized, not normalised."""


def is_text(value: object) -> bool:
    """Whether a value is a string that is not blank and can be encoded as UTF-8."""
    if not isinstance(value, str) or not value.strip():
        return False
    try:
        value.encode()
    except UnicodeEncodeError:  # a lone surrogate, which JSON can contain
        return False
    return True


def must_be_data_names(names: object, subject: str) -> None:
    """Refuse training data that are not a frozenset of names; a string would be read by letters.

    Raises:
        InputTypeError: if they are not; the message begins with `subject`.
    """
    if not isinstance(names, frozenset) or not all(map(is_text, names)):
        raise InputTypeError(
            f"{subject} is {names!r:.80}; a frozenset of data names is wanted, as"
            ' frozenset({"other/my-images"}), an empty one if the model is not trained, or None'
            " if its training data are unknown"
        )


@dataclass(frozen=True)
class Block:
    """Consecutive patches of one file or scene, which are read, described and cached together."""

    name: str  # unique in its data set, e.g. "v_wall/e3"
    size: int  # patches
    sha256: str  # of the patches that `read` returns, or of their file
    read: Callable[[], Patches]  # blocks are read in several threads at once


@dataclass(frozen=True, eq=False)
class Dataset:
    """Patches in blocks, with the point and the image of each. Row i of an array is patch i."""

    name: str
    split: str
    blocks: tuple[Block, ...]
    point: Rows  # two patches match iff their points are equal; if unknown, all points differ
    image: Rows  # patches of the same image have the same number
    truth: str = ""  # sha256 of the files that define the task: pairs, queries, splits
    sources: frozenset[str] = frozenset()  # data names of the patches, as in `trained_on`
    complete: bool = True  # False if the user allowed missing parts
    # Sentences: facts of the published data set that could not be checked on these files.
    unchecked: tuple[str, ...] = ()
    photographs: tuple[str, ...] = ()  # sha256 of the file of image i, or ""; () if unknown
    # sha256 of each image file that patches were cut from; None if one of them is unknown.
    cut_from: frozenset[str] | None = None

    def __len__(self) -> int:
        """Number of patches."""
        return len(self.point)

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the contents: name, size and hash of each block, in order, and `truth`."""
        lines = [f"{b.name} {b.size} {b.sha256}\n" for b in self.blocks]
        return hashlib.sha256("".join([*lines, self.truth]).encode()).hexdigest()


SHA256 = "[0-9a-f]{64}"
STORED = ("float16", "int8", "uint8")
DIGITS = 15  # significant decimal digits that a float64 always keeps


@dataclass(frozen=True)
class Conventions:
    """How a descriptor reads a patch, and where it was published: sentences of its card."""

    keypoint: str  # the keypoint that stands for the patch: place, size and angle
    side: int | None  # pixels of the patch that it computes on; None: the patch as it is
    normalisation: str  # of grey values, and of the vector
    source: str  # paper, and the repository and commit of code or weights


@dataclass(frozen=True, eq=False)
class Descriptor:
    """One entry of the zoo: a function from patches to vectors, and the distance between vectors.

    Raises:
        InputTypeError, InputError: if a field has a wrong type or an impossible value.
    """

    name: str
    describe: Callable[[Patches], Vectors]  # any number of square patches, also 0
    distance: Distance
    dim: int  # numbers in a vector; number of bits if the distance takes packed bits
    # Data names (see `data_names`): "phototour/liberty", "hpatches/v_wall", "other/mine". Empty if
    # the model is not trained, None if its training data are unknown.
    trained_on: frozenset[str] | None = frozenset()
    licence: str = "unknown"
    weights: str | None = None  # sha256 of the weights file
    revision: int = 1  # raised by hand when vectors change although the weights do not
    # Part of the key of cached vectors: hash of the code that computes them, by `harness.code`.
    # `plugins` sets it if it is empty. It is not part of the model's identity.
    code: str = ""
    libraries: tuple[str, ...] = ("numpy",)  # distributions whose version can change vectors
    provider: str = "cpu"  # the backend that really computes: "cpu", "cuda", "CPUExecutionProvider"
    # Makes a torch module from uint8 patches [n, height, width] to vectors, for `harness export`.
    network: Callable[[], Any] | None = None
    conventions: Conventions | None = None  # not part of the model's identity
    # The smaller type, one of STORED, in which each number of its vectors can be kept exactly.
    stored: str | None = None
    # Of a training, to compare seeds: trainings of equal recipes differ only in the seed. Not part
    # of the model's identity.
    recipe: str | None = None
    seed: int | None = None
    # All photographs of its training, by which the terms of models that learn from its vectors
    # are known; () if one photograph is not known. Not part of the model's identity.
    photographs: tuple[Photograph, ...] = ()

    def __post_init__(self) -> None:
        """Check the fields, since plug-ins set them and records and tables rely on them."""
        wrong = f"descriptor {self.name!r:.60}:"
        for field_, wanted in (("name", "a name"), ("licence", "a text"), ("provider", "a text")):
            if not is_text(getattr(self, field_)):
                raise InputError(f"{wrong} {field_} is {getattr(self, field_)!r:.60}; not {wanted}")
        if self.distance not in DISTANCES.values():
            known = ", ".join(DISTANCES)
            raise InputError(f"{wrong} distance is {self.distance!r:.60}, none of {known}")
        if not isinstance(self.dim, int) or isinstance(self.dim, bool) or self.dim < 1:
            raise InputError(f"{wrong} dim is {self.dim!r:.60}; an integer above 0 is wanted")
        if self.trained_on is not None:
            must_be_data_names(self.trained_on, f"{wrong} trained_on")
        if not isinstance(self.photographs, tuple) or not all(
            isinstance(one, Photograph) for one in self.photographs
        ):
            raise InputTypeError(
                f"{wrong} photographs is {self.photographs!r:.60}; a tuple of"
                " harness.data.photographs.Photograph is wanted, an empty one if unknown"
            )
        if self.weights is not None and not (
            isinstance(self.weights, str) and re.fullmatch(SHA256, self.weights)
        ):
            raise InputError(
                f"{wrong} weights is {self.weights!r:.80}; a sha256 is wanted: 64 hexadecimal"
                " digits, or None"
            )
        if self.stored not in (None, *STORED):
            known = ", ".join(STORED)
            raise InputError(f"{wrong} stored is {self.stored!r:.60}, not None or one of {known}")
        if self.recipe is not None and not is_text(self.recipe):
            raise InputError(f"{wrong} recipe is {self.recipe!r:.60}; a text is wanted, or None")
        if self.seed is not None and (type(self.seed) is not int or self.seed < 0):
            raise InputError(f"{wrong} seed is {self.seed!r:.60}; an integer from 0 on, or None")
        if not isinstance(self.code, str):
            raise InputTypeError(f"{wrong} code is {self.code!r:.60}; a text is wanted")
        if not isinstance(self.libraries, tuple) or not all(map(is_text, self.libraries)):
            raise InputTypeError(
                f"{wrong} libraries is {self.libraries!r:.60}; a tuple of the names of"
                ' distributions is wanted, as ("numpy",)'
            )

    @property
    def learned_from(self) -> tuple[Photograph, ...] | None:
        """All photographs that it was trained on: () if it is not trained, None if not known."""
        return self.photographs or (() if self.trained_on == frozenset() else None)

    @property
    def width(self) -> int:
        """Number of columns of its array of vectors; 8 bits are packed into one column."""
        return self.distance.columns(self.dim)

    @property
    def bytes(self) -> int:
        """Size of a vector where it is kept."""
        return size(self.distance, self.dim, self.stored)


def must_be_stored_exactly(vectors: Vectors, stored: str | None, subject: str) -> None:
    """Refuse vectors with a number that the smaller type in which they are kept does not hold.

    Raises:
        InputError: if there is such a number; the message begins with `subject`.
    """
    if stored is None:
        return
    with np.errstate(over="ignore", invalid="ignore"):
        held = vectors.astype(stored).astype(vectors.dtype)
    if not np.array_equal(held, vectors):
        number = float(vectors[held != vectors][0])
        raise InputError(f"{subject} has the number {number:g}, which {stored} does not hold")


def size(distance: Distance, dim: int, stored: str | None) -> int:
    """Bytes of a vector where it is kept: of packed bits, or of numbers in their smaller type."""
    return distance.columns(dim) * np.dtype(stored or distance.dtype).itemsize


@dataclass(frozen=True, eq=False)
class Descriptions:
    """A data set with its vectors: row i of `vectors` describes patch i."""

    dataset: Dataset
    vectors: Vectors
    distance: Distance

    def paired(self, a: Rows, b: ManyRows) -> Distances:
        """Distance between vectors a[i] and b[..., i], for each i."""
        return self.distance.paired(self.vectors, a, b)


@dataclass(frozen=True)
class Quantity:
    """A kind of score that is not a fraction, such as a count or a length. Never negative."""

    decimals: int  # shown in tables
    lower_is_better: bool = False

    def __post_init__(self) -> None:
        """Refuse a number of decimals that no table can show."""
        if not 0 <= self.decimals <= DIGITS:
            raise InputError(f"decimals is {self.decimals}; 0 to {DIGITS} are wanted")


@dataclass(frozen=True)
class Scores:
    """Scores that a protocol measured: fractions, never percent, or quantities that it declares.

    An undefined score is left out, such as a reprojection error where nothing was reconstructed.
    """

    values: Mapping[str, float]
    scenes: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # 95 %
    warnings: tuple[str, ...] = ()  # full sentences for readers of the scores


@dataclass(frozen=True, eq=False)
class Ahead:
    """Work on a part that can be done ahead of its scoring, in units, in any order and anywhere.

    The result of a unit is kept in the cache, by its contents; `Parts.score` goes on from it. So
    units of hours of work fan out over machines, and an interrupted scoring continues.
    """

    units: Callable[[str], int]  # number of units of a part
    # Do a unit of a part, by its number, unless its result is kept. The function gives the vectors
    # of a block of the data set, by its number; it is the same object for all units of a model.
    do: Callable[[str, int, Callable[[int], Vectors], Distance], None]


@dataclass(frozen=True, eq=False)
class Parts:
    """Parts of a protocol that can be scored alone, such as scenes: for audits and for clusters.

    Each score of the protocol is either a part's own (in the result of `score`) or follows from the
    scores of all parts (in the result of `sum_up`).
    """

    names: tuple[str, ...]
    # Rows of the data set whose vectors a part needs; other vectors may be zeros.
    rows: Callable[[str], Rows]
    # The breakdowns of some parts, and their own scores, intervals and warnings.
    score: Callable[[Descriptions, Sequence[str]], Scores]
    # From the numbers of all parts: the scores, intervals and warnings that follow from them.
    sum_up: Callable[[Scores], Scores]
    sums_intervals: bool = True  # False: intervals that are not a part's own can't be summed up
    ahead: Ahead | None = None  # None: nothing takes so long


@dataclass(frozen=True, eq=False)
class Protocol:
    """One published evaluation: a data set and the scores that it prints. Never sees a model."""

    name: str  # "hpatches/matching": the part before "/" is its family
    version: int  # raised whenever a number that it prints could change
    dataset: Dataset
    score: Callable[[Descriptions], Scores]
    headline: str  # the score that tables are sorted by
    distances: frozenset[str] | None = None  # names of those it can score; None: any
    # Parts that a model may be kept from one by one, by the first part of the names of their
    # scores and of their blocks -> sources.
    cells: Mapping[str, frozenset[str]] = field(default_factory=dict)
    # Fractions whose best value is not known, by the last part of their names. For example, a
    # keypoint that the other image lacks has no right match, so no descriptor scores 1.
    best_unknown: frozenset[str] = frozenset()
    # Numbers that a random search such as RANSAC decides, by the last part of their names, and the
    # largest difference between two machines: the last digit of a vector may move them by so much.
    unsteady: Mapping[str, float] = field(default_factory=dict)
    # Facts of the computation for readers of a record, such as the settings of a library's solver:
    # {"solver": "..."}. The version covers them, so records are not compared by them.
    settings: Mapping[str, str] = field(default_factory=dict)
    # Kinds of the scores that are not fractions, by the last part of their names.
    quantities: Mapping[str, Quantity] = field(default_factory=dict)
    libraries: tuple[str, ...] = ()  # distributions whose version may change a score
    # Those of the maker's options that differ from the default and change scores, as a user would
    # give them: {"ties": "official"}. Scores of different options are never compared.
    options: Mapping[str, str] = field(default_factory=dict)
    parts: Parts | None = None  # None: no part can be scored without the others


@dataclass(frozen=True, eq=False)
class Picture:
    """An image for a person to judge: a data set, and a function that draws its vectors."""

    dataset: Dataset
    # Returns a PNG file; takes the vectors of each model by the model's name, in the given order.
    draw: Callable[[Mapping[str, Descriptions]], bytes]
    models: int = 1  # most models that it can draw
