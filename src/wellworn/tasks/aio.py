"""The async bank: the verbs of `ReasoningBank`, for agents that are coroutines.

    bank = AsyncReasoningBank(memory)  # an AsyncMemory or a Memory
    out = await bank.run_task(task_id="t1", query="…", execute=agent, scope=scope)  # async def agent(work): …

Every method is derived from the synchronous one and runs on a thread; what the agent awaits runs on the caller's event
loop. Cancelled while the agent works, the attempt is abandoned, and that is written down before the cancellation goes
on; cancelled later, the attempt is finished first. Nothing is left half done.
"""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import CancelledError, Future
from typing import Any, Concatenate, ParamSpec, TypeVar

from wellworn.aio import AsyncMemory, OnThread, Verb
from wellworn.memory import Memory
from wellworn.tasks.attempts import Execute, Work
from wellworn.tasks.bank import ReasoningBank

P = ParamSpec("P")
T = TypeVar("T")


class _OnLoop:
    """Runs an agent for a worker thread: what it awaits, on the event loop. Can be cancelled at any time."""

    def __init__(self, execute: Execute) -> None:
        self._execute = execute
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._under_way: set[Future[Any]] = set()
        self._cancelled = False

    def __call__(self, work: Work) -> Any:
        value = self._execute(work)
        if not isinstance(value, Awaitable):
            return value

        async def run() -> Any:
            return await value

        with self._lock:
            future = asyncio.run_coroutine_threadsafe(run(), self._loop)
            self._under_way.add(future)
            if self._cancelled:
                future.cancel()
        try:
            return future.result()
        except CancelledError as error:
            raise asyncio.CancelledError from error

    def cancel(self) -> None:
        with self._lock:
            self._cancelled = True
            for future in self._under_way:
                future.cancel()


def _working(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """A method that runs an agent, as a coroutine function.

    Each call has a thread of its own: agents may wait for each other's calls, which a pool of threads would not allow.
    """

    async def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        agent = _OnLoop(kwargs["execute"])  # type: ignore[arg-type]  # every such method has it
        kwargs["execute"] = agent
        over: Future[T] = Future()

        def run() -> None:
            try:
                over.set_result(method(self.sync, *args, **kwargs))
            except BaseException as error:  # goes on in the caller
                over.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        done = asyncio.wrap_future(over)
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            agent.cancel()
            done.add_done_callback(asyncio.Future.exception)  # read, or it would be reported as lost
            await asyncio.wait([done])
            raise

    return functools.update_wrapper(call, method)


class AsyncReasoningBank(OnThread[ReasoningBank]):
    """`ReasoningBank` for async code. Reviews, sharing and the graph are on `sync`: use `asyncio.to_thread` there."""

    def __init__(self, memory: AsyncMemory | Memory, **options: Any) -> None:
        """The options are those of `ReasoningBank`."""
        super().__init__(ReasoningBank(memory.sync if isinstance(memory, AsyncMemory) else memory, **options))

    run_task = _working(ReasoningBank.run_task)
    matts_parallel = _working(ReasoningBank.matts_parallel)
    matts_sequential = _working(ReasoningBank.matts_sequential)
    retrieve = Verb(ReasoningBank.retrieve)
    feedback = Verb(ReasoningBank.feedback)
    begin = Verb(ReasoningBank.begin)
    finish = Verb(ReasoningBank.finish)
    record = Verb(ReasoningBank.record)
    abandon = Verb(ReasoningBank.abandon)
    judge = Verb(ReasoningBank.judge)
    distill = Verb(ReasoningBank.distill)
    resume = Verb(ReasoningBank.resume)
    consolidate = Verb(ReasoningBank.consolidate)
    run_due = Verb(ReasoningBank.run_due)
    items = Verb(ReasoningBank.items)
    item = Verb(ReasoningBank.item)
    tasks = Verb(ReasoningBank.tasks)
    stats = Verb(ReasoningBank.stats)
