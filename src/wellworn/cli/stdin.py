"""Text from the command line or from standard input, decoded strictly."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

import typer

from wellworn.core.errors import InvalidInput

DASH = "-"


def text_from(words: Sequence[str]) -> str:
    """The words as one text; standard input for `-`, or for no words when something is piped in."""
    if words and list(words) != [DASH]:
        return " ".join(words)
    if not words and sys.stdin.isatty():
        raise InvalidInput("TEXT", "is missing", "give it as an argument, or pipe it in")
    return read_stdin().removesuffix("\n").removesuffix("\r")  # the line end that `echo` adds is nobody's word


def read_stdin() -> str:
    """All of standard input as UTF-8, without a byte-order mark."""
    data = typer.get_binary_stream("stdin").read()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput("standard input", f"is not UTF-8 at byte {error.start}", "convert it first") from None


def json_lines(text: str) -> list[tuple[int, dict[str, Any]]]:
    """Each line's object with its line number from 1; blank lines are skipped."""
    found: list[tuple[int, dict[str, Any]]] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            raise InvalidInput(f"line {number}", "is not JSON", 'one object a line, as in {"role": …}') from None
        if not isinstance(value, dict):
            raise InvalidInput(f"line {number}", f"is a {type(value).__name__}", "one JSON object a line")
        found.append((number, value))
    return found
