"""The protocols as rows of facts, for which no data are opened."""

from harness.catalogue import ProtocolRow

HEADLINES = {
    "eth": "total/observations",
    "hpatches/matching": "matching/map",
    "hpatches/retrieval": "retrieval/map",
    "hpatches/verification": "verification/map",
    "oxford": "map",
    "phototour": "mean/fpr95",
    "phototour/snn": "mean/snn-map",
    "romepatches": "test/map",
}


def protocols() -> list[ProtocolRow]:
    """A row for each protocol."""
    return [ProtocolRow(name, headline) for name, headline in HEADLINES.items()]
