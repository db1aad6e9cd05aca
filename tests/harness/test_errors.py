import numpy as np
import pytest

from harness.errors import HarnessError, OutOfMemory, naming


def test_a_step_that_runs_out_of_memory_is_named_once():
    with (
        pytest.raises(OutOfMemory, match=r"^drawing pairs needs more memory .*2\.00 EiB") as caught,
        naming("the whole"),
        naming("drawing pairs"),
    ):
        np.empty(1 << 58)
    assert isinstance(caught.value, HarnessError)  # told on one line, without a traceback
    assert "the whole" not in str(caught.value)
