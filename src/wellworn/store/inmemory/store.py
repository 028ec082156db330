"""Locks and transactions of the in-memory store, and the port itself.

There are two copies of the tables, which share their rows. Readers see the one that is served. A transaction works on
the spare one and notes what it does; committing swaps the two and plays the notes on the copy that was served until
then. Rolling back throws the spare away, and the next transaction makes a new one. So readers never wait for a
writer, and never see half a transaction.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import Any

import numpy as np

from wellworn.core.errors import StoreClosed, StoreError
from wellworn.core.values import Entry, Layer, Link, Partition, Turn
from wellworn.store.inmemory import calls
from wellworn.store.inmemory.references import broken_references
from wellworn.store.inmemory.tables import Tables, detached
from wellworn.store.inmemory.tx import InMemoryTx, Note
from wellworn.store.owned import checked_by, own_job, own_record
from wellworn.store.port import (
    Delta,
    Event,
    Flaw,
    Head,
    IndexRecord,
    Job,
    LoggedOutcome,
    LoggedRecall,
    Model,
    Record,
    Replaced,
    Selection,
    SessionHead,
    Spent,
    Tx,
    Vector,
)


class InMemoryStore:
    """A store that lives as long as its process: what `:memory:` opens, and the reference for every other engine."""

    def __init__(self) -> None:
        self._served = Tables()
        self._spare: Tables | None = Tables()
        self._reading = threading.Lock()
        self._writing = threading.Lock()
        self._writer: int | None = None  # the thread inside transact()
        self._closed = False

    @property
    def location(self) -> str:
        return ":memory:"

    # -- transactions ----------------------------------------------------------------------------------------------

    @contextmanager
    def transact(self) -> Iterator[Tx]:
        """One writer at a time; a second transaction inside the block of the first is an error."""
        with self._only_writer():
            self._check_open()
            draft, self._spare = self._spare or self._served.copy(), None
            tx = InMemoryTx(draft)
            try:
                yield tx
            finally:
                tx.end()
            self._commit(draft, tx.notes)

    def _commit(self, draft: Tables, notes: Sequence[Note]) -> None:
        with self._reading:
            old, self._served = self._served, draft
        old.advanced.clear()
        for note in notes:
            note(old)
        self._spare = old  # not before: a spare that was interrupted here would lag behind for ever

    @contextmanager
    def _only_writer(self) -> Iterator[None]:
        if self._writer == threading.get_ident():
            raise StoreError("a transaction is open in this thread already; use that one")
        with self._writing:
            self._writer = threading.get_ident()
            try:
                yield
            finally:
                self._writer = None

    @contextmanager
    def _open_tables(self) -> Iterator[Tables]:
        with self._reading:
            self._check_open()
            yield self._served

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed("this in-memory store was closed and its content is gone; open a new one")

    # -- reading, by partition -----------------------------------------------------------------------------------------

    def heads(self, partitions: Sequence[Partition]) -> list[Head | None]:
        with self._open_tables() as tables:
            boards = [tables.boards.get(partition) for partition in partitions]
            return [Head(partition_no=board.no, seq=board.seq) if board else None for board in boards]

    def delta(self, partition_no: int, since: int, *, after: int = 0, limit: int | None = None) -> Delta:
        with self._open_tables() as tables:
            return tables.delta(partition_no, since, after, limit)

    def read(self, nos: Sequence[int]) -> dict[int, Entry]:
        with self._open_tables() as tables:
            return {no: detached(tables.rows[no].entry) for no in nos if no in tables.rows}

    def alive(self, nos: Sequence[int]) -> set[int]:
        with self._open_tables() as tables:
            return {no for no in nos if no in tables.rows}

    def get(self, partitions: Sequence[Partition], ids: Sequence[str]) -> dict[str, Entry]:
        with self._open_tables() as tables:
            return tables.get(partitions, ids)

    def where(self, ids: Sequence[str]) -> dict[str, Partition]:
        with self._open_tables() as tables:
            known = (entry_id for entry_id in ids if entry_id in tables.row_of)
            return {entry_id: tables.rows[tables.row_of[entry_id]].entry.partition for entry_id in known}

    def select(
        self, partitions: Sequence[Partition], selection: Selection, *, after: int = 0, limit: int = 100
    ) -> list[tuple[int, Entry]]:
        with self._open_tables() as tables:
            page = islice(tables.matching(partitions, selection, after=after), limit)
            return [(row.no, detached(row.entry)) for row in page]

    def tagged(self, partition_no: int, tags: Sequence[str]) -> set[int]:
        with self._open_tables() as tables:
            return tables.tagged(partition_no, tags)

    def in_session(self, partition_no: int, session_id: str) -> set[int]:
        with self._open_tables() as tables:
            return tables.in_session(partition_no, session_id)

    def links(self, ids: Sequence[str], *, types: Sequence[str] | None = None) -> list[Link]:
        """In the order of their sources, targets and types."""
        with self._open_tables() as tables:
            nos = [tables.row_of[entry_id] for entry_id in ids if entry_id in tables.row_of]
            found = [tables.links[key] for key in tables.link_keys(nos)]
        found = [link for link in found if types is None or link.type in types]
        return sorted(found, key=lambda link: (link.source, link.target, link.type))

    def linked(self, nos: Sequence[int]) -> list[tuple[int, int, str, float]]:
        with self._open_tables() as tables:
            edges = [(key, tables.links[key]) for key in tables.link_keys(nos)]
            return [(*key, link.confidence) for key, link in edges if not link.automatic]

    def derived(self, nos: Sequence[int]) -> list[tuple[int, int]]:
        with self._open_tables() as tables:
            return sorted(
                (source, target)
                for source, target, type_ in tables.link_keys(nos)
                if type_ == "derived_from" and source in set(nos)
            )

    def replaced(self, entry_id: str) -> list[Replaced]:
        with self._open_tables() as tables:
            states = tables.left_behind.get(tables.row_of.get(entry_id, 0), [])
            return [replace(state, entry=detached(state.entry)) for state in states]

    def turns(self, partition: Partition, session_id: str) -> list[Turn]:
        with self._open_tables() as tables:
            return tables.turns(partition, session_id)

    def sessions(self, partition: Partition) -> list[str]:
        """In the order they were opened."""
        with self._open_tables() as tables:
            return list(tables.boards[partition].sessions) if partition in tables.boards else []

    def partitions(self, tenant: str | None = None, *, layer: Layer | None = None, prefix: str = "") -> list[Partition]:
        """In the order of their numbers."""
        with self._open_tables() as tables:
            return [
                partition
                for partition in tables.boards
                if tenant in (None, partition.tenant)
                and layer in (None, partition.layer)
                and partition.layer_id.startswith(prefix)
            ]

    def counts(self, partitions: Sequence[Partition]) -> dict[str, int]:
        with self._open_tables() as tables:
            return tables.counts(partitions)

    def events(self, tenant: str, *, limit: int = 100) -> list[Event]:
        with self._open_tables() as tables:
            newest = list(reversed(tables.events.get(tenant, [])))[:limit]
            return [replace(event, detail=dict(event.detail)) for event in newest]

    # -- learning --------------------------------------------------------------------------------------------------

    def logged_recall(self, recall_id: str) -> LoggedRecall | None:
        with self._open_tables() as tables:
            return tables.log.recall(recall_id)

    def recent_outcomes(self, partition: Partition, *, recalls: int, after: int = 0) -> list[LoggedOutcome]:
        with self._open_tables() as tables:
            return tables.log.recent_outcomes(partition, recalls, after)

    def outcomes(
        self, tenant: str, *, partition: Partition | None = None, after: int = 0, limit: int = 1000
    ) -> list[LoggedOutcome]:
        with self._open_tables() as tables:
            return tables.log.outcomes(tenant, partition, after, limit)

    def policy(self, tenant: str, partition: Partition | None, *, profile: str = "default") -> str | None:
        with self._open_tables() as tables:
            return tables.log.policies.get((tenant, partition, profile))

    def policies(self, partition: Partition, *, profile: str = "default") -> tuple[str | None, str | None]:
        with self._open_tables() as tables:
            states = tables.log.policies
            return states.get((partition.tenant, None, profile)), states.get((partition.tenant, partition, profile))

    # -- model calls -----------------------------------------------------------------------------------------------

    def spent(
        self, tenant: str | None, *, since: datetime | None = None, session: str | None = None, by: Sequence[str] = ()
    ) -> list[Spent]:
        with self._open_tables() as tables:
            return calls.spent(tables.calls, tenant, since=since, session=session, by=checked_by(by))

    # -- jobs and sessions -----------------------------------------------------------------------------------------

    def jobs(
        self,
        *,
        tenant: str | None = None,
        partition: Partition | None = None,
        states: Sequence[str] | None = None,
        kinds: Sequence[str] | None = None,
        limit: int = 100,
    ) -> list[Job]:
        with self._open_tables() as tables:
            found = tables.jobs.listed(tenant=tenant, partition=partition, states=states, kinds=kinds)
            return [own_job(job) for job in islice(found, limit)]

    def find_job(self, partition: Partition, kind: str, key: str) -> Job | None:
        with self._open_tables() as tables:
            id = tables.jobs.by_key.get((partition, kind, key))
            return None if id is None else own_job(tables.jobs.by_id[id])

    def record(self, partition: Partition, kind: str, key: str) -> Record | None:
        with self._open_tables() as tables:
            found = tables.records.by_key.get((partition, kind, key))
            return None if found is None else own_record(found)

    def bodies(self, partition: Partition, kind: str, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
        with self._open_tables() as tables:
            return tables.records.bodies(partition, kind, keys)

    def records(
        self,
        *,
        tenant: str | None = None,
        partition: Partition | None = None,
        kinds: Sequence[str] | None = None,
        states: Sequence[str] | None = None,
        limit: int = 100,
    ) -> list[Record]:
        with self._open_tables() as tables:
            found = tables.records.listed(tenant=tenant, partition=partition, kinds=kinds, states=states)
            return [own_record(record) for record in islice(found, limit)]

    def session(self, partition: Partition, session_id: str) -> SessionHead | None:
        with self._open_tables() as tables:
            return tables.session(partition, session_id)

    def idle_sessions(self, before: datetime, *, tenant: str | None = None, limit: int = 100) -> list[SessionHead]:
        with self._open_tables() as tables:
            return tables.idle_sessions(before, tenant)[:limit]

    # -- embedding models ------------------------------------------------------------------------------------------

    def model(self) -> Model | None:
        with self._open_tables() as tables:
            return tables.model

    def without_vector(self, model: Model, *, after: int, limit: int) -> list[tuple[int, Entry]]:
        with self._open_tables() as tables:
            held = tables.vectors.get(model, {})
            lacking = (row for no, row in tables.rows.items() if no > after and no not in held)
            return [(row.no, detached(row.entry)) for row in islice(lacking, limit)]

    def vectors(self, nos: Sequence[int]) -> dict[int, Vector]:
        with self._open_tables() as tables:
            held = tables.served_vectors()
            return {no: np.frombuffer(held[no], dtype="<f4").astype(np.float32) for no in nos if no in held}

    def index_of(self, nos: Sequence[int]) -> dict[int, tuple[IndexRecord | None, Vector | None]]:
        with self._open_tables() as tables:
            vectors = tables.served_vectors()
            rows = [tables.rows[no] for no in nos if no in tables.rows]
            return {row.no: (row.index, _optional_vector(vectors.get(row.no))) for row in rows}

    # -- care ------------------------------------------------------------------------------------------------------

    def check(self) -> Iterator[Flaw]:
        with self._open_tables() as tables:
            return iter(list(broken_references(tables)))

    def mend(self) -> list[Flaw]:
        """Nothing: what `check` could find here would be a bug, and is not mended by guessing."""
        with self._open_tables():
            return []

    def scrub(self) -> bool:
        """Nothing: there are no files."""
        with self._open_tables():
            return True

    def size_bytes(self) -> int:
        with self._open_tables() as tables:
            return tables.size_bytes()

    def close(self) -> None:
        """Let go of everything, after a transaction that is running has ended. Closing twice is fine."""
        with self._only_writer(), self._reading:
            self._closed = True
            self._served, self._spare = Tables(), None


def _optional_vector(raw: bytes | None) -> Vector | None:
    return None if raw is None else np.frombuffer(raw, dtype="<f4").astype(np.float32)
