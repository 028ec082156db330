"""What memory adds to one turn of an agent: recall, block, storing, learning; at the first session and many later.

A subject is anything with a `turn`: put a framework's middleware beside the loop's in `SUBJECTS`. The model answers at
once and cites the first memory; vectors cost nothing. What is left is ours.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol, cast

import numpy as np

from bench.banks import SCOPE, Banks, SeededEmbedder
from bench.corpus import Corpus
from bench.remember import bare_commit
from bench.report import Row, Table
from bench.timing import Times, own_time, take_turns
from wellworn import Memory
from wellworn.integrations import loop
from wellworn.integrations.loop import MiddlewareContext, create_memory_middleware

SYSTEM = "You are a patient assistant."
WARM_UP = 3
TURNS_BETWEEN = 4
SAYS = (
    "One turn: recall, block, both turns stored and the citation learned, durability full. No model, no embedding, no "
    "reflection (background work). own_…: without the time in which other processes had the core; the parts are "
    "medians of it, `rest` is what they leave of own_p50. Storing includes the disk's sync. Floor: one bare SQLite "
    "commit of 1 KB in the same mode, in turns. Aim: p50 < 10 ms, p95 < 25 ms, at the last session as at the first."
)


class Subject(Protocol):
    """A middleware in an agent's hands."""

    def turn(self, user_text: str) -> None:
        """One question, from what is put before the model to what is kept of the answer."""
        ...


class LoopSubject:
    """The middleware for any loop, new for each session as an application would make it."""

    def __init__(self, memory: Memory, session_id: str) -> None:
        self._middleware = create_memory_middleware(memory, scope=SCOPE, session_id=session_id)
        self._answers = Corpus(52)

    def turn(self, user_text: str) -> None:
        self._middleware.enrich_system_prompt(MiddlewareContext(user_input=user_text, current_system_prompt=SYSTEM))
        self._middleware.after_response(user_text, f"{self._answers.text()} [0]")
        assert not self._middleware.faults, self._middleware.faults


class RMMSubject:
    """The hooks of the LangChain middleware as an agent calls them, without the agent around them."""

    def __init__(self, memory: Memory, session_id: str) -> None:
        from langchain_core.language_models.fake_chat_models import FakeListChatModel

        from wellworn.integrations.langchain import RMMMiddleware

        self._middleware = RMMMiddleware(memory, tenant=SCOPE.tenant)
        self._model = FakeListChatModel(responses=["unused"])
        self._runtime = SimpleNamespace(
            context={"user_id": SCOPE.user, "session_id": session_id},
            execution_info=SimpleNamespace(thread_id=session_id),
        )
        self._state: dict[str, Any] = {"messages": []}
        self._answers = Corpus(52)

    def turn(self, user_text: str) -> None:
        from langchain.agents.middleware import ModelRequest, ModelResponse
        from langchain_core.messages import AIMessage, HumanMessage

        middleware, state, runtime = self._middleware, self._state, cast("Any", self._runtime)
        state["messages"] = [HumanMessage(user_text, id=f"q{time.monotonic_ns()}")]
        for hook in (middleware.before_agent, middleware.before_model):
            state |= hook(cast("Any", state), runtime) or {}
        request: ModelRequest[Any] = ModelRequest(
            model=self._model, messages=state["messages"], state=cast("Any", state), runtime=runtime
        )
        answer = AIMessage(f"{self._answers.text()} [0]", id=f"a{time.monotonic_ns()}")
        told = middleware.wrap_model_call(request, lambda _: ModelResponse(result=[answer]))
        command = getattr(told, "command", None)
        state |= (command.update if command else None) or {}
        response = getattr(told, "model_response", told)
        state["messages"] = [*state["messages"], *response.result]
        for hook in (middleware.after_model, middleware.after_agent):
            state |= hook(cast("Any", state), runtime) or {}
        assert not middleware.faults, middleware.faults


SUBJECTS: dict[str, Callable[[Memory, str], Subject]] = {"loop": LoopSubject, "langchain": RMMSubject}


class Parts:
    """Seconds spent in each part of a turn, by this thread: others write the log and must not be counted."""

    def __init__(self) -> None:
        self.spent: dict[str, list[float]] = {}
        self._now: dict[str, float] = {}
        self._thread = threading.get_ident()

    @contextmanager
    def around(self, part: str) -> Iterator[None]:
        began = own_time()
        try:
            yield
        finally:
            if threading.get_ident() == self._thread:
                self._now[part] = self._now.get(part, 0.0) + own_time() - began

    def end_turn(self, *, counts: bool) -> None:
        for part, seconds in self._now.items():
            if counts:
                self.spent.setdefault(part, []).append(seconds)
        self._now = {}

    def p50_ms(self, part: str) -> float:
        return 1000 * float(np.median(self.spent.get(part, [0.0])))

    @contextmanager
    def watching(self, memory: Memory) -> Iterator[None]:
        """Time the seams that every middleware goes through."""
        seams: list[tuple[Any, str, str]] = [  # Any: objects and a module alike
            (memory.engine.searcher, "recall", "recall"),
            (memory.engine.learner, "outcome_in", "learning"),
            (loop, "memory_block", "block"),
        ]
        with ExitStack() as stack:
            for owner, name, part in seams:
                stack.enter_context(self._replaced(owner, name, self._timed(getattr(owner, name), part)))
            transact = memory.engine.store.transact

            @contextmanager
            def transacting() -> Iterator[Any]:
                with self.around("storing"), transact() as tx:
                    yield tx

            stack.enter_context(self._replaced(memory.engine.store, "transact", transacting))
            yield

    def _timed(self, call: Callable[..., object], part: str) -> Callable[..., object]:
        def timed(*args: object, **keywords: object) -> object:
            with self.around(part):
                return call(*args, **keywords)

        return timed

    @contextmanager
    def _replaced(self, owner: Any, name: str, new: object) -> Iterator[None]:
        old = getattr(owner, name)
        setattr(owner, name, new)
        try:
            yield
        finally:
            setattr(owner, name, old)


def measure(banks: Banks, size: int, rounds: int, at_sessions: list[int]) -> Table:
    """Every subject at each of these sessions, on a file of its own."""
    rows = [row for name in SUBJECTS for row in _rows(banks, name, size, rounds, at_sessions)]
    return Table(subject="middleware", says=SAYS, rows=rows)


def _rows(banks: Banks, name: str, size: int, rounds: int, at_sessions: list[int]) -> Iterator[Row]:
    path, bare = banks.copy("sessions", size, f"middleware-{name}"), banks.scratch / f"bare-{name}.db"
    questions, texts = Corpus(51), Corpus(53)
    commit = bare_commit(bare, "full", size)
    with Memory.open(path, embedder=SeededEmbedder(), background=False) as memory:
        for number in range(1, at_sessions[-1] + 1):
            subject = SUBJECTS[name](memory, f"{name} {number}")
            if number not in at_sessions:
                for _ in range(TURNS_BETWEEN):
                    subject.turn(questions.query())
                continue
            parts = Parts()
            with parts.watching(memory):
                turn = _turn(subject, parts, questions.queries(rounds + WARM_UP))
                times = take_turns(
                    {"turn": turn, "floor": lambda _: commit(texts.text())}, rounds=rounds, warm_up=WARM_UP
                )
            yield _row(name, number, memory, times["turn"], times["floor"], parts)
    _remove(path, bare)


def _turn(subject: Subject, parts: Parts, questions: list[str]) -> Callable[[int], None]:
    def turn(number: int) -> None:
        subject.turn(questions[number])
        parts.end_turn(counts=number >= WARM_UP)

    return turn


def _row(name: str, session: int, memory: Memory, found: Times, floor: Times, parts: Parts) -> Row:
    recall, block, learning = (parts.p50_ms(part) for part in ("recall", "block", "learning"))
    storing = parts.p50_ms("storing") - learning  # told within the transaction that stores the turns
    return {
        "middleware": name,
        "session": session,
        "entries": memory.stats(scope=SCOPE).entries,
        "p50_ms": found.p50_ms,
        "own_p50_ms": found.own_p50_ms,
        "own_p95_ms": found.own_p95_ms,
        "cpu_ms": found.cpu_p50_ms,
        "recall": recall,
        "block": block,
        "storing": storing,
        "learning": learning,
        "rest": max(0.0, found.own_p50_ms - recall - block - storing - learning),
        "floor_own_ms": floor.own_p50_ms,
        "floor_cpu_ms": floor.cpu_p50_ms,
    }


def _remove(*paths: Path) -> None:
    for path in paths:
        path.unlink()
