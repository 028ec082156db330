"""What ceased to hold: an entry that another replaced, with the turns it rests on.

Nothing is removed. An outdated entry answers as of an earlier time, and is marked where it is shown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import chain

from wellworn.core.errors import InvalidInput
from wellworn.core.lazy import regex
from wellworn.core.values import Entry, Link
from wellworn.ingest.replaces import SURE, probability, says_more
from wellworn.store.events import Event, audit
from wellworn.store.port import StoreReader, Tx

INSTANT = timedelta(microseconds=1)
_LAST = datetime.max.replace(tzinfo=UTC)


def replace_older(tx: Tx, rivals: Sequence[tuple[Entry, float]], new: Entry, now: datetime) -> None:
    """Record what a new entry replaced or may contradict, and what replaced it if it is told late; what was changed
    meanwhile is left as it is.

    `rivals` are other entries of its partition, each with the probability that the newer of both replaces the older. A
    memory that rests on a replaced turn alone is replaced with it. Where a turn also says something that still holds, nothing
    ends; the link says what it lost.
    """
    there = tx.get([new.partition], [new.id, *(seen.id for seen, _ in rivals)])
    links: list[Link] = []
    for seen, chance in sorted(rivals, key=lambda rival: rival[0].at):  # the first that came after it ended it
        other = there.get(seen.id)
        if other is None or other.text != seen.text:
            continue
        old, by = (other, there[new.id]) if other.at <= new.at else (there[new.id], other)
        if not _may_end(old, by):
            continue
        if chance < SURE:
            doubt = round(chance, 4)
            links.append(
                Link(source=by.id, target=old.id, type="contradicts", confidence=doubt, automatic=True, created_at=now)
            )
            continue
        if "superseded" in (old.state, by.state) and leads(tx, old.id, by.id, "supersedes"):
            continue
        if says_more(old.text, by.text):
            links.append(Link(source=by.id, target=old.id, type="supersedes", automatic=True, created_at=now))
            continue
        for memory in _derived(tx, old):
            holds = memory.state == "active" and memory.valid_to is None
            if holds and len(_turns_of(tx, memory)) == 1:
                outdate(tx, memory, by, now, automatic=True)
        if tx.get([old.partition], [old.id])[old.id] == old:
            outdate(tx, old, by, now, automatic=True)
    tx.add_links(links)


def _may_end(old: Entry, by: Entry) -> bool:
    """Whether one entry can end where another begins: it does not begin later, and has not ended by then or by its own."""
    held = all(one.state in ("active", "superseded") for one in (old, by)) and old.valid_from <= by.valid_from
    return held and (old.valid_to is None or (old.state == "superseded" and old.valid_to > by.valid_from))


def end_with_turns(tx: Tx, memory: Entry, now: datetime) -> None:
    """End a memory that was derived only from turns that were replaced, by what replaced the last of them."""
    turns = _turns_of(tx, memory)
    if memory.state != "active" or memory.valid_to is not None or any(turn.state != "superseded" for turn in turns):
        return
    for turn in sorted(turns, key=lambda one: one.at)[-1:]:
        ids = [link.source for link in tx.links([turn.id], types=["supersedes"]) if link.target == turn.id]
        for by in sorted(tx.get([memory.partition], ids).values(), key=lambda one: one.at)[-1:]:
            outdate(tx, memory, by, now, automatic=True)


def leads(reader: StoreReader, source: str, target: str, type_: str) -> bool:
    """Whether links of one type lead from an entry to another, directly or through others."""
    seen, ahead = {source}, [source]
    while ahead:
        links = reader.links(ahead)
        ahead = [link.target for link in links if link.type == type_ and link.source in seen]
        ahead = [entry_id for entry_id in dict.fromkeys(ahead) if entry_id not in seen]
        if target in ahead:
            return True
        seen.update(ahead)
    return False


def outdate(
    tx: Tx,
    old: Entry,
    new: Entry,
    now: datetime,
    *,
    at: datetime | None = None,
    wrong: bool = False,
    automatic: bool = False,
) -> Entry:
    """End an entry that another one replaces, and the turns it was derived from. `automatic`: their words said so.

    A turn that also says something that still holds is not ended; the link from the new turn says what it lost.
    """
    ended = superseded(old, new, at, now, wrong=wrong)
    tx.update(ended, change="corrected" if wrong else "superseded")
    links = [Link(source=new.id, target=old.id, type="supersedes", automatic=automatic, created_at=now)]
    action = "correct" if wrong else "supersede"
    audit(tx, Event(at=ended.updated_at, tenant=old.tenant, action=action, entry_id=old.id, detail={"by": new.id}))
    later = _turns_of(tx, new) or [new]
    by = max(later, key=lambda turn: (turn.at, turn.position or 0))
    for turn in _turns_of(tx, old):
        if turn in later or leads(tx, turn.id, by.id, "supersedes"):
            continue
        told_on = any(memory.state in ("active", "flagged") for memory in _derived(tx, turn))
        if turn.state == "active" and not told_on and not says_more(turn.text, by.text):
            end = at if at is not None and at > turn.valid_from else None
            tx.update(superseded(turn, by, end, now), change="superseded")
        links.append(Link(source=by.id, target=turn.id, type="supersedes", automatic=automatic, created_at=now))
    tx.add_links(links)
    return ended


def hold_again(tx: Tx, old: Entry, new: Entry, now: datetime) -> None:
    """Take back what `outdate` did to an entry that `new` does not replace after all, and to the turns and memories that
    ended with it. What something else ended stays ended."""
    old_ones, new_ids = _with_evidence(tx, old), {one.id for one in _with_evidence(tx, new)}
    for one in old_ones:
        drawn = {link.source for link in tx.links([one.id], types=["supersedes"]) if link.target == one.id}
        if one.id == old.id or drawn & new_ids:
            if not any(memory.state == "superseded" for memory in _derived(tx, one, but=old)):
                for id in drawn & new_ids:  # else the new turn replaces something else that this one says
                    tx.remove_link(id, one.id, "supersedes")
            if not drawn - new_ids:
                _restore(tx, one, now)


def release(tx: Tx, new_id: str, now: datetime, *, automatic: bool) -> None:
    """Let what an entry replaced hold again, or be replaced by what came after; only what its words replaced, if `automatic`."""
    replaced = replaced_by(tx, {new_id})
    for link in tx.links([new_id], types=["supersedes"]):
        if link.source == new_id and (link.automatic or not automatic):
            tx.remove_link(new_id, link.target, "supersedes")
        else:
            replaced.pop(link.target, None)
    hold_without(tx, replaced, now)


def compare_anew(tx: Tx, new: Entry, rivals: Sequence[tuple[Entry, float]]) -> Entry:
    """Take back what the former words of an edited entry led to, and record what the present ones replace; see
    `replace_older`. Returns the entry as it stands then."""
    release(tx, new.id, new.updated_at, automatic=True)
    for link in tx.links([new.id], types=["supersedes", "contradicts"]):
        if link.automatic and link.type == "contradicts":
            tx.remove_link(link.source, link.target, link.type)
        elif link.automatic and link.target == new.id:
            hold_again(tx, new, tx.get(None, [link.source])[link.source], new.updated_at)
    if tx.get([new.partition], [new.id])[new.id].state == "active":
        replace_older(tx, rivals, new, new.updated_at)
    return tx.get([new.partition], [new.id])[new.id]


_DATE = regex(r" \(\d[^()]*\)")
"""What reflection adds to "last week"."""


def replaced_by(tx: Tx, gone: Set[str]) -> dict[str, set[str]]:
    """What entries that go have replaced, each with the ids of what stands for them then: other entries that replace it,
    what replaced those that go, and memories that were derived from them and say what replaced it."""
    links = tx.links(sorted(gone), types=["supersedes", "derived_from"])
    olds = {link.target for link in links if link.type == "supersedes" and link.source in gone} - gone
    if not olds:
        return {}
    newer, told = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    for link in (*links, *tx.links(sorted(olds), types=["supersedes", "derived_from"])):
        (newer if link.type == "supersedes" else told)[link.target].add(link.source)
    entries = tx.get(None, sorted({*olds, *chain(*told.values())}))
    texts = {id: _DATE.sub("", one.text) for id, one in entries.items()}

    def stands_for(new: str, old: str) -> bool:
        before = [texts[one] for one in (old, *told[old]) if one in texts]
        return new in texts and any(probability(one, texts[new], spoken=True) >= SURE for one in before)

    found: dict[str, set[str]] = {}
    for old in sorted(olds):
        seen, ahead = {old}, [old]
        while ahead:
            last = ahead.pop()
            drawn = told[last] - gone if last in gone else ()
            more = newer[last].union(one for one in drawn if stands_for(one, old))
            ahead += (more - seen) & gone
            seen |= more
        found[old] = seen - gone - {old}
    return found


def hold_without(tx: Tx, replaced: Mapping[str, Set[str]], now: datetime) -> None:
    """Let entries hold again that nothing replaces any more, and link the others to what does; see `replaced_by`."""
    olds = {id: old for id, old in tx.get(None, [*replaced]).items() if old.state == "superseded"}
    there = {id for id, new in tx.get(None, sorted({*chain(*replaced.values())})).items() if new.state != "pruned"}
    tx.add_links(
        [
            Link(source=new, target=old, type="supersedes", automatic=True, created_at=now)
            for old in olds
            for new in sorted(replaced[old] & there)
            if not leads(tx, old, new, "supersedes")
        ]
    )
    free = {id: old for id, old in olds.items() if replaced[id].isdisjoint(there)}
    for old in free.values():
        told = _derived(tx, old) if old.kind == "episode" else ()
        if not any(memory.state == "superseded" and memory.id not in free for memory in told):
            _restore(tx, old, now)
    for memory in tx.get(None, [*free]).values():
        end_with_turns(tx, memory, now)  # it may rest on turns that are still replaced


def _with_evidence(tx: Tx, entry: Entry) -> list[Entry]:
    """The entry, what it was derived from, and what was derived from it."""
    links = tx.links([entry.id], types=["derived_from"])
    ids = [entry.id, *(link.target if link.source == entry.id else link.source for link in links)]
    return [*tx.get([entry.partition], ids).values()]


def _restore(tx: Tx, entry: Entry, now: datetime) -> None:
    """Give an entry the state and the end that it had before it was replaced, unless they were changed since."""
    states = [*tx.replaced(entry.id)]
    ended = max((n for n, one in enumerate(states) if one.change in ("superseded", "corrected")), default=None)
    if ended is None:
        return
    before, after = states[ended].entry, states[ended + 1].entry if ended + 1 < len(states) else entry
    kept = {
        name: getattr(before, name)
        for name in ("state", "valid_to")
        if getattr(entry, name) == getattr(after, name) != getattr(before, name)
    }
    same = tx.find_same(entry.partition, entry.content_hash)
    if kept and (same is None or same.id == entry.id):  # else its words were said again since
        tx.update(replace(entry, **kept, updated_at=max(now, entry.updated_at)), change="restored")


def _turns_of(tx: Tx, entry: Entry) -> list[Entry]:
    """The turns that an entry was derived from."""
    ids = [link.target for link in tx.links([entry.id], types=["derived_from"]) if link.source == entry.id]
    return [one for one in tx.get([entry.partition], ids).values() if one.kind == "episode"]


def _derived(tx: Tx, turn: Entry, *, but: Entry | None = None) -> list[Entry]:
    """Memories that were derived from the turn, without one of them."""
    ids = [link.source for link in tx.links([turn.id], types=["derived_from"]) if link.target == turn.id]
    return [one for one in tx.get([turn.partition], ids).values() if but is None or one.id != but.id]


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
        end = max(now, old.valid_from + INSTANT)
    return end if old.valid_to is None else min(end, old.valid_to)
