"""Items with the same calls, learned at different tasks: when one of them stands for all.

A word that never varied may decide ("stable", "nightly"), so an item starts with every word of its task. Only when the
same calls worked for three tasks of one shape are the words that differ between these left open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from wellworn.core.plain import to_plain
from wellworn.core.values import Entry, Link
from wellworn.ingest.remember import keep, strengthened
from wellworn.store.events import Event, audit
from wellworn.store.port import NewEntry, Tx
from wellworn.tasks.calls import common_words
from wellworn.tasks.consolidate import ended, merged
from wellworn.tasks.items import MOST_TASKS, PATTERN, NewItem, Pattern, pattern_of

SIBLINGS = 3
"""Different tasks of one shape that it takes to leave a word open."""
MOST_TWINS = 50


def join(item: NewItem, twins: Sequence[Entry]) -> tuple[NewItem, tuple[str, ...]]:
    """A new item as it is to be stored, and the stored ones with the same calls that it becomes one with."""
    known = {twin.id: pattern for twin in twins if (pattern := pattern_of(twin)).shape == item.pattern.shape}
    if item.when is not None or not known:  # a model says itself when it applies
        return item, ()
    tasks = tuple(dict.fromkeys(task for one in (*known.values(), item.pattern) for task in one.tasks))[-MOST_TASKS:]
    if len(tasks) >= SIBLINGS:
        general = item.pattern.of_task(common_words(item.pattern.shape, tasks))
        return replace(item, pattern=replace(general, tasks=tasks)), tuple(known)
    same = [id for id, one in known.items() if one.conditions == item.pattern.conditions]
    return item, tuple(same[:1])


def store(tx: Tx, record: NewEntry, item: NewItem, twins: Sequence[str], now: datetime) -> str:
    """Write an item, or strengthen one that says it already, which takes its words; others that it stands for end."""
    new = record.entry
    known = [one for one in tx.get([new.partition], twins).values() if one.state == "active"]
    known = known if tx.find_same(new.partition, new.content_hash) is None else []
    if not known:
        id = keep(tx, record, now)
        entry = tx.get([new.partition], [id])[id]
        tx.update(replace(entry, at=max(now, entry.at)), change=None)
        return id
    best, *others = sorted(known, key=lambda one: (-one.usage_count, -one.confidence, one.id))
    pattern = _with_failed(item.pattern, [pattern_of(entry) for entry in known])
    kept = replace(
        strengthened(merged(best, others, now) if others else best, new, now),
        at=max(now, best.at),
        metadata={**best.metadata, PATTERN: to_plain(pattern)},
    )
    if pattern.conditions == pattern_of(best).conditions:
        tx.update(kept, change=None)
    else:
        said = {name: getattr(new, name) for name in ("text", "title", "token_count", "content_hash")}
        tx.update(replace(kept, **said), change="generalised", index=record.index, vector=record.vector)
    audit(tx, Event(at=now, tenant=best.tenant, action="repeat", entry_id=best.id))
    for entry in others:
        tx.update(ended(entry, now), change="generalised")
        tx.add_links([Link(source=best.id, target=entry.id, type="supersedes", created_at=now)])
    return best.id


def _with_failed(pattern: Pattern, others: Sequence[Pattern]) -> Pattern:
    """With what failed at its siblings, the latest few."""
    calls = {(call.tool, str(call.args)): call for one in (*others, pattern) for call in one.failed}
    tasks = dict.fromkeys(task for one in (*others, pattern) for task in one.tasks)
    failed = tuple(calls.values())[-MOST_TASKS:] if pattern.calls else pattern.failed
    return replace(pattern, failed=failed, tasks=tuple(tasks)[-MOST_TASKS:])
