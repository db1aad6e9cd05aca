"""Fans trainings out over the workers of a Dask cluster; each is one unit of work.

A unit may run twice, or again after its worker was killed: a finished training is left as it is,
an unfinished one goes on from its state. The lock of its folder keeps two processes from training
in it at once. Weights, states and logs are in the output folder that all machines share.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from harness import progress
from harness.cluster import fan_out, token
from harness.cluster.token import VERSION, UnfitWorkerError
from harness.errors import HarnessError
from harness.reproduce import trainings
from harness.reproduce.attempt import attempt
from harness.reproduce.trainings import Training

if TYPE_CHECKING:
    from distributed import Future

TOKENS = ".workers"  # folder of tokens in the output folder
PAUSE = 1.0  # seconds between two looks whether another process still trains in a folder

Ended = Callable[[Training, str | None], None]  # told of a training, and of its error if it failed

log = logging.getLogger(__name__)

_alone = Lock()  # PyTorch has one generator of random numbers and one number of threads a process


@dataclass(frozen=True)
class Work:
    """What is the same for all trainings that workers are asked for."""

    out: Path  # folder of the run; its path is the same on all machines
    device: str
    threads: int  # of PyTorch, on which sums depend, and so weights
    token: str
    version: str = VERSION  # of the harness

    @property
    def file(self) -> Path:
        """The token: it is there as long as somebody waits for the trainings."""
        return self.out / TOKENS / self.token


def train_all(
    wanted: Sequence[Training],
    out: Path,
    device: str,
    ended: Ended,
    *,
    workers: int | None = None,
    scheduler: str | None = None,
) -> None:
    """Train by the workers of a cluster, several at once; a failed one does not stop the others.

    Each trains with the number of threads that PyTorch has in this process, and so to the same
    bytes. If a worker is lost, its training goes on from its state on another one. If this call
    ends before the trainings, as by an interrupt, they stop after their step and keep a state.

    Args:
        wanted: the trainings; one that others start from comes before them.
        out: folder of the run.
        device: "auto", "cpu", or "cuda": then only workers with the resource GPU train.
        ended: told of each training that has ended.
        workers: number of processes to start on this machine; or None.
        scheduler: address of a running scheduler; or None.

    Raises:
        InputError: as `fan_out.connected` does.
        UnfitWorkerError: if a worker has another folder, other data or another version.
        HarnessError: as `attempt` raises it.
    """
    import torch  # late, as Dask: other commands need neither

    threads = torch.get_num_threads()  # before Dask sets OMP_NUM_THREADS for its workers
    out = out.absolute()
    with (
        fan_out.connected(workers, scheduler, device) as client,
        token.placed(out / TOKENS) as name,
        progress.shown("trainings done by workers", len(wanted)) as advance,
    ):
        from distributed import as_completed

        work = Work(out, device, threads, name)
        asked: dict[str, Future[str | None]] = {}  # by the key of the training
        try:
            for one in wanted:
                asked[one.key] = client.submit(
                    train,
                    work,
                    one.absolute(),
                    one.key,
                    asked.get(one.start.key) if one.start else None,
                    key=f"{one.name}-{name}",
                    resources=fan_out.resources(device),
                )
            of = {asked[one.key].key: one for one in wanted}
            for number, future in enumerate(as_completed(asked.values()), 1):
                one = of[future.key]
                log.info("training %d of %d has ended: %s", number, len(wanted), one.name)
                ended(one, attempt(fan_out.result, future, one.name))
                advance(1)
        finally:
            with suppress(Exception):  # the connection may be closed
                client.cancel([*asked.values()])


def train(work: Work, training: Training, key: str, _: object = None) -> str | None:
    """Train, or continue a training, unless it is done; returns the text of its error, if any.

    Args:
        work: what is the same for all trainings.
        training: the training; its paths are absolute.
        key: of the training, where it is asked for.

    Raises:
        UnfitWorkerError: if this worker has another folder, other data or another version.
        HarnessError: as `attempt` raises it.
    """
    token.must_be_here(
        work.file,
        work.version,
        f"does not see the folder {work.out}: give --out on a disk that all machines share, under"
        " the same path",
    )
    _must_be_the_same(training, key)
    with _alone, _threads(work.threads):
        while work.file.is_file():
            try:
                found: str | None = attempt(
                    trainings.train,
                    training,
                    work.out,
                    work.device,
                    stop=lambda: not work.file.is_file(),
                    shown=False,
                )
                return found
            except BlockingIOError:  # a worker that was lost, but lives, or another command
                time.sleep(PAUSE)
            except KeyboardInterrupt:  # stopped; Dask would take it for the end of this worker
                pass
    return None


def _must_be_the_same(training: Training, key: str) -> None:
    """Refuse a training that has another key here, because of its data or of its recipe."""
    try:
        here = training.key
    except HarnessError as error:
        raise UnfitWorkerError(
            f"{token.me()} can't open the training data: {error}; all machines need them under"
            " the same path"
        ) from error
    if here != key:
        raise UnfitWorkerError(
            f"{token.me()} has other training data in {', '.join(map(str, training.data))}, or"
            f" another recipe {training.recipe}: install the same code, and give data that all"
            " machines share"
        )


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """Let PyTorch compute with so many threads in the block."""
    import torch  # late: workers that evaluate need not have it

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
