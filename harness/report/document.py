"""Writes the report as one HTML page that loads nothing: contents as JSON, drawn by a script.

The template escapes all that it shows. The script sets names as text. The page's policy allows only
this script and this style, by their hashes, and no connection.
"""

import base64
import hashlib
import json
from importlib import resources
from importlib.metadata import version
from typing import Any

from harness import extras
from harness.escape import visible
from harness.report.contents import Json

PAGE = resources.files("harness.report") / "page"


def to_html(contents: Json) -> str:
    """The page of some contents; the same contents give the same text."""
    with extras.needed("the report"):
        from jinja2 import Environment, StrictUndefined
        from markupsafe import Markup

    style, script = _read("page.css"), _read("files.js") + _read("page.js")
    shown = _visible(contents)
    # "ensure_ascii" and the escapes of "<", ">" and "&" keep names from ending the element.
    text = json.dumps(shown, separators=(",", ":"), allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True
    )
    return environment.from_string(_read("page.html")).render(
        contents=Markup(text),
        kinds=shown["kinds"],
        meanings=shown["meanings"],
        products=shown["products"],
        script=Markup(script),
        script_hash=_hash(script),
        style=Markup(style),
        style_hash=_hash(style),
        version=version("descriptor-harness"),
    )


def _read(name: str) -> str:
    return (PAGE / name).read_text("utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _visible(value: Any) -> Any:
    """The same value with invisible and control characters of all texts spelt out."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {_visible(name): _visible(inner) for name, inner in value.items()}
    return [_visible(inner) for inner in value] if isinstance(value, list | tuple) else value
