"""A small bank of passages in which some questions need two of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from wellworn import Memory, Scope

SCOPE = Scope(tenant="acme", user="ada", team="core")

PASSAGES = [
    ("Leland", "Leland is a small town near the coast. The film Overdrive Maximus was shot in Leland in 1986."),
    ("Overdrive Maximus", "Overdrive Maximus is a horror picture directed by Stefan Kingsley about trucks."),
    ("Leland mill", "The mill of Leland was a paper mill in the town and closed in 1986."),
    ("Leland river", "The river at Leland floods the town in spring; the film society meets there."),
    ("Leland school", "The school of Leland has shot put champions and a film club."),
    ("Harbour film prize", "The Harbour film prize is given to whoever directed the best film of the year."),
    ("Coastal towns", "Coastal towns were often shot for film in the eighties."),
    ("Bakery", "The bakery opens at six and sells rye bread."),
    ("Parking", "Parking is free on Sundays."),
]
QUESTION = "Who directed the film that was shot in Leland in 1986?"


class Time:
    """A clock to be moved by hand, that ticks whenever it is read."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(milliseconds=1)
        return self.now


def filled(**options: Any) -> Memory:  # the keywords of Memory.open
    memory = Memory.open(":memory:", **{"embedder": "hash", **options})
    memory.remember_many([{"title": title, "text": text, "kind": "fact"} for title, text in PASSAGES], scope=SCOPE)
    return memory


def titles(memory: Memory, question: str = QUESTION, **options: Any) -> list[str]:  # the keywords of recall
    return [hit.entry.title for hit in memory.recall(question, scope=SCOPE, **{"k": 3, **options}).hits]
