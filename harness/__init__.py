"""The evaluation harness: patches in, scores out. Knows no descriptor and no protocol by name."""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.types import Block, Dataset, Descriptions, Descriptor, Protocol, Quantity, Scores

# ONNX Runtime reports to its maker unless this is set before its import, which may be a plug-in's.
if not os.environ.get("ORT_DISABLE_TELEMETRY"):  # 0 stays 0
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"

__all__ = ["Block", "Dataset", "Descriptions", "Descriptor", "Protocol", "Quantity", "Scores"]


def __getattr__(name: str) -> object:  # so that the command line starts without NumPy
    if name in __all__:
        from harness import types

        return getattr(types, name)
    raise AttributeError(f"module 'harness' has no attribute {name!r}")
