"""Vectors on disk, found by what they were computed from: model, libraries, provider, patches."""

import hashlib
import json
import logging
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from harness import atomic
from harness.types import Vectors

log = logging.getLogger(__name__)


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
        """Keep vectors, if that is possible; a reader sees all of them or none."""
        try:
            with atomic.writing(self._file(origin)) as stream:
                np.save(stream, vectors, allow_pickle=False)
        except OSError as error:
            _warn_once(self.root, error.strerror or str(error))

    def _file(self, origin: dict[str, str]) -> Path:
        key = hashlib.sha256(json.dumps(origin, sort_keys=True).encode()).hexdigest()
        return self.root / key[:2] / f"{key}.npy"


@cache
def _warn_once(root: Path, reason: str) -> None:
    log.warning("vectors can't be kept in %s (%s): a later run computes them again", root, reason)
