"""Domains: what a strategy is about, in dotted names. `web.admin` is one domain; `web.*` is `web` and all below it.

Kept as tags, because every store filters by them: an entry of `web.admin` has `domain:web.admin`, `domain:web.admin.*`
and `domain:web.*`, so that a domain and each of its prefixes is one tag to ask for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from wellworn.core.errors import InvalidInput

TAG = "domain:"
ANY = "*"
MAX_PARTS = 8
MAX_CHARS = 120
_PART = re.compile(r"[\w-]+")


def checked_domain(domain: object) -> str:
    """A domain to keep a strategy under, in lower case; empty for none."""
    if not isinstance(domain, str):
        raise InvalidInput("domain", f"must be text, not {type(domain).__name__}")
    name = domain.strip().lower()
    if not name:
        return ""
    parts = name.split(".")
    if len(name) > MAX_CHARS or len(parts) > MAX_PARTS or not all(_PART.fullmatch(part) for part in parts):
        remedy = f"use up to {MAX_PARTS} words with dots between them, as in web.admin"
        raise InvalidInput("domain", f"{name[:60]!r} is not a domain", remedy)
    return name


def domain_tags(domain: str) -> list[str]:
    """The tags of an entry of a domain: its own, and one for every prefix that finds it."""
    name = checked_domain(domain)
    if not name:
        return []
    parts = name.split(".")
    prefixes = [".".join(parts[:n]) for n in range(len(parts), 0, -1)]
    return [TAG + name, *(f"{TAG}{prefix}.*" for prefix in prefixes)]


def wanted_tags(pattern: str | None) -> list[str]:
    """The tag of what is of this domain (`web.admin`) or at and below this one (`web.*`); none when all is wanted."""
    if pattern is None or (isinstance(pattern, str) and pattern.strip() in ("", ANY)):
        return []
    if isinstance(pattern, str) and pattern.strip().endswith(".*"):
        return [f"{TAG}{checked_domain(pattern.strip()[:-2])}.*"]
    return [TAG + checked_domain(pattern)]


def domain_of(tags: Sequence[str]) -> str:
    """The domain that an entry's tags name; the first, when merging gave it several. Empty for none."""
    own = [tag[len(TAG) :] for tag in tags if tag.startswith(TAG) and not tag.endswith(".*")]
    return own[0] if own else ""


def within(domain: str, pattern: str | None) -> bool:
    """Whether a domain is meant by a pattern."""
    wanted = wanted_tags(pattern)
    return not wanted or wanted[0] in domain_tags(domain)
