"""The threads on which callers are looked up and routes run: as `anyio.to_thread.run_sync`, at a third of its cost.

Whoever was busy last works next. The others end after a while, and with them what a store keeps for each thread.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")
_Task = tuple[asyncio.AbstractEventLoop, "asyncio.Future[_Ended]", Context, Callable[..., Any], tuple[Any, ...]]
_Ended = tuple[Any, BaseException | None]
"""A result, or what was raised instead."""
_Tasks = SimpleQueue[_Task | None]
"""What one thread is given to do; None ends it."""

MOST_THREADS = 40
IDLE_S = 10.0


class Workers:
    """Threads that run functions for one event loop. Everything but `_work` happens in that loop."""

    def __init__(self, most: int = MOST_THREADS, name: str = "route") -> None:
        self._most, self._name = most, name
        self._all: set[_Tasks] = set()
        self._idle: deque[tuple[float, _Tasks]] = deque()
        """Since when; whoever has been idle for longest comes first."""
        self._waiting: deque[_Task] = deque()

    async def run(self, function: Callable[..., T], *args: Any) -> T:  # what the function takes
        """Run this on a thread, in a copy of the context. What has begun goes on when whoever waits for it is cancelled."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[_Ended] = loop.create_future()
        task = (loop, ended, copy_context(), function, args)
        if self._idle:
            self._idle.pop()[1].put(task)
        elif len(self._all) < self._most:
            self._start(task)
        else:
            self._waiting.append(task)
        result, error = await ended
        if error is not None:
            try:
                raise error
            finally:
                del error  # its traceback holds this frame
        found: T = result
        return found

    def stop(self) -> None:
        """End the threads, each when it has done what it was given."""
        for tasks in self._all:
            tasks.put(None)
        self._all.clear()
        self._idle.clear()

    def _start(self, task: _Task) -> None:
        tasks: _Tasks = SimpleQueue()
        self._all.add(tasks)
        tasks.put(task)
        threading.Thread(target=self._work, args=(tasks,), name=self._name).start()

    def _work(self, tasks: _Tasks) -> None:
        while (task := tasks.get()) is not None:
            loop, ended, context, function, args = task
            try:
                outcome: _Ended = (context.run(function, *args), None)
            except BaseException as error:  # raised again where it is waited for
                outcome = (None, error)
            try:
                loop.call_soon_threadsafe(self._finish, loop, tasks, ended, outcome)
            except RuntimeError:  # the loop has ended
                return
            del task, loop, ended, context, function, args, outcome  # while this thread waits they are nobody's

    def _finish(
        self, loop: asyncio.AbstractEventLoop, tasks: _Tasks, ended: asyncio.Future[_Ended], outcome: _Ended
    ) -> None:
        if not ended.done():  # else nobody waits any more
            ended.set_result(outcome)
        if tasks not in self._all:
            return
        while self._waiting:
            task = self._waiting.popleft()
            if not task[1].done():
                tasks.put(task)
                return
        now = loop.time()
        self._idle.append((now, tasks))
        while self._idle[0][0] < now - IDLE_S:
            _, oldest = self._idle.popleft()
            self._all.discard(oldest)
            oldest.put(None)
