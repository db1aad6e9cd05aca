"""The papers' tables and figures as items of `harness reproduce`, their budgets and their claims."""

from pathlib import Path

FOLDER = Path(__file__).parent
