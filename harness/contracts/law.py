"""The class Law, and a function that tries one; the checked object may raise anything."""

from collections.abc import Callable
from dataclasses import dataclass

from harness.errors import FAILURES, text_of


@dataclass(frozen=True)
class Law:
    """A sentence about behaviour, and whether it is true."""

    name: str
    passed: bool
    detail: str = ""  # the reason why it is broken, or a remark


class Broken(Exception):
    """A law is broken; the message gives the reason."""


def tried(name: str, law: Callable[[], str | None]) -> Law:
    """Try a law: it passes if its function returns; the return value is an optional remark."""
    try:
        return Law(name, True, law() or "")
    except Broken as broken:
        return Law(name, False, str(broken))
    except FAILURES as error:
        return Law(name, False, text_of(error))
