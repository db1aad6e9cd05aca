"""The facts of the models of a report."""

from checkout import ROOT

from harness import catalogue
from harness.records import record as results
from harness.report.models import models


def test_a_model_is_for_products_as_the_list_of_models_says():
    listed = catalogue.models()
    free = {one.name for one in catalogue.of_licence(listed, "permissive")}
    found = {one.name: one.in_products for one in models(results.load(ROOT / "results"))}
    assert {one.name for one in listed if found[one.name] == "yes"} == free
    assert found["hardtfeat"] == "no"  # MIT, but of images that may not be used
    assert found["adasample|signs"] == found["adasample"] == "no"
