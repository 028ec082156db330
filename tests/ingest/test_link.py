"""The plan of automatic links, as a decision over values."""

from __future__ import annotations

from datetime import timedelta

import pytest

from wellworn.ingest.link import jaccard, plan_links
from wellworn.ingest.terms import analyze
from wellworn.store.port import Neighbour, NewEntry
from wellworn.testing.builders import NOON, make_entry

TEXT = "the old mill by the river burned down last summer"


def record(text: str = TEXT) -> NewEntry:
    return NewEntry(entry=make_entry("new", text=text), index=analyze(text), vector=None)


def neighbour(name: str, *, text: str | None = None, minutes: float = 60) -> Neighbour:
    return Neighbour(id=name, at=NOON - timedelta(minutes=minutes), index=None if text is None else analyze(text))


def plan(**given: object) -> list[tuple[str, str, float]]:
    nothing: dict[str, object] = {"latest": None, "session": [], "related": [], "similar": []}
    links = list(plan_links(record(), **(nothing | given)))  # type: ignore[arg-type]
    assert all("new" in (link.source, link.target) and link.automatic and link.created_at == NOON for link in links)
    return [(link.type, link.target if link.source == "new" else link.source, link.confidence) for link in links]


def test_no_neighbours_no_links() -> None:
    assert plan() == []


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


def test_a_shared_sketch_is_not_enough_to_be_similar() -> None:
    assert plan(similar=[neighbour("n", text="the old mill by the sea")]) == []
    assert plan(similar=[neighbour("n")]) == []


def test_the_confidence_of_similar_is_how_alike_the_texts_are() -> None:
    other = TEXT + " yesterday"
    ((type_, target, confidence),) = plan(similar=[neighbour("n", text=other)])
    assert (type_, target) == ("similar_to", "n")
    assert confidence == pytest.approx(jaccard(analyze(TEXT), analyze(other)), abs=1e-4)
    assert 0.8 <= confidence < 1


def test_alikeness_is_shared_terms_over_all_terms() -> None:
    assert jaccard(analyze("bees tea rain"), analyze("bees tea owls")) == pytest.approx(2 / 4)
    assert jaccard(analyze("bees"), analyze("owls")) == 0.0
    assert jaccard(analyze("the"), analyze("of")) == 0.0
