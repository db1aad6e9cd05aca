"""Fan an evaluation out over the workers of a Dask cluster, and collect its records."""

import logging
import os
import secrets
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import extras, loading
from harness.cluster import units
from harness.cluster.units import Work
from harness.errors import ComputeError, InputError
from harness.records.record import Record, TrainedOnAll
from harness.settings import Options
from harness.types import Protocol

if TYPE_CHECKING:
    from distributed import Client, Future

AT_ONCE = 4  # models whose units are with the scheduler
PATIENCE = 10  # seconds that a scheduler has to answer
ON_GPU = {"GPU": 1}  # what a worker declares: dask worker ADDRESS --resources GPU=1

Done = Callable[[int], None]  # called with the number of patches described since the last call


@dataclass(frozen=True)
class Outcome:
    """What a cluster gives for a model on a protocol: a record, or that it was trained on all."""

    model: str
    found: tuple[Record, str] | TrainedOnAll

    def result(self) -> tuple[Record, str]:
        """The record, and the name of the machine that scored.

        Raises:
            TrainedOnAll: if there is none.
        """
        if isinstance(self.found, TrainedOnAll):
            raise self.found
        return self.found


@contextmanager
def connected(workers: int | None, scheduler: str | None) -> Iterator["Client"]:
    """A client of a Dask scheduler; it and the workers that it started end with the block.

    Args:
        workers: number of processes to start on this machine, each with its own cores; or None.
        scheduler: address of a running scheduler, for example "tcp://10.0.0.1:8786"; or None.

    Raises:
        InputError: if both or none are given, or if nothing answers at the address.
        ImportFailedError: if Dask is not installed; says how to install it.
    """
    with extras.needed("a cluster"):
        from distributed import Client, LocalCluster

        from harness.cluster.cores import OwnCores
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # lost workers are replaced
    if workers is not None and scheduler is None:
        with (
            _same_environment(),
            LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                memory_limit=0,  # a worker is never killed for its memory
                dashboard_address="127.0.0.1:0",  # a free port
                silence_logs=logging.CRITICAL,
            ) as cluster,
            Client(cluster) as client,
        ):
            client.register_plugin(OwnCores(workers))
            yield client
    elif scheduler is not None and workers is None:
        try:
            client = Client(scheduler, timeout=PATIENCE)
        except (OSError, ValueError) as error:
            raise InputError(
                f"no Dask scheduler answers at {scheduler}: start one with `dask scheduler`, and"
                " workers with `dask worker ADDRESS`"
            ) from error
        with client:
            yield client
    else:
        raise InputError("give a number of workers, or the address of a scheduler, not both")


@contextmanager
def _same_environment() -> Iterator[None]:
    """After the block, environment variables are as before: Dask sets OMP_NUM_THREADS and others.

    They are meant for its workers, but later child processes of this one would inherit them.
    """
    before = dict(os.environ)
    try:
        yield
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)


@contextmanager
def shared_work(protocol: str, options: Options, device: str, batch_size: int) -> Iterator[Work]:
    """An evaluation to ask workers for; during the block, they can see whether the cache is theirs.

    Args:
        protocol: a name, or a family.
        options: of the protocol; paths become absolute, as a worker may run in another folder.
        device: for the models, as for `load_model`.
        batch_size: patches described at a time.
    """
    given = loading.with_data(options, silent=True)
    absolute = {
        name: value.absolute() if isinstance(value, Path) else value
        for name, value in given.items()
    }
    token = secrets.token_hex(16)
    file = units.token_file(token)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()
    try:
        yield Work(protocol, tuple(absolute.items()), device, batch_size, token)
    finally:
        file.unlink(missing_ok=True)


def outcomes(
    client: "Client",
    work: Work,
    models: Sequence[str],
    protocols: Sequence[Protocol],
    done: Done = lambda patches: None,
) -> Iterator[Outcome]:
    """Yields what the cluster gives for each model on each protocol, in this order.

    Vectors of a block are described by one worker, into the cache; then another worker may score
    them. If a worker is lost, its units run on others. Blocks in the cache are not described again,
    so that an evaluation that was stopped goes on.

    Args:
        client: of the cluster.
        work: the evaluation.
        models: names or paths; each worker must be able to open them.
        protocols: those of `work`, as they are opened here.
        done: told of described patches.

    Raises:
        ComputeError: if a unit ends one worker after the other, for example out of memory.
        InputError: if a worker has other data or another version of a protocol.
        HarnessError: as the units raise it.
    """
    waiting = deque(models)
    asked: deque[tuple[str, list[Future[Any]], list[Future[Any]]]] = deque()
    try:
        while waiting or asked:
            while waiting and len(asked) < AT_ONCE:
                model = waiting.popleft()
                asked.append((model, *_submit(client, work, model, protocols)))
            model, blocks, scores = asked.popleft()
            for block in blocks:
                done(_result(block, model))
            for protocol, score in zip(protocols, scores, strict=True):
                yield _outcome(model, protocol, score)
    finally:
        with suppress(Exception):  # the connection may be closed
            client.cancel([one for _, blocks, scores in asked for one in (*blocks, *scores)])


def _submit(
    client: "Client", work: Work, model: str, protocols: Sequence[Protocol]
) -> tuple[list["Future[Any]"], list["Future[Any]"]]:
    """The units of one model: of its blocks, each once, and of its scores."""
    resources = ON_GPU if work.device == "cuda" else {}
    described: dict[int, list[Future[Any]]] = {}  # by the identity of the blocks that tasks share
    scores = []
    for number, protocol in enumerate(protocols):
        blocks = protocol.dataset.blocks
        if id(blocks) not in described:
            described[id(blocks)] = [
                client.submit(
                    units.describe, work, model, number, i, resources=resources, pure=False
                )
                for i in range(len(blocks))
            ]
        scores.append(
            client.submit(units.score, work, model, number, described[id(blocks)], pure=False)
        )
    return [one for blocks in described.values() for one in blocks], scores


def _outcome(model: str, protocol: Protocol, score: "Future[Any]") -> Outcome:
    try:
        text, host = _result(score, model)
    except TrainedOnAll as error:
        return Outcome(model, error)
    record = Record.model_validate_json(text)
    there = (record.protocol.version, record.data.sha256)
    here = (protocol.version, protocol.dataset.sha256)
    if there != here:
        raise InputError(
            f"{model}: the worker {host} has version {there[0]} of {protocol.name} on the data"
            f" {there[1][:12]}, but here they are {here[0]} and {here[1][:12]}: install the same"
            " code, and give data that all machines share"
        )
    return Outcome(model, (record, host))


def _result(future: "Future[Any]", model: str) -> Any:
    """The result of a unit; its error is raised as on this machine."""
    from distributed import KilledWorker

    try:
        return future.result()
    except KilledWorker as error:
        raise ComputeError(
            f"{model}: {error.allowed_failures + 1} workers ended one after the other in one unit"
            " of work, probably out of memory: start fewer on each machine"
        ) from error
