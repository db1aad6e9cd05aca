"""A folder of papers with one small table, as an installed package brings it."""

from contextlib import contextmanager

from packages import installed

SOURCE = "from pathlib import Path\nFOLDER = Path(__file__).parent / 'papers'\n"
RECIPE = """
epochs = 4
steps_per_epoch = 2
held_out = 0
[method]
name = "small_training:Contrast"
pairs = 16
[network]
name = "small_training:Small"
[optimiser]
lr = 0.05
"""
ITEM = """
title = "A small table"
sources = ["Toy paper, Table 1"]
rows = ["method"]
columns = ["trained on"]
mean = {{ title = "mean" }}
figure = {{ kind = "bars" }}

[cell]
protocol = "phototour"
score = "mean/fpr95"
test = ["yosemite"]

[axes.method]
"Mean" = {{ model = "meanstd", published = {{ method = "Mean" }} }}
"Small" = {{ recipe = "{recipe}" }}
"Fast" = {{ recipe = "{recipe}", settings = ["optimiser.lr=0.1"] }}

[axes."trained on"]
"Liberty" = {{ train = ["liberty"] }}
"Notre Dame" = {{ train = ["notredame"] }}
"""
BUDGET = """
about = "steps of a test"
precision = "float32"
onnx = false
seeds = 2
points = 2
[places.liberty]
sample = "phototour"
part = "astronaut"
[places.notredame]
sample = "phototour"
part = "camera"
[places.yosemite]
sample = "phototour"
part = "coffee"
"""


@contextmanager
def toy_papers(folder, **items):
    """Install the paper "toy" with these items, or with the item `table1`, and the budget "toy"."""
    papers = folder / "papers"
    (papers / "budgets").mkdir(parents=True)
    (papers / "toy").mkdir()
    recipe = folder / "small.toml"
    recipe.write_text(RECIPE)
    (papers / "budgets" / "toy.toml").write_text(BUDGET)
    for name, text in (items or {"table1": ITEM}).items():
        (papers / "toy" / f"{name}.toml").write_text(text.format(recipe=recipe))
    with installed(folder, "some-papers", SOURCE, papers={"toy": "FOLDER"}):
        yield papers
