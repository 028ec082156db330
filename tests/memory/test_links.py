"""Automatic links and their limits; links by hand and what they do to a recall."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from memory.world import ADA, BEN, NOON, Clock, OpenMemory, picture
from wellworn import InvalidInput, Memory, NotFound, Scope

TEXTS = ["a mill by the river", "seven green bottles", "the price of copper", "how moss grows", "an owl at night"]


def links_from(mem: Memory, entry_id: str) -> set[tuple[str, str]]:
    """(type, target) of the links that start at an entry."""
    return {(link.type, link.target) for link in mem.links(entry_id, scope=ADA) if link.source == entry_id}


def remember_apart(mem: Memory, clock: Clock, *given: Any, **options: Any) -> list[str]:
    """Entries an hour from each other, so that none follows another."""
    ids = []
    for text in given:
        clock.forward(hours=1)
        ids += mem.remember(text, scope=ADA, **options)
    return ids


def test_entries_and_turns_of_one_session_are_context_of_each_other(mem: Memory, clock: Clock) -> None:
    ids = remember_apart(mem, clock, *TEXTS[:3], session_id="s")
    clock.forward(hours=1)
    ids.append(mem.session(scope=ADA, session_id="s").add("user", TEXTS[3]))
    (other,) = remember_apart(mem, clock, TEXTS[4], session_id="t")
    assert links_from(mem, ids[0]) == links_from(mem, other) == set()
    assert links_from(mem, ids[1]) == {("context_of", ids[0])}
    assert links_from(mem, ids[3]) == {("context_of", ids[2]), ("context_of", ids[1])}


def test_two_shared_tags_relate_and_one_does_not(mem: Memory, clock: Clock) -> None:
    (first,) = remember_apart(mem, clock, TEXTS[0], tags=["a", "b", "c"])
    (one,) = remember_apart(mem, clock, TEXTS[1], tags=["a", "x"])
    (two,) = remember_apart(mem, clock, TEXTS[2], tags=["c", "b", "y"])
    assert links_from(mem, one) == set()
    assert links_from(mem, two) == {("related_to", first)}


@pytest.mark.parametrize(
    ("apart", "follows"), [(0.0, True), (299.999999, True), (300.0, False), (-299.0, True), (-300.0, False)]
)
def test_less_than_five_minutes_apart_follows(mem: Memory, apart: float, follows: bool) -> None:
    (first,) = mem.remember(TEXTS[0], scope=ADA, at=NOON)
    (second,) = mem.remember(TEXTS[1], scope=ADA, at=NOON + timedelta(seconds=apart))
    found = [link for link in mem.links(second, scope=ADA) if link.type == "follows"]
    assert bool(found) is follows
    if follows:  # whatever happened later follows what happened earlier
        assert (found[0].source, found[0].target) == ((second, first) if apart >= 0 else (first, second))


LONG = "the old mill by the wide river burned down in the summer of nineteen hundred and five"


@pytest.mark.parametrize(
    ("first", "second"), [(LONG, LONG + "!"), ("Ada likes tea", "Ada likes tea!"), ("OK, deal.", "ok deal")]
)
def test_nearly_the_same_text_is_similar(mem: Memory, clock: Clock, first: str, second: str) -> None:
    a, other, b = remember_apart(mem, clock, first, TEXTS[3], second)
    assert links_from(mem, b) == {("similar_to", a)}
    assert links_from(mem, other) == set()
    assert [link.confidence for link in mem.links(b, scope=ADA)] == [1.0]


def test_automatic_links_say_that_they_are(mem: Memory) -> None:
    _, second = mem.remember_many(TEXTS[:2], scope=ADA, tags=["a", "b"], session_id="s")
    links = mem.links(second, scope=ADA)
    assert {link.type for link in links} == {"context_of", "related_to", "follows"}
    assert all(link.automatic for link in links)


def test_the_fan_out_is_bounded(mem: Memory) -> None:
    near = "the old mill by the wide river burned down in the summer, number"
    ids = mem.remember_many([f"{near} {'!' * n}" for n in range(1, 60)], scope=ADA, tags=["a", "b"], session_id="s")
    assert max(len(links_from(mem, entry_id)) for entry_id in ids) <= 9
    assert mem.admin.stats(scope=ADA).links <= 9 * len(ids)


def test_no_link_leads_to_another_person_or_to_what_is_no_longer_active(mem: Memory, clock: Clock) -> None:
    shared: dict[str, Any] = {"tags": ["a", "b"], "session_id": "s"}
    mem.remember(TEXTS[0], scope=BEN, **shared)
    (mine,) = remember_apart(mem, clock, TEXTS[0], **shared)
    assert mem.links(mine, scope=ADA) == []
    mem.edit(mine, scope=ADA, state="pruned")
    assert links_from(mem, *mem.remember(TEXTS[1], scope=ADA, **shared)) == set()


# -- by hand -----------------------------------------------------------------------------------------------------


def test_a_link_is_seen_from_both_ends_drawn_once_and_taken_back(mem: Memory, clock: Clock) -> None:
    a, b = remember_apart(mem, clock, *TEXTS[:2])
    link = mem.link(a, b, "supports", scope=ADA, confidence=0.5)
    assert (link.source, link.target, link.type, link.confidence, link.automatic) == (a, b, "supports", 0.5, False)
    clock.forward(hours=1)
    assert [mem.link(a, b, "supports", scope=ADA, confidence=0.9)] == mem.links(a, scope=ADA) == mem.links(b, scope=ADA)
    assert mem.verify().ok
    assert [mem.unlink(*ends, "supports", scope=ADA) for ends in ((b, a), (a, b), (a, b))] == [False, True, False]
    assert mem.links(a, scope=ADA) == []


def test_bad_links_are_refused_and_change_nothing(mem: Memory, clock: Clock) -> None:
    a, b = remember_apart(mem, clock, *TEXTS[:2])
    (bens,) = mem.remember("of Ben", scope=BEN)
    before = picture(mem)
    for source, target, type_, error in (
        (a, a, "supports", InvalidInput),
        (a, b, "likes", InvalidInput),
        (a, b, None, InvalidInput),
        (a, bens, "supports", NotFound),
        (bens, a, "supports", NotFound),
        (a, "nothing", "supports", NotFound),
    ):
        with pytest.raises(error):
            mem.link(source, target, type_, scope=ADA)  # type: ignore[arg-type]
    for confidence in (-0.1, 1.1, float("nan"), "1", None, True):
        with pytest.raises(InvalidInput, match="confidence"):
            mem.link(a, b, "supports", scope=ADA, confidence=confidence)  # type: ignore[arg-type]
    assert picture(mem) == before


def test_links_that_would_lead_back_are_refused(mem: Memory, clock: Clock) -> None:
    a, b = remember_apart(mem, clock, *TEXTS[:2])
    mem.link(a, b, "derived_from", scope=ADA)
    with pytest.raises(InvalidInput, match="already derived_from"):
        mem.link(b, a, "derived_from", scope=ADA)


@pytest.fixture
def crowd(opened: OpenMemory, location: str, clock: Clock) -> tuple[Memory, str, str]:
    """A memory of words only, an entry that answers, and one without a word of the question."""
    mem = opened(location, embedder=None)
    (answer,) = remember_apart(mem, clock, "the owl lives in the old barn")
    (beside,) = remember_apart(mem, clock, "mind the gap")
    remember_apart(mem, clock, *[f"line {n} of filler that is rather long, as long lines go" for n in range(30)])
    return mem, answer, beside


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    ("type_", "sure", "share"),
    [
        ("supports", 1.0, 2),
        ("elaborates", 1.0, 2),
        ("supports", 0.5, 4),
        ("contradicts", 1.0, 0),
        ("supersedes", 1.0, 0),
    ],
)
def test_a_link_lifts_an_entry_the_surer_the_higher(
    crowd: tuple[Memory, str, str], type_: Any, sure: float, share: int, turned: bool
) -> None:
    mem, answer, beside = crowd
    before = {hit.entry.id: hit.score for hit in mem.recall("where does the owl live?", scope=ADA, k=40)}
    mem.link(*((beside, answer) if turned and share else (answer, beside)), type_, scope=ADA, confidence=sure)
    hits = {hit.entry.id: hit for hit in mem.recall("where does the owl live?", scope=ADA, k=40)}
    if share:
        assert hits[beside].score == pytest.approx(hits[answer].score / share, rel=1e-6)
        assert hits[beside].factors["linked"] > 0
    else:
        assert beside not in hits or hits[beside].score <= before[beside]


def test_a_link_never_lifts_past_a_filter_or_out_of_its_time(crowd: tuple[Memory, str, str]) -> None:
    mem, answer, beside = crowd
    mem.link(answer, beside, "supports", scope=ADA)
    mem.edit(beside, scope=ADA, kind="fact", valid_to="2027-01-01")
    query = "where does the owl live?"
    assert beside not in [h.entry.id for h in mem.recall(query, scope=ADA, k=40, kind="note")]
    assert beside not in [h.entry.id for h in mem.recall(query, scope=ADA, k=40, as_of="2027-01-01")]


def test_a_link_by_hand_counts_even_where_an_automatic_one_is(opened: OpenMemory, location: str, clock: Clock) -> None:
    mem = opened(location, embedder=None)
    (beside,) = remember_apart(mem, clock, "mind the gap", tags=["a", "b"])
    (answer,) = remember_apart(mem, clock, "the owl lives in the old barn", tags=["a", "b"])
    remember_apart(mem, clock, *[f"line {n} of filler that is rather long, as long lines go" for n in range(30)])
    assert links_from(mem, answer) == {("related_to", beside)}
    assert mem.link(answer, beside, "related_to", scope=ADA).automatic is False
    assert [link.automatic for link in mem.links(answer, scope=ADA)] == [False]
    assert beside in [hit.entry.id for hit in mem.recall("where does the owl live?", scope=ADA, k=2)]


def test_a_link_to_an_entry_the_scope_does_not_see_is_not_shown(mem: Memory) -> None:
    both = Scope(tenant="acme", user="ada", org="o")
    (shared,) = mem.remember("the shared rule", scope=both, layer="org")
    (mine,) = mem.remember("my private view of the rule", scope=both)
    mem.link(mine, shared, "elaborates", scope=both)
    bens = Scope(tenant="acme", user="ben", org="o")
    assert mem.links(shared, scope=bens) == []
    assert len(mem.links(shared, scope=both)) == 1
    assert mine not in [hit.entry.id for hit in mem.recall("rule", scope=bens, k=10)]
