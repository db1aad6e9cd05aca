"""Tables and figures of papers as items of `harness reproduce`, with budgets and claims."""

from pathlib import Path

FOLDER = Path(__file__).parent
