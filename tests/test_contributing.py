"""The examples of CONTRIBUTING.md work as they are printed."""

import re
import tomllib

import numpy as np
import pytest
from checkout import ROOT

from harness import contracts
from zoo.training.groups import Groups
from zoo.training.recipe import Recipe

TEXT = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
DESCRIPTOR, WRAPPER, METHOD, PROTOCOL = re.findall(r"```python\n(.*?)```", TEXT, re.S)
(RECIPE,) = re.findall(r"```toml\n(.*?)```", TEXT, re.S)
*LINES, MIRROR = re.findall(r"```diff\n(.*?)```", TEXT, re.S)


def made(source):
    names = {}
    exec(compile(source, "CONTRIBUTING.md", "exec"), names)
    return names


def test_the_descriptor_keeps_every_law():
    laws = contracts.check_descriptor(made(DESCRIPTOR)["extremes"]())
    assert not [f"{law.name}: {law.detail}" for law in laws if not law.passed]


def test_the_wrapped_descriptor_keeps_every_law():
    wrapped = made(WRAPPER)["halves"](made(DESCRIPTOR)["extremes"]())
    assert wrapped.dim == 1
    laws = contracts.check_descriptor(wrapped)
    assert not [f"{law.name}: {law.detail}" for law in laws if not law.passed]


def test_the_protocol_keeps_every_law():
    laws = contracts.check_protocol(made(PROTOCOL)["pairs"]())
    assert not [f"{law.name}: {law.detail}" for law in laws if not law.passed]


def test_the_method_draws_the_batches_that_its_recipe_asks_for():
    recipe = tomllib.loads(RECIPE)
    options = {name: value for name, value in recipe["method"].items() if name != "name"}
    method = made(METHOD)["NPairs"](**options)
    point = np.arange(600) // 3
    rows = method.sampler(Groups.of(point, point), 0)(0).rows
    assert len(rows) == 2 * method.pairs_per_step() == 2 * options["pairs"]
    Recipe.model_validate({**recipe, "name": "npairs", "data": ("x",)})


EXAMPLES = [*zip(LINES, (DESCRIPTOR, WRAPPER, METHOD, PROTOCOL), strict=True)]
KINDS = ["descriptor", "wrapper", "method", "protocol"]


@pytest.mark.parametrize(("diff", "source"), EXAMPLES, ids=KINDS)
def test_a_line_names_a_group_of_entry_points_and_an_object_of_its_example(diff, source):
    head, line = (text[1:] for text in diff.splitlines())
    assert head in (ROOT / "pyproject.toml").read_text("utf-8").splitlines()
    name, place = re.fullmatch(r'(\w+) = "[\w.]+:(\w+)"', line).groups()
    assert place in made(source) and name in TEXT


def test_the_mirror_is_added_where_the_file_has_that_row():
    before = "".join(f"{line[1:]}\n" for line in MIRROR.splitlines() if line[0] in " -")
    assert before in (ROOT / "protocols/mirrors.py").read_text("utf-8")
