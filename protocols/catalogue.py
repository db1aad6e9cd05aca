"""The rows of the protocols for `harness protocols`, which opens no data."""

from harness.catalogue import ProtocolRow
from protocols.headlines import HEADLINES


def protocols() -> list[ProtocolRow]:
    """A row for each protocol."""
    return [ProtocolRow(name, headline) for name, headline in HEADLINES.items()]
