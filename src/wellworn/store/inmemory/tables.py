"""The tables of the in-memory store and how they are read.

Knows rows, postings and counters; no locks and no transactions (`store`), and not how a write changes it (`changes`).
Rows are immutable and shared between copies. Row numbers ascend, so the dicts of rows are in row order by themselves.
"""

from __future__ import annotations

import copy
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, field, replace
from datetime import datetime
from itertools import islice
from typing import NamedTuple

import numpy as np

from wellworn.core.clock import to_micros
from wellworn.core.values import Entry, Link, Partition, Turn
from wellworn.store.inmemory.jobs import Jobs
from wellworn.store.inmemory.learning_log import LearningLog
from wellworn.store.inmemory.records import Records
from wellworn.store.port import (
    Call,
    Delta,
    Event,
    IndexRecord,
    Model,
    Neighbour,
    Replaced,
    Selection,
    SessionHead,
    Slim,
)

PostingKey = tuple[str, int, str | int]
"""What is looked up, the partition's number, the value."""
LinkKey = tuple[int, int, str]
"""Row of the source, row of the target, type."""

OFFERED_STATES = ("active", "flagged")
"""An entry in another state is neither a duplicate of, nor a neighbour to, a new one."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Row:
    """One entry with what belongs to it. Never changed, only replaced."""

    no: int
    partition_no: int
    entry: Entry
    index: IndexRecord
    seq: int
    index_seq: int

    def posting_keys(self) -> set[PostingKey]:
        """Everything this row can be looked up by."""
        entry, partition_no = self.entry, self.partition_no
        keys: set[PostingKey] = {("tag", partition_no, tag) for tag in entry.tags}
        keys |= {(f"near{place}", partition_no, sketch) for place, sketch in enumerate(self.index.near) if sketch}
        keys.add(("hash", partition_no, entry.content_hash))
        if entry.session_id is not None:
            keys.add(("session", partition_no, entry.session_id))
        return keys


class Said(NamedTuple):
    """A turn and the row of its entry. Rows do not return, so a turn whose entry is gone refers to none."""

    turn: Turn
    entry_no: int | None


class Mark(NamedTuple):
    """How far reflection on a session has come, when it was last added to, and whether it has ended."""

    touched_at: datetime
    reflected: int = 0
    ended_at: datetime | None = None


@dataclass(kw_only=True)
class Board:
    """One partition: its counter, its rows, the rows gone (with the count of their removal), its sessions in order."""

    no: int
    seq: int = 0
    rows: dict[int, None] = field(default_factory=dict)
    gone: dict[int, int] = field(default_factory=dict)
    sessions: dict[str, dict[int, Said]] = field(default_factory=dict)
    marks: dict[str, Mark] = field(default_factory=dict)
    """One for each session."""

    def copy(self) -> Board:
        sessions = {session_id: dict(turns) for session_id, turns in self.sessions.items()}
        return replace(self, rows=dict(self.rows), gone=dict(self.gone), sessions=sessions, marks=dict(self.marks))


@dataclass(kw_only=True)
class Tables:
    """Everything a store holds, and the questions that are asked of it."""

    boards: dict[Partition, Board] = field(default_factory=dict)
    partition_of: dict[int, Partition] = field(default_factory=dict)
    rows: dict[int, Row] = field(default_factory=dict)
    row_of: dict[str, int] = field(default_factory=dict)
    postings: dict[PostingKey, set[int]] = field(default_factory=dict)
    links: dict[LinkKey, Link] = field(default_factory=dict)
    links_at: dict[int, set[LinkKey]] = field(default_factory=dict)
    left_behind: dict[int, list[Replaced]] = field(default_factory=dict)
    model: Model | None = None
    vectors: dict[Model, dict[int, bytes]] = field(default_factory=dict)
    events: dict[str, list[Event]] = field(default_factory=dict)
    log: LearningLog = field(default_factory=LearningLog)
    calls: list[Call] = field(default_factory=list)
    jobs: Jobs = field(default_factory=Jobs)
    records: Records = field(default_factory=Records)
    last_partition_no: int = 0
    last_row_no: int = 0
    advanced: set[int] = field(default_factory=set)
    """Numbers of the partitions whose count this transaction has raised already."""

    def copy(self) -> Tables:
        """Tables that can be changed without changing these."""
        return replace(
            self,
            boards={partition: board.copy() for partition, board in self.boards.items()},
            partition_of=dict(self.partition_of),
            rows=dict(self.rows),
            row_of=dict(self.row_of),
            postings={key: set(nos) for key, nos in self.postings.items()},
            links=dict(self.links),
            links_at={no: set(keys) for no, keys in self.links_at.items()},
            left_behind={no: list(states) for no, states in self.left_behind.items()},
            vectors={model: dict(vectors) for model, vectors in self.vectors.items()},
            events={tenant: list(events) for tenant, events in self.events.items()},
            log=self.log.copy(),
            calls=list(self.calls),
            jobs=self.jobs.copy(),
            records=self.records.copy(),
            advanced=set(),
        )

    # -- partitions -------------------------------------------------------------------------------------------------

    def boards_of(self, partitions: Iterable[Partition]) -> list[Board]:
        """The partitions that exist, each once."""
        return [self.boards[partition] for partition in dict.fromkeys(partitions) if partition in self.boards]

    def board_numbered(self, partition_no: int) -> Board | None:
        return self.boards[self.partition_of[partition_no]] if partition_no in self.partition_of else None

    def delta(self, partition_no: int, since: int, after: int, limit: int | None) -> Delta:
        board = self.board_numbered(partition_no)
        if board is None:
            return Delta(seq=0, rows=[], removed=[])
        vectors = self.served_vectors()
        changed = islice((row for no in board.rows if no > after and (row := self.rows[no]).seq > since), limit)
        return Delta(
            seq=board.seq,
            rows=[slim(row, vectors.get(row.no)) for row in changed],
            removed=sorted(no for no, seq in board.gone.items() if seq > since),
        )

    # -- entries -------------------------------------------------------------------------------------------------

    def get(self, partitions: Sequence[Partition], ids: Sequence[str]) -> dict[str, Entry]:
        return {row.entry.id: detached(row.entry) for row in self.named(partitions, ids)}

    def named(self, partitions: Sequence[Partition], ids: Iterable[str]) -> Iterator[Row]:
        """The rows with these ids, as far as they are on these partitions."""
        visible = {board.no for board in self.boards_of(partitions)}
        for no in (self.row_of[entry_id] for entry_id in dict.fromkeys(ids) if entry_id in self.row_of):
            if self.rows[no].partition_no in visible:
                yield self.rows[no]

    def matching(self, partitions: Sequence[Partition], selection: Selection, *, after: int = 0) -> Iterator[Row]:
        """The rows of a selection, in row order."""
        nos: Iterable[int]
        if selection.ids is not None:
            nos = (row.no for row in self.named(partitions, selection.ids))
        else:
            nos = (no for board in self.boards_of(partitions) for no in board.rows)
        fits = condition(selection)
        rows = (self.rows[no] for no in sorted(no for no in nos if no > after))
        return (row for row in rows if fits(row.entry))

    def find_same(self, partition: Partition, content_hash: str) -> Entry | None:
        rows = self._offered(partition, ("hash", content_hash))
        return detached(rows[0].entry) if rows else None

    # -- neighbours, newest first ----------------------------------------------------------------------------------

    def latest(self, partition: Partition) -> Neighbour | None:
        nos = reversed(self.boards[partition].rows) if partition in self.boards else iter(())
        rows = (self.rows[no] for no in nos)
        return next((neighbour(row) for row in rows if row.entry.state in OFFERED_STATES), None)

    def session_tail(self, partition: Partition, session_id: str, limit: int) -> list[Neighbour]:
        return [neighbour(row) for row in self._offered(partition, ("session", session_id))[:limit]]

    def sharing_tags(self, partition: Partition, tags: Sequence[str], at_least: int, limit: int) -> list[Neighbour]:
        keys: list[tuple[str, str | int]] = [("tag", tag) for tag in dict.fromkeys(tags)]
        return [neighbour(row) for row in self._offered(partition, *keys, at_least=at_least)[:limit]]

    def near(self, partition: Partition, near: tuple[int, int], limit: int) -> list[Neighbour]:
        rows = self._offered(partition, ("near0", near[0]), ("near1", near[1]))
        return [replace(neighbour(row), index=row.index) for row in rows[:limit]]

    def _offered(self, partition: Partition, *keys: tuple[str, str | int], at_least: int = 1) -> list[Row]:
        """Active or flagged rows found under at least that many of the keys, newest first."""
        if partition not in self.boards:
            return []
        partition_no = self.boards[partition].no
        found = Counter(no for what, value in keys for no in self.postings.get((what, partition_no, value), ()))
        rows = (self.rows[no] for no in sorted(found, reverse=True) if found[no] >= at_least)
        return [row for row in rows if row.entry.state in OFFERED_STATES]

    def in_session(self, partition_no: int, session_id: str) -> set[int]:
        return set(self.postings.get(("session", partition_no, session_id), ()))

    def tagged(self, partition_no: int, tags: Sequence[str]) -> set[int]:
        """Every row of the partition when no tag is asked for."""
        if not tags:
            board = self.board_numbered(partition_no)
            return set(board.rows) if board else set()
        return set.intersection(*(self.postings.get(("tag", partition_no, tag), set()) for tag in tags))

    # -- links, turns, numbers -------------------------------------------------------------------------------------

    def link_keys(self, nos: Iterable[int]) -> list[LinkKey]:
        """Links that start or end at one of these rows, each once."""
        return sorted({key for no in nos for key in self.links_at.get(no, ())})

    def turns(self, partition: Partition, session_id: str) -> list[Turn]:
        """In the order of their numbers."""
        said_at = self.boards[partition].sessions.get(session_id, {}) if partition in self.boards else {}
        return [self._turn(said_at[number]) for number in sorted(said_at)]

    def _turn(self, said: Said) -> Turn:
        row = None if said.entry_no is None else self.rows.get(said.entry_no)
        return replace(said.turn, entry_id=row.entry.id if row else None)

    def session(self, partition: Partition, session_id: str) -> SessionHead | None:
        board = self.boards.get(partition)
        if board is None or session_id not in board.sessions:
            return None
        turns = next_number(board.sessions[session_id])
        return SessionHead(partition=partition, id=session_id, turns=turns, **board.marks[session_id]._asdict())

    def idle_sessions(self, before: datetime, tenant: str | None) -> list[SessionHead]:
        """Those with turns to reflect on, untouched for the longest first."""
        named = [(partition, name) for partition, board in self.boards.items() for name in board.sessions]
        heads = (self.session(partition, name) for partition, name in named if tenant in (None, partition.tenant))
        idle = [
            head
            for head in heads
            if head and head.ended_at is None and head.reflected < head.turns and head.touched_at <= before
        ]
        return sorted(idle, key=lambda head: (head.touched_at, *astuple(head.partition), head.id))

    def served_vectors(self) -> dict[int, bytes]:
        """Vectors of the store's model by row number."""
        return self.vectors.get(self.model, {}) if self.model else {}

    def counts(self, partitions: Sequence[Partition]) -> dict[str, int]:
        """A link counts on the partition where it starts, so that the counts of partitions add up."""
        boards = self.boards_of(partitions)
        nos = [no for board in boards for no in board.rows]
        vectors = self.served_vectors()
        counts: dict[str, int] = defaultdict(int)
        counts |= {
            "entries": len(nos),
            "links": sum(key[0] == no for no in nos for key in self.links_at.get(no, ())),
            "versions": sum(len(self.left_behind.get(no, ())) for no in nos),
            "turns": sum(len(turns) for board in boards for turns in board.sessions.values()),
            "sessions": sum(len(board.sessions) for board in boards),
            "vectors": sum(no in vectors for no in nos),
        }
        for entry in (self.rows[no].entry for no in nos):
            counts[f"kind:{entry.kind}"] += 1
            counts[f"state:{entry.state}"] += 1
        return dict(counts)

    def size_bytes(self) -> int:
        """Bytes of text, index records, vectors and the learning log; the cost of the dicts around them is left out."""
        rows = sum(text_bytes(row.entry) + index_bytes(row.index) for row in self.rows.values())
        old = sum(text_bytes(state.entry) for states in self.left_behind.values() for state in states)
        turns = sum(
            len(said.turn.text.encode())
            for board in self.boards.values()
            for said_at in board.sessions.values()
            for said in said_at.values()
        )
        vectors = sum(len(raw) for held in self.vectors.values() for raw in held.values())
        return rows + old + turns + vectors + self.log.size_bytes()


def condition(selection: Selection) -> Callable[[Entry], bool]:
    """Whether an entry meets a selection's conditions, its ids aside. An empty list of kinds or states meets none."""

    def fits(entry: Entry) -> bool:
        return (
            (selection.session_id is None or entry.session_id == selection.session_id)
            and (selection.kinds is None or entry.kind in selection.kinds)
            and (selection.states is None or entry.state in selection.states)
            and (selection.tags is None or set(selection.tags) <= set(entry.tags))
            and (selection.ended_by is None or (entry.valid_to is not None and entry.valid_to <= selection.ended_by))
        )

    return fits


def detached(entry: Entry) -> Entry:
    """The same entry with lists and metadata of its own, so that no caller can change what is stored."""
    return replace(
        entry, tags=list(entry.tags), turn_refs=list(entry.turn_refs), metadata=copy.deepcopy(entry.metadata)
    )


def next_number(turns: Iterable[int]) -> int:
    """One above the highest."""
    return max(turns, default=-1) + 1


def neighbour(row: Row) -> Neighbour:
    return Neighbour(id=row.entry.id, at=row.entry.at, tags=list(row.entry.tags))


def slim(row: Row, vector: bytes | None) -> Slim:
    """What of a row stays in a ranking index."""
    entry, index = row.entry, row.index
    return Slim(
        no=row.no,
        seq=row.seq,
        index_seq=row.index_seq,
        kind=entry.kind,
        state=entry.state,
        at=to_micros(entry.at),
        valid_from=to_micros(entry.valid_from),
        valid_to=None if entry.valid_to is None else to_micros(entry.valid_to),
        confidence=entry.confidence,
        usage_count=entry.usage_count,
        repeats=entry.repeats,
        thread=entry.thread,
        position=entry.position,
        length=index.length,
        chars=index.chars,
        traits=index.traits,
        speaker=index.speaker,
        terms=index.terms.astype("<u8").tobytes(),
        counts=index.counts.astype("<u2").tobytes(),
        vector=vector,
    )


def own_index(index: IndexRecord) -> IndexRecord:
    """The record with read-only arrays of its own."""
    terms, counts = index.terms.astype(np.uint64), index.counts.astype(np.uint16)
    terms.flags.writeable = counts.flags.writeable = False
    return replace(index, terms=terms, counts=counts)


def text_bytes(entry: Entry) -> int:
    return len(entry.text.encode()) + len(entry.title.encode()) + len(entry.evidence.encode())


def index_bytes(index: IndexRecord) -> int:
    return index.terms.nbytes + index.counts.nbytes
