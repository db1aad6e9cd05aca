"""Reads text files of data sets: UTF-8 with or without a byte order mark, with any line ends.

All line ends become "\\n".
"""

import json
from pathlib import Path
from typing import Any

from harness.errors import InputError

CUT = "it doesn't end with a line end, so its last number may be cut off"


def read(file: Path) -> str:
    """The text of a file.

    Raises:
        SystemRefusedError: if there is no such file.
        InputError: if it is not UTF-8; names the file.
    """
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{file} is not UTF-8 text (byte {error.start} can't be read): save it as UTF-8, or get"
            " it again"
        ) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_table(file: Path) -> str:
    """The text of a file of numbers; refuses a file that may be cut off.

    Programs that write such files end them with a line end. Without it, the last number may have
    lost digits.

    Raises:
        SystemRefusedError: if there is no such file.
        InputError: if it is not UTF-8, or doesn't end with a line end; names the file.
    """
    text = read(file)
    must_be_whole(text, file)
    return text


def must_be_whole(text: str, file: Path) -> None:
    """Refuse a text of numbers if its last number may be cut off."""
    if text.strip() and not text.rstrip(" \t").endswith("\n"):
        raise InputError(f"{file}: {CUT}; get it again, or add the line end if it is whole")


def read_json(file: Path) -> Any:
    """The value in a JSON file.

    Raises:
        SystemRefusedError: if there is no such file.
        InputError: if it is not JSON; names the file.
    """
    text = read(file)
    try:
        return json.loads(text)
    except RecursionError as error:
        raise InputError(f"{file} is not JSON that can be read: it is nested too deeply") from error
    except ValueError as error:  # also a number with more digits than Python converts
        raise InputError(f"{file} is not JSON: {error}") from error


def number(word: str) -> float:
    """The number in an ASCII word; refuses "1_000" and non-ASCII digits, which `float` accepts.

    Raises:
        InputError: if the word is not a number; quotes it.
    """
    if "_" in word or not word.isascii():
        raise InputError(f"{word[:40]!r} is not a number")
    try:
        return float(word)
    except ValueError as error:
        raise InputError(f"{word[:40]!r} is not a number") from error
