"""The evaluation harness: patches in, scores out. Knows no descriptor and no protocol by name.

    import harness

    records = harness.evaluate(["rootsift", "mine.py:describe"], "hpatches", data=FOLDER)
    print(harness.leaderboard(records))

`__all__` is the public API. Each name is imported when it is first used, so that `import harness`
and the command line start without NumPy.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.api import evaluate, export_onnx, leaderboard, read_records
    from harness.auditing.running import audit
    from harness.auditing.verdict import Audit
    from harness.errors import HarnessError
    from harness.fitting import fit
    from harness.images import DescribedKeypoints, OpenCVDescriptor, describe_keypoints
    from harness.loading import load_model, load_protocol, wrap
    from harness.records.comparison import compare
    from harness.records.record import Record
    from harness.types import (
        Block,
        Dataset,
        Descriptions,
        Descriptor,
        Parts,
        Protocol,
        Quantity,
        Scores,
    )
    from harness.wrapping import Wrapper

# ONNX Runtime reports to its maker unless this is set before its import, which may be a plug-in's.
if not os.environ.get("ORT_DISABLE_TELEMETRY"):  # 0 stays 0
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"

__all__ = [
    "Audit",
    "Block",
    "Dataset",
    "DescribedKeypoints",
    "Descriptions",
    "Descriptor",
    "HarnessError",
    "OpenCVDescriptor",
    "Parts",
    "Protocol",
    "Quantity",
    "Record",
    "Scores",
    "Wrapper",
    "audit",
    "compare",
    "describe_keypoints",
    "evaluate",
    "export_onnx",
    "fit",
    "leaderboard",
    "load_model",
    "load_protocol",
    "read_records",
    "wrap",
]

_HOMES = {
    "Audit": "harness.auditing.verdict",
    "DescribedKeypoints": "harness.images",
    "HarnessError": "harness.errors",
    "OpenCVDescriptor": "harness.images",
    "Record": "harness.records.record",
    "Wrapper": "harness.wrapping",
    "audit": "harness.auditing.running",
    "compare": "harness.records.comparison",
    "describe_keypoints": "harness.images",
    "evaluate": "harness.api",
    "export_onnx": "harness.api",
    "fit": "harness.fitting",
    "leaderboard": "harness.api",
    "load_model": "harness.loading",
    "load_protocol": "harness.loading",
    "read_records": "harness.api",
    "wrap": "harness.loading",
}  # of the names that are not in `harness.types`


def __getattr__(name: str) -> object:
    if name in __all__:
        return getattr(import_module(_HOMES.get(name, "harness.types")), name)
    raise AttributeError(f"module 'harness' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *globals()]
