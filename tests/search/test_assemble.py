"""Contexts within a budget: what is chosen, in which order, what is left out, and that outcomes find their way back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellworn import InvalidInput, Memory, Recall, Scope
from wellworn.core.wellformed import count_tokens
from wellworn.search.assemble import assemble

SCOPE = Scope(tenant="acme", user="ada", team="core")
WORDS = ["kestrel", "osprey", "harbour", "orbit", "granite", "velvet", "signal", "meadow", "copper", "lantern"]
QUESTION = "kestrel harbour orbit signal"

text = st.lists(st.sampled_from(WORDS), min_size=1, max_size=30).map(" ".join)


def recalled(texts: list[str], **options: Any) -> Recall:  # the keywords of recall
    with Memory.open(":memory:", embedder=None) as memory:
        memory.remember_many(texts, scope=SCOPE)
        return memory.recall(QUESTION, scope=SCOPE, k=40, **options)


@given(texts=st.lists(text, min_size=1, max_size=12), budgets=st.tuples(st.integers(0, 400), st.integers(0, 400)))
def test_the_budget_holds_more_budget_loses_nothing_and_equal_inputs_give_equal_contexts(
    texts: list[str], budgets: tuple[int, int]
) -> None:
    found = recalled(texts)
    less, more = (assemble(QUESTION, [found], max_tokens=budget) for budget in sorted(budgets))
    for context in (less, more):
        assert context.tokens == count_tokens(context.text) <= context.max_tokens
        assert len(context.hits) + len(context.left_out) == len(found.hits)
        assert context.text.count("\n[") == len(context.hits)
    assert {hit.entry.id for hit in less.hits} <= {hit.entry.id for hit in more.hits}
    again = assemble(QUESTION, [found], max_tokens=more.max_tokens)
    assert again == more


def test_what_adds_is_chosen_before_more_of_the_same() -> None:
    texts = [f"The kestrel harbour signal, kestrel harbour signal, {n}" for n in ("granite", "velvet", "meadow")]
    found = recalled([*texts, "An orbit, which is a long way round, was drawn on the wall of the old lantern room."])
    (best, *_) = found.hits
    assert "kestrel" in best.entry.text
    room = 90
    context = assemble(QUESTION, [found], max_tokens=room)
    chosen = [hit.entry.text for hit in context.hits]
    assert any("orbit" in one for one in chosen[:2])
    assert "orbit" not in found.hits[1].entry.text  # the best two by score would not have had it


def test_what_says_nothing_new_is_left_out_and_what_does_not_fit_too() -> None:
    found = recalled(["kestrel harbour", "kestrel  harbour kestrel", "orbit signal granite velvet meadow copper"])
    whole = assemble(QUESTION, [found], max_tokens=1000)
    assert [left.why for left in whole.left_out] == ["nothing new"]
    none = assemble(QUESTION, [found], max_tokens=5)
    assert (none.text, none.hits, none.tokens) == ("", (), 0)
    assert {left.why for left in none.left_out} == {"budget", "nothing new"}


def test_turns_of_one_talk_stand_together_in_their_order() -> None:
    with Memory.open(":memory:", embedder=None) as memory:
        session = memory.session(scope=SCOPE, session_id="s")
        for said in ("the osprey granite", "the orbit signal of the kestrel harbour", "velvet meadow orbit"):
            session.add("user", said)
        memory.remember("copper lantern kestrel", scope=SCOPE)
        context = memory.assemble(QUESTION, scope=SCOPE)
        turns = [hit.entry.position or 0 for hit in context.hits if hit.entry.kind == "episode"]
        assert turns == sorted(turns)
        places = [place for place, hit in enumerate(context.hits) if hit.entry.kind == "episode"]
        assert places == list(range(places[0], places[0] + len(places)))


def test_what_is_outdated_comes_after_what_replaced_it() -> None:
    with Memory.open(":memory:", background=False) as memory:
        memory.session("a", scope=SCOPE).add("user", "I live in Oslo.", at="2026-01-01")
        memory.session("b", scope=SCOPE).add("user", "I moved to Bergen last week.", at="2026-02-14")
        for room, texts in (
            (65, ["I moved to Bergen last week."]),
            (300, ["I moved to Bergen last week.", "I live in Oslo."]),
        ):
            context = memory.assemble("Where do I live?", max_tokens=room, scope=SCOPE)
            assert [hit.text for hit in context.hits] == texts
        before = memory.assemble("Where did I live before?", max_tokens=65, scope=SCOPE)
        assert [hit.text for hit in before.hits] == ["I live in Oslo."]


def test_a_complex_question_is_assembled_in_several_steps() -> None:
    with Memory.open(":memory:", embedder=None) as memory:
        memory.remember("Overdrive Maximus was shot in Leland in 1986.", scope=SCOPE, title="Leland")
        memory.remember("Stefan Kingsley directed Overdrive Maximus.", scope=SCOPE, title="Overdrive Maximus")
        context = memory.assemble("Who directed the film that was shot in Leland?", scope=SCOPE)
        (recall,) = context.recalls
        assert recall.route == "recursive"
        assert {hit.entry.title for hit in context.hits} == {"Leland", "Overdrive Maximus"}
        plain = memory.assemble("Who directed the film that was shot in Leland?", scope=SCOPE, recursion="off")
        assert plain.recalls[0].route == "hybrid"


def test_citations_of_a_context_are_outcomes_of_its_recalls() -> None:
    with Memory.open(":memory:", embedder=None) as memory:
        memory.remember_many(["kestrel harbour", "orbit signal", "copper lantern"], scope=SCOPE)
        other = memory.recall("copper", scope=SCOPE)
        context = memory.assemble(QUESTION, scope=SCOPE, sources=[other])
        assert "copper lantern" in [hit.entry.text for hit in context.hits]
        number = next(n for n, hit in enumerate(context.hits) if hit.entry.text == "orbit signal")
        places = context.cited([number])
        assert list(places) == [recall.id for recall in context.recalls]
        for recall_id, cited in places.items():
            assert memory.outcome(recall_id, cited=cited)
        entry = next(entry for entry in memory.entries(scope=SCOPE) if entry.text == "orbit signal")
        assert entry.usage_count >= 1
        for bad in (-1, 99, True, "0"):
            with pytest.raises(InvalidInput):
                context.cited([bad])  # type: ignore[list-item]


@pytest.mark.parametrize("budget", [-1, True, 1.5, "x"])
def test_a_bad_budget_is_refused_before_anything_is_asked(budget: Any) -> None:
    with Memory.open(":memory:", embedder=None) as memory, pytest.raises(InvalidInput, match="max_tokens"):
        memory.assemble("x", scope=SCOPE, max_tokens=budget)


@pytest.mark.parametrize("embedder", [None, "none"])
def test_everything_works_without_an_embedder(embedder: str | None) -> None:
    question = "Who directed the film that was shot in Leland?"
    with Memory.open(":memory:", embedder=embedder) as memory:
        memory.remember("Overdrive Maximus was shot in Leland in 1986.", scope=SCOPE, title="Leland", tags=["film"])
        memory.remember("Stefan Kingsley directed Overdrive Maximus.", scope=SCOPE, title="Overdrive Maximus")
        memory.remember("The bakery opens at six.", scope=SCOPE)
        assert memory.recall("bakery", scope=SCOPE).hits[0].entry.text.startswith("The bakery")
        found = memory.recall(question, scope=SCOPE, k=2)
        assert found.route == "recursive"
        assert {hit.entry.title for hit in found} == {"Leland", "Overdrive Maximus"}
        assert found.cost.embedded_texts == 0
        assert "Kingsley" in memory.reason(question, scope=SCOPE).conclusion
        assert "Kingsley" in memory.assemble(question, scope=SCOPE).text
        assert memory.recall("film", scope=SCOPE, tags="film").hits[0].entry.title == "Leland"
        assert memory.outcome(found.id, cited=[0, 1])
        assert memory.learning.practise(scope=SCOPE) >= 1
        assert memory.admin.stats(scope=SCOPE).vectors == 0
