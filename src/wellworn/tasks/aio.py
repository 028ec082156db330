"""The awaitable twin of `ReasoningBank`: the same verbs, for agents that are coroutines.

    bank = AsyncReasoningBank(memory)  # an AsyncMemory or a Memory
    out = await bank.run_task(task_id="t1", query="…", execute=agent, scope=scope)  # async def agent(work): …

The store, the judge and the distiller work on threads, the agent on the loop. Cancelled while the agent works, the
attempt is abandoned, and that is written down before the cancellation goes on up; cancelled later, what is being kept
is kept whole first. Holds no rule of its own, and a test keeps every signature equal to the bank's.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from wellworn.aio import AsyncMemory
from wellworn.core.clock import NewId
from wellworn.core.errors import BudgetExceeded
from wellworn.core.values import Entry, Progress, Recall, Scope
from wellworn.ingest.scrub import ScrubberSpec
from wellworn.ingest.validate import checked_count
from wellworn.memory import Memory
from wellworn.tasks.attempts import Done, Made, Order, done_with, failed_with
from wellworn.tasks.bank import DEFAULT_K, MIN_CONFIDENCE, ReasoningBank
from wellworn.tasks.consolidation.report import Consolidation
from wellworn.tasks.consolidation.settings import ConsolidationSettings
from wellworn.tasks.distill import Distilled
from wellworn.tasks.judge import Verdict, Verify
from wellworn.tasks.matts import CONCURRENT
from wellworn.tasks.stats import BankStats
from wellworn.tasks.tasks import Run, Task, TaskState
from wellworn.tasks.work import RunResult, TaskResult, Work

P = ParamSpec("P")
T = TypeVar("T")

AsyncExecute = Callable[[Work], Any]
"""Does the work: a coroutine function is awaited on the loop, any other runs on a thread."""


class AsyncReasoningBank:
    """Learning from tasks, awaitable."""

    def __init__(
        self,
        memory: AsyncMemory | Memory,
        *,
        scope: Scope | None = None,
        k: int = DEFAULT_K,
        min_confidence: float = MIN_CONFIDENCE,
        scrubber: ScrubberSpec = "mask",
        consolidation: ConsolidationSettings | None = None,
        new_id: NewId | None = None,
    ) -> None:
        plain = memory.sync if isinstance(memory, AsyncMemory) else memory
        self._bank = ReasoningBank(
            plain,
            scope=scope,
            k=k,
            min_confidence=min_confidence,
            scrubber=scrubber,
            consolidation=consolidation,
            new_id=new_id,
        )
        self.keeper = self._bank.keeper
        """Undo, reviews, sharing: not awaitable; call it with `asyncio.to_thread`."""

    # -- find ----------------------------------------------------------------------------------------------------

    async def retrieve(
        self,
        query: str,
        *,
        domain: str | None = None,
        k: int | None = None,
        scope: Scope | None = None,
        kind: str | Sequence[str] | None = None,
        min_confidence: float | None = None,
    ) -> Recall:
        return await _whole(
            self._bank.retrieve, query, domain=domain, k=k, scope=scope, kind=kind, min_confidence=min_confidence
        )

    async def feedback(self, recall_id: str, *, cited: Sequence[int], scope: Scope | None = None) -> bool:
        return await _whole(self._bank.feedback, recall_id, cited=cited, scope=scope)

    # -- do ------------------------------------------------------------------------------------------------------

    async def run_task(
        self,
        *,
        task_id: str,
        query: str,
        execute: AsyncExecute,
        agent_id: str = "",
        domain: str = "",
        scope: Scope | None = None,
        k: int | None = None,
        within: str | None = None,
        verify: Verify | None = None,
        session_id: str | None = None,
    ) -> TaskResult:
        order = self._bank._order(task_id, agent_id, query, domain, scope, session_id)
        work = await self._begin(order, lambda: self._bank._look(order, k, within))
        done = await self._done(work, execute)
        attempts = self._bank._attempts
        return await _whole(lambda: attempts.end(attempts.settle(work, done, verify)))

    async def begin(
        self,
        *,
        task_id: str,
        query: str,
        agent_id: str = "",
        domain: str = "",
        scope: Scope | None = None,
        k: int | None = None,
        within: str | None = None,
        session_id: str | None = None,
    ) -> Work:
        order = self._bank._order(task_id, agent_id, query, domain, scope, session_id)
        return await self._begin(order, lambda: self._bank._look(order, k, within))

    async def finish(
        self,
        task_id: str,
        trajectory: object,
        *,
        verdict: bool | None = None,
        verify: Verify | None = None,
        scope: Scope | None = None,
    ) -> TaskResult:
        return await _whole(self._bank.finish, task_id, trajectory, verdict=verdict, verify=verify, scope=scope)

    async def record(
        self,
        trajectory: object,
        *,
        task_id: str,
        query: str = "",
        agent_id: str = "",
        domain: str = "",
        verdict: bool | None = None,
        verify: Verify | None = None,
        scope: Scope | None = None,
        session_id: str | None = None,
    ) -> TaskResult:
        return await _whole(
            self._bank.record,
            trajectory,
            task_id=task_id,
            query=query,
            agent_id=agent_id,
            domain=domain,
            verdict=verdict,
            verify=verify,
            scope=scope,
            session_id=session_id,
        )

    async def abandon(self, task_id: str, *, why: str = "", scope: Scope | None = None) -> int:
        return await _whole(self._bank.abandon, task_id, why=why, scope=scope)

    async def matts_parallel(
        self,
        *,
        task_id: str,
        query: str,
        execute: AsyncExecute,
        agent_id: str = "",
        domain: str = "",
        k: int = 3,
        concurrency: int = CONCURRENT,
        scope: Scope | None = None,
        within: str | None = None,
        verify: Verify | None = None,
        session_id: str | None = None,
    ) -> RunResult:
        order = self._bank._order(task_id, agent_id, query, domain, scope, session_id)
        count = checked_count("k", k, least=1, most=64)
        gate = asyncio.Semaphore(min(count, checked_count("concurrency", concurrency, least=1, most=64)))
        run = await _whole(self._bank._matts.open, order, "parallel")
        made: list[Made] = []

        async def one(number: int) -> None:
            async with gate:
                if any(isinstance(other.exception, BudgetExceeded) for other in made):
                    return
                made.append(await self._attempt(order, within, execute, verify, number=number, run_id=run.id))

        tried = [asyncio.ensure_future(one(number)) for number in range(1, count + 1)]
        try:
            await asyncio.gather(*tried)
        except BaseException as error:
            for each in tried:
                each.cancel()
            await asyncio.wait(tried)
            await self._give_up(run, made, error)
            raise
        return await _whole(self._bank._matts.end, run, sorted(made, key=lambda one: one.work.number))

    async def matts_sequential(
        self,
        *,
        task_id: str,
        query: str,
        execute: AsyncExecute,
        agent_id: str = "",
        domain: str = "",
        r: int = 3,
        scope: Scope | None = None,
        within: str | None = None,
        verify: Verify | None = None,
        session_id: str | None = None,
    ) -> RunResult:
        order = self._bank._order(task_id, agent_id, query, domain, scope, session_id)
        most = checked_count("r", r, least=1, most=64)
        run = await _whole(self._bank._matts.open, order, "sequential")
        made: list[Made] = []
        try:
            for number in range(1, most + 1):
                made.append(
                    await self._attempt(order, within, execute, verify, number=number, run_id=run.id, before=made)
                )
                if made[-1].verdict.success or isinstance(made[-1].exception, BudgetExceeded):
                    break
        except BaseException as error:
            await self._give_up(run, made, error)
            raise
        return await _whole(self._bank._matts.end, run, made)

    # -- learn ---------------------------------------------------------------------------------------------------

    async def judge(self, trajectory: object, *, scope: Scope | None = None) -> Verdict:
        return await _whole(self._bank.judge, trajectory, scope=scope)

    async def distill(self, trajectory: object, verdict: Verdict | bool, *, scope: Scope | None = None) -> Distilled:
        return await _whole(self._bank.distill, trajectory, verdict, scope=scope)

    async def resume(self, *, scope: Scope | None = None, idle_s: float = 3600.0) -> list[Task]:
        return await _whole(self._bank.resume, scope=scope, idle_s=idle_s)

    async def consolidate(
        self,
        *,
        scope: Scope | None = None,
        layer: str | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Consolidation:
        return await _whole(self._bank.consolidate, scope=scope, layer=layer, dry_run=dry_run, progress=progress)

    # -- look ----------------------------------------------------------------------------------------------------

    async def items(
        self,
        *,
        scope: Scope | None = None,
        domain: str | None = None,
        kind: str | Sequence[str] | None = None,
        sort: str = "confidence",
        limit: int = 20,
    ) -> list[Entry]:
        return await _whole(self._bank.items, scope=scope, domain=domain, kind=kind, sort=sort, limit=limit)

    async def item(self, id: str, *, scope: Scope | None = None) -> Entry:
        return await _whole(self._bank.item, id, scope=scope)

    async def tasks(
        self, *, scope: Scope | None = None, state: TaskState | None = None, limit: int = 100
    ) -> list[Task]:
        return await _whole(self._bank.tasks, scope=scope, state=state, limit=limit)

    async def runs(self, *, scope: Scope | None = None, limit: int = 100) -> list[Run]:
        return await _whole(self._bank.runs, scope=scope, limit=limit)

    async def stats(self, *, scope: Scope | None = None) -> BankStats:
        return await _whole(self._bank.stats, scope=scope)

    # -- inside --------------------------------------------------------------------------------------------------

    async def _attempt(
        self,
        order: Order,
        within: str | None,
        execute: AsyncExecute,
        verify: Verify | None,
        *,
        number: int,
        run_id: str,
        before: Sequence[Made] = (),
    ) -> Made:
        """One attempt of a run, done and judged."""
        previous = tuple((one.trajectory, one.verdict) for one in before)
        work = await self._begin(
            order, lambda: self._bank._look(order, None, within), number=number, run_id=run_id, previous=previous
        )
        done = await self._done(work, execute)
        return await self._kept(lambda: self._bank._attempts.settle(work, done, verify), lambda made: made.work)

    async def _begin(self, order: Order, look: Callable[[], Recall], **of_run: Any) -> Work:  # as `Attempts.begin`
        return await self._kept(lambda: self._bank._attempts.begin(order, look, **of_run), lambda work: work)

    async def _kept(self, step: Callable[[], T], work_of: Callable[[T], Work]) -> T:
        """A step of an attempt; one that nobody waits for any more when it is over is abandoned."""
        over: list[T] = []

        def noted() -> T:
            over.append(step())
            return over[0]

        try:
            return await _whole(noted)
        except asyncio.CancelledError:
            for one in over:
                await self._abandon(work_of(one), "CancelledError")
            raise

    async def _done(self, work: Work, execute: AsyncExecute) -> Done:
        try:
            return done_with(await _awaited(execute, work), work)
        except Exception as error:  # an agent that fails is what this learns from
            return failed_with(error, work)
        except BaseException as error:
            await self._abandon(work, type(error).__name__)
            raise

    async def _abandon(self, work: Work, why: str) -> None:
        await _whole(self._bank._attempts.abandon, work, why)

    async def _give_up(self, run: Run, made: Sequence[Made], error: BaseException) -> None:
        """A run that is broken off: what was made of it will not be compared."""
        why = type(error).__name__
        for one in made:
            await self._abandon(one.work, why)
        await _whole(self._bank._matts.give_up, run, why)


async def _awaited(execute: AsyncExecute, work: Work) -> object:
    if inspect.iscoroutinefunction(execute) or inspect.iscoroutinefunction(getattr(execute, "__call__", None)):  # noqa: B004  an object that is awaited when called
        return await execute(work)
    value = await asyncio.to_thread(execute, work)
    return await value if isinstance(value, Awaitable) else value


async def _whole(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """A step on a thread, never left half done: a cancellation waits until it is over, and goes on up then."""
    step = asyncio.ensure_future(asyncio.to_thread(call, *args, **kwargs))
    cancelled = False
    while not step.done():
        try:
            await asyncio.wait([step])
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        if not step.cancelled():
            step.exception()  # looked at: nobody else will
        raise asyncio.CancelledError
    return step.result()
