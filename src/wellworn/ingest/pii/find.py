"""Every finder over a text, and which finding stays where two overlap."""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import itemgetter

from wellworn.ingest.pii.contact import emails, phones, social_security
from wellworn.ingest.pii.finding import TYPES, Finder, Finding
from wellworn.ingest.pii.money import accounts, cards
from wellworn.ingest.pii.network import addresses, url_secrets
from wellworn.ingest.pii.reading import plain
from wellworn.ingest.pii.secrets import api_keys, private_keys, web_tokens

PLACEHOLDER = re.compile(r"\[(?!(?:AKIA|ASIA|ABIA|ACCA)[A-Z]{16}\])[A-Z][A-Z_]{0,40}(?:_\d{1,12})?\]")
"""A type in brackets; not the one kind of key that may have nothing but capitals."""
_HINT = re.compile(
    r"\d|(?<![\s\[\]])@[\w\[]|:[0-9A-Fa-f]{0,4}:|[?&;][\w.-]{1,64}=[^\s\[\]]{4}|[\w-]{16}|-----|eyJ|"
    r"[Bb](?:earer|asic)\s|[Kk][Ee][Yy][\"']?\s{0,4}[:=]"
)
"""Nothing is found in a text without one of these outside of placeholders, and most texts have none."""
_FINDERS: tuple[Finder, ...] = (
    private_keys,
    web_tokens,
    api_keys,
    url_secrets,
    emails,
    accounts,
    cards,
    social_security,
    addresses,
    phones,
)
_MARK = ""
"""The type of what is a placeholder already: before all others, and nothing to mask."""
_RANK = {type_: rank for rank, type_ in enumerate((_MARK, *TYPES))}
_START = itemgetter(0)


def find(text: str, *, others: Sequence[Finder] = ()) -> list[Finding]:
    """What is in a text, in its order, without overlaps; `others` are asked besides the rules, and give way to them."""
    read, places = plain(text)
    found: list[Finding] = []
    if _HINT.search(PLACEHOLDER.sub("[]", read) if "[" in read else read):
        found = [finding for finder in _FINDERS for finding in finder(read)]
    if places is not None:
        found = [Finding(places[start], places[end - 1] + 1, type_, value) for start, end, type_, value in found]
    for finder in others:
        found += [one for one in finder(text) if 0 <= one.start < one.end <= len(text)]
    if found and "[" in text:
        found += [Finding(mark.start(), mark.end(), _MARK, "") for mark in PLACEHOLDER.finditer(text)]
    return _apart(found) if found else []


def _apart(found: list[Finding]) -> list[Finding]:
    """The surest first, then the longest; whatever overlaps one that stays, or a placeholder, goes."""
    found.sort(key=_START)
    kept: list[Finding] = []
    first, reach = 0, found[0][1]  # where a cluster of overlapping ones begins in the list, and ends in the text
    for place, one in enumerate(found):
        if one[0] >= reach:
            kept += found[first:place] if place == first + 1 else _surest(found[first:place])
            first = place
        reach = max(reach, one[1])
    kept += found[first:] if len(found) == first + 1 else _surest(found[first:])
    return [one for one in kept if one[2] != _MARK]


def _surest(cluster: list[Finding]) -> list[Finding]:
    """Of those that hang together. Places are marked off, so the time is linear however many there are."""
    begin = cluster[0].start
    taken = bytearray(max(one.end for one in cluster) - begin)
    kept = []
    for one in sorted(cluster, key=lambda one: (_RANK.get(one.type, len(_RANK)), one.start - one.end, one.start)):
        if taken.find(1, one.start - begin, one.end - begin) < 0:
            taken[one.start - begin : one.end - begin] = b"\x01" * (one.end - one.start)
            kept.append(one)
    return sorted(kept, key=_START)
