"""Which existing entries a new one is linked to, as a plan over values.

| condition                       | link         | at most |
|---------------------------------|--------------|---------|
| same session                    | `context_of` | 2       |
| at least two shared tags        | `related_to` | 3       |
| less than five minutes apart    | `follows`    | 1       |
| nearly identical text           | `similar_to` | 3       |

The store is asked for the neighbours; this module decides. Fan-out is bounded, and so is the number of rows
looked at, in a bank of any size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

from wellworn.core.values import Link, LinkType
from wellworn.store.port import IndexRecord, Neighbour, NewEntry, Tx

MAX_CONTEXT, MAX_RELATED, MAX_SIMILAR = 2, 3, 3
SHARED_TAGS = 2
FOLLOWS_WITHIN = timedelta(minutes=5)
SIMILAR_JACCARD = 0.8


def links_for(tx: Tx, record: NewEntry) -> list[Link]:
    """The automatic links of an entry that is about to be added."""
    entry = record.entry
    latest = tx.latest(entry.partition)
    if latest is None:
        return []
    session = tx.session_tail(entry.partition, entry.session_id, MAX_CONTEXT) if entry.session_id else []
    shares = len(entry.tags) >= SHARED_TAGS
    related = tx.sharing_tags(entry.partition, entry.tags, SHARED_TAGS, MAX_RELATED) if shares else []
    similar = tx.near(entry.partition, record.index.near, MAX_SIMILAR) if record.index.near != (0, 0) else []
    return list(plan_links(record, latest=latest, session=session, related=related, similar=similar))


def plan_links(
    record: NewEntry,
    *,
    latest: Neighbour | None,
    session: Sequence[Neighbour],
    related: Sequence[Neighbour],
    similar: Sequence[Neighbour],
) -> Iterator[Link]:
    """Links from the new entry to its neighbours, strongest rule first."""
    entry = record.entry

    def link(to: Neighbour, type_: LinkType, confidence: float = 1.0, *, back: bool = False) -> Link:
        source, target = (to.id, entry.id) if back else (entry.id, to.id)
        return Link(
            source=source, target=target, type=type_, confidence=confidence, automatic=True, created_at=entry.created_at
        )

    yield from (link(to, "context_of") for to in session)
    yield from (link(to, "related_to") for to in related)
    for to in similar:
        alike = jaccard(record.index, to.index) if to.index is not None else 0.0
        if alike >= SIMILAR_JACCARD:
            yield link(to, "similar_to", round(alike, 4))
    if latest is not None and abs(entry.at - latest.at) < FOLLOWS_WITHIN:
        yield link(latest, "follows", back=entry.at < latest.at)  # what happened later follows what happened earlier


def jaccard(a: IndexRecord, b: IndexRecord) -> float:
    """Shared terms over all terms of two texts."""
    shared = len(set(a.terms.tolist()) & set(b.terms.tolist()))  # a dozen terms: quicker than sorting arrays
    return shared / max(1, len(a.terms) + len(b.terms) - shared)
