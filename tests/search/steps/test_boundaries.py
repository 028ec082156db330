"""The recursive route reaches no further than the plain one: scope, filters and time hold by whatever plan."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wellworn import (
    Aggregate,
    DrillDown,
    FilterByRecency,
    FilterByRelevance,
    Memory,
    Recursion,
    RecursiveCall,
    Scope,
    SearchLayer,
)
from wellworn.core.values import LAYERS

from .test_executor import Fixed

NAMES = ["Kestrel", "Osprey", "Merlin", "Harrier", "Falcon"]
START = datetime(2025, 1, 1, tzinfo=UTC)

layer = st.sampled_from([None, *LAYERS])
query = st.lists(st.sampled_from([*NAMES, "nest", "film"]), min_size=1, max_size=4).map(" ".join)
action = st.one_of(
    st.builds(SearchLayer, query=query, layer=layer),
    st.builds(RecursiveCall, sub_query=query),
    st.builds(DrillDown, source=layer, target=layer, filter=st.sampled_from(["", "nest"]), turns=st.booleans()),
    st.builds(FilterByRelevance, top=st.integers(0, 5), min_share=st.floats(0, 1)),
    st.builds(FilterByRecency, max_age_days=st.floats(0, 400)),
    st.builds(Aggregate, strategy=st.sampled_from(["combine", "compare", "summarize"])),
)
filters = st.fixed_dictionaries(
    {},
    optional={
        "kind": st.sampled_from(["fact", "note", "episode"]),
        "tags": st.sampled_from(["red", "blue"]),
        "layer": st.sampled_from(["user", "team"]),
        "session_id": st.just("talk"),
        "since": st.just(START + timedelta(days=10)),
        "until": st.just(START + timedelta(days=20)),
        "as_of": st.just(START + timedelta(days=15)),
    },
)


def bank(planner: Fixed) -> Memory:
    memory = Memory.open(":memory:", embedder="hash", recursion=Recursion(mode="always", planner=planner))
    for tenant in ("acme", "other"):
        for user in ("ada", "bob"):
            scope = Scope(tenant=tenant, user=user, team="core")
            for number, name in enumerate(NAMES):
                other = NAMES[(number + 1) % len(NAMES)]
                memory.remember(
                    f"{name} of {user} at {tenant} has a nest by the {other}.",
                    scope=scope,
                    title=name,
                    kind=("fact", "note")[number % 2],
                    tags=[("red", "blue")[number % 2]],
                    layer=("user", "team")[number % 2],
                    at=START + timedelta(days=5 * number),
                    valid_from=START + timedelta(days=5 * number),
                    valid_to=START + timedelta(days=17) if number == 2 else None,
                )
            talk = memory.session(scope=scope, session_id="talk")
            for name in NAMES:
                talk.add(user, f"I saw a {name} film.", at=START + timedelta(days=12))
            ids = [entry.id for entry in memory.entries(scope=scope, layer="user")]
            memory.link(ids[0], ids[-1], "supports", scope=scope)
    return memory


PLANNER = Fixed()
BANK = bank(PLANNER)


@settings(suppress_health_check=list(HealthCheck))
@given(plan=st.lists(action, max_size=6), asked=query, chosen=filters, k=st.integers(1, 30))
def test_any_plan_returns_only_what_plain_search_may(
    plan: list[Any], asked: str, chosen: dict[str, Any], k: int
) -> None:
    PLANNER.given = tuple(plan)
    scope = Scope(tenant="acme", user="ada", team="core")
    found = BANK.recall(asked, scope=scope, k=k, **chosen)
    allowed = BANK.recall(asked, scope=scope, k=200, recursion="off", **chosen)
    assert found.route == "recursive"
    assert found.searched == allowed.searched
    ids = [hit.entry.id for hit in found.hits]
    assert len(set(ids)) == len(ids) <= k
    assert set(ids) <= {hit.entry.id for hit in allowed.hits}
    assert all(hit.entry.tenant == "acme" for hit in found.hits)
    assert all(abs(sum(hit.factors.values()) - hit.score) < 1e-6 for hit in found.hits)
    if not any(isinstance(one, FilterByRecency) for one in plan):
        assert len(ids) == min(k, len(allowed.hits))
