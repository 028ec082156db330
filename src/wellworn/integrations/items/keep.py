"""Items kept on partitions: put, get, search, list, let expire, remove. A put is one transaction, durable when it returns.

Knows the store as a port, and asks the writer to embed and the searcher to rank. Knows no framework.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeVar

import numpy as np

from wellworn.core.values import Entry, Hit, Partition
from wellworn.ingest.remember import Writer
from wellworn.ingest.terms import record_of
from wellworn.integrations.items.item import (
    Item,
    Put,
    checked_key,
    end_of,
    entries_of,
    is_valid,
    item_id,
    item_of,
    piece_id,
)
from wellworn.integrations.items.value import encode, scrubbed
from wellworn.models.port import Embedder
from wellworn.search.pipeline import Searcher
from wellworn.store.port import Event, NewEntry, Removed, Selection, Store, Tx

Keep = Callable[[Item], bool]
"""Whether an item is wanted."""

PAGE = 100
PARTITIONS_AT_ONCE = 500
_FIRST_HITS = 20
_GROWTH = 16

T = TypeVar("T")


class Items:
    """The items of one memory. `source` is what their entries say they come from."""

    def __init__(
        self, store: Store, searcher: Searcher, writer: Writer, embedder: Embedder | None, *, source: str
    ) -> None:
        self._store = store
        self._searcher = searcher
        self._writer = writer
        self._embedder = embedder
        self._source = source

    def now(self) -> datetime:
        return self._writer.clock()

    # -- reading -------------------------------------------------------------------------------------------------

    def get(self, wanted: Iterable[tuple[Partition, str]]) -> dict[tuple[Partition, str], Item]:
        """The items under these keys that are there and have not expired."""
        keys = {item_id(partition, checked_key(key)): (partition, key) for partition, key in wanted}
        found = self._heads([(partition, id) for id, (partition, _) in keys.items()])
        return {keys[id]: item for id, item in found.items()}

    def _heads(self, wanted: Sequence[tuple[Partition, str]]) -> dict[str, Item]:
        """Items by their ids, expired ones left out."""
        by_partition: dict[Partition, list[str]] = {}
        for partition, id in wanted:
            by_partition.setdefault(partition, []).append(id)
        entries = [
            entry for partition, ids in by_partition.items() for entry in self._store.get([partition], ids).values()
        ]
        return {item.id: item for item in self._valid(entries)}

    def _valid(self, entries: Iterable[Entry]) -> Iterator[Item]:
        now = self.now()
        for entry in entries:
            item = item_of(entry) if is_valid(entry, now) else None
            if item is not None:
                yield item

    def search(self, query: str, *, partitions: Sequence[Partition], want: int, keep: Keep) -> list[tuple[Item, float]]:
        """The best items for a query, each with the score of its best piece."""
        known: dict[str, Item] = {}
        k = max(_FIRST_HITS, 2 * want)  # an item may have several pieces, and some items are not kept
        while True:
            found: dict[str, tuple[Item, float]] = {}
            seen = 0
            for hits in self._searcher.search(query, partitions=partitions, k=k, page=max(_FIRST_HITS, want)):
                seen += len(hits)
                best = _best_pieces(hits)
                known.update(self._of_hits([hit for id, hit in best.items() if id not in known]))
                for id, hit in best.items():
                    if id in known and id not in found and keep(known[id]):
                        found[id] = (known[id], hit.score)
                if len(found) >= want:
                    break
            if len(found) >= want or seen < k:
                return [*found.values()][:want]
            k *= _GROWTH

    def _of_hits(self, hits: Sequence[Hit]) -> dict[str, Item]:
        heads = [hit.entry for hit in hits if hit.entry.id == hit.entry.session_id]
        others = [hit.entry for hit in hits if hit.entry.id != hit.entry.session_id]
        known = self._heads([(entry.partition, entry.session_id) for entry in others if entry.session_id is not None])
        return known | {item.id: item for item in self._valid(heads)}

    def newest(self, *, partitions: Sequence[Partition]) -> Iterator[Item]:
        """Every item of these partitions, the one put last first."""
        for page in self._searcher.newest(partitions=partitions, page=PAGE):
            yield from self._valid(page)

    def holds_any(self, partition: Partition) -> bool:
        """Whether an item is there that has not expired."""
        after = 0
        while rows := self._store.select([partition], Selection(), after=after, limit=1 if not after else PAGE):
            if any(True for _ in self._valid(entry for _, entry in rows)):
                return True
            after = rows[-1][0]
        return False

    # -- writing -------------------------------------------------------------------------------------------------

    def put(self, puts: Sequence[Put]) -> None:
        """Keep all of these, or none when one is refused; of several under one key the last counts."""
        last = {(put.partition, checked_key(put.key)): put for put in puts}
        now = self.now()
        kept = self._records([put for put in last.values() if put.value is not None], now)
        gone = [put for put in last.values() if put.value is None]
        if not kept and not self._any_there(gone):
            return
        with self._writer.transact() as tx:
            for records in kept:
                _write(tx, records, now)
            removed = [_remove(tx, put.partition, item_id(put.partition, put.key), now) for put in gone]
        if any(one.entries for one in removed):
            self._let_go([put.partition for put in gone])

    def _any_there(self, puts: Sequence[Put]) -> bool:
        return any(self._store.get([put.partition], [item_id(put.partition, put.key)]) for put in puts)

    def _records(self, puts: Sequence[Put], now: datetime) -> list[list[NewEntry]]:
        """What is written of each item. Embeds all at once, so it is not for inside a transaction."""
        items = [self._entries(put, now, number) for number, put in enumerate(puts)]
        found = [entry for entries in items for entry in entries if entry.state == "active"]
        records = {record.entry.id: record for record in (self._writer.records_of(found) if found else ())}
        nowhere = None if self._embedder is None else np.zeros(self._embedder.width, dtype=np.float32)
        return [
            [records.get(e.id) or NewEntry(entry=e, index=record_of(e), vector=nowhere) for e in entries]
            for entries in items
        ]

    def _entries(self, put: Put, now: datetime, number: int) -> list[Entry]:
        if self._writer.scrubbing.on:
            scrub = self._writer.scrubber(put.partition)
            put = replace(put, value=scrubbed(put.value, scrub), texts=[[*map(scrub, run)] for run in put.texts])
        at = now + timedelta(microseconds=number)  # so that those of one batch are newest in the order they were put
        return entries_of(put, encode(put.value or {}), now, at=at, source=self._source)

    def refresh(self, items: Iterable[Item]) -> None:
        """Begin the time to live of these anew; of items that have none, or that are gone meanwhile, nothing."""
        ending = {item.id: item for item in items if item.ttl_minutes is not None}
        if not ending:
            return
        with self._writer.transact() as tx:
            now = self.now()
            for id, item in ending.items():
                pieces = tx.get([item.partition], [id] + [piece_id(id, number) for number in range(1, item.pieces)])
                head = item_of(pieces[id]) if id in pieces and is_valid(pieces[id], now) else None
                if head is not None and head.ttl_minutes is not None:
                    end = end_of(now, head.ttl_minutes)
                    for entry in pieces.values():
                        tx.update(replace(entry, valid_to=end), change=None)

    def sweep(self, partitions: Sequence[Partition]) -> list[Partition]:
        """Remove what has expired from these partitions; returns where each of the items was."""
        now = self.now()
        expired = [entry for part in _parts(partitions) for entry in self._ended(part, now)]
        if not expired:
            return []
        with self._store.transact() as tx:
            swept = [
                entry.partition
                for entry in expired
                if _remove(tx, entry.partition, entry.id, now, ended_by=now).entries
            ]
        self._let_go(swept)
        return swept

    def _ended(self, partitions: Sequence[Partition], now: datetime) -> list[Entry]:
        """First entries of the items that ended, without their values: there may be many."""
        ended: list[Entry] = []
        after = 0
        while rows := self._store.select(partitions, Selection(ended_by=now), after=after, limit=PAGE):
            ended += [replace(entry, evidence="", text="") for _, entry in rows if item_of(entry) is not None]
            after = rows[-1][0]
        return ended

    def _let_go(self, partitions: Sequence[Partition]) -> None:
        """Forget in memory and in the file's own bytes what was removed."""
        self._searcher.forget(list(dict.fromkeys(partitions)))
        self._store.scrub()

    def drop_empty(self, partitions: Iterable[Partition]) -> None:
        """Remove those of the partitions that nothing is on, names included."""
        empty = [partition for partition in dict.fromkeys(partitions) if self._is_empty(partition)]
        if not empty:
            return
        with self._store.transact() as tx:
            for partition in empty:
                if self._is_empty(partition):  # someone may have written before us; nobody can now
                    tx.drop_partition(partition)
        self._store.scrub()

    def _is_empty(self, partition: Partition) -> bool:
        return not self._store.select([partition], Selection(), limit=1) and not self._store.sessions(partition)


def _best_pieces(hits: Iterable[Hit]) -> dict[str, Hit]:
    """The best hit of each item, by the item's id, best first."""
    best: dict[str, Hit] = {}
    for hit in hits:
        if hit.entry.session_id is not None:
            best.setdefault(hit.entry.session_id, hit)
    return best


def _write(tx: Tx, records: Sequence[NewEntry], now: datetime) -> None:
    """An item in the place of the one that was under its key, if there was one."""
    head = records[0].entry
    before = tx.get([head.partition], [head.id]).get(head.id)
    old = None if before is None else item_of(before)
    if old is None:  # what was changed from outside until it is no item goes, and what is left of one
        tx.remove(head.partition, Selection(session_id=head.id))
    if before is not None and old is None:
        tx.remove(head.partition, Selection(ids=[head.id]))
    elif before is not None and is_valid(before, now):
        records = [replace(record, entry=_continued(record.entry, before)) for record in records]
    old_ids = [head.id] + [piece_id(head.id, number) for number in range(1, old.pieces)] if old is not None else []
    there = {head.id} if len(old_ids) == 1 else tx.get([head.partition], old_ids).keys()
    for record in records:
        if record.entry.id in there:
            tx.update(record.entry, change=None, index=record.index, vector=record.vector)
        else:
            tx.add(record)
    extra = old_ids[len(records) :]
    if extra:
        tx.remove(head.partition, Selection(ids=extra))
    tx.audit(Event(at=now, tenant=head.tenant, action="edit" if old_ids else "remember", entry_id=head.id))


def _continued(entry: Entry, before: Entry) -> Entry:
    """The entry as a later state of the one before it."""
    return replace(
        entry,
        created_at=before.created_at,
        at=max(entry.at, before.at),
        updated_at=max(entry.updated_at, before.updated_at),
        valid_from=min(entry.valid_from, before.valid_from),
    )


def _remove(tx: Tx, partition: Partition, id: str, now: datetime, *, ended_by: datetime | None = None) -> Removed:
    """An item with all its pieces."""
    removed = tx.remove(partition, Selection(session_id=id, ended_by=ended_by))
    if removed.entries:
        detail: dict[str, int | float | str] = {"entries": removed.entries}
        tx.audit(Event(at=now, tenant=partition.tenant, action="forget", entry_id=id, detail=detail))
    return removed


def _parts(values: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(values), PARTITIONS_AT_ONCE):
        yield values[start : start + PARTITIONS_AT_ONCE]
