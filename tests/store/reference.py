"""A store of dictionaries: what the port means, in the plainest way, to compare engines with. It has the calls that are
compared, and those with the parameters that are given there.

A transaction works on a copy of everything, which takes the place of the original when it ends well.
"""

from __future__ import annotations

import copy
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from wellworn.core.clock import to_micros
from wellworn.core.errors import StoreError
from wellworn.core.values import Entry, Link, Partition, Turn
from wellworn.store.port import (
    NO_PARTS,
    TELLING,
    Delta,
    Edge,
    EmbeddingModel,
    Head,
    IndexRecord,
    Neighbour,
    NewEntry,
    Record,
    RecordFilter,
    Removed,
    Replaced,
    Selection,
    SessionHead,
    Slim,
    Vector,
)

LIVE = ("active", "flagged")
Row = dict[str, Any]
"""What belongs to an entry: entry, seq, index_seq, index, vector, new (vectors of another model), history."""


@dataclass
class State:
    heads: dict[Partition, list[int]] = field(default_factory=dict)
    """Number and count of changes."""
    rows: dict[int, Row] = field(default_factory=dict)
    links: dict[tuple[str, str, str], Link] = field(default_factory=dict)
    sessions: dict[tuple[Partition, str], SessionHead] = field(default_factory=dict)
    turns: dict[tuple[Partition, str], dict[int, Turn]] = field(default_factory=dict)
    records: dict[int, Record] = field(default_factory=dict)
    removed: dict[int, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    model: EmbeddingModel | None = None
    last: Counter[str] = field(default_factory=Counter)
    """The numbers given last."""


class Reads:
    state: State

    def partitions(self) -> list[Partition]:
        return [*self.state.heads]

    def get(self, partitions: Sequence[Partition] | None, ids: Sequence[str]) -> dict[str, Entry]:
        return {entry.id: entry for _, entry in self.select(partitions, Selection(ids=ids))}

    def find_same(self, partition: Partition, content_hash: str) -> Entry | None:
        return next((entry for _, entry in self.select([partition], Selection(content_hash=content_hash))), None)

    def heads(self, partitions: Sequence[Partition]) -> list[Head | None]:
        heads = self.state.heads
        found = [heads.get(one) for one in partitions]
        return [None if head is None else Head(partition_no=head[0], seq=head[1]) for head in found]

    def delta(self, partition_no: int, since: int) -> Delta:
        seq = next((seq for no, seq in self.state.heads.values() if no == partition_no), 0)
        rows = [
            slim_of(no, row)
            for no, row in self.state.rows.items()
            if self.state.heads[row["entry"].partition][0] == partition_no and row["seq"] > since
        ]
        gone = [no for at, no in self.state.removed.get(partition_no, ()) if at > since] if seq else []
        return Delta(seq=seq, rows=rows, removed=gone)

    def counts(self, partitions: Sequence[Partition]) -> dict[str, int]:
        rows = [row for row in self.state.rows.values() if row["entry"].partition in partitions]
        ids = {row["entry"].id for row in rows}
        counted = {
            "entries": len(rows),
            "vectors": sum(row["vector"] is not None for row in rows),
            "links": sum(link.source in ids for link in self.state.links.values()),
            "versions": sum(len(row["history"]) for row in rows),
            "sessions": sum(partition in partitions for partition, _ in self.state.sessions),
            "turns": sum(len(turns) for (at, _), turns in self.state.turns.items() if at in partitions),
        }
        for name in ("kind", "state"):
            counted |= sorted(Counter(f"{name}:{getattr(row['entry'], name)}" for row in rows).items())
        return counted

    def select(self, partitions: Sequence[Partition] | None, wanted: Selection) -> list[tuple[int, Entry]]:
        return [
            (no, copy.deepcopy(row["entry"]))
            for no, row in self.state.rows.items()
            if (partitions is None or row["entry"].partition in partitions) and self._matches(row, wanted)
        ]

    def rows(self, selection: Selection) -> set[int]:
        return {no for no, _ in self.select(None, selection)}

    def _matches(self, row: Row, wanted: Selection) -> bool:
        entry: Entry = row["entry"]
        model, lacking = wanted.without_vector_of, True
        if model is not None:
            lacking = row["vector"] is None if model == self.state.model else model.key not in row["new"]
        return (
            (wanted.ids is None or entry.id in wanted.ids)
            and wanted.session_id in (None, entry.session_id)
            and (wanted.states is None or entry.state in wanted.states)
            and {*entry.tags}.issuperset(wanted.tags or ())
            and (wanted.content_hash is None or (entry.content_hash == wanted.content_hash and entry.state in LIVE))
            and lacking
        )

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
        found = []
        for row in reversed(self.state.rows.values()):
            entry, index = row["entry"], row["index"]
            alike = near is None or any(a == b != 0 for a, b in zip(near, index.near, strict=True))
            if (
                (entry.partition == partition and entry.state in LIVE and alike)
                and session_id in (None, entry.session_id)
                and (tags is None or len({*tags} & {*entry.tags}) >= shared)
            ):
                given = None if near is None else index
                found.append(Neighbour(id=entry.id, at=entry.at, tags=[*entry.tags], index=given))
        return found[:limit]

    def replaced(self, entry_id: str) -> list[Replaced]:
        row = self._row(entry_id)
        return [] if row is None else copy.deepcopy(row["history"])

    def _row(self, entry_id: str) -> Row | None:
        return next((row for row in self.state.rows.values() if row["entry"].id == entry_id), None)

    def index_of(self, nos: Sequence[int]) -> dict[int, tuple[IndexRecord | None, Vector | None]]:
        rows = self.state.rows
        return {no: (rows[no]["index"], rows[no]["vector"]) for no in nos if no in rows}

    def parts(self, nos: Sequence[int]) -> dict[int, bytes]:
        rows = self.state.rows
        return {no: rows[no]["parts"] for no in nos if no in rows and rows[no]["parts"] is not None}

    def model(self) -> EmbeddingModel | None:
        return self.state.model

    def links(self, ids: Sequence[str], *, types: Sequence[str] | None = None) -> list[Link]:
        return [
            link
            for _, link in sorted(self.state.links.items())
            if (link.source in ids or link.target in ids) and (types is None or link.type in types)
        ]

    def edges(self, nos: Sequence[int]) -> list[Edge]:
        no_of = {row["entry"].id: no for no, row in self.state.rows.items()}
        return sorted(
            (no_of[link.source], no_of[link.target], link.type, link.confidence, not link.automatic)
            for link in self.state.links.values()
            if {no_of[link.source], no_of[link.target]} & {*nos} and (not link.automatic or link.type in TELLING)
        )

    def sessions(self, *, tenant: str | None = None, idle_since: datetime | None = None) -> list[SessionHead]:
        found = [head for head in self.state.sessions.values() if tenant in (None, head.partition.tenant)]
        if idle_since is not None:
            found = [head for head in found if head.reflected < head.turns and head.ended_at is None]
            found = [head for head in found if head.touched_at <= idle_since]
            found.sort(key=lambda head: (head.touched_at, head.partition, head.id))
        return found

    def turns(self, partition: Partition, session_id: str) -> list[Turn]:
        return [turn for _, turn in sorted(self.state.turns.get((partition, session_id), {}).items())]

    def records(self, wanted: RecordFilter) -> list[Record]:
        found = [copy.deepcopy(record) for record in self.state.records.values() if chosen(record, wanted)]
        if wanted.order == "newest":
            found.reverse()
        if wanted.order == "due":
            found = sorted((one for one in found if one.due_at is not None), key=lambda one: (one.due_at, one.no))
        return found[: wanted.limit]


def chosen(record: Record, wanted: RecordFilter) -> bool:
    place = record.partition is None if wanted.of_tenant else True
    if wanted.partition is not None:
        own = wanted.of_tenant and record.partition is None and record.tenant == wanted.partition.tenant
        place = record.partition == wanted.partition or own
    return (
        place
        and (wanted.kinds is None or record.kind in wanted.kinds)
        and (wanted.keys is None or (record.key != "" and record.key in wanted.keys))
        and (wanted.states is None or record.state in wanted.states)
        and (wanted.since is None or record.created_at >= wanted.since)
        and (
            wanted.due_by is None
            or (record.due_at is not None and (record.due_at <= wanted.due_by or record.updated_at > wanted.due_by))
        )
    )


def slim_of(no: int, row: Row) -> Slim:
    entry, index, vector = row["entry"], row["index"], row["vector"]
    return Slim(
        no=no,
        seq=row["seq"],
        index_seq=row["index_seq"],
        at=to_micros(entry.at),
        valid_from=to_micros(entry.valid_from),
        valid_to=None if entry.valid_to is None else to_micros(entry.valid_to),
        length=index.length,
        chars=index.chars,
        traits=index.traits,
        speaker=index.speaker,
        terms=index.terms.tobytes(),
        counts=index.counts.tobytes(),
        vector=None if vector is None else vector.tobytes(),
        **{
            name: getattr(entry, name)
            for name in ("kind", "state", "confidence", "usage_count", "repeats", "thread", "position", "source")
        },
        tags=json.dumps(entry.tags, ensure_ascii=False),
    )


class ReferenceTx(Reads):
    def __init__(self, state: State) -> None:
        self.state = state
        self._changed: dict[Partition, int] = {}

    def expect(self, records: Sequence[NewEntry]) -> None:
        """Changes no answer."""

    def _number(self, kind: str) -> int:
        self.state.last[kind] += 1
        return self.state.last[kind]

    def _head(self, partition: Partition) -> list[int]:
        if partition not in self.state.heads:
            self.state.heads[partition] = [self._number("partition"), 0]
        return self.state.heads[partition]

    def _seq(self, partition: Partition) -> int:
        if partition not in self._changed:
            self._head(partition)[1] += 1
            self._changed[partition] = self._head(partition)[1]
        return self._changed[partition]

    def _fits(self, vector: Vector | None, model: EmbeddingModel | None) -> None:
        if vector is not None and (model is None or vector.shape != (model.width,)):
            raise StoreError("the vector does not fit")

    def _check_same(self, entry: Entry) -> None:
        for row in self.state.rows.values():
            other = row["entry"]
            same = (other.partition, other.content_hash) == (entry.partition, entry.content_hash)
            if other.id != entry.id and same and {entry.state, other.state} <= {*LIVE}:
                raise StoreError("these words are there already")

    def add(self, new: NewEntry) -> None:
        self._fits(new.vector, self.state.model)
        if self._row(new.entry.id) is not None:
            raise StoreError("the id is taken")
        self._check_same(new.entry)
        seq, history = self._seq(new.entry.partition), [*copy.deepcopy(new.history)]
        row = {"entry": copy.deepcopy(new.entry), "seq": seq, "index_seq": seq, "index": new.index, "parts": new.parts}
        self.state.rows[self._number("entry")] = {**row, "vector": new.vector, "new": {}, "history": history}

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
        self._fits(vector, self.state.model)
        row = self._row(entry.id)
        if row is None or row["entry"].partition != entry.partition:
            raise StoreError("no such entry")
        self._check_same(entry)
        if history is not None:
            row["history"] = [*copy.deepcopy(history)]
        if change is not None:
            row["history"].append(Replaced(entry=row["entry"], change=change, changed_at=entry.updated_at))
        row |= {"entry": copy.deepcopy(entry), "seq": self._seq(entry.partition)}
        if index is not None or vector is not None:
            row |= {"index": index or row["index"], "vector": vector, "new": {}, "index_seq": row["seq"]}
            row["parts"] = parts

    def count_use(self, nos: Sequence[int], at: datetime) -> None:
        for no in dict.fromkeys(nos):
            if (row := self.state.rows.get(no)) is not None:
                entry = row["entry"]
                used = replace(entry, usage_count=entry.usage_count + 1, updated_at=max(entry.updated_at, at))
                row |= {"entry": used, "seq": self._seq(entry.partition)}

    def remove(self, partition: Partition, selection: Selection, *, turns: bool = False) -> Removed:
        said = self._remove_turns(partition, selection) if turns and partition in self.state.heads else Removed()
        gone = {no: entry.id for no, entry in self.select([partition], selection)}
        if not gone:
            return said
        rows = [self.state.rows.pop(no) for no in gone]
        links = [key for key, link in self.state.links.items() if {link.source, link.target} & {*gone.values()}]
        for key in links:
            del self.state.links[key]
        for at in self.state.turns.values():
            at |= {n: replace(turn, entry_id=None) for n, turn in at.items() if turn.entry_id in gone.values()}
        kinds = self._drop(lambda record: bool({*record.names} & {*gone.values()}))
        for no, record in self.state.records.items():
            if record.tenant == partition.tenant and {*record.rows} & {*gone}:
                if record.kind in ("event", "call", "outcome"):
                    raise StoreError("append-only")
                self.state.records[no] = replace(record, body={}, rows=())
        seq = self._seq(partition)
        self.state.removed[self._head(partition)[0]] += [(seq, no) for no in gone]
        return replace(
            said,
            ids=[*gone.values()],
            entries=len(rows),
            index_records=len(rows),
            vectors=sum((row["vector"] is not None) + len(row["new"]) for row in rows),
            links=len(links),
            versions=sum(len(row["history"]) for row in rows),
            records=Counter(said.records) + kinds,
        )

    def _drop(self, condition: Any) -> Counter[str]:
        gone = {no: record.kind for no, record in self.state.records.items() if condition(record)}
        if {"event", "call"} & {*gone.values()}:
            raise StoreError("append-only")
        for no in gone:
            del self.state.records[no]
        return Counter(gone.values())

    def _remove_turns(self, partition: Partition, selection: Selection) -> Removed:
        removed, emptied, cut = 0, list[str](), list[str]()
        for key, turns in [*self.state.turns.items()]:
            if key[0] != partition or selection.session_id not in (None, key[1]):
                continue
            going = [n for n, turn in turns.items() if selection.ids is None or turn.entry_id in selection.ids]
            for number in going:
                del turns[number]
            removed += len(going)
            if not turns:
                emptied.append(key[1])
                del self.state.turns[key], self.state.sessions[key]
            elif going:
                cut.append(key[1])
                head, left = self.state.sessions[key], max(turns) + 1
                self.state.sessions[key] = replace(head, turns=left, reflected=min(head.reflected, left))
        told = self._drop(
            lambda record: (
                record.tenant == partition.tenant
                and record.partition in (None, partition)
                and record.session in emptied
            )
        )
        return Removed(turns=removed, sessions=len(emptied), records=told, cut=cut)

    def drop_partition(self, partition: Partition) -> Removed:
        if partition not in self.state.heads:
            return Removed()
        removed = self.remove(partition, Selection(), turns=True)
        left = self._drop(lambda record: record.partition == partition)
        self.state.removed.pop(self.state.heads.pop(partition)[0], None)
        self._changed.pop(partition, None)
        return replace(removed, records=Counter(removed.records) + left)

    def put_index(
        self,
        rows: Sequence[tuple[int, IndexRecord | None, Vector | None]],
        *,
        model: EmbeddingModel | None = None,
        parts: Mapping[int, bytes] = NO_PARTS,
    ) -> int:
        serves, kept = model in (None, self.state.model), 0
        for no, index, vector in rows:
            row = self.state.rows.get(no)
            if row is None:
                continue
            kept += 1
            self._fits(vector, self.state.model if serves else model)
            row["index"] = index or row["index"]
            if vector is not None and serves:
                row |= {"vector": vector, "parts": parts.get(no)}
            elif vector is not None and model is not None:
                row["new"] = {model.key: (vector, parts.get(no))}
            if index is not None or serves:
                row["seq"] = row["index_seq"] = self._seq(row["entry"].partition)
        return kept

    def use_model(self, model: EmbeddingModel) -> None:
        for partition in self.state.heads if model != self.state.model else ():
            self._seq(partition)
        for row in self.state.rows.values():
            if model != self.state.model:
                row["vector"], row["parts"] = row["new"].get(model.key, (None, None))
                row["seq"] = row["index_seq"] = self._seq(row["entry"].partition)
            row["new"] = {}
        self.state.model = model

    def add_links(self, links: Sequence[Link]) -> int:
        new = set()
        for link in links:
            if link.source == link.target or None in (self._row(link.source), self._row(link.target)):
                raise StoreError("a link needs two entries")
            self._count(link.source, link.target, entries=not link.automatic or link.type in TELLING)
            key = (link.source, link.target, link.type)
            old = self.state.links.get(key)
            if old is None or (old.automatic and not link.automatic):
                self.state.links[key] = link
                new.add(key)
        return len(new)

    def remove_link(self, source: str, target: str, type_: str) -> bool:
        removed = self.state.links.pop((source, target, type_), None) is not None
        if removed:
            self._count(source, target, entries=True)
        return removed

    def _count(self, *ids: str, entries: bool) -> None:
        """A change of the partitions of these entries, or of themselves too."""
        for row in map(self._row, ids):
            if row is not None:
                seq = self._seq(row["entry"].partition)
                row["seq"] = seq if entries else row["seq"]

    def add_turn(self, partition: Partition, turn: Turn, *, touched_at: datetime | None = None) -> None:
        self._head(partition)
        key, at = (partition, turn.session_id), touched_at or turn.at
        there = self._row(turn.entry_id or "") is not None
        turns = self.state.turns.setdefault(key, {})
        if turn.number in turns:
            raise StoreError("the number is taken")
        turns[turn.number] = turn if there else replace(turn, entry_id=None)
        head = self.state.sessions.get(key) or SessionHead(
            partition=partition, id=turn.session_id, turns=0, touched_at=at
        )
        next_ = max(head.turns, turn.number + 1)
        self.state.sessions[key] = replace(head, turns=next_, touched_at=at, ended_at=None)

    def mark_session(
        self, partition: Partition, session_id: str, *, reflected: int | None = None, ended_at: datetime | None = None
    ) -> None:
        head = self.state.sessions.get((partition, session_id))
        if head is None or (reflected is not None and not 0 <= reflected <= head.turns):
            raise StoreError("nothing to mark")
        done = head.reflected if reflected is None else reflected
        self.state.sessions[partition, session_id] = replace(head, reflected=done, ended_at=ended_at or head.ended_at)

    def put_records(self, records: Sequence[Record], *, replace: bool = True) -> list[int | None]:
        return [self._put(record, replace) for record in records]

    def _put(self, record: Record, replaces: bool) -> int | None:
        try:
            body = json.loads(json.dumps(record.body, allow_nan=False))
        except (TypeError, ValueError) as error:
            raise StoreError(str(error)) from None
        if not record.tenant:
            raise StoreError("neither a partition nor a tenant")
        if record.partition is not None:
            self._head(record.partition)
        named = [self._row(name) for name in record.names]
        if any(row is None or row["entry"].tenant != record.tenant for row in named):
            return None
        same = (record.tenant, record.partition, record.kind, record.key)
        there = [r for r in self.state.records.values() if (r.tenant, r.partition, r.kind, r.key) == same and r.key]
        if there and not replaces:
            return None
        if there and (record.kind in ("event", "call", "outcome") or (record.kind == "recall" and body)):
            raise StoreError("append-only")
        whole = {*record.rows} <= {*self.state.rows}
        kept = {"body": body if whole else {}, "rows": record.rows if whole else ()}
        no = there[0].no if there else self._number("record")
        made = there[0].created_at if there else record.created_at
        names = tuple(dict.fromkeys(record.names))
        self.state.records[no] = replace(record, no=no, created_at=made, names=names, **kept)
        return no

    def drop_records(self, wanted: RecordFilter) -> int:
        going = self.records(wanted)
        return self._drop(lambda record: record.no in {one.no for one in going}).total()


class ReferenceStore(Reads):
    def __init__(self) -> None:
        self.state = State()

    @contextmanager
    def transact(self) -> Iterator[ReferenceTx]:
        tx = ReferenceTx(copy.deepcopy(self.state))
        yield tx
        self.state = tx.state
