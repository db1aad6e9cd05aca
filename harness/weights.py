"""Published weights as rows of data, and a store of the files that match them.

A foreign checkpoint enters the store once: known by its sha256, read without running any code
that it carries, kept as safetensors. Nothing is downloaded unless `fetch` is called.
"""

import hashlib
import http.client
import os
import re
import sys
import tempfile
import urllib.error
import urllib.request
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness import atomic, home, registry

if TYPE_CHECKING:
    import torch

HEAD = 512  # bytes that tell a web page or a Git LFS pointer from weights
PIECE = 1 << 18  # bytes read from a mirror at a time
PATIENCE = 30  # seconds without a byte before a mirror is given up

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


def known() -> dict[str, Weights]:
    """Every row that an installed package lists, by name."""
    rows: dict[str, Weights] = {}
    for table in registry.names("weights"):
        try:
            listed = registry.load("weights", table)
        except ImportError as error:  # one broken package must not hide the others' weights
            warnings.warn(str(error), stacklevel=2)
            continue
        for row in listed.values():
            if rows.setdefault(row.name, row) != row:
                raise LookupError(
                    f"weights {row.name!r} are listed twice, with different rows;"
                    f" the second is of {registry.source('weights', table)}: uninstall one package"
                )
    return rows


def add(file: Path, rows: Iterable[Weights]) -> Weights:
    """Put a downloaded file into the store, and say which of the rows it is.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if its contents are none of the rows', or hold more than tensors.
    """
    if not file.is_file():
        raise FileNotFoundError(f"no file {file}: give the path of a downloaded weights file")
    row = _identify(file, list(rows), called=str(file))
    _store(file, row)
    return row


def path(row: Weights) -> Path:
    """The stored safetensors of a row; a file in the folder HARNESS_WEIGHTS is added first.

    Raises:
        FileNotFoundError: if it is in neither; says where to get it and what to do with it.
        ValueError: if HARNESS_WEIGHTS holds another file of this name.
    """
    stored = _place(row)
    if stored.exists():
        return stored
    if brought := _brought(row):
        add(brought, [row])
        return stored
    raise FileNotFoundError(
        f"{row.name} needs {_described(row)}, which is neither in the store"
        f" nor in the folder HARNESS_WEIGHTS ({os.environ.get('HARNESS_WEIGHTS') or 'not set'});"
        f" {_by_hand(row)}"
    )


def is_here(row: Weights) -> bool:
    """Whether `path` has a file to give without a download."""
    return _place(row).exists() or _brought(row) is not None


def load(row: Weights) -> Tensors:
    """The tensors of a row, on the CPU.

    Raises:
        FileNotFoundError: as `path` does.
        ValueError: if the stored file is damaged.
    """
    import safetensors.torch

    stored = path(row)
    try:
        return safetensors.torch.load_file(stored)
    except safetensors.SafetensorError as error:
        raise ValueError(
            f"{stored}, the stored {row.name}, is damaged ({error});"
            f" delete it and run: harness weights add {row.file}"
        ) from error


def fetch(row: Weights) -> Path:
    """Download a row into the store from the first mirror that gives the right bytes.

    Raises:
        OSError: if no mirror does; says what each of them gave instead.
    """
    stored = _place(row)
    if stored.exists():
        return stored
    stored.parent.mkdir(parents=True, exist_ok=True)
    troubles = []
    with tempfile.TemporaryDirectory(dir=stored.parent) as folder:
        for url in row.urls:
            file = Path(folder, row.file)
            try:
                _download(url, file, row)
                _store(file, _identify(file, [row], called="what it gave"))
                return stored
            except (OSError, http.client.HTTPException, ValueError) as error:
                troubles.append(f"\n  {url}: {error}")
                if isinstance(error, urllib.error.HTTPError):
                    error.close()
    told = "".join(troubles) or " (no mirror is known)"
    raise OSError(f"{row.name}: no mirror gave {_described(row)}:{told}\n{_by_hand(row)}")


def tensors(checkpoint: Path) -> Tensors:
    """The tensors of a checkpoint, at its top or under "state_dict"; runs none of its code.

    Raises:
        ValueError: if it can't be read as plain data, or holds something else.
    """
    import safetensors.torch
    import torch

    head = _head(checkpoint)
    try:
        if head[8:9] == b"{":  # safetensors: a length of 8 bytes, then JSON
            return safetensors.torch.load_file(checkpoint)
        loaded = torch.load(checkpoint, map_location="cpu", weights_only=True)
    except Exception as error:  # of many types, by the way in which the file is broken
        raise ValueError(
            f"{checkpoint} can't be read as plain tensors: {_reason(error)}."
            " Code inside a checkpoint is never run; ask for a file with a state dict only"
        ) from error
    found = loaded.get("state_dict", loaded) if isinstance(loaded, Mapping) else loaded
    if not isinstance(found, Mapping) or not found:
        held = "nothing" if found == {} else f"one value of type {type(found).__name__}"
        raise ValueError(f"{checkpoint} holds {held}; {_WANTED}")
    other = {key: value for key, value in found.items() if not isinstance(value, torch.Tensor)}
    if other:
        kinds = ", ".join(f"{key!r}: {type(value).__name__}" for key, value in other.items())
        raise ValueError(f"{checkpoint} holds more than tensors ({kinds}); {_WANTED}")
    # Cloned: safetensors refuses tensors that share memory.
    return {str(key): value.detach().contiguous().clone() for key, value in found.items()}


_WANTED = 'wanted a dict of tensors, or one under the key "state_dict"'


def _place(row: Weights) -> Path:
    return home.cache("weights", f"{row.sha256}.safetensors")


def _brought(row: Weights) -> Path | None:
    folder = os.environ.get("HARNESS_WEIGHTS")
    file = Path(folder, row.file) if folder else None
    return file if file and file.is_file() else None


def _identify(file: Path, rows: list[Weights], *, called: str) -> Weights:
    """The row whose sha256 the file has; otherwise an error that says what the file is."""
    with file.open("rb") as stream:
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    for row in rows:
        if row.sha256 == sha256:
            return row
    size = file.stat().st_size
    namesake = next((row for row in rows if row.file == file.name), None)
    if namesake:
        wanted = f"wanted {_described(namesake)}, sha256 {namesake.sha256}"
    else:
        wanted = f"known files: {', '.join(sorted({row.file for row in rows})) or 'none'}"
    head = _head(file)
    if not size:
        came, advice = "is empty", "download it again"
    elif head.startswith(b"version https://git-lfs.github.com/spec/"):
        came = "is a Git LFS pointer, not the file that it stands for"
        advice = "run `git lfs pull` where it was cloned, or download the file itself"
    elif re.match(rb"(\xef\xbb\xbf)?\s*<(!doctype|html|head|\?xml)", head, re.IGNORECASE):
        came, advice = "is a web page, not weights", "download the file itself, not its page"
    elif namesake and size < namesake.size:
        came = f"was cut off: {size} of {namesake.size} bytes"
        advice = "download it again"
    else:
        came, advice = f"has the unknown sha256 {sha256}", "get one of the known files"
    raise ValueError(f"{called} {came}; {wanted}; {advice}")


def _head(file: Path) -> bytes:
    with file.open("rb") as stream:
        return stream.read(HEAD)


def _store(file: Path, row: Weights) -> None:
    import safetensors.torch

    metadata = {"source": row.name, "file": row.file, "sha256": row.sha256, "licence": row.licence}
    contents = safetensors.torch.save(tensors(file), metadata)
    with atomic.writing(_place(row)) as stream:
        stream.write(contents)


def _download(url: str, file: Path, row: Weights) -> None:
    if not url.startswith(("https://", "http://")):  # urllib would open file:// too
        raise ValueError("not a web address")
    print(f"{row.name}: {url} ({_mib(row.size)})", file=sys.stderr)
    done = 0
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer, file.open("wb") as stream:
        while piece := answer.read(PIECE):
            done += len(piece)
            if done > row.size:
                raise ValueError(f"it gave more than the {row.size} bytes of {row.file}")
            stream.write(piece)
            if sys.stderr.isatty():
                print(f"\r{done / row.size:4.0%}", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print(file=sys.stderr)


def _described(row: Weights) -> str:
    return f"{row.file} ({_mib(row.size)}, licence {row.licence})"


def _by_hand(row: Weights) -> str:
    places = "".join(f"\n  {url}" for url in row.urls) or f" {row.source}"
    return f"get it from{places}\nand run: harness weights add {row.file}"


def _mib(size: int) -> str:
    return f"{size / 2**20:.1f} MiB"


def _reason(error: Exception) -> str:
    """The one line that matters; torch adds advice to run the code, which nobody should follow."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if "GLOBAL" in line or "Unsupported" in line]
    reason = (told or lines or ["no reason given"])[0].partition(" Please")[0]
    return f"{type(error).__name__}: {reason.rstrip('.')}"
