"""Where the harness keeps what it can make or fetch again."""

import os
from pathlib import Path

import platformdirs


def cache(*parts: str) -> Path:
    """A place below the user's cache folder; HARNESS_CACHE moves it."""
    root = os.environ.get("HARNESS_CACHE")
    home = Path(root) if root else Path(platformdirs.user_cache_dir("descriptor-harness"))
    return home.joinpath(*parts)
