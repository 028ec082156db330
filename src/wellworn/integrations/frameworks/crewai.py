"""CrewAI's `Memory` on a memory: what a crew remembers is an entry, what it recalls is ranked by wellworn.

CrewAI's own storage, embedder and analysis by a model are not used. Needs the extra `crewai`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from wellworn.core.errors import MissingExtra
from wellworn.core.fence import MIN_CONFIDENCE
from wellworn.core.values import Entry
from wellworn.core.wellformed import clean_text
from wellworn.ingest.validate import MAX_QUERY_CHARS, checked_scope
from wellworn.integrations import CountsFaults, Faults, checked_memory, storable
from wellworn.integrations.loop import relevances
from wellworn.memory import Memory

try:
    from crewai.memory.types import MemoryMatch, MemoryRecord
    from crewai.memory.unified_memory import Memory as _CrewMemory
    from pydantic import PrivateAttr
except ModuleNotFoundError as error:
    raise MissingExtra("WellwornCrewMemory", "crewai") from error

__all__ = ["WellwornCrewMemory"]

SOURCE = "crewai"
_MANY = 100_000


class WellwornCrewMemory(CountsFaults, _CrewMemory):  # type: ignore[misc]  # not installed where types are checked
    """A memory for `Crew(memory=…)`, `Agent(memory=…)` and flows. `memory` is bound: `memory.for_scope(Scope(team="core"))`.

    CrewAI's scopes are kept in the metadata. A memory fault never stops the crew: it is logged and counted in `faults`.
    """

    _memory: Memory = PrivateAttr()
    _faults: Faults = PrivateAttr(default_factory=Faults)

    def __init__(self, memory: Memory, **fields: Any) -> None:
        super().__init__(storage=object(), **fields)  # never asked for anything
        checked_scope(checked_memory(memory).scope)
        self._memory = memory

    def extract_memories(self, content: str) -> list[str]:
        """The content as it is: long texts are cut where they are stored."""
        return [content] if content.strip() else []

    def remember(self, content: str, *args: Any, **options: Any) -> MemoryRecord | None:
        """Store one text."""
        return next(iter(self.remember_many([content], *args, **options)), None)

    def remember_many(
        self,
        contents: Sequence[str],
        scope: str | None = None,
        categories: Sequence[str] | None = None,
        metadata: dict[str, Any] | None = None,
        importance: float | None = None,
        source: str | None = None,
        private: bool = False,
        agent_role: str | None = None,
        root_scope: str | None = None,
    ) -> list[MemoryRecord]:
        """Store texts, in one durable write."""
        with self._faults.guarded("store"):
            path = "/".join(part.strip("/") for part in ("", root_scope or self.root_scope or "", scope or "") if part)
            kept = {**(metadata or {}), "scope": f"/{path}", "importance": importance, "source": source}
            ids = self._memory.remember_many(
                [{"text": text} for content in contents if (text := storable(content)).strip()],
                tags=list(categories or ()),
                source=SOURCE,
                speaker=agent_role,
                metadata={name: value for name, value in kept.items() if value is not None},
            )
            return [_record(self._memory.get(id)) for id in dict.fromkeys(ids)]
        return []

    def recall(
        self,
        query: str,
        scope: str | None = None,
        categories: Sequence[str] | None = None,
        limit: int = 10,
        **options: Any,
    ) -> list[MemoryMatch]:
        """The memories that answer the query best."""
        with self._faults.guarded("recall"):
            asked = clean_text(query)[:MAX_QUERY_CHARS]
            wanted = list(categories) if categories else None
            found = self._memory.recall(asked, k=limit, tags=wanted, min_confidence=MIN_CONFIDENCE)
            return [
                MemoryMatch(record=_record(hit.entry), score=score, match_reasons=["wellworn"])
                for hit, score in zip(found, relevances(found.hits), strict=True)
                if _within(hit.entry, scope)
            ]
        return []

    def forget(
        self,
        scope: str | None = None,
        categories: Sequence[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
        record_ids: Sequence[str] | None = None,
    ) -> int:
        """Forget what the crew stored, for good; returns how many entries that were."""
        found = self._memory.entries(tags=list(categories) if categories else None, limit=_MANY)
        ids = [
            entry.id
            for entry in found
            if entry.source == SOURCE
            and _within(entry, scope)
            and (record_ids is None or entry.id in record_ids)
            and (older_than is None or entry.created_at.timestamp() < older_than.timestamp())
            and all(entry.metadata.get(name) == value for name, value in (metadata_filter or {}).items())
        ]
        return self._memory.forget(ids).entries if ids else 0

    def list_records(self, scope: str | None = None, limit: int = 200, offset: int = 0) -> list[MemoryRecord]:
        """What the crew stored, newest first."""
        found = [one for one in self._memory.entries(limit=_MANY) if one.source == SOURCE and _within(one, scope)]
        return [_record(entry) for entry in found[::-1][offset : offset + limit]]

    def reset(self, scope: str | None = None) -> None:
        """Forget all that the crew stored."""
        self.forget(scope=scope)

    def reset_all(self) -> None:
        self.forget()

    def drain_writes(self) -> None:
        """Nothing waits: every write is durable when it returns."""

    def close(self) -> None:
        """Closing the memory stays the caller's task."""


def _within(entry: Entry, scope: str | None) -> bool:
    path, prefix = str(entry.metadata.get("scope", "/")), (scope or "/").rstrip("/")
    return path == prefix or path.startswith(f"{prefix}/")


def _record(entry: Entry) -> MemoryRecord:
    return MemoryRecord(
        id=entry.id,
        content=entry.text,
        scope=str(entry.metadata.get("scope", "/")),
        categories=entry.tags,
        importance=float(entry.metadata.get("importance", 0.5)),
        source=entry.metadata.get("source"),
        created_at=entry.created_at,
        metadata={"date": entry.at.date().isoformat()},
    )
