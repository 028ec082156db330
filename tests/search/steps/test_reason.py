"""Reasoning: the chain of evidence, without a model."""

from __future__ import annotations

from typing import Any

import pytest

from wellworn import Memory, Models, Recursion, Scope
from wellworn.core.fence import NOTHING
from wellworn.models import ScriptedModel

from .world import QUESTION, SCOPE, filled


def test_the_path_goes_from_the_best_hit_over_what_it_names() -> None:
    with filled() as memory:
        found = memory.reason(QUESTION, scope=SCOPE)
        steps = {step.entry.title: step for step in found.path if step.operation != "synthesize"}
        assert next(iter(steps)) == "Leland"
        assert steps["Leland"].operation == "read"
        assert "Leland" in steps["Overdrive Maximus"].reasoning
        assert steps["Overdrive Maximus"].operation == "bridge"
        assert found.path[-1].operation == "synthesize"
        assert "Stefan Kingsley" in found.conclusion
        assert 0 < found.confidence <= 1
        assert found.recall.route == "recursive"


def test_links_are_followed_several_hops_and_no_further_than_the_scope_sees() -> None:
    other = Scope(tenant="acme", user="bob")
    with Memory.open(":memory:", embedder="hash") as memory:
        texts = ["The alarm rang at noon.", "A sensor was wet.", "Rain came through the roof.", "A tile was loose."]
        ids = [memory.remember(text, scope=SCOPE)[0] for text in texts]
        for cause, effect in zip(ids[1:], ids, strict=False):
            memory.link(cause, effect, "enables", scope=SCOPE, confidence=0.5)
        memory.remember("The alarm of Bob rang at noon.", scope=other)
        found = memory.reason("Why did the alarm ring at noon?", scope=SCOPE, k=1)
        walked = [step for step in found.path if step.operation == "link"]
        assert [step.entry.text for step in walked] == texts[1:]
        assert "hop 3" in walked[-1].reasoning
        assert found.confidence <= 0.5, "no surer than its least sure link"
        assert all(step.entry.partition.layer_id != "bob" for step in found.path)


@pytest.mark.parametrize("query", ["Who won the world cup in 1998?", "How tall is Mount Everest?", "Boiling nitrogen"])
@pytest.mark.parametrize("remembered", [[], ["Ada lives in Oslo.", "The tests run with make check."]])
def test_nothing_is_concluded_from_strangers(query: str, remembered: list[str]) -> None:
    with Memory.open(":memory:", llm=ScriptedModel("{}")) as memory:
        memory.remember_many(remembered, scope=SCOPE)
        found = memory.reason(query, scope=SCOPE)
        assert (found.conclusion, found.path, found.confidence, found.model) == (NOTHING, (), 0.0, "")


def moved(**options: Any) -> Memory:
    memory = Memory.open(":memory:", background=False, **options)
    memory.session("a", scope=SCOPE).add("user", "I live in Oslo.", at="2026-01-01")
    memory.session("b", scope=SCOPE).add("user", "I moved to Bergen last week.", at="2026-02-14")
    return memory


@pytest.mark.parametrize(
    ("question", "conclusion"),
    [
        ("Where do I live?", "I moved to Bergen last week."),
        ("Do I still live in Oslo?", "I moved to Bergen last week."),
        ("Where did I live before?", "(outdated since 2026-02-14) I live in Oslo."),
    ],
)
def test_what_is_outdated_is_concluded_from_only_when_the_past_is_asked_for(question: str, conclusion: str) -> None:
    with moved() as memory:
        assert memory.reason(question, scope=SCOPE).conclusion == conclusion


def test_a_model_is_told_what_is_outdated() -> None:
    model = ScriptedModel('{"conclusion": "You live in Bergen.", "cites": [0]}')
    with moved(recursion=Recursion(models=Models(root=model))) as memory:
        memory.reason("Where do I live?", scope=SCOPE)
        assert "(outdated since 2026-02-14) (episode, 2026-01-01) I live in Oslo." in str(model.requests[0])


def test_what_is_outdated_does_not_stand_for_what_replaced_it() -> None:
    said = {
        "a": ("2025-01-01", "I live in Paris."),
        "b": ("2025-03-01", "I drink green tea in the morning."),
        "c": ("2025-06-01", "I moved to Oslo, I live in Oslo now."),
    }
    with Memory(":memory:") as memory:
        ada = memory.for_user("ada")
        for name, (day, text) in said.items():
            ada.session(name).add("user", text, at=day)
        found = ada.reason("Which green tea do I drink in the morning, and do I live in Paris?")
        assert "green tea" in found.conclusion
        assert "Oslo" in found.conclusion
        assert "Paris" not in found.conclusion
