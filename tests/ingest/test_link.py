"""The automatic links of a new entry, over a transaction that has these neighbours."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from contract.builders import NOON, make_entry
from wellworn.ingest.remember import jaccard, links_for
from wellworn.ingest.terms import analyze
from wellworn.store.port import Neighbour, NewEntry

TEXT = "the old mill by the river burned down last summer"


def neighbour(name: str, *, text: str | None = None, minutes: float = 60) -> Neighbour:
    return Neighbour(id=name, at=NOON - timedelta(minutes=minutes), index=None if text is None else analyze(text))


class Neighbours:
    """What a transaction would find."""

    def __init__(self, **found: Any) -> None:
        self.found = {"latest": neighbour("far", minutes=600), "session": [], "related": [], "similar": []} | found

    def neighbours(
        self, partition: Any, *, session_id: Any = None, tags: Any = None, near: Any = None, **_: Any
    ) -> Any:
        if session_id is not None:
            return self.found["session"]
        if tags is not None:
            return self.found["related"]
        return self.found["similar"] if near is not None else [self.found["latest"]]


def plan(**found: object) -> list[tuple[str, str, float]]:
    entry = make_entry("new", text=TEXT, session_id="s", tags=["a", "b"])
    record = NewEntry(entry=entry, index=analyze(TEXT), vector=None)
    links = list(links_for(Neighbours(**found), record))  # type: ignore[arg-type]  # as much of one as is asked
    assert all("new" in (link.source, link.target) and link.automatic and link.created_at == NOON for link in links)
    return [(link.type, link.target if link.source == "new" else link.source, link.confidence) for link in links]


def test_no_neighbours_no_links() -> None:
    assert plan() == []
    assert plan(latest=None, session=[neighbour("s1")]) == []


def test_each_rule_draws_its_own_link() -> None:
    found = plan(
        session=[neighbour("s1"), neighbour("s2")],
        related=[neighbour("r")],
        similar=[neighbour("n", text=TEXT)],
        latest=neighbour("l", minutes=1),
    )
    assert found == [
        ("context_of", "s1", 1.0),
        ("context_of", "s2", 1.0),
        ("related_to", "r", 1.0),
        ("similar_to", "n", 1.0),
        ("follows", "l", 1.0),
    ]


@pytest.mark.parametrize(("minutes", "count"), [(0, 1), (4.99, 1), (5, 0), (-4.99, 1), (-5, 0)])
def test_five_minutes_is_already_too_far_apart(minutes: float, count: int) -> None:
    assert len(plan(latest=neighbour("l", minutes=minutes))) == count


def test_similar_means_that_most_words_are_shared() -> None:
    assert plan(similar=[neighbour("n", text="the old mill by the sea")]) == []
    assert plan(similar=[neighbour("n")]) == []
    other = TEXT + " too early"
    ((kind, _, confidence),) = plan(similar=[neighbour("n", text=other)])
    assert kind == "similar_to"
    assert confidence == pytest.approx(jaccard(analyze(TEXT), analyze(other)), abs=1e-4)
