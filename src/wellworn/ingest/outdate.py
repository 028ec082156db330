"""What ceased to hold: an entry that another replaced, with the turns it rests on and the memories that rest on it.

Nothing is removed. An outdated entry answers as of an earlier time, and is marked where it is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from wellworn.core.errors import InvalidInput
from wellworn.core.values import Entry, Link
from wellworn.ingest.replaces import SURE
from wellworn.store.events import Event, audit
from wellworn.store.port import Tx

_INSTANT = timedelta(microseconds=1)
_LAST = datetime.max.replace(tzinfo=UTC)


def outdate(tx: Tx, rivals: Sequence[tuple[Entry, float]], new: Entry, now: datetime) -> None:
    """Record what a new entry replaced, or may contradict; what was changed meanwhile is left as it is.

    `rivals` are older entries of its partition, each with the probability that the new one replaces it.
    """
    there = tx.get([new.partition], [old.id for old, _ in rivals])
    for seen, probability in rivals:
        old = there.get(seen.id)
        if old is None or old.text != seen.text or old.state != "active" or old.valid_to is not None:
            continue
        if probability >= SURE:
            _end_of(tx, old, new, now)
            outdate_sources(tx, old, new, now)
        else:
            tx.add_links(
                [
                    Link(
                        source=new.id,
                        target=old.id,
                        type="contradicts",
                        confidence=round(probability, 4),
                        automatic=True,
                        created_at=now,
                    )
                ]
            )


def outdate_sources(tx: Tx, old: Entry, new: Entry, now: datetime) -> None:
    """The turns that a replaced memory rests on go with it, and so do memories that rest on a replaced turn alone."""
    resting = [link for link in tx.links([old.id]) if link.type == "derived_from"]
    turns = [link.target for link in resting if link.source == old.id]
    memories = [link.source for link in resting if link.target == old.id]
    rests_on = {memory: 0 for memory in memories}
    for link in tx.links(memories) if memories else ():
        if link.type == "derived_from" and link.source in rests_on:
            rests_on[link.source] += 1
    ids = [*turns, *(memory for memory, count in rests_on.items() if count == 1)]
    for other in tx.get([old.partition], ids).values():
        if other.state == "active" and other.valid_to is None and other.id != new.id and other.at <= new.at:
            _end_of(tx, other, new, now)


def _end_of(tx: Tx, old: Entry, new: Entry, now: datetime) -> None:
    tx.update(superseded(old, new, None, now), change="superseded")
    tx.add_links([Link(source=new.id, target=old.id, type="supersedes", automatic=True, created_at=now)])
    audit(tx, Event(at=now, tenant=old.tenant, action="supersede", entry_id=old.id, detail={"by": new.id}))


def superseded(old: Entry, new: Entry, at: datetime | None, now: datetime, *, wrong: bool = False) -> Entry:
    """The old entry as the new one leaves it: true until then, or, when it was wrong, never to be recalled again."""
    updated_at = max(now, old.updated_at)
    if wrong:
        return replace(old, state="pruned", updated_at=updated_at)
    return replace(old, state="superseded", valid_to=_end(old, new, at, now), updated_at=updated_at)


def _end(old: Entry, new: Entry, moment: datetime | None, now: datetime) -> datetime:
    """When the old entry ceased to hold: as told, else when the new one began; never later than it ended already."""
    if moment is not None and moment <= old.valid_from:
        raise InvalidInput("at", f"{moment.isoformat()} is not after the old entry began, {old.valid_from.isoformat()}")
    end = moment or max(new.valid_from, old.valid_from)
    if end <= old.valid_from:  # both began at once: the old one ends now
        if old.valid_from == _LAST:
            raise InvalidInput("old", f"begins at {_LAST.isoformat()}, after which nothing can follow")
        end = max(now, old.valid_from + _INSTANT)
    return end if old.valid_to is None else min(end, old.valid_to)
