"""Published weights as rows of data, and a store of the files that match them.

A foreign checkpoint enters the store once: known by its sha256, read without running any code
that it carries, kept as safetensors, with the sha256 of what was written in a file beside it.
Nothing is downloaded here.
"""

import hashlib
import logging
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness import extras
from harness.data.copies import Copy, Refused, check, digest
from harness.errors import FileMissingError, InputError
from harness.files import atomic, home, locks

if TYPE_CHECKING:
    import torch

log = logging.getLogger(__name__)

Tensors = dict[str, "torch.Tensor"]
"""Parameters by name, as the authors' code names them."""


@dataclass(frozen=True)
class Weights:
    """One published file of weights: how to know it, where to get it, what it was trained on."""

    name: str  # of the descriptor that uses it: "tfeat.liberty"
    file: str  # as its authors named it
    sha256: str  # of that file
    size: int  # bytes
    urls: tuple[str, ...]  # mirrors, tried in turn
    licence: str
    trained_on: frozenset[str]  # data names: "phototour/liberty"
    source: str  # repository and commit, or paper

    @property
    def described(self) -> str:
        """Its file, size and licence."""
        return f"{self.file} ({self.size / 2**20:.1f} MiB, licence {self.licence})"

    @property
    def by_hand(self) -> str:
        """How to get it without `harness weights fetch`, as the last part of a sentence."""
        places = "".join(f"\n  {url}" for url in self.urls) or f" {self.source}"
        return f"get it from{places}\nand run: harness weights add {self.file}"


class NotHere(FileMissingError):
    """Published weights that are neither in the store nor in the folder HARNESS_WEIGHTS."""


def add(file: Path, rows: Iterable[Weights]) -> Weights:
    """Put a downloaded file into the store, and say which of the rows it is.

    Raises:
        FileMissingError: if there is no such file.
        InputError: if its contents are none of the rows', or hold more than tensors.
    """
    if not file.is_file():
        raise FileMissingError(f"no file {file}: give the path of a downloaded weights file")
    atomic.must_be_writable(home.cache("weights"), "weights can't be kept", home.REMEDY)
    row = _identify(file, list(rows))
    _store(file, row)
    return row


def path(row: Weights) -> Path:
    """The stored safetensors of a row; a file in the folder HARNESS_WEIGHTS is added first.

    Where nothing can be kept in the cache, it is added to a folder of this process.

    Raises:
        NotHere: if it is in neither; says where to get it and what to do with it.
        InputError: if HARNESS_WEIGHTS holds another file of this name.
    """
    if stored := _stored(row):
        return stored
    if brought := _brought(row):
        return _store(brought, _identify(brought, [row]))
    raise NotHere(
        f"{row.name} needs {row.described}, which is neither in the store"
        f" nor in the folder HARNESS_WEIGHTS ({os.environ.get('HARNESS_WEIGHTS') or 'not set'});"
        f" {row.by_hand}"
    )


def is_here(row: Weights) -> bool:
    """Whether `path` has a file to give without a download."""
    return is_stored(row) or _brought(row) is not None


def is_stored(row: Weights) -> bool:
    """Whether the store has it; a file in HARNESS_WEIGHTS does not count."""
    return _stored(row) is not None


def load(row: Weights) -> Tensors:
    """The tensors of a row, on the CPU.

    Raises:
        NotHere: as `path` does.
    """
    with extras.needed(row.name):
        import safetensors.torch

    return safetensors.torch.load(path(row).read_bytes())


def tensors(checkpoint: Path) -> Tensors:
    """The tensors of a checkpoint, at its top or under "state_dict"; runs none of its code.

    Raises:
        InputError: if it can't be read as plain data, or holds something else.
    """
    with extras.needed(f"reading {checkpoint}"):
        import safetensors.torch
        import torch

    with checkpoint.open("rb") as stream:
        head = stream.read(9)
    try:
        if head[8:] == b"{":  # safetensors: a length of 8 bytes, then JSON
            return safetensors.torch.load_file(checkpoint)
        loaded = torch.load(checkpoint, map_location="cpu", weights_only=True)
    except Exception as error:  # of many types, by the way in which the file is broken
        raise InputError(
            f"{checkpoint} can't be read as plain tensors: {_reason(error)}."
            " Code inside a checkpoint is never run; ask for a file with a state dict only"
        ) from error
    found = loaded.get("state_dict", loaded) if isinstance(loaded, Mapping) else loaded
    if not isinstance(found, Mapping) or not found:
        held = "nothing" if found == {} else f"one value of type {type(found).__name__}"
        raise InputError(f"{checkpoint} holds {held}; {_WANTED}")
    other = {key: value for key, value in found.items() if not isinstance(value, torch.Tensor)}
    if other:
        kinds = ", ".join(f"{key!r}: {type(value).__name__}" for key, value in other.items())
        raise InputError(f"{checkpoint} holds more than tensors ({kinds}); {_WANTED}")
    # Cloned: safetensors refuses tensors that share memory.
    return {str(key): value.detach().contiguous().clone() for key, value in found.items()}


_WANTED = 'wanted a dict of tensors, or one under the key "state_dict"'


def _stored(row: Weights) -> Path | None:
    """The file of a row in the store, if it is there and whole; a damaged one is dropped."""
    for stored in home.places("weights", f"{row.sha256}.safetensors"):
        if not (stored.is_file() and _note(stored).is_file()):
            continue
        if digest(stored) == _note(stored).read_text("utf-8", "replace"):
            return stored
        log.warning(
            "%s, the stored %s, is damaged, its sha256 is not the one in %s beside it: it is"
            " dropped",
            stored,
            row.name,
            _note(stored).name,
        )
        with suppress(OSError):
            stored.unlink()
    return None


def _note(stored: Path) -> Path:
    """Holds the sha256 of a stored file."""
    return stored.with_suffix(".sha256")


def _brought(row: Weights) -> Path | None:
    folder = os.environ.get("HARNESS_WEIGHTS")
    file = Path(folder, row.file) if folder else None
    return file if file and file.is_file() else None


def _identify(file: Path, rows: list[Weights]) -> Weights:
    """The row whose sha256 the file has; otherwise an error that says what the file is."""
    sha256 = digest(file)
    for row in rows:
        if row.sha256 == sha256:
            return row
    namesake = next((row for row in rows if row.file == file.name), None)
    copy = Copy(file.name, f"sha256:{namesake.sha256}", namesake.size) if namesake else None
    try:
        check(file, copy or Copy(file.name))
        reason = f"its sha256 {sha256} is that of no published weights"
    except Refused as error:
        reason = str(error)
    files = ", ".join(sorted({row.file for row in rows})) or "none"
    wanted = namesake.by_hand if namesake else f"known files: {files}"
    raise InputError(f"{file} is refused: {reason}; {wanted}")


def _store(file: Path, row: Weights) -> Path:
    with extras.needed(row.name):
        import safetensors.torch

    metadata = {"source": row.name, "file": row.file, "sha256": row.sha256, "licence": row.licence}
    stored = home.place("weights", f"{row.sha256}.safetensors")
    stored.parent.mkdir(parents=True, exist_ok=True)
    # Keys of metadata come in any order: of two processes, one's note would not be the other's.
    with locks.alone(stored.with_suffix(".lock")):
        if found := _stored(row):
            return found
        contents = safetensors.torch.save(tensors(file), metadata)
        # The note goes first: a kill in between leaves a file that is no entry, or none.
        _note(stored).unlink(missing_ok=True)
        with atomic.writing(stored) as stream:
            stream.write(contents)
        atomic.write_text(_note(stored), hashlib.sha256(contents).hexdigest())
    return stored


def _reason(error: Exception) -> str:
    """The one line that matters; torch adds advice to run the code, which nobody should follow."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if "GLOBAL" in line or "Unsupported" in line]
    reason = (told or lines or ["no reason given"])[0].partition(" Please")[0]
    return f"{type(error).__name__}: {reason.rstrip('.')}"
