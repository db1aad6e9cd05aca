"""Every descriptor of the four papers has a row: models of the zoo, or a reason."""

import pytest
from checkout import ROOT

from harness import catalogue, registry
from harness.records import record as results
from studies import paper_descriptors
from studies.paper_descriptors import PRINTED


@pytest.mark.parametrize("printed", PRINTED, ids=lambda printed: printed.name)
def test_a_descriptor_of_the_papers_is_in_the_zoo_or_its_row_says_why_not(printed):
    assert bool(printed.models) != bool(printed.why)
    installed = registry.names("descriptors")
    assert {name.partition("|")[0] for name in printed.models} <= set(installed)


def test_a_row_without_scores_says_how_to_get_the_weights():
    listed = {row.name: row for row in catalogue.models()}
    lines = [*paper_descriptors.page([], listed)]
    assert any(line.startswith("| LIOP | ") and "`liop`, not measured |" in line for line in lines)
    (row,) = [line for line in lines if line.startswith("| GeoDesc |")]
    assert "`geodesc`, not measured: `harness weights fetch geodesc`" in row
    assert sum(line.startswith("| ") for line in lines) >= len(PRINTED)


def test_the_committed_page_is_that_of_the_records():
    listed = {row.name: row for row in catalogue.models()}
    made = "\n".join(paper_descriptors.page(results.load(ROOT / "results"), listed))
    told = "run python -m studies.paper_descriptors --results results"
    assert (ROOT / "results/studies/paper-descriptors.md").read_text("utf-8") == made, told
