"""A question that is asked again is answered from memory; its answer is what it would be without that."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.world import ADA, Clock, OpenMemory, texts
from wellworn import Memory, Recall, Scope, WellwornError
from wellworn.search.filters import NO_FILTERS

QUERIES = ["Where does Ada live?", "tram", "Who has the violin?"]
TEAM = Scope(tenant=ADA.tenant, user="ada", team="red")
_TEXTS = """
Ada lives in Oslo.
I live in Bergen.
I moved to Turku.
The tram is late.
The tram stops at the harbour.
Bo has the violin.
Who has the violin?
Ada has the violin.
"""
texts_told = st.sampled_from(_TEXTS.strip().splitlines())
place = st.integers(0, 7)
steps = st.one_of(
    st.tuples(st.just("remember"), texts_told, st.sampled_from([ADA, TEAM])),
    st.tuples(st.just("turn"), texts_told, st.none()),
    st.tuples(st.just("edit"), place, texts_told),
    st.tuples(st.just("until"), place, st.integers(1, 3)),
    st.tuples(st.just("forget"), place, st.none()),
    st.tuples(st.just("link"), place, place),
    st.tuples(st.just("unlink"), place, place),
    st.tuples(st.just("supersede"), place, place),
    st.tuples(st.just("cite"), st.integers(0, 2), st.none()),
    st.tuples(st.just("wait"), st.integers(1, 60), st.none()),
)


@pytest.fixture
def count(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that were embedded to be searched for."""
    from wellworn.models.hashing import HashEmbedder

    embedded: list[str] = []
    real = HashEmbedder.embed_query

    def counted(self: HashEmbedder, text: str) -> Any:
        embedded.append(text)
        return real(self, text)

    monkeypatch.setattr(HashEmbedder, "embed_query", counted)
    return embedded


def shown(recall: Recall) -> Any:
    hits = [(hit.entry.id, hit.score, hit.outdated, hit.explanation, hit.entry.text) for hit in recall]
    return hits, recall.confidence, recall.searched, recall.route


def hits_of(recall: Recall) -> Any:
    return msgspec.json.decode(msgspec.json.encode(recall.hits))


def hits_sent(mem: Memory, query: str, scope: Scope) -> Any:
    """The hits as the service sends them; None: they have to be searched for."""
    found = mem.engine.router.again(query, scope=scope, k=5, filters=NO_FILTERS)
    return None if found is None else msgspec.json.decode(msgspec.json.encode(found["hits"]))


@given(st.lists(steps, min_size=1, max_size=12))
def test_it_finds_what_a_memory_finds_that_was_never_asked(changes: list[tuple[str, Any, Any]]) -> None:
    clock = Clock()
    with Memory.open(":memory:", embedder="hash", clock=clock, background=False) as mem:
        for change in changes:
            with suppress(WellwornError):  # such as a link to itself
                _make(mem, clock, *change)
            sent = [hits_sent(mem, query, scope) for query in QUERIES for scope in (ADA, TEAM)]
            again = [shown(mem.recall(query, scope=scope)) for query in QUERIES for scope in (ADA, TEAM)]
            mem.engine.searcher.ram.answers.clear()
            assert again == [shown(mem.recall(query, scope=scope)) for query in QUERIES for scope in (ADA, TEAM)]
            assert again == [shown(mem.recall(query, scope=scope)) for query in QUERIES for scope in (ADA, TEAM)]
            found = [hits_of(mem.recall(query, scope=scope)) for query in QUERIES for scope in (ADA, TEAM)]
            sent += [hits_sent(mem, query, scope) for query in QUERIES for scope in (ADA, TEAM)]
            assert all(one in (None, other) for one, other in zip(sent, found + found, strict=True))


def _make(mem: Memory, clock: Clock, what: str, one: Any, other: Any) -> None:
    ids = [entry.id for entry in mem.entries(scope=TEAM, limit=100)] or ["none"]
    first, second = (ids[place % len(ids)] if isinstance(place, int) else "" for place in (one, other))
    if what == "remember":
        mem.remember(one, scope=other, layer="team" if other is TEAM else "user")
    elif what == "turn":
        mem.session(scope=ADA, session_id="s").add("user", one)
    elif what == "unlink":
        for link in mem.links(first, scope=TEAM)[:1]:
            mem.unlink(link.source, link.target, link.type, scope=TEAM)
    elif what == "cite":
        recall = mem.recall(QUERIES[one], scope=ADA)
        mem.outcome(recall.id, cited=[0] if recall.hits else [])
    else:
        changes: dict[str, Callable[[], object]] = {
            "edit": lambda: mem.edit(first, scope=TEAM, text=other),
            "until": lambda: mem.edit(first, scope=TEAM, valid_to=clock() + timedelta(minutes=10 * other)),
            "forget": lambda: mem.forget(ids=[first], scope=TEAM),
            "link": lambda: mem.link(first, second, "supports", scope=TEAM),
            "supersede": lambda: mem.supersede(first, second, scope=TEAM),
            "wait": lambda: clock.forward(minutes=one),
        }
        changes[what]()


def test_it_is_not_searched_again_until_something_changes(opened: OpenMemory, count: list[str]) -> None:
    mem = opened()
    (first,) = mem.remember("Ada lives in Oslo.", scope=ADA)
    count.clear()
    one, other = (mem.recall("Where does Ada live?", scope=ADA) for _ in range(2))
    assert hits_sent(mem, "Where does Ada live?", ADA) == hits_of(other)
    assert len(count) == 1
    assert one.id != other.id
    assert (one.cost.embedded_texts, other.cost.embedded_texts) == (1, 0)
    assert mem.outcome(one.id, cited=[0])
    assert mem.outcome(other.id, cited=[])
    other.hits[0].entry.tags.append("mine")  # belongs to the caller
    assert mem.recall("Where does Ada live?", scope=ADA)[0].entry.tags == []
    mem.edit(first, text="Ada lives in Bergen.", scope=ADA)
    assert texts(mem, "Where does Ada live?", ADA) == ["Ada lives in Bergen."]


def test_another_person_limit_or_filter_is_another_question(opened: OpenMemory) -> None:
    mem = opened()
    mem.remember_many([{"text": "Ada lives in Oslo.", "tags": ["home"]}, "Ada lives by the sea."], scope=ADA)
    bob = Scope(tenant=ADA.tenant, user="bob")
    assert len(mem.recall("Where does Ada live?", scope=ADA)) == 2
    assert len(mem.recall("Where does Ada live?", scope=ADA, k=1)) == 1
    assert texts(mem, "Where does Ada live?", ADA, tags=["home"]) == ["Ada lives in Oslo."]
    assert mem.recall("Where does Ada live?", scope=bob).hits == []
    assert len(mem.recall("Where does Ada live?", scope=ADA)) == 2


def test_nothing_of_a_question_is_held_after_a_forget(opened: OpenMemory) -> None:
    mem = opened()
    (gone,) = mem.remember("The zeppelin is red.", scope=ADA)
    mem.recall("Which colour has the zeppelin?", scope=ADA)
    mem.forget(ids=[gone], scope=ADA)
    assert len(mem.engine.searcher.ram.answers) == len(mem.engine.searcher.ram.asked) == 0
