"""The headline of each protocol: the score that stands for it in lists, tables and records."""

HEADLINES = {
    "eth": "total/observations",
    "hpatches-sequences": "mma-3px",
    "hpatches/matching": "matching/map",
    "hpatches/retrieval": "retrieval/map",
    "hpatches/verification": "verification/map",
    "oxford": "map",
    "phototour": "mean/fpr95",
    "phototour/snn": "mean/snn-map",
    "romepatches": "test/map",
}
