"""Kill commands at random moments, and check that the next run makes the same files as a whole run.

    python -m studies.kills [--kills 200] [--seed 0] [--only eval train ...] [--work DIR]

Each command runs once without a kill. Then, in a new folder with a new cache, it is killed several
times, by SIGKILL, SIGTERM, SIGHUP and SIGINT in turn, and then runs to its end. The files in folder
and cache must equal those of the undisturbed run, byte for byte except for times, and there must be
no other file. The exit status of a killed run must be that of its signal, and no process may be
left. The table has a row for each command; the script exits with 1 if any fault was found.
"""

import argparse
import contextlib
import functools
import hashlib
import io
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import cv2
import h5py
import numpy as np

from harness.records import markdown_table

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
ROUND = 4  # kills before a run to the end
GRACE = 120.0  # seconds that a process may take to end when it is asked to
STARTING = "init_import_site"  # in the message of a Python that is stopped while it starts
SPARED = 2.0  # seconds after which a process that its parent left behind counts as a fault

SHORT = (
    "epochs=1", "steps_per_epoch=30", "held_out=0.3", "method.pairs=16", "method.images=2",
    'schedule={name="constant"}',
)  # fmt: skip
PACKAGE = """
from harness.data.copies import Copy
from harness.data.datasets import PublishedSet, SetPart
from harness.data.weights import Weights
WEIGHTS = {{
    "net": Weights(
        "net", "net.pth", (), "MIT", frozenset(), "made here", sha256={weights!r}, size={bytes}
    )
}}
SETS = [PublishedSet("killed", "Photographs", {page!r},
    (SetPart((Copy({page!r} + "/photographs.tar.gz", "sha256:" + {archive!r}),)),),
    "MIT", "", {{}})]
"""
SETTLED: dict[str, Callable[[bytes], bytes]] = {  # removes times, by a folder or the end of a name
    ".run": lambda contents: b"",
    "/log.jsonl": lambda contents: _without(contents, "seconds"),
    "/checkpoint.pt": lambda contents: b"",  # has seconds, too; the weights are compared anyway
    "/card.json": lambda contents: _without(contents, "hours"),
    "/recipe.json": lambda contents: _without(contents, "data"),  # has the path of the cache
    # A file that grew in other pieces has the same contents in other places.
    ".h5": lambda contents: _of_hdf5(contents),
    ".db": lambda contents: _of_sqlite(contents),
    # The list of fetched files has the time of the download.
    "/.harness.json": lambda contents: _without(contents, "fetched"),
    "cache/verified/": lambda contents: b"",  # has times of files and of checks
    # The metadata of safetensors have no fixed order; a small file beside it has its hash.
    "cache/weights/": lambda contents: bytes(sorted(contents)) if len(contents) > 64 else b"",
}


@dataclass(frozen=True)
class Command:
    """A command line; it runs in a folder of its own."""

    name: str
    arguments: Sequence[str]
    again: Callable[[Path], Sequence[str]] = lambda folder: ()  # further arguments after a kill
    needs: str = ""  # a folder of the inputs that is copied to where it runs
    makes: str = ""  # a file or folder that it makes last, and would refuse to make again


@dataclass
class Tally:
    """Counts and faults of one command."""

    kills: int = 0
    hit: int = 0  # kills that came before the command ended
    faults: list[str] = field(default_factory=list)


def commands(inputs: Path) -> list[Command]:
    """The commands to kill; `inputs` is a folder that `prepare` filled."""
    sequences, photographs = str(inputs / "sequences"), str(inputs / "photographs")
    views = str(inputs / "views")

    def resumed(folder: Path) -> Sequence[str]:
        return ["--resume"] if (folder / "out/checkpoint.pt").is_file() else []

    of_photographs = ["data", "build", "homography", "--images", photographs]
    trained = ["train", "--recipe", "hardnet", "--device", "cpu", "--out", "out"]
    trained += ["--data", str(inputs / "scenes")]
    few = ["--model", "rootsift", "--keypoints", "200"]
    return [
        Command("eval", ["eval", "--model", "pixels,rootsift", "--protocol", "hpatches"]),
        Command(
            "describe",
            ["describe", "--model", "rootsift", "--protocol", "hpatches", "--out", "out"],
            makes="out",
        ),
        Command("leaderboard", ["leaderboard", "--results", "results"], needs="results"),
        Command("report", ["report", "--results", "results"], needs="results"),
        Command(
            "build",
            ["data", "build", "hpatches", "--images", sequences, "--out", "out"],
            makes="out",
        ),
        Command(
            "build homography",
            [*of_photographs, "--out", "out", "--set", "points=20"],
            makes="out",
        ),
        Command("fetch", ["data", "fetch", "killed"]),
        Command("weights add", ["weights", "add", str(inputs / "net.pth")]),
        Command(
            "train",
            [*trained, *(word for one in SHORT for word in ("--set", one))],
            resumed,
            makes="out/model.onnx",
        ),
        Command("extract", ["extract", photographs, *few, "--out", "features.h5"]),
        Command(
            "colmap",
            ["colmap", views, *few, "--database", "all.db", "--map", "map"],
            makes="map",
        ),
        Command(
            "reproduce",
            ["reproduce", "l2net/figure3c", "--budget", "smoke", "--out", "out"],
        ),
    ]


def prepare(inputs: Path, page: str) -> None:
    """Make the input files of the commands; `page` is the address that serves their folder."""
    rng = np.random.default_rng(0)
    for k in range(3):
        folder = inputs / "sequences" / f"v_{k}"
        folder.mkdir(parents=True)
        picture = cv2.resize(rng.integers(0, 256, (60, 60), np.uint8), (400, 400))
        for image in range(1, 7):
            cv2.imwrite(str(folder / f"{image}.png"), picture[image : image + 380, : 380 + image])
            if image > 1:
                move = np.array([[1, 0, 0], [0, 1, 1 - image], [0, 0, 1]])
                np.savetxt(folder / f"H_1_{image}", move)
    (inputs / "photographs").mkdir()
    for k in range(6):
        picture = cv2.resize(rng.integers(0, 256, (70, 70), np.uint8), (420, 420))
        cv2.imwrite(str(inputs / "photographs" / f"{k}.png"), picture)
    (inputs / "views").mkdir()
    scene = cv2.resize(rng.integers(0, 256, (90, 90), np.uint8), (700, 700))
    for k in range(4):
        part = scene[10 * k : 10 * k + 480, 15 * k : 15 * k + 560]
        cv2.imwrite(str(inputs / "views" / f"{k}.png"), part)
    with tarfile.open(inputs / "photographs.tar.gz", "w:gz") as packed:
        packed.add(inputs / "photographs", "photographs")
    _run(["eval", "--model", "pixels", "--protocol", "phototour"], inputs / "first")
    shutil.move(next((inputs / "first/cache/datasets").glob("phototour*")), inputs / "scenes")
    records = inputs / "results"
    _run(["eval", "--model", "pixels,rootsift", "--protocol", "hpatches"], inputs / "second")
    shutil.move(inputs / "second/results", records)
    import torch

    torch.save({"w": torch.ones(400_000)}, inputs / "net.pth")
    contents = (inputs / "net.pth").read_bytes()
    source = PACKAGE.format(
        weights=hashlib.sha256(contents).hexdigest(),
        bytes=len(contents),
        page=page,
        archive=hashlib.sha256((inputs / "photographs.tar.gz").read_bytes()).hexdigest(),
    )
    (inputs / "killed.py").write_text(source)
    info = inputs / "killed-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: killed\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[harness.weights]\nkilled = killed:WEIGHTS\n[harness.datasets]\nkilled = killed:SETS\n"
    )


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a server on this machine that gives the files of a folder."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *arguments: object) -> None:
            pass

    handler = functools.partial(Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def killed(command: Command, inputs: Path, work: Path, kills: int, random_: random.Random) -> Tally:
    """Kill a command `kills` times, in rounds; compare each round with an undisturbed run."""
    tally = Tally()
    whole = work / "whole"
    _given(command, inputs, whole)
    begun = time.monotonic()
    _run(command.arguments, whole, inputs)
    lasts = time.monotonic() - begun
    wanted = files(whole)
    while tally.kills < kills:
        folder = work / f"round-{tally.kills}"
        _given(command, inputs, folder)
        for _ in range(min(ROUND, kills - tally.kills)):
            sign = SIGNALS[tally.kills % len(SIGNALS)]
            arguments = [*command.arguments, *command.again(folder)]
            tally.kills += 1
            if _finished(command, folder):
                _given(command, inputs, folder)
                arguments = [*command.arguments]
            fault, hit = _kill(arguments, folder, inputs, sign, random_.uniform(0, lasts))
            tally.hit += hit
            if fault:
                tally.faults.append(f"{command.name}, kill {tally.kills}: {fault}")
        if not _finished(command, folder):
            try:
                _run([*command.arguments, *command.again(folder)], folder, inputs)
            except RuntimeError as error:
                tally.faults.append(f"{command.name}, after kill {tally.kills}: {error}")
        made = files(folder)
        for name in sorted({*made, *wanted}):
            if made.get(name) != wanted.get(name):
                kind = "left" if name not in wanted else "missing" if name not in made else "other"
                tally.faults.append(f"{command.name}, after kill {tally.kills}: {kind} {name}")
        shutil.rmtree(folder)
    return tally


def files(folder: Path) -> dict[str, bytes]:
    """Hashes of all files and folders below a folder; parts of files with times are left out."""
    hashes = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        contents = path.read_bytes() if path.is_file() else b"folder"
        for part, settled in SETTLED.items():
            if (part in name if part.endswith("/") else name.endswith(part)) and path.is_file():
                contents = settled(contents)
        hashes[name] = hashlib.sha256(contents).digest()
    return hashes


def _without(contents: bytes, key: str) -> bytes:
    text = contents.decode()
    values = [json.loads(text)] if text.startswith("{\n") else map(json.loads, text.splitlines())
    return json.dumps([{k: v for k, v in table.items() if k != key} for table in values]).encode()


def _of_hdf5(contents: bytes) -> bytes:
    """Names, attributes and values of all groups and data sets of an HDF5 file."""
    told = hashlib.sha256()

    def tell(name: str, entry: h5py.Group | h5py.Dataset) -> None:
        attributes = sorted((key, str(value)) for key, value in entry.attrs.items())
        told.update(repr((name, attributes)).encode())
        if isinstance(entry, h5py.Dataset):
            told.update(repr((entry.dtype, entry.shape)).encode() + entry[()].tobytes())

    with h5py.File(io.BytesIO(contents)) as file:
        tell("/", file)
        file.visititems(tell)
    return told.digest()


def _of_sqlite(contents: bytes) -> bytes:
    """All statements that make a database anew, in the order of its tables and their keys."""
    of_one_file = contents[:18] + b"\x01\x01" + contents[20:]  # not of one with a log beside it
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        database.deserialize(of_one_file)
        return "\n".join(database.iterdump()).encode()


def _given(command: Command, inputs: Path, folder: Path) -> None:
    """Make a new folder to run in, with the files that the command works on."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if command.needs:
        shutil.copytree(inputs / command.needs, folder / command.needs)


def _finished(command: Command, folder: Path) -> bool:
    """Whether a command has finished that would refuse to make its folder again."""
    return bool(command.makes) and (folder / command.makes).exists()


def _started(arguments: Sequence[str], folder: Path, inputs: Path | None) -> subprocess.Popen[str]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = [str(inputs)] * (inputs is not None) + [path for path in sys.path if path]
    return subprocess.Popen(
        [sys.executable, "-m", "harness", *arguments],
        cwd=folder,
        env={
            **{k: v for k, v in os.environ.items() if not k.startswith("HARNESS_")},
            "HARNESS_CACHE": str(folder / "cache"),
            "PYTHONPATH": os.pathsep.join(paths),
            "OMP_NUM_THREADS": "1",
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def _run(arguments: Sequence[str], folder: Path, inputs: Path | None = None) -> None:
    process = _started(arguments, folder, inputs)
    _, said = process.communicate()
    if process.returncode:
        raise RuntimeError(f"{' '.join(arguments)} exits with {process.returncode}: {said}")


def _kill(
    arguments: Sequence[str], folder: Path, inputs: Path, sign: signal.Signals, after: float
) -> tuple[str, bool]:
    """Send a signal to a run; returns a fault in its end, or "", and whether it was running."""
    process = _started(arguments, folder, inputs)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(after)
    hit = process.poll() is None
    process.send_signal(sign)
    try:
        _, said = process.communicate(timeout=GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return f"did not end within {GRACE:g} s of {sign.name}", hit
    # Before Python sets its handlers, and at its very end, the system handles a signal.
    known = {-sign, 128 + sign, 0} if sign != signal.SIGKILL else {-sign, 0}
    if sign == signal.SIGINT and STARTING in said:
        known.add(1)
    if process.returncode not in known:
        return f"exits with {process.returncode} on {sign.name}: {said}", hit
    deadline = time.monotonic() + SPARED
    while _has_processes(process.pid):
        if time.monotonic() > deadline:
            os.killpg(process.pid, signal.SIGKILL)
            return f"leaves processes behind after {sign.name}", hit
        time.sleep(0.05)
    return "", hit


def _has_processes(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def main() -> None:
    """Kill the commands, compare, print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--work", type=Path)
    given = parser.parse_args()
    # A script in the background ignores SIGINT, and its child processes would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if given.work:
        given.work.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(dir=given.work) as folder,
        served(Path(folder, "inputs")) as page,
    ):
        inputs = Path(folder, "inputs")
        prepare(inputs, page)
        chosen = [c for c in commands(inputs) if not given.only or c.name in given.only]
        each = -(-given.kills // len(chosen))
        faults: list[str] = []

        def rows() -> Iterator[tuple[object, ...]]:
            for command in chosen:
                work = Path(folder, command.name.replace(" ", "-"))
                tally = killed(command, inputs, work, each, random.Random(given.seed))
                faults.extend(tally.faults)
                for fault in tally.faults:
                    print(fault, file=sys.stderr, flush=True)
                yield command.name, tally.kills, tally.hit, len(tally.faults)

        for line in markdown_table.lines(["command", "kills", "while it ran", "not clean"], rows()):
            print(line, flush=True)
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
