"""The simulated cluster keeps the laws of scheduling, and the plan has the official sizes."""

import numpy as np
import pytest
from checkout import ROOT

from protocols.eth.pair_lists import exhaustive
from protocols.eth.tiles import by_tile
from studies import scaling
from studies.scaling import Cluster, Unit, chain, simulate


def made(seed, moved=0.0):
    """Jobs of random stages."""
    rng = np.random.default_rng(seed)
    return [
        [
            [Unit(float(s), moved) for s in rng.exponential(1.0, rng.integers(0, 6))]
            for _ in range(rng.integers(0, 4))
        ]
        for _ in range(12)
    ]


def total(jobs):
    return sum(unit.seconds for job in jobs for stage in job for unit in stage)


@pytest.mark.parametrize("seed", range(5))
def test_one_worker_takes_the_sum(seed):
    jobs = made(seed)
    run = simulate(jobs, Cluster(1))
    assert run.seconds == pytest.approx(total(jobs)) == pytest.approx(run.computed)


@pytest.mark.parametrize("seed", range(5))
def test_enough_workers_take_the_longest_chain(seed):
    jobs = made(seed)
    assert simulate(jobs, Cluster(1000)).seconds == pytest.approx(max(map(chain, jobs)))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("workers", [2, 3, 7])
def test_no_run_is_better_than_both_bounds_nor_worse_than_their_sum(seed, workers):
    """The upper bound is Graham's: some worker idles only while the longest chain goes on."""
    jobs = made(seed)
    longest, share = max(map(chain, jobs)), total(jobs) / workers
    assert max(longest, share) - 1e-9 <= simulate(jobs, Cluster(workers)).seconds
    assert simulate(jobs, Cluster(workers)).seconds <= share + longest + 1e-9


@pytest.mark.parametrize("workers", [1, 4, 1000])
def test_the_disk_and_the_scheduler_are_bounds_too(workers):
    jobs = made(0, moved=30.0)
    units = sum(len(stage) for job in jobs for stage in job)
    by_disk = simulate(jobs, Cluster(workers, disk=10.0))
    assert by_disk.moved == 30.0 * units and by_disk.seconds >= 3.0 * units
    assert simulate(jobs, Cluster(workers, dispatch=2.0)).seconds >= 2.0 * units
    free = simulate(jobs, Cluster(workers)).seconds
    assert simulate(jobs, Cluster(workers, disk=1e12, dispatch=1e-9)).seconds == pytest.approx(free)
    if workers == 1:  # one worker waits for all, so the times add up
        both = simulate(jobs, Cluster(1, disk=10.0, dispatch=2.0)).seconds
        assert both == pytest.approx(total(jobs) + 5.0 * units)


def test_a_stage_waits_for_the_stage_before_it_and_other_jobs_do_not():
    first = [[Unit(1.0), Unit(3.0)], [], [Unit(5.0)]]
    assert simulate([first], Cluster(2)).seconds == 8.0
    assert simulate([first, [[Unit(7.0)]]], Cluster(2)).seconds == 8.0  # 7 begins at 1, 5 at 3
    assert simulate([], Cluster(2)).seconds == 0.0


def test_the_plan_has_the_official_sizes():
    assert sum(scaling.HPATCHES) == pytest.approx(2_510_720, rel=1e-3)
    models = scaling.models_of(ROOT / "results/studies/speed.csv", 200)
    assert len(models) == 200
    assert models[0].per_second == min(model.per_second for model in models)
    costs = scaling.Costs(60.0, 1e-5, 1e-4, 0.1)
    jobs = scaling.jobs_of(models[:1], costs)
    assert [len(jobs[name]) for name in jobs] == [1, 3, 2, 7, 7]
    (madrid,) = (job for job in jobs[scaling.LARGE] if len(job[0]) == 1344 / scaling.IMAGES)
    assert [sum(unit.count for unit in stage) for stage in madrid] == [1344, 84 * 85 / 2, 1]
    seconds = 902_496 * costs.pair + 3570 * scaling.OPENED
    assert sum(unit.seconds for unit in madrid[1]) == pytest.approx(seconds)
    whole = jobs[scaling.WHOLE]
    assert all(len(job[1]) == 1 for job in whole)
    blocks = scaling.cut(450_092, scaling.BLOCK)
    assert len(blocks) == 110 and sum(blocks) == 450_092


@pytest.mark.parametrize("images", [8, 16, 17, 37])
def test_units_of_pairs_are_the_tiles_of_the_harness(images):
    slow = by_tile(exhaustive(images)).values()
    expected = [(len(pairs), len({one for pair in pairs for one in pair})) for pairs in slow]
    assert sorted(scaling.tiles(images)) == sorted(expected)


def test_a_large_scene_has_the_pairs_of_its_neighbours():
    found = scaling.tiles(2364)
    assert sum(pairs for pairs, _ in found) == pytest.approx(236_400)
    assert all(shown <= 2 * pairs for pairs, shown in found)


def test_a_bunch_waits_for_the_scheduler_as_its_units_do():
    assert simulate([[[Unit(3.0, count=5)]]], Cluster(1, dispatch=2.0)).seconds == 13.0


def test_the_table_has_each_family_and_their_sums():
    models = [scaling.Model(1000.0, 512)]
    jobs = scaling.jobs_of(models, scaling.Costs(60.0, 1e-5, 1e-4, 0.1))
    found = list(scaling.rows(jobs, [1, 64]))
    one = {row[0]: float(row[4].replace(",", "")) for row in found if row[1] == "1"}
    parts = (scaling.HPATCHES_ALL, scaling.PHOTOTOUR_ALL, scaling.SMALL)
    assert one["all but the large scenes"] == pytest.approx(sum(one[p] for p in parts), abs=2)
    assert one["all"] == pytest.approx(one["all but the large scenes"] + one[scaling.LARGE], abs=2)
    assert [row[1] for row in found] == ["1", "64"] * 7
