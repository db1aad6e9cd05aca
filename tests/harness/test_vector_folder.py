"""Folders of CSV files in the official HPatches form."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from harness import Block, Dataset, vector_folder
from harness.distances import ANGLE, DISTANCES, HAMMING, L2
from harness.evaluation import describe
from harness.vector_folder import VectorFolder, open_folder, write


def block(name, size):
    return Block(name, size, "0" * 64, lambda: np.zeros((size, 65, 65), np.uint8))


def folder_of(tmp_path, text, **about):
    """A folder of one file, v_wall/e1.csv."""
    file = tmp_path / "mine" / "v_wall" / "e1.csv"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    if about:
        (tmp_path / "mine" / "descriptor.json").write_text(json.dumps(about))
    return tmp_path / "mine"


def read(tmp_path, text, size, **about):
    return open_folder(folder_of(tmp_path, text, **about)).read(block("v_wall/e1", size))


SHAPES = hnp.array_shapes(min_dims=2, max_dims=2, min_side=2, max_side=9)


@settings(deadline=None)  # the first example imports pandas
@given(
    hnp.arrays(
        np.float32, SHAPES, elements=st.floats(width=32, allow_infinity=False, allow_nan=False)
    )
)
def test_numbers_written_are_read_with_every_bit(tmp_path_factory, vectors):
    root = tmp_path_factory.mktemp("numbers")
    write(root, "v_wall/e1", vectors, L2)
    found = open_folder(root).read(block("v_wall/e1", len(vectors)))
    assert found.dtype == np.float32
    assert found.tobytes() == vectors.tobytes()  # -0.0 too


@settings(deadline=None)
@given(hnp.arrays(np.uint8, hnp.array_shapes(min_dims=2, max_dims=2, max_side=9)))
def test_packed_bits_written_are_read_again(tmp_path_factory, vectors):
    root = tmp_path_factory.mktemp("bits")
    write(root, "v_wall/e1", vectors, HAMMING)
    (root / "descriptor.json").write_text('{"distance": "hamming"}')
    np.testing.assert_array_equal(open_folder(root).read(block("v_wall/e1", len(vectors))), vectors)


def test_bits_that_do_not_fill_a_byte_keep_their_number(tmp_path):
    bits = np.random.default_rng(0).integers(0, 2, (4, 13), dtype=np.uint8)
    packed = np.packbits(bits, axis=1)
    write(tmp_path, "a/ref", packed, HAMMING, dim=13)
    (tmp_path / "descriptor.json").write_text('{"distance": "hamming"}')
    folder = open_folder(tmp_path)
    assert folder.dim == 13
    np.testing.assert_array_equal(folder.read(block("a/ref", 4)), packed)


def test_no_more_digits_are_written_than_a_float32_has(tmp_path):
    write(tmp_path, "a/ref", np.array([[0.5, 157, 0.1]], np.float32), L2)
    assert (tmp_path / "a/ref.csv").read_text() == "0.5,157,0.100000001\n"


def test_bits_are_written_as_columns_of_0_and_1(tmp_path):
    write(tmp_path, "a/ref", np.array([[0b10110000], [1]], np.uint8), HAMMING)
    assert (tmp_path / "a/ref.csv").read_text() == "1,0,1,1,0,0,0,0\n0,0,0,0,0,0,0,1\n"


def test_no_rows_are_written_and_read(tmp_path):
    write(tmp_path, "a/e1", np.empty((0, 3), np.float32), L2)
    write(tmp_path, "a/ref", np.ones((1, 3), np.float32), L2)
    assert open_folder(tmp_path).read(block("a/e1", 0)).shape == (0, 3)


@pytest.mark.parametrize(
    "text",
    ["1,2.5\n-3,4e-3\n", "1;2.5\n-3;4e-3\n", "1,2.5\r\n-3,4e-3\r\n", "1,2.5\r-3,4e-3\r",
     "   1.00000,   2.50000\n  -3.00000,   0.00400\n", "1,2.5\n-3,4e-3\n\n",
     "\ufeff1,2.5\n-3,4e-3\n"],
    ids=["comma", "semicolon", "windows", "old mac", "%10.5f", "blank line", "byte order"],
)  # fmt: skip
def test_the_forms_that_official_tools_write_are_read(tmp_path, text):
    found = read(tmp_path, text, 2)
    np.testing.assert_array_equal(found, np.array([[1, 2.5], [-3, 0.004]], np.float32))


def test_what_is_read_is_float32_and_contiguous(tmp_path):
    found = read(tmp_path, "1,2\n3,4\n", 2)
    assert found.dtype == np.float32
    assert found.flags.c_contiguous


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,2\n3,x\n", r"e1\.csv: line 2, column 2 holds 'x'; it should be a finite number"),
        ("a,b\n3,4\n", "line 1, column 1 holds 'a'; .* no header line"),
        ("1,2\n3,nan\n", "line 2, column 2 holds 'nan'"),
        ("1,2\n3,inf\n", "line 2, column 2 holds 'inf'"),
        ("1,2\n3,1e39\n", "line 2, column 2 holds '1e39'"),
        ("1,2\n3,\n", "line 2, column 2 holds ''"),
        ("1,2\n3,1_0\n", "line 2, column 2 holds '1_0'"),
        ("1,2,\n3,4,\n", "line 1, column 3 holds ''"),
        ("1,2\n\n3\n", "line 3 has 1 cells where the first line has 2"),
        ("1,2\n3,4,5\n", "line 2 has 3 cells where the first line has 2"),
        ("0,5;0,3\n1,5;0,2\n", "line 1, column 1 holds '0,5'"),
        ("1,2\n3,4\n5,6\n", r"e1\.csv has 3 rows, but v_wall/e1 has 2 patches"),
        (b"1,2\n\xff\xfe,3\n", "line 2, column 1"),
        ("1,2\n3,4", r"e1\.csv: it doesn't end with a line end, so its last number may be cut off"),
    ],
)  # fmt: skip
def test_a_fault_is_named_with_its_file_and_line(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read(tmp_path, text, 2)


@pytest.mark.parametrize("text", ["1\n2\n", "1\t2\n3\t4\n", "1 2\n3 4\n"])
def test_a_single_column_is_refused_as_a_wrong_delimiter(tmp_path, text):
    with pytest.raises(ValueError, match='one column: its cells must be separated by "," or ";"'):
        read(tmp_path, text, 2)


def test_files_of_one_folder_have_equally_many_columns(tmp_path):
    root = folder_of(tmp_path, "1,2,3\n")
    (root / "v_wall" / "e0.csv").write_text("1,2\n")
    with pytest.raises(ValueError, match=r"e1\.csv has 3 columns .* first file has 2"):
        open_folder(root).read(block("v_wall/e1", 1))


def test_a_missing_file_is_named_with_its_block(tmp_path):
    folder = open_folder(folder_of(tmp_path, "1,2\n"))
    with pytest.raises(
        FileNotFoundError,
        match=r"csv:mine has no vectors for v_boat/t5: no file .*t5\.csv; each block of the data",
    ):
        folder.read(block("v_boat/t5", 1))


@pytest.mark.parametrize("cell", ["2", "0.5", "-1"])
def test_bits_other_than_0_and_1_are_refused(tmp_path, cell):
    with pytest.raises(ValueError, match=rf"line 2, column 1 holds '{cell}'; it should be 0 or 1"):
        read(tmp_path, f"0,1\n{cell},1\n", 2, distance="hamming")


def test_bits_written_as_decimals_are_read(tmp_path):
    found = read(tmp_path, "0.00000, 1.00000\n", 1, distance="hamming")
    np.testing.assert_array_equal(found, [[0b01000000]])


def test_a_folder_without_description_bears_its_own_name_and_is_compared_by_l2(tmp_path):
    folder = open_folder(folder_of(tmp_path, "1,2\n"))
    assert (folder.name, folder.distance, folder.dim) == ("csv:mine", L2, 2)


def test_a_description_says_what_the_files_do_not(tmp_path):
    about = {"name": "x", "distance": "angle", "trained_on": ["hpatches"], "licence": "MIT"}
    folder = open_folder(folder_of(tmp_path, "1,2\n", **about))
    assert (folder.name, folder.distance, folder.trained_on, folder.licence) == (
        "csv:x", ANGLE, frozenset({"hpatches"}), "MIT",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("about", "known"),
    [({}, None), ({"trained_on": None}, None), ({"trained_on": []}, frozenset())],
)
def test_silence_about_training_is_not_taken_for_none(tmp_path, about, known):
    assert open_folder(folder_of(tmp_path, "1,2\n", **about)).trained_on == known


@pytest.mark.parametrize(("distance", "width"), [("l2", 13), ("hamming", 2)])
def test_the_width_is_that_of_the_array(tmp_path, distance, width):
    folder = open_folder(folder_of(tmp_path, ",".join("01" * 6 + "0") + "\n", distance=distance))
    assert folder.width == width == folder.read(block("v_wall/e1", 1)).shape[1]


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({"nmae": "x"}, "unknown key 'nmae'; known: name, distance, trained_on, licence"),
        ({"distance": "l1"}, "distance is 'l1'; it should be one of l2, hamming, angle"),
        ({"distance": ["l2"]}, r"distance is \['l2'\]"),
        ({"trained_on": "liberty"}, "trained_on is 'liberty'; it should be a list of data names"),
        ({"name": ""}, "name is ''"),
        ({"licence": None}, "licence is None"),
    ],
)  # fmt: skip
def test_a_description_that_is_not_understood_is_refused(tmp_path, about, message):
    with pytest.raises(ValueError, match=message):
        open_folder(folder_of(tmp_path, "1,2\n", **about))


@pytest.mark.parametrize(
    ("text", "message"), [("{", "is not JSON: Expecting"), ("[1]", r"holds \[1\]")]
)
def test_a_description_must_be_a_json_object(tmp_path, text, message):
    root = folder_of(tmp_path, "1,2\n")
    (root / "descriptor.json").write_text(text)
    with pytest.raises(ValueError, match=message):
        open_folder(root)


@pytest.mark.parametrize("trained_on", [frozenset({"b", "a"}), frozenset(), None])
@pytest.mark.parametrize("distance", DISTANCES.values(), ids=DISTANCES.keys())
def test_a_described_folder_opens_as_the_model_that_made_it(tmp_path, distance, trained_on):
    vectors = np.ones((1, 3), distance.dtype)
    write(tmp_path, "a/ref", vectors, distance)
    dim = 24 if distance is HAMMING else 3
    made = VectorFolder("csv:m", tmp_path, distance, dim, trained_on, "MIT", "0" * 64)
    vector_folder.describe_folder(tmp_path, made)
    assert replace(open_folder(tmp_path), weights="0" * 64) == made


def test_an_empty_folder_is_refused_with_the_wanted_form(tmp_path):
    with pytest.raises(ValueError, match=r"no CSV file in .*<sequence>/<strip>"):
        open_folder(tmp_path)


def test_the_hash_is_that_of_names_and_contents(tmp_path):
    hashes = {
        open_folder(folder_of(tmp_path, text)).weights for text in ("1,2\n", "1,3\n", "1,2\n")
    }
    (tmp_path / "mine" / "v_wall" / "e1.csv").rename(tmp_path / "mine" / "v_wall" / "e2.csv")
    assert len(hashes | {open_folder(tmp_path / "mine").weights}) == 3


def test_vectors_of_one_number_can_not_be_written(tmp_path):
    with pytest.raises(ValueError, match="a second, constant number changes no distance"):
        write(tmp_path, "a/ref", np.ones((2, 1), np.float32), L2)


def test_vectors_that_are_not_finite_can_not_be_written(tmp_path):
    with pytest.raises(ValueError, match="a/ref: vector 1 is not finite"):
        write(tmp_path, "a/ref", np.array([[1, 2], [np.nan, 1]], np.float32), L2)


def test_vectors_of_another_dtype_can_not_be_written(tmp_path):
    with pytest.raises(ValueError, match=r"float64 vectors .* l2 distance takes float32"):
        write(tmp_path, "a/ref", np.ones((2, 2)), L2)


def test_a_refused_write_leaves_no_file(tmp_path):
    with pytest.raises(ValueError, match="not finite"):
        write(tmp_path, "a/ref", np.full((2, 2), np.inf, np.float32), L2)
    assert not list(tmp_path.rglob("*.csv"))


@pytest.mark.data
@pytest.mark.parametrize(("name", "distance", "dim"), [("sift", L2, 128), ("brief", HAMMING, 256)])
def test_official_descriptor_files_survive_reading_and_writing(
    shared, tmp_path, name, distance, dim
):
    official = shared / "hpatches" / "mini" / "descriptors" / name
    folder = replace(open_folder(official), distance=distance)
    write(tmp_path, "v_graffiti/ref", folder.read(block("v_graffiti/ref", 100)), distance, dim=dim)
    written = (tmp_path / "v_graffiti" / "ref.csv").read_text()
    assert written == (official / "v_graffiti" / "ref.csv").read_text()


def many(tmp_path, sizes, column, *, at=0, form="%.9g", divider=",", distance=None):
    """A folder of random vectors with one more column; its files, and a data set of them."""
    rng = np.random.default_rng(0)
    root, blocks, row = tmp_path / "mine", [], 0
    for k, n in enumerate(sizes):
        vectors = rng.integers(0, 2, (n, 8)) if distance else rng.standard_normal((n, 8))
        numbers = np.array([column(i, row + i, k) for i in range(n)], float)
        lines = [
            divider.join(form % cell for cell in cells)
            for cells in np.insert(vectors, at, numbers, axis=1)
        ]
        file = root / f"v_{k}" / "e1.csv"
        file.parent.mkdir(parents=True)
        file.write_text("".join(f"{line}\n" for line in lines))
        blocks.append(block(f"v_{k}/e1", n))
        row += n
    if distance:
        (root / "descriptor.json").write_text(json.dumps({"distance": distance}))
    rows = np.arange(row)
    return open_folder(root), Dataset("toy", "all", tuple(blocks), rows, rows)


COUNTERS = {
    "from 0": lambda i, through, k: i,
    "from 1": lambda i, through, k: i + 1,
    "through all files": lambda i, through, k: through,
    "shifted in each file": lambda i, through, k: i + [5, 93, 17, 40, 2, 8, 61][k % 7],
    "scaled": lambda i, through, k: 0.001 * i,
    "backwards": lambda i, through, k: 7 - 2.5 * i,
    "scaled in each file": lambda i, through, k: (k + 1) * i,
}


@pytest.mark.parametrize("counter", COUNTERS.values(), ids=COUNTERS.keys())
@pytest.mark.parametrize(
    "form", [{}, {"at": 8}, {"at": 3, "divider": ";"}, {"form": "%.18e"}, {"form": "%10.5f"}]
)
def test_a_column_that_counts_the_rows_of_every_file_is_refused_by_name(tmp_path, counter, form):
    folder, dataset = many(tmp_path, [7, 5, 0, 1, 9], counter, **form)
    column = form.get("at", 0) + 1
    with pytest.raises(ValueError, match=rf"v_4.e1\.csv: column {column} is the number of the row"):
        describe(folder, dataset)


@pytest.mark.parametrize(
    ("sizes", "counter"),
    [
        ([2] * 8, "from 0"), ([2] * 8, "through all files"), ([2] * 8, "shifted in each file"),
        ([1] * 12, "through all files"), ([1, 2] * 6, "from 1"), ([3] * 4, "scaled in each file"),
        ([12], "from 0"),
    ],
)  # fmt: skip
def test_files_of_one_or_two_rows_decide_together(tmp_path, sizes, counter):
    folder, dataset = many(tmp_path, sizes, COUNTERS[counter])
    with pytest.raises(ValueError, match="column 1 is the number of the row"):
        describe(folder, dataset)


@pytest.mark.parametrize("sizes", [[1], [2], [3], [2, 2], [1] * 8, [7, 5, 0, 1, 9]])
def test_few_rows_or_a_column_that_counts_in_one_file_only_prove_nothing(tmp_path, sizes):
    folder, dataset = many(tmp_path, sizes, lambda i, through, k: i if k == 0 else (i * i) % 5)
    assert describe(folder, dataset).vectors.shape == (sum(sizes), 9)


def test_a_constant_column_is_no_counter(tmp_path):
    folder, dataset = many(tmp_path, [7, 5], lambda i, through, k: 3)
    assert describe(folder, dataset).vectors.shape == (12, 9)


def test_cells_that_are_left_out_do_not_hide_a_counter(tmp_path):
    folder, dataset = many(tmp_path, [9, 9], COUNTERS["from 0"])
    with pytest.raises(ValueError, match=r"v_1.e1\.csv: column 1 is the number of the row"):
        describe(folder, dataset, leave_out=["v_0"])


def test_bits_beside_a_column_that_counts_are_refused_by_name(tmp_path):
    folder, dataset = many(tmp_path, [7, 5], COUNTERS["from 0"], distance="hamming")
    with pytest.raises(ValueError, match=r"v_0.e1\.csv: line 3, .*: column 1 counts the rows"):
        describe(folder, dataset)


def test_bits_of_many_files_of_two_rows_may_count_too(tmp_path):
    folder, dataset = many(tmp_path, [2] * 20, COUNTERS["from 0"], distance="hamming")
    with pytest.raises(ValueError, match="column 1 is the number of the row"):
        describe(folder, dataset)


@pytest.mark.parametrize("options", [{}, {"index": False}, {"sep": ";"}, {"index_label": "row"}])
def test_what_pandas_writes_by_default_is_told_how_to_be_written(tmp_path, options):
    vectors = pd.DataFrame(np.random.default_rng(0).standard_normal((4, 3)))
    text = vectors.to_csv(**options)
    with pytest.raises(ValueError, match=r"e1\.csv.*header.*to_csv\(file, header=False, index=Fal"):
        read(tmp_path, text, 4)


def test_a_description_nested_too_deeply_is_named(tmp_path):
    root = folder_of(tmp_path, "1,2\n")
    (root / "descriptor.json").write_text("[" * 100_000)
    with pytest.raises(ValueError, match=r"descriptor\.json is not JSON .*nested too deeply"):
        open_folder(root)


def test_numbers_of_twenty_digits_are_read(tmp_path):
    found = read(tmp_path, "12345678901234567890,1\n-98765432109876543210,2\n", 2)
    np.testing.assert_array_equal(
        found[:, 0], np.float32([12345678901234567890, -98765432109876543210])
    )
