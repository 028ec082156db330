"""Compare returns a table, summarize a summary by a model or the sentences themselves, combine the entries."""

from __future__ import annotations

import pytest

from wellworn import Aggregate, Memory, Models, Recursion, RecursiveCall
from wellworn.models import ScriptedModel

from .test_executor import Fixed, planned
from .world import QUESTION, SCOPE, filled

COMPARED = "Compare the history of the bakery and the parking"


def test_compare_is_a_table_with_a_row_for_each_side() -> None:
    sides = (RecursiveCall(sub_query="bakery bread"), RecursiveCall(sub_query="parking | Sundays"))
    with planned(*sides, Aggregate(strategy="compare")) as memory:
        lines = memory.recall(COMPARED, scope=SCOPE, k=6).digest.splitlines()
        assert lines[:2] == ["| side | what is known |", "|---|---|"]
        assert "The bakery opens at six and sells rye bread." in lines[2]
        assert lines[3].startswith("| parking \\| Sundays |")
        assert "Parking is free on Sundays." in lines[3]
        assert len(lines) == 4


def test_a_summary_without_a_model_is_the_sentences_themselves() -> None:
    with planned(Aggregate(strategy="summarize")) as memory:
        found = memory.recall(QUESTION, scope=SCOPE, k=3)
        lines = found.digest.splitlines()
        assert lines[0] == "The film Overdrive Maximus was shot in Leland in 1986.", "not the sentence before it"
        assert all(any(line in hit.entry.text for hit in found) for line in lines)


def summarized(reply: str | Exception) -> tuple[str, int]:
    plan = '{"actions": [{"action": "aggregate", "strategy": "summarize"}]}'
    model = ScriptedModel({"plan": plan, "summarize": reply})
    with filled(recursion=Recursion(models=Models(root=model), mode="always")) as memory:
        found = memory.recall(QUESTION, scope=SCOPE, k=3)
        return found.digest, found.cost.model_calls


def test_a_summary_is_a_models_if_it_is_in_the_words_of_the_hits() -> None:
    assert summarized("The film was shot in Leland.") == ("The film was shot in Leland.", 2)


@pytest.mark.parametrize("reply", ["", "Nobody knows. The film was shot in Leland.", RuntimeError("gone")], ids=repr)
def test_a_summary_that_rests_on_nothing_is_not_believed(reply: str | Exception) -> None:
    assert "The film Overdrive Maximus was shot in Leland in 1986." in summarized(reply)[0]


def test_a_summary_leaves_what_is_outdated_out_unless_the_past_is_asked_for() -> None:
    plan = Recursion(planner=Fixed(Aggregate(strategy="summarize")), mode="always")
    with Memory.open(":memory:", recursion=plan, background=False) as memory:
        for session, text, at in (("a", "I live in Oslo.", "2026-01-01"), ("b", "I moved to Bergen.", "2026-02-14")):
            memory.session(session, scope=SCOPE).add("user", text, at=at)
        assert memory.recall("Where do I live?", scope=SCOPE).digest == "I moved to Bergen."
        assert "(outdated since 2026-02-14) I live in Oslo." in memory.recall("Where did I live?", scope=SCOPE).digest
