"""The units of work of a cluster: describe a block, work ahead, score a part, make the record.

A unit is given by names, so that a worker gets no data from the scheduler: it opens the data set
itself, and finds vectors, matches and scores of parts in the cache that all workers share. A unit
may run twice, or again after its worker was killed, since the cache and the record do not change.
The last argument of a unit, `_`, is what it has to wait for.
"""

import json
import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.metadata import version
from typing import Any

import numpy as np

from harness import cache, data_names, evaluation, loading, registry, unfinished
from harness.cache import Origin
from harness.cluster import token
from harness.cluster.token import VERSION, UnfitWorkerError
from harness.code import code_sha256
from harness.files import home
from harness.parts import together
from harness.records import record as results
from harness.records.record import TrainedOnAll, refused
from harness.settings import Options
from harness.types import Dataset, Descriptor, Protocol, Rows, Scores, Vectors
from harness.unfinished import Piece
from harness.vector_folder import Model

SCORES = "scores"  # kind of results in the cache
OPEN = 4  # models, and data sets, that a worker keeps open
SCORING = ("harness.metrics", "harness.distances", "harness.statistics")  # may change a score
TOKENS = "cluster"  # folder of tokens in the cache


@dataclass(frozen=True)
class Work:
    """An evaluation as workers are asked for it; the same for all of its units."""

    protocol: str  # a name, or a family
    options: tuple[tuple[str, object], ...]  # of the protocol, "data" among them
    device: str
    batch_size: int
    token: str  # name of a file in the cache of the process that asks
    version: str = VERSION  # of the harness
    expected: tuple[tuple[int, str], ...] = ()  # version and data's sha256 of each protocol


def describe(work: Work, model: str, protocol: int, block: int) -> int:
    """Describe a block of patches into the cache, unless it is there; returns its size.

    Args:
        work: the evaluation.
        model: a name or a path.
        protocol: number of the protocol in its family.
        block: number of the block in the data set of the protocol.

    Raises:
        UnfitWorkerError: if this worker has another cache, other data or another version.
        HarnessError: as `evaluation.vectors_of` does.
    """
    made, one = _opened(work, model, protocol)
    found = one.dataset.blocks[block]
    try:
        kept_from = refused(made, one, data_names.known())
    except TrainedOnAll:  # `finish` tells it
        return found.size
    if not evaluation.is_of(found, kept_from) and isinstance(made, Descriptor):
        _reader(work, model, protocol)(block)
    return found.size


def after(_: Sequence[object]) -> None:
    """Nothing: units that wait for this one wait for all that it waits for."""


def work_ahead(
    work: Work, model: str, protocol: int, part: str, number: int, _: object = None
) -> None:
    """Do a unit of work on a part ahead of its scoring; see `Ahead`.

    Args:
        work: the evaluation.
        model: a name or a path.
        protocol: number of the protocol in its family.
        part: name of the part.
        number: of the unit.

    Raises:
        UnfitWorkerError: as `describe` does.
        HarnessError: as the protocol raises it.
    """
    made, one = _opened(work, model, protocol)
    parts = one.parts
    if parts is not None and parts.ahead is not None and _is_whole(work, model, protocol):
        parts.ahead.do(part, number, _reader(work, model, protocol), made.distance)


def score_part(work: Work, model: str, protocol: int, part: str, _: object = None) -> None:
    """Score a part into the cache, unless its scores are there.

    Args:
        work: the evaluation.
        model: a name or a path.
        protocol: number of the protocol in its family.
        part: name of the part.

    Raises:
        UnfitWorkerError: as `describe` does.
        HarnessError: as `evaluation.evaluate` does.
    """
    if _apart(work, model, protocol):
        _part(work, model, protocol, part)


def finish(
    work: Work, model: str, protocol: int, apart: Sequence[str], _: object = None
) -> tuple[str, str, list[Piece]]:
    """Make the record of a model on a protocol, from the scores of its parts.

    Returns the record as JSON, the name of this machine, and the pieces in the cache that are not
    needed any more when the record is kept.

    Args:
        work: the evaluation.
        model: a name or a path.
        protocol: number of the protocol in its family.
        apart: the parts that were scored apart; (): the protocol is scored as a whole.

    Raises:
        UnfitWorkerError: as `describe` does.
        HarnessError: as `evaluation.evaluate` does.
    """
    made, one = _opened(work, model, protocol)
    if one.parts is None or not apart or not _apart(work, model, protocol):
        return _whole(work, model, protocol)
    scores = together(one.parts, [_part(work, model, protocol, part) for part in apart])
    record = results.record(
        made, one, scores, _probe(model, work.device) or "", [], data_names.known()
    )
    pieces = [(SCORES, _origin(work, model, protocol, part)) for part in apart]
    return results.to_json(record), platform.node(), pieces


def _whole(work: Work, model: str, protocol: int) -> tuple[str, str, list[Piece]]:
    """What `finish` returns for a protocol that is scored as a whole."""
    made, one = _opened(work, model, protocol)
    with unfinished.kept_until_end() as pieces:
        (record,) = evaluation.evaluate(
            made, [one], cache=cache.kept("vectors"), batch_size=work.batch_size
        )
        waiting = [*pieces]
        pieces.clear()  # they are removed where the record is kept
    return results.to_json(record), platform.node(), waiting


def _part(work: Work, model: str, protocol: int, part: str) -> Scores:
    """The scores of a part, from the cache if it has them."""
    kept, origin = cache.kept(SCORES), _origin(work, model, protocol, part)
    known = kept.read(origin)
    if known is not None:
        return _scores(json.loads(known))
    made, one = _opened(work, model, protocol)
    assert one.parts is not None
    with unfinished.kept_until_end():  # what it went on from, until its scores are kept
        described = evaluation.describe(
            made,
            one.dataset,
            cache=cache.kept("vectors"),
            batch_size=work.batch_size,
            probe=_probe(model, work.device),
            rows=_whole_blocks(one.dataset, one.parts.rows(part)),
        )
        scores = one.parts.score(described, [part])
        kept.write(origin, json.dumps(asdict(scores), default=float).encode())
    return scores


def _origin(work: Work, model: str, protocol: int, part: str) -> Origin:
    """All that decides the scores of a part."""
    made, one = _opened(work, model, protocol)
    assert isinstance(made, Descriptor)
    maker = registry.load("protocols", one.name)
    return {
        **evaluation.origin(made, _probe(model, work.device)),
        "protocol": [one.name, one.version, dict(one.options)],
        "scoring": [code_sha256(maker.__module__, *SCORING), version("numpy")],
        "solvers": {name: version(name) for name in one.libraries},
        "data": one.dataset.sha256,
        "part": part,
    }


def _scores(table: dict[str, Any]) -> Scores:
    """Scores as they were before they became JSON."""
    intervals = {name: (low, high) for name, (low, high) in table["intervals"].items()}
    return Scores(table["values"], table["scenes"], intervals, tuple(table["warnings"]))


def _apart(work: Work, model: str, protocol: int) -> bool:
    """Whether parts are scored apart; if not, `finish` scores the protocol as a whole.

    They are not for a model that was trained on some of them, nor for a folder of vectors, whose
    blocks are checked together.
    """
    made, _ = _opened(work, model, protocol)
    return isinstance(made, Descriptor) and _is_whole(work, model, protocol)


@lru_cache(maxsize=OPEN)
def _is_whole(work: Work, model: str, protocol: int) -> bool:
    """Whether a model is scored on all cells of a protocol."""
    made, one = _opened(work, model, protocol)
    try:
        return not evaluation.admitted(made, one, data_names.known())
    except TrainedOnAll:
        return False


def _whole_blocks(dataset: Dataset, rows: Rows) -> Rows:
    """The rows of all blocks that have some of the given rows: blocks are cached as a whole."""
    block = np.repeat(np.arange(len(dataset.blocks)), [one.size for one in dataset.blocks])
    return np.flatnonzero(np.isin(block, np.unique(block[rows])))


@lru_cache(maxsize=OPEN)
def _must_fit(work: Work) -> None:
    """Refuse to work with another cache, or another version, than the process that asks."""
    token.must_be_here(
        home.place(TOKENS) / work.token,
        work.version,
        f"has another cache ({home.cache()}): set HARNESS_CACHE to one folder on a disk that all"
        " machines share, for each worker and for this command",
    )


@lru_cache(maxsize=OPEN)
def _protocols(work: Work) -> list[Protocol]:
    options: Options = dict(work.options)
    found = [loading.open_protocol(one, options) for one in loading.protocol_names(work.protocol)]
    for one, there in zip(found, work.expected, strict=False):
        here = (one.version, one.dataset.sha256)
        if here != there:
            raise UnfitWorkerError(
                f"{token.me()} has version {here[0]} of {one.name} on the data"
                f" {here[1][:12]}, but where the work is asked for they are {there[0]} and"
                f" {there[1][:12]}: install the same code, and give data that all machines share"
            )
    return found


def _opened(work: Work, model: str, protocol: int) -> tuple[Model, Protocol]:
    _must_fit(work)
    return _model(model, work.device), _protocols(work)[protocol]


@lru_cache(maxsize=OPEN)
def _reader(work: Work, model: str, protocol: int) -> Callable[[int], Vectors]:
    """A function that gives the vectors of blocks by their numbers; the same for all units."""
    made, one = _opened(work, model, protocol)

    def read(block: int) -> Vectors:
        return evaluation.vectors_of(
            made,
            one.dataset.blocks[block],
            cache.kept("vectors"),
            batch_size=work.batch_size,
            probe=_probe(model, work.device),
        )

    return read


@lru_cache(maxsize=OPEN)
def _model(name: str, device: str) -> Model:
    return loading.load_model(name, device=device)


@lru_cache(maxsize=OPEN)
def _probe(name: str, device: str) -> str | None:
    made = _model(name, device)
    return evaluation.fingerprint(made) if isinstance(made, Descriptor) else None
