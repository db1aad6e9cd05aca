"""The two units of work of a cluster: describe one block, and score one model on one protocol.

A unit is given by names, so that a worker gets no data from the scheduler: it opens the data set
itself, and finds vectors in the cache that all workers share. A unit may run twice, or again after
its worker was killed, since the cache and the record do not change.
"""

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

from harness import cache, data_names, evaluation, loading
from harness.errors import InputError
from harness.files import home
from harness.records import record as results
from harness.records.record import TrainedOnAll, refused
from harness.settings import Options
from harness.types import Descriptor, Protocol
from harness.vector_folder import Model

OPEN = 4  # models, and data sets, that a worker keeps open
VERSION = version("descriptor-harness")


@dataclass(frozen=True)
class Work:
    """An evaluation as workers are asked for it; the same for all of its units."""

    protocol: str  # a name, or a family
    options: tuple[tuple[str, object], ...]  # of the protocol, "data" among them
    device: str
    batch_size: int
    token: str  # name of a file in the cache of the process that asks
    version: str = VERSION  # of the harness


def describe(work: Work, model: str, protocol: int, block: int) -> int:
    """Describe a block of patches into the cache, unless it is there; returns its size.

    Args:
        work: the evaluation.
        model: a name or a path.
        protocol: number of the protocol in its family.
        block: number of the block in the data set of the protocol.

    Raises:
        InputError: if this worker has another cache or another version of the harness.
        HarnessError: as `evaluation.keep_block` does.
    """
    _must_fit(work)
    made = _model(model, work.device)
    one = _protocols(work)[protocol]
    found = one.dataset.blocks[block]
    try:
        kept_from = refused(made, one, data_names.known())
    except TrainedOnAll:  # `score` tells it
        return found.size
    if not evaluation.is_of(found, kept_from):
        evaluation.keep_block(
            made,
            found,
            cache.kept("vectors"),
            batch_size=work.batch_size,
            probe=_probe(model, work.device),
        )
    return found.size


def score(work: Work, model: str, protocol: int, described: Sequence[int]) -> tuple[str, str]:
    """Score a model on a protocol; returns the record as JSON, and the name of this machine.

    Args:
        work: the evaluation.
        model: a name or a path.
        protocol: number of the protocol in its family.
        described: what `describe` returned for the blocks: they are in the cache.

    Raises:
        InputError: as `describe` does.
        HarnessError: as `evaluation.evaluate` does.
    """
    _must_fit(work)
    (record,) = evaluation.evaluate(
        _model(model, work.device),
        [_protocols(work)[protocol]],
        cache=cache.kept("vectors"),
        batch_size=work.batch_size,
    )
    return results.to_json(record), platform.node()


def token_file(token: str) -> Path:
    """The file by which a worker sees that it has the same cache."""
    return home.place("cluster") / token


@lru_cache(maxsize=OPEN)
def _must_fit(work: Work) -> None:
    """Refuse to work with another cache, or another version, than the process that asks."""
    me = f"the worker {platform.node()}, process {os.getpid()},"
    if not token_file(work.token).is_file():
        raise InputError(
            f"{me} has another cache ({home.cache()}): set HARNESS_CACHE to one folder on a disk"
            " that all machines share, for each worker and for this command"
        )
    if work.version != VERSION:
        raise InputError(
            f"{me} has version {VERSION} of the harness, not {work.version}: install the same"
        )


@lru_cache(maxsize=OPEN)
def _protocols(work: Work) -> list[Protocol]:
    options: Options = dict(work.options)
    return [loading.open_protocol(one, options) for one in loading.protocol_names(work.protocol)]


@lru_cache(maxsize=OPEN)
def _model(name: str, device: str) -> Model:
    return loading.load_model(name, device=device)


@lru_cache(maxsize=OPEN)
def _probe(name: str, device: str) -> str | None:
    made = _model(name, device)
    return evaluation.fingerprint(made) if isinstance(made, Descriptor) else None
