"""Options that were added to a method or network after networks had been trained without them."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Later:
    """Marks an option that was added to a method or network later.

    Recipes of older trainings lack it. `before` is the value that describes those trainings. The
    default is for new trainings, and may differ.
    """

    before: Any
