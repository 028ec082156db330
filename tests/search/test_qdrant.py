"""Vectors in Qdrant, in its local mode: the answers are those of the exact search, and nothing forgotten stays."""

from __future__ import annotations

import random
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from wellworn import InvalidInput, Memory, Scope
from wellworn.models.hashing import HashEmbedder
from wellworn.search import qdrant

WORDS = "amber birch cedar delta ember fjord grove harbor island jetty kelp lagoon meadow north orchard".split()  # noqa: SIM905
ADA, BEN, OTHER = Scope(tenant="one", user="ada"), Scope(tenant="one", user="ben"), Scope(tenant="two", user="ada")
QUERIES = ["amber birch", "where is the harbor", "kelp or lagoon", "north meadow orchard"]


@pytest.fixture
def client() -> Iterator[Any]:
    library = pytest.importorskip("qdrant_client", reason="needs the extra qdrant")
    with patch.object(qdrant, "LEAST_ROWS", 20):
        made = library.QdrantClient(":memory:")
        yield made
        made.close()


def opened(path: Path, client: Any = None) -> Memory:
    return Memory.open(path, qdrant=client, learning="off", background=False, durability="normal")


def texts(count: int, seed: int) -> list[str]:
    dice = random.Random(seed)
    return [f"{' '.join(dice.choices(WORDS, k=4))} {number}" for number in range(count)]


def points(client: Any) -> dict[str, set[int]]:
    """Numbers of the points of each collection."""
    names = [one.name for one in client.get_collections().collections]
    return {name: {point.id for point in client.scroll(name, limit=1000)[0]} for name in names}


@contextmanager
def away(client: Any) -> Iterator[None]:
    with ExitStack() as stack:
        for name in ("collection_exists", "get_collections", "scroll", "query_points", "upsert", "delete"):
            stack.enter_context(patch.object(client, name, side_effect=ConnectionError("nobody there")))
        yield


def recalled(memory: Memory, scope: Scope) -> list[list[tuple[str, float]]]:
    return [[(hit.text, round(hit.score, 4)) for hit in memory.recall(query, scope=scope)] for query in QUERIES]


def test_answers_are_the_exact_ones_and_tenants_are_apart(tmp_path: Path, client: Any) -> None:
    with opened(tmp_path / "m.db") as memory:
        for seed, scope in enumerate((ADA, BEN, OTHER)):
            memory.remember_many(texts(60, seed), scope=scope)
        exact = {scope.home(): recalled(memory, scope) for scope in (ADA, BEN, OTHER)}
    with opened(tmp_path / "m.db", client) as memory:
        assert {scope.home(): recalled(memory, scope) for scope in (ADA, BEN, OTHER)} == exact
        assert sorted(map(len, points(client).values())) == [60, 60, 60]
        vectors, engine = memory.engine.vectors, memory.engine
        assert isinstance(vectors, qdrant.QdrantVectors)
        for scope in (ADA, BEN, OTHER):  # whatever is asked for, nothing of another partition is named
            nos = vectors.nearest(scope.home(), engine.embedder.embed_query("amber"), 500)  # type: ignore[union-attr]
            assert len(nos or []) == 60
            assert {entry.partition for entry in engine.store.read(nos or []).values()} == {scope.home()}


def test_what_is_added_is_found_and_what_is_forgotten_is_deleted(tmp_path: Path, client: Any) -> None:
    with opened(tmp_path / "m.db", client) as memory:
        ids = memory.remember_many(texts(40, 1), scope=ADA)
        memory.recall("amber", scope=ADA)
        (new,) = memory.remember("The zeppelin is moored at the pier.", scope=ADA)
        assert memory.recall("Where is the zeppelin?", scope=ADA)[0].entry.id == new
        (held,) = points(client).values()
        assert len(held) == 41
        memory.forget(ids=[new, *ids[:5]], scope=ADA)
        (held,) = points(client).values()
        assert len(held) == 35
    with opened(tmp_path / "m.db", client) as memory:  # which holds nothing in memory yet
        memory.forget(ids=ids[5:10], scope=ADA)
        assert len(next(iter(points(client).values()))) == 30
        memory.forget(everything=True, scope=ADA)
        assert next(iter(points(client).values())) == set()


def test_a_qdrant_that_missed_something_is_brought_up_to_date(tmp_path: Path, client: Any) -> None:
    with opened(tmp_path / "m.db", client) as memory:
        ids = memory.remember_many(texts(40, 1), scope=ADA)
        memory.recall("amber", scope=ADA)
    with opened(tmp_path / "m.db") as memory:
        memory.forget(ids=ids[:5], scope=ADA)
        memory.remember_many(texts(3, 9), scope=ADA)
        exact = recalled(memory, ADA)
    with opened(tmp_path / "m.db", client) as memory:
        assert recalled(memory, ADA) == exact
        assert len(next(iter(points(client).values()))) == 38


def test_without_its_qdrant_a_memory_answers_alike(tmp_path: Path, client: Any) -> None:
    with away(client), opened(tmp_path / "m.db", client) as memory:
        memory.remember_many(texts(40, 1), scope=ADA)
        without = recalled(memory, ADA)
    with opened(tmp_path / "m.db", client) as memory:
        assert recalled(memory, ADA) == without


def test_vectors_of_a_partition_that_is_too_large_leave_memory(tmp_path: Path, client: Any) -> None:
    options: Any = {"learning": "off", "background": False, "durability": "normal"}
    with Memory.open(tmp_path / "m.db", **options) as memory:
        memory.remember_many(texts(900, 3), scope=ADA)
        exact = recalled(memory, ADA)
    with Memory.open(tmp_path / "m.db", qdrant=client, ram_mb=1, **options) as memory:
        assert recalled(memory, ADA) == exact
        with memory.engine.searcher.ram.bank([ADA.home()]) as (bank, _):
            assert bank.partitions[0].vectors.size == 0
        (new,) = memory.remember("The zeppelin is moored at the pier.", scope=ADA)
        assert memory.recall("Where is the zeppelin?", scope=ADA)[0].entry.id == new
        memory.forget(ids=[new], scope=ADA)
        assert len(next(iter(points(client).values()))) == 900


def test_stores_of_the_same_spelling_are_apart_and_spellings_of_one_store_are_not(
    tmp_path: Path, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = []
    for folder in ("a", "b", "a"):
        (tmp_path / folder).mkdir(exist_ok=True)
        monkeypatch.chdir(tmp_path / folder)
        with opened(Path("m.db"), client) as memory:
            memory.remember_many(texts(40, ord(folder)), scope=ADA)
            answers.append(recalled(memory, ADA))
            if folder == "b":
                memory.forget(everything=True, scope=ADA)
    assert answers[0] == answers[2]
    assert sorted(map(len, points(client).values())) == [0, 40]
    with opened(tmp_path / "a" / "m.db", client) as memory:
        memory.forget(everything=True, scope=ADA)
    assert not any(points(client).values())


@pytest.mark.parametrize("left", [0, 5])
@pytest.mark.parametrize("present", [True, False])
def test_what_is_forgotten_without_qdrant_is_deleted_at_the_next_opening(
    tmp_path: Path, client: Any, present: bool, left: int
) -> None:
    with opened(tmp_path / "m.db", client) as memory:
        memory.remember_many(texts(40, 1), scope=ADA)
        recalled(memory, ADA)
    with away(client), opened(tmp_path / "m.db", client if present else None) as memory:
        memory.forget(everything=True, scope=ADA)
        memory.remember_many(texts(left, 2), scope=ADA)
    assert any(points(client).values())
    opened(tmp_path / "m.db", client).close()
    assert not any(points(client).values())


def test_what_is_forgotten_while_qdrant_is_away_is_deleted_when_it_is_back(tmp_path: Path, client: Any) -> None:
    with opened(tmp_path / "m.db", client) as memory, patch.object(qdrant, "REST_S", 0.0):
        for scope in (ADA, BEN):
            memory.remember_many(texts(40, 1), scope=scope)
            recalled(memory, scope)
        with away(client):
            memory.forget(everything=True, scope=ADA)
        assert sum(map(len, points(client).values())) == 80
        memory.remember("The zeppelin is moored at the pier.", scope=BEN)
        recalled(memory, BEN)
        assert sum(map(len, points(client).values())) == 41


def test_vectors_that_left_memory_are_asked_for_after_a_forget_and_once_qdrant_is_back(
    tmp_path: Path, client: Any
) -> None:
    options: Any = {"learning": "off", "background": False, "durability": "normal", "ram_mb": 1}
    with Memory.open(tmp_path / "m.db", qdrant=client, **options) as memory, patch.object(qdrant, "REST_S", 0.0):
        invoices = [f"Invoice {number} of client {number % 9} is paid" for number in range(900)]
        ids = memory.remember_many([*invoices, "We adopted a kitten."], scope=ADA)
        for happens in ("nothing", "forget", "failure"):
            if happens == "forget":
                memory.forget(ids=ids[:1], scope=ADA)
            elif happens == "failure":
                with away(client):
                    memory.recall("feline", scope=ADA)
            assert memory.recall("feline", scope=ADA)[0].text == "We adopted a kitten.", happens


def test_vectors_of_another_width_take_the_place_of_the_old_ones(tmp_path: Path, client: Any) -> None:
    options: Any = {"learning": "off", "background": False, "qdrant": client}
    with opened(tmp_path / "m.db", client) as memory:
        memory.remember_many(texts(40, 1), scope=ADA)
        recalled(memory, ADA)
    with Memory.open(tmp_path / "m.db", embedder=HashEmbedder(16), reembedding=True, **options) as memory:
        memory.admin.reembed()
        recalled(memory, ADA)
        with memory.engine.searcher.ram.bank([ADA.home()]) as (bank, _):
            assert bank.partitions[0].elsewhere is not None
        assert sum(map(len, points(client).values())) == 40


def test_an_encrypted_memory_sends_no_vectors_away(tmp_path: Path, client: Any) -> None:
    pytest.importorskip("sqlcipher3")
    with pytest.raises(InvalidInput, match="qdrant: would hold the vectors of an encrypted memory in plain"):
        Memory.open(tmp_path / "m.db", qdrant=client, key="a passphrase", background=False)


@pytest.mark.parametrize("setting", ["localhost:6333", ":memory:", "", 5, "http://localhost:99999"])
def test_a_setting_that_is_no_qdrant_is_refused(
    tmp_path: Path, client: Any, monkeypatch: pytest.MonkeyPatch, setting: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match=r"use a URL .*, a folder or a QdrantClient"):
        opened(tmp_path / "m.db", setting)
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # the library leaves its lock file open
def test_a_folder_is_private_and_of_one_memory(tmp_path: Path, client: Any) -> None:
    with opened(tmp_path / "m.db", tmp_path / "vectors"):
        assert stat.S_IMODE((tmp_path / "vectors").stat().st_mode) == 0o700
        with pytest.raises(InvalidInput, match=r"cannot be opened: .* already accessed"):
            opened(tmp_path / "other.db", str(tmp_path / "vectors"))
