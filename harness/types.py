"""The nouns of the project, as frozen data: Block, Dataset, Descriptor, Descriptions, Protocol."""

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import UInt8

from harness.distances import DISTANCES, Distance, Distances, ManyRows
from harness.distances import Rows as Rows
from harness.distances import Vectors as Vectors
from harness.errors import InputError, InputTypeError

Patches = UInt8[np.ndarray, "n height width"]
"""Grey patches exactly as the data set stores them: 8 bits, not resized, not normalised."""


def is_text(value: object) -> bool:
    """Whether something is a text that is not blank, and that a file can hold."""
    if not isinstance(value, str) or not value.strip():
        return False
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, as JSON may have it
        return False
    return True


def must_be_data_names(names: object, what: str) -> None:
    """Refuse training data that are no set of names: a text would be taken letter by letter.

    Raises:
        InputTypeError: if they are not; `what` begins the message.
    """
    if not isinstance(names, frozenset) or not all(map(is_text, names)):
        raise InputTypeError(
            f"{what} is {names!r:.80}; a frozenset of data names is wanted, as"
            ' frozenset({"other/my-images"}), empty where nothing was trained, or None where'
            " nobody knows"
        )


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
    # Sentences: which facts of the published data of this name could not be checked.
    unchecked: tuple[str, ...] = ()
    photographs: tuple[str, ...] = ()  # sha256 of the file of image i, or ""; none: nobody knows

    def __len__(self) -> int:
        """Patches in all."""
        return len(self.point)

    @cached_property
    def sha256(self) -> str:
        """Over the contents: every block's name, size and hash, in order, and the truth's."""
        lines = [f"{b.name} {b.size} {b.sha256}\n" for b in self.blocks]
        return hashlib.sha256("".join([*lines, self.truth]).encode()).hexdigest()


SHA256 = "[0-9a-f]{64}"
DIGITS = 15  # that every float has


@dataclass(frozen=True, eq=False)
class Descriptor:
    """One entry of the zoo: how patches become vectors, and how vectors are compared.

    Raises:
        InputTypeError, InputError: if a field is not of its type, or can't be what it should be.
    """

    name: str
    describe: Callable[[Patches], Vectors]  # any n, 0 included; any square patch
    distance: Distance
    dim: int  # numbers in a vector; bits where the distance takes packed bits
    # Names of data, as `data_names` has them: "phototour/liberty", "hpatches/v_wall", "other/mine".
    # None: nobody says on what.
    trained_on: frozenset[str] | None = frozenset()
    licence: str = "unknown"
    weights: str | None = None  # sha256 of the weights file
    revision: int = 1  # raised by hand whenever vectors change and the weights do not
    # Key of cached vectors: sha256 of what the code that makes them means, by `harness.code`;
    # `plugins` fills it in where it is empty. It is no part of the model's identity.
    code: str = ""
    libraries: tuple[str, ...] = ("numpy",)  # distributions whose version may change a vector
    provider: str = "cpu"  # what really computes: "cpu", "cuda", "CPUExecutionProvider"
    # Makes a torch module from uint8 patches [n, height, width] to vectors, for `harness export`.
    network: Callable[[], Any] | None = None

    def __post_init__(self) -> None:
        """Check what plug-ins declare: records and tables rely on it."""
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
        if self.weights is not None and not (
            isinstance(self.weights, str) and re.fullmatch(SHA256, self.weights)
        ):
            raise InputError(
                f"{wrong} weights is {self.weights!r:.80}; a sha256 is wanted: 64 hexadecimal"
                " digits, or None"
            )
        if not isinstance(self.code, str):
            raise InputTypeError(f"{wrong} code is {self.code!r:.60}; a text is wanted")
        if not isinstance(self.libraries, tuple) or not all(map(is_text, self.libraries)):
            raise InputTypeError(
                f"{wrong} libraries is {self.libraries!r:.60}; a tuple of the names of"
                ' distributions is wanted, as ("numpy",)'
            )

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

    def __post_init__(self) -> None:
        """Refuse what no table can show."""
        if not 0 <= self.decimals <= DIGITS:
            raise InputError(f"decimals is {self.decimals}; 0 to {DIGITS} are wanted")


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

    name: str  # "hpatches/matching": the part before "/" is its family
    version: int  # raised whenever a number that it prints could change
    dataset: Dataset
    score: Callable[[Descriptions], Scores]
    headline: str  # the score that tables are sorted by
    distances: frozenset[str] | None = None  # names of those it can score; None: any
    # Parts that a model may be kept from one by one, by the first part of the names of their
    # scores and of their blocks -> sources.
    cells: Mapping[str, frozenset[str]] = field(default_factory=dict)
    # Kinds of the scores that are not fractions, by the last part of their names.
    quantities: Mapping[str, Quantity] = field(default_factory=dict)
    libraries: tuple[str, ...] = ()  # distributions whose version may change a score
    # Those of the maker's options that differ from the default and change scores, as a user would
    # give them: {"ties": "official"}. Scores of different options are never compared.
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Picture:
    """Something for a person to judge: patches, and what is drawn of their vectors."""

    dataset: Dataset
    draw: Callable[[Descriptions], bytes]  # a PNG file
