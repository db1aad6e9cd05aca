"""Names that would be markup, formulas or control sequences if they were not escaped."""

HOSTILE = [
    "a|b", "a\\|b", "ends\\", "*x*", "**x**", "_x_", "__x__", "~~x~~", "`x`", "<img src=x>",
    "[text](https://example.com)", "![x](y)", "https://example.com", "www.example.com",
    "&lt;&amp;", "#x", "x #", "$x$", "[bold]x[/bold]", "[/16]", "a_b", "m50_100_0", "l2net+",
    "=1+1", "+1", "-1", "@x",
]  # fmt: skip
HIDDEN = {
    "a\nb": r"a\nb",
    "a\rb": r"a\rb",
    "a\tb": r"a\tb",
    "\x1b[2J": r"\x1b[2J",
    "\x9b2J": r"\x9b2J",
    "a\x00b": r"a\x00b",
    "\u202egnp.exe": r"\u202egnp.exe",
    "a\u200bb": r"a\u200bb",
    "a\u2028b": r"a\u2028b",
    "\udcff": r"\udcff",
    "\U000e0041": r"\U000e0041",
}
