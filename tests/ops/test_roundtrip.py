"""Whatever can be in a store comes out of an export as it went in."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.few import FEWER
from wellworn.core.values import KINDS, LAYERS, LINK_TYPES, Entry, Link, Partition, Turn
from wellworn.ingest.terms import record_of
from wellworn.models.hashing import HashEmbedder
from wellworn.ops.doctor import verify
from wellworn.ops.lines import settled
from wellworn.store.port import NewEntry, Replaced, Store

from .conftest import everything_in, open_memory, open_store
from .test_markdown import JSON, TEXT

WORDS = TEXT.filter(lambda text: bool(text.strip()))
NAMES = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=30)
IDS = NAMES.filter(lambda text: bool(text.strip()))
TAGS = st.lists(IDS.map(str.strip).filter(bool), max_size=3, unique=True)
# Two weeks at either end leave room for the durations below.
TIMES = st.datetimes(datetime(1, 1, 15), datetime(9999, 12, 1)).map(lambda moment: moment.replace(tzinfo=UTC))
COUNTS = st.integers(0, 2**40)
BIG = st.none() | st.integers(-(2**63), 2**63 - 1)


@st.composite
def entries(draw: st.DrawFn) -> Entry:
    at, created = draw(TIMES), draw(TIMES)
    text = draw(WORDS)
    entry = Entry(
        id=str(draw(st.uuids(allow_nil=True))),
        partition=Partition(tenant=draw(IDS), layer=draw(st.sampled_from(LAYERS)), layer_id=draw(IDS)),
        kind=draw(st.sampled_from(KINDS)),
        text=text,
        title=draw(NAMES),
        tags=draw(TAGS),
        evidence=draw(st.just(text) | st.just("") | WORDS),
        source=draw(NAMES),
        speaker=draw(st.none() | NAMES),
        session_id=draw(st.none() | IDS),
        turn_refs=draw(st.lists(st.integers(0, 2**31 - 1), max_size=3)),
        thread=draw(BIG),
        position=draw(BIG),
        confidence=draw(st.floats(0, 1)),
        trust=draw(st.sampled_from(["trusted", "untrusted"])),
        state=draw(st.sampled_from(["active", "flagged", "pruned"])),
        repeats=draw(COUNTS),
        usage_count=draw(COUNTS),
        success_count=draw(COUNTS),
        failure_count=draw(COUNTS),
        at=at,
        created_at=created,
        updated_at=created + draw(st.timedeltas(timedelta(), timedelta(days=9))),
        valid_from=at,
        valid_to=draw(st.none() | st.just(at + timedelta(microseconds=1))),
        metadata=draw(st.dictionaries(NAMES, JSON, max_size=3)),
    )
    return settled(entry)


def put(store: Store, found: list[Entry], type_: str) -> None:
    """The entries with vectors, a chain of links, a turn and an old version each."""
    vectors = HashEmbedder(16).embed([entry.text for entry in found])
    with store.transact() as tx:
        for entry, vector in zip(found, vectors, strict=True):
            older = Replaced(entry=replace(entry, confidence=0.5), change="edited", changed_at=entry.at)
            tx.add(NewEntry(entry=entry, index=record_of(entry), vector=vector, history=[older]))
            turn = Turn(
                session_id=entry.id, number=3, role=entry.title, text=entry.text, at=entry.at, entry_id=entry.id
            )
            tx.add_turn(entry.partition, turn)
        tx.add_links(
            [
                Link(source=a.id, target=b.id, type=type_, confidence=a.confidence, created_at=b.at)  # type: ignore[arg-type]
                for a, b in pairwise(found)
            ]
        )


def distinct(found: list[Entry]) -> list[Entry]:
    """One tenant, each id and each content of a partition once."""
    same_tenant = [
        replace(entry, partition=replace(entry.partition, tenant=found[0].partition.tenant)) for entry in found
    ]
    by_id = {entry.id: entry for entry in same_tenant}
    return list({(entry.partition, entry.content_hash): entry for entry in by_id.values()}.values())


@pytest.mark.parametrize("name", ["notes", "all.jsonl"])
@given(found=st.lists(entries(), min_size=1, max_size=4).map(distinct), type_=st.sampled_from(LINK_TYPES))
@FEWER
def test_entries_of_any_content_make_the_round_trip(name: str, found: list[Entry], type_: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        store, other_store = open_store(folder, "a"), open_store(folder, "b")
        memory, other = open_memory(store), open_memory(other_store)
        put(store, found, type_)
        memory.admin.export(folder / name)
        loaded = other.admin.load(folder / name)
        assert (loaded.entries, loaded.links) == (len(found), len(found) - 1)
        before, after = everything_in(store), everything_in(other_store)
        kept = ("entries", "links") if name == "notes" else tuple(before)
        assert {part: after[part] for part in kept} == {part: before[part] for part in kept}
        assert {flaw.check for flaw in verify(other_store, None).flaws} <= {"episode"}
        store.close()
        other_store.close()
