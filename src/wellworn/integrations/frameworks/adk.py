"""Google ADK's `BaseMemoryService` on a memory: sessions become turns and memories, searches are recalls.

The app is the tenant and the user is the user, so no search crosses either. Needs the extra `adk`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from wellworn.core.errors import InvalidInput, MissingExtra, NotFound, ScopeError
from wellworn.core.fence import MIN_CONFIDENCE
from wellworn.core.scope import MAX_NAME_CHARS
from wellworn.core.values import Hit, Scope, fence_item
from wellworn.core.wellformed import clean_text
from wellworn.ingest.session import missing_turns
from wellworn.ingest.validate import MAX_QUERY_CHARS, as_time, checked_k, checked_scope
from wellworn.integrations import CountsFaults, Faults, checked_memory, off_loop, storable
from wellworn.memory import Memory

try:
    from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
    from google.adk.memory.memory_entry import MemoryEntry
    from google.genai import types
except ModuleNotFoundError as error:
    raise MissingExtra("WellwornMemoryService", "adk") from error

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.adk.sessions.session import Session

__all__ = ["WellwornMemoryService"]

NO_SESSION = "adk"
"""The session of events that come without one."""


class WellwornMemoryService(CountsFaults, BaseMemoryService):  # type: ignore[misc]  # not installed where types are checked
    """The memory of a `Runner(memory_service=…)`, for all apps and users. `memory` is not bound to a scope.

    A memory fault never stops the agent: it is logged and counted in `faults`, and the agent goes on without memory.
    """

    def __init__(self, memory: Memory, *, k: int = 5) -> None:
        if checked_memory(memory).scope is not None:
            raise ScopeError("memory", f"is bound to {memory.scope}", "give Memory(…) itself: ADK names app and user")
        self._memory, self._k = memory, checked_k(k)
        self._faults = Faults()

    async def add_session_to_memory(self, session: Session) -> None:
        """Store the events that are new, and let reflection read them. A session may be added again and again."""
        await self._add(session.app_name, session.user_id, session.id, session.events, ended=True)

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store the events that are new."""
        await self._add(app_name, user_id, session_id or NO_SESSION, events, ended=False)

    @off_loop
    def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store memories as facts."""
        common = dict(custom_metadata or {})
        with self._faults.guarded("store"):
            items = [
                {
                    "text": text,
                    "kind": "fact",
                    "speaker": _speaker(memory.author),
                    "at": _time(memory.timestamp),
                    "metadata": {**common, **memory.custom_metadata},
                }
                for memory in memories
                if (text := _text(memory.content)).strip()
            ]
            self._of(app_name, user_id).remember_many(items)

    @off_loop
    def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """Recall what answers the query; nothing where it is unlikely to hold an answer."""
        with self._faults.guarded("recall"):
            asked = clean_text(query)[:MAX_QUERY_CHARS]
            found = self._of(app_name, user_id).recall(asked, k=self._k, min_confidence=MIN_CONFIDENCE)
            return SearchMemoryResponse(memories=[_memory_of(hit) for hit in found])
        return SearchMemoryResponse()

    @off_loop
    def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Forget one memory for good, with the turn it was. Adding its session again would bring it back."""
        with self._faults.guarded("store"):
            if memory_id is None:
                raise NotFound("memory", "None", "use the id of a search result")
            self._of(app_name, user_id).forget([memory_id], turns=True)

    def _of(self, app_name: str, user_id: str) -> Memory:
        return self._memory.for_scope(Scope(tenant=app_name, user=user_id))

    @off_loop
    def _add(self, app_name: str, user_id: str, session_id: str, events: Sequence[Event], *, ended: bool) -> None:
        with self._faults.guarded("store"):
            memory = self._of(app_name, user_id)
            session, home = memory.session(session_id), checked_scope(memory.scope).home()
            drafts = {
                event.id: session.writer.draft(
                    "user" if event.author == "user" else "assistant",
                    text,
                    speaker=None if event.author == "user" else _speaker(event.author),
                    at=_time(event.timestamp),
                )
                for event in events
                if (text := _text(event.content)).strip()
            }
            new = missing_turns(session, memory.engine.store, home, drafts)
            if new:
                session.writer.write(session.writer.ready(new))
            if ended and new:
                session.end()


def _text(content: types.Content | None) -> str:
    """The words of a content, without the thoughts of a model."""
    parts = (content.parts if content is not None else None) or []
    return storable("\n".join(part.text for part in parts if part.text and not part.thought))


def _speaker(author: str | None) -> str | None:
    return None if author is None else clean_text(author)[:MAX_NAME_CHARS]


def _time(given: str | float | None) -> datetime | None:
    """When it was; None if that cannot be read, as in free text or milliseconds."""
    with suppress(InvalidInput, ValueError, OverflowError, OSError):
        return as_time("at", datetime.fromtimestamp(given, UTC) if isinstance(given, int | float) else given)
    return None


def _memory_of(hit: Hit) -> MemoryEntry:
    entry = hit.entry
    mine, marks = entry.source == "assistant", fence_item(entry, outdated=hit.outdated).marks
    text = f"({'; '.join(marks)}) {entry.text}" if marks else entry.text  # all that a model sees of it
    return MemoryEntry(
        id=entry.id,
        content=types.Content(role="model" if mine else "user", parts=[types.Part(text=text)]),
        author=entry.speaker or ("assistant" if mine else "user"),
        timestamp=entry.at.isoformat(),
        custom_metadata={**entry.metadata, "kind": entry.kind, "outdated": hit.outdated},
    )
