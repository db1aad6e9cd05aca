"""Damaged files: every reader reads or refuses them cleanly, and what is not clean is seen."""

import time
import warnings
from pathlib import Path

import pytest


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "benchmarks")
    import foreign_files
    import mutated_inputs

    return foreign_files, mutated_inputs


def make(folder):
    (folder / "a.txt").write_text("1 2 3\n")


def fails(folder):
    """Reads the valid file alone, so that what follows is the reader's fault."""
    if (folder / "a.txt").read_bytes() != b"1 2 3\n":
        FAULTS[folder.name](folder / "a.txt")


def raises(kind, said="{}"):
    def fault(file):
        raise kind(said.format(file))

    return fault


def ends(file):
    import os

    os._exit(3)


FAULTS = {
    "clean": raises(ValueError, "{} is cut off"),
    "key": raises(KeyError, "x"),
    "name": raises(ValueError, "it is cut off"),
    "lines": raises(ValueError, "{}\nis cut off"),
    "kind": raises(AssertionError),
    "warning": lambda file: warnings.warn(f"{file} is odd", stacklevel=1),
    "slow": lambda file: time.sleep(60),
    "memory": lambda file: bytearray(4 * 10**9),
    "dead": ends,
}
WANTED = {
    "key": "a.txt: names no file: KeyError",
    "name": "a.txt: names no file: ValueError: 'it is cut off'",
    "lines": "a.txt: more than one line: ValueError",
    "kind": "a.txt: AssertionError",
    "warning": "a.txt: UserWarning",
    "slow": "a.txt: TooLong",
    "memory": "a.txt: MemoryError",
    "dead": "ends the process, exit status 3",
}


def test_no_reader_is_surprised_by_damaged_files(benchmark, tmp_path):
    readers, mutated = benchmark
    jobs = [(reader, seed) for reader in readers.READERS for seed in range(4)]
    found = list(mutated.trials(jobs, tmp_path))
    assert [(one.reader, one.seed) for one in found] == [(one.name, seed) for one, seed in jobs]
    assert [one for one in found if one.outcome == mutated.UNCLEAN] == []
    assert {one.outcome for one in found} == {mutated.READ, mutated.REFUSED}


def test_each_way_to_be_unclean_is_seen_and_ends_no_other_trial(benchmark, tmp_path):
    readers, mutated = benchmark
    jobs = [(readers.Reader(name, make, fails), 1) for name in FAULTS]
    found = {one.reader: one for one in mutated.trials(jobs, tmp_path, seconds=2)}
    assert list(found) == list(FAULTS)
    assert found.pop("clean").outcome == mutated.REFUSED
    assert {one.outcome for one in found.values()} == {mutated.UNCLEAN}
    for name, one in found.items():
        assert one.why.startswith(WANTED[name])


def test_a_set_that_is_not_read_as_it_was_made_is_an_error_of_the_script(benchmark, tmp_path):
    readers, mutated = benchmark
    job = (readers.Reader("vectors", make, readers.read_vectors), 0)
    with pytest.raises(RuntimeError, match="vectors does not read its valid set"):
        list(mutated.trials([job], tmp_path))


def test_a_seed_makes_the_same_input_again(benchmark, tmp_path):
    _, mutated = benchmark
    for name in ("a.txt", "b.bin"):
        (tmp_path / name).write_bytes(bytes(range(256)))
    files = sorted(tmp_path.iterdir())
    made = [mutated.mutated(files, seed) for seed in range(200)]
    assert made == [mutated.mutated(files, seed) for seed in range(200)]
    assert {file for file, _ in made} == set(files)
    assert len({contents for _, contents in made}) > 100
