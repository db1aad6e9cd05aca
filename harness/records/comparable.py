"""The rule by which records may share a table."""

from collections import defaultdict
from collections.abc import Sequence

from harness.errors import InputError
from harness.records.record import Record


def must_be_comparable(records: Sequence[Record]) -> None:
    """Refuse records of one data set and split that can't share a table.

    Records of one protocol with the same options agree in the sha256 of the data, the protocol's
    version, and the versions of the libraries that can change the protocol's scores. Records of one
    model agree in its identity: dim, distance, weights and revision. Records with different options
    may share a table; they have rows of their own, and are never ranked against each other.

    Raises:
        InputError: if two records differ; names both and the difference.
    """
    tasks: dict[str, Record] = {}  # the first record of a protocol with its options
    models: dict[str, Record] = {}  # the first record of a model
    libraries: dict[str, set[str]] = defaultdict(set)  # of a protocol with its options
    for record in records:
        libraries[record.protocol.title] |= {*record.protocol.libraries}
    for record in records:
        task = tasks.setdefault(record.protocol.title, record)
        model = models.setdefault(record.model.name, record)
        must_agree(record, task, "data", record.data.sha256, task.data.sha256)
        must_agree(record, task, "protocol version", record.protocol.version, task.protocol.version)
        for name in sorted(libraries[record.protocol.title]):
            versions = (r.environment.libraries.get(name) for r in (record, task))
            must_agree(record, task, f"version of {name}", *versions)
        for field, value in record.model.identity.items():
            must_agree(record, model, f"model {field}", value, model.model.identity[field])


def must_agree(first: Record, second: Record, fact: str, a: object, b: object) -> None:
    """Refuse two records that differ in a fact: `a` in the first record, `b` in the second.

    Raises:
        InputError: if `a` and `b` differ; names both records and the fact.
    """
    if a != b:
        raise InputError(
            f"{first.model.name} on {first.protocol.title} and {second.model.name} on"
            f" {second.protocol.title} can't share a table on {first.data.name}, split"
            f" {first.data.split}: {fact} is {a} and {b}; remove the record that is out of date,"
            " and evaluate again"
        )
