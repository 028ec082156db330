"""`WellwornStore` beyond what the reference can tell: exact values, ranking, isolation, bad input, the framework."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import GetOp, InvalidNamespaceError, ListNamespacesOp, MatchCondition, PutOp, SearchOp

from wellworn import AsyncMemory, InvalidInput, Memory, Scope
from wellworn.integrations.langgraph_store import WellwornStore

NS = ("users", "ada")
PASSAGE = "The spare key of the boathouse hangs behind the blue clock."
FILLER = " ".join(f"On day {n} nothing of note happened and the weather was dull." for n in range(120))


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory.open(":memory:") as memory:
        yield memory


@pytest.fixture
def store(memory: Memory) -> WellwornStore:
    return WellwornStore(memory, tenant="acme")


def keys(found: Any) -> list[str]:  # items or search items
    return [item.key for item in found]


# -- values ------------------------------------------------------------------------------------------------------


def test_a_value_comes_back_exactly_and_is_the_callers_own(store: WellwornStore) -> None:
    value = {"z": 1, "a": [1.0, True, None, -0.0, 2**70], "ü": "naïve 🌧\x00\ud800", "nested": {"": {"x": [[]]}}}
    store.put(NS, "k", value)
    item = store.get(NS, "k")
    assert item is not None
    assert json.dumps(item.value) == json.dumps(value)
    item.value["nested"][""]["x"].append("changed")
    value["z"] = 2
    again = store.get(NS, "k")
    assert again is not None
    assert (again.value["z"], again.value["nested"]) == (1, {"": {"x": [[]]}})
    (found,) = store.search(NS, query="naïve")
    found.value.clear()
    assert store.search(NS, query="naïve")[0].value["z"] == 1


def test_a_value_of_a_megabyte_is_kept_and_found_by_what_is_deep_inside(store: WellwornStore) -> None:
    value = {"text": "€" * 100_000 + " " + PASSAGE, "more": ["x" * 650_000]}
    store.put(NS, "big", value, index=["text"])
    store.put(NS, "small", {"text": "clockwork"})
    item = store.get(NS, "big")
    assert item is not None
    assert item.value == value
    assert keys(store.search(NS, query="what hangs behind the blue clock?", limit=1)) == ["big"]


def test_a_value_that_is_refused_leaves_what_was_there_and_the_rest_of_the_batch(store: WellwornStore) -> None:
    store.put(NS, "k", {"n": 1})
    for bad in ({"n": float("nan")}, {1: 2}, {"n": object()}, {"n": "x" * 1_000_001}, [1]):
        with pytest.raises(InvalidInput, match="value"):
            store.batch([PutOp(NS, "other", {"n": 2}), PutOp(NS, "k", bad)])  # type: ignore[arg-type]
    assert keys(store.search(())) == ["k"]


def test_an_update_keeps_when_it_was_created(store: WellwornStore) -> None:
    store.put(NS, "k", {"n": 1})
    first = store.get(NS, "k")
    store.put(NS, "k", {"n": 2})
    second = store.get(NS, "k")
    assert first is not None
    assert second is not None
    assert first.created_at == second.created_at
    assert first.updated_at < second.updated_at


def test_a_value_that_shrinks_and_grows_has_only_the_pieces_it_has(store: WellwornStore, memory: Memory) -> None:
    counts = []
    for text in (FILLER + PASSAGE, PASSAGE, FILLER, ""):
        store.put(NS, "k", {"text": text}, index=["text"])
        counts.append(memory.admin.stats(scope=store.scope(NS)).entries)
        assert memory.verify().ok
    assert counts[0] > 2 < counts[2]
    assert (counts[1], counts[3]) == (1, 1)
    store.put(NS, "k", {"text": FILLER + PASSAGE})
    store.delete(NS, "k")
    assert memory.admin.stats(scope=store.scope(NS)).entries == 0


# -- what a search goes by ---------------------------------------------------------------------------------------


def test_words_and_meaning_rank_together(store: WellwornStore) -> None:
    store.put(NS, "runtime", {"text": "Ada prefers tokio over async-std."})
    store.put(NS, "tea", {"text": "Ada drinks green tea in the morning."})
    store.put(NS, "bike", {"text": "Her bicycle is a red Brompton."})
    assert keys(store.search(NS, query="tokio"))[0] == "runtime"
    assert keys(store.search(NS, query="which cycle does she ride?"))[0] == "bike"


def test_a_passage_deep_in_a_long_text_is_found(store: WellwornStore) -> None:
    store.put(NS, "diary", {"text": FILLER[:4000] + PASSAGE + FILLER[4000:]})
    for n in range(5):
        store.put(NS, f"note{n}", {"text": f"Note {n}: the clock in the kitchen is slow."})
    found = store.search(NS, query="where is the spare key of the boathouse?", limit=3)
    assert found[0].key == "diary"
    assert len(found) == len({item.key for item in found}) == 3, "an item counts once, whatever it is cut into"


def test_index_says_which_fields_are_looked_at(memory: Memory) -> None:
    store = WellwornStore(memory, tenant="acme", fields=["text"])
    value = {"text": "tokio", "note": "brompton", "list": [{"t": "oolong"}, {"t": "walrus"}]}
    for name, index in (
        ("default", None),
        ("note", ["note"]),
        ("list", ["list[*].t"]),
        ("none", False),
        ("all", ["$"]),
    ):
        store.put(NS, name, value, index=index)  # type: ignore[arg-type]
    scored = {item.key for item in store.search(NS, query="walrus") if item.score is not None}
    assert scored == {"default", "note", "list", "all"}
    best = {query: set(keys(store.search(NS, query=query, limit=2))) for query in ("walrus", "brompton", "tokio")}
    assert best == {"walrus": {"list", "all"}, "brompton": {"note", "all"}, "tokio": {"default", "all"}}


def test_a_filter_reaches_past_what_ranks_better(store: WellwornStore) -> None:
    store.batch([PutOp(NS, f"k{n:03}", {"text": f"tea number {n}", "n": n}) for n in range(150)])
    store.put(NS, "last", {"text": "nothing in common", "n": 1000})
    assert keys(store.search(NS, query="tea", filter={"n": {"$gte": 1000}})) == ["last"]
    assert len(store.search(NS, query="tea", filter={"n": {"$lt": 100}}, limit=500)) == 100


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        ({"n": {"$gt": "1"}}, {"number", "text"}),
        ({"d": {"$gte": "2024-05-01"}}, {"number"}),
        ({"n": {"$lt": []}}, set()),
        ({"missing": {"$gt": 0}}, set()),
        ({"missing": {"$ne": 0}}, {"number", "text"}),
        ({"n": {"$gt": 1, "$lt": 3}}, {"number"}),
    ],
)
def test_what_cannot_be_compared_does_not_pass(store: WellwornStore, filter: Any, expected: set[str]) -> None:
    store.put(NS, "number", {"n": 2, "d": "2024-06-01"})
    store.put(NS, "text", {"n": "3", "d": "2024-01-01"})
    assert set(keys(store.search(NS, filter=filter))) == expected


def test_a_blank_query_lists_and_a_very_long_one_is_cut(store: WellwornStore) -> None:
    store.put(NS, "k", {"text": "tea"})
    assert [item.score for item in store.search(NS, query=" \n")] == [None]
    assert keys(store.search(NS, query="tea " * 50_000)) == ["k"]


def test_a_memory_without_vectors_goes_by_words() -> None:
    with Memory.open(":memory:", embedder=None) as memory:
        store = WellwornStore(memory, tenant="acme")
        store.put(NS, "tea", {"text": "green tea"})
        store.put(NS, "none", {"text": "tea"}, index=False)
        store.put(NS, "rain", {"text": "rain in Oslo"})
        assert keys(store.search(NS, query="Oslo")) == ["rain", "tea", "none"]
        assert memory.verify().ok


def test_searching_teaches_nothing_and_leaves_no_log(store: WellwornStore, memory: Memory) -> None:
    store.put(NS, "k", {"text": "tea"})
    before = memory.admin.events(scope=store.scope(NS))
    store.search(NS, query="tea")
    assert memory.admin.events(scope=store.scope(NS)) == before
    assert memory.learning.status(scope=store.scope(NS)).outcomes == 0


# -- who sees what -----------------------------------------------------------------------------------------------


def test_a_prefix_reaches_down_but_not_across_names_or_tenants(store: WellwornStore, memory: Memory) -> None:
    other = WellwornStore(memory, tenant="rival")
    for name in (("a",), ("a", "b"), ("a", "b", "c"), ("ab",), ("A",)):
        store.put(name, "k", {"text": f"tea for {name}"})
        other.put(name, "k", {"text": f"poison for {name}"})
    for query in (None, "tea", "poison"):
        found = store.search(("a",), query=query)
        assert {item.namespace for item in found} == {("a",), ("a", "b"), ("a", "b", "c")}
        assert all("tea" in item.value["text"] for item in found)
    assert len(store.search((), query="tea")) == 5
    assert store.get(("b",), "k") is None


def test_people_of_the_tenant_do_not_see_the_store_nor_it_them(store: WellwornStore, memory: Memory) -> None:
    ada = Scope(tenant="acme", user="ada", agent="ada")
    memory.remember("Ada drinks tea.", scope=ada)
    memory.remember("The agent drinks tea.", scope=ada, layer="agent")
    store.put(NS, "k", {"text": "the store drinks tea"})
    assert keys(store.search((), query="tea")) == ["k"]
    assert len(memory.recall("tea", scope=ada).hits) == 2
    assert [hit.entry.text for hit in memory.recall("tea", scope=store.scope(NS))] == [
        '{"text": "the store drinks tea"}'
    ]


def test_forgetting_a_namespace_through_the_memory_empties_it(store: WellwornStore, memory: Memory) -> None:
    store.put(NS, "k", {"text": FILLER})
    store.put(("users", "ben"), "k", {"text": "tea"})
    store.search((), query="tea")
    memory.forget(scope=store.scope(NS), everything=True)
    assert store.get(NS, "k") is None
    assert store.list_namespaces() == [("users", "ben")]
    assert keys(store.search((), query="day nothing")) == ["k"]
    store.put(NS, "k", {"text": "back"})
    assert len(store.search(("users",))) == 2


def test_an_item_damaged_from_outside_is_no_item_until_it_is_put_again(store: WellwornStore, memory: Memory) -> None:
    scope = store.scope(NS)
    for harm in ("metadata", "head", "piece"):
        store.put(NS, "k", {"text": FILLER})
        entries = memory.entries(scope=scope)
        if harm == "metadata":
            memory.edit(entries[0].id, scope=scope, metadata={})
        else:
            memory.forget(scope=scope, ids=[entries[0 if harm == "head" else 1].id])
        assert (store.get(NS, "k") is None) == (harm != "piece")
        assert len(store.search(NS, query="nothing of note")) == int(harm == "piece")
        store.put(NS, "k", {"text": "tea"})
        assert keys(store.search(NS, query="tea")) == ["k"]
        assert memory.admin.stats(scope=scope).entries == 1
        assert memory.verify().ok


def test_the_scrubber_sees_every_text_first(tmp_path: Path) -> None:
    scrubber = lambda text: text.replace("hunter2", "…")  # noqa: E731
    with Memory.open(tmp_path / "memory.db", embedder="hash:16", scrubber=scrubber) as memory:
        store = WellwornStore(memory, tenant="acme")
        store.put(NS, "k", {"login": {"password": "hunter2"}, "log": ["it is hunter2"]})
        item = store.get(NS, "k")
        assert item is not None
        assert item.value == {"login": {"password": "…"}, "log": ["it is …"]}
        assert b"hunter2" not in b"".join(file.read_bytes() for file in tmp_path.iterdir())


@pytest.mark.parametrize("alone", [True, False], ids=["with its namespace", "beside another"])
def test_deleting_leaves_nothing_in_the_file(tmp_path: Path, alone: bool) -> None:
    with Memory.open(tmp_path / "memory.db", embedder="hash:16") as memory:
        store = WellwornStore(memory, tenant="acme")
        namespace = ("secretspace",) if alone else NS
        if not alone:
            store.put(NS, "stays", {"text": "tea"})
        store.put(namespace, "secretkey", {"text": "secretvalue"})
        store.search((), query="secretvalue")
        store.delete(namespace, "secretkey")
        assert b"secret" not in b"".join(file.read_bytes() for file in tmp_path.iterdir())


def test_items_survive_export_and_load(store: WellwornStore, memory: Memory, tmp_path: Path) -> None:
    store.put(NS, "k.1", {"text": FILLER, "n": [1, None]})
    store.put(NS, "bare", {"n": 2}, index=False)
    memory.admin.export(tmp_path / "all.jsonl")
    with Memory.open(tmp_path / "copy.db") as copy:
        copy.admin.load(tmp_path / "all.jsonl")
        loaded = WellwornStore(copy, tenant="acme")
        assert loaded.get(NS, "k.1") == store.get(NS, "k.1")
        assert keys(loaded.search(NS, query="weather")) == ["k.1", "bare"]


# -- bad input ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "op",
    [
        GetOp(("a.b",), "k"),
        PutOp(("a", ""), "k", {}),
        PutOp(("a", 1), "k", {}),  # type: ignore[arg-type]
        PutOp(("a\x00",), "k", {}),
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


def test_the_methods_refuse_what_langgraph_refuses(store: WellwornStore) -> None:
    for namespace in ((), ("langgraph", "x"), ("a.b",)):
        with pytest.raises(InvalidNamespaceError):
            store.put(namespace, "k", {})


@pytest.mark.parametrize(
    ("op", "problem"),
    [
        (PutOp(NS, "k" * 5000, {}), "4,096"),
        (PutOp(NS, "\ud800", {}), "half a character"),
        (PutOp(NS, "k", {}, index="text"), "list of paths"),  # type: ignore[arg-type]
        (PutOp(NS, "k", {}, index=[1]), "list of paths"),  # type: ignore[list-item]
        (SearchOp(NS, limit=-1), "limit"),
        (SearchOp(NS, offset=-1), "offset"),
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
    with pytest.raises(InvalidInput, match="ttl"):
        WellwornStore(memory, tenant="acme", ttl={"default_ttl": -1})


# -- in the framework --------------------------------------------------------------------------------------------


class Talk(TypedDict):
    said: str
    known: list[str]


def test_a_graph_remembers_across_threads(store: WellwornStore) -> None:
    def node(state: Talk, runtime: Runtime[None]) -> dict[str, Any]:
        assert runtime.store is store
        known = [item.value["text"] for item in runtime.store.search(NS, query=state["said"], limit=1)]
        runtime.store.put(NS, state["said"][:8], {"text": state["said"]})
        return {"known": known}

    graph = StateGraph(Talk)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    graph.add_edge("node", END)
    agent = graph.compile(store=store)
    agent.invoke({"said": "My bicycle is a green Brompton.", "known": []})
    answer = agent.invoke({"said": "What bicycle do I have?", "known": []})
    assert answer["known"] == ["My bicycle is a green Brompton."]


def test_the_core_does_without_langchain_and_says_which_extra_is_missing() -> None:
    code = """
import sys
for name in ("langchain", "langchain_core", "langgraph"):
    sys.modules[name] = None  # as if not installed
import wellworn
from wellworn import Memory, MissingExtra
Memory.open(":memory:", embedder="hash").close()
for module in ("langgraph_store", "vectorstore"):
    try:
        __import__(f"wellworn.integrations.{module}")
    except MissingExtra as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.count("pip install 'wellworn[langchain]'") == 2
    loaded = "import wellworn, wellworn.memory, sys; print([m for m in sys.modules if m.startswith('lang')])"
    assert subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True).stdout == "[]\n"
