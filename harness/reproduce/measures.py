"""What measures give, kept in files by a hash of all that decides it."""

import hashlib
import json
from pathlib import Path

from pydantic import ValidationError

from harness import registry
from harness.code import code_sha256
from harness.data import training_sets
from harness.errors import ComputeError, InputError, one_line
from harness.files import atomic, texts
from harness.reproduce.bench import Bench, Subject, weights_of
from harness.reproduce.items import Cell
from harness.reproduce.outcomes import Seen


def seen_by(cell: Cell, subject: Subject, bench: Bench) -> Seen:
    """What a measure gives, kept in a file by a hash of all that decides it."""
    measure = registry.load("measures", cell.measure)
    arguments = {**cell.arguments, **bench.budget.measures.get(cell.measure, {})}
    folder = subject.folder(bench.out) if subject.training else None
    data = [bench.locate(name).training for name in cell.test]
    facts = {
        "measure": cell.measure,
        "code": code_sha256(measure.__module__),
        "arguments": arguments,
        "model": weights_of(subject, bench) if subject.training else "",
        "data": [_told(one) for one in data],
    }
    key = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    file = bench.out / "measures" / f"{cell.measure}-{key:.10}.json"
    if not file.is_file():
        try:
            made = Seen.model_validate(measure(folder, data, **arguments))
        except ValidationError as error:
            raise ComputeError(f"the measure {cell.measure} gave {one_line(error)}") from error
        atomic.write_json(file, made.model_dump(mode="json", exclude_defaults=True))
    return Seen.model_validate(texts.read_json(file))


def _told(folder: Path) -> str:
    """Hash of a folder of data, or of its files if it is in none of the known forms."""
    try:
        return training_sets.open_set(str(folder)).sha256
    except InputError:
        files = sorted(file for file in folder.iterdir() if file.is_file())
        sizes = [f"{file.name} {hashlib.sha256(file.read_bytes()).hexdigest()}" for file in files]
        return hashlib.sha256("\n".join(sizes).encode()).hexdigest()
