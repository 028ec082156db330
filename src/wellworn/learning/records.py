"""What learning keeps in a store: logged recalls, their outcomes, and learned states. All store calls are here.

| kind      | key                | of                    | holds                                                       |
|-----------|--------------------|-----------------------|-------------------------------------------------------------|
| `recall`  | its id             | a partition           | the query; the rows that were ranked, with their features   |
| `outcome` | recall id and kind | a partition           | how the recall turned out                                   |
| `policy`  | a profile          | a partition or tenant | a learned state, as its own text                            |

Forgetting a partition removes all of it. Recalls and outcomes never change, except that a recall loses its query when
an entry that it showed is forgotten. This module does not know what is learned from them.

A recall does not wait for the disk: the log holds it for a moment, and writes it in the background or with its outcome.
A crash loses at most the last recalls that nobody has reported an outcome of.

An outcome as a caller reports it is checked here, too. What it changes about the entries themselves:

    usage += 1                             for each cited entry
    confidence = min(c + 0.05, 0.95)       after success, never lowering a higher confidence
    confidence = max(c - 0.10, 0.05)       after failure; not below 0.5 by what is reported of a layer that people share
"""

from __future__ import annotations

import json
import logging
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from itertools import islice
from typing import Any
from zlib import crc32

import numpy as np

from wellworn.core.clock import EPOCH
from wellworn.core.dataclass import dataclass
from wellworn.core.errors import InvalidInput, StoreCorrupt, WellwornError
from wellworn.core.locks import fork_lock, patience
from wellworn.core.values import Entry, Partition, Scope, filled
from wellworn.core.wellformed import counted
from wellworn.ingest.validate import checked_flag, checked_fraction, checked_places, checked_query
from wellworn.store.port import Record, RecordFilter, Store, StoreReader, Tx, Vector

RECALL, OUTCOME, POLICY = "recall", "outcome", "policy"
PAGE = 500
"""Outcomes read at a time."""
FLUSH_AFTER_S = 0.5
MOST_PENDING = 512
"""Recalls held back at most. Beyond them the oldest are dropped, in case the store is unwritable for long."""

_logger = logging.getLogger("wellworn.learning.log")


@dataclass(frozen=True, kw_only=True, eq=False)
class LoggedRecall:
    """A recall as learning sees it: the rows shown, in that order, then the best others by base score.

    All arrays are float32, so that an outcome as it arrives and the same outcome replayed see the same numbers.
    """

    id: str
    partition: Partition
    """Whose recall it was: the home of its scope."""
    at: datetime
    query: str
    """Empty when it was forgotten."""
    profile: str
    level: str
    """Which ranking served it: `base`, `prior` or `person`."""
    nos: list[int]
    shown: int
    base: Vector
    """Base score of each row, shape (rows,)."""
    names: list[str]
    """What the columns of `features` are."""
    features: Vector
    """Shape (rows, names)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LoggedOutcome:
    """How a recall turned out, once per kind: `cited` {"nos": […]}, `used` {"quality": …}, `ignored` {}, `refined`
    {"query": ""}, `verdict` {"success": …}. `no` ascends over the whole store, in the order of the reports."""

    no: int
    recall: LoggedRecall
    kind: str
    value: dict[str, Any]
    at: datetime

    @property
    def cited(self) -> set[int]:
        """The rows that it says were used."""
        return {*self.value.get("nos", ())}


# -- recalls -------------------------------------------------------------------------------------------------------


def add_recalls(tx: Tx, recalls: Sequence[LoggedRecall]) -> None:
    """Append to the log; a recall that is there already is left as it is."""
    tx.put_records([_record_of(recall) for recall in recalls], replace=False)


def logged_recalls(reader: StoreReader, ids: Sequence[str]) -> dict[str, LoggedRecall]:
    """Recalls of the log by id."""
    found = reader.records(RecordFilter(kinds=[RECALL], keys=ids)) if ids else []
    return {record.key: _recall_from(record) for record in found if learning_problem(record) is None}


def logged_recall(reader: StoreReader, recall_id: str) -> LoggedRecall | None:
    return logged_recalls(reader, [recall_id]).get(recall_id)


def last_recalls(reader: StoreReader, partition: Partition, *, limit: int) -> dict[str, str]:
    """The query of each of the last recalls by its id, newest first."""
    found = reader.records(RecordFilter(partition=partition, kinds=[RECALL], limit=limit))
    return {record.key: record.body.get("query", "") for record in found}


def _record_of(recall: LoggedRecall) -> Record:
    """The words are the body; everything else is numbers, in the blob: a line of JSON, then rows, scores, features."""
    base = np.ascontiguousarray(recall.base, dtype="<f4")
    features = np.ascontiguousarray(recall.features, dtype="<f4")
    how = json.dumps([recall.profile, recall.level, recall.shown, recall.names])
    numbers = np.array(recall.nos, dtype="<i8").tobytes() + base.tobytes() + features.tobytes()
    return Record(
        partition=recall.partition,
        kind=RECALL,
        key=recall.id,
        body={"query": recall.query} if recall.query else {},
        rows=tuple(recall.nos[: recall.shown]) if recall.query else (),
        blob=how.encode() + b"\n" + numbers,
        created_at=recall.at,
        updated_at=recall.at,
    )


def learning_problem(record: Record) -> str | None:
    """What is wrong with a record of learning, if it is one and anything is."""
    if record.kind == RECALL:
        try:
            recall = _recall_from(record)
        except StoreCorrupt as error:
            return str(error)
        finite = bool(np.isfinite(recall.base).all() and np.isfinite(recall.features).all())
        return None if finite and 0 <= recall.shown <= len(recall.nos) else "its numbers make no sense"
    if record.kind == OUTCOME:
        value: Any = record.body.get("value")
        says = _SAYS.get(record.state)  # kinds of earlier releases teach nothing
        if isinstance(record.body.get("recall"), str) and isinstance(value, dict) and (says is None or says(value)):
            return None
        return f"it does not say what an outcome {record.state!r:.40} says"
    if record.kind == POLICY and record.body.get("crc") not in (None, crc32(record.blob or b"")):
        return "the learned state does not have its checksum"
    return None


_SAYS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "cited": lambda value: isinstance(value.get("nos"), list) and all(type(no) is int for no in value["nos"]),
    "used": lambda value: type(value.get("quality")) in (int, float),
    "ignored": lambda value: not value,
    "refined": lambda value: type(value.get("query")) is str,
    "verdict": lambda value: type(value.get("success")) is bool,
}


def _recall_from(record: Record) -> LoggedRecall:
    try:
        how, _, blob = (record.blob or b"").partition(b"\n")
        profile, level, shown, names = _how(how)
        rows = len(blob) // (8 + 4 + 4 * len(names))
        numbers = np.frombuffer(bytearray(blob[8 * rows :]), dtype="<f4").astype(np.float32, copy=False)
        return filled(
            LoggedRecall,
            id=record.key,
            partition=record.partition,
            at=record.created_at,
            query=record.body.get("query", ""),
            profile=profile,
            level=level,
            shown=shown,
            nos=np.frombuffer(blob, dtype="<i8", count=rows).tolist(),
            names=[*names],
            base=numbers[:rows],
            features=numbers[rows:].reshape(rows, len(names)),
        )
    except (ValueError, TypeError) as error:
        raise StoreCorrupt(f"the logged recall {record.key!r} cannot be read: {error}") from error


@lru_cache(maxsize=64)
def _how(text: bytes) -> tuple[str, str, int, list[str]]:
    """Profile, level, how many were shown, names: the same for most recalls."""
    profile, level, shown, names = json.loads(text)
    return profile, level, shown, names


# -- outcomes ------------------------------------------------------------------------------------------------------


def add_outcome(
    tx: Tx, recall_id: str, partition: Partition, kind: str, value: dict[str, Any], at: datetime
) -> int | None:
    """Append to the log and return its number; None when this recall has an outcome of this kind already."""
    return tx.add_record(
        Record(
            partition=partition,
            kind=OUTCOME,
            key=f"{recall_id} {kind}",
            state=kind,
            body={"recall": recall_id, "value": value},
            created_at=at,
            updated_at=at,
        )
    )


def cited_rows(reader: StoreReader, recall: LoggedRecall, *, kinds: Sequence[str]) -> list[int] | None:
    """The rows that the outcomes of these kinds say were cited; None when this recall has no such outcome."""
    keys = [f"{recall.id} {kind}" for kind in kinds]
    found = reader.records(RecordFilter(kinds=[OUTCOME], partition=recall.partition, keys=keys))
    return [no for one in found for no in one.body["value"].get("nos", ())] if found else None


def outcomes(
    reader: StoreReader, tenant: str, partition: Partition | None = None, *, after: int = 0
) -> Iterator[LoggedOutcome]:
    """Every outcome of a tenant, or of one of its partitions, after a number, in order."""
    found = reader.every_record(RecordFilter(kinds=[OUTCOME], tenant=tenant, partition=partition, after=after))
    while page := [*islice(found, PAGE)]:
        yield from _with_recalls(reader, page)


def recent_outcomes(reader: StoreReader, partition: Partition, *, most: int, after: int = 0) -> list[LoggedOutcome]:
    """The last outcomes of a partition, with numbers above `after`, in order."""
    found = reader.records(RecordFilter(kinds=[OUTCOME], partition=partition, after=after, limit=most))
    return _with_recalls(reader, found[::-1])


def citation_rate(reader: StoreReader, partition: Partition, *, kinds: Sequence[str]) -> float | None:
    """Of the partition's last outcomes of these kinds, the share that cites something; None when there are none."""
    found = reader.records(RecordFilter(kinds=[OUTCOME], partition=partition, states=kinds, limit=PAGE))
    return sum(bool(one.body.get("value", {}).get("nos")) for one in found) / len(found) if found else None


def last_outcome(reader: StoreReader, tenant: str) -> int:
    """The number of the tenant's last outcome; 0 when there is none."""
    found = reader.records(RecordFilter(kinds=[OUTCOME], tenant=tenant, limit=1))
    return found[0].no if found else 0


def _with_recalls(reader: StoreReader, records: Sequence[Record]) -> list[LoggedOutcome]:
    """The outcomes in these records, in their order. `wellworn doctor` finds what is damaged; nobody learns from it."""
    sound = [record for record in records if learning_problem(record) is None]
    recalls = logged_recalls(reader, list({record.body["recall"] for record in sound}))
    return [
        LoggedOutcome(no=record.no, recall=recall, kind=record.state, value=record.body["value"], at=record.created_at)
        for record in sound
        if (recall := recalls.get(record.body["recall"])) is not None
    ]


# -- learned states ------------------------------------------------------------------------------------------------


def stored_policies(
    reader: StoreReader, partition: Partition, profiles: Sequence[str]
) -> dict[tuple[str, Partition | None], str]:
    """States of some profiles, of a partition and (None) of its tenant as a whole, as of one moment."""
    wanted = RecordFilter(kinds=[POLICY], keys=profiles, partition=partition, of_tenant=True)
    found = {(record.key, record.partition): _state_in(record) for record in reader.records(wanted)}
    return {key: state for key, state in found.items() if state is not None}


def stored_policy(
    reader: StoreReader, tenant: str, partition: Partition | None, *, profile: str = "default"
) -> str | None:
    """The state learned with a profile for a partition, or with None for the tenant as a whole."""
    wanted = RecordFilter(kinds=[POLICY], keys=[profile], tenant=tenant, partition=partition)
    found = reader.records(wanted if partition is not None else replace(wanted, of_tenant=True))
    return _state_in(found[0]) if found else None


def _state_in(record: Record) -> str | None:
    """The text of a state; none where it was damaged: the log rebuilds it."""
    return None if learning_problem(record) else (record.blob or b"").decode(errors="replace")


def put_policy(tx: Tx, tenant: str, partition: Partition | None, state: str, *, profile: str = "default") -> None:
    """Replace a state. It says itself when it last changed."""
    record = Record(
        tenant=tenant,
        partition=partition,
        kind=POLICY,
        key=profile,
        body={"crc": crc32(state.encode())},
        blob=state.encode(),
        created_at=EPOCH,
        updated_at=EPOCH,
    )
    tx.put_records([record])


def drop_policies(tx: Tx, tenant: str) -> int:
    """Remove the states and settings of a tenant and all its partitions; returns how many there were. The log stays."""
    return tx.drop_records(RecordFilter(kinds=[POLICY], tenant=tenant))


# -- recalls on their way to the store -----------------------------------------------------------------------------


class LearningLog:
    """The recall log of one store, shared by all learners of a memory."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.tenants: set[str] = set()
        """Those that recalls were made for here."""
        self._pending: OrderedDict[str, tuple[LoggedRecall, bool]] = OrderedDict()
        """Each with whether its partition is new."""
        self._lock = fork_lock()
        self._wake = threading.Event()
        self._pid: int | None = None
        self._closed = False
        self.failed = False
        """Whether recalls could not be written of late."""

    def __len__(self) -> int:
        """Recalls that are not written yet."""
        return len(self._pending)

    def add(self, recall: LoggedRecall, *, new: bool = False) -> None:
        """Hold a recall until it is written. `new`: its partition did not exist when it was made."""
        with self._lock:
            if self._closed:
                return
            self._pending[recall.id] = recall, new
            self.tenants.add(recall.partition.tenant)
            while len(self._pending) > MOST_PENDING:
                self._pending.popitem(last=False)
        if self._pid != os.getpid():  # one thread per process, started by its first recall
            self._pid, self._wake = os.getpid(), threading.Event()
            threading.Thread(target=_flush_regularly, args=(weakref.ref(self), self._wake), daemon=True).start()

    def find(self, recall_id: str) -> LoggedRecall | None:
        """A recall, pending or written."""
        pending, _ = self._pending.get(recall_id, (None, False))
        return pending or logged_recall(self.store, recall_id)

    def write(self, tx: Tx) -> tuple[dict[str, LoggedRecall], Callable[[], None]]:
        """Write everything pending in a transaction. Returns what is written, by id, and what to call once that is committed.

        A recall must not bring back what was forgotten meanwhile. Recalls of a partition that is gone are not written,
        and recalls that showed an entry that is gone lose their query.
        """
        with self._lock:
            pending = [one for one in self._pending.values() if tx.tenant in (None, one[0].partition.tenant)]
        written: dict[str, LoggedRecall] = {}
        if pending:
            partitions = list({recall.partition for recall, _ in pending})
            there = {one for one, head in zip(partitions, tx.heads(partitions), strict=True) if head is not None}
            alive = tx.alive([*{no for one, _ in pending for no in one.nos[: one.shown]}])
            written = {
                recall.id: recall if alive.issuperset(recall.nos[: recall.shown]) else replace(recall, query="")
                for recall, new in pending
                if recall.partition in there or new
            }
            add_recalls(tx, [*written.values()])

        def committed() -> None:
            with self._lock:
                for recall, _ in pending:
                    self._pending.pop(recall.id, None)

        return written, committed

    def forget(self, nos: Iterable[int]) -> None:
        """Remove the query of every pending recall that showed one of these rows, which are gone."""
        gone = set(nos)
        with self._lock:
            for recall, new in [*self._pending.values()]:
                if not gone.isdisjoint(recall.nos[: recall.shown]):
                    self._pending[recall.id] = replace(recall, query=""), new

    def flush(self) -> None:
        """Write what is pending. A log that cannot be written must not stop the agent: it is a warning."""
        if not self._pending:
            return
        with self._lock:
            tenants = {recall.partition.tenant for recall, _ in self._pending.values()}
        try:
            for tenant in tenants:
                with self.store.transact(tenant=tenant) as tx:
                    _, committed = self.write(tx)
                committed()
            self.failed = False
        except WellwornError as error:
            if not self._closed and not self.failed:  # once, not twice a second, and not after closing
                _logger.warning("recalls are not logged, because the store cannot be written: %s", type(error).__name__)
            self.failed = True

    def close(self) -> None:
        """Write what is pending and end the thread."""
        self.flush()
        with self._lock:
            self._closed = True
            self._pending.clear()
        self._wake.set()


def _flush_regularly(log: weakref.ref[LearningLog], wake: threading.Event) -> None:
    """The thread. It holds no reference, so that a log that nobody closes can still be freed."""
    while not wake.wait(FLUSH_AFTER_S):
        alive = log()
        if alive is None:
            return
        with patience(FLUSH_AFTER_S):  # there is a next time; who closes the file waits for this one
            alive.flush()
        del alive


# -- outcomes as callers report them -------------------------------------------------------------------------------

MaySee = Callable[[Partition], bool]
"""Whether the caller may report outcomes of the recalls of a partition."""

SUCCESS_STEP, HIGHEST = 0.05, 0.95
FAILURE_STEP, LOWEST = 0.10, 0.05
LOWEST_SHARED = 0.5
"""Where one person's failures alone cannot sink an entry of a layer that several people share."""


@dataclass(frozen=True, kw_only=True)
class OutcomeInput:
    """One outcome. `places` are those that were cited, or those that a verdict is about (None: those cited before, or the
    only hit; of several, nobody knows which one helped or failed)."""

    kind: str
    value: dict[str, Any]
    places: tuple[int, ...] | None = None

    def rows(self, recall: LoggedRecall) -> list[int]:
        """Row numbers of the entries it is about."""
        if self.places is None:
            return list(recall.nos[:1]) if recall.shown == 1 else []
        for place in self.places:
            if place >= recall.shown:
                raise InvalidInput(
                    self.kind, f"{place} is past the {counted(recall.shown, 'hits')} of this recall", "count from 0"
                )
        return [recall.nos[place] for place in self.places]


def seen_by(scope: Scope) -> MaySee:
    """Recalls of the partitions that a scope sees."""
    return frozenset(scope.partitions()).__contains__


def outcome_input(
    *,
    cited: Sequence[int] | None = None,
    used: float | None = None,
    ignored: bool = False,
    refined: str | None = None,
    success: bool | None = None,
) -> OutcomeInput:
    """The one outcome given; none or several are an error."""
    given: list[OutcomeInput] = []
    if cited is not None:
        given.append(OutcomeInput(kind="cited", value={}, places=checked_places(cited)))
    if used is not None:
        given.append(OutcomeInput(kind="used", value={"quality": checked_fraction("used", used)}))
    if checked_flag("ignored", ignored):
        given.append(OutcomeInput(kind="ignored", value={}))
    if refined is not None:
        checked_query(refined)
        given.append(OutcomeInput(kind="refined", value={"query": ""}))  # nobody learns from its words
    if success is not None:
        given.append(OutcomeInput(kind="verdict", value={"success": checked_flag("success", success)}))
    if len(given) != 1:
        raise InvalidInput("outcome", f"{len(given)} were given", "give one of cited, used, ignored, refined, success")
    return given[0]


def judged(entry: Entry, success: bool, now: datetime, *, step: float = FAILURE_STEP, lowest: float = LOWEST) -> Entry:
    """An entry that was part of a success or a failure; `step` is what a failure costs, down to `lowest`."""
    if success:
        higher = max(entry.confidence, min(HIGHEST, round(entry.confidence + SUCCESS_STEP, 6)))
        entry = replace(entry, confidence=higher, success_count=entry.success_count + 1)
    else:
        lower = min(entry.confidence, max(lowest, round(entry.confidence - step, 6)))
        entry = replace(entry, confidence=lower, failure_count=entry.failure_count + 1)
    return replace(entry, updated_at=max(now, entry.updated_at))
