"""Writes the page, the CSV file and the figure of an outcome beside it."""

from pathlib import Path

from harness.files import atomic
from harness.records import published
from harness.reproduce import figure, items, outcomes, page
from harness.reproduce.budgets import Budget
from harness.reproduce.outcomes import Outcome


def write(outcome: Outcome, budget: Budget, out: Path, results: Path) -> list[Path]:
    """Write what shows an outcome; the same outcome and published numbers give the same bytes.

    Args:
        outcome: the outcome.
        budget: its budget.
        out: folder of outcomes.
        results: folder with the published numbers.

    Raises:
        ExtraMissingError: if the item has a figure, and matplotlib is not installed; the page and
            the CSV file are written before.
    """
    found = items.find(outcome.item)
    numbers = published.read(results / published.FOLDER)
    file = outcomes.file_of(out, outcome.item, outcome.budget)
    texts = {
        ".md": page.to_markdown(found, outcome, budget, numbers),
        ".csv": page.to_csv(found, outcome, budget, numbers),
    }
    written = [file]
    for suffix, text in texts.items():
        atomic.write_text(file.with_suffix(suffix), text)
        written.append(file.with_suffix(suffix))
    drawn = figure.to_svg(found, outcome)
    if drawn is not None:
        atomic.write_text(file.with_suffix(".svg"), drawn)
        written.append(file.with_suffix(".svg"))
    return written
