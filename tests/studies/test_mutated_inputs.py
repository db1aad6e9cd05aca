"""Damaged files: every reader reads or refuses them cleanly, and what is not clean is seen."""

import time
import warnings
from dataclasses import replace

import pytest

from harness.errors import InputError
from studies import foreign_files, mutated_inputs
from studies.foreign_files.reader import Reader


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
    "clean": raises(InputError, "{} is cut off"),
    "key": raises(KeyError, "x"),
    "name": raises(InputError, "it is cut off"),
    "lines": raises(InputError, "{}\nis cut off"),
    "kind": raises(AssertionError),
    "warning": lambda file: warnings.warn(f"{file} is odd", stacklevel=1),
    "slow": lambda file: time.sleep(60),
    "memory": lambda file: bytearray(4 * 10**9),
    "dead": ends,
}
WANTED = {
    "key": "a.txt: KeyError",
    "name": "a.txt: names no file: InputError: 'it is cut off'",
    "lines": "a.txt: more than one line: InputError",
    "kind": "a.txt: AssertionError",
    "warning": "a.txt: UserWarning",
    "slow": "a.txt: TooLong",
    "memory": "a.txt: MemoryError",
    "dead": "ends the process, exit status 3",
}


def test_no_reader_is_surprised_by_damaged_files(tmp_path):
    jobs = [(reader, seed) for reader in foreign_files.READERS for seed in range(4)]
    found = list(mutated_inputs.trials(jobs, tmp_path))
    assert [(one.reader, one.seed) for one in found] == [(one.name, seed) for one, seed in jobs]
    assert [one for one in found if one.outcome == mutated_inputs.UNCLEAN] == []
    assert {one.outcome for one in found} == {mutated_inputs.READ, mutated_inputs.REFUSED}


def test_each_way_to_be_unclean_is_seen_and_ends_no_other_trial(tmp_path):
    jobs = [(Reader(name, make, fails), 1) for name in FAULTS]
    found = {one.reader: one for one in mutated_inputs.trials(jobs, tmp_path, seconds=2)}
    assert list(found) == list(FAULTS)
    assert found.pop("clean").outcome == mutated_inputs.REFUSED
    assert {one.outcome for one in found.values()} == {mutated_inputs.UNCLEAN}
    for name, one in found.items():
        assert one.why.startswith(WANTED[name])


def test_a_set_that_is_not_read_as_it_was_made_is_an_error_of_the_script(tmp_path):
    vectors = next(one for one in foreign_files.READERS if one.name == "vectors")
    job = (replace(vectors, make=make), 0)
    with pytest.raises(RuntimeError, match="vectors does not read its valid set"):
        list(mutated_inputs.trials([job], tmp_path))


def test_a_seed_makes_the_same_input_again(tmp_path):
    for name in ("a.txt", "b.bin"):
        (tmp_path / name).write_bytes(bytes(range(256)))
    files = sorted(tmp_path.iterdir())
    made = [mutated_inputs.mutated(files, seed) for seed in range(200)]
    assert made == [mutated_inputs.mutated(files, seed) for seed in range(200)]
    assert {file for file, _ in made} == set(files)
    assert len({contents for _, contents in made}) > 100
