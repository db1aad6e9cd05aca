"""Shows names as text and nothing else, in Markdown, CSV files and terminals.

Names of models, data, scenes and files are data of others: "a|b" is no border of a table, "*x*" no
emphasis, "=1+1" no formula, and an escape character moves no cursor. JSON needs none of this.
"""

import re
import unicodedata

# Control, format (bidi overrides, zero width), surrogate, line and paragraph separator.
_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_MARKDOWN = re.compile(
    r"[\\`*\[\]<>|~#$]"  # special wherever they stand
    r"|&(?=#?\w+;)"  # begins an entity
    r"|(?<![^\W_])_+|_+(?![^\W_])"  # emphasis, unless between letters
    r"|(?<=[A-Za-z]):(?=//)|(?<=[Ww]{3})\."  # an address, which would become a link
)
_FORMULA = "=+-@"  # what begins one in spreadsheets, in full width, too


def visible(text: str) -> str:
    r"""One line of text in which nothing is hidden: control characters are spelt out.

    >>> print(visible("a\x1b[31m\nb\u202e"))
    a\x1b[31m\nb\u202e
    """
    return "".join(map(_spelt, text))


def markdown(text: str) -> str:
    r"""Text for a table cell, a heading or a sentence of Markdown; shown as it is.

    >>> print(markdown("a|b *x* <img> l2net+ m50_0 _y_"))
    a\|b \*x\* \<img\> l2net+ m50_0 \_y\_
    """
    return _MARKDOWN.sub(lambda found: "".join(f"\\{sign}" for sign in found[0]), visible(text))


def csv_cell(text: str) -> str:
    """Text for a cell of a CSV file: no spreadsheet takes it for a formula. Not for numbers.

    >>> csv_cell("=1+1"), csv_cell("l2net+"), csv_cell(" -x")
    ("'=1+1", 'l2net+', "' -x")
    """
    shown = visible(text)
    first = unicodedata.normalize("NFKC", shown.lstrip()[:1])
    return f"'{shown}" if first and first in _FORMULA else shown


def say(line: object) -> None:
    """Print a line on stdout, in which names may stand."""
    print(visible(str(line)))


def _spelt(letter: str) -> str:
    hidden = unicodedata.category(letter) in _HIDDEN
    return letter.encode("unicode_escape").decode() if hidden else letter
