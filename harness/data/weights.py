"""Describes published weights, and keeps the files that match them in a store.

A published file is added to the store once. It is identified by its sha256 or by the hash that git
gives it, read without running code inside it, and stored as safetensors. The metadata of the stored
file contain the sha256 of the published file. The sha256 of the stored file is in a second file
beside it. This module downloads nothing.
"""

import hashlib
import logging
import os
import pkgutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness import extras
from harness.code import code_sha256
from harness.data.copies import Copy, CopyRefused, check, digest
from harness.errors import FileMissingError, InputError
from harness.files import atomic, home, locks

if TYPE_CHECKING:
    import torch

log = logging.getLogger(__name__)

Tensors = dict[str, "torch.Tensor"]
"""Parameters by the names of the authors' code."""

TENSORS = "harness.data.weights:tensors"


@dataclass(frozen=True)
class Weights:
    """One published file of weights: its hash, its mirrors and its training data.

    Raises:
        InputError: if neither `sha256` nor `git_blob` is given; the file could not be identified.
    """

    name: str  # of its descriptor: "tfeat.liberty"
    file: str  # file name, given by its authors; with a folder, if other rows have the same name
    urls: tuple[str, ...]  # mirrors, tried in turn
    licence: str
    trained_on: frozenset[str] | None  # data names: "phototour/liberty"; None if unknown
    published_in: str  # repository and commit, or paper
    sha256: str = ""  # of the file; "" if nobody published it
    git_blob: str = ""  # the hash that git gives the file: sha1 of "blob SIZE\0" and its contents
    size: int | None = None  # bytes; None if nobody published it
    # "module:function" that reads the published file. The function takes a path and returns named
    # tensors. It runs no code of the file, and raises InputError if the format is wrong.
    read: str = TENSORS

    def __post_init__(self) -> None:
        """Refuse a row that identifies no file."""
        if not self.hashes:
            raise InputError(
                f"the row of weights {self.name!r} has no hash: give its sha256 or its git_blob"
            )

    @property
    def hashes(self) -> dict[str, str]:
        """The published hashes of the file by their kind, "sha256" or "git"; at least one."""
        published = {"sha256": self.sha256, "git": self.git_blob}
        return {kind: value for kind, value in published.items() if value}

    @property
    def copies(self) -> list[Copy]:
        """The file at each of its mirrors, with the first of its hashes."""
        (kind, value), *_ = self.hashes.items()
        return [Copy(url, f"{kind}:{value}", self.size) for url in self.urls]

    @property
    def key(self) -> str:
        """File name in the store, without suffix: a hash of the published file.

        The code of a reader other than `tensors` is part of the name: if that code changes, the
        stored tensors may be wrong, so the published file must be read again.
        """
        value = self.sha256 or self.git_blob
        if self.read == TENSORS:
            return value
        return f"{value}-{code_sha256(self.read.partition(':')[0])[:8]}"

    @property
    def described(self) -> str:
        """Its file name, size and licence, for messages."""
        size = "" if self.size is None else f"{self.size / 2**20:.1f} MiB, "
        return f"{self.file} ({size}licence {self.licence})"

    @property
    def by_hand(self) -> str:
        """How to get it without `harness weights fetch`, as the end of a message."""
        places = "".join(f"\n  {url}" for url in self.urls) or f" {self.published_in}"
        return f"get it from{places}\nand run: harness weights add {self.file}"


class NotHere(FileMissingError):
    """Published weights are neither in the store nor in the folder HARNESS_WEIGHTS."""


def add(file: Path, rows: Iterable[Weights]) -> Weights:
    """Put a downloaded file into the store; returns its row.

    Raises:
        FileMissingError: if there is no such file.
        InputError: if its hashes are not those of a row, or it contains more than tensors.
    """
    if not file.is_file():
        raise FileMissingError(f"no file {file}: give the path of a downloaded weights file")
    atomic.must_be_writable(home.cache("weights"), "weights can't be kept", home.REMEDY)
    row = _identify(file, list(rows))
    _store(file, row)
    return row


def path(row: Weights) -> Path:
    """The stored safetensors file of a row; a file in HARNESS_WEIGHTS is added to the store first.

    If the cache is not writable, the store is a temporary folder of this process.

    Raises:
        NotHere: if the weights are in neither; says where to get them and how to add them.
        InputError: if HARNESS_WEIGHTS contains another file of this name.
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
    """Whether `path` can return a file without a download."""
    return is_stored(row) or _brought(row) is not None


def is_stored(row: Weights) -> bool:
    """Whether the store has the weights; a file in HARNESS_WEIGHTS does not count."""
    return _stored(row) is not None


def load(row: Weights) -> Tensors:
    """The tensors of a row, on the CPU.

    Raises:
        NotHere: as `path` does.
    """
    with extras.needed(row.name):
        import safetensors.torch

    return safetensors.torch.load(path(row).read_bytes())


def sha256(row: Weights) -> str:
    """The sha256 of the published file; if the row does not say it, the store does.

    Raises:
        NotHere: as `path` does.
    """
    if row.sha256:
        return row.sha256
    with extras.needed(row.name):
        import safetensors

    with safetensors.safe_open(path(row), "numpy") as stored:
        return str(stored.metadata()["sha256"])


def tensors(checkpoint: Path) -> Tensors:
    """The tensors of a checkpoint, at its top or under "state_dict"; runs no code inside it.

    Raises:
        InputError: if it can't be read as plain data, or contains other objects.
    """
    with extras.needed(f"reading {checkpoint}"):
        import safetensors.torch
        import torch

    with checkpoint.open("rb") as stream:
        head = stream.read(9)
    try:
        if head[8:] == b"{":  # safetensors begins with a length of 8 bytes, then JSON
            return safetensors.torch.load_file(checkpoint)
        loaded = torch.load(checkpoint, map_location="cpu", weights_only=True)
    except Exception as error:  # its type depends on the damage
        raise InputError(
            f"{checkpoint} can't be read as plain tensors: {_reason(error)}."
            " Code inside a checkpoint is never run; ask for a file with a state dict only"
        ) from error
    state = loaded.get("state_dict", loaded) if isinstance(loaded, Mapping) else loaded
    if not isinstance(state, Mapping) or not state:
        held = "nothing" if state == {} else f"one value of type {type(state).__name__}"
        raise InputError(f"{checkpoint} holds {held}; {_WANTED}")
    other = {key: value for key, value in state.items() if not isinstance(value, torch.Tensor)}
    if other:
        kinds = ", ".join(f"{key!r}: {type(value).__name__}" for key, value in other.items())
        raise InputError(f"{checkpoint} holds more than tensors ({kinds}); {_WANTED}")
    return {str(key): value.detach() for key, value in state.items()}


_WANTED = 'wanted a dict of tensors, or one under the key "state_dict"'


def _stored(row: Weights) -> Path | None:
    """The stored file of a row, if it exists and is undamaged; a damaged file is deleted."""
    for stored in home.places("weights", f"{row.key}.safetensors"):
        if not (stored.is_file() and _note(stored).is_file()):
            continue
        if digest(stored) == _note(stored).read_text("utf-8", "replace"):
            return stored
        log.warning(
            "%s, the stored %s, is damaged: its sha256 is not the one in %s beside it; it is"
            " deleted",
            stored,
            row.name,
            _note(stored).name,
        )
        with suppress(OSError):
            stored.unlink()
    return None


def _note(stored: Path) -> Path:
    """The file with the sha256 of a stored file."""
    return stored.with_suffix(".sha256")


def _brought(row: Weights) -> Path | None:
    folder = os.environ.get("HARNESS_WEIGHTS")
    file = Path(folder, row.file) if folder else None
    return file if file and file.is_file() else None


def _identify(file: Path, rows: list[Weights]) -> Weights:
    """The row with the file's hashes; else an error that says what is wrong with the file."""
    found = {kind: digest(file, kind) for kind in ("sha256", "git")}
    for row in rows:
        if row.hashes.items() <= found.items():
            return row
    namesake = next((row for row in rows if file.absolute().match(row.file)), None)
    published = namesake.hashes.items() if namesake else ()
    size = namesake.size if namesake else None
    try:
        check(file, Copy(file.name, size=size))
        for kind, value in published:
            check(file, Copy(file.name, f"{kind}:{value}"))
        reason = f"its sha256 {found['sha256']} is that of no published weights"
    except CopyRefused as error:
        reason = str(error)
    files = ", ".join(sorted({row.file for row in rows})) or "none"
    wanted = namesake.by_hand if namesake else f"known files: {files}"
    raise InputError(f"{file} is refused: {reason}; {wanted}")


def _store(file: Path, row: Weights) -> Path:
    with extras.needed(row.name):
        import safetensors.torch

        read = pkgutil.resolve_name(row.read)

    metadata = {
        "source": row.name,
        "file": row.file,
        "sha256": digest(file),
        "licence": row.licence,
    }
    stored = home.place("weights", f"{row.key}.safetensors")
    stored.parent.mkdir(parents=True, exist_ok=True)
    # The order of metadata keys varies, so two processes would write files with different hashes.
    with locks.alone(stored.with_suffix(".lock")):
        if existing := _stored(row):
            return existing
        # Cloned: safetensors refuses tensors that share memory.
        cloned = {name: value.contiguous().clone() for name, value in read(file).items()}
        contents = safetensors.torch.save(cloned, metadata)
        # Delete the note first: after a kill the store has no entry, or a file without note.
        _note(stored).unlink(missing_ok=True)
        with atomic.writing(stored) as stream:
            stream.write(contents)
        atomic.write_text(_note(stored), hashlib.sha256(contents).hexdigest())
    return stored


def _reason(error: Exception) -> str:
    """The line with the reason, without torch's advice to run the code, which is unsafe."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    relevant = [line for line in lines if "GLOBAL" in line or "Unsupported" in line]
    reason = (relevant or lines or ["no reason given"])[0].partition(" Please")[0]
    return f"{type(error).__name__}: {reason.rstrip('.')}"
