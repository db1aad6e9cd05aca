"""Vectors on disk, found by what they were computed from: model, libraries, provider, patches."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from harness import atomic
from harness.types import Vectors


@dataclass(frozen=True)
class VectorCache:
    """A folder of .npy files named by the hash of their origin; safe to delete at any time."""

    root: Path

    def read(self, origin: dict[str, str]) -> Vectors | None:
        """The vectors of this origin, or None where there are none or the file is damaged."""
        try:
            with self._file(origin).open("rb") as stream:
                return np.load(stream, allow_pickle=False)
        except (OSError, ValueError, EOFError):
            return None

    def write(self, origin: dict[str, str], vectors: Vectors) -> None:
        """Keep vectors; a reader sees all of them or none."""
        with atomic.writing(self._file(origin)) as stream:
            np.save(stream, vectors, allow_pickle=False)

    def _file(self, origin: dict[str, str]) -> Path:
        key = hashlib.sha256(json.dumps(origin, sort_keys=True).encode()).hexdigest()
        return self.root / key[:2] / f"{key}.npy"
