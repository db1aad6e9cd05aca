"""Where the files of this checkout lie."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
