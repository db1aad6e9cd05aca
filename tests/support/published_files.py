"""Published numbers small enough for a test, and files of them."""

import csv
from dataclasses import astuple, fields

from harness.records.published import PublishedNumber

COLUMNS = [field.name for field in fields(PublishedNumber)]

TOY = {
    "paper": "Toy paper",
    "where": "Table 1",
    "method": "Mean",
    "model": "mean",
    "dim": "8",
    "protocol": "toy/verification",
    "options": "",
    "data": "toy-data",
    "split": "all",
    "score": "verification/ap",
    "value": "52.8",
    "unit": "percent",
    "trained_on": "",
    "remark": "",
}


def number(**change):
    return PublishedNumber(**(TOY | change))


def write_numbers(file, *numbers):
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream, lineterminator="\n").writerows([COLUMNS, *map(astuple, numbers)])
    return file
