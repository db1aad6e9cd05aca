"""The one pass: patches, then vectors, then scores."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

import numpy as np

from harness import vector_folder
from harness.cache import VectorCache
from harness.results import Record, record, refused
from harness.types import Block, Dataset, Descriptions, Descriptor, Protocol, Scores, Vectors
from harness.vector_folder import VectorFolder

Model = Descriptor | VectorFolder
Progress = Callable[[int], None]  # told how many patches more are done

T = TypeVar("T")

BATCH = 512


def evaluate(
    model: Model,
    protocols: Iterable[Protocol],
    *,
    cache: VectorCache | None = None,
    batch_size: int = BATCH,
    progress: Progress = lambda done: None,
) -> Iterator[Record]:
    """Score one model on protocols, a record each; data that several share are described once.

    With a cache it resumes: blocks described before an interruption are not described again.

    Raises:
        TrainedOnAll: if the model was trained on every cell that a protocol tests.
    """
    described: Descriptions | None = None
    for protocol in protocols:
        dataset = protocol.dataset
        kept_from = refused(model, protocol)
        if described is None or described.dataset.blocks is not dataset.blocks:
            described = describe(
                model, dataset, cache=cache, batch_size=batch_size, progress=progress
            )
        scores = protocol.score(replace(described, dataset=dataset))
        if kept_from:
            scores = _only(protocol.cells.keys() - set(kept_from), scores)
        yield record(model, protocol, scores)


def _only(cells: Set[str], scores: Scores) -> Scores:
    """The scores of some cells; those that sum up all of them are left out, too."""

    def of_cells(found: Mapping[str, T]) -> dict[str, T]:
        return {name: one for name, one in found.items() if name.partition("/")[0] in cells}

    return Scores(of_cells(scores.values), of_cells(scores.scenes), of_cells(scores.intervals))


def describe(
    model: Model,
    dataset: Dataset,
    *,
    cache: VectorCache | None = None,
    batch_size: int = BATCH,
    progress: Progress = lambda done: None,
) -> Descriptions:
    """Every patch of a data set as a vector; patches are held one block at a time.

    Raises:
        ValueError: if the model gives another number, type or length of rows than it declares, or
            a value that is not finite; names the model and the block.
    """
    width = model.dim if model.distance.dtype is np.float32 else (model.dim + 7) // 8
    vectors = np.empty((len(dataset), width), model.distance.dtype)
    start = 0
    for block in dataset.blocks:
        vectors[start : start + block.size] = describe_block(
            model, block, cache=cache, batch_size=batch_size
        )
        start += block.size
        progress(block.size)
    return Descriptions(dataset, vectors, model.distance)


def describe_block(
    model: Model, block: Block, *, cache: VectorCache | None, batch_size: int = BATCH
) -> Vectors:
    """The vectors of one block, checked; from the cache where it has them."""
    if isinstance(model, VectorFolder):
        return _checked(model, block, model.read(block))
    origin = _origin(model, block)
    known = cache.read(origin) if cache else None
    if known is not None:
        return _checked(model, block, known)
    patches = block.read()
    if patches.dtype != np.uint8 or len(patches) != block.size:
        raise TypeError(
            f"{block.name} gave {len(patches)} patches of {patches.dtype};"
            f" its data set says {block.size} of uint8"
        )
    parts = [
        model.describe(patches[i : i + batch_size]) for i in range(0, len(patches), batch_size)
    ]
    vectors = _checked(model, block, np.concatenate(parts) if parts else model.describe(patches))
    if cache:
        cache.write(origin, vectors)
    return vectors


def export_vectors(
    model: Model,
    dataset: Dataset,
    out: Path,
    *,
    cache: VectorCache | None = None,
    batch_size: int = BATCH,
    progress: Progress = lambda done: None,
) -> None:
    """Write the vectors of a data set in the official HPatches form, a CSV file a block."""
    for block in dataset.blocks:
        vectors = describe_block(model, block, cache=cache, batch_size=batch_size)
        vector_folder.write(out, block.name, vectors, model.distance, dim=model.dim)
        progress(block.size)
    vector_folder.describe_folder(out, model)


def _checked(model: Model, block: Block, vectors: Vectors) -> Vectors:
    dtype = model.distance.dtype
    width = model.dim if dtype is np.float32 else (model.dim + 7) // 8
    if vectors.dtype != dtype or vectors.shape != (block.size, width):
        raise ValueError(
            f"{model.name} gave {vectors.dtype} {list(vectors.shape)} for {block.name};"
            f" {np.dtype(dtype).name} {[block.size, width]} was wanted:"
            f" a row for each patch, as {model.distance.name} distance and dim {model.dim} ask"
        )
    if dtype is np.float32 and not np.isfinite(vectors).all():
        bad = int(np.count_nonzero(~np.isfinite(vectors).all(axis=1)))
        raise ValueError(
            f"{model.name} gave {bad} of {block.size} vectors of {block.name} that are not finite;"
            " `harness check --model` shows on which patches"
        )
    return vectors


def _origin(model: Descriptor, block: Block) -> dict[str, str]:
    return {
        "model": model.name,
        "code": model.code,
        "weights": model.weights or "",
        "dim": str(model.dim),
        "provider": model.provider,
        "libraries": " ".join(f"{name}=={version(name)}" for name in model.libraries),
        "block": block.sha256,
    }
