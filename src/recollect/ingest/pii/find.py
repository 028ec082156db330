"""Every finder over a text, and which finding stays where two overlap."""

from __future__ import annotations

import re
from collections.abc import Sequence

from recollect.ingest.pii.contact import emails, phones, social_security
from recollect.ingest.pii.finding import TYPES, Finder, Finding
from recollect.ingest.pii.money import accounts, cards
from recollect.ingest.pii.network import addresses, url_secrets
from recollect.ingest.pii.reading import plain
from recollect.ingest.pii.secrets import api_keys, private_keys, web_tokens

PLACEHOLDER = re.compile(r"\[[A-Z][A-Z_]{0,40}(?:_\d{1,12})?\]")
_HINT = re.compile(r"[\d@:=]|-----|[\w-]{16}")
"""Nothing is found in a text without one of these, and most texts have none."""
_FINDERS: tuple[Finder, ...] = (
    private_keys, web_tokens, api_keys, url_secrets, emails, accounts, cards, social_security, addresses, phones,
)  # fmt: skip
_RANK = {type_: rank for rank, type_ in enumerate(TYPES)}


def find(text: str, *, others: Sequence[Finder] = ()) -> list[Finding]:
    """What is in a text, in its order, without overlaps; `others` are asked besides the rules, and give way to them."""
    read, places = plain(text)
    found: list[Finding] = []
    if _HINT.search(read):
        found = [finding for finder in _FINDERS for finding in finder(read)]
    if places is not None:
        found = [one._replace(start=places[one.start], end=places[one.end - 1] + 1) for one in found]
    for finder in others:
        found += finder(text)
    return _apart(found, text) if found else []


def _apart(found: list[Finding], text: str) -> list[Finding]:
    """The surest first, then the longest; whatever overlaps one that stays, or a placeholder, goes."""
    taken = bytearray(len(text))
    for mark in PLACEHOLDER.finditer(text):
        taken[mark.start() : mark.end()] = b"\x01" * (mark.end() - mark.start())
    kept = []
    for one in sorted(found, key=lambda one: (_RANK.get(one.type, len(_RANK)), one.start - one.end, one.start)):
        if 0 <= one.start < one.end <= len(text) and not any(taken[one.start : one.end]):
            taken[one.start : one.end] = b"\x01" * (one.end - one.start)
            kept.append(one)
    return sorted(kept, key=lambda one: one.start)
