"""The items of the papers: all are there, and each names what exists."""

import pytest
from checkout import ROOT

from harness import registry
from harness.records import published
from harness.reproduce import bench, budgets, claims, cost, items, pages, published_cells, run
from zoo.training import plan

WANTED = {
    "l2net": {"table1", "table2", "figure2", "figure3a", "figure3b", "figure3c"},
    "mixed-context": {"figure1", "figure4", "figure6", "table1", "figure7", "wrong-labels"},
    "doap": {"table1", "figure4", "figure5", "table2", "figure6", "figure7", "figure8"},
    "adasample": {"table1", "table2", "table3", "figure2", "figure3"},
    "adasample-v1": {"table3", "figure4"},
    "hpatches": {"whitening"},  # for a claim
}
PRINTED = {  # cells with a published number, at full
    "l2net/table1": 54, "l2net/table2": 24, "mixed-context/figure1": 3, "mixed-context/table1": 36,
    "doap/table1": 66, "doap/table2": 6, "adasample/table1": 78, "adasample/table2": 36,
    "adasample/table3": 12, "adasample-v1/table3": 100,
}  # fmt: skip
NAMES = [f"{paper}/{name}" for paper, names in WANTED.items() for name in sorted(names)]


def test_all_tables_and_figures_are_listed():
    assert sorted(items.names()) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("budget", budgets.names())
def test_every_cell_names_what_exists(name, budget):
    item = items.find(name).item
    cells = [cell for _, cell in items.cells(item, budget, budgets.find(budget).keep)]
    known = {kind: set(registry.names(kind)) for kind in ("descriptors", "protocols", "measures")}
    assert cells
    for cell in cells:
        assert bool(cell.protocol) != bool(cell.measure)
        assert cell.protocol in {"", *known["protocols"]}
        assert cell.measure in {"", *known["measures"]}
        assert cell.model in {"", *known["descriptors"]}
        assert not (cell.model and cell.recipe)
        assert cell.train or not cell.recipe
        assert cell.test or not cell.protocol


def trainings(name, budget):
    opened = budgets.find(budget)
    for _, cell in items.cells(items.find(name).item, budget, opened.keep):
        for recipe, own in ((cell.recipe, cell.settings), (cell.start, ())):
            if recipe:
                yield opened, recipe, (*cell.common, *own)


@pytest.mark.parametrize("budget", budgets.names())
def test_recipes_take_the_settings_of_all_cells(budget):
    wanted = {(recipe, own) for name in NAMES for _, recipe, own in trainings(name, budget)}
    of = budgets.find(budget)
    for recipe, own in wanted:
        settings = plan.settled(recipe, [*of.settings, *own], of.method, of.network)
        assert plan.identity(recipe, settings)


@pytest.mark.parametrize("name", NAMES)
def test_published_numbers_are_found(name):
    found = items.find(name)
    numbers = published_cells.of_item(found.item, published.read(ROOT / "results" / "published"))
    cells = [cell for _, cell in items.cells(found.item, "full", None)]
    printed = sum(bool(published_cells.of_cell(cell, numbers)) for cell in cells)
    assert printed == PRINTED.get(name, 0)
    if found.item.mean and printed and name not in ("mixed-context/table1",):
        assert published_cells.of_mean(found.item, cells[-1], numbers)


def test_claims_name_cells_of_items():
    known = claims.read()
    assert len(known) >= 18
    for claim in known:
        item = items.find(claim.item).item
        places = [at for at, _ in items.cells(item, "full", None)]
        for side in (claim.better, claim.worse):
            ends = {axis: value for axis, value in side.items() if value not in ("first", "last")}
            assert any(ends.items() <= at.items() for at in places), claim.text


def test_the_cost_of_a_known_training_is_counted():
    patches = plan.patches("adasample", [], 160_000, 3)
    assert patches == 90 * 977 * 2048
    assert plan.patches("l2net", [], 160_000, 3) == 50 * 2500 * 256
    doap = ["method.patches=512", "epochs=2", "steps_per_epoch=7"]
    assert plan.patches("doap", doap, 160_000, 3) == 2 * 7 * 512
    done = cost.Work({"l2net": 2222 * 3600}, 1, 0)
    hours, sources = cost.hours(done, cost.speeds(ROOT / "results"), cost.GPU)
    assert hours == pytest.approx(1) and "L2-Net, section 4.5" in sources[0]


def test_a_method_that_does_not_say_its_number_of_patches_is_asked_to():
    method = "method={name='small_training:Contrast'}"
    with pytest.raises(ValueError, match=r"small_training:Contrast.*define `patches_per_step`"):
        plan.patches("hardnet", [method, "steps_per_epoch=1"], 160_000, 3)


@pytest.mark.smoke
def test_every_item_runs_from_end_to_end(tmp_path):
    place = bench.bench_of("smoke", tmp_path, None, "cpu")
    for name in NAMES:
        outcome = run.reproduce(name, "smoke", place)
        assert not [one.missing for one in outcome.cells if one.missing], name
        assert all(one.values or one.seen for one in outcome.cells), name
        written = pages.write(outcome, place.budget, tmp_path, ROOT / "results")
        assert all(file.stat().st_size for file in written)
        if items.find(name).item.figure:
            assert written[-1].suffix == ".svg"
