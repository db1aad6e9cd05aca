"""How long 200 models take on all protocols and the official data, by the number of workers.

    python -m studies.scaling --results results [--models 200] [--workers 1,8,64,512]

Nothing is evaluated: the cluster is simulated, with the units of work that `harness eval
--scheduler` has. A unit describes one block of patches by one model, or matches a tile of the pairs
of images of a scene, or scores one model on one protocol, which waits for all its blocks and pairs.
A worker is one core and does one unit at a time. For each unit it waits for the scheduler, which
hands out one unit after another, then for its bytes from the shared disk, which serves one request
after another, then it computes. Small units of ETH are simulated in bunches, which a worker does
one after another.

Speeds of models are those of RESULTS/studies/speed.csv, costs of scoring and matching those of
RESULTS/studies/full-size.csv, scaled to the full size. The page RESULTS/studies/scaling.md names
what is assumed.
"""

import argparse
import csv
import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, comb, inf
from pathlib import Path

import numpy as np

from harness.records import markdown_table
from protocols.eth.pairs import LARGE as BY_TREE
from protocols.eth.pairs import NEIGHBOURS
from protocols.eth.tiles import SIDE, all_tiles

DECODED = 85e-6  # seconds of a core for a patch of HPatches, out of its PNG
PNG = 0.43 * 65**2  # bytes of a patch of HPatches on the disk
BITMAP = 64**2  # bytes of a patch of PhotoTour
DISK = 1e9  # bytes a second of the shared disk: assumed, a file server on a 10-gigabit network
DISPATCH = 1e-3  # seconds of the scheduler for a unit: what Dask's manual says
OPENED = 0.05  # seconds of a core for a unit, besides its work: names, checks, the cache
PAIRS, IMAGES = 5000, 16  # of ETH, matched and described in a bunch of units
KEYPOINTS, KEYPOINT = 8000, 41**2  # of an image of ETH: assumed; bytes of its share of a photograph
MAPPED = 3.0  # seconds of a core for an image of ETH in COLMAP's mapper: assumed
VERIFIED = 0.02  # seconds of a core for a pair in COLMAP's verification: assumed

HPATCHES = [int(n) for n in np.repeat([1353], 1856)]  # patches of each strip, on average
PHOTOTOUR = [450092, 468159, 633587]  # patches of the scenes of the difference of Gaussians
IN_PAIRS = 0.35  # share of a scene's patches that its 100,000 pairs show: measured on the stand-in
BLOCK = 4096  # patches of a block of PhotoTour
HPATCHES_ALL, PHOTOTOUR_ALL = "HPatches, three tasks", "PhotoTour, pairs and snn"
SMALL, LARGE = "ETH, small scenes", "ETH, large scenes"
WHOLE = "ETH, large scenes, the pairs of a scene in one unit"
SMALL_ETH = [8, 11]  # images
LARGE_ETH = [128, 1344, 1463, 1576, 2364, 2915, 6514]


@dataclass(frozen=True)
class Unit:
    """One piece of work."""

    seconds: float  # of a core
    moved: float = 0.0  # bytes from and to the shared disk
    count: int = 1  # units of the harness, of which this is a bunch


Stage = Sequence[Unit]
Job = Sequence[Stage]
"""One model on one protocol. A stage begins when the stage before it is done."""


@dataclass(frozen=True)
class Cluster:
    """What does the work."""

    workers: int
    disk: float = inf  # bytes a second
    dispatch: float = 0.0  # seconds of the scheduler for each unit


@dataclass(frozen=True)
class Run:
    """What a simulated run took."""

    seconds: float
    computed: float  # seconds of all cores together, without waiting
    moved: float  # bytes

    @property
    def hours(self) -> float:
        """Hours from the begin to the end."""
        return self.seconds / 3600


def simulate(jobs: Sequence[Job], cluster: Cluster) -> Run:
    """Do all jobs: a free worker takes the next unit of the first job that has one.

    Events are the ends of units; nothing is random.
    """
    stage = [-1] * len(jobs)
    left = [0] * len(jobs)  # units of the stage that have not ended
    waiting: list[int] = []  # jobs with a unit that no worker has taken; a heap
    taken = [0] * len(jobs)
    ends: list[tuple[float, int]] = []
    now = scheduler = disk = computed = moved = 0.0
    free = cluster.workers

    def advance(job: int) -> None:
        """Go on to the next stage that has units, if there is one."""
        while left[job] == 0 and stage[job] + 1 < len(jobs[job]):
            stage[job] += 1
            left[job], taken[job] = len(jobs[job][stage[job]]), 0
            if left[job]:
                heapq.heappush(waiting, job)

    for job in range(len(jobs)):
        advance(job)
    while waiting or ends:
        while waiting and free:
            job = waiting[0]
            units = jobs[job][stage[job]]
            unit = units[taken[job]]
            taken[job] += 1
            if taken[job] == len(units):
                heapq.heappop(waiting)
            scheduler = max(scheduler, now) + unit.count * cluster.dispatch
            begun = scheduler
            if unit.moved:
                disk = begun = max(disk, scheduler) + unit.moved / cluster.disk
            heapq.heappush(ends, (begun + unit.seconds, job))
            computed += unit.seconds
            moved += unit.moved
            free -= 1
        now, job = heapq.heappop(ends)
        free += 1
        left[job] -= 1
        advance(job)
    return Run(now, computed, moved)


def chain(job: Job) -> float:
    """Seconds of a job on as many workers as it has units: its longest units, one after another."""
    return sum(max((unit.seconds for unit in stage), default=0.0) for stage in job)


@dataclass(frozen=True)
class Model:
    """What is measured of a descriptor."""

    per_second: float  # patches, on one core
    vector: int  # bytes


@dataclass(frozen=True)
class Costs:
    """Seconds of a core, measured on stand-ins and scaled to the full size."""

    hpatches: float  # three tasks of the split "full", vectors at hand
    phototour: float  # a patch of a scene: its share of scoring the pairs
    snn: float  # a patch
    pair: float  # of images of ETH


def models_of(file: Path, count: int) -> list[Model]:
    """Models with the speeds and sizes of those measured on one core, in turn; slowest first."""
    with file.open(newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["cores"] == "1"]
    known = [Model(float(row["patches_per_second"]), int(row["bytes"])) for row in rows]
    some = [known[i % len(known)] for i in range(count)]
    return sorted(some, key=lambda model: model.per_second)


def costs_of(file: Path) -> Costs:
    """The costs of scoring, from the largest share that was measured."""
    steps: dict[str, Mapping[str, str]] = {}
    with file.open(newline="") as stream:
        for row in csv.DictReader(stream):  # shares ascend
            steps[row["step"]] = row

    def each(name: str) -> float:
        return float(steps[name]["cpu_s"]) / float(steps[name]["work"])

    return Costs(
        each("HPatches: three tasks, vectors at hand") * sum(HPATCHES),
        each("PhotoTour: pairs, vectors at hand"),
        each("PhotoTour: snn, vectors at hand"),
        each("Madrid: match pairs"),
    )


def described(model: Model, sizes: Sequence[int], decoded: float, stored: float) -> Stage:
    """The units that describe blocks of these sizes."""
    each = 1 / model.per_second + decoded
    return [Unit(OPENED + n * each, n * (stored + model.vector)) for n in sizes]


def cut(total: int, size: int) -> list[int]:
    """A total in parts of a size; the last part may be smaller."""
    return [size] * (total // size) + ([total % size] if total % size else [])


def tiles(images: int) -> list[tuple[float, float]]:
    """Pairs, and images that they show, of each unit that matches the pairs of a scene.

    Of a scene that is large for `eth`, each image is matched with NEIGHBOURS others. They are
    assumed to be spread evenly over the tiles.
    """
    size, everything = cut(images, SIDE), comb(images, 2)
    share = 1.0 if images < BY_TREE else images * NEIGHBOURS / everything
    found = []
    for a, b in all_tiles(images):
        pairs = share * (comb(size[a], 2) if a == b else size[a] * size[b])
        shown = size[a] if a == b else size[a] + size[b]
        if pairs:
            found.append((pairs, min(shown, 2 * pairs)))
    return found


def bunches(units: Sequence[tuple[float, float]]) -> list[tuple[float, float, int]]:
    """Pairs, images and number of units in bunches of about PAIRS pairs."""
    together = ceil(PAIRS * len(units) / sum(pairs for pairs, _ in units))
    parts = [units[i : i + together] for i in range(0, len(units), together)]
    return [(sum(n for n, _ in part), sum(n for _, n in part), len(part)) for part in parts]


def jobs_of(models: Sequence[Model], costs: Costs) -> dict[str, list[Job]]:
    """The jobs of each family of protocols; the slowest model comes first."""
    of = {n: bunches(tiles(n)) for n in (*SMALL_ETH, *LARGE_ETH)}
    one = {n: [(sum(pairs for pairs, *_ in of[n]), float(n), 1)] for n in LARGE_ETH}
    large = [(model, n) for model in models for n in LARGE_ETH[::-1]]
    return {
        HPATCHES_ALL: [_hpatches(model, costs) for model in models],
        PHOTOTOUR_ALL: [job for model in models for job in _phototour(model, costs)],
        SMALL: [_eth(model, costs, n, of[n]) for model in models for n in SMALL_ETH],
        LARGE: [_eth(model, costs, n, of[n]) for model, n in large],
        WHOLE: [_eth(model, costs, n, one[n]) for model, n in large],
    }


def _hpatches(model: Model, costs: Costs) -> Job:
    task = Unit(costs.hpatches / 3, sum(HPATCHES) * model.vector)
    return [described(model, HPATCHES, DECODED, PNG), [task] * 3]


def _phototour(model: Model, costs: Costs) -> Iterator[Job]:
    for patches in PHOTOTOUR:  # the pairs need some of the patches that snn describes
        score = [
            Unit(patches * costs.phototour, IN_PAIRS * patches * model.vector),
            Unit(patches * costs.snn, patches * model.vector),
        ]
        yield [described(model, cut(patches, BLOCK), 0.0, BITMAP), score]


def _eth(
    model: Model, costs: Costs, images: int, bunches: Sequence[tuple[float, float, int]]
) -> Job:
    """A scene; a bunch matches some pairs, and reads the vectors of the images that they show."""
    vectors = KEYPOINTS * model.vector  # of an image
    each = OPENED + KEYPOINTS / model.per_second  # seconds to describe an image
    moved = KEYPOINTS * KEYPOINT + vectors
    described = [Unit(n * each, n * moved, n) for n in cut(images, IMAGES)]
    matched = [
        Unit(count * OPENED + pairs * costs.pair, shown * vectors, count)
        for pairs, shown, count in bunches
    ]
    mapped = Unit(images * MAPPED + sum(pairs for pairs, *_ in bunches) * VERIFIED)
    return [described, matched, [mapped]]


def rows(jobs: Mapping[str, Sequence[Job]], workers: Sequence[int]) -> Iterator[list[str]]:
    """Yields the rows of the table."""
    small = [HPATCHES_ALL, PHOTOTOUR_ALL, SMALL]
    parts = [*([name] for name in jobs), small, [*small, LARGE]]
    for part in parts:
        every = [job for name in part for job in jobs[name]]
        name = {1: part[0], 3: "all but the large scenes", 4: "all"}[len(part)]
        for count in workers:
            run = simulate(every, Cluster(count, DISK, DISPATCH))
            cores = count * run.hours
            yield [
                name,
                f"{count}",
                f"{run.hours:,.1f}",
                f"{run.moved / 1e12:,.2f}",
                f"{cores:,.0f}",
                f"{100 * run.computed / 3600 / cores:.0f}",
            ]


def main() -> None:
    """Simulate, print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--models", type=int, default=200)
    parser.add_argument("--workers", default="1,8,64,512", help="numbers of workers, with commas")
    given = parser.parse_args()
    of = given.results / "studies"
    models, costs = models_of(of / "speed.csv", given.models), costs_of(of / "full-size.csv")
    head = ["protocols", "workers", "hours", "TB moved", "core hours", "of them at work, %"]
    found = rows(jobs_of(models, costs), [int(count) for count in given.workers.split(",")])
    print("\n".join(markdown_table.lines(head, found, "lrrrrr")))


if __name__ == "__main__":
    main()
