"""Known facts of the published data sets, from the file `official.json` of each family."""

import json
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def official(family: str) -> dict[str, Any]:
    """The contents of `protocols/<family>/official.json`."""
    return json.loads((files(f"protocols.{family}") / "official.json").read_text("utf-8"))
