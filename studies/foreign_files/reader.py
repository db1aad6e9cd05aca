"""A reader of foreign files, with the valid set that it reads."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Reader:
    """A function that makes a valid set in a folder, and one that reads the set.

    Both are functions of a module, so that other processes can take them.
    """

    name: str
    make: Callable[[Path], object]
    read: Callable[[Path], object]
    mutates: str = "*"  # names of the files that are changed
