"""The awaitable twin of `Memory`: the same verbs, run on worker threads so that the event loop is never held up.

Thin on purpose: no rule lives here, and a test keeps every signature equal to the facade's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from wellworn.core.clock import Clock, NewId, system_clock
from wellworn.core.values import (
    CurvePoint,
    Entry,
    LearningStatus,
    Link,
    Progress,
    Reasoning,
    Recall,
    Receipt,
    Scope,
    Stats,
    Turn,
    Version,
)
from wellworn.ingest.scrub import ScrubberSpec
from wellworn.ingest.session import Session
from wellworn.ingest.times import TimeLike
from wellworn.ingest.validate import Draft
from wellworn.memory import Memory
from wellworn.models.embedders.choose import EmbedderSpec
from wellworn.models.llms.budget import Budget
from wellworn.models.llms.choose import ModelSpec
from wellworn.ops.reembed import Reembedded
from wellworn.reflection.report import Reflection
from wellworn.reflection.settings import ReflectionSettings
from wellworn.search.profiles import Profile
from wellworn.search.steps.recall import Recursion
from wellworn.store.port import Event, Job, Spent

if TYPE_CHECKING:
    from wellworn.models.llms.base import Model
    from wellworn.ops.doctor import Report
    from wellworn.ops.transfer import Loaded, Written
    from wellworn.search.assemble import Assembled

P = ParamSpec("P")
T = TypeVar("T")


async def _threaded(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    return await asyncio.to_thread(call, *args, **kwargs)


class AsyncSession:
    """A dialogue to await turns on."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.id = session.id

    async def add(
        self,
        role: str,
        text: str,
        *,
        at: TimeLike = None,
        speaker: str | None = None,
        trust: str = "trusted",
        tags: Sequence[str] = (),
    ) -> str:
        return await _threaded(self._session.add, role, text, at=at, speaker=speaker, trust=trust, tags=tags)

    async def end(self, *, wait: float = 0.0) -> Job | None:
        return await _threaded(self._session.end, wait=wait)

    async def turns(self) -> list[Turn]:
        return await _threaded(self._session.turns)


class AsyncMemory:
    """`Memory`, awaitable. Open one with `await AsyncMemory.open(...)`; one may be used from several loops."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    @classmethod
    async def open(
        cls,
        location: str | Path = "memory.db",
        *,
        embedder: EmbedderSpec = "static",
        profile: str | Profile = "default",
        scrubber: ScrubberSpec = "off",
        durability: str = "full",
        learning: str = "on",
        explore: float = 0.1,
        prior: str | Path | None = None,
        llm: ModelSpec = None,
        summarizer: ModelSpec = None,
        budget: Budget | None = None,
        prices: str | Path | None = None,
        reflection: ReflectionSettings | None = None,
        background: bool = True,
        recursion: str | Recursion = "on",
        clock: Clock = system_clock,
        new_id: NewId | None = None,
        reembedding: bool = False,
    ) -> AsyncMemory:
        return cls(
            await _threaded(
                Memory.open,
                location,
                embedder=embedder,
                profile=profile,
                scrubber=scrubber,
                durability=durability,
                learning=learning,
                explore=explore,
                prior=prior,
                llm=llm,
                summarizer=summarizer,
                budget=budget,
                prices=prices,
                reflection=reflection,
                background=background,
                recursion=recursion,
                clock=clock,
                new_id=new_id,
                reembedding=reembedding,
            )
        )

    async def remember(
        self,
        text: str,
        *,
        scope: Scope,
        kind: str = "note",
        title: str = "",
        tags: Sequence[str] = (),
        layer: str | None = None,
        session_id: str | None = None,
        turn_refs: Sequence[int] = (),
        evidence: str | None = None,
        source: str = "interaction",
        speaker: str | None = None,
        confidence: float = 0.8,
        trust: str = "trusted",
        at: TimeLike = None,
        valid_from: TimeLike = None,
        valid_to: TimeLike = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> list[str]:
        return await _threaded(
            self._memory.remember,
            text,
            scope=scope,
            kind=kind,
            title=title,
            tags=tags,
            layer=layer,
            session_id=session_id,
            turn_refs=turn_refs,
            evidence=evidence,
            source=source,
            speaker=speaker,
            confidence=confidence,
            trust=trust,
            at=at,
            valid_from=valid_from,
            valid_to=valid_to,
            metadata=metadata,
        )

    async def remember_many(
        self,
        items: Iterable[str | Mapping[str, Any] | Draft],
        *,
        scope: Scope,
        progress: Progress | None = None,
        **common: Any,
    ) -> list[str]:
        return await _threaded(self._memory.remember_many, items, scope=scope, progress=progress, **common)

    def session(self, *, scope: Scope, session_id: str) -> AsyncSession:
        return AsyncSession(self._memory.session(scope=scope, session_id=session_id))

    async def sessions(self, *, scope: Scope, layer: str | None = None) -> list[str]:
        return await _threaded(self._memory.sessions, scope=scope, layer=layer)

    async def recall(
        self,
        query: str,
        *,
        scope: Scope,
        k: int = 5,
        kind: str | Sequence[str] | None = None,
        tags: str | Sequence[str] | None = None,
        layer: str | Sequence[str] | None = None,
        session_id: str | None = None,
        except_session: str | None = None,
        since: TimeLike = None,
        until: TimeLike = None,
        as_of: TimeLike = None,
        min_score: float | None = None,
        recursion: str | None = None,
    ) -> Recall:
        return await _threaded(
            self._memory.recall,
            query,
            scope=scope,
            k=k,
            kind=kind,
            tags=tags,
            layer=layer,
            session_id=session_id,
            except_session=except_session,
            since=since,
            until=until,
            as_of=as_of,
            min_score=min_score,
            recursion=recursion,
        )

    async def assemble(
        self,
        question: str,
        *,
        scope: Scope,
        max_tokens: int = 1500,
        sources: Sequence[Recall] = (),
        k: int = 40,
        kind: str | Sequence[str] | None = None,
        tags: str | Sequence[str] | None = None,
        layer: str | Sequence[str] | None = None,
        except_session: str | None = None,
        since: TimeLike = None,
        until: TimeLike = None,
        as_of: TimeLike = None,
        recursion: str | None = None,
    ) -> Assembled:
        return await _threaded(
            self._memory.assemble,
            question,
            scope=scope,
            max_tokens=max_tokens,
            sources=sources,
            k=k,
            kind=kind,
            tags=tags,
            layer=layer,
            except_session=except_session,
            since=since,
            until=until,
            as_of=as_of,
            recursion=recursion,
        )

    async def reason(self, question: str, *, scope: Scope, k: int = 5, as_of: TimeLike = None) -> Reasoning:
        return await _threaded(self._memory.reason, question, scope=scope, k=k, as_of=as_of)

    async def get(self, id: str, *, scope: Scope) -> Entry:
        return await _threaded(self._memory.get, id, scope=scope)

    async def entries(
        self,
        *,
        scope: Scope,
        kind: str | Sequence[str] | None = None,
        tags: str | Sequence[str] | None = None,
        layer: str | Sequence[str] | None = None,
        session_id: str | None = None,
        state: str | Sequence[str] | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[Entry]:
        return await _threaded(
            self._memory.entries,
            scope=scope,
            kind=kind,
            tags=tags,
            layer=layer,
            session_id=session_id,
            state=state,
            limit=limit,
            offset=offset,
        )

    async def outcome(
        self,
        recall_id: str,
        *,
        cited: Sequence[int] | None = None,
        used: float | None = None,
        ignored: bool = False,
        refined: str | None = None,
        success: bool | None = None,
        scope: Scope | None = None,
    ) -> bool:
        return await _threaded(
            self._memory.outcome,
            recall_id,
            cited=cited,
            used=used,
            ignored=ignored,
            refined=refined,
            success=success,
            scope=scope,
        )

    async def learning(self, *, scope: Scope) -> LearningStatus:
        return await _threaded(self._memory.learning, scope=scope)

    async def learning_curve(self, *, scope: Scope) -> list[CurvePoint]:
        return await _threaded(self._memory.learning_curve, scope=scope)

    async def relearn(
        self, *, scope: Scope, pairs: Iterable[tuple[str, Sequence[str]]] | None = None, whole: bool = False
    ) -> LearningStatus:
        return await _threaded(self._memory.relearn, scope=scope, pairs=pairs, whole=whole)

    async def reset_learning(self, *, scope: Scope) -> int:
        return await _threaded(self._memory.reset_learning, scope=scope)

    async def share_learning(self, on: bool, *, scope: Scope) -> None:
        await _threaded(self._memory.share_learning, on, scope=scope)

    async def export_learning(self, *, scope: Scope) -> dict[str, Any]:
        return await _threaded(self._memory.export_learning, scope=scope)

    async def load_learning(self, state: Mapping[str, Any], *, scope: Scope) -> LearningStatus:
        return await _threaded(self._memory.load_learning, state, scope=scope)

    async def practise(self, *, scope: Scope, tasks: int = 60) -> int:
        return await _threaded(self._memory.practise, scope=scope, tasks=tasks)

    async def reflect(
        self,
        *,
        scope: Scope,
        session_id: str | None = None,
        dry_run: bool = False,
        again: bool = False,
        progress: Progress | None = None,
    ) -> list[Reflection]:
        return await _threaded(
            self._memory.reflect, scope=scope, session_id=session_id, dry_run=dry_run, again=again, progress=progress
        )

    async def jobs(self, *, scope: Scope, state: str | None = None, limit: int = 100) -> list[Job]:
        return await _threaded(self._memory.jobs, scope=scope, state=state, limit=limit)

    async def run_jobs(self, *, scope: Scope | None = None, progress: Progress | None = None) -> int:
        return await _threaded(self._memory.run_jobs, scope=scope, progress=progress)

    async def retry_jobs(self, *, scope: Scope, id: str | None = None) -> int:
        return await _threaded(self._memory.retry_jobs, scope=scope, id=id)

    async def model(self, *, scope: Scope, session_id: str | None = None) -> Model | None:
        return await _threaded(self._memory.model, scope=scope, session_id=session_id)

    async def costs(
        self, *, scope: Scope, since: TimeLike = None, by: Sequence[str] = ("purpose", "model")
    ) -> list[Spent]:
        return await _threaded(self._memory.costs, scope=scope, since=since, by=by)

    async def edit(self, id: str, *, scope: Scope, **changes: Any) -> Entry:
        return await _threaded(self._memory.edit, id, scope=scope, **changes)

    async def supersede(self, old: str, new: str, *, scope: Scope, at: TimeLike = None, wrong: bool = False) -> Entry:
        return await _threaded(self._memory.supersede, old, new, scope=scope, at=at, wrong=wrong)

    async def link(self, a: str, b: str, type: str, *, scope: Scope, confidence: float = 1.0) -> Link:
        return await _threaded(self._memory.link, a, b, type, scope=scope, confidence=confidence)

    async def unlink(self, a: str, b: str, type: str, *, scope: Scope) -> bool:
        return await _threaded(self._memory.unlink, a, b, type, scope=scope)

    async def links(self, id: str, *, scope: Scope) -> list[Link]:
        return await _threaded(self._memory.links, id, scope=scope)

    async def history(self, id: str, *, scope: Scope) -> list[Version]:
        return await _threaded(self._memory.history, id, scope=scope)

    async def forget(
        self,
        *,
        scope: Scope,
        ids: Sequence[str] | None = None,
        session_id: str | None = None,
        everything: bool = False,
        layer: str | None = None,
        turns: bool | None = None,
    ) -> Receipt:
        return await _threaded(
            self._memory.forget,
            scope=scope,
            ids=ids,
            session_id=session_id,
            everything=everything,
            layer=layer,
            turns=turns,
        )

    async def stats(self, *, scope: Scope) -> Stats:
        return await _threaded(self._memory.stats, scope=scope)

    async def events(self, *, scope: Scope, limit: int = 100) -> list[Event]:
        return await _threaded(self._memory.events, scope=scope, limit=limit)

    async def verify(self, *, progress: Progress | None = None) -> Report:
        return await _threaded(self._memory.verify, progress=progress)

    async def repair(self, *, progress: Progress | None = None) -> Report:
        return await _threaded(self._memory.repair, progress=progress)

    async def reembed(self, *, progress: Progress | None = None) -> Reembedded:
        return await _threaded(self._memory.reembed, progress=progress)

    async def export(
        self,
        path: str | Path,
        *,
        format: str | None = None,
        scope: Scope | None = None,
        vectors: bool = True,
        progress: Progress | None = None,
    ) -> Written:
        return await _threaded(
            self._memory.export, path, format=format, scope=scope, vectors=vectors, progress=progress
        )

    async def load(
        self,
        path: str | Path,
        *,
        format: str | None = None,
        scope: Scope | None = None,
        progress: Progress | None = None,
    ) -> Loaded:
        return await _threaded(self._memory.load, path, format=format, scope=scope, progress=progress)

    async def close(self) -> None:
        await _threaded(self._memory.close)

    async def __aenter__(self) -> AsyncMemory:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
