"""The rule by which records may share a table."""

from collections import defaultdict
from collections.abc import Sequence

from harness.errors import InputError
from harness.records.record import Record


def must_be_comparable(records: Sequence[Record]) -> None:
    """Refuse records of one data set and split that can't share a table.

    Records of one protocol with the same options agree in the sha256 of the data, the protocol's
    version, and the versions of the libraries that the protocol scores by. Records of one model
    agree in its identity: dim, distance, weights and revision. Records of different options may
    share a table; they stand in rows of their own, and are never ranked against each other.

    Raises:
        InputError: if two records differ; names both and the difference.
    """
    tasks: dict[str, Record] = {}  # the first record of a protocol with its options
    models: dict[str, Record] = {}  # the first record of a model
    libraries: dict[str, set[str]] = defaultdict(set)  # of a protocol with its options
    for one in records:
        libraries[one.protocol.title] |= {*one.protocol.libraries}
    for one in records:
        task = tasks.setdefault(one.protocol.title, one)
        model = models.setdefault(one.model.name, one)
        must_agree(one, task, "data", one.data.sha256, task.data.sha256)
        must_agree(one, task, "protocol version", one.protocol.version, task.protocol.version)
        for name in sorted(libraries[one.protocol.title]):
            versions = (r.environment.libraries.get(name) for r in (one, task))
            must_agree(one, task, f"version of {name}", *versions)
        for field, value in one.model.identity.items():
            must_agree(one, model, f"model {field}", value, model.model.identity[field])


def must_agree(one: Record, other: Record, what: str, a: object, b: object) -> None:
    """Refuse two records that differ in a fact: `a` is that of the first, `b` of the other.

    Raises:
        InputError: if they do; names both records and the fact.
    """
    if a != b:
        raise InputError(
            f"{one.model.name} by {one.protocol.title} and {other.model.name} by"
            f" {other.protocol.title} can't share a table on {one.data.name}, split"
            f" {one.data.split}: {what} is {a} and {b}; remove the record that is out of date, and"
            " evaluate again"
        )
