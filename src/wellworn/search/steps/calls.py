"""Calls of language models within hard limits: so many, each so long, all together so long, so many tokens and dollars.

A call is made on a thread of its own and waited for no longer than its time. One that does not come back in time is
left behind: what it may cost stays spent, and its thread ends when the model gives up. Knows no prompt.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from wellworn.core.errors import ModelFailed
from wellworn.core.values import Cost
from wellworn.models.costs import Cost as Price
from wellworn.models.ledger import Meter as Metered
from wellworn.models.port import Reply, Request
from wellworn.search.steps.limits import LimitMet, Meter

PARALLEL = 8
"""Calls at the same time."""

Answer = str | Exception
"""What a model said, or why it said nothing."""
_Done = tuple[int, "Reply | Exception"]


@dataclass(frozen=True, kw_only=True)
class _Call:
    """A call under way."""

    until: float
    wanted: Price


class Calls:
    """The model calls of one recall."""

    def __init__(
        self,
        meter: Meter,
        *,
        calls: int,
        call_timeout_s: float,
        timeout_s: float,
        now: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._meter = meter
        self._most = calls
        self._call_timeout_s = call_timeout_s
        self._timeout_s = timeout_s
        self._now = now
        self._until = now() + timeout_s
        self.made = 0
        self.input_tokens = 0
        self.output_tokens = 0
        self.usd = 0.0
        self.seconds = 0.0
        """Waited for models."""

    def added_to(self, cost: Cost) -> Cost:
        """A recall's cost with what these calls took, as far as is known."""
        return Cost(
            seconds=cost.seconds + self.seconds,
            embedded_texts=cost.embedded_texts,
            model_calls=cost.model_calls + self.made,
            input_tokens=cost.input_tokens + self.input_tokens,
            output_tokens=cost.output_tokens + self.output_tokens,
            usd=cost.usd + self.usd,
        )

    def ask(self, model: Metered, request: Request) -> str:
        """The model's words; whatever went wrong is raised."""
        (answer,) = self.ask_all(model, [request])
        if isinstance(answer, Exception):
            raise answer
        return answer

    def ask_all(self, model: Metered, requests: Sequence[Request]) -> list[Answer]:
        """The answers in order, several asked for at once. A call that fails or may not be made costs only itself."""
        began = self._now()
        answers: list[Answer] = [LimitMet(f"{self._timeout_s:g} s for model calls")] * len(requests)
        waiting, under_way = deque(enumerate(requests)), dict[int, _Call]()
        done: queue.SimpleQueue[_Done] = queue.SimpleQueue()
        while waiting or under_way:
            while waiting and len(under_way) < PARALLEL:
                number, request = waiting.popleft()
                try:
                    under_way[number] = self._begin(model, request)
                except LimitMet as limit:
                    answers[number] = limit
                    continue
                thread = threading.Thread(target=_answer, args=(model, request, number, done), daemon=True)
                thread.start()
            if under_way:
                self._collect(model, under_way, done, answers)
        self.seconds += self._now() - began
        return answers

    def _begin(self, model: Metered, request: Request) -> _Call:
        """Set aside the most that a call may take; refused beyond any limit."""
        left = self._until - self._now()
        if left <= 0:
            raise LimitMet(f"{self._timeout_s:g} s for model calls")
        if self.made >= self._most:
            raise LimitMet(f"{self._most} model calls")
        wanted = model.most(request)
        self._meter.spend(tokens=wanted.tokens, usd=wanted.usd)
        self.made += 1
        return _Call(until=self._now() + min(left, self._call_timeout_s), wanted=wanted)

    def _collect(
        self, model: Metered, under_way: dict[int, _Call], done: queue.SimpleQueue[_Done], answers: list[Answer]
    ) -> None:
        """Wait for one of the calls, or until the first of them is out of time."""
        wait = min(call.until for call in under_way.values()) - self._now()
        try:
            number, outcome = done.get(timeout=max(wait, 0.0))
        except queue.Empty:
            for late in [number for number, call in under_way.items() if call.until <= self._now()]:
                del under_way[late]
                answers[late] = ModelFailed(f"model {model.name!r} did not answer in time", retryable=True)
            return
        call = under_way.pop(number, None)
        if call is None:  # it was out of time already
            return
        if isinstance(outcome, Exception):
            self._meter.give_back(tokens=call.wanted.tokens, usd=call.wanted.usd)
            answers[number] = outcome
            return
        answers[number] = outcome.text
        self._settle(model, call.wanted, outcome)

    def _settle(self, model: Metered, wanted: Price, reply: Reply) -> None:
        usd = model.prices.usd(model.name, reply.input_tokens, reply.output_tokens)
        used = reply.input_tokens + reply.output_tokens
        self._meter.give_back(tokens=wanted.tokens - used, usd=wanted.usd - usd)
        self.input_tokens += reply.input_tokens
        self.output_tokens += reply.output_tokens
        self.usd += usd


def _answer(model: Metered, request: Request, number: int, done: queue.SimpleQueue[_Done]) -> None:
    try:
        done.put((number, model.complete(request)))
    except Exception as error:  # over to the thread that waits
        done.put((number, error))
