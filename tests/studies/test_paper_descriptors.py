"""Every descriptor of the four papers has a row: models of the zoo, or a reason."""

import pytest

from harness import registry
from harness.catalogue import ListedModel
from studies import paper_descriptors
from studies.paper_descriptors import PRINTED


@pytest.mark.parametrize("printed", PRINTED, ids=lambda printed: printed.name)
def test_a_descriptor_of_the_papers_is_in_the_zoo_or_its_row_says_why_not(printed):
    assert bool(printed.models) != bool(printed.why)
    installed = registry.names("descriptors")
    assert {name.partition("|")[0] for name in printed.models} <= set(installed)


def test_a_row_without_scores_says_what_to_do():
    listed = {
        name.partition("|")[0]: ListedModel(name.partition("|")[0], "", None, False, "get it")
        for printed in PRINTED
        for name in printed.models
    }
    lines = [*paper_descriptors.page([], listed)]
    (row,) = [line for line in lines if line.startswith("| LIOP |")]
    assert "`liop`, its weights are not here: `get it`" in row
    assert sum(line.startswith("| ") for line in lines) >= len(PRINTED)
