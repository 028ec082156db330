"""The stricter level: names, addresses, dates of birth, documents, plates, devices and wallets.

Most of these have no form of their own, so words beside them decide: "born", "passport", "Dr.", a street's ending, a
given name. The patterns are data: `strict_forms.txt` and `given_names.txt`. Names that stand alone, in lower case or in
another alphabet are not found. Off by default, because a memory without names remembers little about people.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from importlib.resources import files

from wellworn.ingest.pii.secrets import Finding, patterns

_NO_NAMES = ("The", "This", "That", "There", "Then", "When", "What", "Sir", "Madam", "All", "Team", "Both", "Customer")


@functools.cache
def _forms() -> tuple[list[tuple[str, re.Pattern[str]]], frozenset[str]]:
    """Types with their patterns, and the given names."""
    names = files(__package__).joinpath("given_names.txt").read_text("utf-8").split()
    return patterns("strict_forms.txt"), frozenset(names)


def strict_findings(text: str) -> Iterator[Finding]:
    """Everything of the stricter level in a text in plain form."""
    forms, names = _forms()
    for type_, form in forms:
        for found in form.finditer(text):
            span = found.span("v" if "v" in form.groupindex else 0)
            first = found["given"] if "given" in form.groupindex else None
            written = text[slice(*span)].rstrip(" .,'’-")
            if (first is None or first in names) and written.partition(" ")[0] not in _NO_NAMES:
                yield Finding(span[0], span[0] + len(written), type_, " ".join(written.casefold().split()))
