"""A memory in Postgres answers as one in SQLite does: the same calls, the same hits with the same scores."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from contract.few import FEWER
from contract.postgres import Server
from wellworn import Memory

NAMES, CITIES, THINGS = ["Ada", "Bo", "Cy"], ["Oslo", "Bergen", "Rome"], ["tea", "chess", "tokio"]
people, cities, things = st.sampled_from(NAMES), st.sampled_from(CITIES), st.sampled_from(THINGS)
said = st.one_of(
    st.builds("I live in {}.".format, cities),
    st.builds("I moved to {} last week.".format, cities),
    st.builds("{} prefers {}.".format, people, things),
    st.builds("{} went to {} with {}.".format, people, cities, people),
)
asked = st.one_of(st.just("Where do I live?"), st.builds("What does {} prefer?".format, people))
Call = Callable[[Memory], Any]


def in_turn(*said: str) -> Call:
    def call(mem: Memory) -> Any:
        session = mem.for_user("ada").session("monday")
        for text in said:
            session.add("user", text)

    return call


def forget(place: int) -> Call:
    def call(mem: Memory) -> Any:
        ids = [entry.id for entry in mem.for_user("ada").entries()]
        return mem.for_user("ada").forget([ids[place % len(ids)]]) if ids else None

    return call


calls = st.one_of(
    st.builds(lambda text, who: lambda mem: mem.for_user(who).remember(text), said, st.sampled_from(["ada", "bo"])),
    st.builds(lambda texts: lambda mem: mem.for_user("ada").remember_many(texts), st.lists(said, max_size=3)),
    st.builds(in_turn, said, said),
    st.builds(forget, st.integers(0, 5)),
    st.builds(lambda query: lambda mem: mem.for_user("ada").recall(query) and None, asked),
)


def opened(location: str) -> Memory:
    noon, ids = datetime(2024, 5, 1, 12, tzinfo=UTC), count()
    ticks = count()
    return Memory(
        location,
        embedder="hash",
        background=False,
        durability="normal",
        clock=lambda: noon + timedelta(seconds=next(ticks)),
        new_id=lambda: f"00000000-0000-7000-8000-{next(ids):012d}",
    )


def shown(mem: Memory) -> list[Any]:
    everyone = mem.for_user("ada")
    found = [everyone.recall(query) for query in ("Where do I live?", "What does Ada prefer?", "Rome")]
    hits = [[(hit.entry.id, hit.text, round(hit.score, 9), hit.outdated is None) for hit in recall] for recall in found]
    counts = mem.admin.stats()
    return [hits, [entry.text for entry in everyone.entries()], counts.entries, counts.links, counts.by_state]


@given(drawn=st.lists(calls, min_size=1, max_size=8))
@FEWER
def test_the_same_calls_give_the_same_recalls(postgres_server: Server, drawn: list[Call]) -> None:
    answers = []
    for location in (":memory:", postgres_server.url()):
        with opened(location) as mem:
            for call in drawn:
                call(mem)
            answers.append(shown(mem))
            assert mem.verify().ok
    assert answers[0] == answers[1]
