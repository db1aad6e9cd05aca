"""Escapes names for Markdown, LaTeX, CSV files and terminals: they are shown as plain text.

Names of models, data, scenes and files come from other people. So "a|b" must not end a table cell,
"*x*" must not become emphasis, "=1+1" no formula, and an escape character must not move the cursor.
JSON needs no escaping, and the HTML templates of `harness.report` escape by themselves.
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
_LATEX = {
    **{sign: f"\\{sign}" for sign in "#$%&_{}"},
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"{\char34}",
    "`": r"\textasciigrave{}",
    "'": r"\textquotesingle{}",
    "[": "{[}",  # after a line break it would begin an option
    "]": "{]}",
    "*": "{*}",  # after a line break, too
    "†": r"\textdagger{}",
    "‡": r"\textdaggerdbl{}",
    "—": r"\textemdash{}",
}
_LIGATURE = re.compile(r"([-,])(?=\1)")  # two hyphens would become a dash
_ACCENTS = {  # combining character -> the accent command of LaTeX
    "\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0304": "=", "\u0306": "u",
    "\u0307": ".", "\u0308": '"', "\u030a": "r", "\u030b": "H", "\u030c": "v", "\u0327": "c",
    "\u0328": "k",
}  # fmt: skip
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


def latex(text: str) -> str:
    r"""The text escaped for LaTeX, in ASCII, so that every engine and font can set it.

    A letter that no accent command of LaTeX makes is spelt as its code point.

    >>> print(latex("a_b 50% \\x{y} l2net+ é 猫"))
    a\_b 50\% \textbackslash{}x\{y\} l2net+ \'{e} U+732B
    """
    return _LIGATURE.sub(r"\1{}", "".join(map(_set, visible(text))))


def say(line: object) -> None:
    """Print a line on stdout, with `visible`, since it may contain names."""
    print(visible(str(line)))


def _spelt(letter: str) -> str:
    hidden = unicodedata.category(letter) in _HIDDEN
    return letter.encode("unicode_escape").decode() if hidden else letter


def _set(letter: str) -> str:
    """One character in LaTeX."""
    if letter in _LATEX:
        return _LATEX[letter]
    if letter.isascii():
        return letter
    base, *marks = [*unicodedata.normalize("NFKD", letter)]
    if base.isascii() and len(marks) == 1 and marks[0] in _ACCENTS:
        return f"\\{_ACCENTS[marks[0]]}{{{base}}}"
    return f"U+{ord(letter):04X}"
