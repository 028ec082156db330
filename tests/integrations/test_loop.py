"""Memory around any agent loop: what the model is shown, what is stored and learned, what happens when memory fails."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from integrations.world import SYSTEM, HandClock
from wellworn import AsyncMemory, InvalidInput, Memory, Scope
from wellworn.integrations.loop import MemoryMiddleware, MiddlewareContext, create_memory_middleware
from wellworn.reflection import ReflectionSettings

ADA = Scope(tenant="acme", user="ada")
BEN = Scope(tenant="acme", user="ben")
QUESTION = "Where does Ada live?"


@pytest.fixture
def memory(clock: HandClock) -> Iterator[Memory]:
    with Memory(":memory:", background=False, clock=clock) as opened:
        yield opened


@pytest.fixture
def oslo(memory: Memory) -> Memory:
    memory.remember("Ada lives in Oslo.", scope=ADA)
    return memory


def asked(text: str, *, history: str = "", turn: int = 0) -> MiddlewareContext:
    return MiddlewareContext(user_input=text, current_system_prompt=SYSTEM, conversation_history=history, turn=turn)


def made(memory: Memory, **settings: Any) -> MemoryMiddleware:
    return create_memory_middleware(memory, **{"scope": ADA, "session_id": "s1", **settings})


def turns(memory: Memory, session_id: str = "s1") -> list[tuple[str, str]]:
    return [(turn.role, turn.text) for turn in memory.session(session_id, scope=ADA).turns()]


def answered(middleware: MemoryMiddleware, question: str, looks_for: str) -> tuple[str, str]:
    """The prompt, and the answer of a model that cites what holds the word it looks for."""
    prompt = middleware.enrich_system_prompt(asked(question))
    entries = re.findall(r'<entry place="(\d+)"[^>]*>(.*?)</entry>', prompt)
    used = [place for place, text in entries if looks_for in text]
    marker = f" [{', '.join(used)}]" if used else " [NO_CITE]" if entries else ""
    answer = f"About {looks_for}: noted.{marker}"
    plain = middleware.plain(question, answer)
    middleware.after_response(question, answer)
    return prompt, plain


def test_an_agent_remembers_cites_and_learns_over_sessions(memory: Memory, clock: HandClock) -> None:
    monday = made(memory, session_id="monday")
    assert answered(monday, "My bicycle is a green Brompton.", "bicycle") == (SYSTEM, "About bicycle: noted.")
    answered(monday, "My sister Mia is a nurse in Bergen.", "nurse")
    clock.forward(60 * 24 * 4)
    friday = made(memory, session_id="friday")
    prompt, answer = answered(friday, "Which bicycle do I have?", "Brompton")
    assert answer == "About Brompton: noted."
    assert prompt.startswith(f"{SYSTEM}\n\n{friday.rule}\n\n<memory-context>\n")
    assert "ada: My bicycle is a green Brompton." in prompt
    assert 'topic="conversation"' in prompt
    assert 'age="4d"' in prompt
    answered(friday, "Where does Mia work?", "Bergen")
    assert turns(memory, "friday")[:2] == [
        ("user", "Which bicycle do I have?"),
        ("assistant", "About Brompton: noted."),
    ]
    assert memory.learning.status(scope=ADA).outcomes >= 2
    brompton = next(one for one in memory.entries(scope=ADA, limit=50) if "green Brompton" in one.text)
    assert brompton.usage_count == 1
    assert not monday.faults
    assert not friday.faults


def test_later_turns_of_a_question_see_the_same_prompt(oslo: Memory, clock: HandClock) -> None:
    middleware = made(oslo)
    first = middleware.enrich_system_prompt(asked(QUESTION, turn=1))
    oslo.remember("Ada lives in Oslo, in the north of it.", scope=ADA)
    clock.forward(1)
    assert middleware.enrich_system_prompt(asked(QUESTION, turn=2)) == first
    assert middleware.enrich_system_prompt(asked(QUESTION, turn=1)) != first  # asked again


@pytest.mark.parametrize(("history", "again"), [("user: hi\nassistant: hello", False), ("user: this one", True)])
def test_a_session_is_left_out_only_where_its_first_turn_is_seen(memory: Memory, history: str, again: bool) -> None:
    middleware = made(memory)
    memory.session("s1", scope=ADA).add_turns([("user", "hi"), ("user", "I live in Oslo, at the harbour.")])
    prompt = middleware.enrich_system_prompt(asked("Where do I live?", history=history))
    assert ("harbour" in prompt) == again


def test_without_input_the_end_of_the_history_is_the_query(oslo: Memory) -> None:
    middleware = made(oslo)
    assert "Oslo" in middleware.enrich_system_prompt(asked(" ", history=f"user: {QUESTION}"))
    assert middleware.enrich_system_prompt(asked(" ")) == SYSTEM
    assert not middleware.faults


def test_settings_decide_how_many_and_which_are_shown(memory: Memory) -> None:
    memory.remember_many([f"Ada's bicycle number {n} is green." for n in range(9)], scope=ADA)
    question = asked("Which bicycle does Ada have?")
    assert made(memory).enrich_system_prompt(question).count("<entry ") == 5
    assert made(memory, max_results=2).enrich_system_prompt(question).count("<entry ") == 2
    natural = made(memory, format="natural", tag="notes").enrich_system_prompt(question)
    assert "\n<notes>\n[0] (note, just now, relevance 0." in natural
    assert made(memory, scope=BEN).enrich_system_prompt(question) == SYSTEM
    bound = create_memory_middleware(memory.for_scope(ADA))
    assert bound.enrich_system_prompt(question).count("<entry ") == 5


def test_a_recall_without_an_answer_shows_no_strangers_and_says_so(oslo: Memory) -> None:
    strange = asked("What is the boiling point of tungsten?")
    for settings in ({}, {"min_score": 1e6, "min_confidence": 0.01}):
        middleware = made(oslo, **settings)
        prompt = middleware.enrich_system_prompt(strange)
        assert prompt == f"{SYSTEM}\n\n<memory-context>Nothing relevant is remembered.</memory-context>"
        middleware.after_response(strange.user_input, "I do not know. [NO_CITE]")
    assert oslo.learning.status(scope=ADA).outcomes == 0
    assert "Oslo" in made(oslo, min_confidence=0).enrich_system_prompt(strange)
    assert made(oslo, min_confidence=0, min_score=1e6).enrich_system_prompt(strange) == SYSTEM
    assert made(oslo, scope=BEN).enrich_system_prompt(strange) == SYSTEM  # nothing was ever remembered


# -- what is stored and learned ----------------------------------------------------------------------------------


def test_citations_teach_once_and_without_storing_too(oslo: Memory) -> None:
    middleware = made(oslo, store_responses=False)
    middleware.enrich_system_prompt(asked(QUESTION))
    for _ in range(2):
        middleware.after_response(QUESTION, "In Oslo. [0]")
    assert turns(oslo) == []
    assert oslo.entries(scope=ADA)[0].usage_count == 1


def test_a_question_asked_twice_at_once_has_two_answers(oslo: Memory) -> None:
    middleware = made(oslo)
    for _ in range(2):
        middleware.enrich_system_prompt(asked(QUESTION))
    for _ in range(2):
        assert middleware.plain(QUESTION, "In Oslo. [0]") == "In Oslo."
        middleware.after_response(QUESTION, "In Oslo. [0]")
    assert turns(oslo) == [("user", QUESTION), ("assistant", "In Oslo.")] * 2
    assert (oslo.learning.status(scope=ADA).outcomes, middleware.recalled(QUESTION)) == (2, None)


@pytest.mark.parametrize("answer", ["In Oslo.", "Use arr[0]", "In Oslo. [0, 7]"])
def test_an_answer_without_a_valid_citation_teaches_nothing(oslo: Memory, answer: str) -> None:
    middleware = made(oslo)
    middleware.enrich_system_prompt(asked(QUESTION))
    middleware.after_response(QUESTION, answer)
    assert oslo.learning.status(scope=ADA).outcomes == 0
    assert not middleware.faults


def test_silence_about_a_memory_that_did_not_fit_teaches_nothing(memory: Memory) -> None:
    memory.remember_many([f"Ada's bicycle number {n} is {'very ' * 20}green." for n in range(5)], scope=ADA)
    middleware = made(memory, max_chars=400)
    assert 0 < middleware.enrich_system_prompt(asked("Which bicycle?")).count("<entry ") < 5
    middleware.after_response("Which bicycle?", "The green one. [0]")
    assert memory.learning.status(scope=ADA).outcomes == 0
    assert turns(memory)[-1] == ("assistant", "The green one.")


def test_without_citations_nothing_is_asked_for_numbered_or_stripped(oslo: Memory) -> None:
    middleware = made(oslo, citations=False)
    prompt = middleware.enrich_system_prompt(asked(QUESTION))
    assert "NO_CITE" not in prompt
    assert '<entry topic="note"' in prompt
    middleware.after_response(QUESTION, "In Oslo. [0]")
    assert turns(oslo)[-1] == ("assistant", "In Oslo. [0]")
    assert oslo.learning.status(scope=ADA).outcomes == 0


@pytest.mark.parametrize("learning", ["on", "off"])
def test_a_recall_that_is_not_known_any_more_is_no_fault(learning: Any) -> None:
    with Memory(":memory:", learning=learning, background=False) as memory:
        memory.remember("Ada lives in Oslo.", scope=ADA)
        middleware = made(memory)
        middleware.enrich_system_prompt(asked(QUESTION))
        memory.forget(scope=ADA, everything=True)
        middleware.after_response(QUESTION, "In Oslo. [0]")
        assert not middleware.faults
        assert len(turns(memory)) == 2


# -- reflection --------------------------------------------------------------------------------------------------


def test_the_memorys_own_settings_start_reflection(clock: HandClock) -> None:
    settings = ReflectionSettings(every_turns=4)
    with Memory(":memory:", background=False, reflection=settings, clock=clock) as memory:
        middleware = made(memory)
        for n in range(2):
            assert memory.jobs.list(scope=ADA) == []
            middleware.after_response(f"I live in Oslo, at number {n}.", "Noted.")
        assert [job.kind for job in memory.jobs.list(scope=ADA)] == ["reflect"]
        for n in range(5):  # a threshold of its own, also with one middleware for each request
            own = made(memory, auto_summarize_threshold=4, scope=BEN)
            own.after_response(f"I live in Oslo, at number {n}.", "Noted.")
        assert len([job for job in memory.jobs.list(scope=BEN) if job.partition == BEN.home()]) == 2


def test_ending_the_session_starts_it_and_an_empty_session_has_no_end(memory: Memory) -> None:
    middleware = made(memory)
    middleware.end_session()
    assert memory.jobs.list(scope=ADA) == []
    middleware.after_response("I live in Oslo.", "Noted.")
    middleware.end_session()
    assert len(memory.jobs.list(scope=ADA)) == 1
    assert not middleware.faults


# -- when memory fails -------------------------------------------------------------------------------------------


class Failing:
    """An embedder that can be broken, and whose error quotes what nobody may log."""

    def __init__(self) -> None:
        self.broken = False
        self.threads: set[int] = set()

    def __call__(self, given: list[str]) -> list[list[float]]:
        self.threads.add(threading.get_ident())
        if self.broken:
            raise RuntimeError(f"401 for key sk-secret with {given}")
        return [[1.0, float(len(text)), 0.5] for text in given]


def test_a_failing_embedder_is_logged_without_text_or_secret(caplog: pytest.LogCaptureFixture) -> None:
    embedder = Failing()
    with Memory(":memory:", embedder=embedder, background=False) as memory:
        middleware = made(memory)
        middleware.after_response("I live in Oslo.", "Noted.")
        middleware.enrich_system_prompt(asked(" ", history="Where in Oslo?"))
        embedder.broken = True
        middleware.enrich_system_prompt(asked(" ", history="Where then?"))  # by words alone
        middleware.after_response(" ", "In Oslo. [0]")  # cites a recall that was not shown for this question
        assert middleware.faults == {"store": 1}
        assert memory.learning.status(scope=ADA).outcomes == 0
        said = " ".join(record.getMessage() + str(record.exc_info) for record in caplog.records)
        assert "EmbeddingFailed" in said
        assert "Oslo" not in said
        assert "secret" not in said
        embedder.broken = False
        assert "<entry" in middleware.enrich_system_prompt(asked("Where in Oslo?"))


def test_turns_that_cannot_be_stored_cost_no_citation_and_the_other_way_round(
    oslo: Memory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    middleware = made(oslo)
    for verb, step in (("session", "store"), ("outcome", "learn")):
        middleware.enrich_system_prompt(asked(QUESTION))
        with monkeypatch.context() as patch:
            patch.setattr(Memory, verb, lambda *_, **__: 1 / 0)
            middleware.after_response(QUESTION, "In Oslo. [0]")
        assert middleware.faults[step] == 1
    assert middleware.faults.total() == 2
    assert oslo.learning.status(scope=ADA).outcomes == 1
    assert turns(oslo) == 2 * [("user", QUESTION), ("assistant", "In Oslo.")]  # the first were stored with the second
    oslo.close()
    assert middleware.enrich_system_prompt(asked(QUESTION)) == SYSTEM
    middleware.end_session()
    assert middleware.faults == {"store": 1, "learn": 1, "recall": 1, "reflect": 1}
    assert caplog.text.count("StoreClosed") == 2


WRONG = {
    "scope": Scope(tenant="acme"),
    "max_results": 0,
    "min_score": "high",
    "format": "yaml",
    "tag": "x><y",
    "max_chars": -1,
    "store_topic": " ",
    "store_responses": 1,
    "session_id": "",
    "auto_summarize_threshold": 0,
    "citations": "yes",
}


def test_what_is_wrong_is_an_error_at_once(memory: Memory) -> None:
    for name, value in WRONG.items():
        with pytest.raises(InvalidInput) as caught:
            made(memory, **{name: value})
        assert caught.value.field == name
    with pytest.raises(InvalidInput, match="AsyncMemory"):
        create_memory_middleware(AsyncMemory(memory), scope=ADA)  # type: ignore[arg-type]
    middleware = made(memory)
    with pytest.raises(InvalidInput, match="response: must be text"):
        middleware.after_response("Hi.", ["Hello."])  # type: ignore[arg-type]
    middleware.after_response(["Hi."], "Hello.")  # type: ignore[arg-type]  # as some frameworks give it
    assert middleware.faults == {"store": 1}


# -- threads and event loops -------------------------------------------------------------------------------------


async def test_nothing_runs_on_the_event_loop() -> None:
    embedder = Failing()
    with Memory(":memory:", embedder=embedder, background=False) as memory:
        embedder.threads.clear()
        middleware = made(memory)
        await middleware.aafter_response("I live in Oslo.", "Noted.")
        assert "Oslo" in await middleware.aenrich_system_prompt(asked("Where do I live?"))
        await middleware.aafter_response("Where do I live?", "In Oslo. [0]")
        await middleware.aend_session()
        assert embedder.threads
        assert threading.get_ident() not in embedder.threads
        assert len(memory.jobs.list(scope=ADA)) == 1
        assert memory.learning.status(scope=ADA).outcomes == 1


def test_a_turn_that_is_odd_too_long_or_refused_costs_no_other_turn() -> None:
    with Memory(":memory:", background=False, scrubber=lambda text: "" if text == "REFUSED" else text) as memory:
        middleware = made(memory)
        for said in ("I like\x00 tea, half \ud83d.", "ä" * 600_000, "REFUSED", "My dog is Rex."):
            middleware.enrich_system_prompt(asked(said))
            middleware.after_response(said, "")
        tea, long, dog = [text for _, text in turns(memory)]
    assert (tea, dog, middleware.faults) == ("I like tea, half �.", "My dog is Rex.", {"store": 1})
    assert re.fullmatch("ä+… \\(cut\\)", long)
    assert 999_990 < len(long.encode()) <= 1_000_000
