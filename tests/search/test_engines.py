"""Partitions too large for memory are searched in the database: the answers are those of memory."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from bench.corpus import Corpus

from contract.few import few
from contract.postgres import Server
from wellworn import Memory, Scope
from wellworn.core.errors import EmbeddingFailed
from wellworn.language.reader import Reader
from wellworn.search import arms, engines

COUNT = 1500
SCOPE = Scope(tenant="one", user="ada")
THINGS = "harbor lagoon orchard violin tram cedar lantern ferry walnut meadow kettle saddle anchor compass".split()  # noqa: SIM905
PLACES = "Lisbon Oslo Quito Hanoi Perth Turin Malmo Leeds Cusco Davos".split()  # noqa: SIM905
DOINGS = "repaired sold painted lost found borrowed cleaned moved".split()  # noqa: SIM905
SMALL_MB = 1
"""Of memory, which a few thousand entries pass."""


def notes(count: int) -> list[dict[str, Any]]:
    dice = random.Random(5)
    texts = [
        f"{dice.choice(PLACES)}: the {dice.choice(THINGS)} near the {dice.choice(THINGS)} was {dice.choice(DOINGS)} ({n})"
        for n in range(count)
    ]
    return [{"text": text, "tags": ["rare"] if n % 150 == 0 else ["usual"]} for n, text in enumerate(texts)]


def opened(url: str, **options: Any) -> Memory:
    return Memory.open(url, learning="off", background=False, durability="normal", **options)


@pytest.fixture(scope="module", params=["on", pytest.param("off", marks=pytest.mark.slow)], ids="halfvec={}".format)
def url(postgres_server: Server, request: pytest.FixtureRequest) -> str:
    """A store with one partition that has an index."""
    url = postgres_server.url(halfvec=request.param)
    with opened(url) as memory:
        memory.remember_many(notes(COUNT), scope=SCOPE)
        tour = memory.session("tour", scope=SCOPE)
        for n in range(40):
            tour.add("user", f"Stop {n} was {PLACES[n % 10]}, by the {THINGS[n % 14]}.")
        make(memory, SCOPE)
    return url


def make(memory: Memory, scope: Scope) -> None:
    engine = memory.engine.vectors
    assert isinstance(engine, engines.StoreIndexes)
    engine.make(scope.home())


def index_of(memory: Memory) -> Any:
    with memory.engine.searcher.ram.bank([SCOPE.home()]) as (bank, _):
        return bank.partitions[0]


def first_five(memory: Memory, queries: list[str], **filters: Any) -> list[list[str]]:
    return [[hit.entry.id for hit in memory.recall(query, scope=SCOPE, k=5, **filters)] for query in queries]


@pytest.mark.parametrize("filters", few([{}, {"tags": ["usual"]}, {"tags": ["rare"]}, {"kind": "episode"}], 2), ids=str)
def test_the_database_names_what_memory_finds(url: str, filters: dict[str, Any]) -> None:
    dice = random.Random(9)
    queries = [f"the {dice.choice(THINGS)} that was {dice.choice(DOINGS)} in {dice.choice(PLACES)}" for _ in range(20)]
    with opened(url) as memory:
        exact = first_five(memory, queries, **filters)
        assert index_of(memory).fetch is None
    with opened(url, ram_mb=SMALL_MB) as memory:
        found = first_five(memory, queries, **filters)
        index = index_of(memory)
        assert index.elsewhere is not None
        assert index.vectors.size == 0
        assert not index.words_held
    shared = [len({*a} & {*b}) / max(1, len(a)) for a, b in zip(exact, found, strict=True)]
    assert np.mean(shared) >= 0.95


class Meaningless:
    """Vectors that have nothing to do with what a text says, so that only its words find it."""

    name, width = "test:meaningless", 32

    def embed(self, texts: Sequence[str]) -> Any:
        rows = [np.random.default_rng([*text.encode()]).standard_normal(self.width) for text in texts]
        return np.array([row / np.linalg.norm(row) for row in rows], dtype=np.float32)

    def embed_query(self, text: str) -> Any:
        return self.embed([text])[0]


@pytest.mark.parametrize("key", few([None, "a secret of some length"], 1), ids=["plain", "sealed"])
def test_words_are_found_in_the_database(
    postgres_server: Server, monkeypatch: pytest.MonkeyPatch, key: str | None
) -> None:
    """Random texts: most words are too frequent to look at all rows that have one, so several must be looked for together."""
    url, texts = postgres_server.url(), Corpus(3)
    monkeypatch.setattr(engines, "MOST_ROWS", 200)
    with opened(url, key=key, embedder=Meaningless()) as memory:
        memory.remember_many(texts.texts(2000), scope=SCOPE)
        make(memory, SCOPE)
        queries = texts.queries(30)
        exact = first_five(memory, queries)
    with opened(url, key=key, embedder=Meaningless(), ram_mb=SMALL_MB) as memory:
        found = first_five(memory, queries)
        postings = index_of(memory).postings
        (rare,) = memory.remember("A quokka sleeps.", scope=SCOPE)
        assert memory.recall("quokka", scope=SCOPE)[0].entry.id == rare
    assert isinstance(postings, engines.StoredPostings)
    assert np.mean([a[0] == b[0] for a, b in zip(exact, found, strict=True)]) >= 0.95
    assert np.mean([len({*a} & {*b}) / 5 for a, b in zip(exact, found, strict=True)]) >= 0.95


def test_neighbours_behind_a_narrow_filter_are_found(url: str) -> None:
    """An index alone finds 65 % of them: it names the nearest rows, few of which pass."""
    with opened(url, ram_mb=SMALL_MB) as memory:
        index, dice = index_of(memory), np.random.default_rng(2)
        vectors = index.vectors_of(np.arange(len(index)))
        for asked in dice.choice(len(index), 40, replace=False).tolist():
            few = dice.choice(len(index), 8, replace=False)
            wanted = np.zeros(len(index), dtype=bool)
            wanted[few] = True
            best = few[np.argsort(-(vectors[few] @ vectors[asked]))[:5]]
            assert {*best.tolist()} <= {*index.likely(vectors[asked], 8, passing=wanted).tolist()}


def test_what_is_added_is_found_and_what_is_forgotten_is_not(url: str) -> None:
    with opened(url, ram_mb=SMALL_MB) as memory:
        index_of(memory)
        (new,) = memory.remember("The zeppelin is moored at the pier.", scope=SCOPE)
        assert memory.recall("Where is the zeppelin?", scope=SCOPE)[0].entry.id == new
        assert index_of(memory).vectors.size == 0
        memory.forget(ids=[new], scope=SCOPE)
        assert new not in [hit.entry.id for hit in memory.recall("Where is the zeppelin?", scope=SCOPE)]


def test_an_index_is_made_once_and_goes_with_its_partition(
    postgres_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "STOP_S", 300.0)
    with Memory.open(postgres_server.url(), learning="off", ram_mb=SMALL_MB, durability="normal") as memory:
        store, engine = memory.engine.store, memory.engine.vectors
        memory.remember_many(notes(800), scope=SCOPE)
        (head,) = store.heads([SCOPE.home()])
        assert head is not None
        assert not store.large_index(head.partition_no)
        assert engine is not None
        memory.recall("the ferry", scope=SCOPE)  # is answered from memory, and begins the index
        engine.close()
        assert store.large_index(head.partition_no)
        other = Scope(tenant="one", user="ben")
        memory.remember("The ferry leaves at nine.", scope=other)
        memory.forget(everything=True, scope=SCOPE)
        (kept,) = store.heads([other.home()])
        assert kept is not None
        assert store.large_index(kept.partition_no, make=True)
        assert not store.large_index(head.partition_no)


def test_an_index_of_either_precision_is_used_as_it_was_made(postgres_server: Server) -> None:
    url = postgres_server.url(halfvec="off")
    half, schema = url.replace("halfvec=off", "halfvec=on"), url.split("schema=")[1].split("&")[0]

    def plan(memory: Memory) -> tuple[str, list[int]]:
        store = memory.engine.store
        (head,) = store.heads([SCOPE.home()])
        assert head is not None
        assert store.large_index(head.partition_no, make=True)
        definition = postgres_server.say(
            f"SELECT indexdef FROM pg_indexes WHERE schemaname = '{schema}' AND indexname ~ '^near'"
        )
        vector = Reader().embed_query("the ferry near the harbor")
        return definition, store.nearest(head.partition_no, vector, 20) or []

    with opened(url) as memory:
        memory.remember_many(notes(300), scope=SCOPE)
        full = plan(memory)
    with opened(half) as memory:
        kept = plan(memory)
        postgres_server.say(f"DROP INDEX {schema}.near_1_384")
        halved = plan(memory)
    with opened(url) as memory:
        assert plan(memory) == halved
    assert kept == full
    assert "vector_ip_ops" in full[0]
    assert "halfvec_l2_ops" in halved[0]
    assert len({*full[1]} & {*halved[1]}) >= 19


class Failing(Reader):
    """Embeds no question, so that words alone are searched."""

    def embed_query(self, text: str) -> Any:
        raise EmbeddingFailed("it is away")


@pytest.mark.parametrize("embedder", few([Reader, Failing], 1))
def test_few_rows_with_words_are_scored_as_all_rows_are(
    postgres_server: Server, monkeypatch: pytest.MonkeyPatch, embedder: type[Reader]
) -> None:
    url, queries = postgres_server.url(), [f"the {thing} in {place}" for thing in THINGS for place in PLACES[:2]]
    with opened(url) as memory:
        memory.remember_many(notes(800), scope=SCOPE)
        make(memory, SCOPE)
    answers = []
    for few_of in (1e-9, 1e9):
        monkeypatch.setattr(arms, "FEW_OF", few_of)
        with opened(url, ram_mb=SMALL_MB, embedder=embedder()) as memory:
            for tags in (None, ["rare"]):
                hits = [memory.recall(query, scope=SCOPE, k=5, tags=tags) for query in queries]
                answers.append([[(hit.entry.id, hit.score) for hit in found] for found in hits])
            assert not index_of(memory).words_held
    assert answers[:2] == answers[2:]
