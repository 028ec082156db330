"""One transaction on the spare tables of the in-memory store: the `Tx` port, change by change."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from wellworn.core.errors import StoreError
from wellworn.core.values import Entry, Link, Partition, Turn
from wellworn.store.inmemory import changes
from wellworn.store.inmemory.learning_log import Told
from wellworn.store.inmemory.tables import Tables, detached, own_index
from wellworn.store.logged import own_recall
from wellworn.store.owned import checked_call, own_body, own_job, own_record
from wellworn.store.port import (
    Call,
    Event,
    IndexRecord,
    Job,
    LoggedRecall,
    Model,
    Neighbour,
    NewEntry,
    Record,
    Removed,
    Replaced,
    Selection,
    SessionHead,
    Vector,
)

P = ParamSpec("P")
R = TypeVar("R")
Note = Callable[[Tables], object]


class InMemoryTx:
    """One transaction on the spare tables. Arguments are copied on the way in; what it did can be played again."""

    def __init__(self, tables: Tables) -> None:
        self._held: Tables | None = tables
        self.notes: list[Note] = []
        tables.advanced.clear()

    def end(self) -> None:
        """From here on every call is refused."""
        self._held = None

    @property
    def _tables(self) -> Tables:
        if self._held is None:
            raise StoreError("this transaction has ended; begin another with transact()")
        return self._held

    def _do(self, change: Callable[Concatenate[Tables, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        done = change(self._tables, *args, **kwargs)
        self.notes.append(lambda tables: change(tables, *args, **kwargs))
        return done

    # -- entries -------------------------------------------------------------------------------------------------

    def find_same(self, partition: Partition, content_hash: str) -> Entry | None:
        return self._tables.find_same(partition, content_hash)

    def get(self, partitions: Sequence[Partition], ids: Sequence[str]) -> dict[str, Entry]:
        return self._tables.get(partitions, ids)

    def add(self, record: NewEntry) -> None:
        self._do(changes.add, detached(record.entry), own_index(record.index), _optional_bytes(record.vector))

    def update(
        self,
        entry: Entry,
        *,
        change: str | None,
        index: IndexRecord | None = None,
        vector: Vector | None = None,
        before: Entry | None = None,
    ) -> None:
        del before  # it is at hand anyway
        own = None if index is None else own_index(index)
        self._do(changes.update, detached(entry), change, own, _optional_bytes(vector))

    def count_use(self, nos: Sequence[int], at: datetime) -> None:
        self._do(changes.count_use, list(dict.fromkeys(nos)), at)

    def alive(self, nos: Sequence[int]) -> set[int]:
        return {no for no in nos if no in self._tables.rows}

    def remove(self, partition: Partition, selection: Selection) -> Removed:
        nos = [row.no for row in self._tables.matching([partition], selection)]
        return self._do(changes.remove, partition, nos)

    def drop_partition(self, partition: Partition) -> Removed:
        return self._do(changes.drop_partition, partition)

    def add_replaced(self, replaced: Replaced) -> None:
        self._do(changes.add_replaced, replace(replaced, entry=detached(replaced.entry)))

    # -- links and neighbours --------------------------------------------------------------------------------------

    def add_links(self, links: Sequence[Link]) -> int:
        return self._do(changes.add_links, list(links))

    def remove_link(self, source: str, target: str, type_: str) -> bool:
        return self._do(changes.remove_link, source, target, type_)

    def latest(self, partition: Partition) -> Neighbour | None:
        return self._tables.latest(partition)

    def session_tail(self, partition: Partition, session_id: str, limit: int) -> list[Neighbour]:
        return self._tables.session_tail(partition, session_id, limit)

    def sharing_tags(self, partition: Partition, tags: Sequence[str], at_least: int, limit: int) -> list[Neighbour]:
        return self._tables.sharing_tags(partition, tags, at_least, limit)

    def near(self, partition: Partition, near: tuple[int, int], limit: int) -> list[Neighbour]:
        return self._tables.near(partition, near, limit)

    # -- turns -----------------------------------------------------------------------------------------------------

    def open_session(self, partition: Partition, session_id: str, at: datetime) -> int:
        return self._do(changes.open_session, partition, session_id, at)

    def add_turn(self, partition: Partition, turn: Turn, *, touched_at: datetime | None = None) -> None:
        self._do(changes.add_turn, partition, turn, touched_at or turn.at)

    def session(self, partition: Partition, session_id: str) -> SessionHead | None:
        return self._tables.session(partition, session_id)

    def mark_session(
        self, partition: Partition, session_id: str, *, reflected: int | None = None, ended_at: datetime | None = None
    ) -> None:
        self._do(changes.mark_session, partition, session_id, reflected, ended_at)

    def remove_turns(
        self, partition: Partition, *, session_id: str | None = None, entry_ids: Sequence[str] | None = None
    ) -> Removed:
        nos = None if entry_ids is None else frozenset(self._row_numbers(entry_ids))
        return self._do(changes.remove_turns, partition, session_id, nos)

    def _row_numbers(self, ids: Sequence[str]) -> list[int]:
        return [self._tables.row_of[entry_id] for entry_id in ids if entry_id in self._tables.row_of]

    # -- models and the log ----------------------------------------------------------------------------------------

    def put_vectors(self, model: Model, vectors: Sequence[tuple[int, Vector]]) -> int:
        return self._do(changes.put_vectors, model, [(no, _vector_bytes(vector)) for no, vector in vectors])

    def put_index(self, records: Sequence[tuple[int, IndexRecord]]) -> None:
        self._do(changes.put_index, [(no, own_index(index)) for no, index in records])

    def model(self) -> Model | None:
        return self._tables.model

    def use_model(self, model: Model) -> None:
        self._do(changes.use_model, model)

    def audit(self, event: Event) -> None:
        self._do(changes.audit, replace(event, detail=dict(event.detail)))

    # -- learning --------------------------------------------------------------------------------------------------

    def add_recalls(self, recalls: Sequence[LoggedRecall]) -> None:
        self._do(changes.add_recalls, [own_recall(recall) for recall in recalls])

    def logged_recall(self, recall_id: str) -> LoggedRecall | None:
        return self._tables.log.recall(recall_id)

    def logged_query(self, recall: LoggedRecall) -> str | None:
        found = self._tables.log.recalls.get(recall.id)
        return None if found is None else found.query

    def add_outcome(self, recall_id: str, kind: str, value: dict[str, Any], at: datetime) -> int | None:
        return self._do(changes.add_outcome, Told(recall_id, kind, json.dumps(value, ensure_ascii=False), at))

    def policy(self, tenant: str, partition: Partition | None, *, profile: str = "default") -> str | None:
        return self._tables.log.policies.get((tenant, partition, profile))

    def policies(self, partition: Partition, *, profile: str = "default") -> tuple[str | None, str | None]:
        return self.policy(partition.tenant, None, profile=profile), self.policy(
            partition.tenant, partition, profile=profile
        )

    def put_policy(self, tenant: str, partition: Partition | None, state: str, *, profile: str = "default") -> None:
        self._do(changes.put_policy, tenant, partition, state, profile)

    def drop_policies(self, tenant: str, *, profile: str | None = None) -> int:
        return self._do(changes.drop_policies, tenant, profile)

    # -- model calls -----------------------------------------------------------------------------------------------

    def add_calls(self, calls: Sequence[Call]) -> None:
        self._do(changes.add_calls, [checked_call(call) for call in calls])

    # -- jobs ------------------------------------------------------------------------------------------------------

    def add_job(self, job: Job) -> bool:
        return self._do(changes.add_job, own_job(job))

    def claim_job(
        self,
        worker: str,
        now: datetime,
        lease_until: datetime,
        *,
        kinds: Sequence[str] | None = None,
        tenant: str | None = None,
        id: str | None = None,
    ) -> Job | None:
        found = self._tables.jobs.next_due(now, kinds=kinds, tenant=tenant, id=id)
        if found is None:
            return None
        claimed = replace(
            found, state="running", attempts=found.attempts + 1, worker=worker, lease_until=lease_until, updated_at=now
        )
        self._do(changes.put_job, claimed)
        return own_job(claimed)

    def job(self, id: str) -> Job | None:
        found = self._tables.jobs.by_id.get(id)
        return None if found is None else own_job(found)

    def put_job(self, job: Job) -> None:
        self._do(changes.put_job, own_job(job))

    def prune_jobs(self, before: datetime) -> int:
        return self._do(changes.prune_jobs, before)

    # -- records --------------------------------------------------------------------------------------------------

    def put_record(self, record: Record) -> bool:
        return self._do(changes.put_record, own_record(record))

    def put_bodies(self, partition: Partition, kind: str, bodies: Mapping[str, dict[str, Any]], at: datetime) -> None:
        own = {key: own_body(body, kind, key) for key, body in bodies.items()}
        self._do(changes.put_bodies, partition, kind, own, at)

    def bodies(self, partition: Partition, kind: str, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
        return self._tables.records.bodies(partition, kind, keys)

    def record(self, partition: Partition, kind: str, key: str) -> Record | None:
        found = self._tables.records.by_key.get((partition, kind, key))
        return None if found is None else own_record(found)

    def drop_record(self, partition: Partition, kind: str, key: str) -> bool:
        return self._do(changes.drop_record, partition, kind, key)


def _vector_bytes(vector: Vector) -> bytes:
    return np.asarray(vector, dtype="<f4").tobytes()


def _optional_bytes(vector: Vector | None) -> bytes | None:
    return None if vector is None else _vector_bytes(vector)
