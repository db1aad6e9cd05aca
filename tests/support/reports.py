"""A small folder of results for tests of the report."""

from toy import measured, scored

from harness.records import record as results
from harness.records import speeds

EVIL = "</script><img src=x onerror=alert(1)>{{7*7}}"
SCENES = {"alpha": (0.80, 0.82, 0.81), "beta": (0.81, 0.80, 0.81), "gamma": (0.60, 0.61, 0.62)}


def write_results(root):
    """Records of three plain models, one hostile name, one binary model and one with options."""
    records = [scored(name, *values, licence="MIT") for name, values in SCENES.items()]
    records += [scored(EVIL, 0.5, 0.52, 0.51, licence=EVIL, trained_on=frozenset({"toy/scene"}))]
    records += [scored("delta", 0.40, 0.42, 0.44, trained_on=None)]
    records += [*measured("alpha", options={"ties": "official"}, licence="MIT")]
    for record in records:
        results.save(root, record)
    file = root / speeds.FILE
    file.parent.mkdir(parents=True)
    lines = [f"{name},32,1,{100 * n},here" for n, name in enumerate(SCENES, 1)]
    file.write_text("\n".join(["model,bytes,cores,patches_per_second,machine", *lines, ""]))
    return root
