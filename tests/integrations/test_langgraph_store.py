"""`WellwornStore`: exact values, ranking, isolation, bad input, threads, and LangGraph itself."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import GetOp, InvalidNamespaceError, ListNamespacesOp, MatchCondition, PutOp, SearchOp

from wellworn import AsyncMemory, InvalidInput, Memory, Scope
from wellworn.integrations.langgraph_store import WellwornStore

NS = ("users", "ada")
PASSAGE = "The spare key of the boathouse hangs behind the blue clock."
FILLER = " ".join(f"On day {n} nothing of note happened and the weather was dull." for n in range(60))


@pytest.fixture
def store(memory: Memory) -> WellwornStore:
    return WellwornStore(memory, tenant="acme")


def keys(found: Any) -> list[str]:  # items or search items
    return [item.key for item in found]


# -- values ------------------------------------------------------------------------------------------------------


def test_a_refused_value_leaves_what_was_there_and_the_rest_of_the_batch(store: WellwornStore) -> None:
    store.put(NS, "k", {"n": 1})
    for bad in ({"n": float("nan")}, {1: 2}, {"n": object()}, {"n": "x" * 1_000_001}, [1]):
        with pytest.raises(InvalidInput, match="value"):
            store.batch([PutOp(NS, "other", {"n": 2}), PutOp(NS, "k", bad)])  # type: ignore[arg-type]
    assert keys(store.search(())) == ["k"]


def test_an_update_keeps_when_it_was_created_and_a_deleted_item_is_gone(store: WellwornStore, memory: Memory) -> None:
    for text in (FILLER + PASSAGE, PASSAGE, ""):
        store.put(NS, "k", {"text": text}, index=["text"])
        assert memory.admin.stats(scope=store.scope(NS)).entries == 1
    item = store.get(NS, "k")
    assert item is not None
    assert item.created_at < item.updated_at
    assert memory.verify().ok
    store.delete(NS, "k")
    assert memory.admin.stats(scope=store.scope(NS)).entries == 0


# -- searching ---------------------------------------------------------------------------------------------------


def test_words_and_meaning_rank_together_and_a_passage_deep_in_a_long_text_is_found(store: WellwornStore) -> None:
    store.put(NS, "runtime", {"text": "Ada prefers tokio over async-std."})
    store.put(NS, "bike", {"text": "Her bicycle is a red Brompton."})
    assert keys(store.search(NS, query="tokio"))[0] == "runtime"
    assert keys(store.search(NS, query="which cycle does she ride?"))[0] == "bike"
    store.put(NS, "diary", {"text": FILLER[:2000] + PASSAGE + FILLER[2000:]})
    found = keys(store.search(NS, query="where is the spare key of the boathouse?"))
    assert found[0] == "diary"
    assert len(found) == 3


def test_index_says_which_fields_are_searched(memory: Memory) -> None:
    store = WellwornStore(memory, tenant="acme", fields=["text"])
    value = {"text": "tokio", "note": "brompton", "list": [{"t": "oolong"}, {"t": "walrus"}]}
    indexes = {"default": None, "note": ["note"], "list": ["list[*].t"], "none": False, "all": ["$"]}
    for name, index in indexes.items():
        store.put(NS, name, value, index=index)  # type: ignore[arg-type]
    scored = {item.key for item in store.search(NS, query="walrus") if item.score is not None}
    assert scored == {"default", "note", "list", "all"}
    best = {query: set(keys(store.search(NS, query=query, limit=2))) for query in ("walrus", "brompton", "tokio")}
    assert best == {"walrus": {"list", "all"}, "brompton": {"note", "all"}, "tokio": {"default", "all"}}


def test_an_item_is_no_turn_of_a_dialogue(store: WellwornStore) -> None:
    """Questions, thanks and statements that replace each other are items like any other."""
    texts = ["Where do I live?", "Thanks a lot!", "I live in Oslo.", "I moved to Bergen last week."]
    for n, text in enumerate(texts):
        store.put(NS, str(n), {"text": text})
    assert set(keys(store.search(NS, query="Where do I live?", limit=9))) == {"0", "1", "2", "3"}
    assert "0" in keys(store.search(NS, query="Where do I live?", limit=2))
    assert [item.value["text"] for item in store.search(NS, filter={"text": texts[2]})] == [texts[2]]


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        ({"home.city": "Oslo"}, {"a"}),
        ({"home.street.number": {"$gte": 7}}, {"a", "b"}),
        ({"home.city": {"$ne": "Oslo"}}, {"b", "c", "d"}),
        ({"home": {"street.number": 9}}, {"b"}),
        ({"v1.2": "new"}, {"d"}),
        ({"n": {"$gt": "1"}}, {"a", "b"}),
        ({"n": {"$gt": 1, "$lt": 3}}, {"a"}),
        ({"n": {"$lt": []}}, set()),  # what cannot be compared does not match
        ({"missing": {"$gt": 0}}, set()),
    ],
)
def test_filters_look_further_down_and_compare_numbers(store: WellwornStore, filter: Any, expected: set[str]) -> None:
    store.put(NS, "a", {"home": {"city": "Oslo", "street": {"number": 7}}, "n": 2})
    store.put(NS, "b", {"home": {"city": "Bonn", "street": {"number": 9}}, "n": "3"})
    store.put(NS, "c", {"home": "Oslo"})
    store.put(NS, "d", {"v1.2": "new"})
    assert set(keys(store.search(NS, filter=filter))) == expected


def test_a_filter_reaches_past_what_ranks_better(store: WellwornStore) -> None:
    store.batch([PutOp(NS, f"k{n:03}", {"text": f"tea number {n}", "n": n}) for n in range(60)])
    store.put(NS, "last", {"text": "nothing in common", "n": 1000})
    assert keys(store.search(NS, query="tea", filter={"n": {"$gte": 1000}})) == ["last"]
    assert len(store.search(NS, query="tea", filter={"n": {"$lt": 50}}, limit=500)) == 50


def test_a_memory_without_vectors_goes_by_words() -> None:
    with Memory(":memory:", embedder=None) as memory:
        store = WellwornStore(memory, tenant="acme")
        store.put(NS, "tea", {"text": "green tea"})
        store.put(NS, "none", {"text": "tea"}, index=False)
        store.put(NS, "rain", {"text": "rain in Oslo"})
        assert keys(store.search(NS, query="Oslo")) == ["rain", "tea", "none"]
        assert [item.score for item in store.search(NS, query=" \n")] == [None] * 3
        assert memory.verify().ok


# -- who sees what -----------------------------------------------------------------------------------------------


def test_the_store_and_the_people_of_its_tenant_do_not_see_each_other(store: WellwornStore, memory: Memory) -> None:
    ada = Scope(tenant="acme", user="ada", agent="ada")
    memory.remember("Ada drinks tea.", scope=ada)
    store.put(NS, "k", {"text": "the store drinks tea"})
    assert keys(store.search((), query="tea")) == ["k"]
    assert len(memory.recall("tea", scope=ada).hits) == 1
    found = memory.recall("tea", scope=store.scope(NS)).hits
    assert [hit.entry.text for hit in found] == ['{"text": "the store drinks tea"}']
    store.put(("users", "ben"), "k", {"text": "tea"})
    memory.forget(scope=store.scope(NS), everything=True)
    assert (store.get(NS, "k"), store.list_namespaces()) == (None, [("users", "ben")])


def test_the_scrubber_sees_every_text_and_a_deleted_item_leaves_nothing_in_the_file(tmp_path: Path) -> None:
    def raw() -> bytes:
        return b"".join(file.read_bytes() for file in tmp_path.iterdir())

    scrubber = lambda text: text.replace("hunter2", "…")  # noqa: E731
    with Memory(tmp_path / "memory.db", embedder="hash:16", scrubber=scrubber) as memory:
        store = WellwornStore(memory, tenant="acme")
        store.put(NS, "stays", {"login": {"password": "hunter2"}, "log": ["it is hunter2"]})
        item = store.get(NS, "stays")
        assert item is not None
        assert item.value == {"login": {"password": "…"}, "log": ["it is …"]}
        for namespace in (NS, ("secretspace",)):
            store.put(namespace, "secretkey", {"text": "secretvalue"})
            store.search((), query="secretvalue")
            store.delete(namespace, "secretkey")
        assert b"hunter2" not in raw()
        assert b"secret" not in raw()


def test_items_survive_export_and_load(store: WellwornStore, memory: Memory, tmp_path: Path) -> None:
    store.put(NS, "k.1", {"text": FILLER, "n": [1, None]})
    store.put(NS, "bare", {"n": 2}, index=False)
    memory.admin.export(tmp_path / "all.jsonl")
    with Memory(":memory:") as copy:
        copy.admin.load(tmp_path / "all.jsonl")
        loaded = WellwornStore(copy, tenant="acme")
        assert loaded.get(NS, "k.1") == store.get(NS, "k.1")
        assert keys(loaded.search(NS, query="weather")) == ["k.1", "bare"]


# -- bad input ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "op",
    [
        GetOp(("a.b",), "k"),
        PutOp(("a\ud800",), "k", {}),
        PutOp(("a" * 300,), "k", {}),
        SearchOp(("a.b",)),
        ListNamespacesOp((MatchCondition("prefix", ("a.b",)),)),
    ],
)
def test_a_bad_namespace_is_refused_as_langgraph_does(store: WellwornStore, op: Any) -> None:
    with pytest.raises(InvalidNamespaceError):
        store.batch([PutOp(NS, "k", {"n": 1}), op])
    assert store.search(()) == []


@pytest.mark.parametrize(
    ("op", "problem"),
    [
        (PutOp(NS, "k" * 5000, {}), "4,096"),
        (PutOp(NS, "\ud800", {}), "half a character"),
        (PutOp(NS, "k", {}, index="text"), "list of paths"),  # type: ignore[arg-type]
        (PutOp(NS, "k", {}, ttl=5.0), "do not expire"),
        (SearchOp(NS, limit=-1), "limit"),
        (SearchOp(NS, {"n": {"$regex": "x"}}), "regex.*use one of"),
        (SearchOp(NS, {"n": {"m": {"$in": [1]}}}), "in' is not"),
        ("nonsense", "no operation"),
    ],
)
def test_a_bad_operation_is_one_clear_error(store: WellwornStore, op: Any, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        store.batch([op])


def test_a_store_is_made_from_a_memory_and_a_tenant(memory: Memory) -> None:
    with pytest.raises(InvalidInput, match="AsyncMemory"):
        WellwornStore(AsyncMemory(memory), tenant="acme")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="tenant"):
        WellwornStore(memory, tenant=" ")
    with pytest.raises(InvalidInput, match="fields"):
        WellwornStore(memory, tenant="acme", fields="text")


# -- threads, tasks and processes --------------------------------------------------------------------------------


def test_threads_that_put_delete_and_search_lose_nothing(memory: Memory) -> None:
    store = WellwornStore(memory, tenant="acme")
    long = {"text": "tea and rain. " * 200}

    def work(worker: int) -> None:
        for n in range(4):
            store.put((*NS, str(worker)), f"k{n}", {"text": f"tea number {n}", "worker": worker})
            store.put(NS, "shared", long if n % 2 else {"text": "short"})
            assert len(store.search((*NS, str(worker)), query="tea", limit=50)) == n + 1  # sees its own writes
            store.put(NS, f"gone{worker}", {"n": n})
            store.delete(NS, f"gone{worker}")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert len(store.search(NS, limit=100)) == 4 * 4 + 1
    assert memory.verify().ok


async def test_nothing_runs_on_the_event_loop(store: WellwornStore, monkeypatch: pytest.MonkeyPatch) -> None:
    threads, batch = set(), store.batch

    def noting(ops: Any) -> Any:
        threads.add(threading.get_ident())
        return batch(ops)

    monkeypatch.setattr(store, "batch", noting)
    await asyncio.gather(*(store.aput(NS, f"k{n}", {"text": f"tea {n}"}) for n in range(5)))
    assert len(await store.asearch(NS, query="tea")) == 5
    await asyncio.gather(*(store.adelete(NS, f"k{n}") for n in range(5)))
    assert await store.asearch(NS) == await store.alist_namespaces() == []
    assert threads
    assert threading.get_ident() not in threads


# -- in the framework --------------------------------------------------------------------------------------------


def test_the_core_works_without_langchain_and_names_the_missing_extra() -> None:
    code = """
import sys
import wellworn.memory
print([module for module in sys.modules if module.startswith("lang")])
for name in ("langchain", "langchain_core", "langgraph"):
    sys.modules[name] = None  # as if not installed
for module in ("langgraph_store", "vectorstore", "langchain"):
    try:
        __import__(f"wellworn.integrations.{module}")
    except wellworn.MissingExtra as error:
        print(error)
import wellworn.integrations.loop
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.startswith("[]\n")
    assert done.stdout.count("pip install 'wellworn[langchain]'") == 3
