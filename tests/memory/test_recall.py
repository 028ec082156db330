"""recall: what comes back, in which order, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.world import ADA, BEN, Clock, OpenMemory, texts
from wellworn import InvalidInput, Memory, Profile, Recall, Scope, ScopeError
from wellworn.core.values import LAYERS
from wellworn.store.port import Store
from wellworn.store.sqlite import SqliteStore

FACTS = [
    "Ada prefers tokio over async-std.",
    "Ben keeps bees on the roof of the library.",
    "The quarterly report is due on Friday.",
    "Ada ran the charity race on Saturday.",
    "The espresso machine in the kitchen is broken.",
    "Our Postgres cluster moved to Frankfurt.",
]


@pytest.fixture
def full(mem: Memory) -> Memory:
    mem.remember_many(FACTS, scope=ADA)
    return mem


def same_answer(a: Recall, b: Recall) -> bool:
    return [(h.entry, h.score, h.explanation) for h in a] == [(h.entry, h.score, h.explanation) for h in b]


def test_the_best_answer_comes_first(full: Memory) -> None:
    found = full.recall("which async runtime does Ada like, tokio?", scope=ADA, k=3)
    assert found.hits[0].entry.text == FACTS[0]
    assert len(found.hits) == len(found) == 3
    assert found.route
    assert found.query == "which async runtime does Ada like, tokio?"
    assert found.searched == len(FACTS)
    assert found.cost.embedded_texts == 1
    assert found.cost.seconds > 0
    assert found.cost.model_calls == 0
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)


def test_the_bundled_embedder_finds_by_meaning_where_no_word_is_shared(opened: OpenMemory, location: str) -> None:
    mem = opened(location, embedder="reader")
    mem.remember_many(FACTS, scope=ADA)
    assert texts(mem, "coffee maker out of order", ADA, k=1) == [FACTS[4]]


def test_an_empty_memory_answers_with_no_hits(mem: Memory) -> None:
    found = mem.recall("anything?", scope=ADA)
    assert (found.hits, found.searched, found.context()) == ([], 0, "")


def test_the_factors_add_up_to_the_score(full: Memory) -> None:
    session = full.session(scope=ADA, session_id="s")
    session.add("user", "where are the bees?")
    session.add("Ben", "the bees live on the roof")
    first, second = full.entries(scope=ADA, limit=2)
    full.link(first.id, second.id, "supports", scope=ADA)
    for hit in full.recall("where does Ben keep the bees?", scope=ADA, k=50):
        assert sum(hit.factors.values()) == pytest.approx(hit.score, abs=1e-9)
        assert len(hit.factors) == len(hit.explanation)
        assert all(f.value * f.weight == f.contribution for f in hit.explanation)


@pytest.mark.parametrize("profile", ["default", "reasoningbank", "paper"])
def test_every_profile_explains_its_score(opened: OpenMemory, location: str, profile: str) -> None:
    mem = opened(location, profile=profile, learning="off")  # the paper's reranker draws lots when it learns
    mem.remember_many(FACTS, scope=ADA)
    hits = mem.recall("bees on the roof", scope=ADA).hits
    assert hits[0].entry.text == FACTS[1]
    for hit in hits:
        assert sum(hit.factors.values()) == pytest.approx(hit.score, abs=1e-9)


def test_two_stores_with_the_same_history_answer_alike(opened: OpenMemory, path: str) -> None:
    answers = []
    for location in (path, ":memory:"):
        numbers = iter(range(1000))
        mem = opened(location, new_id=lambda numbers=numbers: f"00000000-0000-7000-8000-{next(numbers):012d}")
        mem.remember_many(FACTS, scope=ADA, tags=["a", "b"])
        for word in ("tea", "coffee", "water"):
            mem.session(scope=ADA, session_id="s").add("user", f"I drink {word}")
        answers.append(mem.recall("what does Ada drink at the library?", scope=ADA, k=20))
    assert same_answer(*answers)


# -- how many ----------------------------------------------------------------------------------------------------


def test_min_score_cuts_off_what_scores_less(full: Memory) -> None:
    scores = [hit.score for hit in full.recall("bees on the roof", scope=ADA, k=6)]
    kept = full.recall("bees on the roof", scope=ADA, k=6, min_score=scores[1])
    assert [hit.score for hit in kept] == scores[:2]
    assert full.recall("bees on the roof", scope=ADA, min_score=scores[0] + 1).hits == []


# -- filters -----------------------------------------------------------------------------------------------------


@pytest.fixture
def partition(mem: Memory) -> Memory:
    mem.remember("tea in the morning", scope=ADA, kind="preference", tags=["drink", "hot"], at="2026-01-01")
    mem.remember("tea is made of leaves", scope=ADA, kind="fact", tags=["drink"], at="2026-02-01")
    mem.remember("tea strategy for guests", scope=ADA, kind="strategy", at="2026-03-01", session_id="s1")
    mem.session(scope=ADA, session_id="s2").add("user", "tea please", at="2026-04-01")
    return mem


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"kind": "fact"}, {"tea is made of leaves"}),
        ({"kind": ["fact", "episode"]}, {"tea is made of leaves", "tea please"}),
        ({"kind": "guardrail"}, set()),
        ({"tags": "drink"}, {"tea in the morning", "tea is made of leaves"}),
        ({"tags": ["drink", "hot"]}, {"tea in the morning"}),
        ({"tags": ["no such tag"]}, set()),
        ({"session_id": "s1"}, {"tea strategy for guests"}),
        ({"session_id": "s2"}, {"tea please"}),
        ({"session_id": "s3"}, set()),
        ({"since": "2026-02-01"}, {"tea is made of leaves", "tea strategy for guests", "tea please"}),
        ({"until": "2026-02-01"}, {"tea in the morning"}),
        ({"since": "2026-02-01", "until": "2026-03-02"}, {"tea is made of leaves", "tea strategy for guests"}),
        ({"kind": "fact", "tags": "hot"}, set()),
        ({"layer": "user", "kind": "fact"}, {"tea is made of leaves"}),
        ({"layer": "org"}, set()),
        ({"layer": ["org", "user"], "kind": "fact"}, {"tea is made of leaves"}),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_a_filter_keeps_what_it_names(partition: Memory, options: dict[str, Any], expected: set[str]) -> None:
    found = partition.recall("tea", scope=ADA, k=10, **options)
    assert {hit.entry.text for hit in found} == expected
    assert found.searched == len(expected)


def test_a_filter_reaches_entries_that_many_better_ones_stand_before(mem: Memory) -> None:
    mem.remember_many([f"tea tea tea number {n}" for n in range(400)], scope=ADA)
    mem.remember("a word about something else", scope=ADA, kind="fact", tags=["rare"])
    assert texts(mem, "tea tea tea", ADA, kind="fact") == ["a word about something else"]
    assert texts(mem, "tea tea tea", ADA, tags="rare") == ["a word about something else"]


@pytest.mark.parametrize(
    "asked",
    [
        "What do you know about me?",
        "what do you remember about the user",
        "what is known about the user?",
        "Everything about me",
        "user preferences",
        "the user's profile",
        "Do you remember anything about me?",
        "Was weißt du über mich?",
        "¿Qué sabes de mí?",
        "Que sais-tu de moi ?",
    ],
)
def test_whatever_is_known_of_a_person_is_told_newest_first(asked: str) -> None:
    with Memory.open(":memory:", background=False) as memory:
        ada = memory.for_user("ada")
        assert not ada.recall(asked).hits
        told = [("user", "I live in Oslo."), ("user", "I'm allergic to nuts."), ("user", "What do you know about me?")]
        for session, turns in (("s1", told), ("s2", [("user", "I moved to Bergen.")])):
            ada.session(session).add_turns(turns)
            ada.reflect(session)
        memory.for_user("eve").remember("I live in Rome.", kind="fact")
        found = ada.recall(asked, min_confidence=0.5)
        assert [hit.entry.kind for hit in found] == ["fact", "fact"]
        assert "Bergen" in found[0].text
        assert "nuts" in found[1].text
        assert [hit.text for hit in ada.recall(asked, k=1)] == [found[0].text]
        assert not ada.recall(asked, kind="preference").hits
        assert ada.outcome(found.id, cited=[0])


@pytest.mark.parametrize("asked", ["What do you know about my cat?", "What did I tell you about Oslo?", "user login"])
def test_what_is_known_of_something_else_is_searched_for(asked: str) -> None:
    with Memory.open(":memory:", background=False) as memory:
        ada = memory.for_user("ada")
        ada.remember("I'm allergic to nuts.", kind="fact")
        assert not any("told" in hit.factors for hit in ada.recall(asked))


def test_an_unknown_layer_or_kind_is_an_error_that_lists_the_known_ones(partition: Memory) -> None:
    with pytest.raises(InvalidInput, match=r"gossip.*preference"):
        partition.recall("tea", scope=ADA, kind="gossip")  # type: ignore[arg-type]
    with pytest.raises(ScopeError, match=r"planet.*company"):
        partition.recall("tea", scope=ADA, layer="planet")  # type: ignore[arg-type]


# -- layers ------------------------------------------------------------------------------------------------------

EVERYWHERE = Scope(tenant="acme", agent="a", user="ada", session="s", project="p", team="t", org="o", company="c")


@pytest.mark.parametrize("order", [LAYERS, LAYERS[::-1]])
def test_the_more_specific_layer_wins_a_tie(mem: Memory, order: Sequence[str]) -> None:
    for layer in order:
        mem.remember("the door code is on the blue note", scope=EVERYWHERE, layer=layer)  # type: ignore[arg-type]
    hits = mem.recall("what is the door code?", scope=EVERYWHERE, k=7).hits
    assert [hit.entry.layer for hit in hits] == list(LAYERS)
    assert max(hit.score for hit in hits) == pytest.approx(min(hit.score for hit in hits), abs=1e-4)


def test_a_better_match_of_a_general_layer_still_wins(mem: Memory) -> None:
    mem.remember("the door is green", scope=EVERYWHERE, layer="agent")
    mem.remember("the door code is 4711", scope=EVERYWHERE, layer="company")
    assert mem.recall("what is the door code?", scope=EVERYWHERE).hits[0].entry.layer == "company"


def test_a_scope_sees_only_the_layers_it_names(mem: Memory) -> None:
    for layer in LAYERS:
        mem.remember(f"known at the {layer}", scope=EVERYWHERE, layer=layer)
    few = Scope(tenant="acme", user="ada", org="o")
    assert set(texts(mem, "known", few, k=20)) == {"known at the user", "known at the org"}
    other = Scope(tenant="acme", user="ada", org="another")
    assert set(texts(mem, "known", other, k=20)) == {"known at the user"}


def test_another_persons_entries_change_neither_hits_nor_scores(mem: Memory) -> None:
    mem.remember_many(FACTS, scope=ADA)
    before = mem.recall("bees and reports", scope=ADA, k=10)
    mem.remember_many([f"bees and reports {n}" for n in range(50)], scope=BEN)
    mem.remember_many(["bees and reports"] * 3, scope=Scope(tenant="rival", user="ada"))
    assert same_answer(mem.recall("bees and reports", scope=ADA, k=10), before)


# -- neighbours --------------------------------------------------------------------------------------------------


# -- only what is returned is read -------------------------------------------------------------------------------


class Spy:
    """A store that notes which whole entries are read."""

    def __init__(self, inner: Any) -> None:  # any store
        self._inner = inner
        self.read_nos: list[int] = []
        self.other: list[str] = []

    def read(self, nos: Sequence[int]) -> Any:
        self.read_nos += nos
        return self._inner.read(nos)

    def __getattr__(self, name: str) -> Any:
        if name in ("get", "select", "without_vector", "replaced", "turns"):
            self.other.append(name)
        return getattr(self._inner, name)


Store.register(Spy)


def test_texts_of_entries_that_are_not_returned_are_never_read() -> None:
    spy = Spy(SqliteStore(":memory:"))
    mem = Memory(spy, embedder=None)  # type: ignore[arg-type]  # registered above
    session = mem.session(scope=ADA, session_id="s")
    mem.remember_many([f"fact {n} about bees and tea" for n in range(300)], scope=ADA, tags=["t"])
    for n in range(20):
        session.add("user", f"turn {n} about bees")
    spy.other.clear()
    ids = []
    for options in ({}, {"tags": "t"}, {"session_id": "s"}, {"kind": "note", "since": "2000-01-01"}):
        spy.read_nos.clear()
        found = mem.recall("bees and tea", scope=ADA, k=4, **options)  # type: ignore[arg-type]
        assert len(found) == 4
        assert len(spy.read_nos) <= 4
        ids += [hit.entry.id for hit in found]
    assert spy.other == []
    spy.read_nos.clear()
    mem.recall("bees and tea", scope=ADA, k=4)
    assert spy.read_nos == []  # hot texts come from the cache
    mem.close()


def test_what_a_caller_does_to_a_hit_does_not_change_the_next_answer(mem: Memory) -> None:
    mem.remember("the bees", scope=ADA, tags=["a"], turn_refs=[1], metadata={"list": [1], "map": {"x": 1}})
    for _ in range(2):
        entry = mem.recall("bees", scope=ADA).hits[0].entry
        assert (entry.tags, entry.turn_refs, entry.metadata) == (["a"], [1], {"list": [1], "map": {"x": 1}})
        entry.tags.append("b")
        entry.turn_refs.append(2)
        entry.metadata["list"].append(2)
        entry.metadata["map"]["y"] = 2
        entry.metadata["new"] = 1


# -- all kinds of text -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("昨日は東京で寿司を食べました", "寿司を食べた場所は東京ですか"),
        ("我喜欢喝绿茶", "绿茶"),
        ("저는 김치찌개를 좋아해요", "김치찌개"),
        ("Crème brûlée at the café", "creme brulee cafe"),
        ("Ελληνικά γράμματα", "ελληνικα"),
        ("كتاب عن النحل", "النحل"),
        ("🐝🐝🐝", "🐝"),
        ("Straße nach Köln", "koln"),
        ("don’t forget O’Brien", "O'Brien"),
        ("C++ and C#", "c++"),
    ],
)
@pytest.mark.parametrize("embedder", ["hash", None])
def test_text_of_any_script_is_found(opened: OpenMemory, text: str, query: str, embedder: str | None) -> None:
    mem = opened(embedder=embedder)
    mem.remember_many(["an unrelated line", "yet another line"], scope=ADA)
    mem.remember(text, scope=ADA)
    hits = mem.recall(query, scope=ADA, k=3).hits
    assert text in [hit.entry.text for hit in hits]
    if text != "🐝🐝🐝" or embedder:
        assert hits[0].entry.text == text


QUERIES = [
    '" OR 1=1 --',
    "'; DROP TABLE entries; --",
    "bees AND NOT roof",
    "NEAR(bees roof, 2)",
    'bees*"',
    "text:bees",
    "^bees",
    "{bees roof}: x",
    "-bees",
    "(((",
    "\\",
    "%",
    "_",
    "?",
    "...",
    "the of and",
    "bees\nroof\t",
    "🐝",
    "a" * 20_000,
]


@pytest.mark.parametrize("query", QUERIES, ids=lambda q: q[:20])
def test_query_syntax_of_any_engine_has_no_meaning(full: Memory, query: str) -> None:
    assert len(full.recall(query, scope=ADA, k=3)) == 3
    assert full.admin.stats(scope=ADA).entries == len(FACTS)


@given(query=st.text(min_size=1, max_size=60))
def test_any_readable_question_is_answered(query: str) -> None:
    with Memory.open(":memory:", embedder="hash:16") as mem:
        mem.remember_many(FACTS, scope=ADA)
        if not query.strip() or "\x00" in query:
            with pytest.raises(InvalidInput, match="query"):
                mem.recall(query, scope=ADA)
        else:
            assert len(mem.recall(query, scope=ADA)) == 5


# -- scores ------------------------------------------------------------------------------------------------------


def test_a_profile_of_ones_own_is_used(opened: OpenMemory) -> None:
    mem = opened(profile=Profile(name="newest", weights={"recency": 1.0}, recency_days=1.0))
    mem.remember("old but relevant bees", scope=ADA, at="2026-01-01")
    mem.remember("new and not", scope=ADA, at="2026-05-01")
    assert texts(mem, "relevant bees", ADA) == ["new and not", "old but relevant bees"]


def test_a_profile_that_names_an_unknown_factor_is_refused_when_opening(opened: OpenMemory) -> None:
    with pytest.raises(InvalidInput, match="charisma"):
        opened(profile=Profile(name="odd", weights={"charisma": 1.0}))


def test_recency_counts_from_the_newest_entry_that_is_there(opened: OpenMemory, path: str, clock: Clock) -> None:
    writer, reader = opened(path), opened(path)
    writer.remember("an old word about tea", scope=ADA, at="2020-01-01")
    (newer,) = writer.remember("something newer", scope=ADA, at="2024-01-01")
    reader.recall("tea", scope=ADA)
    writer.forget(scope=ADA, ids=[newer])
    kept, fresh = (m.recall("tea", scope=ADA).hits[0].factors["recency"] for m in (reader, opened(path)))
    assert kept == pytest.approx(fresh, abs=1e-6)
