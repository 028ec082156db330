"""Recall by programs: summaries first, texts on demand, no further than the scope, within limits."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from wellworn import InvalidInput, Memory, MissingExtra, Models, NotFound, RecallResult, Recursion, ReplLimits, Scope
from wellworn.models import Meter, ScriptedModel
from wellworn.search.steps.reason import Library
from wellworn.search.steps.repl import Repl, program_in

from .test_boundaries import BANK, START
from .world import QUESTION, SCOPE, filled

pytest.importorskip("pydantic_monty", reason="the sandbox is an extra")


def programs(*codes: str, reason: str = "") -> ScriptedModel:
    written = [f"```python\n{code}\n```" for code in codes]
    return ScriptedModel({"repl": written, "repl_query": "yes", "reason": reason})


def library_of(memory: Memory, scope: Scope = SCOPE, as_of: datetime | None = None) -> Library:
    return Library(
        searcher=memory.engine.searcher.under(memory.engine.profile, None, memory.engine.scrubbing),
        store=memory.engine.store,
        scope=scope,
        moment=as_of or datetime.now(UTC),
    )


def asked(memory: Memory, model: ScriptedModel, *, limits: ReplLimits | None = None, **chosen: Any) -> RecallResult:
    meter = Meter(model, memory.engine.store, tenant="acme")
    return Repl(library_of(memory, **chosen), meter, meter, limits or ReplLimits()).recall(QUESTION)


def test_a_program_searches_reads_asks_and_ends() -> None:
    model = programs(
        "found = search_chunks('who directed the film', limit=3)\nprint([one['title'] for one in found])",
        "texts = [read_chunk(one) for one in found]\n"
        "answers = llm_query_batched([f'Is it in here? {text}' for text in texts])\n"
        "print(answers, llm_query('and now?'))",
        "FINAL('Stefan Kingsley', chunk_ids=[found[1]['id'], found[0]['id'], 'made up'], confidence=0.9)\nprint('never')",
    )
    with filled() as memory:
        result = asked(memory, model)
        assert (result.content, result.confidence, result.iterations_used, result.problem) == (
            "Stefan Kingsley",
            0.9,
            3,
            "",
        )
        assert len(result.chunk_ids) == 1, "what was never seen, or has no word of it, cannot be cited"
        second, third = [r for r in model.requests if r.purpose == "repl"][1:]
        assert "Overdrive Maximus" in second.messages[-1].text
        assert "['yes', 'yes', 'yes'] yes" in third.messages[-1].text
        assert len([r for r in model.requests if r.purpose == "repl_query"]) == 4


def test_tags_and_links_are_followed() -> None:
    with filled() as memory:
        cause, effect = (memory.remember(text, scope=SCOPE, tags=["alarm"])[0] for text in ("Rain came.", "It rang."))
        memory.link(cause, effect, "enables", scope=SCOPE)
        model = programs(
            "tagged = list_chunks_by_tag('alarm')\nlinked = get_linked_chunks(tagged[1])\n"
            "FINAL(linked[0]['preview'] + linked[0]['link'] + linked[0]['direction'], chunk_ids=[linked[0]['id']])"
        )
        result = asked(memory, model)
        assert result.content == "Rain came.enablesfrom"
        assert result.chunk_ids == [cause]


def test_a_mistake_is_told_and_may_be_mended() -> None:
    model = programs(
        "print(undefined)", "read_chunk('nowhere')", "x = (", "FINAL(read_chunk(search_chunks('rye bread')[0]))"
    )
    with filled() as memory:
        assert asked(memory, model).content == "The bakery opens at six and sells rye bread."
        told = [request.messages[-1].text for request in model.requests[1:]]
        assert "NameError" in told[0]
        assert "no chunk 'nowhere'" in told[1]
        assert "<error>" in told[2]


@pytest.mark.parametrize("wrong", ["'Quentin Zorbas'", "'Quentin Zorbas', chunk_ids=[found[0]['id']]", "'?'"])
def test_an_answer_without_a_word_of_its_chunks_is_refused_and_may_be_mended(wrong: str) -> None:
    search = "found = search_chunks('rye bread')\nread_chunk(found[0])\n"
    with filled() as memory:
        refused = asked(memory, programs(*[f"{search}FINAL({wrong})"] * 8))
        assert "Zorbas" not in (refused.content or "")
        assert refused.problem
        model = programs(f"{search}FINAL({wrong})", "FINAL('Rye bread', chunk_ids=[found[0]['id']])")
        assert asked(memory, model).content == "Rye bread"
        assert "no word of a chunk" in model.requests[1].messages[-1].text


def test_nothing_is_logged_for_learning() -> None:
    with filled() as memory:
        quiet, logged = library_of(memory).search("film", 3), memory.recall("film", scope=SCOPE)
        assert memory.outcome(logged.id, cited=[0], scope=SCOPE)
        with pytest.raises(NotFound):
            memory.outcome(quiet.id, cited=[0], scope=SCOPE)


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("```python\nx = 1\n```", "x = 1\n"),
        ("<think>```\nno\n```</think>Sure:\n```repl\nx = 1\n```\nDone.", "x = 1\n"),
        ("x = 1", "x = 1"),
        ("```\nx = 1", "x = 1"),
        ("```py\na\n```\nand\n```py\nb\n```", "a\n\nb\n"),
    ],
    ids=repr,
)
def test_the_program_is_found_in_the_answer(said: str, code: str) -> None:
    assert program_in(said) == code


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        (ReplLimits(calls=3), "3 actions"),
        (ReplLimits(model_calls=3), "3 model calls"),
        (ReplLimits(tokens=4000), "4000 tokens"),
        (ReplLimits(iterations=2), "2 rounds"),
    ],
    ids=str,
)
def test_a_limit_leaves_what_was_read_and_says_so(limits: ReplLimits, why: str) -> None:
    code = "t = read_chunk(search_chunks('rye bread')[0])\nllm_query('x' * 400)"
    with filled() as memory:
        result = asked(memory, programs(*[code] * 40), limits=limits)
        assert why in result.problem
        assert memory.get(result.chunk_ids[0], scope=SCOPE).title == "Bakery"
        assert (result.content, result.confidence) == (None, 0.0)


def test_a_slow_model_ends_at_the_deadline() -> None:
    model = ScriptedModel("```\nsearch_chunks('x')\n```", delay_s=5.0)
    with filled() as memory:
        result = asked(memory, model, limits=ReplLimits(timeout_s=1.6, program_s=0.2))
        assert result.problem
        assert (result.content, result.chunk_ids) == (None, [])


def test_it_is_off_unless_asked_for_and_reason_uses_it_when_on() -> None:
    model = programs(
        "FINAL('It was Stefan.', chunk_ids=[search_chunks('directed by Stefan Kingsley')[0]['id']])",
        reason='{"conclusion": "Stefan Kingsley", "cites": [0, 1]}',
    )
    with filled(recursion=Recursion(models=Models(root=model))) as memory:
        assert memory.reason(QUESTION, scope=SCOPE).explored is None
    with filled(recursion=Recursion(models=Models(root=model, repl=ReplLimits()))) as memory:
        found = memory.reason(QUESTION, scope=SCOPE)
        assert found.conclusion == "It was Stefan."
        assert found.explored is not None
        assert list(found.cited) == found.explored.chunk_ids
        assert set(found.cited) <= {step.entry.id for step in found.path}
        again = memory.reason(QUESTION, scope=SCOPE)  # no program is left: one call draws the conclusion
        assert again.conclusion == "Stefan Kingsley"
        assert again.explored is not None
        assert again.explored.problem


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_monty", None)
    with filled() as memory, pytest.raises(MissingExtra, match=r"wellworn\[repl\]"):
        asked(memory, programs("FINAL('x')"))
    with pytest.raises(MissingExtra, match=r"wellworn\[repl\]"):
        Models(root=programs(), repl=ReplLimits())


@pytest.mark.parametrize("wrong", [{"iterations": 0}, {"timeout_s": 1.0}, {"memory_bytes": True}], ids=str)
def test_wrong_limits_are_told(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="repl"):
        ReplLimits(**wrong)


@pytest.mark.parametrize("days", [0, 5, 15, 16, 18, 100])
def test_no_way_leads_past_scope_and_time(days: int) -> None:
    scope = Scope(tenant="acme", user="ada", team="core")
    library = library_of(BANK, scope, START + timedelta(days=days))
    everywhere = [
        entry
        for tenant in ("acme", "other")
        for user in ("ada", "bob")
        for entry in BANK.entries(scope=Scope(tenant=tenant, user=user, team="core"), limit=500)
    ]
    seen = {entry.id for entry in everywhere if library.read(entry.id) is not None}
    assert len(seen) == library.search("nest film", 1).searched
    assert {hit.entry.id for hit in library.search("nest film", 200).hits} <= seen
    for tag in ("red", "blue"):
        tagged = {entry.id for entry in library.tagged(tag, 500)}
        assert tagged == {entry.id for entry in everywhere if entry.id in seen and tag in entry.tags}
    assert {entry.id for id in seen for entry, _ in library.linked(id)} <= seen
