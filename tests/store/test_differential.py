"""The same operations on the reference and on SQLite give the same answers.

Hypothesis draws transactions of several steps; a step that one store refuses the other must refuse too, and some
transactions are broken off at their end. After each, everything that can be read is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wellworn.core.errors import StoreError
from wellworn.core.values import LinkType, Partition
from wellworn.store.inmemory import InMemoryStore
from wellworn.store.port import Selection, Store, Tx, Vector
from wellworn.store.sqlite import SqliteStore
from wellworn.testing.builders import (
    MODEL,
    OTHER_MODEL,
    make_call,
    make_entry,
    make_event,
    make_index,
    make_job,
    make_link,
    make_new_entry,
    make_partition,
    make_recall,
    make_record,
    make_turn,
    make_vector,
    minutes_later,
)
from wellworn.testing.store.learning_log import plain

PARTITIONS = [make_partition(), make_partition("bob"), make_partition(tenant="rival")]
IDS = ["a", "b", "c", "d"]
SESSIONS = ["monday", "tuesday"]
MODELS = [MODEL, OTHER_MODEL]
JOBS = ["j1", "j2", "j3"]
PROFILES = ("default", "paper")
RECALLS = ["r1", "r2", "r3"]
LINK_TYPES: list[LinkType] = ["supports", "follows"]
TAGS = ["x", "y", "Ü"]

_names = count()


@dataclass(frozen=True)
class Step:
    """One call inside a transaction, and its arguments for the report of a failure."""

    name: str
    arguments: tuple[object, ...]
    act: Callable[[Tx], object] = field(repr=False)


ids = st.sampled_from(IDS)
partitions = st.sampled_from(PARTITIONS)
sessions = st.sampled_from(SESSIONS)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=12)
rarely = st.integers(0, 9).map(lambda n: n == 9)
"""Whether to do what will be refused: ends the transaction, so not too often."""
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


def vectors_of(text: str) -> st.SearchStrategy[Vector]:
    """Mostly as wide as the model that a history begins with."""
    return st.sampled_from([4, 4, 4, 6]).map(lambda width: make_vector(text, width=width))


@st.composite
def fields(draw: st.DrawFn) -> dict[str, Any]:  # any field of Entry
    return {
        "partition": draw(partitions),
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
    given_fields, insist = draw(fields()), draw(rarely)
    index = make_index(given_fields["text"], near=draw(st.tuples(st.integers(0, 2), st.integers(0, 2))))
    vector = draw(st.none() | vectors_of(given_fields["text"]))
    record = make_new_entry(draw(ids), index=index, vector=vector, **given_fields)

    def add(tx: Tx) -> None:
        if insist or not tx.get(PARTITIONS, [record.entry.id]):
            tx.add(record)

    return Step("add", (record, insist), add)


@st.composite
def updating(draw: st.DrawFn) -> Step:
    entry, insist = make_entry(draw(ids), **draw(fields())), draw(rarely)
    change = draw(st.none() | st.just("edited"))
    index = draw(st.none() | st.just(make_index(entry.text)))
    vector = draw(st.none() | vectors_of(entry.text)) if index else None

    def update(tx: Tx) -> None:
        there = tx.get(PARTITIONS, [entry.id]).get(entry.id)
        if insist:
            tx.update(entry, change=change, index=index, vector=vector)
        elif there is not None:
            tx.update(replace(entry, partition=there.partition), change=change, index=index, vector=vector)

    return Step("update", (entry, change, index, vector, insist), update)


@st.composite
def using(draw: st.DrawFn) -> Step:
    nos, at = draw(st.lists(st.integers(1, 9), unique=True, max_size=3)), minutes_later(draw(st.integers(0, 9)))

    def use(tx: Tx) -> set[int]:
        tx.count_use(nos, at)
        return tx.alive(nos)

    return Step("count_use", (nos, at), use)


@st.composite
def removing(draw: st.DrawFn) -> Step:
    partition, selection = draw(partitions), draw(selections)
    return Step("remove", (partition, selection), lambda tx: tx.remove(partition, selection))


@st.composite
def dropping(draw: st.DrawFn) -> Step:
    partition = draw(partitions)
    return Step("drop_partition", (partition,), lambda tx: tx.drop_partition(partition))


@st.composite
def linking(draw: st.DrawFn) -> Step:
    type_: LinkType = draw(st.sampled_from(LINK_TYPES))
    confidence, automatic, insist = draw(st.floats(0, 1)), draw(st.booleans()), draw(rarely)
    link = make_link(draw(ids), draw(ids), type_, confidence=confidence, automatic=automatic)
    if draw(st.integers(0, 3)) == 0:
        return Step("remove_link", (link,), lambda tx: tx.remove_link(link.source, link.target, link.type))

    def add_links(tx: Tx) -> int:
        possible = len(tx.get(PARTITIONS, [link.source, link.target])) == 2
        return tx.add_links([link, link]) if possible or insist else 0

    return Step("add_links", (link, insist), add_links)


@st.composite
def talking(draw: st.DrawFn) -> Step:
    partition, session_id, text, entry_id = draw(partitions), draw(sessions), draw(texts), draw(st.none() | ids)

    def talk(tx: Tx) -> int:
        number = tx.open_session(partition, session_id, minutes_later(0))
        tx.add_turn(partition, make_turn(number, session_id=session_id, text=text, entry_id=entry_id))
        return number

    return Step("talk", (partition, session_id, text, entry_id), talk)


@st.composite
def hushing(draw: st.DrawFn) -> Step:
    partition, session_id, entry_ids = draw(partitions), draw(st.none() | sessions), draw(st.none() | id_lists)
    arguments = (partition, session_id, entry_ids)
    return Step(
        "remove_turns", arguments, lambda tx: tx.remove_turns(partition, session_id=session_id, entry_ids=entry_ids)
    )


@st.composite
def embedding(draw: st.DrawFn) -> Step:
    model, nos = draw(st.sampled_from(MODELS)), draw(st.lists(st.integers(1, 9), unique=True, max_size=4))
    vectors = [(no, make_vector(f"vector {no}", width=model.width)) for no in nos]
    return Step("put_vectors", (model, nos), lambda tx: tx.put_vectors(model, vectors))


@st.composite
def moving(draw: st.DrawFn) -> Step:
    model = draw(st.sampled_from(MODELS))
    return Step("use_model", (model,), lambda tx: tx.use_model(model))


@st.composite
def reindexing(draw: st.DrawFn) -> Step:
    no, text = draw(st.integers(1, 9)), draw(texts)
    return Step("put_index", (no, text), lambda tx: tx.put_index([(no, make_index(text))]))


@st.composite
def looking(draw: st.DrawFn) -> Step:
    partition, session_id, tags = draw(partitions), draw(sessions), draw(tag_lists)
    sketches = draw(st.tuples(st.integers(0, 2), st.integers(0, 2)))

    def look(tx: Tx) -> object:
        found = [*tx.session_tail(partition, session_id, 3), *tx.sharing_tags(partition, tags, 2, 3)]
        near = [(one.id, None if one.index is None else one.index.near) for one in tx.near(partition, sketches, 3)]
        return (
            tx.latest(partition),
            found,
            near,
            tx.get([partition], IDS),
            tx.find_same(partition, make_entry("z", text="").content_hash),
            tx.model(),
        )

    return Step("look", (partition, session_id, tags, sketches), look)


@st.composite
def noting(draw: st.DrawFn) -> Step:
    event = make_event(draw(st.sampled_from(["edit", "link"])), tenant=draw(partitions).tenant, entry_id=draw(ids))
    return Step("audit", (event,), lambda tx: tx.audit(event))


@st.composite
def logging(draw: st.DrawFn) -> Step:
    recalls = [
        make_recall(
            id, partition=draw(partitions), query=draw(texts), nos=draw(st.lists(st.integers(1, 9), max_size=3))
        )
        for id in draw(st.lists(st.sampled_from(RECALLS), max_size=3))
    ]
    return Step("add_recalls", tuple(recalls), lambda tx: tx.add_recalls(recalls))


@st.composite
def judging(draw: st.DrawFn) -> Step:
    recall_id, kind, insist = (
        draw(st.sampled_from(RECALLS)),
        draw(st.sampled_from(["ignored", "refined"])),
        draw(rarely),
    )
    value = draw(st.dictionaries(texts, st.floats(allow_nan=False) | st.lists(st.integers(1, 9)) | texts, max_size=2))

    def add_outcome(tx: Tx) -> object:
        there = tx.logged_recall(recall_id)
        no = tx.add_outcome(recall_id, kind, value, minutes_later(1)) if there or insist else None
        return no, there and plain(there)

    return Step("add_outcome", (recall_id, kind, value, insist), add_outcome)


@st.composite
def learning(draw: st.DrawFn) -> Step:
    partition, whole, state = draw(partitions), draw(st.booleans()), draw(texts)
    tenant, of = partition.tenant, None if whole else partition
    profile = draw(st.sampled_from(PROFILES))
    if draw(rarely):
        chosen = None if whole else profile
        return Step("drop_policies", (tenant, chosen), lambda tx: tx.drop_policies(tenant, profile=chosen))

    def put_policy(tx: Tx) -> object:
        before = tx.policy(tenant, of, profile=profile)
        tx.put_policy(tenant, of, state, profile=profile)
        return before, tx.policy(tenant, of, profile=profile)

    return Step("put_policy", (tenant, of, state, profile), put_policy)


@st.composite
def marking(draw: st.DrawFn) -> Step:
    partition, session_id, insist = draw(partitions), draw(sessions), draw(rarely)
    reflected, ended_at = draw(st.none() | st.integers(-1, 3)), draw(st.none() | st.just(minutes_later(3)))

    def mark_session(tx: Tx) -> object:
        head = tx.session(partition, session_id)
        if insist or (head and 0 <= (reflected or 0) <= head.turns):
            tx.mark_session(partition, session_id, reflected=reflected, ended_at=ended_at)
        return head, tx.session(partition, session_id)

    return Step("mark_session", (partition, session_id, reflected, ended_at, insist), mark_session)


@st.composite
def queueing(draw: st.DrawFn) -> Step:
    job = make_job(
        draw(st.sampled_from(JOBS)),
        partition=draw(partitions),
        kind=draw(st.sampled_from(["reflect", "sum"])),
        key=draw(st.sampled_from("kl")),
        payload=draw(st.just({}) | st.builds(dict, session=sessions | texts)),
        due_at=minutes_later(draw(st.integers(0, 9))),
    )
    insist = draw(rarely)
    return Step("add_job", (job, insist), lambda tx: tx.add_job(job) if insist or not tx.job(job.id) else None)


@st.composite
def claiming(draw: st.DrawFn) -> Step:
    now, lease_s = minutes_later(draw(st.integers(0, 9))), timedelta(minutes=draw(st.integers(0, 9)))
    chosen: dict[str, Any] = {  # the keywords of claim_job
        "kinds": draw(st.none() | st.lists(st.sampled_from(["reflect", "sum"]), max_size=2)),
        "tenant": draw(st.none() | partitions.map(lambda partition: partition.tenant)),
        "id": draw(st.none() | st.sampled_from(JOBS)),
    }
    return Step("claim_job", (now, lease_s, chosen), lambda tx: tx.claim_job("w", now, now + lease_s, **chosen))


@st.composite
def ending(draw: st.DrawFn) -> Step:
    id, state = draw(st.sampled_from(JOBS)), draw(st.sampled_from(["done", "dead", "queued"]))
    due_at = minutes_later(draw(st.integers(0, 9)))

    def put_job(tx: Tx) -> object:
        job = tx.job(id)
        if job is not None:
            tx.put_job(replace(job, state=state, worker=None, lease_until=None, due_at=due_at, error="ü"))
        return job, tx.job(id)

    return Step("put_job", (id, state, due_at), put_job)


@st.composite
def bookkeeping(draw: st.DrawFn) -> Step:
    partition, key = draw(partitions), draw(st.sampled_from("kl"))
    if draw(rarely):
        return Step("drop_record", (partition, key), lambda tx: tx.drop_record(partition, "task", key))
    record = make_record(
        key,
        partition=partition,
        state=draw(texts),
        body={"said": draw(texts)},
        session=draw(st.none() | sessions),
        names=tuple(draw(st.lists(st.sampled_from(IDS), max_size=2))),
        updated_at=minutes_later(draw(st.integers(0, 9))),
    )
    return Step("put_record", (record,), lambda tx: (tx.put_record(record), tx.record(partition, "task", key)))


@st.composite
def booking(draw: st.DrawFn) -> Step:
    calls = [
        make_call(
            tenant=draw(partitions).tenant,
            session=draw(st.none() | sessions),
            model=draw(st.sampled_from("ab")),
            at=minutes_later(draw(st.integers(0, 2000))),
            input_tokens=draw(st.integers(0, 9)),
            ok=draw(st.booleans()),
        )
        for _ in range(draw(st.integers(0, 3)))
    ]
    return Step("add_calls", tuple(calls), lambda tx: tx.add_calls(calls))


steps = st.one_of(
    adding(),
    adding(),
    adding(),
    adding(),
    adding(),
    updating(),
    updating(),
    updating(),
    using(),
    removing(),
    dropping(),
    linking(),
    linking(),
    linking(),
    talking(),
    talking(),
    hushing(),
    embedding(),
    moving(),
    reindexing(),
    looking(),
    noting(),
    logging(),
    logging(),
    judging(),
    judging(),
    learning(),
    marking(),
    queueing(),
    queueing(),
    claiming(),
    ending(),
    booking(),
    bookkeeping(),
)
transactions = st.tuples(st.lists(steps, min_size=1, max_size=8), st.integers(0, 5).map(lambda n: n == 0))


class BrokenOffError(Exception):
    """Ends a transaction without committing it."""


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(transactions, min_size=1, max_size=6))
def test_sqlite_answers_as_the_reference_does(tmp_path: Path, history: list[tuple[list[Step], bool]]) -> None:
    reference: Store = InMemoryStore()
    sqlite: Store = SqliteStore(tmp_path / f"{next(_names)}.db", durability="normal")
    try:
        for store in (reference, sqlite):
            run(store, [Step("use_model", (MODEL,), lambda tx: tx.use_model(MODEL))], break_off=False)
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
            answers.extend(step.act(tx) for step in taken)
            if break_off:
                raise BrokenOffError
    except (StoreError, BrokenOffError) as error:
        answers.append(type(error))
    return answers


def told(store: Store) -> dict[str, object]:
    """Everything that can be read, in a form that compares byte by byte."""
    heads = store.heads(PARTITIONS)
    numbers = [head.partition_no for head in heads if head]
    seqs = [head.seq for head in heads if head]
    entries = store.select(PARTITIONS, Selection(), limit=1000)
    nos = [no for no, _ in entries]
    return {
        "heads": heads,
        "deltas": [delta(store, no, since) for no, seq in zip(numbers, seqs, strict=True) for since in (0, seq - 1)],
        "pages": [pages(store, no, since) for no, seq in zip(numbers, seqs, strict=True) for since in (0, seq - 1)],
        "unknown": [delta(store, no, 0) for no in range(1, 12) if no not in numbers],
        "entries": entries,
        "where": store.where([*IDS, "nobody"]),
        "page": store.select(PARTITIONS[:2], Selection(kinds=["note"], tags=["x"]), after=1, limit=2),
        "read": store.read([*nos, 999]),
        "tagged": [store.tagged(no, tags) for no in numbers for tags in (["x"], ["x", "Ü"])],
        "sessions": [store.in_session(no, name) for no in numbers for name in SESSIONS],
        "links": store.links(IDS),
        "linked": store.linked(nos[:3]),
        "replaced": [store.replaced(entry_id) for entry_id in IDS],
        "turns": [
            (store.sessions(partition), [store.turns(partition, name) for name in SESSIONS]) for partition in PARTITIONS
        ],
        "counts": [store.counts([partition]) for partition in PARTITIONS] + [store.counts(PARTITIONS)],
        "partitions": store.partitions(),
        "events": [store.events(tenant, limit=5) for tenant in ("acme", "rival")],
        "recalls": [(found := store.logged_recall(id)) and plain(found) for id in RECALLS],
        "outcomes": [outcomes(store, partition.tenant, of) for partition in PARTITIONS for of in (None, partition)],
        "policies": [
            store.policy(partition.tenant, of, profile=profile)
            for partition in PARTITIONS
            for of in (None, partition)
            for profile in PROFILES
        ],
        "heads of sessions": [store.session(partition, name) for partition in PARTITIONS for name in SESSIONS],
        "idle": [store.idle_sessions(minutes_later(n), tenant=t, limit=2) for n in (1, 99) for t in (None, "acme")],
        "jobs": store.jobs() + store.jobs(partition=PARTITIONS[1], states=["queued", "done"], kinds=["sum"], limit=1),
        "records": store.records() + store.records(partition=PARTITIONS[1], kinds=["task"], limit=1),
        "spent": [store.spent(t, by=by) for t in (None, "acme") for by in ((), ("model",), ("day", "purpose"))],
        "spent on sessions": [store.spent("acme", session=name, since=minutes_later(9)) for name in SESSIONS],
        "model": store.model(),
        "lacking": [store.without_vector(model, after=1, limit=3) for model in MODELS],
        "index": {no: stored(*found) for no, found in store.index_of(nos).items()},
        "flaws": list(store.check()),
    }


def delta(store: Store, partition_no: int, since: int) -> object:
    found = store.delta(partition_no, since)
    return found.seq, found.rows, set(found.removed)


def pages(store: Store, partition_no: int, since: int) -> object:
    """Two rows at a time, after every row number there may be."""
    found = [store.delta(partition_no, since, after=after, limit=2) for after in range(10)]
    return [(page.seq, page.rows, set(page.removed)) for page in found]


def outcomes(store: Store, tenant: str, partition: Partition | None) -> object:
    found = [
        *store.outcomes(tenant, partition=partition),
        *store.outcomes(tenant, partition=partition, after=1, limit=2),
    ]
    return [(one.no, plain(one.recall), one.kind, one.value, one.at) for one in found]


def stored(index: Any, vector: Any) -> object:  # an index record and a vector, either may be None
    """As bytes: arrays compare element by element otherwise."""
    record = index and (index.terms.tobytes(), index.counts.tobytes(), index.length, index.chars, index.near)
    return record, None if vector is None else vector.tobytes()
