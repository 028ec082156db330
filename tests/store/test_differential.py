"""The same operations on the reference, on SQLite and on Postgres give the same answers.

Hypothesis draws transactions of several steps. A step that one store refuses the other must refuse too, and ends the
transaction. After each transaction everything that can be read is compared. Row numbers may have gaps of their own, so
the n-th entry that was ever seen stands for its number, and only the order of records counts.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from contract.builders import (
    MODEL,
    NOON,
    OTHER_MODEL,
    make_index,
    make_link,
    make_new_entry,
    make_partition,
    make_record,
    make_turn,
    make_vector,
    minutes_later,
)
from contract.few import FEWER
from contract.postgres import Server
from store.reference import ReferenceStore
from wellworn.core.errors import StoreError
from wellworn.core.values import LinkType
from wellworn.store.port import RecordFilter, Selection, Store
from wellworn.store.sqlite import SqliteStore

PARTITIONS = [make_partition(), make_partition("bob"), make_partition(tenant="rival")]
IDS, NOS, TAGS, TEXTS = [*"abcd"], [*range(1, 7)], ["x", "y", "Ü"], ["one", "two words", "drei"]
TYPES: list[LinkType] = ["supports", "follows"]
Step = tuple[str, Callable[[Any, "Seen"], Any]]
"""Its name, and what it does in a transaction."""


class Seen:
    """The entries that were ever seen in a store, in the order of their numbers."""

    def __init__(self) -> None:
        self._nos: list[int] = []

    def look(self, store: Any) -> None:
        nos = [no for no, _ in store.select(None, Selection())]
        self._nos = sorted({*self._nos, *nos})

    def no(self, place: int) -> int:
        """The number of the entry at a place from 1; one that none has when there is none yet."""
        return self._nos[place - 1] if place <= len(self._nos) else 10**9 + place

    def place(self, no: int) -> int:
        return self._nos.index(no) + 1


ids, partitions, texts = st.sampled_from(IDS), st.sampled_from(PARTITIONS), st.sampled_from(TEXTS)
sessions, minutes = st.sampled_from(["monday", "tuesday"]), st.integers(0, 9).map(minutes_later)
vectors = st.none() | st.builds(make_vector, texts, width=st.sampled_from([4, 4, 4, 6]))
blobs = st.none() | st.binary(min_size=1, max_size=3)
indexes = st.builds(make_index, texts, near=st.tuples(st.integers(0, 2), st.integers(0, 2)))
fields = st.fixed_dictionaries(
    {
        "text": texts,
        "state": st.sampled_from(["active", "active", "flagged", "superseded"]),
        "tags": st.lists(st.sampled_from(TAGS), unique=True),
        "session_id": st.none() | sessions,
        "usage_count": st.integers(0, 9),
        "valid_to": st.none() | minutes,
        "updated_at": minutes,
    }
)
selections = st.builds(
    Selection,
    ids=st.none() | st.lists(ids, unique=True),
    session_id=st.none() | sessions,
    tags=st.none() | st.lists(st.sampled_from(TAGS), max_size=1),
    states=st.none() | st.just(["active", "superseded"]),
)
records = st.builds(
    make_record,
    st.sampled_from(["", "k", "l"]),
    kind=st.sampled_from(["task", "note", "event", "recall"]),
    partition=partitions,
    state=st.sampled_from(["open", "done"]),
    body=st.dictionaries(texts, st.integers(0, 3), max_size=1),
    blob=st.none() | st.binary(max_size=2),
    names=st.lists(ids, max_size=2).map(tuple),
    rows=st.lists(st.sampled_from(NOS), max_size=2).map(tuple),
    session=st.none() | sessions,
    due_at=st.none() | minutes,
    updated_at=minutes,
)
filters = st.builds(
    RecordFilter,
    kinds=st.just(["task", "note"]),
    partition=st.none() | partitions,
    keys=st.none() | st.just(["k"]),
    states=st.none() | st.just(["done"]),
    due_by=st.none() | minutes,
)


@st.composite
def steps(draw: st.DrawFn) -> Step:
    """One call inside a transaction, with its name for the report of a failure."""
    partition, id, session, at = draw(partitions), draw(ids), draw(sessions), draw(minutes)
    index, vector, parts = draw(indexes), draw(vectors), draw(blobs)
    values: dict[str, Any] = draw(fields)  # fields of Entry
    selection, record, other, no = draw(selections), draw(records), draw(ids), draw(st.sampled_from(NOS))
    number, flag, model = draw(st.integers(0, 3)), draw(st.booleans()), draw(st.sampled_from([MODEL, OTHER_MODEL]))
    link = make_link(id, other, draw(st.sampled_from(TYPES)), automatic=flag, confidence=number / 4)
    wanted = draw(filters)
    new = replace(make_new_entry(id, index=index, vector=vector, partition=partition, **values), parts=parts)

    def update(tx: Any, _: Seen) -> None:
        there = tx.get(None, [id]).get(id)
        if there is not None:
            said = new.entry if flag else there
            after = replace(there, **{**values, "text": said.text, "content_hash": said.content_hash})
            before = there if number > 1 else None
            how: dict[str, Any] = {"index": index, "parts": parts} if flag else {}
            tx.update(after, change="edited" if number % 2 else None, before=before, **how)

    def put_index(tx: Any, seen: Seen) -> int:
        row = seen.no(no)
        told: int = tx.put_index(
            [(row, index if flag else None, vector)], model=model, parts={row: parts} if parts is not None else {}
        )
        return told

    def put(tx: Any, seen: Seen) -> bool:
        rows = tuple(seen.no(place) for place in record.rows)
        return tx.put_records([replace(record, rows=rows)], replace=flag)[0] is not None

    def compare_with_there(tx: Any, _: Seen) -> object:
        same = tx.find_same(partition, new.entry.content_hash)
        return same and same.id, [one.id for one in tx.neighbours(partition, near=index.near, limit=9)]

    acts: dict[str, Callable[[Any, Seen], Any]] = {
        "expect": lambda tx, _: tx.expect([new]),
        "compare": compare_with_there,
        "add": lambda tx, _: tx.add(new),
        "update": update,
        "count_use": lambda tx, seen: tx.count_use([seen.no(no), seen.no(1)], at),
        "remove": lambda tx, _: tx.remove(partition, selection, turns=flag),
        "drop_partition": lambda tx, _: tx.drop_partition(partition) if number == 0 else None,
        "put_index": put_index,
        "use_model": lambda tx, _: tx.use_model(model),
        "add_links": lambda tx, _: tx.add_links([link]),
        "remove_link": lambda tx, _: tx.remove_link(id, other, link.type),
        "add_turn": lambda tx, _: tx.add_turn(
            partition, make_turn(number, session_id=session, entry_id=id), touched_at=at
        ),
        "mark": lambda tx, _: tx.mark_session(partition, session, reflected=number, ended_at=at if flag else None),
        "put": put,
        "drop": lambda tx, _: tx.drop_records(wanted),
    }
    name = draw(st.sampled_from([*acts, "add", "add", "put", "put", "add_turn"]))
    return name, acts[name]


def run(store: Any, seen: Seen, transaction: list[Step]) -> list[object]:
    """What each step returned, up to one that was refused."""
    answers: list[object] = []
    try:
        with store.transact() as tx:
            for _, act in transaction:
                answers.append(act(tx, seen))
    except StoreError:
        answers.append("refused")
    return answers


def picture(store: Any, seen: Seen) -> dict[str, object]:
    """Everything that can be read."""
    seen.look(store)
    heads = store.heads(PARTITIONS)
    deltas = [store.delta(head.partition_no, since) for head in heads if head for since in (0, 1)]
    entries = store.select(None, Selection())
    nos = [no for no, _ in entries]
    orders: list[dict[str, Any]] = [{"order": order} for order in ("oldest", "newest", "due")]
    orders.append({"keys": ["k"], "of_tenant": True})
    near: list[dict[str, Any]] = [{}, {"session_id": "monday", "limit": 3}, {"tags": TAGS, "shared": 2}]
    near.append({"near": (1, 2), "limit": 9})

    def edges() -> list[tuple[Any, ...]]:
        return [(seen.place(source), seen.place(target), *about) for source, target, *about in store.edges(nos)]

    def found(wanted: RecordFilter) -> list[Any]:
        told = store.records(wanted)
        return [replace(one, no=0, rows=tuple(seen.place(no) for no in one.rows)) for one in told]

    return {
        "entries": [(seen.place(no), entry) for no, entry in entries],
        "index": [(seen.place(no), row[0] and row[0].near, row[1] is None) for no, row in store.index_of(nos).items()],
        "parts": [(seen.place(no), blob) for no, blob in sorted(store.parts(nos).items())],
        "slim": [(delta.seq, [(seen.place(row.no), *row[1:]) for row in delta.rows]) for delta in deltas],
        "removed": [len(delta.removed) for delta in deltas],
        "partitions": (store.partitions(), [head and head.seq for head in heads], store.model()),
        "counts": [{k: v for k, v in store.counts([one]).items() if k != "bytes"} for one in PARTITIONS],
        "versions": [store.replaced(id) for id in IDS],
        "links": (store.links(IDS), edges()),
        "sessions": (store.sessions(), store.sessions(tenant="acme", idle_since=minutes_later(5))),
        "turns": [store.turns(head.partition, head.id) for head in store.sessions()],
        "lacking": [{*map(seen.place, store.rows(Selection(without_vector_of=one)))} for one in (MODEL, OTHER_MODEL)],
        "near": [[one.id for one in store.neighbours(PARTITIONS[0], **how)] for how in near],
        "records": [found(RecordFilter(partition=p, **how)) for how in orders for p in PARTITIONS],
        "all": found(RecordFilter(since=NOON, limit=5)),
    }


def compare(store: Store, transactions: list[list[Step]]) -> None:
    """Run the same on a store and on the reference."""
    with closing(store):
        both: list[tuple[Any, Seen]] = [(store, Seen()), (ReferenceStore(), Seen())]
        for one, _ in both:
            with one.transact() as tx:
                tx.use_model(MODEL)
        for transaction in transactions:
            names = [name for name, _ in transaction]
            answers, right = (run(one, seen, transaction) for one, seen in both)
            assert answers == right, names
            found, wanted = (picture(one, seen) for one, seen in both)
            for part, value in wanted.items():
                assert found[part] == value, (names, part)
        assert store.check() == []


several = st.lists(st.lists(steps(), min_size=1, max_size=6), min_size=1, max_size=6)


@given(several)
def test_sqlite_answers_as_the_reference_does(transactions: list[list[Step]]) -> None:
    compare(SqliteStore(":memory:"), transactions)


@given(transactions=several)
@FEWER
def test_postgres_answers_as_the_reference_does(postgres_server: Server, transactions: list[list[Step]]) -> None:
    from wellworn.store.postgres import PostgresStore

    compare(PostgresStore(postgres_server.url(), durability="normal"), transactions)
