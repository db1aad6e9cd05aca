"""Escapes names for Markdown, CSV files and terminals, so that they are shown as plain text.

Names of models, data, scenes and files come from other people. So "a|b" must not end a table cell,
"*x*" must not become emphasis, "=1+1" no formula, and an escape character must not move the cursor.
JSON needs no escaping.
"""

import re
import unicodedata

# Control, format (bidi overrides, zero width), surrogate, line and paragraph separator.
_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_MARKDOWN = re.compile(
    r"[\\`*\[\]<>|~#$]"  # special everywhere
    r"|&(?=#?\w+;)"  # beginning of an entity
    r"|(?<![^\W_])_+|_+(?![^\W_])"  # emphasis, unless between letters
    r"|(?<=[A-Za-z]):(?=//)|(?<=[Ww]{3})\."  # web addresses, which would become links
)
_FORMULA = "=+-@"  # first characters of a formula in spreadsheets, also in full width


def visible(text: str) -> str:
    r"""The text on one line, with control and invisible characters spelt out.

    >>> print(visible("a\x1b[31m\nb\u202e"))
    a\x1b[31m\nb\u202e
    """
    return "".join(map(_spelt, text))


def markdown(text: str) -> str:
    r"""The text escaped for a table cell, a heading or a sentence of Markdown.

    >>> print(markdown("a|b *x* <img> l2net+ m50_0 _y_"))
    a\|b \*x\* \<img\> l2net+ m50_0 \_y\_
    """
    return _MARKDOWN.sub(lambda match: "".join(f"\\{sign}" for sign in match[0]), visible(text))


def csv_cell(text: str) -> str:
    """The text escaped for a CSV cell, so that it is never a formula. Not for numbers.

    >>> csv_cell("=1+1"), csv_cell("l2net+"), csv_cell(" -x")
    ("'=1+1", 'l2net+', "' -x")
    """
    shown = visible(text)
    first = unicodedata.normalize("NFKC", shown.lstrip()[:1])
    return f"'{shown}" if first and first in _FORMULA else shown


def say(line: object) -> None:
    """Print a line on stdout, with `visible`, since it may contain names."""
    print(visible(str(line)))


def _spelt(letter: str) -> str:
    hidden = unicodedata.category(letter) in _HIDDEN
    return letter.encode("unicode_escape").decode() if hidden else letter
