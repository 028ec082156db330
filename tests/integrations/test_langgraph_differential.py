"""Random operations on `WellwornStore` and on LangGraph's own `InMemoryStore`: both answer alike, for two tenants.

Where they differ on purpose, the reference's answer is brought into our form first: without a query ours come newest
first (as in LangGraph's durable stores), and a namespace is listed while it holds something.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import hypothesis.strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from langgraph.store.base import (
    GetOp,
    IndexConfig,
    Item,
    ListNamespacesOp,
    MatchCondition,
    NamespacePath,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

from wellworn import Memory
from wellworn.integrations.langgraph_store import WellwornStore

TENANTS = ("acme", "rival")
NAMESPACES = [("a",), ("a", "b"), ("ab",), ("b", "a"), ("ü", "日本", "%_ "), ("*",)]  # few, so that they meet
PREFIXES = [(), ("a",), ("a",), ("a", "b"), ("ab",), ("ü",), ("a", "b", "c")]
KEYS = ["k", "K", "🌧 k.1" * 60]
TEXTS = ["Ada likes tea", "a green bicycle", "rain in Oslo", "the dog sleeps", "tea and rain"]
NOTES = ["red", "blue", "ten kilometres"]

plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
any_json = st.recursive(plain, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=6)
values = st.fixed_dictionaries(
    {"text": st.sampled_from(TEXTS), "n": st.integers(-3, 3)},
    optional={"note": st.sampled_from(NOTES), "x": any_json, "deep": st.fixed_dictionaries({"m": st.integers(0, 2)})},
)
indexes = st.sampled_from([None, False, ["text"], ["note"], ["text", "note"], ["nowhere"]])
filters = st.sampled_from(
    [
        None,
        {},
        {"n": 1},
        {"n": {"$gt": 0}},
        {"n": {"$gte": -1, "$lt": 2}},
        {"n": {"$lte": 0}},
        {"n": {"$ne": 1}},
        {"note": "red"},
        {"note": {"$eq": "blue"}},
        {"note": {"$ne": "blue"}},
        {"text": TEXTS[0], "n": {"$gte": 0}},
        {"deep": {"m": 1}},
        {"deep": {"m": {"$gt": 0}}, "x": None},
        {"x": [1, 2]},
        {"nowhere": None},
    ]
)
patterns = st.sampled_from([None, ("a",), ("*", "b"), ("a", "*"), ("*",), ("日本",), ("b", "c"), ("*", "*", "*")])
counts = st.integers(0, 6)


class Ticking:
    """A clock that is one second on at each look."""

    def __init__(self) -> None:
        self.now = datetime(2024, 5, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


def embed(texts: Sequence[str]) -> list[list[float]]:
    return [[float(len(text)), float(text.count("a")), 1.0] for text in texts]


class Reference:
    """LangGraph's store, and in which order items were put."""

    def __init__(self) -> None:
        self.store = InMemoryStore(index=IndexConfig(dims=3, embed=embed, fields=["text"]))
        self.order: dict[tuple[tuple[str, ...], str], int] = {}
        self.created: dict[tuple[tuple[str, ...], str], int] = {}
        self.puts = 0

    def put(self, op: PutOp) -> None:
        place = (op.namespace, op.key)
        self.store.batch([op._replace(value=None)])  # it would keep vectors of the value before
        self.order.pop(place, None)
        if op.value is None:
            self.created.pop(place, None)
            return
        self.puts += 1
        self.store.batch([op])
        self.order[place] = self.puts
        self.created.setdefault(place, self.puts)

    def newest_first(self, items: Iterable[Item]) -> list[Item]:
        return sorted(items, key=lambda item: -self.order[item.namespace, item.key])

    def read(self, op: Op) -> Result:
        if isinstance(op, ListNamespacesOp):
            for namespace in [name for name, items in self.store._data.items() if not items]:
                del self.store._data[namespace]
        (result,) = self.store.batch([op])
        return result


def told(items: Iterable[Item]) -> list[tuple[Any, ...]]:  # (namespace, key, value as JSON)
    return [(item.namespace, item.key, json.dumps(item.value)) for item in items]


class Differential(RuleBasedStateMachine):
    """The rules; `ask` calls our store."""

    def __init__(self) -> None:
        super().__init__()
        self.memory = Memory(":memory:", embedder="hash:16", clock=Ticking())
        self.ours = {tenant: WellwornStore(self.memory, tenant=tenant, fields=["text"]) for tenant in TENANTS}

    @initialize()
    def start(self) -> None:
        self.references = {tenant: Reference() for tenant in TENANTS}

    def ask(self, tenant: str, ops: list[Op]) -> list[Result]:
        return self.ours[tenant].batch(ops)

    @rule(
        tenant=st.sampled_from(TENANTS),
        namespace=st.sampled_from(NAMESPACES),
        key=st.sampled_from(KEYS),
        value=values,
        index=indexes,
    )
    def put(self, tenant: str, namespace: tuple[str, ...], key: str, value: dict[str, Any], index: Any) -> None:
        op = PutOp(namespace, key, value, index=index)
        assert self.ask(tenant, [op]) == [None]
        self.references[tenant].put(op)

    @rule(tenant=st.sampled_from(TENANTS), namespace=st.sampled_from(NAMESPACES), key=st.sampled_from(KEYS))
    def delete(self, tenant: str, namespace: tuple[str, ...], key: str) -> None:
        op = PutOp(namespace, key, None)
        self.ask(tenant, [op])
        self.references[tenant].put(op)

    @rule(tenant=st.sampled_from(TENANTS), namespace=st.sampled_from(NAMESPACES), key=st.sampled_from(KEYS))
    def get(self, tenant: str, namespace: tuple[str, ...], key: str) -> None:
        (ours,) = self.ask(tenant, [GetOp(namespace, key)])
        theirs = self.references[tenant].read(GetOp(namespace, key))
        assert (ours is None) == (theirs is None)
        if isinstance(ours, Item) and isinstance(theirs, Item):
            assert told([ours]) == told([theirs])
            assert ours.created_at <= ours.updated_at

    @rule(
        tenant=st.sampled_from(TENANTS), prefix=st.sampled_from(PREFIXES), filter=filters, limit=counts, offset=counts
    )
    def list(self, tenant: str, prefix: tuple[str, ...], filter: Any, limit: int, offset: int) -> None:
        (ours,) = self.ask(tenant, [SearchOp(prefix, filter, limit, offset)])
        reference = self.references[tenant]
        theirs = reference.newest_first(items_of(reference.read(SearchOp(prefix, filter, 1000))))
        assert told(items_of(ours)) == told(theirs[offset : offset + limit])

    @rule(
        tenant=st.sampled_from(TENANTS),
        prefix=st.sampled_from(PREFIXES),
        filter=filters,
        query=st.sampled_from([*TEXTS, "who drinks tea?", "zzz"]),
        limit=counts,
    )
    def search(self, tenant: str, prefix: tuple[str, ...], filter: Any, query: str, limit: int) -> None:
        (ours,) = self.ask(tenant, [SearchOp(prefix, filter, 1000, 0, query)])
        theirs = items_of(self.references[tenant].read(SearchOp(prefix, filter, 1000, 0, query)))
        found = items_of(ours)
        for scored in (True, False):
            assert sorted(told(of(found, scored))) == sorted(told(of(theirs, scored)))
        assert told(of(found, True)) + told(of(found, False)) == told(found), "what has no score comes last"
        scores = [round(item.score or 0.0, 3) for item in of(found, True)]  # nearer than that is a tie
        assert scores == sorted(scores, reverse=True)
        pages = [self.ask(tenant, [SearchOp(prefix, filter, limit, offset, query)])[0] for offset in (0, limit)]
        assert told(items_of(pages[0])) + told(items_of(pages[1])) == told(found[: 2 * limit])

    @rule(
        tenant=st.sampled_from(TENANTS),
        prefix=patterns,
        suffix=patterns,
        max_depth=st.none() | st.integers(1, 3),
        limit=counts,
        offset=st.integers(0, 3),
    )
    def namespaces(
        self,
        tenant: str,
        prefix: NamespacePath | None,
        suffix: NamespacePath | None,
        max_depth: int | None,
        limit: int,
        offset: int,
    ) -> None:
        given = (("prefix", prefix), ("suffix", suffix))
        match = tuple(MatchCondition(match_type=kind, path=path) for kind, path in given if path)  # type: ignore[arg-type]
        op = ListNamespacesOp(match, max_depth, limit, offset)
        assert self.ask(tenant, [op]) == [self.references[tenant].read(op)]

    @rule(tenant=st.sampled_from(TENANTS), data=st.data())
    def batch(self, tenant: str, data: st.DataObject) -> None:
        """Reads see what was there before the writes; of two writes to a key the last counts."""
        place = st.tuples(st.sampled_from(NAMESPACES[:3]), st.sampled_from(KEYS[:2]))
        puts = st.builds(lambda where, value: PutOp(where[0], where[1], value), place, st.none() | values)
        ops: list[Op] = data.draw(st.lists(puts | st.builds(lambda where: GetOp(*where), place), max_size=6))
        ours = self.ask(tenant, ops)
        reference = self.references[tenant]
        theirs = [reference.read(op) if isinstance(op, GetOp) else None for op in ops]
        assert [told([one]) if isinstance(one, Item) else one for one in ours] == [
            told([one]) if isinstance(one, Item) else one for one in theirs
        ]
        for op in {(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}.values():
            reference.put(op)

    def teardown(self) -> None:
        report = self.memory.verify()
        self.memory.close()
        assert report.ok, report


def items_of(result: Result) -> list[Any]:  # Item or SearchItem
    assert isinstance(result, list)
    return result


def of(items: Iterable[SearchItem], scored: bool) -> list[SearchItem]:
    return [item for item in items if (item.score is not None) is scored]


TestDifferential = Differential.TestCase
