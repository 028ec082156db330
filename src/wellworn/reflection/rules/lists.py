"""How the word lists of the rules are written down."""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    """The words of a text, for looking up."""
    return frozenset(text.split())
