"""Damage files at random, and check that the readers of foreign files read or refuse them cleanly.

    python -m studies.mutated_inputs [--inputs 10000] [--seed 0] [--only READER ...] [--work DIR]

Each reader of `studies.foreign_files` gets its small valid set with one changed file: the file is
cut or extended, bits or bytes are changed, absurd numbers inserted, lines repeated or removed, or
bytes reordered. The reader runs in a process with limits on memory and time. A trial is clean if
the set is read, or if it is refused by an error that a user can correct, on one line that names a
file or folder of the set. Everything else is unclean: another error, a warning, no name, too much
time or memory, or a dead process. Input k of a reader is made from the seed S + k. The script
prints the seed of each unclean input; `--only READER --seed SEED --inputs 1` repeats it. The table
has a row for each reader; the script exits with 1 if any input was unclean.
"""

import argparse
import logging
import multiprocessing
import os
import random
import resource
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from harness.errors import HarnessError
from harness.files import folders
from harness.records import markdown_table
from studies.foreign_files import READERS
from studies.foreign_files.reader import Reader

SECONDS = 15  # limit for one input
PATIENCE = 4  # a process without an answer for so many times SECONDS is killed: its alarm failed
MEMORY = 3 * 10**9  # bytes that a process may use for its inputs
CLEAN = (HarnessError, OSError)
COLUMNS = ("reader", "inputs", "read", "refused", "unclean", "slowest, s", "peak, MB")
READ, REFUSED, UNCLEAN = "read", "refused", "unclean"


@dataclass(frozen=True)
class Trial:
    """Outcome of one input."""

    reader: str
    seed: int
    outcome: str
    why: str = ""
    seconds: float = 0.0
    peak: int = 0  # largest memory of the process so far, bytes


Job = tuple[Reader, int]  # a reader and a seed

# Mutations


def cut(data: bytes, rng: random.Random) -> bytes:
    """The file without its end."""
    return data[: -rng.randint(1, rng.choice([20, len(data)]))]


def extended(data: bytes, rng: random.Random) -> bytes:
    """The file with more bytes at its end."""
    return data + rng.choice([b"\0", b"\n", b"\xff", b"7", data[-9:]]) * rng.randint(1, 64)


def flipped(data: bytes, rng: random.Random) -> bytes:
    """The file with up to 50 flipped bits."""
    other = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 5, 50])):
        other[rng.randrange(len(other))] ^= 1 << rng.randrange(8)
    return bytes(other)


def overwritten(data: bytes, rng: random.Random) -> bytes:
    """The file with an extreme binary number in it, mostly near its beginning, where sizes are."""
    number = rng.choice(NUMBERS)[: rng.choice([1, 2, 4, 8])]
    at = rng.randrange(min(len(data), rng.choice([16, 200, len(data)])))
    return data[:at] + number + data[at + len(number) :]


def inserted(data: bytes, rng: random.Random) -> bytes:
    """The file with an absurd word in it."""
    at = rng.randint(0, len(data))
    return data[:at] + rng.choice(WORDS) + data[at:]


def without(data: bytes, rng: random.Random) -> bytes:
    """The file without up to 200 bytes somewhere."""
    at = rng.randrange(len(data))
    return data[:at] + data[at + rng.randint(1, 200) :]


def moved(data: bytes, rng: random.Random) -> bytes:
    """The file with 32 bytes overwritten by other bytes of the file."""
    a, b = rng.randrange(len(data)), rng.randrange(len(data))
    return data[:a] + data[b : b + 32] + data[a + 32 :]


def line_twice(data: bytes, rng: random.Random) -> bytes:
    """The file with one line repeated."""
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    return b"\n".join([*lines[: at + 1], *lines[at:]])


def line_gone(data: bytes, rng: random.Random) -> bytes:
    """The file without one line."""
    lines = data.split(b"\n")
    del lines[rng.randrange(len(lines))]
    return b"\n".join(lines)


def swapped(data: bytes, rng: random.Random) -> bytes:
    """The file with the bytes of one number, or of all numbers, in reverse order."""
    width = rng.choice([2, 4, 8])
    at = rng.choice([None, rng.randrange(len(data)) // width])
    words = [data[i : i + width] for i in range(0, len(data), width)]
    return b"".join(word[::-1] if at in (None, i) else word for i, word in enumerate(words))


NUMBERS = [b"\xff" * 8, bytes(8), b"\x7f" * 8, struct.pack("<Q", 1 << 40), struct.pack("<f", 1e30)]
NUMBERS += [struct.pack("<d", number) for number in (1e308, float("nan"), -1.0)]
WORDS = [b"9" * 23, b"9" * 5000, b"1e400", b"1e308 ", b"nan", b"-1", b"-", b'"', b"{", b"[" * 10**5]
WORDS += [b'{"a":' * 60_000, b"\xef\xbb\xbf", b"\r", b"_", b" ", b",", b"\0", b"\xc3", b"null"]
MUTATIONS = (
    cut, extended, flipped, overwritten, inserted, without, moved, line_twice, line_gone, swapped
)  # fmt: skip


def mutated(files: Sequence[Path], seed: int) -> tuple[Path, bytes]:
    """One of the files and its damaged contents; every kind of file is chosen equally often."""
    rng = random.Random(seed)
    kind = rng.choice(sorted({file.suffix for file in files}))
    file = rng.choice([file for file in files if file.suffix == kind])
    return file, rng.choice(MUTATIONS)(file.read_bytes(), rng)


# Trials


def trials(jobs: Sequence[Job], work: Path, *, seconds: int = SECONDS) -> Iterator[Trial]:
    """Try inputs in a separate process; if an input ends the process, a new process continues."""
    context = multiprocessing.get_context("spawn")
    while jobs:
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_try_all, args=(jobs, work, seconds, sender))
        process.start()
        sender.close()
        done = 0
        try:
            while done < len(jobs) and receiver.poll(PATIENCE * seconds):
                came = receiver.recv()
                if isinstance(came, str):
                    raise RuntimeError(f"{jobs[done][0].name} does not read its valid set:\n{came}")
                yield came
                done += 1
            fault = f"does not end within {PATIENCE * seconds} s"
        except EOFError:
            process.join()
            fault = f"ends the process, exit status {process.exitcode}"
        finally:
            process.kill()
            process.join()
        if done < len(jobs):
            reader, seed = jobs[done]
            yield Trial(reader.name, seed, UNCLEAN, fault)
        jobs = jobs[done + 1 :]


def _try_all(jobs: Sequence[Job], work: Path, seconds: int, sender: Connection) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # C libraries write complaints to stderr
    os.environ["HARNESS_CACHE"] = str(work / "cache")
    logging.disable()
    signal.signal(signal.SIGALRM, _ring)
    ready: Reader | None = None
    files: list[Path] = []
    for reader, seed in jobs:
        folder = work / reader.name.replace(" ", "-")
        if reader != ready:
            try:
                files = _get_ready(reader, folder)
            except Exception:
                sender.send(traceback.format_exc())
                return
            ready = reader
        sender.send(_try(reader, seed, folder, files, seconds))


def _get_ready(reader: Reader, folder: Path) -> list[Path]:
    """Make the valid set, read it, limit the memory from now on; returns the files of the set."""
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    reader.make(folder)
    files = [file for file in folders.files(folder) if file.match(reader.mutates)]
    reader.read(folder)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
    return files


def _try(reader: Reader, seed: int, folder: Path, files: Sequence[Path], seconds: int) -> Trial:
    file, contents = mutated(files, seed)
    whole = file.read_bytes()
    file.write_bytes(contents)
    begun = time.monotonic()
    signal.alarm(seconds)
    outcome, why = READ, ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            reader.read(folder)
    except CLEAN as error:
        why = _unclear(error, folder, files)
        outcome = UNCLEAN if why else REFUSED
    except BaseException as error:  # the alarm, too
        outcome, why = UNCLEAN, _traced(error)
    finally:
        signal.alarm(0)
        took = time.monotonic() - begun
        file.write_bytes(whole)
    peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if outcome == UNCLEAN:
        why = f"{file.relative_to(folder)}: {why}"
    return Trial(reader.name, seed, outcome, why, took, peak)


def _unclear(error: Exception, folder: Path, files: Sequence[Path]) -> str:
    """The fault of an error message; "" if there is none."""
    said = str(error)
    if "\n" in said:
        return f"more than one line: {_traced(error)}"
    if not (str(folder) in said or any(file.name in said for file in files)):
        return f"names no file: {_traced(error)}"
    return ""


def _traced(error: BaseException) -> str:
    last = traceback.extract_tb(error.__traceback__)[-4:]
    way = " > ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in last)
    return f"{type(error).__name__}: {str(error)[:300]!r} ({way})"


class TooLong(BaseException):
    """Raised by the alarm; not an Exception, so that no reader catches it."""


def _ring(*_: object) -> None:
    raise TooLong("it takes too long")


def main() -> None:
    """Try the inputs, and print the table and the faults."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", choices=[reader.name for reader in READERS])
    parser.add_argument("--work", type=Path)
    given = parser.parse_args()
    chosen = [reader for reader in READERS if not given.only or reader.name in given.only]
    each = -(-given.inputs // len(chosen))
    unclean: list[Trial] = []

    def rows() -> Iterator[tuple[object, ...]]:
        for reader in chosen:
            with tempfile.TemporaryDirectory(dir=given.work) as folder:
                jobs = [(reader, seed) for seed in range(given.seed, given.seed + each)]
                tried = list(trials(jobs, Path(folder)))
            counts = [sum(trial.outcome == k for trial in tried) for k in (READ, REFUSED, UNCLEAN)]
            slowest, peak = max(trial.seconds for trial in tried), max(t.peak for t in tried)
            unclean.extend(trial for trial in tried if trial.outcome == UNCLEAN)
            yield reader.name, len(tried), *counts, f"{slowest:.2f}", f"{peak / 1e6:.0f}"

    for line in markdown_table.lines(COLUMNS, rows()):
        print(line, flush=True)
    for trial in unclean:
        print(f"{trial.reader}, seed {trial.seed}: {trial.why}")
    sys.exit(bool(unclean))


if __name__ == "__main__":
    main()
