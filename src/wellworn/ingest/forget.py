"""Forgetting for good, with a receipt: rows, index, vectors, links, versions, memory, caches and, on request, turns.

Two things lie in other partitions and go too: copies that sharing made of an entry, and records that tell of a
session, such as an agent's task in a user's session.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain

from wellworn.core.clock import Clock, aware
from wellworn.core.errors import InvalidInput, NotFound
from wellworn.core.values import LAYERS, READ_BY_MODEL, Entry, Partition, Receipt, Scope
from wellworn.core.wellformed import one_line
from wellworn.ingest.outdate import hold_without, replaced_by
from wellworn.ingest.terms import terms
from wellworn.ingest.validate import checked_flag, checked_ids, checked_layer, checked_session_id
from wellworn.store.events import Event, audit
from wellworn.store.port import Record, RecordFilter, Removed, Selection, Store, StoreReader, Tx

SHARE = "share"
"""The kind of record, beside an original, that tells of one copy; it stays when the copy is taken back."""
SHARED = "shared"
"""The key of a copy's metadata that tells where it comes from."""
SHAREABLE = ("strategy", "guardrail")
"""Kinds of entries that can have been shared."""
ELSEWHERE = "elsewhere"
"""The kind of record, beside a session, that points at a record of another partition."""
RECALL, JOB = "recall", "job"
"""Kinds of records that a receipt counts by themselves."""
TASK, SEARCH, OUTCOME = "task", "search", "outcome"
"""Kinds of records that hold words of a person: of a task, and of a query."""
PATTERN, MAX_TASK_CHARS = "pattern_data", 400
"""The key of an item's metadata that tells which tasks it was learned from, and how much of each it keeps."""
_UNCOUNTED = ("outcome", "policy", "spent")
"""Kinds that a receipt does not count: they belong to a recall, or are sums."""
_NUMBERS = ("entries", "index_records", "vectors", "links", "versions", "turns", "sessions")
MOST_AT_ONCE = 2_000
"""Entries that are removed in one transaction; more are hidden first and then removed in slices."""
MOST_COMPARED = 200
"""Forgotten texts that are looked for within longer queries."""


class Forgetter:
    """Removes entries of a scope and never anything of another."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        caches: Callable[[Sequence[Partition]], int],
        before: Callable[[Tx], tuple[object, Callable[[], None]]],
        cut: Callable[[Tx, Partition, Sequence[str]], int],
    ) -> None:
        """`caches` drops what is held in memory of partitions and returns how many entries that was. `before` is called in
        the transaction, so that what is on its way to the store is forgotten too; what it returns is called after the
        commit. `cut` is called with the sessions that lost some of their turns; it returns how many jobs it dropped."""
        self._store = store
        self._clock = aware(clock)
        self._caches = caches
        self._before = before
        self._cut = cut

    def forget(
        self,
        *,
        scope: Scope,
        ids: Sequence[str] | None,
        session_id: str | None,
        everything: bool,
        layer: str | None,
        turns: bool | None,
        expired: bool = False,
    ) -> Receipt:
        """Exactly one of `ids`, `session_id` and `everything` says what goes.

        With a turn go the memories that rest on it alone. What these entries had replaced holds again. Of what only
        `expired`, exactly these ids go.
        """
        everything = checked_flag("everything", everything)
        turns = None if turns is None else checked_flag("turns", turns)
        if sum([ids is not None, session_id is not None, everything]) != 1:
            raise InvalidInput("forget", "says not exactly what to forget", "give one of ids, session_id, everything")
        if everything and turns is False:
            raise InvalidInput("turns", "cannot be kept when everything goes", "forget by ids or session_id instead")
        home = scope.home(checked_layer(layer))
        partitions = scope.partitions() if ids is not None else [home]
        with self._store.transact() as tx:
            _, committed = self._before(tx)
            now, hidden = self._clock(), None
            if ids is not None:
                removed, copied = self._by_ids(tx, partitions, checked_ids(ids), bool(turns), now, expired=expired)
            elif session_id is not None:
                removed, copied = self._by_session(tx, home, checked_session_id(session_id), turns is not False, now)
            else:
                shareable = [entry.id for entry in self._entries(home, Selection(kinds=SHAREABLE))]
                removed, copied = self._remove_tasks(tx, home, None, shareable, now)
                whole, hidden = self._whole(tx, home)
                removed.append(whole)
            parts = [*removed, *copied.values()]
            counted = _counted(parts)
            if any(counted.values()):
                event = Event(at=now, tenant=scope.tenant, action="forget")
                audit(tx, replace(event, detail={name: number for name, number in counted.items() if number}))
        committed()
        if hidden is not None:  # nobody sees it any more
            rest = self._store.clear_hidden(hidden)
            parts.append(replace(rest, entries=0))
            counted = _counted(parts)
        if not any(counted.values()):
            return Receipt(at=now, partitions=partitions, kept=self._kept(scope, partitions))
        touched = [*dict.fromkeys([*partitions, *copied])]
        return Receipt(
            **counted,
            ids=[entry_id for part in parts for entry_id in part.ids],
            cached=self._caches(touched),
            at=now,
            copies=sum(part.entries for part in copied.values()),
            partitions=touched,
            scrubbed=self._store.scrub(),
            kept=self._kept(scope, partitions),
        )

    def _whole(self, tx: Tx, home: Partition) -> tuple[Removed, int | None]:
        """Remove a partition here; or hide a large one, to be removed in slices: its number is returned then."""
        (head,) = tx.heads([home])
        if head is None or len(tx.rows(Selection(), partition_no=head.partition_no)) <= MOST_AT_ONCE:
            return tx.drop_partition(home), None
        number, ids = tx.hide_partition(home)
        return Removed(ids=ids, entries=len(ids)), number

    def _by_ids(
        self, tx: Tx, partitions: Sequence[Partition], ids: list[str], turns: bool, now: datetime, *, expired: bool
    ) -> tuple[list[Removed], dict[Partition, Removed]]:
        found = tx.get(partitions, ids)
        missing = [entry_id for entry_id in ids if entry_id not in found]
        if missing:
            raise NotFound("entry", str(missing[0]), "nothing was forgotten")
        resting: list[tuple[Entry, list[Entry], set[int]]] = []
        if not expired:
            found |= _drawn_from(tx, partitions, found)
            said = _said_in(tx, partitions, found) if turns else {}
            resting = _resting_on(tx, found)
            alone = [one for one, _, only in resting if one.partition in partitions and only & {*terms(one.text)}]
            found |= {one.id: one for one in alone} | said
            resting = _resting_on(tx, found) if said else resting
        cut = [(memory, left, only) for memory, left, only in resting if memory.id not in found]
        for memory, left, only in cut:
            _cut(tx, memory, left, only, now)
        texts = [entry.text for entry in found.values()]
        replaced = {} if expired else replaced_by(tx, {*found})
        removed: list[Removed] = []
        shareable = [id for id, entry in found.items() if entry.kind in SHAREABLE and not expired]
        copied = {memory.partition: Removed() for memory, _, _ in cut}
        copied |= self._remove_copies(tx, partitions, shareable, now)
        told = [entry for entry in found.values() if entry.kind == "episode" and entry.session_id and turns]
        for partition, session in dict.fromkeys((entry.partition, entry.session_id) for entry in told):
            of_tasks, more = self._remove_tasks(tx, partition, session, [], now, texts)
            removed += of_tasks
            copied = {one: more.get(one, Removed()) + copied.get(one, Removed()) for one in (*copied, *more)}
        gone = {id for part in copied.values() for id in part.ids}
        found = {id: entry for id, entry in found.items() if id not in gone}
        for partition in dict.fromkeys(entry.partition for entry in found.values()):
            here = [id for id, entry in found.items() if entry.partition == partition]
            removed.append(self._remove(tx, partition, Selection(ids=here), turns))
        hold_without(tx, replaced, now)
        removed.append(_blank_queries(tx, partitions, texts))
        return removed, copied

    def _by_session(
        self, tx: Tx, partition: Partition, session_id: str, turns: bool, now: datetime
    ) -> tuple[list[Removed], dict[Partition, Removed]]:
        """Everything of a session, and the memories of other sessions that its words were merged into: they hold them,
        in their text, their evidence or an older version."""
        selection = Selection(session_id=session_id)
        entries = [*self._entries(partition, selection)]
        here = {entry.id for entry in entries}
        links = tx.links(sorted(here), types=["derived_from"])
        sources = {link.source for link in links if link.target in here} - here
        derived = [*tx.get([partition], sorted(sources))]
        replaced = replaced_by(tx, {*here, *derived})
        own = [entry.id for entry in entries if entry.kind in SHAREABLE]
        if turns:
            removed, copied = self._remove_tasks(tx, partition, session_id, [*own, *derived], now)
        else:
            removed, copied = [], self._remove_copies(tx, [partition], [*own, *derived], now)
        removed.append(self._remove(tx, partition, selection, turns))
        if derived:
            removed.append(tx.remove(partition, Selection(ids=derived)))
        hold_without(tx, replaced, now)
        removed.append(_blank_queries(tx, [partition], [entry.text for entry in entries]))
        return removed, copied

    def _remove(self, tx: Tx, partition: Partition, selection: Selection, turns: bool) -> Removed:
        removed = tx.remove(partition, selection, turns=turns)
        if removed.cut:
            dropped = self._cut(tx, partition, removed.cut)
            removed = replace(removed, records=Counter(removed.records) + Counter({JOB: dropped}))
        return removed

    def _remove_tasks(
        self,
        tx: Tx,
        home: Partition,
        session_id: str | None,
        ids: Sequence[str],
        now: datetime,
        texts: Sequence[str] | None = None,
    ) -> tuple[list[Removed], dict[Partition, Removed]]:
        """Remove the tasks of agents in a session, or in any session here, with their items; and the copies of these and
        of `ids`. With `texts` only tasks that one of them asks for."""
        dropped, items = _drop_tasks(tx, home, session_id, texts)
        copied = self._remove_copies(tx, [home, *items], [*ids, *chain(*items.values())], now)
        removed = [tx.remove(partition, Selection(ids=gone)) for partition, gone in items.items()]
        return [dropped, *removed], dict.fromkeys(items, Removed()) | copied

    def _remove_copies(
        self, tx: Tx, partitions: Sequence[Partition], ids: Sequence[str], now: datetime
    ) -> dict[Partition, Removed]:
        """Remove copies that were shared of these, in other partitions of the tenant.

        A copy that others have shared in the same words stays for them, without a trace of the one that goes.
        """
        go, stay = copies_of(self._store, partitions, ids) if ids else ({}, [])
        for copy in stay:
            metadata = {key: value for key, value in copy.metadata.items() if key not in (SHARED, "origin")}
            metadata[SHARED] = {"cut": True}
            changed = replace(copy, metadata=metadata, evidence="", updated_at=max(now, copy.updated_at))
            tx.update(changed, change=None)
        return {other: tx.remove(other, Selection(ids=copies)) for other, copies in go.items()}

    def _entries(self, partition: Partition, selection: Selection) -> Iterator[Entry]:
        return (entry for page in self._store.pages([partition], selection) for _, entry in page)

    def _kept(self, scope: Scope, emptied: Sequence[Partition]) -> dict[str, int]:
        """What other layers of the scope still hold, and raw turns left in the partitions touched."""
        kept: dict[str, int] = {
            partition.layer: number
            for partition in scope.partitions()
            if partition not in emptied and (number := self._store.counts([partition], only=["entries"])["entries"])
        }
        turns = self._store.counts(emptied, only=["turns"])["turns"]
        return {**kept, "turns": turns} if turns else kept


def _blank_queries(tx: Tx, partitions: Sequence[Partition], texts: Sequence[str], *, whole: bool = False) -> Removed:
    """Blank the queries of logged recalls that hold a forgotten text, or are a part of one, and drop such searches: an
    agent's loop asks with what a person says before that is stored. With `whole` only queries that are such a text: others
    ask there too. Outcomes hold no words, save those of older releases."""
    said = [text for one in texts if (text := " ".join(one.lower().split()))]
    joined, blanked = "\n".join(said), Counter[str]()

    def has_words(query: object) -> bool:
        asked = " ".join(str(query or "").lower().split())
        if whole or not asked:
            return asked in said
        return asked in joined or any(text in asked for text in said[:MOST_COMPARED])

    for partition in partitions if said else ():
        for record in tx.records(RecordFilter(partition=partition, kinds=[RECALL, SEARCH])):
            if has_words(record.body.get("query")):
                if record.kind == RECALL:
                    tx.put_records([replace(record, body={}, rows=())])
                else:
                    tx.drop_records(RecordFilter(partition=partition, kinds=[SEARCH], keys=[record.key]))
                blanked[record.kind] += 1
        refined = tx.records(RecordFilter(partition=partition, kinds=[OUTCOME], states=["refined"]))
        for record in refined:
            if has_words(record.body.get("value", {}).get("query")):
                tx.drop_records(RecordFilter(partition=partition, kinds=[OUTCOME], keys=[record.key]))
                blanked[OUTCOME] += 1
    return Removed(records=blanked)


def _counted(parts: Sequence[Removed]) -> dict[str, int]:
    """The numbers of a receipt, from several removals."""
    counted = {name: sum(getattr(part, name) for part in parts) for name in _NUMBERS}
    kinds = sum((Counter(part.records) for part in parts), Counter[str]())
    rest = sum(number for kind, number in kinds.items() if kind not in (RECALL, JOB, *_UNCOUNTED))
    return {**counted, "recalls": kinds[RECALL], "jobs": kinds[JOB], "records": rest}


def _drawn_from(tx: Tx, partitions: Sequence[Partition], found: Mapping[str, Entry]) -> dict[str, Entry]:
    """Memories that a model wrote with words of these memories, not of turns."""
    notes = {id for id, entry in found.items() if entry.kind != "episode"}
    links = tx.links(sorted(notes), types=["derived_from"]) if notes else []
    drawn = tx.get(partitions, sorted({link.source for link in links if link.target in notes}))
    return {id: entry for id, entry in drawn.items() if entry.source == READ_BY_MODEL}


def _said_in(tx: Tx, partitions: Sequence[Partition], found: Mapping[str, Entry]) -> dict[str, Entry]:
    """The episodes of the turns that these memories rest on."""
    targets = {link.target for link in tx.links([*found], types=["derived_from"]) if link.source in found}
    return {id: entry for id, entry in tx.get(partitions, sorted(targets)).items() if entry.kind == "episode"}


def resting_with(reader: StoreReader, entry: Entry) -> list[Entry]:
    """An entry and those that rest on the same turns: the turns themselves, and the memories made of them."""
    same = reader.select([entry.partition], Selection(session_id=entry.session_id)) if entry.session_id else []
    return [entry, *(one for _, one in same if one.id != entry.id and {*one.turn_refs} & {*entry.turn_refs})]


def _resting_on(tx: Tx, gone: Mapping[str, Entry]) -> list[tuple[Entry, list[Entry], set[int]]]:
    """Memories that stay and rest on turns that go: each with the turns it rests on that stay, and the terms that only
    its turns that go have said."""
    turns = {id: entry for id, entry in gone.items() if entry.kind == "episode"}
    memories: dict[str, Entry] = {}
    rests_on: dict[str, dict[str, Entry]] = defaultdict(dict)
    for partition, session_id in dict.fromkeys((one.partition, one.session_id) for one in turns.values()):
        here = [one for _, one in tx.select([partition], Selection(session_id=session_id))] if session_id else []
        said = {number: one for one in here if one.kind == "episode" for number in one.turn_refs}
        for memory in here:
            on = [said[number] for number in memory.turn_refs if number in said and memory.kind != "episode"]
            if any(one.id in turns for one in on):
                memories[memory.id] = memory
                rests_on[memory.id] |= {one.id: one for one in on}
    links = tx.links([*turns], types=["derived_from"]) if turns else []
    memories |= tx.get(None, [link.source for link in links if link.target in turns])
    links = tx.links([*memories], types=["derived_from"]) if memories else []
    said_by = tx.get(None, [link.target for link in links if link.source in memories])
    for link in links:
        if link.source in memories and link.target in said_by and said_by[link.target].kind == "episode":
            rests_on[link.source][link.target] = said_by[link.target]
    found = []
    for id, memory in memories.items():
        if id not in gone and memory.kind != "episode":
            left = [one for one in rests_on[id].values() if one.id not in gone]
            kept = {term for one in left for term in terms(one.text)}
            only = {term for one in rests_on[id].values() if one.id in gone for term in terms(one.text)} - kept
            found.append((memory, left, only))
    return found


def _cut(tx: Tx, memory: Entry, left: Sequence[Entry], only: set[int], now: datetime) -> None:
    """Take what turns that go have said out of the evidence of a memory that stays, and out of its older states."""
    here = {number for one in left if one.session_id == memory.session_id for number in one.turn_refs}

    def without(entry: Entry) -> Entry:
        said = [re.search(rf"^[^\n:]*: {re.escape(one.text.strip())}$", entry.evidence, re.MULTILINE) for one in left]
        evidence = entry.text if entry.evidence == entry.text else "\n".join(one.group() for one in said if one)
        return replace(entry, evidence=evidence, turn_refs=[number for number in entry.turn_refs if number in here])

    history = [replace(old, entry=without(old.entry)) for old in tx.replaced(memory.id)]
    history = [old for old in history if not only & {*terms(old.entry.text)}]
    changed = replace(without(memory), updated_at=max(now, memory.updated_at))
    tx.update(changed, change=None, history=history)


def copies_of(
    store: Store, partitions: Sequence[Partition], ids: Sequence[str]
) -> tuple[dict[Partition, list[str]], list[Entry]]:
    """Copies of entries that go: ids by partition of those that go too, and those that others have shared as well.

    A copy is found by a link (`derived_from`) and by a record beside the original: links outlive an export, records a
    revocation. Copies of copies are found too. Call it inside the transaction that removes the originals.
    """
    gone, wave = set(ids), set(ids)
    go: dict[str, Entry] = {}
    stay: dict[str, Entry] = {}
    listed = _shares(store, partitions)
    while wave:
        made = {copy for original, copy in listed if original in wave}
        made |= {one.source for one in store.links(sorted(wave)) if one.type == "derived_from" and one.target in wave}
        there = store.get(None, sorted(made - gone)).values()
        found = [one for one in there if one.tenant == partitions[0].tenant and SHARED in one.metadata]
        for entry in found:
            (stay if _has_other_origin(store, entry.id, gone) else go)[entry.id] = entry
        wave = {entry.id for entry in found if entry.id in go}
        gone |= wave
        listed += _shares(store, dict.fromkeys(entry.partition for entry in found))
    by_partition: dict[Partition, list[str]] = {}
    for entry in go.values():
        by_partition.setdefault(entry.partition, []).append(entry.id)
    return by_partition, [entry for id, entry in stay.items() if id not in go]


def _shares(store: Store, partitions: Iterable[Partition]) -> list[tuple[str, str]]:
    """Original and copy of everything that was shared from these partitions."""
    return [
        (share.body["id"], share.body["copy"])
        for partition in partitions
        for share in store.records(RecordFilter(partition=partition, kinds=[SHARE]))
    ]


def _has_other_origin(store: Store, copy_id: str, gone: set[str]) -> bool:
    """Whether it was also copied from an entry that stays."""
    return any(
        link.type == "derived_from" and link.source == copy_id and link.target not in gone
        for link in store.links([copy_id])
    )


def point_at(tx: Tx, home: Partition, record: Record) -> None:
    """Write down beside a session that a record of another partition tells of it, so that it goes with the session."""
    layer, layer_id = record.home.layer, record.home.layer_id
    body = {"layer": layer, "layer_id": layer_id, "kind": record.kind, "key": record.key}
    key = f"{record.kind}:{record.key}"
    tx.put_records([replace(record, partition=home, kind=ELSEWHERE, key=key, body=body, state="", names=())])


def _drop_tasks(
    tx: Tx, home: Partition, session_id: str | None, texts: Sequence[str] | None
) -> tuple[Removed, dict[Partition, list[str]]]:
    """Drop the tasks of agents in a session, or in any session here, and what they asked with. Returns the items to
    remove, by partition: those that were learned from no other task, or say what the task was."""
    told = tx.records(RecordFilter(partition=home, kinds=[TASK], session=session_id)) if session_id else []
    for pointer in tx.records(RecordFilter(partition=home, kinds=[ELSEWHERE], session=session_id)):
        layer = next(one for one in LAYERS if one == pointer.body["layer"])
        partition = Partition(tenant=home.tenant, layer=layer, layer_id=pointer.body["layer_id"])
        told += tx.records(RecordFilter(partition=partition, kinds=[TASK], keys=[pointer.body["key"]]))
    if texts is not None:
        asking = {one_line(text) for text in texts}
        told = [record for record in told if one_line(str(record.body.get("query", ""))) in asking]
    items: dict[Partition, list[str]] = {}
    for partition in dict.fromkeys(record.home for record in told):
        here, items[partition] = [record for record in told if record.home == partition], []
        for record in here:
            tx.drop_records(RecordFilter(partition=partition, kinds=[TASK], keys=[record.key]))
        others = tx.records(RecordFilter(partition=partition, kinds=[TASK]))
        words, made = (_words_of(here)[n] - _words_of(others)[n] for n in (0, 1))
        for _, item in tx.select([partition], Selection(kinds=SHAREABLE)):
            pattern = item.metadata.get(PATTERN)
            task = pattern.get("task") if isinstance(pattern, dict) else None
            if item.id in made or task in words:
                items[partition].append(item.id)
    asked = [str(record.body.get("query", "")) for record in told]
    blanked = (_blank_queries(tx, [home], asked) + _blank_queries(tx, [*items], asked, whole=True)).records
    return Removed(records=Counter(record.kind for record in told) + Counter(blanked)), items


def _words_of(tasks: Sequence[Record]) -> tuple[set[str], set[str]]:
    """What tasks were, as their items say it, and the ids of these items."""
    words = {one_line(str(task.body.get("query", "")))[:MAX_TASK_CHARS] for task in tasks}
    return words - {""}, {id for task in tasks for id in task.body.get("entries", ())}
