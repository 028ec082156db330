"""The same operations on the reference and on SQLite give the same answers.

Hypothesis draws transactions of several steps; a step that one store refuses the other must refuse too, and some
transactions are broken off at their end. After each, everything that can be read is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recollect.errors import StoreError
from recollect.stores.base import Selection, Store, Tx
from recollect.stores.inmemory import InMemoryStore
from recollect.stores.sqlite import SqliteStore
from recollect.testing.builders import (
    MODEL,
    OTHER_MODEL,
    make_entry,
    make_event,
    make_index,
    make_link,
    make_record,
    make_shelf,
    make_turn,
    make_vector,
    minutes_later,
)

SHELVES = [make_shelf(), make_shelf("bob"), make_shelf(tenant="rival")]
IDS = ["a", "b", "c", "d", "e"]
SESSIONS = ["monday", "tuesday"]
MODELS = [MODEL, OTHER_MODEL]
TAGS = ["x", "y", "Ü"]

Step = Callable[[Tx], object]
_names = count()

ids = st.sampled_from(IDS)
shelves = st.sampled_from(SHELVES)
sessions = st.sampled_from(SESSIONS)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12)
tag_lists = st.lists(st.sampled_from(TAGS), unique=True)
id_lists = st.lists(ids, unique=True, max_size=3)
selections = st.builds(
    Selection,
    ids=st.none() | id_lists,
    session_id=st.none() | sessions,
    kinds=st.none() | st.lists(st.sampled_from(["note", "fact"]), max_size=2),
    tags=st.none() | tag_lists,
    states=st.none() | st.lists(st.sampled_from(["active", "superseded"]), max_size=2),
)


@st.composite
def fields(draw: st.DrawFn) -> dict[str, Any]:  # any field of Entry
    return {
        "shelf": draw(shelves),
        "text": draw(texts),
        "kind": draw(st.sampled_from(["note", "fact"])),
        "state": draw(st.sampled_from(["active", "flagged", "superseded", "pruned"])),
        "tags": draw(tag_lists),
        "session_id": draw(st.none() | sessions),
        "confidence": draw(st.floats(0, 1)),
        "usage_count": draw(st.integers(0, 9)),
        "position": draw(st.none() | st.integers(0, 9)),
        "valid_to": draw(st.none() | st.just(minutes_later(5))),
        "updated_at": minutes_later(draw(st.integers(0, 9))),
        "metadata": draw(st.dictionaries(texts, st.none() | st.integers(-9, 9) | texts, max_size=2)),
    }


@st.composite
def adding(draw: st.DrawFn) -> Step:
    entry_id, given_fields, with_vector = draw(ids), draw(fields()), draw(st.booleans())
    index = make_index(given_fields["text"], near=draw(st.tuples(st.integers(0, 2), st.integers(0, 2))))
    vector = make_vector(given_fields["text"]) if with_vector else None
    return lambda tx: tx.add(make_record(entry_id, index=index, vector=vector, **given_fields))


@st.composite
def updating(draw: st.DrawFn) -> Step:
    entry = make_entry(draw(ids), **draw(fields()))
    change = draw(st.none() | st.just("edited"))
    index = draw(st.none() | st.just(make_index(entry.text)))
    vector = draw(st.none() | st.just(make_vector(entry.text))) if index else None
    return lambda tx: tx.update(entry, change=change, index=index, vector=vector)


@st.composite
def removing(draw: st.DrawFn) -> Step:
    shelf, selection = draw(shelves), draw(selections)
    return lambda tx: tx.remove(shelf, selection)


@st.composite
def dropping(draw: st.DrawFn) -> Step:
    shelf = draw(shelves)
    return lambda tx: tx.drop_shelf(shelf)


@st.composite
def linking(draw: st.DrawFn) -> Step:
    link = make_link(
        draw(ids), draw(ids), draw(st.sampled_from(["supports", "follows"])), confidence=draw(st.floats(0, 1))
    )
    if draw(st.integers(0, 3)) == 0:
        return lambda tx: tx.remove_link(link.source, link.target, link.type)
    return lambda tx: tx.add_links([link])


@st.composite
def talking(draw: st.DrawFn) -> Step:
    shelf, session_id, text, entry_id = draw(shelves), draw(sessions), draw(texts), draw(st.none() | ids)

    def talk(tx: Tx) -> int:
        number = tx.open_session(shelf, session_id, minutes_later(0))
        tx.add_turn(shelf, make_turn(number, session_id=session_id, text=text, entry_id=entry_id))
        return number

    return talk


@st.composite
def hushing(draw: st.DrawFn) -> Step:
    shelf, session_id, entry_ids = draw(shelves), draw(st.none() | sessions), draw(st.none() | id_lists)
    return lambda tx: tx.remove_turns(shelf, session_id=session_id, entry_ids=entry_ids)


@st.composite
def embedding(draw: st.DrawFn) -> Step:
    model, nos = draw(st.sampled_from(MODELS)), draw(st.lists(st.integers(1, 9), unique=True, max_size=4))
    vectors = [(no, make_vector(f"vector {no}", width=model.width)) for no in nos]
    return lambda tx: tx.put_vectors(model, vectors)


@st.composite
def moving(draw: st.DrawFn) -> Step:
    model = draw(st.sampled_from(MODELS))
    return lambda tx: tx.use_model(model)


@st.composite
def reindexing(draw: st.DrawFn) -> Step:
    no, text = draw(st.integers(1, 9)), draw(texts)
    return lambda tx: tx.put_index([(no, make_index(text))])


@st.composite
def looking(draw: st.DrawFn) -> Step:
    shelf, session_id, tags = draw(shelves), draw(sessions), draw(tag_lists)
    sketches = draw(st.tuples(st.integers(0, 2), st.integers(0, 2)))

    def look(tx: Tx) -> object:
        found = [*tx.session_tail(shelf, session_id, 3), *tx.sharing_tags(shelf, tags, 2, 3)]
        near = [(one.id, None if one.index is None else one.index.near) for one in tx.near(shelf, sketches, 3)]
        return (
            tx.latest(shelf),
            found,
            near,
            tx.get([shelf], IDS),
            tx.find_same(shelf, make_entry("z", text="").content_hash),
        )

    return look


@st.composite
def noting(draw: st.DrawFn) -> Step:
    event = make_event(draw(st.sampled_from(["edit", "link"])), tenant=draw(shelves).tenant, entry_id=draw(ids))
    return lambda tx: tx.audit(event)


steps = st.one_of(
    adding(), adding(), adding(), updating(), updating(), removing(), dropping(), linking(), linking(), talking(),
    talking(), hushing(), embedding(), moving(), reindexing(), looking(), noting(),
)  # fmt: skip
transactions = st.tuples(st.lists(steps, min_size=1, max_size=6), st.integers(0, 5).map(lambda n: n == 0))


class BrokenOffError(Exception):
    """Ends a transaction without committing it."""


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(transactions, min_size=1, max_size=8))
def test_sqlite_answers_as_the_reference_does(tmp_path: Path, history: list[tuple[list[Step], bool]]) -> None:
    reference: Store = InMemoryStore()
    sqlite: Store = SqliteStore(tmp_path / f"{next(_names)}.db", durability="normal")
    try:
        for store in (reference, sqlite):
            run(store, [lambda tx: tx.use_model(MODEL)], break_off=False)
        for taken, break_off in history:
            assert run(sqlite, taken, break_off) == run(reference, taken, break_off)
            assert told(sqlite) == told(reference)
    finally:
        sqlite.close()


def run(store: Store, taken: Sequence[Step], break_off: bool) -> list[object]:
    """What the steps answered; a refusal ends the transaction, and so may `break_off`."""
    answers: list[object] = []
    try:
        with store.transact() as tx:
            answers.extend(step(tx) for step in taken)
            if break_off:
                raise BrokenOffError
    except (StoreError, BrokenOffError) as error:
        answers.append(type(error))
    return answers


def told(store: Store) -> dict[str, object]:
    """Everything that can be read, in a form that compares byte by byte."""
    heads = store.heads(SHELVES)
    numbers = [head.shelf_no for head in heads if head]
    seqs = [head.seq for head in heads if head]
    entries = store.select(SHELVES, Selection(), limit=1000)
    nos = [no for no, _ in entries]
    return {
        "heads": heads,
        "deltas": [delta(store, no, since) for no, seq in zip(numbers, seqs, strict=True) for since in (0, seq - 1)],
        "unknown": [delta(store, no, 0) for no in range(1, 12) if no not in numbers],
        "entries": entries,
        "page": store.select(SHELVES[:2], Selection(kinds=["note"], tags=["x"]), after=1, limit=2),
        "read": store.read([*nos, 999]),
        "tagged": [store.tagged(no, tags) for no in numbers for tags in (["x"], ["x", "Ü"])],
        "sessions": [store.in_session(no, name) for no in numbers for name in SESSIONS],
        "links": store.links(IDS),
        "linked": store.linked(nos[:3]),
        "replaced": [store.replaced(entry_id) for entry_id in IDS],
        "turns": [(store.sessions(shelf), [store.turns(shelf, name) for name in SESSIONS]) for shelf in SHELVES],
        "counts": [store.counts([shelf]) for shelf in SHELVES] + [store.counts(SHELVES)],
        "shelves": store.shelves(),
        "events": [store.events(tenant, limit=5) for tenant in ("acme", "rival")],
        "model": store.model(),
        "lacking": [store.without_vector(model, after=1, limit=3) for model in MODELS],
        "index": {no: stored(*found) for no, found in store.index_of(nos).items()},
        "flaws": list(store.check()),
    }


def delta(store: Store, shelf_no: int, since: int) -> object:
    found = store.delta(shelf_no, since)
    return found.seq, found.rows, set(found.removed)


def stored(index: Any, vector: Any) -> object:  # an index record and a vector, either may be None
    """As bytes: arrays compare element by element otherwise."""
    record = index and (index.terms.tobytes(), index.counts.tobytes(), index.length, index.chars, index.near)
    return record, None if vector is None else vector.tobytes()
