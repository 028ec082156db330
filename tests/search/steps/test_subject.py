"""Questions about somebody who speaks in the memory are asked again for their subject."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from wellworn import Aggregate, Memory, Scope
from wellworn.ingest.terms import name_hash
from wellworn.search.steps.cues import shape_of
from wellworn.search.steps.plans import RulePlanner
from wellworn.search.steps.subject import SUPPOSES, subject_of

SCOPE = Scope(tenant="acme", user="ada")
SUPPOSITION = "Would Ada likely enjoy a concert?"
ALL_OF_A_KIND = "Which instruments has Ada learned?"
TALKS = [
    ["Hi Bob!", "Hello Ada, how are you?", "Fine, Bob. The weather is nice."],
    ["Music calms me, most of all an orchestra with violins.", "That sounds lovely, Ada.", "It does, Bob."],
    ["Last year I took lessons for the cello.", "Was it hard, Ada?", "A little, Bob."],
    ["I like the train.", "So do I, Ada.", "Good to know, Bob."],
    ["Ada here, still enjoying the garden.", "How is the garden, Ada?", "Green, Bob."],
    ["Ada again: rain is likely.", "Likely indeed, Ada.", "Yes, Bob."],
    ["It is Ada! I have learned the news.", "What news have you learned, Ada?", "That you know, Bob."],
    ["Ada, as always.", "Which Ada?", "The one Ada whom you know, Bob."],
]


def told(**options: Any) -> Memory:  # the keywords of Memory.open
    memory = Memory.open(":memory:", **{"embedder": "static", **options})
    for number, turns in enumerate(TALKS):
        talk = memory.session(scope=SCOPE, session_id=f"talk {number}")
        for place, text in enumerate(turns):
            at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=30 * number)
            talk.add("Bob" if place % 2 else "Ada", text, at=at)
    return memory


def texts(memory: Memory, question: str, *, scope: Scope = SCOPE, **options: Any) -> list[str]:  # keywords of recall
    return [hit.entry.text for hit in memory.recall(question, scope=scope, **{"k": 24, **options}).hits]


@pytest.mark.parametrize(
    ("question", "subject"),
    [
        (ALL_OF_A_KIND, "instruments learned"),
        ("What have Ada's friends read?", "friends read"),
        ("What has Ada done?", "done"),
        ("Who is she?", ""),
    ],
)
def test_a_subject_is_what_is_left_without_names_and_stop_words(question: str, subject: str) -> None:
    assert subject_of(question, {name_hash("Ada")}) == subject


def test_a_supposition_is_left_without_the_words_of_supposing() -> None:
    question = "Would Ada probably still be considered religious?"
    assert subject_of(question, {name_hash("Ada")}, SUPPOSES.without) == "religious"


@pytest.mark.parametrize(
    ("question", "shape"),
    [
        (SUPPOSITION, "suppose"),
        ("What might Ada's degree be in?", "suppose"),
        ("What pets wouldn't bother Ada?", "suppose"),
        ("Could you tell me where Ada lives?", "plain"),
        ("I would like to know where Ada lives", "plain"),
        (ALL_OF_A_KIND, "gather"),
        ("What gifts did Ada bring to the party?", "plain"),  # one occasion
        ("What gifts does Ada like?", "gather"),
    ],
)
def test_suppositions_are_no_requests_and_one_occasion_is_not_all_times(question: str, shape: str) -> None:
    assert shape_of(question) == shape


def test_a_supposition_has_a_plan_of_its_own() -> None:
    plan = RulePlanner().plan(SUPPOSITION, "suppose", layers=["user"], depth=0)
    assert plan == (Aggregate(strategy="infer"),)


@pytest.mark.parametrize(("question", "wanted"), [(SUPPOSITION, TALKS[1][0]), (ALL_OF_A_KIND, TALKS[2][0])])
def test_what_the_person_tells_of_the_subject_comes_before_what_only_has_the_name(question: str, wanted: str) -> None:
    with told() as memory:
        assert wanted in texts(memory, question, k=5)
        assert wanted not in texts(memory, question, k=5, recursion="off")


@pytest.mark.parametrize("question", [SUPPOSITION, ALL_OF_A_KIND])
def test_its_factors_are_named_and_add_up(question: str) -> None:
    with told() as memory:
        hits = memory.recall(question, scope=SCOPE, k=24).hits
        assert {"subject", "teller", "ageless", "kept"} <= set(hits[0].factors)
        for hit in hits:
            assert sum(hit.factors.values()) == pytest.approx(hit.score)
            assert (hit.factors["teller"] > 0) == (hit.entry.speaker == "Ada")


def test_the_two_best_hits_for_the_question_as_asked_stay_first() -> None:
    with told() as memory:
        for question in (SUPPOSITION, "Would Ada enjoy the garden?", "Might Ada take the train?"):
            assert texts(memory, question)[:2] == texts(memory, question, recursion="off")[:2]


def test_a_single_entry_is_found_too() -> None:
    scope = Scope(tenant="acme", user="alone")
    with Memory.open(":memory:", embedder="static") as memory:
        memory.session(scope=scope, session_id="one").add("Ada", "I play the cello.")
        assert texts(memory, SUPPOSITION, scope=scope) == ["I play the cello."]
        assert texts(memory, ALL_OF_A_KIND, scope=scope) == ["I play the cello."]


@pytest.mark.parametrize("question", ["Would Eve likely enjoy a concert?", "Would it rain?"])
def test_of_nobody_who_speaks_here_nothing_is_supposed(question: str) -> None:
    with told() as memory:
        assert texts(memory, question) == texts(memory, question, recursion="off")


def test_without_vectors_suppositions_are_answered_as_by_plain_search() -> None:
    with told(embedder="none") as memory:
        assert texts(memory, SUPPOSITION) == texts(memory, SUPPOSITION, recursion="off")
        assert memory.recall(SUPPOSITION, scope=SCOPE).route == "recursive"


def test_what_may_not_be_seen_is_not_brought_in() -> None:
    with told() as memory:
        since = datetime(2026, 3, 15, tzinfo=UTC)
        for question in (SUPPOSITION, ALL_OF_A_KIND):
            hits = memory.recall(question, scope=SCOPE, k=24, since=since).hits
            assert hits
            assert all(hit.entry.at >= since for hit in hits)
