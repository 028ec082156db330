"""One transaction on the spare tables of the in-memory store: the `Tx` port, change by change."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from recollect.errors import StoreError
from recollect.stores.base import (
    Call,
    Dossier,
    Event,
    IndexRecord,
    Job,
    LoggedRecall,
    Model,
    Neighbour,
    Record,
    Removed,
    Replaced,
    Selection,
    SessionHead,
    Vector,
)
from recollect.stores.inmemory import changes
from recollect.stores.inmemory.learning_log import Told
from recollect.stores.inmemory.tables import Tables, detached, own_index
from recollect.stores.logged import own_recall
from recollect.stores.owned import checked_call, own_body, own_dossier, own_job
from recollect.types import Entry, Link, Shelf, Turn

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

    def find_same(self, shelf: Shelf, content_hash: str) -> Entry | None:
        return self._tables.find_same(shelf, content_hash)

    def get(self, shelves: Sequence[Shelf], ids: Sequence[str]) -> dict[str, Entry]:
        return self._tables.get(shelves, ids)

    def add(self, record: Record) -> None:
        self._do(changes.add, detached(record.entry), own_index(record.index), _optional_bytes(record.vector))

    def update(self, entry: Entry, *, change: str | None, index: IndexRecord | None = None,
               vector: Vector | None = None, before: Entry | None = None) -> None:  # fmt: skip
        del before  # it is at hand anyway
        own = None if index is None else own_index(index)
        self._do(changes.update, detached(entry), change, own, _optional_bytes(vector))

    def count_use(self, nos: Sequence[int], at: datetime) -> None:
        self._do(changes.count_use, list(dict.fromkeys(nos)), at)

    def alive(self, nos: Sequence[int]) -> set[int]:
        return {no for no in nos if no in self._tables.rows}

    def remove(self, shelf: Shelf, selection: Selection) -> Removed:
        nos = [row.no for row in self._tables.matching([shelf], selection)]
        return self._do(changes.remove, shelf, nos)

    def drop_shelf(self, shelf: Shelf) -> Removed:
        return self._do(changes.drop_shelf, shelf)

    def add_replaced(self, replaced: Replaced) -> None:
        self._do(changes.add_replaced, replace(replaced, entry=detached(replaced.entry)))

    # -- links and neighbours --------------------------------------------------------------------------------------

    def add_links(self, links: Sequence[Link]) -> int:
        return self._do(changes.add_links, list(links))

    def remove_link(self, source: str, target: str, type_: str) -> bool:
        return self._do(changes.remove_link, source, target, type_)

    def latest(self, shelf: Shelf) -> Neighbour | None:
        return self._tables.latest(shelf)

    def session_tail(self, shelf: Shelf, session_id: str, limit: int) -> list[Neighbour]:
        return self._tables.session_tail(shelf, session_id, limit)

    def sharing_tags(self, shelf: Shelf, tags: Sequence[str], at_least: int, limit: int) -> list[Neighbour]:
        return self._tables.sharing_tags(shelf, tags, at_least, limit)

    def near(self, shelf: Shelf, near: tuple[int, int], limit: int) -> list[Neighbour]:
        return self._tables.near(shelf, near, limit)

    # -- turns -----------------------------------------------------------------------------------------------------

    def open_session(self, shelf: Shelf, session_id: str, at: datetime) -> int:
        return self._do(changes.open_session, shelf, session_id, at)

    def add_turn(self, shelf: Shelf, turn: Turn, *, touched_at: datetime | None = None) -> None:
        self._do(changes.add_turn, shelf, turn, touched_at or turn.at)

    def session(self, shelf: Shelf, session_id: str) -> SessionHead | None:
        return self._tables.session(shelf, session_id)

    def mark_session(self, shelf: Shelf, session_id: str, *, reflected: int | None = None,
                     ended_at: datetime | None = None) -> None:  # fmt: skip
        self._do(changes.mark_session, shelf, session_id, reflected, ended_at)

    def remove_turns(self, shelf: Shelf, *, session_id: str | None = None,
                     entry_ids: Sequence[str] | None = None) -> Removed:  # fmt: skip
        nos = None if entry_ids is None else frozenset(self._row_numbers(entry_ids))
        return self._do(changes.remove_turns, shelf, session_id, nos)

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

    def policy(self, tenant: str, shelf: Shelf | None, *, profile: str = "default") -> str | None:
        return self._tables.log.policies.get((tenant, shelf, profile))

    def policies(self, shelf: Shelf, *, profile: str = "default") -> tuple[str | None, str | None]:
        return self.policy(shelf.tenant, None, profile=profile), self.policy(shelf.tenant, shelf, profile=profile)

    def put_policy(self, tenant: str, shelf: Shelf | None, state: str, *, profile: str = "default") -> None:
        self._do(changes.put_policy, tenant, shelf, state, profile)

    def drop_policies(self, tenant: str, *, profile: str | None = None) -> int:
        return self._do(changes.drop_policies, tenant, profile)

    # -- model calls -----------------------------------------------------------------------------------------------

    def add_calls(self, calls: Sequence[Call]) -> None:
        self._do(changes.add_calls, [checked_call(call) for call in calls])

    # -- jobs ------------------------------------------------------------------------------------------------------

    def add_job(self, job: Job) -> bool:
        return self._do(changes.add_job, own_job(job))

    def claim_job(self, worker: str, now: datetime, lease_until: datetime, *, kinds: Sequence[str] | None = None,
                  tenant: str | None = None, id: str | None = None) -> Job | None:  # fmt: skip
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

    # -- dossiers --------------------------------------------------------------------------------------------------

    def put_dossier(self, dossier: Dossier) -> bool:
        return self._do(changes.put_dossier, own_dossier(dossier))

    def put_bodies(self, shelf: Shelf, kind: str, bodies: Mapping[str, dict[str, Any]], at: datetime) -> None:
        own = {key: own_body(body, kind, key) for key, body in bodies.items()}
        self._do(changes.put_bodies, shelf, kind, own, at)

    def bodies(self, shelf: Shelf, kind: str, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
        return self._tables.dossiers.bodies(shelf, kind, keys)

    def dossier(self, shelf: Shelf, kind: str, key: str) -> Dossier | None:
        found = self._tables.dossiers.by_key.get((shelf, kind, key))
        return None if found is None else own_dossier(found)

    def drop_dossier(self, shelf: Shelf, kind: str, key: str) -> bool:
        return self._do(changes.drop_dossier, shelf, kind, key)


def _vector_bytes(vector: Vector) -> bytes:
    return np.asarray(vector, dtype="<f4").tobytes()


def _optional_bytes(vector: Vector | None) -> bytes | None:
    return None if vector is None else _vector_bytes(vector)
