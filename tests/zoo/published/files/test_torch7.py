"""The reader of Torch7's files: every kind of value, and the refusal of every damage."""

import struct

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch7_files import Module, written

from harness.errors import InputError
from zoo.published.files import torch7

EXAMPLE = {
    "mean": np.arange(6, dtype=np.float32).reshape(2, 3),
    "net": Module("nn.Sequential", modules={1: Module("nn.Tanh"), 2: None}, train=False),
    3: "text",
}


def read(tmp_path, data):
    file = tmp_path / "a.t7"
    file.write_bytes(data)
    return torch7.read(file)


@pytest.mark.parametrize("value", [None, True, False, 3, -2.5, 1e300, "", "weight", "\xff"])
def test_a_plain_value_is_read(tmp_path, value):
    found = read(tmp_path, written(value))
    assert found == value and type(found) is type(value)


def test_a_table_and_an_object_are_read(tmp_path):
    found = read(tmp_path, written(EXAMPLE))
    np.testing.assert_array_equal(found.pop("mean"), EXAMPLE["mean"])
    tanh = {"kind": "nn.Tanh", "fields": {}}
    assert found == {
        "net": {"kind": "nn.Sequential", "fields": {"modules": {1: tanh, 2: None}, "train": False}},
        3: "text",
    }


@pytest.mark.parametrize("dtype", ["u1", "<i8", "<f4", "<f8"])
@pytest.mark.parametrize("shape", [(5,), (2, 3), (2, 1, 3, 4)])
def test_a_tensor_has_its_shape_and_type(tmp_path, dtype, shape):
    value = np.arange(np.prod(shape)).astype(dtype).reshape(shape)
    found = read(tmp_path, written(value))
    np.testing.assert_array_equal(found, value)
    assert found.dtype == value.dtype


def test_strides_are_those_of_the_file(tmp_path):
    value = np.arange(12.0).reshape(3, 4).T
    np.testing.assert_array_equal(read(tmp_path, written(value)), value)


def test_a_value_that_occurs_twice_is_one_value(tmp_path):
    weight = np.arange(3.0)
    found = read(tmp_path, written({"a": weight, "b": weight}))
    assert found["a"] is found["b"]


def test_a_table_may_contain_itself(tmp_path):
    value: dict = {}
    value["me"] = value
    found = read(tmp_path, written(value))
    assert found["me"] is found


def test_an_old_object_without_version_is_read(tmp_path):
    data = struct.pack("<iii", 4, 1, 7) + b"nn.Tanh" + struct.pack("<iii", 3, 2, 0)
    assert read(tmp_path, data) == {"kind": "nn.Tanh", "fields": {}}


def test_a_file_that_is_cut_off_is_refused(tmp_path):
    whole = written(EXAMPLE)
    for cut in range(len(whole)):
        with pytest.raises(InputError, match=r"a\.t7 can't be read .*byte"):
            read(tmp_path, whole[:cut])


def test_a_file_that_goes_on_is_refused(tmp_path):
    with pytest.raises(InputError, match="goes on after its value"):
        read(tmp_path, written(3) + b"\0")


@pytest.mark.parametrize("tag", [6, 7, 8, -1, 1 << 30])
def test_a_function_is_refused(tmp_path, tag):
    with pytest.raises(InputError, match=f"tag {tag}: it is a function"):
        read(tmp_path, struct.pack("<ii", tag, 1))


def test_values_too_deep_inside_each_other_are_refused(tmp_path):
    data = b"".join(struct.pack("<iiiid", 3, i, 1, 1, 1.0) for i in range(10_000))
    with pytest.raises(InputError, match="deep inside each other"):
        read(tmp_path, data)


def tensor(shape, strides, first, stored):
    name, axes = b"torch.FloatTensor", len(shape)
    data = struct.pack("<iii", 4, 1, 3) + b"V 1" + struct.pack("<i", len(name)) + name
    data += struct.pack(f"<i{2 * axes + 1}q", axes, *shape, *strides, first)
    name = b"torch.FloatStorage"
    data += struct.pack("<iii", 4, 2, 3) + b"V 1" + struct.pack("<i", len(name)) + name
    return data + struct.pack("<q", stored) + bytes(4 * min(max(stored, 0), 10))


@pytest.mark.parametrize(
    ("shape", "strides", "first", "stored", "problem"),
    [
        ((1 << 40,), (0,), 1, 4, "storage of 4 numbers"),  # a bomb: one number, repeated
        ((2, 2), (2, 1), 2, 4, "goes on after its storage"),
        ((2,), (-1,), 2, 4, "storage of 4"),
        ((-2,), (1,), 1, 4, "storage of 4"),
        ((2,), (1,), 0, 4, "storage of 4"),
        ((2,), (1,), 1, 1 << 60, "bytes should follow"),
        ((2,), (1,), 1, -1, "bytes should follow"),
        ((1,) * 9, (1,) * 9, 1, 4, "9 axes"),
    ],
)
def test_a_tensor_outside_its_storage_is_refused(tmp_path, shape, strides, first, stored, problem):
    with pytest.raises(InputError, match=problem):
        read(tmp_path, tensor(shape, strides, first, stored))


def test_a_tensor_within_its_storage_is_not_refused(tmp_path):
    assert read(tmp_path, tensor((2, 2), (2, 1), 1, 4)).shape == (2, 2)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    changes=st.lists(
        st.tuples(st.integers(0, len(written(EXAMPLE)) - 1), st.integers(0, 255)), max_size=4
    )
)
def test_a_damaged_file_is_read_or_refused(tmp_path, changes):
    data = bytearray(written(EXAMPLE))
    for place, byte in changes:
        data[place] = byte
    try:
        read(tmp_path, bytes(data))
    except InputError as error:
        assert "a.t7" in str(error)
