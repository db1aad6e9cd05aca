"""Fan an evaluation out over the workers of a Dask cluster, and collect its records."""

import logging
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from harness import extras, loading, registry
from harness.cluster import token, units
from harness.cluster.units import Work
from harness.errors import ComputeError, InputError, SystemRefusedError
from harness.files import home
from harness.parts import units_ahead, worth_apart
from harness.records.record import Record, TrainedOnAll
from harness.settings import Options, absolute
from harness.types import Protocol
from harness.unfinished import Piece

if TYPE_CHECKING:
    from distributed import Client, Future

AT_ONCE = 4  # models whose units are with the scheduler
PATIENCE = 10  # seconds that a scheduler has to answer

Done = Callable[[int], None]  # called with the number of patches or units since the last call


@dataclass(frozen=True)
class Outcome:
    """What a cluster gives for a model on a protocol: a record, or that it was trained on all."""

    model: str
    found: tuple[Record, str] | TrainedOnAll
    pieces: tuple[Piece, ...] = ()  # in the cache, not needed any more when the record is kept

    def result(self) -> tuple[Record, str]:
        """The record, and the name of the machine that scored.

        Raises:
            TrainedOnAll: if there is none.
        """
        if isinstance(self.found, TrainedOnAll):
            raise self.found
        return self.found


def resources(device: str) -> dict[str, int]:
    """What a worker declares for a device: of "cuda", as `dask worker --resources GPU=1` does."""
    return {"GPU": 1} if device == "cuda" else {}


def must_be_one(workers: int | None, scheduler: str | None) -> None:
    """Refuse two clusters, and none; the arguments are those of `connected`.

    Raises:
        InputError: if both or none are given.
    """
    if (workers is None) == (scheduler is None):
        raise InputError("give a number of workers, or the address of a scheduler, not both")


@contextmanager
def connected(workers: int | None, scheduler: str | None, device: str) -> Iterator["Client"]:
    """A client of a Dask scheduler; it and the workers that it started end with the block.

    Args:
        workers: number of processes to start on this machine, each with its own cores; or None.
        scheduler: address of a running scheduler, for example "tcp://10.0.0.1:8786"; or None.
        device: what the processes on this machine compute on. On "cuda" they share its first GPU.

    Raises:
        InputError: if both or none are given, or if nothing answers at the address.
        SystemRefusedError: if the connection to the scheduler is lost within the block.
        ImportFailedError: if Dask is not installed; says how to install it.
    """
    must_be_one(workers, scheduler)
    with extras.needed("a cluster"):
        from distributed import Client, LocalCluster
        from distributed.comm.core import CommClosedError

        from harness.cluster.cores import OwnCores
        from harness.cluster.interrupts import LeftInterrupts
    for name in ("distributed", "distributed.client"):  # lost workers are replaced
        logging.getLogger(name).setLevel(logging.CRITICAL)
    if workers is not None:
        with (
            _same_environment(),
            LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                resources=resources(device),
                memory_limit=0,  # a worker is never killed for its memory
                dashboard_address="127.0.0.1:0",  # a free port
                silence_logs=logging.CRITICAL,
            ) as cluster,
            Client(cluster) as client,
        ):
            client.register_plugin(OwnCores(workers))
            client.register_plugin(LeftInterrupts())
            yield client
    else:
        try:
            client = Client(scheduler, timeout=PATIENCE)
        except (OSError, ValueError) as error:
            raise InputError(
                f"no Dask scheduler answers at {scheduler}: start one with `dask scheduler`, and"
                " workers with `dask worker ADDRESS`"
            ) from error
        with client:
            try:
                yield client
            except (CancelledError, CommClosedError) as error:  # the client cancels all futures
                raise SystemRefusedError(
                    f"the connection to the Dask scheduler at {scheduler} is lost: start it and its"
                    " workers again, and give the same command, which continues"
                ) from error


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
    maker = registry.load("protocols", loading.protocol_names(protocol)[0])
    given = absolute(maker, loading.with_data(options, silent=True), f"protocol {protocol}")
    with token.placed(home.place(units.TOKENS)) as name:
        yield Work(protocol, tuple(given.items()), device, batch_size, name)


def scoring_units(protocols: Sequence[Protocol]) -> int:
    """Number of units of each model after its description: work ahead, parts, and the record."""
    return sum(
        len(worth_apart(protocol)) + sum(units_ahead(protocol).values()) + 1
        for protocol in protocols
    )


def outcomes(
    client: "Client",
    work: Work,
    models: Sequence[str],
    protocols: Sequence[Protocol],
    done: Done = lambda patches: None,
    scored: Done = lambda units: None,
) -> Iterator[Outcome]:
    """Yields what the cluster gives for each model on each protocol, in this order.

    Vectors of a block are described by one worker, into the cache; then other workers work ahead on
    parts of protocols, score parts, and make records. If a worker is lost, its units run on others.
    What is in the cache is not done again, so that an evaluation that was stopped goes on.

    Args:
        client: of the cluster.
        work: the evaluation.
        models: names or paths; each worker must be able to open them.
        protocols: those of `work`, as they are opened here.
        done: told of described patches.
        scored: told of units that are done after the description; see `scoring_units`.

    Raises:
        ComputeError: if a unit ends one worker after the other, for example out of memory.
        InputError: if a worker has other data or another version of a protocol.
        HarnessError: as the units raise it.
    """
    work = replace(work, expected=tuple((p.version, p.dataset.sha256) for p in protocols))
    units_of = [(worth_apart(protocol), units_ahead(protocol)) for protocol in protocols]
    waiting = deque(models)
    asked: deque[tuple[str, _Asked]] = deque()
    try:
        while waiting or asked:
            while waiting and len(asked) < AT_ONCE:
                model = waiting.popleft()
                asked.append((model, _submit(client, work, model, protocols, units_of)))
            model, units_of_model = asked.popleft()
            for block in units_of_model.blocks:
                done(result(block, model))
            for before, record in units_of_model.records:
                for unit in before:
                    result(unit, model)
                    scored(1)
                yield _outcome(model, record)
                scored(1)
    finally:
        with suppress(Exception):  # the connection may be closed
            client.cancel([one for _, of_model in asked for one in of_model.all()])


@dataclass(frozen=True)
class _Asked:
    """The units of one model that are with the scheduler."""

    blocks: list["Future[Any]"]
    # For each protocol: its work ahead and its parts, and its record.
    records: list[tuple[list["Future[Any]"], "Future[Any]"]]

    def all(self) -> Iterator["Future[Any]"]:
        yield from self.blocks
        for before, record in self.records:
            yield from (*before, record)


def _submit(
    client: "Client",
    work: Work,
    model: str,
    protocols: Sequence[Protocol],
    units_of: Sequence[tuple[Sequence[str], Mapping[str, int]]],
) -> _Asked:
    """Ask for all units of one model: of its blocks, each once, and of its scores.

    `units_of` holds the parts of each protocol that are scored apart, and its units ahead.
    """

    def ask(unit: Callable[..., Any], *given: Any, **options: Any) -> "Future[Any]":
        return client.submit(unit, work, model, *given, pure=False, **options)

    def after(some: list["Future[Any]"]) -> "Future[Any]":
        """One future for many: thousands that wait for thousands would be millions of links."""
        return client.submit(units.after, some, pure=False)

    blocks: list[Future[Any]] = []
    described: dict[int, Future[Any]] = {}  # by the identity of the blocks that tasks share
    records = []
    for number, (protocol, (apart, ahead)) in enumerate(zip(protocols, units_of, strict=True)):
        shared = id(protocol.dataset.blocks)
        if shared not in described:
            own = [
                ask(units.describe, number, i, resources=resources(work.device))
                for i in range(len(protocol.dataset.blocks))
            ]
            described[shared] = after(own)
            blocks += own
        before: list[Future[Any]] = []
        ready: dict[str, Future[Any]] = {}  # by the part
        for part, count in ahead.items():
            own = [ask(units.work_ahead, number, part, i, described[shared]) for i in range(count)]
            ready[part] = after(own)
            before += own
        parts = [
            ask(units.score_part, number, part, ready.get(part, described[shared]))
            for part in apart
        ]
        needed = after(parts or [described[shared], *ready.values()])
        records.append(([*before, *parts], ask(units.finish, number, apart, needed)))
    return _Asked(blocks, records)


def _outcome(model: str, record: "Future[Any]") -> Outcome:
    try:
        text, host, pieces = result(record, model)
    except TrainedOnAll as error:
        return Outcome(model, error)
    return Outcome(model, (Record.model_validate_json(text), host), tuple(pieces))


def result(future: "Future[Any]", model: str) -> Any:
    """The result of a unit of a model; its error is raised as on this machine.

    Raises:
        ComputeError: if it ends one worker after the other.
    """
    from distributed import KilledWorker

    try:
        return future.result()
    except KilledWorker as error:
        raise ComputeError(
            f"{model}: {error.allowed_failures + 1} workers ended one after the other in one unit"
            " of work, probably out of memory: start fewer on each machine"
        ) from error
