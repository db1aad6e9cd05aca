"""What a law is, and how it is tried: whatever is checked may fail in any way."""

from collections.abc import Callable
from dataclasses import dataclass

from harness.errors import FAILURES


@dataclass(frozen=True)
class Law:
    """A sentence about behaviour, and whether it holds."""

    name: str
    passed: bool
    detail: str = ""  # what broke it, or a remark


class Broken(Exception):
    """Says what broke a law."""


def tried(name: str, law: Callable[[], str | None]) -> Law:
    """A law passes if its function returns; the return value is an optional remark."""
    try:
        return Law(name, True, law() or "")
    except Broken as broken:
        return Law(name, False, str(broken))
    except FAILURES as error:
        return Law(name, False, f"{type(error).__name__}: {error}")
