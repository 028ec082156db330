"""What a store keeps, as values: what comes out of one is what was put in, and shares nothing with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from wellworn.core.values import Entry, Partition

Vector = npt.NDArray[np.float32]


@dataclass(frozen=True, kw_only=True, eq=False)
class IndexRecord:
    """What ranking needs to know of a text without reading it again (made by `ingest.terms`)."""

    terms: npt.NDArray[np.uint64]
    """Distinct stemmed terms as 64-bit hashes, ascending."""
    counts: npt.NDArray[np.uint16]
    """How often each occurs."""
    length: int
    """Terms in all, repeats included."""
    chars: int
    """Characters of the text itself."""
    traits: int
    """Bit set, see `ingest.terms.Trait`."""
    speaker: int
    """Hash of the speaker's name, 0 when there is none."""
    near: tuple[int, int]
    """Two sketches; texts that are nearly identical share at least one of them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class NewEntry:
    """An entry together with everything that is written with it."""

    entry: Entry
    index: IndexRecord
    vector: Vector | None


@dataclass(frozen=True, kw_only=True)
class Model:
    """An embedding model whose vectors are, or will be, the store's."""

    name: str
    width: int

    @property
    def key(self) -> tuple[str, int]:
        return (self.name, self.width)


@dataclass(frozen=True, kw_only=True)
class Head:
    """How far a partition has come."""

    partition_no: int
    seq: int


class Slim(NamedTuple):
    """Everything about an entry that stays in memory: no text. A tuple, because a partition is read a hundred thousand
    at a time."""

    no: int
    seq: int
    index_seq: int
    """The partition's count when text, index or vector last changed; smaller than `seq` when only numbers did."""
    kind: str
    state: str
    at: int
    """Microseconds since 1970, as are the two below."""
    valid_from: int
    valid_to: int | None
    confidence: float
    usage_count: int
    repeats: int
    thread: int | None
    position: int | None
    length: int
    chars: int
    traits: int
    speaker: int
    terms: bytes
    """Little-endian uint64, as in `IndexRecord`."""
    counts: bytes
    """Little-endian uint16."""
    vector: bytes | None
    """Little-endian float32."""


@dataclass(frozen=True, kw_only=True)
class Delta:
    """What changed on a partition since a count: rows new or changed, in row order, and rows gone."""

    seq: int
    rows: list[Slim]
    removed: list[int]


@dataclass(frozen=True, kw_only=True)
class Replaced:
    """An entry as it stood until a change, and what the change was."""

    entry: Entry
    change: str
    changed_at: datetime


@dataclass(frozen=True, kw_only=True)
class Neighbour:
    """An existing entry that a new one may be linked to."""

    id: str
    at: datetime
    tags: list[str] = field(default_factory=list)
    index: IndexRecord | None = None


@dataclass(frozen=True, kw_only=True)
class Removed:
    """Rows a removal took, by table."""

    ids: list[str] = field(default_factory=list)
    entries: int = 0
    index_records: int = 0
    vectors: int = 0
    links: int = 0
    versions: int = 0
    turns: int = 0
    sessions: int = 0
    recalls: int = 0
    jobs: int = 0
    records: int = 0


@dataclass(frozen=True, kw_only=True)
class Event:
    """One line of the audit log: ids and numbers, never text."""

    at: datetime
    tenant: str
    action: str
    entry_id: str | None = None
    detail: dict[str, int | float | str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Which entries of some partitions: every condition given must hold."""

    ids: Sequence[str] | None = None
    id_prefix: str | None = None
    session_id: str | None = None
    kinds: Sequence[str] | None = None
    tags: Sequence[str] | None = None
    states: Sequence[str] | None = None
    ended_by: datetime | None = None
    """Their validity ended at this moment or before."""


@dataclass(frozen=True, kw_only=True)
class Flaw:
    """Something that verification found: where, what, and whether `repair` can mend it."""

    check: str
    subject: str
    problem: str
    repairable: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class LoggedRecall:
    """A recall as learning sees it: which rows it weighed, what spoke for each, which were shown in which order.

    Rows come in this order: those shown, as shown; then unshown ones by falling base score. All arrays are float32,
    so that learning at once and learning again from the log see the same numbers.
    """

    id: str
    partition: Partition
    """Whose recall it was: the home of its scope."""
    at: datetime
    query: str
    profile: str
    level: str
    """Which ranking served it: `base`, `prior` or `person`, with `+even` or `+odd` where neighbours changed places."""
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
    """What became of a recall, once per kind: `cited` {"nos": […]}, `used` {"quality": …}, `ignored` {}, `refined`
    {"query": …}, `verdict` {"success": …}. `no`
    ascends over the whole store, in the order they were told."""

    no: int
    recall: LoggedRecall
    kind: str
    value: dict[str, Any]
    at: datetime


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call of a language model: numbers and names, never text. The ledger of them is append-only."""

    at: datetime
    tenant: str
    purpose: str
    model: str
    session: str | None = None
    """The session it was made for; blanked when that is forgotten."""
    input_tokens: int
    output_tokens: int
    usd: float
    seconds: float
    ok: bool = True


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What calls add up to; `key` holds the values they were grouped by, in that order."""

    key: tuple[str, ...]
    calls: int
    failed: int
    input_tokens: int
    output_tokens: int
    usd: float
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Job:
    """Work to be done in the background, once. `jobs.queue` says how it gets from one state to the next.

    `payload`, `result` and `error` hold ids and numbers only, never what anybody said: a job is not searched for a
    forgotten text. A job about a session names it as `payload["session"]`, and goes with it.
    """

    id: str
    partition: Partition
    kind: str
    key: str
    """What it does; a partition has one job of a kind and key, whatever became of it."""
    payload: dict[str, Any] = field(default_factory=dict)
    state: str = "queued"
    """`queued`; `running`, and then alone with a worker and a lease; `done`; `dead`: given up."""
    attempts: int = 0
    due_at: datetime
    lease_until: datetime | None = None
    worker: str | None = None
    error: str = ""
    result: dict[str, Any] = field(default_factory=dict)
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, kw_only=True)
class SessionHead:
    """How far a session has come, and how far reflection on it has."""

    partition: Partition
    id: str
    turns: int
    """The next free number, one above the highest."""
    reflected: int = 0
    """Turns below this number have been reflected on."""
    touched_at: datetime
    """When its last turn was added, by the clock: not when it was said."""
    ended_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Record:
    """What a mechanism writes down about its own work: a task, a search, a run of consolidation, a question to a human.

    Partition, kind and key say which one it is. Unlike a job it may hold what was said, so it goes with what it tells of.
    """

    partition: Partition
    kind: str
    key: str
    state: str = ""
    """Whatever its mechanism calls it; records can be listed by it."""
    body: dict[str, Any] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    """Entries of the tenant that it tells of: it goes when one of them is forgotten."""
    session: str | None = None
    """The session that it tells of: it goes with that."""
    created_at: datetime
    updated_at: datetime
