"""The text by which users name a wrapped model: a model, then wrappers, as "MODEL|NAME|NAME(ARG)".

Wrappers apply from left to right. Signs inside parentheses belong to an argument, so an argument
can be an expression itself: "MODEL|concat(MODEL|root)".
"""

import re
from dataclasses import dataclass

from harness.errors import InputError

BAR = "|"


@dataclass(frozen=True)
class Call:
    """A wrapper with its arguments, as a user writes them."""

    name: str
    arguments: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The call as it is written: "pcapl(FILE)", or "root" if there are no arguments."""
        return f"{self.name}({','.join(self.arguments)})" if self.arguments else self.name


def split(text: str, sign: str) -> list[str]:
    """The parts of a text between a sign, without blanks around them.

    A sign inside parentheses does not divide the text.

    >>> split("a|concat(b,c), d", ",")
    ['a|concat(b,c)', 'd']

    Raises:
        InputError: if a parenthesis is not closed, or not opened.
    """
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if depth < 0:
            break
        if letter == sign and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    if depth:
        missing = "opening" if depth < 0 else "closing"
        raise InputError(f"{text!r} has too few {missing} parentheses")
    return [part.strip() for part in parts]


def parse(text: str) -> tuple[str, tuple[Call, ...]]:
    """The model of an expression, and its wrappers in the order in which they apply.

    >>> parse("a|concat(b|root)|signs")
    ('a', (Call(name='concat', arguments=('b|root',)), Call(name='signs', arguments=())))

    Raises:
        InputError: if the model or a wrapper is missing, or a wrapper is not NAME or NAME(ARG,...).
    """
    if BAR not in text:  # a file name may have a single parenthesis
        return text.strip(), ()
    model, *wrappers = split(text, BAR)
    if not model:
        raise InputError(f"{text!r} names no model before the first {BAR!r}: write MODEL|WRAPPER")
    return model, tuple(_call(each, text) for each in wrappers)


def calls(text: str) -> tuple[Call, ...]:
    """Wrappers without a model: "root|signs".

    Raises:
        InputError: if a wrapper is not NAME or NAME(ARG,...).
    """
    return tuple(_call(each, text) for each in split(text, BAR))


def _call(text: str, whole: str) -> Call:
    parts = re.fullmatch(r"([\w.+-]+)(?:\((.*)\))?", text, re.DOTALL)
    if parts is None:
        raise InputError(
            f"{text!r} in {whole!r} is not a wrapper: write NAME or NAME(ARG,...), and"
            f" {BAR!r} between wrappers"
        )
    arguments = split(parts[2], ",") if parts[2] else []
    if not all(arguments):
        raise InputError(f"{text!r} in {whole!r}: an argument is missing")
    return Call(parts[1], tuple(arguments))
