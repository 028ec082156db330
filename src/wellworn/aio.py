"""The async API: the verbs of `Memory`, run on worker threads so that the event loop is never held up.

Every method is derived from the synchronous one; no rule lives here.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import TracebackType
from typing import Unpack

from wellworn.core.threaded import AsyncFace, threaded
from wellworn.core.values import Scope
from wellworn.engine import Settings
from wellworn.ingest.session import Session
from wellworn.memory import Memory
from wellworn.store.port import Store


class AsyncSession(AsyncFace[Session]):
    """A dialogue whose turns are awaited."""

    @property
    def id(self) -> str:
        return self.sync.id

    add = threaded(Session.add)
    end = threaded(Session.end)
    turns = threaded(Session.turns)


class AsyncMemory(AsyncFace[Memory]):
    """`Memory` for async code. Open one with `await AsyncMemory.open(...)`; several event loops may share it."""

    @classmethod
    async def open(cls, location: str | Path | Store = "memory.db", **settings: Unpack[Settings]) -> AsyncMemory:
        return cls(await asyncio.to_thread(Memory, location, **settings))

    def session(self, *, scope: Scope, session_id: str) -> AsyncSession:
        return AsyncSession(self.sync.session(scope=scope, session_id=session_id))

    remember = threaded(Memory.remember)
    remember_many = threaded(Memory.remember_many)
    sessions = threaded(Memory.sessions)
    recall = threaded(Memory.recall)
    assemble = threaded(Memory.assemble)
    reason = threaded(Memory.reason)
    get = threaded(Memory.get)
    entries = threaded(Memory.entries)
    outcome = threaded(Memory.outcome)
    learning = threaded(Memory.learning)
    learning_curve = threaded(Memory.learning_curve)
    relearn = threaded(Memory.relearn)
    reset_learning = threaded(Memory.reset_learning)
    share_learning = threaded(Memory.share_learning)
    export_learning = threaded(Memory.export_learning)
    load_learning = threaded(Memory.load_learning)
    practise = threaded(Memory.practise)
    reflect = threaded(Memory.reflect)
    jobs = threaded(Memory.jobs)
    run_jobs = threaded(Memory.run_jobs)
    retry_jobs = threaded(Memory.retry_jobs)
    model = threaded(Memory.model)
    costs = threaded(Memory.costs)
    edit = threaded(Memory.edit)
    supersede = threaded(Memory.supersede)
    link = threaded(Memory.link)
    unlink = threaded(Memory.unlink)
    links = threaded(Memory.links)
    history = threaded(Memory.history)
    forget = threaded(Memory.forget)
    stats = threaded(Memory.stats)
    events = threaded(Memory.events)
    verify = threaded(Memory.verify)
    repair = threaded(Memory.repair)
    reembed = threaded(Memory.reembed)
    export = threaded(Memory.export)
    load = threaded(Memory.load)
    close = threaded(Memory.close)

    async def __aenter__(self) -> AsyncMemory:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
