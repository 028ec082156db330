"""The seam between mechanisms and storage engines.

A store keeps entries, their text-index records and vectors, links, raw turns, old versions and an audit log, and
serves them by partition. It knows no chunking, linking, embedding or ranking rule: those call it. Every write happens
inside `transact()`, which is atomic and serialised; no model is called there. Reads outside see committed data only.

Entries have two names: the public `id`, and a store-internal row number `no` that never returns after a removal.
Each partition counts its changes (`seq`), and each entry remembers the count of its last change, so that an index in
memory is brought up to date by asking for what is newer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from wellworn.core.values import Entry, Layer, Link, Partition, Turn
from wellworn.store.values import (
    Call,
    Delta,
    Event,
    Flaw,
    Head,
    IndexRecord,
    Job,
    LoggedOutcome,
    LoggedRecall,
    Model,
    Neighbour,
    NewEntry,
    Record,
    Removed,
    Replaced,
    Selection,
    SessionHead,
    Slim,
    Spent,
    Vector,
)

__all__ = [
    "Call",
    "Delta",
    "Event",
    "Flaw",
    "Head",
    "IndexRecord",
    "Job",
    "LoggedOutcome",
    "LoggedRecall",
    "Model",
    "Neighbour",
    "NewEntry",
    "Record",
    "Removed",
    "Replaced",
    "Selection",
    "SessionHead",
    "Slim",
    "Spent",
    "Store",
    "Tx",
    "Vector",
]


class Tx(Protocol):
    """One atomic write. Partitions come into being when first written to."""

    def find_same(self, partition: Partition, content_hash: str) -> Entry | None:
        """The active or flagged entry with this content hash on this partition."""
        ...

    def get(self, partitions: Sequence[Partition], ids: Sequence[str]) -> dict[str, Entry]: ...

    def add(self, record: NewEntry) -> None:
        """A new entry with its index record and vector. The id must be new to the whole store."""
        ...

    def update(
        self,
        entry: Entry,
        *,
        change: str | None,
        index: IndexRecord | None = None,
        vector: Vector | None = None,
        before: Entry | None = None,
    ) -> None:
        """Replace an entry of the same id and partition.

        `change` names the change and keeps the entry as it stood (`Replaced`); None keeps nothing (mere counters).
        `before` is the entry as this transaction has read it, if it has: it need not be read again then, and what is
        equal in both need not be written.
        `index` and `vector` are given when the text changed; every vector of the old text goes then, given or not.
        """
        ...

    def count_use(self, nos: Sequence[int], at: datetime) -> None:
        """One more use of each of these rows that is there, changed at that time unless it changed later already."""
        ...

    def alive(self, nos: Sequence[int]) -> set[int]:
        """Those of the row numbers that are there, as of this transaction."""
        ...

    def remove(self, partition: Partition, selection: Selection) -> Removed:
        """Entries and everything that hangs on them: index, vector, links both ways, versions, records that name them,
        and the query of every logged recall of the tenant that showed them. Not raw turns."""
        ...

    def remove_turns(
        self, partition: Partition, *, session_id: str | None = None, entry_ids: Sequence[str] | None = None
    ) -> Removed:
        """Raw turns: of a session, of these episode entries, or all of the partition; sessions left empty go too.

        With a session go its jobs and records and, from the ledger, its name. Of one that only lost some turns, jobs
        that ended go too, and a running one is queued again: what its worker has read is not all there any more.
        """
        ...

    def drop_partition(self, partition: Partition) -> Removed:
        """The partition itself, its name included, with all that is on it."""
        ...

    def add_links(self, links: Sequence[Link]) -> int:
        """Edges that are not there yet; returns how many were new. Both ends must exist and differ.

        One drawn by hand takes the place of an automatic one of the same type, and counts as new.
        """
        ...

    def remove_link(self, source: str, target: str, type_: str) -> bool: ...

    def latest(self, partition: Partition) -> Neighbour | None:
        """The entry added last."""
        ...

    def session_tail(self, partition: Partition, session_id: str, limit: int) -> list[Neighbour]:
        """The session's entries added last, newest first."""
        ...

    def sharing_tags(self, partition: Partition, tags: Sequence[str], at_least: int, limit: int) -> list[Neighbour]:
        """Entries with at least that many of the tags, newest first; a store may look at each tag's latest 64 only."""
        ...

    def near(self, partition: Partition, near: tuple[int, int], limit: int) -> list[Neighbour]:
        """Entries that share a sketch at the same place (0 is none), newest first, with their index records."""
        ...

    def open_session(self, partition: Partition, session_id: str, at: datetime) -> int:
        """The next free turn number, one above the highest; the session is made when new."""
        ...

    def add_turn(self, partition: Partition, turn: Turn, *, touched_at: datetime | None = None) -> None:
        """A turn at a number that is free; gaps are allowed. The session must have been opened; one that had ended
        goes on. `touched_at` is when the turn is added, if that is not when it was said."""
        ...

    def session(self, partition: Partition, session_id: str) -> SessionHead | None: ...

    def mark_session(
        self, partition: Partition, session_id: str, *, reflected: int | None = None, ended_at: datetime | None = None
    ) -> None:
        """Say how far reflection has come (from 0 to the next free number), or that the session has ended."""
        ...

    def put_vectors(self, model: Model, vectors: Sequence[tuple[int, Vector]]) -> int:
        """Vectors of a model by row number; rows that are gone meanwhile are skipped. Returns how many were kept."""
        ...

    def put_index(self, records: Sequence[tuple[int, IndexRecord]]) -> None:
        """Text-index records by row number (repair)."""
        ...

    def model(self) -> Model | None:
        """The model whose vectors are served, as of this transaction."""
        ...

    def use_model(self, model: Model) -> None:
        """Make this the store's model and drop the vectors of every other one.

        With another model than before every entry counts as changed.
        """
        ...

    def add_replaced(self, replaced: Replaced) -> None:
        """An older state of an entry that is there already (import)."""
        ...

    def audit(self, event: Event) -> None: ...

    # learning
    def add_recalls(self, recalls: Sequence[LoggedRecall]) -> None:
        """Append to the log; a recall that is there already is left as it is. Its partition is made when new."""
        ...

    def logged_recall(self, recall_id: str) -> LoggedRecall | None: ...

    def logged_query(self, recall: LoggedRecall) -> str | None:
        """The words of a logged recall, empty when they were forgotten; None when it is not in the log. For who has its
        numbers, which never change, and needs no more."""
        ...

    def add_outcome(self, recall_id: str, kind: str, value: dict[str, Any], at: datetime) -> int | None:
        """Append to the log and return its number; None when this recall has an outcome of this kind already."""
        ...

    def policy(self, tenant: str, partition: Partition | None, *, profile: str = "default") -> str | None:
        """The state learned with a profile for a partition, or with None for the tenant as a whole, as of this transaction.

        A profile is any text; each keeps a state of its own.
        """
        ...

    def policies(self, partition: Partition, *, profile: str = "default") -> tuple[str | None, str | None]:
        """That of the partition's tenant as a whole and that of the partition."""
        ...

    def put_policy(self, tenant: str, partition: Partition | None, state: str, *, profile: str = "default") -> None:
        """Replace it. A partition's policies, recalls and outcomes go with the partition."""
        ...

    def drop_policies(self, tenant: str, *, profile: str | None = None) -> int:
        """Remove the states of a tenant and all its partitions, of one profile or of all; returns how many there were.

        The log stays.
        """
        ...

    # model calls
    def add_calls(self, calls: Sequence[Call]) -> None:
        """Append to the ledger. Counts and sums must be finite and not negative."""
        ...

    # jobs
    def add_job(self, job: Job) -> bool:
        """False when the partition has a job of this kind and key already, in any state. The partition is made when new."""
        ...

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
        """The job that is due the longest, queued or running on a lease that ran out, now running for this worker: one
        attempt more. Jobs due at the same moment come in the order they were added."""
        ...

    def job(self, id: str) -> Job | None: ...

    def put_job(self, job: Job) -> None:
        """Replace a job of the same id, partition, kind and key."""
        ...

    def prune_jobs(self, before: datetime) -> int:
        """Drop the jobs that were done before a moment; returns how many."""
        ...

    # records
    def put_record(self, record: Record) -> bool:
        """Keep it, in the place of the one of its partition, kind and key; when that was made stays. The partition is made when
        new. False, and nothing happens, when an entry that it names, of any partition of the tenant, is gone."""
        ...

    def put_bodies(self, partition: Partition, kind: str, bodies: Mapping[str, dict[str, Any]], at: datetime) -> None:
        """Many records by key that are nothing but a body, each as `put_record` would keep it."""
        ...

    def record(self, partition: Partition, kind: str, key: str) -> Record | None: ...

    def bodies(self, partition: Partition, kind: str, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Bodies of many records by key, without those that are not there."""
        ...

    def drop_record(self, partition: Partition, kind: str, key: str) -> bool: ...


@runtime_checkable
class Store(Protocol):
    """A storage engine."""

    location: str
    """What the user opened: a path, a URL or `:memory:`."""

    def transact(self) -> AbstractContextManager[Tx]:
        """One writer at a time, across threads and processes; rolled back when the block raises."""
        ...

    # reading, by partition
    def heads(self, partitions: Sequence[Partition]) -> list[Head | None]: ...

    def delta(self, partition_no: int, since: int, *, after: int = 0, limit: int | None = None) -> Delta:
        """What changed after a count; with a limit, at most that many rows whose number is above `after`."""
        ...

    def read(self, nos: Sequence[int]) -> dict[int, Entry]:
        """Whole entries by row number; rows that are gone are left out."""
        ...

    def alive(self, nos: Sequence[int]) -> set[int]:
        """Those of the row numbers that are there."""
        ...

    def get(self, partitions: Sequence[Partition], ids: Sequence[str]) -> dict[str, Entry]: ...

    def where(self, ids: Sequence[str]) -> dict[str, Partition]:
        """The partition of each of these entries that is anywhere in the store."""
        ...

    def select(
        self, partitions: Sequence[Partition], selection: Selection, *, after: int = 0, limit: int = 100
    ) -> list[tuple[int, Entry]]:
        """Entries in row order with their row numbers, after a row number: one page."""
        ...

    def tagged(self, partition_no: int, tags: Sequence[str]) -> set[int]:
        """Row numbers of the entries that have every one of the tags; all when none is named."""
        ...

    def in_session(self, partition_no: int, session_id: str) -> set[int]:
        """Row numbers of the entries of a session."""
        ...

    def links(self, ids: Sequence[str], *, types: Sequence[str] | None = None) -> list[Link]:
        """Every edge that starts or ends at one of these entries, in a stable order; of these types only, if given."""
        ...

    def linked(self, nos: Sequence[int]) -> list[tuple[int, int, str, float]]:
        """Edges that are not automatic and touch one of these rows: (source, target, type, confidence)."""
        ...

    def derived(self, nos: Sequence[int]) -> list[tuple[int, int]]:
        """Edges `derived_from` that start at one of these rows: (source, target), in order."""
        ...

    def replaced(self, entry_id: str) -> list[Replaced]:
        """The states an entry has left behind, oldest first."""
        ...

    def turns(self, partition: Partition, session_id: str) -> list[Turn]: ...

    def sessions(self, partition: Partition) -> list[str]: ...

    def partitions(self, tenant: str | None = None, *, layer: Layer | None = None, prefix: str = "") -> list[Partition]:
        """In the order they were made: all, or those of a tenant, at a layer, with ids that begin like this."""
        ...

    def counts(self, partitions: Sequence[Partition]) -> dict[str, int]:
        """Rows by table (`entries, links, versions, turns, sessions, vectors`), and entries as `kind:…`, `state:…`."""
        ...

    def events(self, tenant: str, *, limit: int = 100) -> list[Event]:
        """The audit log of a tenant, newest first."""
        ...

    # learning
    def logged_recall(self, recall_id: str) -> LoggedRecall | None: ...

    def recent_outcomes(self, partition: Partition, *, recalls: int, after: int = 0) -> list[LoggedOutcome]:
        """What was told of a partition's last so many recalls, with numbers above `after`, in the order it was told."""
        ...

    def outcomes(
        self, tenant: str, *, partition: Partition | None = None, after: int = 0, limit: int = 1000
    ) -> list[LoggedOutcome]:
        """The outcome log of a tenant, or of one of its partitions, in order, after a number: one page."""
        ...

    def policy(self, tenant: str, partition: Partition | None, *, profile: str = "default") -> str | None: ...

    def policies(self, partition: Partition, *, profile: str = "default") -> tuple[str | None, str | None]:
        """That of the partition's tenant as a whole and that of the partition, as of one moment."""
        ...

    # model calls
    def spent(
        self, tenant: str | None, *, since: datetime | None = None, session: str | None = None, by: Sequence[str] = ()
    ) -> list[Spent]:
        """What the calls of a tenant (None: of all) add up to, from a moment on, of one session or of all.

        `by` groups them, by `tenant`, `purpose`, `model` or `day` (UTC, as `2026-05-01`), in the order of these keys;
        without it there is one total, also when it is nothing.
        """
        ...

    # jobs and sessions
    def jobs(
        self,
        *,
        tenant: str | None = None,
        partition: Partition | None = None,
        states: Sequence[str] | None = None,
        kinds: Sequence[str] | None = None,
        limit: int = 100,
    ) -> list[Job]:
        """Newest first."""
        ...

    def find_job(self, partition: Partition, kind: str, key: str) -> Job | None: ...

    def session(self, partition: Partition, session_id: str) -> SessionHead | None: ...

    def idle_sessions(self, before: datetime, *, tenant: str | None = None, limit: int = 100) -> list[SessionHead]:
        """Sessions that have not ended, with turns not reflected on and none added after a moment, those left alone the
        longest first."""
        ...

    # records
    def record(self, partition: Partition, kind: str, key: str) -> Record | None: ...

    def bodies(self, partition: Partition, kind: str, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Bodies of many records by key, without those that are not there."""
        ...

    def records(
        self,
        *,
        tenant: str | None = None,
        partition: Partition | None = None,
        kinds: Sequence[str] | None = None,
        states: Sequence[str] | None = None,
        limit: int = 100,
    ) -> list[Record]:
        """Those put first last."""
        ...

    # embedding models
    def model(self) -> Model | None:
        """The model whose vectors are served."""
        ...

    def without_vector(self, model: Model, *, after: int, limit: int) -> list[tuple[int, Entry]]:
        """Entries that have no vector of this model yet, in row order."""
        ...

    def vectors(self, nos: Sequence[int]) -> dict[int, Vector]:
        """The vectors that are served, by row number; rows without one are left out."""
        ...

    def index_of(self, nos: Sequence[int]) -> dict[int, tuple[IndexRecord | None, Vector | None]]:
        """Stored index record and vector by row number, for verification; rows that are gone are left out."""
        ...

    # care
    def check(self) -> Iterator[Flaw]:
        """What only the engine can see: page structure, references, counters, its own side tables."""
        ...

    def mend(self) -> list[Flaw]:
        """Rebuild or drop what `check` found and can be mended; returns the flaws that were."""
        ...

    def scrub(self) -> bool:
        """Make removed content unreadable in the files themselves, not only unreachable.

        False when another reader kept that from being done now; it happens by itself later.
        """
        ...

    def size_bytes(self) -> int: ...

    def close(self) -> None: ...
