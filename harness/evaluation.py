"""The evaluation of a model: patches become vectors, and vectors become scores."""

import hashlib
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

import numpy as np
from jaxtyping import Bool

from harness import data_names, parallel, vector_folder
from harness.cache import Cache
from harness.data_names import DataNames
from harness.distances import ANGLE, HAMMING
from harness.errors import FAILURES, ComputeError, InputError, InputTypeError, OutOfMemory, text_of
from harness.records.record import Record, record, refused, unknown_in_training
from harness.row_counters import columns_that_count
from harness.types import (
    Block,
    Dataset,
    Descriptions,
    Descriptor,
    Patches,
    Protocol,
    Rows,
    Scores,
    Vectors,
    must_be_stored_exactly,
)
from harness.vector_folder import Model, VectorFolder

Progress = Callable[[int], None]  # called with the number of patches done since the last call

T = TypeVar("T")

log = logging.getLogger(__name__)

BATCH = 512
AHEAD = 1 << 15  # patches read ahead of the model: 138 MB of HPatches' patches
SIDES = (65, 64, 32)  # pixels: HPatches, PhotoTour, most networks
UNIT = 1e-3  # largest error in the length of a unit vector


def evaluate(
    model: Model,
    protocols: Iterable[Protocol],
    *,
    cache: Cache | None = None,
    batch_size: int = BATCH,
    progress: Progress = lambda done: None,
) -> Iterator[Record]:
    """Yields the record of one model on each protocol; shared data are described only once.

    With a cache, an interrupted evaluation resumes: its blocks are not described again. Cells that
    the model was trained on are not described, and get no score.

    Raises:
        TrainedOnAll: if the model was trained on every cell that a protocol tests.
    """
    described: Descriptions | None = None
    left_out: list[str] = []
    probe = fingerprint(model)
    names = data_names.known()
    told: set[str] = set()
    for protocol in protocols:
        dataset = protocol.dataset
        kept_from = admitted(model, protocol, names, told)
        if (
            described is None
            or described.dataset.blocks is not dataset.blocks
            or left_out != kept_from
        ):
            described = describe(
                model,
                dataset,
                cache=cache,
                batch_size=batch_size,
                progress=progress,
                probe=probe,
                leave_out=kept_from,
            )
            left_out = kept_from
        scores = protocol.score(replace(described, dataset=dataset))
        if kept_from:
            scores = _only(protocol.cells.keys() - set(kept_from), scores)
        yield record(model, protocol, scores, probe, kept_from, names)


def admitted(
    model: Model, protocol: Protocol, names: DataNames, told: set[str] | None = None
) -> list[str]:
    """The cells of a protocol on which a model gets no score, since it was trained on them.

    Args:
        model: the model.
        protocol: the protocol.
        names: the known data names.
        told: training data that no protocol knows, of which a warning was logged already.

    Raises:
        TrainedOnAll: if no cell is left.
        InputError: if the protocol does not take vectors of the model's distance.
    """
    kept_from = refused(model, protocol, names)
    told = set() if told is None else told
    for name in {*unknown_in_training(model, protocol, names)} - told:
        told.add(name)
        log.warning(
            "%s says that it was trained on %r, which no protocol knows, so tables mark it"
            ' with "?"; %s',
            model.name, name, names.hint(name),
        )  # fmt: skip
    if protocol.distances is not None and model.distance.name not in protocol.distances:
        raise InputError(
            f"{protocol.name} takes vectors compared by {' or '.join(protocol.distances)};"
            f" those of {model.name} are compared by {model.distance.name}"
        )
    return kept_from


def _only(cells: Set[str], scores: Scores) -> Scores:
    """The scores of some cells; scores that sum up all cells are left out, too."""

    def of_cells(scored: Mapping[str, T]) -> dict[str, T]:
        return {name: value for name, value in scored.items() if name.partition("/")[0] in cells}

    return replace(
        scores,
        values=of_cells(scores.values),
        scenes=of_cells(scores.scenes),
        intervals=of_cells(scores.intervals),
    )


def describe(
    model: Model,
    dataset: Dataset,
    *,
    cache: Cache | None = None,
    batch_size: int = BATCH,
    progress: Progress = lambda done: None,
    probe: str | None = None,
    leave_out: Collection[str] = (),
    rows: Rows | None = None,
) -> Descriptions:
    """The vectors of patches of a data set; a few blocks of patches are in memory at a time.

    While the model describes a block, threads read the next ones, up to AHEAD patches.

    Args:
        model: the model that describes the patches.
        dataset: the data set with the patches.
        cache: the cache for vectors; None: no cache.
        batch_size: patches in one call of the model.
        progress: called after each block.
        probe: `fingerprint(model)`, if it is known.
        leave_out: cells whose patches are not described; their vectors are zeros.
        rows: the patches to describe; None: all. The vectors of other patches are zeros.

    Raises:
        InputError: if the model gives another number, type or length of rows than it declares, or
            a value that is not finite; names the model and the block. Also if a column of a folder
            of vectors counts the rows of its files.
        ComputeError: if the model fails; names the model and the block.
    """
    vectors = np.zeros((len(dataset), model.width), model.distance.dtype)  # no memory until written
    start = 0
    of_blocks: dict[str, Vectors] = {}
    for block, of_block in described_blocks(
        model,
        dataset,
        cache=cache,
        batch_size=batch_size,
        probe=probe,
        leave_out=leave_out,
        rows=rows,
    ):
        if of_block is not None:
            vectors[start : start + block.size] = of_block
            of_blocks[block.name] = vectors[start : start + block.size]
        start += block.size
        progress(block.size)
    if isinstance(model, VectorFolder):
        model.must_not_count_rows(of_blocks)
    return Descriptions(dataset, vectors, model.distance)


def described_blocks(
    model: Model,
    dataset: Dataset,
    *,
    cache: Cache | None,
    batch_size: int = BATCH,
    probe: str | None = None,
    leave_out: Collection[str] = (),
    rows: Rows | None = None,
) -> Iterator[tuple[Block, Vectors | None]]:
    """Yields each block of a data set with its checked vectors, from the cache if it has them.

    The vectors of a block are None if it is left out or none of its rows are wanted. A block of
    which only some rows are wanted is not cached.
    """
    of_model = origin(model, probe) if cache and isinstance(model, Descriptor) else {}
    wanted = np.ones(len(dataset), bool)
    if rows is not None:
        wanted[:] = False
        wanted[rows] = True
    ends = np.cumsum([block.size for block in dataset.blocks])
    parts = np.split(wanted, ends[:-1]) if dataset.blocks else []
    jobs = list(zip(dataset.blocks, parts, strict=True))

    def is_left_out(block: Block, some: Bool[np.ndarray, " n"]) -> bool:
        return is_of(block, leave_out) or bool(block.size and not some.any())

    def fetched(job: tuple[Block, Bool[np.ndarray, " n"]]) -> _Fetched:
        block, some = job
        if is_left_out(block, some) or isinstance(model, VectorFolder):
            return _Fetched(None, None)
        if some.all():
            return _fetched(model, block, cache, of_model)
        return _Fetched(None, _patches(block)[some])

    ready = parallel.ahead(fetched, jobs, lambda job: job[0].size, AHEAD)
    for (block, some), found in zip(jobs, ready, strict=True):
        if is_left_out(block, some):
            yield block, None
        elif isinstance(model, VectorFolder) or some.all():
            yield block, _of_block(model, block, found, cache, of_model, batch_size)
        else:
            assert found.patches is not None
            vectors = np.zeros((block.size, model.width), model.distance.dtype)
            vectors[some] = _described(model, block.name, found.patches, batch_size)
            yield block, vectors


def vectors_of(
    model: Model, block: Block, cache: Cache, *, batch_size: int = BATCH, probe: str | None = None
) -> Vectors:
    """The checked vectors of a block, from the cache; they are described into it if it lacks them.

    Raises:
        InputError, ComputeError: as `describe` does.
    """
    if isinstance(model, VectorFolder):
        return _checked(model, block.name, block.size, model.read(block))
    of_model = origin(model, probe)
    found = _fetched(model, block, cache, of_model)
    return _of_block(model, block, found, cache, of_model, batch_size)


@dataclass(frozen=True, eq=False)
class _Fetched:
    """What is needed for the vectors of a block: the vectors themselves, or the patches."""

    vectors: Vectors | None  # from the cache, checked
    patches: Patches | None


def _fetched(
    model: Descriptor, block: Block, cache: Cache | None, of_model: Mapping[str, str]
) -> _Fetched:
    """The vectors of a block from the cache or, if it lacks them, the patches."""
    known = cache.read_array({**of_model, "block": block.sha256}) if cache else None
    if known is None:
        return _Fetched(None, _patches(block))
    return _Fetched(_checked(model, block.name, block.size, known), None)


def _of_block(
    model: Model,
    block: Block,
    found: _Fetched,
    cache: Cache | None,
    of_model: Mapping[str, str],
    batch_size: int,
) -> Vectors:
    """The checked vectors of a block; those that the cache lacked are kept there."""
    if isinstance(model, VectorFolder):
        return _checked(model, block.name, block.size, model.read(block))
    if found.vectors is not None:
        return found.vectors
    assert found.patches is not None
    vectors = _described(model, block.name, found.patches, batch_size)
    if cache:
        cache.write_array({**of_model, "block": block.sha256}, vectors)
    return vectors


def is_of(block: Block, cells: Collection[str]) -> bool:
    """Whether a block is part of one of the cells."""
    return block.name.partition("/")[0] in cells


def fingerprint(model: Model) -> str:
    """SHA-256 of the model's vectors of some made-up patches; it changes if they change.

    A model may depend on more than the name, code and weights that it declares: for example, a
    plug-in may read its own files. The result is empty if the model describes no patches of 65, 64
    or 32 pixels.

    Raises:
        InputError: if a column of the vectors counts the patches of the batch.
    """
    if isinstance(model, VectorFolder):
        return model.weights
    for side in SIDES:
        patches = np.random.default_rng(0).integers(0, 256, (9, side, side), dtype=np.uint8)
        patches[8] = 128
        try:
            vectors = _described(model, "made-up patches", patches, len(patches))
        except (ValueError, RuntimeError):
            continue
        if model.distance is not HAMMING and (counters := columns_that_count([vectors])):
            raise InputError(
                f"{model.name} gives vectors whose column {counters[0] + 1} counts the patches of a"
                " batch, as the index of a pandas table does: leave it out"
            )
        return hashlib.sha256(vectors.tobytes()).hexdigest()
    return ""


def export_vectors(
    model: Model,
    dataset: Dataset,
    out: Path,
    *,
    cache: Cache | None = None,
    batch_size: int = BATCH,
    progress: Progress = lambda done: None,
) -> None:
    """Write the vectors of a data set in the official HPatches format, one CSV file per block."""
    for block, vectors in described_blocks(model, dataset, cache=cache, batch_size=batch_size):
        if vectors is not None:  # all are described
            vector_folder.write(out, block.name, vectors, model.distance, dim=model.dim)
        progress(block.size)
    vector_folder.describe_folder(out, model)


def _patches(block: Block) -> Patches:
    patches = block.read()
    if patches.dtype != np.uint8 or len(patches) != block.size:
        raise InputTypeError(
            f"{block.name} gave {len(patches)} patches of {patches.dtype};"
            f" its data set says {block.size} of uint8"
        )
    return patches


def _described(model: Descriptor, name: str, patches: Patches, batch_size: int) -> Vectors:
    """Vectors of patches; each batch is checked and copied, as a model may reuse its memory."""
    vectors = np.empty((len(patches), model.width), model.distance.dtype)
    for i in range(0, len(patches), batch_size):
        batch = patches[i : i + batch_size]
        try:
            rows = model.describe(batch)
        except MemoryError as error:
            raise OutOfMemory(f"{model.name} on {len(batch)} patches of {name}", error) from error
        except FAILURES as error:
            raise ComputeError(f"{model.name} fails on {name}: {text_of(error)}") from error
        vectors[i : i + batch_size] = _checked(model, name, len(batch), rows)
    return vectors


def _checked(model: Model, name: str, n: int, vectors: Vectors) -> Vectors:
    wanted = (n, model.width)
    dtype = np.dtype(model.distance.dtype)
    if not isinstance(vectors, np.ndarray) or vectors.dtype != dtype or vectors.shape != wanted:
        came = f"{getattr(vectors, 'dtype', type(vectors).__name__)} {list(np.shape(vectors))}"
        raise InputError(
            f"{model.name} gave {came} for {n} patches of {name}; {dtype} {list(wanted)} was"
            f" wanted: one row per patch, with {model.distance.name} distance and dim {model.dim}"
        )
    if dtype == np.float32 and not np.isfinite(vectors).all():
        bad = int(np.count_nonzero(~np.isfinite(vectors).all(axis=1)))
        raise InputError(
            f"{model.name} gave {bad} of {n} vectors of {name} that are not finite;"
            " `harness check --model` shows on which patches"
        )
    if isinstance(model, Descriptor):
        must_be_stored_exactly(vectors, model.stored, f"{model.name}: a vector of {name}")
    fill = -model.dim % 8 if dtype == np.uint8 else 0
    if fill and (vectors[:, -1] & ((1 << fill) - 1)).any():
        raise InputError(
            f"{model.name} sets bits beyond its {model.dim} in the last byte of vectors of {name};"
            " they would be compared, too: leave them 0, as np.packbits does"
        )
    if model.distance is ANGLE and n:
        off = float(np.abs(np.linalg.norm(vectors, axis=1) - 1).max())
        if off > UNIT:
            raise InputError(
                f"{model.name} gave a vector of {name} whose length differs from 1 by {off:.2g}:"
                " angles are measured between unit vectors; normalise them, or compare by l2"
            )
    return vectors


def origin(model: Descriptor, probe: str | None) -> dict[str, str]:
    """All that decides the vectors of a model, for keys of caches."""
    return {
        "model": model.name,
        "code": model.code,
        "weights": model.weights or "",
        "dim": str(model.dim),
        "provider": model.provider,
        "libraries": " ".join(f"{name}=={version(name)}" for name in model.libraries),
        "fingerprint": fingerprint(model) if probe is None else probe,
    }
