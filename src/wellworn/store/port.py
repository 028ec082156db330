"""The port between mechanisms and storage engines: what a backend must implement.

A store keeps entries with their index and vectors, links, older versions, sessions with their turns, and records: what
mechanisms write down about their own work. It knows no rule of chunking, linking, embedding or ranking. Every write
happens in `transact()`, which is atomic and serialised within a tenant; no model is called there. Reads outside see committed data;
reads that must agree with each other are made in one `snapshot()`.

Entries have two names: the public `id`, and a row number `no` that never returns after a removal. Each partition
counts its changes (`seq`), and each entry remembers the count of its last change, so that an index in memory is
brought up to date by asking for what is newer.

A backend implements the abstract methods; the others are shortcuts that every backend inherits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple

from wellworn.core.errors import NotFound
from wellworn.core.values import Entry, Layer, Link, Partition, Scope, Turn
from wellworn.store.values import Delta as Delta
from wellworn.store.values import EmbeddingModel as EmbeddingModel
from wellworn.store.values import Flaw as Flaw
from wellworn.store.values import Head as Head
from wellworn.store.values import IndexRecord as IndexRecord
from wellworn.store.values import Neighbour as Neighbour
from wellworn.store.values import NewEntry as NewEntry
from wellworn.store.values import Record as Record
from wellworn.store.values import RecordFilter as RecordFilter
from wellworn.store.values import Removed as Removed
from wellworn.store.values import Replaced as Replaced
from wellworn.store.values import Selection as Selection
from wellworn.store.values import SessionHead as SessionHead
from wellworn.store.values import Slim as Slim
from wellworn.store.values import TermRows as TermRows
from wellworn.store.values import Vector as Vector

PAGE = 500
"""Rows that are read at a time."""
Edge = tuple[int, int, str, float, bool]
"""Source row, target row, type, confidence, whether it was drawn by hand."""
TELLING = ("contradicts", "supersedes", "derived_from")
"""Types of links that tell what became of an entry, or of what it was made."""
NO_PARTS: Mapping[int, bytes] = MappingProxyType({})
_EVERY = Selection()


class Now(NamedTuple):
    """How far some partitions are."""

    moment: Hashable
    """No newer than the heads; see `Store.moment`."""
    heads: list[Head | None]


class StoreReader(ABC):
    """Everything that can be read, from a store or inside a transaction."""

    # -- partitions ----------------------------------------------------------------------------------------------

    @abstractmethod
    def partitions(self, tenant: str | None = None, *, layer: Layer | None = None, prefix: str = "") -> list[Partition]:
        """In the order they were made: all, or those of a tenant, at a layer, with ids that begin like this."""

    def covered(self, scope: Scope | None) -> list[Partition]:
        """What an operator's call is about: everything without a scope, a whole tenant if it names no layer."""
        if scope is None:
            return self.partitions()
        return scope.partitions() or self.partitions(scope.tenant)

    @abstractmethod
    def heads(self, partitions: Sequence[Partition]) -> list[Head | None]: ...

    @abstractmethod
    def delta(
        self,
        partition_no: int,
        since: int,
        *,
        after: int = 0,
        limit: int | None = None,
        vectors: bool = True,
        words: bool = True,
    ) -> Delta:
        """What changed after a count; with a limit, at most that many rows whose number is above `after`.

        Without `vectors` rows come without them, without `words` without terms and counts.
        """

    @abstractmethod
    def counts(self, partitions: Sequence[Partition], *, only: Sequence[str] = ()) -> dict[str, int]:
        """Rows by table (`entries, links, versions, turns, sessions, vectors`), entries as `kind:…` and `state:…`, and
        `bytes`, the size of the whole store. Given `only` some tables, a store need count no others."""

    # -- entries -------------------------------------------------------------------------------------------------

    @abstractmethod
    def select(
        self,
        partitions: Sequence[Partition] | None,
        selection: Selection,
        *,
        after: int = 0,
        skip: int = 0,
        limit: int | None = None,
    ) -> list[tuple[int, Entry]]:
        """Entries of these partitions (None: of the whole store) in row order, with row numbers above `after`.

        Of these the first `skip` are left out, without reading them.
        """

    def pages(
        self, partitions: Sequence[Partition] | None, selection: Selection = _EVERY, *, size: int = PAGE
    ) -> Iterator[list[tuple[int, Entry]]]:
        """What `select` gives, page by page."""
        after = 0
        while page := self.select(partitions, selection, after=after, limit=size):
            yield page
            after = page[-1][0]

    @abstractmethod
    def rows(self, selection: Selection, *, partition_no: int | None = None) -> set[int]:
        """Row numbers of the entries; reads no text."""

    def read(self, nos: Sequence[int]) -> dict[int, Entry]:
        """Entries by row number; rows that are gone are left out."""
        return {no: entry for no, (entry, _) in self.read_linked(nos).items()}

    @abstractmethod
    def read_linked(self, nos: Sequence[int]) -> dict[int, tuple[Entry, bool]]:
        """Entries by row number, each with whether `edges` may have a link of it; rows that are gone are left out."""

    def alive(self, nos: Sequence[int]) -> set[int]:
        """Those of the row numbers that are there."""
        return self.rows(Selection(nos=nos))

    def get(self, partitions: Sequence[Partition] | None, ids: Sequence[str]) -> dict[str, Entry]:
        """Entries by id, only from these partitions (None: from anywhere)."""
        return {entry.id: entry for _, entry in self.select(partitions, Selection(ids=ids))} if ids else {}

    def one(self, partitions: Sequence[Partition] | None, entry_id: str) -> Entry:
        """An entry that must be there: else `NotFound`."""
        found = self.get(partitions, [entry_id])
        if entry_id not in found:
            raise NotFound("entry", entry_id)
        return found[entry_id]

    def find_same(self, partition: Partition, content_hash: str) -> Entry | None:
        """The active or flagged entry with this content hash."""
        found = self.select([partition], Selection(content_hash=content_hash), limit=1)
        return found[0][1] if found else None

    @abstractmethod
    def neighbours(
        self,
        partition: Partition,
        *,
        session_id: str | None = None,
        tags: Sequence[str] | None = None,
        shared: int = 1,
        near: tuple[int, int] | None = None,
        limit: int = 1,
    ) -> list[Neighbour]:
        """Active and flagged entries, newest first: of a session, with at least `shared` of these tags, or sharing a
        sketch at the same place (0 is none; only these come with their index). At most one of the three is given.

        A store may look at the latest 64 entries of each tag only.
        """

    @abstractmethod
    def replaced(self, entry_id: str) -> list[Replaced]:
        """The states that an entry has left behind, oldest first."""

    @abstractmethod
    def index_of(self, nos: Sequence[int]) -> dict[int, tuple[IndexRecord | None, Vector | None]]:
        """Index record and vector by row number; rows that are gone are left out."""

    def vectors(self, nos: Sequence[int]) -> dict[int, Vector]:
        """Vectors by row number; rows that have none or are gone are left out."""
        return {no: vector for no, (_, vector) in self.index_of(nos).items() if vector is not None}

    @abstractmethod
    def parts(self, nos: Sequence[int]) -> dict[int, bytes]:
        """The vectors of sentences by row number, as they were given; rows that have none or are gone are left out."""

    @abstractmethod
    def model(self) -> EmbeddingModel | None:
        """The model whose vectors are served."""

    # -- links ---------------------------------------------------------------------------------------------------

    @abstractmethod
    def links(self, ids: Sequence[str], *, types: Sequence[str] | None = None) -> list[Link]:
        """Every link that starts or ends at one of these entries, in a stable order; of these types only, if given."""

    @abstractmethod
    def edges(self, nos: Sequence[int]) -> list[Edge]:
        """Links that touch one of these rows, as numbers, in order: the `TELLING` ones, and what was drawn by hand. Both ends
        of such a link count its coming and going as a change."""

    # -- sessions ------------------------------------------------------------------------------------------------

    @abstractmethod
    def sessions(
        self,
        partition: Partition | None = None,
        *,
        session_id: str | None = None,
        tenant: str | None = None,
        idle_since: datetime | None = None,
        limit: int | None = None,
    ) -> list[SessionHead]:
        """In the order they were begun. With `idle_since`: those that have not ended, with turns not reflected on and
        none added after that moment, the longest idle first."""

    def session(self, partition: Partition, session_id: str) -> SessionHead | None:
        found = self.sessions(partition, session_id=session_id)
        return found[0] if found else None

    @abstractmethod
    def turns(self, partition: Partition, session_id: str) -> list[Turn]:
        """In order."""

    @abstractmethod
    def last_said(self, partition: Partition) -> dict[str, datetime]:
        """When the last turn of each session was said, by the id of the session."""

    # -- records -------------------------------------------------------------------------------------------------

    @abstractmethod
    def records(self, wanted: RecordFilter) -> list[Record]: ...

    def every_record(self, wanted: RecordFilter) -> Iterator[Record]:
        """What `records` gives, oldest first, read page by page."""
        wanted = replace(wanted, order="oldest", limit=PAGE)
        while page := self.records(wanted):
            yield from page
            wanted = replace(wanted, after=page[-1].no)

    def record(self, partition: Partition, kind: str, key: str) -> Record | None:
        found = self.records(RecordFilter(partition=partition, kinds=[kind], keys=[key]))
        return found[0] if found else None


class Tx(StoreReader):
    """One atomic write. Partitions and sessions come into being when first written to. Reads see what it wrote."""

    tenant: str | None = None
    """The only one whose data it may write; None: anyone's."""
    beside: EmbeddingModel | None = None
    """The model of the vectors that `add` and `update` are given, where it does not serve yet: they are kept for the time
    when it does if `put_index` has had vectors of it, else left out."""

    # -- entries -------------------------------------------------------------------------------------------------

    def expect(self, records: Sequence[NewEntry]) -> None:
        """These will be compared with what is there and then be added: a store may look for all of them at once."""

    @abstractmethod
    def add(self, new: NewEntry) -> None:
        """A new entry with its index record and vector. The id must be new to the whole store."""

    @abstractmethod
    def update(
        self,
        entry: Entry,
        *,
        change: str | None,
        index: IndexRecord | None = None,
        vector: Vector | None = None,
        parts: bytes | None = None,
        before: Entry | None = None,
        history: Sequence[Replaced] | None = None,
    ) -> None:
        """Replace an entry of the same id and partition.

        `change` names the change and keeps the entry as it stood (`Replaced`); None keeps nothing (mere counters).
        `before` is the entry as this transaction has read it, if it has: only what differs is written then.
        `history` takes the place of its older states.
        `index`, `vector` and the `parts` of that are given when the text changed; every vector of the old text goes then,
        given or not.
        """

    @abstractmethod
    def count_use(self, nos: Sequence[int], at: datetime) -> None:
        """One more use of each of these rows that is there, changed at that time unless it changed later already."""

    @abstractmethod
    def remove(self, partition: Partition, selection: Selection, *, turns: bool = False) -> Removed:
        """Entries and everything that hangs on them: index, vector, links both ways, versions, records that name them.

        With `turns` also the raw turns of these `ids` or this `session_id`, or all of the partition without either;
        with a session that has no turns left go the records that tell of it.
        """

    @abstractmethod
    def drop_partition(self, partition: Partition) -> Removed:
        """The partition itself, its name included, with all that is on it."""

    @abstractmethod
    def hide_partition(self, partition: Partition) -> tuple[int, list[str]]:
        """Take a partition with all that is on it out of sight at once, however large it is; its name is free again.

        Returns a number for `Store.clear_hidden`, which removes it for good, and the ids of its entries.
        """

    @abstractmethod
    def put_index(
        self,
        rows: Sequence[tuple[int, IndexRecord | None, Vector | None]],
        *,
        model: EmbeddingModel | None = None,
        parts: Mapping[int, bytes] = NO_PARTS,
    ) -> int:
        """Index records and vectors by row number; None leaves what is there. Vectors are of `model`, which may be one
        that does not serve yet; each comes with its `parts`, or has none. Rows that are gone are skipped; returns how many
        were not."""

    @abstractmethod
    def use_model(self, model: EmbeddingModel) -> None:
        """Serve the vectors of this model and drop those of every other one.

        With another model than before every entry counts as changed.
        """

    # -- links ---------------------------------------------------------------------------------------------------

    @abstractmethod
    def add_links(self, links: Sequence[Link]) -> int:
        """Links that are not there yet; returns how many were new. Both ends must exist and differ; their partitions count a
        change.

        One drawn by hand takes the place of an automatic one of the same type, and counts as new.
        """

    @abstractmethod
    def remove_link(self, source: str, target: str, type_: str) -> bool: ...

    # -- sessions ------------------------------------------------------------------------------------------------

    @abstractmethod
    def add_turn(self, partition: Partition, turn: Turn, *, touched_at: datetime | None = None) -> None:
        """A turn at a number that is free; gaps are allowed. A session that had ended is open again.

        `touched_at` is when the turn is added, if that is not when it was said.
        """

    @abstractmethod
    def mark_session(
        self, partition: Partition, session_id: str, *, reflected: int | None = None, ended_at: datetime | None = None
    ) -> None:
        """Say how far reflection has come (from 0 to the next free number), or that the session has ended."""

    # -- records -------------------------------------------------------------------------------------------------

    @abstractmethod
    def put_records(self, records: Sequence[Record], *, replace: bool = True) -> list[int | None]:
        """Keep each one, in the place of the one of its partition, kind and key (`created_at` stays); their numbers.

        None for one that was not kept: an entry that it names is gone, or, without `replace`, the key is taken.
        """

    def add_record(self, record: Record) -> int | None:
        """Keep a new record and return its number; None when its key is taken, or an entry that it names is gone."""
        return self.put_records([record], replace=False)[0]

    @abstractmethod
    def drop_records(self, wanted: RecordFilter) -> int:
        """Remove them; returns how many there were."""


class Store(StoreReader):
    """A storage engine."""

    location: str
    """What the user opened: a path, a URL or `:memory:`."""
    remote: bool = False
    """Whether another machine may have to be waited for, also by whoever only reads."""
    encrypted: bool = False
    """Whether the files are unreadable without a key."""
    searches_large: bool = False
    """Whether `large_index` can make one."""
    stale_index: bool = False
    """Whether the index records are those of an earlier release, so that `repair` should write them anew; set to False then."""

    @abstractmethod
    def moment(self) -> Hashable:
        """Differs from an earlier one if anything was committed since, by whatever process."""

    def now(self, partitions: Sequence[Partition], known: Now | None = None) -> Now:
        """The moment and the heads of these partitions; `known` is what this told of them last, which may still be so."""
        moment = self.moment()
        return known if known is not None and known.moment == moment else Now(moment, self.heads(partitions))

    @abstractmethod
    def transact(self, *, tenant: str | None = None) -> AbstractContextManager[Tx]:
        """One writer at a time, across threads and processes; rolled back when the block raises.

        One that writes to a single tenant names it: a store may let writers of several tenants work at once.
        """

    @abstractmethod
    def snapshot(self) -> AbstractContextManager[StoreReader]:
        """A reader for which the store stands still: every read sees the moment at which the block began, whatever
        others write meanwhile. It keeps nobody from writing."""

    def damaged(self) -> dict[str, str]:
        """Rows that could not be read since the store was opened or last checked, and why: reads leave them out."""
        return {}

    def large_index(self, partition_no: int, *, make: bool = False) -> bool:
        """Whether `nearest` and `worded` can be asked of a partition. With `make` its indexes are made first, which may
        take long and keeps nobody from reading or writing."""
        return False

    def nearest(
        self, partition_no: int, vector: Vector, count: int, *, among: Sequence[int] | None = None
    ) -> list[int] | None:
        """About the `count` row numbers of a partition whose vectors are nearest; with `among`, exactly those of these
        rows that are. None where there is no index."""
        return None

    def worded(
        self,
        partition_no: int,
        sets: Sequence[Sequence[int]],
        limit: int,
        nos: Sequence[int],
        vector: Vector | None,
        near: int = 0,
    ) -> TermRows:
        """Rows of a partition that have all terms of one of the sets, at most so many, these rows, and about the `near` rows
        whose vectors are nearest to this one; with the products of their vectors and this one."""
        raise NotImplementedError

    def frequent_terms(self, partition_no: int, more_than: int) -> dict[int, int]:
        """The terms that more than so many rows of a partition have, with how many have them."""
        raise NotImplementedError

    @abstractmethod
    def clear_hidden(self, number: int) -> Removed:
        """Remove a hidden partition in short transactions, between which others can write; returns what that took.

        One that a crash left behind is removed when the store is next opened.
        """

    @abstractmethod
    def check(self, *, mend: bool = False) -> list[Flaw]:
        """What only the engine can see: page structure, references, counters, its own side tables.

        With `mend`, whatever can be rebuilt or dropped is, and the flaws that were mended are returned.
        """

    @abstractmethod
    def scrub(self) -> bool:
        """Make removed content unreadable in the files themselves, not only unreachable.

        False when another reader kept that from being done now; it happens by itself later.
        """

    @abstractmethod
    def close(self) -> None: ...
