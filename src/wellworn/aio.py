"""The verbs of a memory for code that is not in its thread: `AsyncMemory` here, and the clients of a service.

Each list of verbs stands once. A verb has the signature, the types and the documentation of the synchronous one; no rule
lives here. `AsyncMemory` runs verbs on worker threads, so that the event loop is never held up.
"""

from __future__ import annotations

import asyncio
import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import MethodType, TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, Unpack, overload

from wellworn.core.errors import InvalidInput
from wellworn.core.values import Scope
from wellworn.engine import Settings
from wellworn.ingest.session import Session
from wellworn.ingest.validate import shown
from wellworn.memory import Memory
from wellworn.store.port import Store
from wellworn.views import AdminView, JobsView, LearningView

P = ParamSpec("P")
T = TypeVar("T")
K = TypeVar("K")
S = TypeVar("S")


class Blocking:
    """The kind of a face whose verbs return."""


class Awaiting:
    """The kind of a face whose verbs are awaited."""


class Face(ABC, Generic[K]):
    """An object whose verbs are carried out elsewhere."""

    awaits = True

    @abstractmethod
    def plays(self, method: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Carry out the verb that stands for this method; a coroutine where verbs are awaited."""


class Verb(Generic[P, T]):
    """A method of another class, as a verb of a face. A test per face checks that no public method is missing."""

    def __init__(self, method: Callable[Concatenate[Any, P], T]) -> None:
        @functools.wraps(method)
        def call(face: Face[Any], /, *args: P.args, **kwargs: P.kwargs) -> Any:
            return face.plays(method, args, kwargs)

        @functools.wraps(method)
        async def awaited(face: Face[Any], /, *args: P.args, **kwargs: P.kwargs) -> Any:
            return await face.plays(method, args, kwargs)

        self._call, self._awaited = call, awaited

    @overload
    def __get__(self, at: Face[Blocking], of: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, at: Face[Awaiting], of: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    @overload
    def __get__(self, at: None, of: type) -> Callable[Concatenate[Any, P], Any]: ...
    def __get__(self, at: Face[Any] | None, of: type) -> Any:
        return self._call if at is None else MethodType(self._awaited if at.awaits else self._call, at)


# -- the lists of verbs ------------------------------------------------------------------------------------------------


class SessionVerbs(Face[K]):
    add = Verb(Session.add)
    add_turns = Verb(Session.add_turns)
    end = Verb(Session.end)
    turns = Verb(Session.turns)


class LearningVerbs(Face[K]):
    status = Verb(LearningView.status)
    relearn = Verb(LearningView.relearn)
    reset = Verb(LearningView.reset)
    share = Verb(LearningView.share)
    export = Verb(LearningView.export)
    practise = Verb(LearningView.practise)


class JobsVerbs(Face[K]):
    run = Verb(JobsView.run)
    retry = Verb(JobsView.retry)
    list = Verb(JobsView.list)


class AdminVerbs(Face[K]):
    stats = Verb(AdminView.stats)
    events = Verb(AdminView.events)
    costs = Verb(AdminView.costs)
    retention = Verb(AdminView.retention)
    expire = Verb(AdminView.expire)
    erase = Verb(AdminView.erase)
    export = Verb(AdminView.export)
    load = Verb(AdminView.load)


class MemoryVerbs(Face[K]):
    remember = Verb(Memory.remember)
    remember_many = Verb(Memory.remember_many)
    sessions = Verb(Memory.sessions)
    reflect = Verb(Memory.reflect)
    recall = Verb(Memory.recall)
    assemble = Verb(Memory.assemble)
    reason = Verb(Memory.reason)
    outcome = Verb(Memory.outcome)
    get = Verb(Memory.get)
    entries = Verb(Memory.entries)
    history = Verb(Memory.history)
    links = Verb(Memory.links)
    edit = Verb(Memory.edit)
    supersede = Verb(Memory.supersede)
    link = Verb(Memory.link)
    unlink = Verb(Memory.unlink)
    forget = Verb(Memory.forget)
    verify = Verb(Memory.verify)


# -- on threads --------------------------------------------------------------------------------------------------------


class OnThread(Face[Awaiting], Generic[S]):
    """Awaits the methods of one object, which it holds as `sync`."""

    def __init__(self, sync: S) -> None:
        self.sync = sync

    def plays(self, method: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Coroutine[Any, Any, T]:
        return asyncio.to_thread(method, self.sync, *args, **kwargs)


class AsyncSession(SessionVerbs[Awaiting], OnThread[Session]):
    """A dialogue whose turns are awaited."""

    @property
    def id(self) -> str:
        return self.sync.id


class AsyncLearningView(LearningVerbs[Awaiting], OnThread[LearningView]):
    """`memory.learning`, awaited."""


class AsyncJobsView(JobsVerbs[Awaiting], OnThread[JobsView]):
    """`memory.jobs`, awaited."""


class AsyncAdminView(AdminVerbs[Awaiting], OnThread[AdminView]):
    """`memory.admin`, awaited; with what only the process that has the store can do."""

    model = Verb(AdminView.model)
    repair = Verb(AdminView.repair)
    reembed = Verb(AdminView.reembed)
    backup = Verb(AdminView.backup)
    import_from = Verb(AdminView.import_from)


class AsyncMemory(MemoryVerbs[Awaiting], OnThread[Memory]):
    """`Memory` for async code. Open one with `await AsyncMemory.open(...)`; several event loops may share it."""

    @classmethod
    async def open(cls, location: str | Path | Store = "memory.db", **settings: Unpack[Settings]) -> AsyncMemory:
        return cls(await asyncio.to_thread(Memory, location, **settings))

    def __init__(self, sync: Memory) -> None:
        if not isinstance(sync, Memory):
            raise InvalidInput("memory", f"{shown(sync)} is not an open Memory", "use await AsyncMemory.open(…)")
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

    close = Verb(Memory.close)

    async def __aenter__(self) -> AsyncMemory:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
