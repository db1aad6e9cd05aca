"""The files of tables: where they are written, and which files are left alone."""

import dataclasses

import pytest
from packages import installed
from toy import measured, toy_dataset

from harness.records import leaderboard, tables
from harness.records import record as results


def test_a_board_that_mixes_does_not_stop_the_others(tmp_path):
    good = dataclasses.replace(toy_dataset(), name="good")
    for record in (*measured("a"), *measured("c", dataset=good)):
        results.save(tmp_path, record)
    (odd,) = measured("b", dataset=toy_dataset(truth="other"))
    results.save(tmp_path, odd)
    with pytest.raises(ValueError, match="can't share a table"):
        tables.write(tmp_path)
    assert [f.parts[-3] for f in tmp_path.rglob("leaderboard.md")] == ["good"]


def test_a_board_without_records_is_removed(tmp_path):
    (record,) = measured("a")
    (other,) = measured("b", dataset=toy_dataset(name="other"))
    file = results.save(tmp_path, record)
    results.save(tmp_path, other)
    tables.write(tmp_path)
    file.unlink()
    written = tables.write(tmp_path)
    assert [one.parts[-3] for one in written] == ["other"] * 3
    assert sorted(tmp_path.rglob("leaderboard.*")) == sorted(written)


OTHERS = {
    "leaderboard.md": "mine",
    "tables/leaderboard.py": "mine",
    "tables/a/leaderboard.md": "mine",
    "tables/a/b/c/leaderboard.py": "mine",
    "tables/a/b/c/leaderboard.md": "# My results\n",
    "tables/a/b/c/leaderboard.csv": "model,dim\nx,1\n",
    "tables/a/b/c/leaderboard.tex": "% my results\n",
    "tables/a/b/c/cross_scene.csv": "",
    "tables/a/b/c/d/leaderboard.md": "mine",
    "tables/a/b/d/leaderboard.md": "# a on b, split c\n",  # copied from elsewhere
    "published/a/b/leaderboard.csv": ",".join(leaderboard.FACTS),
    "tables/a/b/e/leaderboard.csv/kept.txt": "mine",
}


@pytest.mark.parametrize("with_records", [True, False])
def test_no_file_of_others_is_removed(tmp_path, with_records):
    for place, text in OTHERS.items():
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(text)
    if with_records:
        (record,) = measured("a")
        results.save(tmp_path, record)
        assert len(tables.write(tmp_path)) == 3
    else:
        with pytest.raises(FileNotFoundError, match="no record in"):
            tables.write(tmp_path)
    assert all((tmp_path / place).read_text() == text for place, text in OTHERS.items())


def test_where_there_is_no_record_no_table_is_removed(tmp_path):
    (record,) = measured("a")
    file = results.save(tmp_path, record)
    before = {one: one.read_bytes() for one in tables.write(tmp_path)}
    file.unlink()
    with pytest.raises(FileNotFoundError, match="no record in"):
        tables.write(tmp_path)
    assert all(one.read_bytes() == contents for one, contents in before.items())


def test_a_file_of_others_in_the_place_of_a_table_stays_and_is_named(tmp_path):
    (record,) = measured("a")
    folder = tmp_path / "tables/toy/toy-data/all"
    folder.mkdir(parents=True)
    results.save(tmp_path, record)
    (folder / "leaderboard.md").write_text("# Notes\n")
    with pytest.raises(ValueError, match=r"leaderboard\.md was not written by the harness"):
        tables.write(tmp_path)
    assert (folder / "leaderboard.md").read_text() == "# Notes\n"
    assert (folder / "leaderboard.csv").is_file()


def test_a_record_that_was_changed_leads_no_table_out_of_the_results(tmp_path):
    (record,) = measured()
    file = results.save(tmp_path / "results", record)
    file.write_text(file.read_text().replace('"toy-data"', '"../../elsewhere"'))
    with pytest.raises(ValueError, match=rf"^{file} is not a record .*can't be kept under"):
        tables.write(tmp_path / "results")
    assert [found.name for found in tmp_path.iterdir()] == ["results"]


def test_the_same_records_make_the_same_bytes(tmp_path):
    for record in (*measured("a", tasks=("verification", "matching")), *measured("b")):
        results.save(tmp_path, record)
    first = {f.name: f.read_bytes() for f in tables.write(tmp_path)}
    for record in (*measured("b"), *measured("a", tasks=("matching", "verification"))):
        results.save(tmp_path / "other", record)
    assert {f.name: f.read_bytes() for f in tables.write(tmp_path / "other")} == first
    assert len(first) == 3


OWN = """
from harness.records.tables import Kind

def texts(board):
    return {".csv": f"models\\n{len(board.rows)}\\n"}

KIND = Kind("own", "models", texts)
"""


def test_a_package_contributes_tables_of_a_family(tmp_path):
    (record,) = measured("a")
    results.save(tmp_path / "results", record)
    with installed(tmp_path, "own-tables", OWN, tables={"toy": "KIND", "other": "KIND"}):
        written = tables.write(tmp_path / "results")
    folder = tmp_path / "results/tables/toy/toy-data/all"
    names = ("leaderboard.csv", "leaderboard.md", "leaderboard.tex", "own.csv")
    assert written == [folder / name for name in names]
    assert (folder / "own.csv").read_text() == "models\n1\n"


def test_a_broken_package_of_tables_does_not_stop_leaderboards(tmp_path, caplog):
    (record,) = measured("a")
    results.save(tmp_path / "results", record)
    with installed(tmp_path, "own-tables", "import nothing_of_this_name", tables={"toy": "KIND"}):
        assert len(tables.write(tmp_path / "results")) == 3
    assert "table 'toy' of own-tables 1.0" in caplog.text
