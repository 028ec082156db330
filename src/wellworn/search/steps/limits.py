"""Hard limits of a search in several steps: actions, tokens, dollars and time, and model calls within them.

Code that may hang (models, embedders, planners of others) runs on a daemon thread and is waited for no longer than its
time. A model call that is late stays paid for. Knows no prompt.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from wellworn.core.dataclass import dataclass
from wellworn.core.errors import InvalidInput, ModelFailed
from wellworn.core.locks import deadline, started
from wellworn.core.values import Cost, Partition
from wellworn.models.port import Model, Reply, Request, read_prompt
from wellworn.search.steps.router import Limits, checked_numbers

if TYPE_CHECKING:
    from wellworn.models.choose import ModelSpec
    from wellworn.models.ledger import CallCost as Price
    from wellworn.models.ledger import Meter as MeteredModel
    from wellworn.search.steps.repl import ReplLimits

CALL_TIMEOUT_S = 30.0
"""For one model call."""
PARALLEL = 8
"""Model calls at the same time."""

T = TypeVar("T")
Answer = str | Exception
"""What a model said, or why it said nothing."""


class LimitMet(Exception):
    """Internal: stop here and keep what there is."""


class Usage:
    """Counts what one search uses, and stops it at its limits."""

    def __init__(self, limits: Limits, now: Callable[[], float] = time.perf_counter) -> None:
        self.limits = limits
        self._now = now
        self.restart_clock()
        self.actions = 0
        self.tokens = 0
        self.usd = 0.0

    def restart_clock(self) -> None:
        """Count time from now: a plan by a model has a deadline of its own."""
        self._began = self._now()
        self._until = deadline()
        self._time_s = self.limits.timeout_s
        if self._until is not None:
            self._time_s = min(self._time_s, self._until.left_s())

    def begin_action(self) -> None:
        self.check()
        if self.actions >= self.limits.actions:
            raise LimitMet(f"{self.limits.actions} actions")
        self.actions += 1

    def spend(self, *, tokens: int = 0, usd: float = 0.0) -> None:
        """Reserve tokens and money before they are used."""
        if self.tokens + tokens > self.limits.tokens:
            raise LimitMet(f"{self.limits.tokens} tokens")
        if self.usd + usd > self.limits.usd:
            raise LimitMet(f"{self.limits.usd} USD")
        self.tokens += tokens
        self.usd += usd

    def check(self, *, ahead_s: float = 0.0) -> None:
        """Stop after the deadline, or before work that is expected to end after it."""
        if self._left_s() <= ahead_s:
            raise self._late()

    def _left_s(self) -> float:
        return self._time_s - (self._now() - self._began)

    def _late(self) -> LimitMet:
        if self._until is None or self._time_s == self.limits.timeout_s:
            return LimitMet(f"{self.limits.timeout_s} s")
        self._until.missed = True
        return LimitMet("the deadline")

    def within(self, work: Callable[[], T]) -> T:
        """The result of code that may hang, if it comes before the deadline."""
        self.check()
        try:
            result = started(work).get(timeout=max(self._left_s(), 0.0))
        except queue.Empty:
            raise self._late() from None
        if isinstance(result, Exception):
            raise result
        return result


@dataclass(frozen=True, kw_only=True)
class Models:
    """The models of a search in several steps; each as `llm` of `Memory`. They are asked for nothing else."""

    root: ModelSpec
    """Plans the question, draws the conclusion of `reason`, and writes the programs of the sandbox."""
    sub: ModelSpec = None
    """Plans sub-questions and answers queries of programs; by default the root."""
    calls: int = 8
    """Calls for one recall at most; the sandbox has a limit of its own."""
    timeout_s: float = 60.0
    """For all calls of one recall together; the search has its own time, `Limits.timeout_s`."""
    repl: ReplLimits | None = None
    """Let `reason` work by programs that the root model writes, within these limits. Off by default."""
    for_root: Model = field(init=False, repr=False)
    for_sub: Model = field(init=False, repr=False)

    def __post_init__(self) -> None:
        from wellworn.models.choose import choose_model

        root, sub = choose_model(self.root), choose_model(self.sub)
        if root is None:
            raise InvalidInput("models.root", f"{self.root!r} is no model", "leave `models` out to plan by rules")
        checked_numbers("models", {"calls": self.calls, "timeout_s": self.timeout_s})
        if self.repl is not None:
            from wellworn.search.steps.repl import check_installed

            check_installed()
        object.__setattr__(self, "for_root", root)  # chosen here, so that a wrong name is reported at once
        object.__setattr__(self, "for_sub", sub or root)


@dataclass(frozen=True, kw_only=True)
class ModelAccess:
    """How a search may ask models."""

    metered: Callable[[Model, Partition], MeteredModel]
    """A model as it may be asked for a partition: scrubbed, counted, under the memory's budget."""
    reasoner: Model | None = None
    """Draws conclusions where `Recursion.models` names no model."""


class Calls:
    """The model calls of one search. `usage` bounds their tokens and dollars."""

    def __init__(self, usage: Usage, *, most: int = 8, timeout_s: float = 60.0) -> None:
        self._usage = usage
        self._most = most
        self._deadline = deadline()
        self._timeout_s = timeout_s if self._deadline is None else min(timeout_s, self._deadline.left_s())
        self._until = time.perf_counter() + self._timeout_s
        self._cost = Cost()

    def added_to(self, cost: Cost) -> Cost:
        """A recall's cost with what these calls took, as far as is known."""
        return _plus(cost, **vars(self._cost))

    def ask(self, model: MeteredModel, request: Request) -> str:
        """The model's words; raises whatever went wrong."""
        (answer,) = self.ask_all(model, [request])
        if isinstance(answer, Exception):
            raise answer
        return answer

    def ask_all(self, model: MeteredModel, requests: Sequence[Request]) -> list[Answer]:
        """The answers in order, several asked for at once. A call that fails costs only itself."""
        began = time.perf_counter()
        answers: list[Answer] = []
        for start in range(0, len(requests), PARALLEL):
            begun = [self._begin(model, request) for request in requests[start : start + PARALLEL]]
            answers += [one if isinstance(one, LimitMet) else self._end(model, *one) for one in begun]
        self._cost = _plus(self._cost, seconds=time.perf_counter() - began)
        return answers

    def _begin(
        self, model: MeteredModel, request: Request
    ) -> tuple[queue.SimpleQueue[Reply | Exception], float, Price] | LimitMet:
        """Reserve the most that a call may take and start it; beyond any limit, say which."""
        now, wanted = time.perf_counter(), model.most(request)
        if now >= self._until:
            self._note_late()
            return LimitMet(f"{self._timeout_s:g} s for model calls")
        if self._cost.model_calls >= self._most:
            return LimitMet(f"{self._most} model calls")
        try:
            self._usage.spend(tokens=wanted.tokens, usd=wanted.usd)
        except LimitMet as limit:
            return limit
        self._cost = _plus(self._cost, model_calls=1)
        return started(partial(model.complete, request)), min(self._until, now + CALL_TIMEOUT_S), wanted

    def _end(
        self, model: MeteredModel, box: queue.SimpleQueue[Reply | Exception], until: float, wanted: Price
    ) -> Answer:
        """What came of a call; what was reserved for it becomes what it took."""
        try:
            reply = box.get(timeout=max(until - time.perf_counter(), 0.0))
        except queue.Empty:
            self._note_late()
            return ModelFailed(f"model {model.name!r} did not answer in time", retryable=True)
        read, written = (0, 0) if isinstance(reply, Exception) else (reply.input_tokens, reply.output_tokens)
        usd = 0.0 if isinstance(reply, Exception) else model.prices.usd(model.name, read, written)
        self._usage.tokens += read + written - wanted.tokens
        self._usage.usd += usd - wanted.usd
        self._cost = _plus(self._cost, input_tokens=read, output_tokens=written, usd=usd)
        return reply if isinstance(reply, Exception) else reply.text

    def _note_late(self) -> None:
        if self._deadline is not None:
            self._deadline.missed = True


def _plus(cost: Cost, **more: float) -> Cost:
    return replace(cost, **{name: getattr(cost, name) + value for name, value in more.items()})


prompt = partial(read_prompt, __file__)
