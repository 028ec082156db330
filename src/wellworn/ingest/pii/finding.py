"""What a finder reports: where something is, of which type, and what it comes down to however it is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

TYPES = ("PRIVATE_KEY", "JWT", "API_KEY", "URL_SECRET", "EMAIL", "IBAN", "CARD", "SSN", "IP", "PHONE")
"""The built-in types, the surest first: where two overlap, the earlier one stays."""


class Finding(NamedTuple):
    """A span of a text. A tuple, because a log may hold a hundred thousand. `value` is the same for every way to
    write the same thing: it is what placeholders go by."""

    start: int
    end: int
    type: str
    value: str


Finder = Callable[[str], Iterator[Finding]]
