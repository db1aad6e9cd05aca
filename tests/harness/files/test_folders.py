"""One way to list folders: through links, without what systems leave behind."""

import unicodedata
import zipfile

import numpy as np
import pytest
from checkout import ROOT

from harness import Block, vector_folder
from harness.data.archive import unpack
from harness.distances import L2
from harness.files.folders import at, entries, files, folders
from harness.records import record as results
from harness.records import tables
from harness.vector_folder import open_folder
from protocols import samples
from protocols.imaging import photographs, sequences

COMPOSED = unicodedata.normalize("NFC", "café")
APART = unicodedata.normalize("NFD", "café")  # as macOS writes it


def give(root, *names):
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    return root


def names(root):
    return [file.relative_to(root).as_posix() for file in files(root)]


def test_files_come_in_the_order_of_their_parts(tmp_path):
    give(tmp_path, "b", "a-b/x", "a/y", "a/x/z", "a.c")
    assert names(tmp_path) == ["a/x/z", "a/y", "a-b/x", "a.c", "b"]


def test_linked_files_and_folders_are_followed(tmp_path):
    give(tmp_path / "far", "one/a", "b")
    (tmp_path / "near").mkdir()
    (tmp_path / "near/one").symlink_to(tmp_path / "far/one")
    (tmp_path / "near/b").symlink_to("../far/b")
    assert names(tmp_path / "near") == ["b", "one/a"]
    assert [folder.name for folder in folders(tmp_path / "near")] == ["one"]


def test_two_links_to_one_folder_are_both_followed(tmp_path):
    give(tmp_path / "far", "a")
    (tmp_path / "near").mkdir()
    for name in ("x", "y"):
        (tmp_path / "near" / name).symlink_to(tmp_path / "far")
    assert names(tmp_path / "near") == ["x/a", "y/a"]


def test_loops_of_links_end(tmp_path):
    give(tmp_path, "a/x", "b/y")
    (tmp_path / "a/up").symlink_to(tmp_path)
    (tmp_path / "a/self").symlink_to(".")
    (tmp_path / "b/a").symlink_to(tmp_path / "a")
    (tmp_path / "a/b").symlink_to(tmp_path / "b")
    assert names(tmp_path) == ["a/b/y", "a/x", "b/a/x", "b/y"]


def test_a_link_to_nowhere_is_named(tmp_path):
    give(tmp_path, "v_wall/ref.csv")
    (tmp_path / "v_wall/e1.csv").symlink_to("/gone/e1.csv")
    with pytest.raises(FileNotFoundError, match=r"v_wall/e1.csv is a link to /gone/e1.csv, which"):
        files(tmp_path)
    assert [file.name for file in files(tmp_path, dead_links=True)] == ["e1.csv", "ref.csv"]


LEFT = [
    ".DS_Store", "._a", "__MACOSX/._a", "Thumbs.db", "THUMBS.DB", "desktop.ini", ".x.unfinished",
    ".git/config", "@eaDir/a",
]  # fmt: skip


def test_what_systems_leave_behind_is_passed_over(tmp_path):
    give(tmp_path, "a", *LEFT)
    (tmp_path / ".#a").symlink_to("user@host.1")  # of an editor
    assert names(tmp_path) == ["a"]
    assert [entry.name for entry in entries(tmp_path)] == ["a"]


def test_names_are_found_in_either_unicode_form(tmp_path):
    give(tmp_path, f"{APART}/{APART}.csv")
    assert at(tmp_path, f"{COMPOSED}/{COMPOSED}.csv").read_text() == f"{APART}/{APART}.csv"
    assert at(tmp_path, f"{COMPOSED}/missing") == tmp_path / APART / "missing"


def test_one_name_in_two_unicode_forms_is_refused(tmp_path):
    give(tmp_path, COMPOSED, APART)
    with pytest.raises(ValueError, match="one name in two Unicode forms"):
        entries(tmp_path)


# ---- wherever folders are read


@pytest.fixture
def vectors(tmp_path):
    """A folder of vectors, and the same with a link in place of a folder and of a file."""
    table = np.arange(12, dtype=np.float32).reshape(3, 4) / 7
    for root in ("plain", "far"):
        vector_folder.write(tmp_path / root, "v_wall/e1", table, L2)
        vector_folder.write(tmp_path / root, "v_yard/e1", table[::-1].copy(), L2)
    (tmp_path / "linked/v_yard").mkdir(parents=True)
    (tmp_path / "linked/v_wall").symlink_to(tmp_path / "far/v_wall")
    (tmp_path / "linked/v_yard/e1.csv").symlink_to(tmp_path / "far/v_yard/e1.csv")
    return tmp_path


def test_linked_vectors_are_the_vectors_they_lead_to(vectors):
    plain, linked = open_folder(vectors / "plain"), open_folder(vectors / "linked")
    assert linked.weights == plain.weights
    block = Block("v_wall/e1", 3, "0" * 64, lambda: np.zeros((3, 65, 65), np.uint8))
    np.testing.assert_array_equal(linked.read(block), plain.read(block))


def test_other_vectors_behind_a_link_have_other_weights(vectors):
    before = open_folder(vectors / "linked").weights
    vector_folder.write(vectors / "far", "v_wall/e1", np.ones((3, 4), np.float32), L2)
    assert open_folder(vectors / "linked").weights != before


def test_left_behind_files_change_no_weights(vectors):
    before = open_folder(vectors / "plain").weights
    give(vectors / "plain", "v_wall/._e1.csv", "__MACOSX/v_wall/._e1.csv")
    assert open_folder(vectors / "plain").weights == before


def test_linked_photographs_are_found(tmp_path):
    give(tmp_path / "far", "b.JPG", "day/c.png", "._b.jpg", "notes.txt")
    give(tmp_path / "near", "a.jpg")
    (tmp_path / "near/trip").symlink_to(tmp_path / "far")
    assert photographs.find(tmp_path / "near") == ["a.jpg", "trip/b.JPG", "trip/day/c.png"]


def test_a_dead_link_among_photographs_is_named(tmp_path):
    give(tmp_path, "a.jpg")
    (tmp_path / "b.jpg").symlink_to("gone.jpg")
    with pytest.raises(FileNotFoundError, match=r"b\.jpg is a link to gone\.jpg"):
        photographs.find(tmp_path)


def test_a_dead_link_in_place_of_a_sequence_is_named(tmp_path):
    (tmp_path / "v_wall").symlink_to("gone")
    with pytest.raises(FileNotFoundError, match="v_wall is a link to gone"):
        sequences.find(tmp_path)


def test_a_fingerprint_sees_linked_folders_and_no_left_behind_file(tmp_path):
    give(tmp_path / "plain", "x/a")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked/x").symlink_to(tmp_path / "plain/x")
    assert samples.fingerprint(tmp_path / "linked") == samples.fingerprint(tmp_path / "plain")
    before = samples.fingerprint(tmp_path / "plain")
    give(tmp_path / "plain", ".DS_Store")
    assert samples.fingerprint(tmp_path / "plain") == before
    give(tmp_path / "plain", "x/b")
    assert samples.fingerprint(tmp_path / "plain") != before


def test_records_behind_a_link_are_read(tmp_path):
    give(tmp_path / "far", "mini/matching/a.json")
    (tmp_path / "results/records").mkdir(parents=True)
    (tmp_path / "results/records/hpatches").symlink_to(tmp_path / "far")
    with pytest.raises(ValueError, match=r"matching/a\.json is not a record"):  # it was looked at
        results.load(tmp_path / "results")


def test_tables_behind_a_link_are_not_removed(tmp_path):
    give(tmp_path / "far", "leaderboard.csv", "leaderboard.md")
    (tmp_path / "results/tables/hpatches/set").mkdir(parents=True)
    (tmp_path / "results/tables/hpatches/set/full").symlink_to(tmp_path / "far")
    with pytest.raises(FileNotFoundError, match="no record"):
        tables.write(tmp_path / "results")
    assert names(tmp_path / "far") == ["leaderboard.csv", "leaderboard.md"]


def test_left_behind_members_of_an_archive_are_not_unpacked(tmp_path):
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as packed:
        for name in ("set/a.txt", "__MACOSX/set/._a.txt", "set/.DS_Store", "set/._a.txt"):
            packed.writestr(name, name)
    assert list(unpack(tmp_path / "set.zip", tmp_path / "out")) == ["set/a.txt"]
    assert sorted(p.name for p in (tmp_path / "out").rglob("*")) == ["a.txt", "set"]


def test_an_archive_of_left_behind_members_alone_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as packed:
        packed.writestr("__MACOSX/._a", "x")
    with pytest.raises(ValueError, match="it holds no file"):
        unpack(tmp_path / "set.zip", tmp_path / "out")


def test_every_reader_lists_folders_by_the_one_way():
    """Path.rglob passes over linked folders on Python 3.11.

    Two files look at what was just written, hidden files too: what is synced, and what kills leave.
    """
    root = ROOT
    for package in ("harness", "zoo", "protocols", "studies", "benchmarks"):
        for file in (root / package).rglob("*.py"):
            if file.name in ("atomic.py", "kills.py"):
                continue
            text = file.read_text()
            for way in (".rglob(", "os.walk(", "scandir(", "listdir("):
                assert way not in text, f"{file} lists a folder by {way}"
