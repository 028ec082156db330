"""Random operations on `WellwornStore` and on LangGraph's own `InMemoryStore`: both answer alike, for two tenants.

Where they differ on purpose, the reference is adapted first: without a query our items come newest first, as in
LangGraph's durable stores, and a namespace is listed while it holds something.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

import hypothesis.strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from langgraph.store.base import GetOp, IndexConfig, ListNamespacesOp, MatchCondition, Op, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from integrations.world import NOW
from wellworn import Memory
from wellworn.integrations.langgraph_store import WellwornStore

TENANTS = ("acme", "rival")
NAMESPACES = [("a",), ("a", "b"), ("ab",), ("b", "a"), ("ü", "日本", "%_ "), ("*",)]  # few, so that they meet
PREFIXES = [(), ("a",), ("a",), ("a", "b"), ("ab",), ("ü",), ("a", "b", "c")]
KEYS = ["k", "K", "🌧 k.1" * 60]
TEXTS = ["Ada likes tea", "a green bicycle", "rain in Oslo", "the dog sleeps", "tea and rain"]

tenants, names, keys = st.sampled_from(TENANTS), st.sampled_from(NAMESPACES), st.sampled_from(KEYS)
plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
any_json = st.recursive(plain, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=6)
values = st.fixed_dictionaries(
    {"text": st.sampled_from(TEXTS), "n": st.integers(-3, 3)},
    optional={
        "note": st.sampled_from(["red", "blue"]),
        "x": any_json,
        "deep": st.fixed_dictionaries({"m": st.integers(0, 2)}),
    },
)
indexes = st.sampled_from([None, False, ["text"], ["text", "note"], ["nowhere"]])
filters = st.sampled_from(
    [
        None,
        {"n": 1},
        {"n": {"$gte": -1, "$lt": 2}},
        {"note": {"$ne": "blue"}},
        {"text": TEXTS[0], "n": {"$gt": 0}},
        {"deep": {"m": {"$gt": 0}}, "x": None},
        {"nowhere": None},
    ]
)
patterns = st.sampled_from([None, ("a",), ("*", "b"), ("a", "*"), ("日本",), ("*", "*", "*")])
counts = st.integers(0, 6)


def embed(texts: Sequence[str]) -> list[list[float]]:
    return [[float(len(text)), float(text.count("a")), 1.0] for text in texts]


def told(items: Any) -> list[tuple[Any, ...]]:
    """Items as namespace, key and value in JSON."""
    return [(item.namespace, item.key, json.dumps(item.value)) for item in items]


class Reference:
    """LangGraph's store, and in which order items were put."""

    def __init__(self) -> None:
        self.store = InMemoryStore(index=IndexConfig(dims=3, embed=embed, fields=["text"]))
        self.order: dict[tuple[tuple[str, ...], str], int] = {}
        self.puts = 0

    def put(self, op: PutOp) -> None:
        self.store.batch([op._replace(value=None)])  # it would keep vectors of the value before
        self.order.pop((op.namespace, op.key), None)
        if op.value is not None:
            self.puts += 1
            self.store.batch([op])
            self.order[op.namespace, op.key] = self.puts

    def read(self, op: Op) -> Any:
        return self.store.batch([op])[0]

    def newest_first(self, items: Iterable[Any]) -> list[Any]:
        return sorted(items, key=lambda item: -self.order[item.namespace, item.key])


class Differential(RuleBasedStateMachine):
    """Every rule asks both stores."""

    def __init__(self) -> None:
        super().__init__()
        ticks = iter(range(10**9))
        clock = lambda: NOW + timedelta(seconds=next(ticks))  # noqa: E731
        self.memory = Memory(":memory:", embedder="hash:16", clock=clock)
        self.ours = {tenant: WellwornStore(self.memory, tenant=tenant, fields=["text"]) for tenant in TENANTS}
        self.references = {tenant: Reference() for tenant in TENANTS}

    def ask(self, tenant: str, op: Op) -> Any:
        return self.ours[tenant].batch([op])[0]

    @rule(tenant=tenants, namespace=names, key=keys, value=values, index=indexes)
    def put(self, tenant: str, namespace: tuple[str, ...], key: str, value: dict[str, Any], index: Any) -> None:
        op = PutOp(namespace, key, value, index=index)
        assert self.ask(tenant, op) is None
        self.references[tenant].put(op)

    @rule(tenant=tenants, namespace=names, key=keys)
    def delete(self, tenant: str, namespace: tuple[str, ...], key: str) -> None:
        self.ask(tenant, PutOp(namespace, key, None))
        self.references[tenant].put(PutOp(namespace, key, None))

    @rule(tenant=tenants, namespace=names, key=keys)
    def get(self, tenant: str, namespace: tuple[str, ...], key: str) -> None:
        ours = self.ask(tenant, GetOp(namespace, key))
        theirs = self.references[tenant].read(GetOp(namespace, key))
        assert told([ours] if ours else []) == told([theirs] if theirs else [])

    @rule(tenant=tenants, prefix=st.sampled_from(PREFIXES), filter=filters, limit=counts, offset=counts)
    def list(self, tenant: str, prefix: tuple[str, ...], filter: Any, limit: int, offset: int) -> None:
        reference = self.references[tenant]
        theirs = reference.newest_first(reference.read(SearchOp(prefix, filter, 1000)))
        assert told(self.ask(tenant, SearchOp(prefix, filter, limit, offset))) == told(theirs[offset : offset + limit])

    @rule(
        tenant=tenants,
        prefix=st.sampled_from(PREFIXES),
        filter=filters,
        query=st.sampled_from([*TEXTS, "who drinks tea?", "zzz"]),
        limit=counts,
    )
    def search(self, tenant: str, prefix: tuple[str, ...], filter: Any, query: str, limit: int) -> None:
        found = self.ask(tenant, SearchOp(prefix, filter, 1000, 0, query))
        theirs = self.references[tenant].read(SearchOp(prefix, filter, 1000, 0, query))
        for scored in (True, False):
            mine = [item for item in found if (item.score is not None) is scored]
            assert sorted(told(mine)) == sorted(told(item for item in theirs if (item.score is not None) is scored))
        scores = [item.score for item in found]
        assert scores == sorted(scores, key=lambda score: (score is None, -round(score or 0.0, 3)))
        pages = [self.ask(tenant, SearchOp(prefix, filter, limit, offset, query)) for offset in (0, limit)]
        assert told(pages[0]) + told(pages[1]) == told(found[: 2 * limit])

    @rule(tenant=tenants, prefix=patterns, suffix=patterns, max_depth=st.none() | st.integers(1, 3), limit=counts)
    def namespaces(self, tenant: str, prefix: Any, suffix: Any, max_depth: int | None, limit: int) -> None:
        given = (("prefix", prefix), ("suffix", suffix))
        match = tuple(MatchCondition(match_type=kind, path=path) for kind, path in given if path)  # type: ignore[arg-type]
        reference = self.references[tenant]
        live = {namespace for namespace, _ in reference.order}
        everything = reference.read(ListNamespacesOp(match, None, 1000, 0))
        expected = sorted({name[:max_depth] for name in everything if name in live})
        assert self.ask(tenant, ListNamespacesOp(match, max_depth, limit, 1)) == expected[1 : 1 + limit]

    def teardown(self) -> None:
        report = self.memory.verify()
        self.memory.close()
        assert report.ok, report


TestDifferential = Differential.TestCase
