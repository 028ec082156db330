"""What a store keeps, as values. What comes out of a store equals what was put in, and shares nothing with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import StoreError
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
    parts: bytes | None = None
    """The vectors of its sentences, see `language.parts`."""
    history: Sequence[Replaced] = ()
    """Its older states, oldest first, when it comes from another store."""


@dataclass(frozen=True, kw_only=True)
class EmbeddingModel:
    """An embedding model whose vectors are, or will be, the store's."""

    name: str
    width: int

    @property
    def key(self) -> tuple[str, int]:
        return (self.name, self.width)


@dataclass(frozen=True, kw_only=True)
class Head:
    """How many changes a partition has seen."""

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
    source: str = ""
    tags: str = "[]"
    """As JSON."""


class TermRows(NamedTuple):
    """Rows with their terms; a row may be there twice."""

    nos: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]
    """How many terms each row has."""
    terms: npt.NDArray[np.uint64]
    """Those of the first row, then those of the next."""
    counts: npt.NDArray[np.uint16]
    products: npt.NDArray[np.float32]
    """Of each row's vector with the one that was asked about; 0 without."""


@dataclass(frozen=True, kw_only=True)
class Delta:
    """What changed on a partition since a count: rows new or changed, in row order, and rows gone."""

    seq: int
    rows: list[Slim]
    removed: list[int]
    linked: bool = True
    """Whether links made by hand may touch its entries. To make or remove one counts as a change."""


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
class Selection:
    """Which entries: every condition given must hold."""

    nos: Sequence[int] | None = None
    ids: Sequence[str] | None = None
    id_prefix: str | None = None
    session_id: str | None = None
    kinds: Sequence[str] | None = None
    tags: Sequence[str] | None = None
    """All of these tags."""
    states: Sequence[str] | None = None
    content_hash: str | None = None
    """The active or flagged entry with this hash; a partition has at most one."""
    without_vector_of: EmbeddingModel | None = None


@dataclass(frozen=True, kw_only=True)
class SessionHead:
    """How many turns a session has, and how many of them reflection has read."""

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
    """What a mechanism writes down about its own work: a job, a learned state, a model call, an event, a task.

    Partition (or tenant), kind and key say which one it is. A record without a key is a line of a log: it is never
    replaced. Kinds `event` and `call` can be neither changed nor dropped.
    """

    tenant: str = ""
    """That of the partition, if it has one."""
    partition: Partition | None = None
    """None: it belongs to the tenant as a whole."""
    kind: str
    key: str = ""
    state: str = ""
    """Whatever its mechanism calls it; records can be listed by it."""
    body: dict[str, Any] = field(default_factory=dict)
    """Any JSON object."""
    blob: bytes | None = None
    names: tuple[str, ...] = ()
    """Entries of the tenant that it tells of: it goes when one of them is forgotten."""
    rows: tuple[int, ...] = ()
    """Entries that its body tells of, by row number: when one is forgotten, the record stays without its body."""
    session: str | None = None
    """The session that it tells of: it goes with that."""
    due_at: datetime | None = None
    """When somebody should look at it; see `RecordFilter.due_by`."""
    created_at: datetime
    updated_at: datetime
    no: int = 0
    """Given by the store when it is first put; ascends, and never returns after a removal."""

    def __post_init__(self) -> None:
        if self.partition is not None:
            object.__setattr__(self, "tenant", self.partition.tenant)

    @property
    def home(self) -> Partition:
        """Its partition, for kinds of records that always have one."""
        if self.partition is None:
            raise StoreError(f"{self.kind} {self.key!r} belongs to no partition")
        return self.partition


@dataclass(frozen=True, kw_only=True)
class RecordFilter:
    """Which records: every condition given must hold."""

    kinds: Sequence[str] | None = None
    tenant: str | None = None
    tenants: Sequence[str] | None = None
    """Of any of these tenants."""
    partition: Partition | None = None
    of_tenant: bool = False
    """Only those without a partition; together with a partition: these as well."""
    keys: Sequence[str] | None = None
    states: Sequence[str] | None = None
    session: str | None = None
    since: datetime | None = None
    """Made at this moment or later."""
    before: datetime | None = None
    """Last changed before this moment."""
    due_by: datetime | None = None
    """With a due time that has come at this moment; or last changed after this moment, since then the clock has gone
    back and its due time says nothing."""
    after: int = 0
    """With a higher number."""
    order: Literal["oldest", "newest", "due"] = "newest"
    """By number, or by due time and then number."""
    limit: int | None = None


@dataclass(frozen=True, kw_only=True)
class Removed:
    """What a removal took."""

    ids: list[str] = field(default_factory=list)
    entries: int = 0
    index_records: int = 0
    vectors: int = 0
    links: int = 0
    versions: int = 0
    turns: int = 0
    sessions: int = 0
    records: Mapping[str, int] = field(default_factory=dict)
    """How many of each kind."""
    cut: list[str] = field(default_factory=list)
    """Sessions that lost some of their turns and still have others."""

    def __add__(self, other: Removed) -> Removed:
        sums = {name: mine + getattr(other, name) for name, mine in vars(self).items() if name != "records"}
        return Removed(**sums, records=Counter(self.records) + Counter(other.records))


@dataclass(frozen=True, kw_only=True)
class Flaw:
    """Something that verification found: where, what, and whether `repair` can mend it."""

    check: str
    subject: str
    problem: str
    repairable: bool
