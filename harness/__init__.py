"""The evaluation harness: patches in, scores out. Knows no descriptor and no protocol by name."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.types import Block, Dataset, Descriptions, Descriptor, Protocol, Quantity, Scores

__all__ = ["Block", "Dataset", "Descriptions", "Descriptor", "Protocol", "Quantity", "Scores"]


def __getattr__(name: str) -> object:  # so that the command line starts without NumPy
    if name in __all__:
        from harness import types

        return getattr(types, name)
    raise AttributeError(f"module 'harness' has no attribute {name!r}")
