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
from wellworn.views import AdminView, JobsView, LearningView


class AsyncSession(AsyncFace[Session]):
    """A dialogue whose turns are awaited."""

    @property
    def id(self) -> str:
        return self.sync.id

    add = threaded(Session.add)
    add_turns = threaded(Session.add_turns)
    end = threaded(Session.end)
    turns = threaded(Session.turns)


class AsyncLearningView(AsyncFace[LearningView]):
    status = threaded(LearningView.status)
    relearn = threaded(LearningView.relearn)
    reset = threaded(LearningView.reset)
    share = threaded(LearningView.share)
    export = threaded(LearningView.export)
    practise = threaded(LearningView.practise)


class AsyncJobsView(AsyncFace[JobsView]):
    run = threaded(JobsView.run)
    retry = threaded(JobsView.retry)
    list = threaded(JobsView.list)


class AsyncAdminView(AsyncFace[AdminView]):
    stats = threaded(AdminView.stats)
    events = threaded(AdminView.events)
    costs = threaded(AdminView.costs)
    model = threaded(AdminView.model)
    repair = threaded(AdminView.repair)
    reembed = threaded(AdminView.reembed)
    backup = threaded(AdminView.backup)
    retention = threaded(AdminView.retention)
    expire = threaded(AdminView.expire)
    erase = threaded(AdminView.erase)
    export = threaded(AdminView.export)
    load = threaded(AdminView.load)
    import_from = threaded(AdminView.import_from)


class AsyncMemory(AsyncFace[Memory]):
    """`Memory` for async code. Open one with `await AsyncMemory.open(...)`; several event loops may share it."""

    @classmethod
    async def open(cls, location: str | Path | Store = "memory.db", **settings: Unpack[Settings]) -> AsyncMemory:
        return cls(await asyncio.to_thread(Memory, location, **settings))

    def __init__(self, sync: Memory) -> None:
        super().__init__(sync)
        self.scope = sync.scope
        self.learning = AsyncLearningView(sync.learning)
        self.jobs = AsyncJobsView(sync.jobs)
        self.admin = AsyncAdminView(sync.admin)

    def for_user(self, user: str, *, tenant: str = "default", **layers: str) -> AsyncMemory:
        """The memory of one person: the same verbs, without `scope`."""
        return AsyncMemory(self.sync.for_user(user, tenant=tenant, **layers))

    def for_scope(self, scope: Scope) -> AsyncMemory:
        return AsyncMemory(self.sync.for_scope(scope))

    def session(self, session_id: str, *, scope: Scope | None = None) -> AsyncSession:
        return AsyncSession(self.sync.session(session_id, scope=scope))

    remember = threaded(Memory.remember)
    remember_many = threaded(Memory.remember_many)
    sessions = threaded(Memory.sessions)
    reflect = threaded(Memory.reflect)
    recall = threaded(Memory.recall)
    assemble = threaded(Memory.assemble)
    reason = threaded(Memory.reason)
    outcome = threaded(Memory.outcome)
    get = threaded(Memory.get)
    entries = threaded(Memory.entries)
    history = threaded(Memory.history)
    links = threaded(Memory.links)
    edit = threaded(Memory.edit)
    supersede = threaded(Memory.supersede)
    link = threaded(Memory.link)
    unlink = threaded(Memory.unlink)
    forget = threaded(Memory.forget)
    verify = threaded(Memory.verify)
    close = threaded(Memory.close)

    async def __aenter__(self) -> AsyncMemory:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
