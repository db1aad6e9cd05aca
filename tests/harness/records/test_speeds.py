"""The table of speeds."""

import pandas as pd
import pytest

from harness.errors import InputError
from harness.records import speeds


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"machine": ["x", "y"]}, "several machines"),
        ({"bytes": None}, "no column bytes"),
    ],
)
def test_speeds_that_can_not_be_compared_are_refused(tmp_path, columns, reason):
    table = {"model": "m", "bytes": 1, "cores": [1, 2], "patches_per_second": 5, "machine": "x"}
    table = {name: value for name, value in (table | columns).items() if value is not None}
    pd.DataFrame(table).to_csv(tmp_path / "speed.csv", index=False)
    with pytest.raises(InputError, match=reason):
        speeds.table(tmp_path / "speed.csv")


def test_speeds_are_read_by_model_and_cores(tmp_path):
    assert speeds.read(tmp_path) == {}
    file = tmp_path / speeds.FILE
    file.parent.mkdir()
    file.write_text(
        "model,bytes,cores,patches_per_second,machine\nb,8,1,10,x\na,4,1,5,x\na,4,2,9,x\n"
    )
    found = speeds.read(tmp_path)
    assert [*found] == ["a", "b"]
    assert found["a"] == speeds.Speed(4, {1: 5, 2: 9}, "x")


def test_equal_models_are_both_on_the_front():
    assert speeds.front([(1.0, 2.0), (1.0, 2.0), (1.0, 1.0)]) == [True, True, False]
